"""The page Inside: it sends its instrument the model's own pass, and checks what comes back."""


import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pages.ui.models import insides, library
from tests.app_driver import (
    ROOT,
    checked,
    choose,
    component,
    fed,
    go,
    link_of,
    look_at,
    looked_at,
    outline,
    said,
    start,
    tell,
    text_of,
    type_prompt,
    use,
    write,
)
from tests.tiny_models import save_tiny, save_translator
from transformer import (
    qk_circuit,
    whole_pass,
)
from transformer.inference import whole_recording

pytestmark = pytest.mark.usefixtures("folder")

FEED = "headsup_inside_feed"
OPEN = {"open": "", "token": None, "source": None, "head": None, "cell": None, "moment": None,
        "folds": [], "candidate": None, "circuit": None}  # fmt: skip
"""What is looked at until something else is."""
SHIPPED = sorted(path.name for path in (ROOT / "checkpoints").iterdir())


def chosen(at):
    return fed(at).metadata["chosen"]


def choose_inside(at, **changes):
    return tell(at, FEED, "chosen", {**chosen(at), **changes})


def ask(at, *parts):
    return fed(tell(at, FEED, "want", {"id": fed(at).metadata["id"], "parts": list(parts)}))


# What it sends


@pytest.mark.parametrize("model", SHIPPED)
def test_every_shipped_model_can_be_looked_into(model, monkeypatch):
    use(monkeypatch, ROOT / "checkpoints")
    at = start("Inside", model=model)
    assert not said(at) and chosen(at) == OPEN
    there, checkpoint = outline(at), library.model(model)
    ids = there.metadata["ids"]
    found = whole_pass(checkpoint.model, ids["text"], ids["source"])
    names = [info["name"] for info in there.metadata["tensors"]]
    assert names[: len(checkpoint.model.hook_names())] == list(checkpoint.model.hook_names())
    odds = found.tensors["probabilities"].numpy()
    np.testing.assert_allclose(there.tensors["next.probability"][:, 0], odds.max(-1), rtol=1e-5)
    for name in (names[0], "probabilities", "unembed.weight"):
        np.testing.assert_allclose(ask(at, ["tensor", name]).tensors[name], found.tensors[name], atol=1e-6)
    assert {check["name"] for check in ask(at, ["checks"]).metadata["checks"]} <= set(names)
    last = len(ids["text"]) - 1
    who = ask(at, ["who", last, 1])
    assert who.tensors[f"who[{last}, 1]"].shape == (len(who.metadata["who"]["names"]),)


def test_it_says_what_the_tokens_are_called_and_where_they_stand():
    about = outline(start("Inside", prompt="To be")).metadata
    assert about["labels"] == {"text": ["T", "o", "␣", "b", "e"], "source": []}
    assert about["offset"] == 0 and about["title"] == "shakespeare" and about["name"] == "inside"
    assert len(about["vocabulary"]) == about["config"]["vocab_size"]


def test_what_was_written_is_looked_into_with_the_prompt():
    at = go(write(start(tokens=5, prompt="To be")), "Inside")
    tokens = library.tokenizer("shakespeare").encode("To be" + text_of(at))
    assert outline(at).metadata["ids"]["text"] == tokens and len(tokens) == 10


def test_of_an_encoder_decoder_the_source_and_what_it_would_write_are_looked_into(tmp_path, monkeypatch):
    save_translator(tmp_path)
    use(monkeypatch, tmp_path)
    at = start("Inside", model="translator", prompt="forty-two", source_place=1)
    there = outline(at).metadata
    assert there["ids"]["source"] == library.tokenizer("translator").encode("forty-two")
    assert there["labels"]["text"][0] == "[start]" and len(there["labels"]["source"]) == len(there["ids"]["source"])
    assert [stack["prefix"] for stack in there["stacks"]] == ["encoder.", "decoder."]
    assert chosen(at) == OPEN | {"source": 1}
    assert any("this is what the model would write" in caption.value for caption in at.caption)
    choose_inside(at, open="encoder.blocks.1.attn", source=0, head=1)
    assert {"inside": "encoder.blocks.1.attn", "source_place": "0", "heads": "one", "head": "1", "layer": "1",
            "attention": "encoder"}.items() <= link_of(at).items()  # fmt: skip


@pytest.mark.parametrize("n_layers", [0, 1])
@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_a_model_with_few_parts_can_be_looked_into(n_layers, norm, tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", n_layers=n_layers, norm=norm, positions="none", residual=False, d_ff=0)
    use(monkeypatch, tmp_path)
    at = start("Inside", head=1, heads="one")
    assert not said(at) and len(outline(at).metadata["stacks"][0]["heights"]) == n_layers + 1
    assert chosen(at) == OPEN | {"head": 1 if n_layers else None}
    choose_inside(at, open="unembed", head=1)
    checked(at.run())
    assert not said(at)


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A text of 100 tokens for a model that reads the last 80."""
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    return "".join(chr(97 + i % 26) for i in range(100))


def test_of_a_text_longer_than_the_context_the_end_is_read(long):
    at = start("Inside", prompt=long, place=97)
    about = outline(at).metadata
    assert about["offset"] == 20 and "".join(about["labels"]["text"]) == long[-80:]
    assert chosen(at) == OPEN | {"token": 77}
    told = ("so the model reads its last 80 tokens, from position 20 on. "
            "Tokens before position 81 were predicted from earlier windows")  # fmt: skip
    assert any(told in caption.value for caption in at.caption)
    choose_inside(at, token=1)
    assert link_of(at)["place"] == "21"


# What it takes


SAID = {"open": "blocks.1.attn.hook_pattern", "token": 7, "source": None, "head": 1, "cell": [1, 7, 2], "moment": 2.5,
        "folds": ["who", "circuits"], "candidate": 3, "circuit": ["qk", "blocks.0.attn", 1, 4, 2, 0]}  # fmt: skip
LINKED = {"inside": "blocks.1.attn.hook_pattern", "place": "7", "heads": "one", "head": "1", "cell": "1,7,2",
          "moment": "2.5", "layer": "1", "folds": "who,circuits", "candidate": "3",
          "circuit": "qk,blocks.0.attn,1,4,2,0"}  # fmt: skip
BELOW = {name: SAID[name] for name in ("folds", "candidate", "circuit")}


def test_what_is_looked_at_is_in_the_link_and_a_link_opens_it():
    at = start("Inside", prompt="To be, or not")
    choose_inside(at, **SAID)
    assert LINKED.items() <= link_of(at).items()
    other = start("Inside", **link_of(at))
    assert chosen(other) == SAID and link_of(other) == link_of(at) and not said(other)
    assert fed(other).tensors.keys() == {SAID["open"]}  # sent unasked


def test_nothing_is_in_the_link_until_something_is_chosen():
    at = start("Inside")
    assert not {"inside", "place", "source_place", "cell", "heads", "moment", *BELOW} & link_of(at).keys()


@pytest.mark.parametrize(
    ("link", "missing"),
    [({"inside": "blocks.9"}, "open"), ({"inside": "blocks.1.attn.hook_"}, "open"), ({"inside": "<b>"}, "open"),
     ({"place": 13}, "token"), ({"source_place": 0}, "source"), ({"cell": "1,1"}, "cell"),
     ({"inside": "logits", "cell": "13,0"}, "cell"), ({"inside": "logits", "cell": "1,1,1"}, "cell"),
     ({"inside": "blocks.0", "cell": "1"}, "cell"), ({"candidate": 999}, "candidate"),
     ({"circuit": "qk,blocks.9.attn,0,0"}, "circuit"), ({"circuit": "ov,blocks.0.attn,7,0"}, "circuit")],
)  # fmt: skip
def test_what_the_pass_does_not_have_is_forgotten(link, missing):
    at = start("Inside", prompt="To be, or not", **link)
    assert chosen(at)[missing] == OPEN[missing]
    names = {"open": "inside", "token": "place", "source": "source_place", "cell": "cell"}
    assert names.get(missing, missing) not in link_of(at) and not said(at)


@pytest.mark.parametrize(
    ("link", "words"),
    [({"cell": "1,x"}, "each number must be"), ({"cell": "1,2,3,4,5"}, "at most 4 dimensions"),
     ({"heads": "all"}, "it can be mean, one"), ({"moment": "inf"}, "the moment must be"),
     ({"folds": "lens,all"}, "it can be lens"), ({"circuit": "qk,blocks.0.attn,1"}, "needs a kind, an attention"),
     ({"circuit": "x"}, "each number must be"), ({"place": "-1"}, "the token's position"),
     ({"inside": "x" * 201}, "at most 200 characters")],
)  # fmt: skip
def test_a_link_that_cannot_be_read_is_answered_with_a_sentence(link, words):
    assert words in said(start("Inside", **link))


def test_another_text_keeps_what_is_open_and_forgets_the_places_it_does_not_have():
    at = start("Inside", prompt="To be, or not", **LINKED)
    type_prompt(at, "To be")
    assert chosen(at) == OPEN | {"open": SAID["open"], "head": 1, "moment": 2.5} | BELOW


def test_another_model_forgets_what_it_does_not_have():
    at = start("Inside", inside="blocks.0.attn.hook_rot_q", cell="0,0,1", moment=3)
    choose(at, "Model", "martin-fierro")  # whose positions don't rotate
    assert chosen(at) == OPEN and "inside" not in link_of(at)


def test_attention_turns_to_the_layer_and_head_that_were_looked_at():
    at = start("Inside", prompt="To be", layer=0, head=0)
    choose_inside(at, open="blocks.1.attn.hook_q", head=1)
    checked(at.run())
    go(at, "Attention")
    assert (looked_at(at)["layer"], looked_at(at)["head"]) == (1, 1)
    look_at(at, head=0)
    checked(at.run())
    go(at, "Inside")
    assert chosen(at) == OPEN | {"open": "blocks.1.attn.hook_q", "head": 0}


def test_the_mean_of_a_layer_leaves_the_head_of_the_other_pages_alone():
    at = start("Inside", prompt="To be", layer=1, head=1)
    assert chosen(at)["head"] is None
    choose_inside(at, open="blocks.0.attn", head=None)
    assert link_of(at)["head"] == "1" and "heads" not in link_of(at)


def test_what_the_browser_said_itself_is_not_told_to_it_again():
    at = start("Inside", prompt="To be, or not")
    before = fed(at).metadata["serial"]
    choose_inside(at, **SAID)
    assert fed(checked(at.run())).metadata["serial"] == before
    go(at, "Masks")
    go(at, "Inside")
    assert fed(at).metadata["serial"] > before and chosen(at) == SAID


def test_only_what_there_is_is_taken():
    at = start("Inside", prompt="To be, or not")
    before = link_of(at)
    for report in (None, 3, [], {}, {"open": "blocks.0"}, SAID | {"cell": [9, 9, 9]}, SAID | {"open": "blocks.7"},
                   SAID | {"token": 13}, SAID | {"head": True}, SAID | {"moment": "2"},
                   SAID | {"folds": ["who", "lens"]}, SAID | {"circuit": ["qk", "x", 0, 0]}):  # fmt: skip
        tell(at, FEED, "chosen", report)
        assert link_of(at) == before


def test_what_is_asked_of_another_pass_is_not_answered():
    at, some = start("Inside", prompt="To be, or not"), [["tensor", "logits"]]
    for asked in (None, "x", [], {"parts": some}, {"id": ["x"], "parts": some}, {"id": "another", "parts": some}):
        tell(at, FEED, "want", asked)
        assert not fed(at).tensors
    late = fed(at).metadata["id"]
    type_prompt(checked(at.run()), "To")
    tell(at, FEED, "want", {"id": late, "parts": some})
    assert not fed(at).tensors


def test_visitors_share_what_is_computed(monkeypatch):
    runs, run = [], insides.whole_pass
    monkeypatch.setattr(insides, "whole_pass", lambda *args, **kwargs: runs.append(args) or run(*args, **kwargs))
    one, other = (start("Inside", prompt="To be, or not") for _ in range(2))
    assert component(one, "headsup_inside").bytes == component(other, "headsup_inside").bytes
    ask(other, ["tensor", "logits"], ["slice", "blocks.1.attn.hook_z", 1])
    assert len(runs) == 1


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
                         lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
                             st.sampled_from([*OPEN, "id", "parts", "count"]), inner, max_size=6)))  # fmt: skip
def test_no_report_is_too_strange(told, folder):
    at = start("Inside", prompt="To be")
    for event in ("chosen", "want"):
        tell(at, FEED, event, told)
    checked(at.run())
    assert not said(at)


def test_a_head_s_circuits_are_sent_when_they_are_asked_for():
    at = start("Inside", prompt="To be")
    wanted = [["circuit", "qk", "blocks.1.attn", 1], ["circuit", "ov", "blocks.0.attn", 0], ["circuit", "x", "y", 0]]
    there = ask(at, *wanted)
    name, model = "circuit[qk, blocks.1.attn, 1]", library.model("shakespeare").model
    product = there.tensors[f"{name}.left"] @ there.tensors[f"{name}.right"].T
    np.testing.assert_allclose(product, qk_circuit(model, "blocks.1.attn", 1).full(), atol=1e-5)
    assert {each.partition("[")[0] for each in there.tensors} == {"circuit"} and len(there.tensors) == 10
    assert there.metadata["vocabulary"] == {}  # the outline has named all


def test_of_a_large_vocabulary_a_circuit_s_tokens_are_named(monkeypatch):
    monkeypatch.setattr(insides, "LABELLED_VOCABULARY", 3)
    monkeypatch.setattr(whole_recording, "MOST_TOKENS", 4)
    at = start("Inside", prompt="To be")
    there = ask(at, ["circuit", "ov", "blocks.1.attn", 0])
    ids = {int(each) for part in ("rows", "columns") for each in there.tensors[f"circuit[ov, blocks.1.attn, 0].{part}"]}
    label = library.tokenizer("shakespeare").label
    assert there.metadata["vocabulary"] == {str(each): label(each) for each in ids}
