"""Tests the page Inside: its numbers are the model's, and its selection is kept."""

import json
import threading

import pytest
from hypothesis import HealthCheck, example, settings
from hypothesis import given as given_any
from hypothesis import strategies as st

from pages.ui.host.page_state import PageState
from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import answered, checked, given, go, link_of, looked_at, outline, said, start, use
from tests.frontend_calls import frontend
from tests.tiny_models import save_translator
from transformer.api import analyses, outlines, tensors
from transformer.inference import pass_recording

pytestmark = pytest.mark.usefixtures("folder")

OPEN = dict(open="", token=None, source=None, head=None, cell=None, moment=None, folds=[], candidate=None, circuit=None)
"""What is looked at until something else is."""
SAID = dict(open="blocks.1.attn.hook_pattern", token=7, source=None, head=1, cell=[1, 7, 2], moment=2.5)
SAID |= dict(folds=["who", "circuits"], candidate=3, circuit=["qk", "blocks.0.attn", 1, 4, 2, 0])
LINKED = dict(inside="blocks.1.attn.hook_pattern", place="7", heads="one", head="1", cell="1,7,2", moment="2.5")
LINKED |= dict(layer="1", folds="who,circuits", candidate="3", circuit="qk,blocks.0.attn,1,4,2,0")


def clicked(at, **changes):
    """What a click in the instrument makes of the address; it runs no page."""
    linked = frontend("inside/view_params.js", "paramsFrom", {**looked_at(at), **changes}, given(at))
    return app.look_at(at, **{name: value if value != "" else None for name, value in linked.items()})


def test_of_an_encoder_decoder_the_source_and_what_it_would_write_are_looked_into(tmp_path, monkeypatch):
    save_translator(tmp_path)
    use(monkeypatch, tmp_path)
    at = start("Inside", model="translator", prompt="forty-two", source_place=1)
    there = outline(at).metadata
    assert there["ids"]["source"] == library.tokenizer("translator").encode("forty-two")
    assert there["labels"]["text"][0] == "[start]" and len(there["labels"]["source"]) == len(there["ids"]["source"])
    assert [stack["prefix"] for stack in there["stacks"]] == ["encoder.", "decoder."]
    assert looked_at(at) == OPEN | {"source": 1}
    assert "the decoder has read what the model would generate" in said(at)
    clicked(at, open="encoder.blocks.1.attn", source=0, head=1)
    wanted = {"inside": "encoder.blocks.1.attn", "source_place": "0", "heads": "one", "head": "1", "layer": "1"}
    assert wanted.items() <= link_of(at).items()


def test_of_a_text_longer_than_the_context_the_end_is_read(long):
    at = start("Inside", prompt=long, place=97)
    about = outline(at).metadata
    assert about["offset"] == 20 and "".join(about["labels"]["text"]) == long[-80:]
    assert looked_at(at) == OPEN | {"token": 77}
    told = "its last 80 tokens, from position 20 on. Logits before position 81 came from earlier windows"
    assert told in said(at)
    assert [code.value for code in app.open_drawers(at).code if ", token=77)" in code.value]
    assert link_of(clicked(at, token=1))["place"] == "21"


def test_what_is_looked_at_is_in_the_link_and_a_link_opens_it():
    at = start("Inside", prompt="To be, or not")
    about = outline(at).metadata
    assert about["labels"] == {"text": list("To␣be,␣or␣not"), "source": []}
    assert about["offset"] == 0 and about["title"] == "shakespeare"
    assert len(about["vocabulary"]) == about["config"]["vocab_size"]
    assert not link_of(at).keys() & LINKED.keys()
    before = given(at)
    clicked(at, **SAID)
    assert LINKED.items() <= link_of(at).items()
    assert given(checked(at.run())) == before  # so nothing is asked anew
    other = start("Inside", **link_of(at))
    assert looked_at(other) == SAID and link_of(other) == link_of(at) and not said(other)
    clicked(other, moment=3.5)  # without a run
    for page in ("Masks", "Attention", "Inside"):
        go(other, page)
    assert looked_at(other) == SAID | {"moment": 3.5}, "what is open stays while other pages are"
    app.type_prompt(other, "To be")
    assert looked_at(other) == SAID | {"moment": 3.5, "token": None, "cell": None}, "the text has no such places"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("heads", "all", "it can be mean, one"),
        ("moment", "inf", "the moment must be"),
        ("folds", "lens,all", "it can be lens"),
        ("place", "-1", "the token's position"),
        ("inside", "x" * 201, "at most 200 characters"),
        ("cell", "1,2,3,4,5", "at most 4 numbers"),
        ("cell", "1,x", "each number must be"),
        ("circuit", "qk,blocks.0.attn,1", "needs a kind, an attention"),
        ("circuit", "x", "each number must be"),
    ],
)
def test_a_link_that_cannot_be_read_is_answered_with_a_sentence(name, text, sentence):
    (notice,) = PageState.of({name: text}).notices
    assert sentence in notice


def test_attention_turns_to_the_layer_and_head_that_were_looked_at_and_another_model_to_what_it_has():
    at = start("Inside", prompt="To be", layer=1, head=1)
    assert looked_at(at)["head"] is None
    clicked(at, open="blocks.0.attn", head=None)
    assert link_of(at)["head"] == "1" and "heads" not in link_of(at), "a layer's mean leaves other pages' head alone"
    clicked(at, open="blocks.1.attn.hook_rot_q", head=1)
    go(at, "Attention")  # without a run in between
    assert (looked_at(at)["layer"], looked_at(at)["head"]) == (1, 1)
    app.look_at(at, head=0)
    go(at, "Inside")
    assert looked_at(at) == OPEN | {"open": "blocks.1.attn.hook_rot_q", "head": 0}
    clicked(at, cell=[0, 0, 1], moment=3)
    app.choose(at, "Model", "martin-fierro")  # whose positions don't rotate
    assert looked_at(at) == OPEN | {"head": 0}


def test_the_outline_is_computed_before_the_browser_asks_for_it(monkeypatch):
    runs, begun, run = [], threading.Event(), tensors.trace_pass

    def trace(*args, **kwargs):
        runs.append(args)
        begun.set()
        return run(*args, **kwargs)

    monkeypatch.setattr(tensors, "trace_pass", trace)
    at = start("Inside", prompt="To be, or not to")
    assert begun.wait(60)
    outline(at)
    assert len(runs) == 1


ODD = "blocks.9 blocks.1.attn.hook_ logits <b> 13 0 13,0 1,1 1,1,1 999 qk,blocks.9.attn,0,0 ov,blocks.0.attn,7,0"


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given_any(
    link=st.dictionaries(
        st.sampled_from(sorted({*LINKED, "source_place"})),
        st.sampled_from([*LINKED.values(), *ODD.split()]) | st.text("0129,.qkov blcatn", max_size=12),
        max_size=6,
    )
)
@example(link={"inside": "logits", "cell": "13,0"})
@example(link={"inside": "blocks.9", "place": "13", "source_place": "0", "candidate": "999"})
def test_no_address_is_too_strange(link, folder):
    """Whatever it says, what is looked at is there, and the page says the same of it as the browser."""
    at = app.open_drawers(start("Inside", **{"model": "shakespeare", "prompt": "To be", **link}))
    found, about = looked_at(at), outline(at).metadata
    sizes = {info["name"]: info["sizes"] for info in about["tensors"]}
    assert not found["open"] or any(f"{name}.".startswith(f"{found['open']}.") for name in sizes)
    limits = {"token": 5, "source": 0, "head": 2, "candidate": about["config"]["vocab_size"]}
    assert all(found[name] is None or 0 <= found[name] < limit for name, limit in limits.items())
    cell = found["cell"]
    assert cell is None or all(at < size for at, size in zip(cell, sizes[found["open"]], strict=True))
    (lines,) = [block.value for block in at.code if "record_pass" in block.value]
    last = lines.strip().splitlines()[-1].partition("#")[0]
    shown = eval(last, {"show": lambda recording, **chosen: chosen, "recording": None})
    said = {name: value for name, value in found.items() if value not in (None, "", [])}
    assert json.loads(json.dumps(shown)) == said


def test_of_a_large_vocabulary_a_circuit_s_tokens_are_named(monkeypatch):
    for module in (analyses, outlines):
        monkeypatch.setattr(module, "LABELLED_VOCABULARY", 3)
    monkeypatch.setattr(pass_recording, "MOST_TOKENS", 4)
    at = start("Inside", prompt="To be")
    weights_alone = {"source": None, "changes": None, "begin": None}
    there = answered(at, "circuit", **weights_alone, kind="ov", attention="blocks.1.attn", head=0)
    ids = {int(each) for part in ("rows", "columns") for each in there.tensors[f"circuit[ov, blocks.1.attn, 0].{part}"]}
    label = library.tokenizer("shakespeare").label
    assert there.metadata["vocabulary"] == {str(each): label(each) for each in ids}
