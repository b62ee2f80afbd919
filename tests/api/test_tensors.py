"""Tests that any tensor of a pass, whole, in part or over HTTP, and what is derived of it, is the engine's."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.cases import TOKENS, have, infos, open_model, parts_of_attention
from tests.api.conftest import MODELS
from tests.engine.test_recording import SilencedHead
from tests.helpers import any_configs
from transformer import Deviation, Recording, Scale, Without, deviations, in_window, record_pass, to_code
from transformer.api import analyses, cache, exports, outlines, tensors
from transformer.api.pass_inputs import PassInputs
from transformer.data import chat
from transformer.data.chat import Chat

TEXTS = {"translator": "two hundred and five", "deep-translator": "forty-two", "chatty": "the cat"}
READ = "To be, or not"


@pytest.fixture(params=["whole", "block by block"])
def either_way(request, monkeypatch):
    """Whether all of a pass is cached, or one block of it."""
    if request.param != "whole":
        monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)


def get(client, **parameters):
    """Tensors over HTTP."""
    response = client.get("/tensors", params=parameters)
    assert response.status_code == 200, response.text
    return Recording.from_bytes(response.content).tensors


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays are equal to the last bit; truth values travel as bytes."""
    return found.tobytes() == (expected.astype(np.uint8) if expected.dtype == bool else expected).tobytes()


def close(found, expected):
    np.testing.assert_allclose(found, np.asarray(expected, dtype=np.float32), atol=2e-5, rtol=1e-5)


# The engine's numbers


@pytest.mark.parametrize("name", [each for each in MODELS if each != "encoder"])
@pytest.mark.usefixtures("either_way")
def test_every_tensor_is_the_engine_s_to_the_last_bit(name, library, client):
    text, checkpoint = TEXTS.get(name, READ), library.open(name).checkpoint
    tokens, source = checkpoint.tokenizer.encode(text), []
    if "translator" in name:
        tokens, source = [checkpoint.card.start_token_id], tokens
    expected = record_pass(checkpoint.model, tokens, source).tensors
    names = [each for each in expected if each not in ("encoder.embed.weight", "decoder.embed.weight")]
    together = {}
    for start in range(0, len(names), 40):
        together |= get(client, model=name, text=text, names=names[start : start + 40])
    assert together.keys() == set(names)
    assert not [each for each in names if not same(together[each], expected[each])]
    cache.clear()
    ids = {"tokens": ",".join(map(str, tokens)), "source": ",".join(map(str, source)) or None}
    ids = {parameter: value for parameter, value in ids.items() if value}
    for each in names[:: len(names) // 8]:  # alone, and by tokens instead of their text
        assert same(get(client, model=name, names=[each, each], **ids)[each], expected[each]), each


@pytest.mark.parametrize("begin", [0, 3])
def test_a_changed_pass_is_the_engine_s(client, library, begin):
    checkpoint = library.open("rotary").checkpoint
    silenced, doubled = Scale("blocks.0.attn.hook_z", 1, 4, 0.0), Scale("blocks.1.hook_mlp_out", None, None, 2.0)
    changes = (silenced, doubled, Without("mask"))
    tokens = checkpoint.tokenizer.encode(READ)
    expected = record_pass(checkpoint.model, tokens, interventions=in_window(changes, begin)).tensors
    plain = record_pass(checkpoint.model, tokens).tensors
    asked = {"model": "rotary", "text": READ, "changes": "!".join(map(to_code, changes)), "begin": begin}
    for name in ("blocks.0.attn.hook_z", "blocks.1.attn.hook_pattern", "logits"):
        found = get(client, names=[name], **asked)[name]
        assert same(found, expected[name]) and not same(found, plain[name])


@pytest.mark.parametrize("name", ["rotary", "translator"])
def test_a_recording_says_what_it_is_of(name, client, library):
    checkpoint, text = library.open(name).checkpoint, TEXTS.get(name, READ)
    asked = {"model": name, "text": text, "names": ["logits[-1]"]}
    about = Recording.from_bytes(client.get("/tensors", params=asked).content).metadata
    assert about["config"] == checkpoint.model.config.to_dict()
    ids = checkpoint.tokenizer.encode(text)
    read, source = ([*checkpoint.card.start_tokens], ids) if name == "translator" else (ids, [])
    assert about["ids"] == {"text": read, "source": source}
    assert about["labels"] == {side: checkpoint.tokenizer.labels(of) for side, of in about["ids"].items()}


def test_a_chat_is_read_in_its_template(client, library):
    checkpoint = library.open("chatty").checkpoint
    found = get(client, model="chatty", text="the cat", reads="chat", names=["hook_embed"])["hook_embed"]
    read = Chat(**checkpoint.card.chat).tokens(checkpoint.tokenizer, "the cat")
    assert same(found, record_pass(checkpoint.model, read).tensors["hook_embed"])


def test_an_answer_to_a_dated_question_is_of_its_day(client, library, monkeypatch):
    opened = library.open("chatty")
    monkeypatch.setitem(opened.checkpoint.card.chat, "before", f"{chat.DATE}: ")
    monkeypatch.setitem(opened.checkpoint.card.chat, "dates", ["%d"])
    asked = {"model": "chatty", "version": opened.version, "text": "the", "names": ["hook_embed"]}
    seen = {}
    for day in (3, 4, 3):
        monkeypatch.setattr(chat, "datetime", type("Day", (), {"now": lambda day=day: datetime.datetime(2031, 1, day)}))
        response = client.get("/tensors", params={**asked, "reads": "chat"})
        tokens = opened.checkpoint.tokenizer.encode(f"0{day}: the")
        assert Recording.from_bytes(response.content).metadata["ids"]["text"][: len(tokens)] == tokens
        assert response.headers["cache-control"].endswith("no-cache")
        assert seen.setdefault(day, response.headers["etag"]) == response.headers["etag"]
    assert seen[3] != seen[4]
    assert "immutable" in client.get("/tensors", params=asked).headers["cache-control"]


def indices(size: int) -> st.SearchStrategy[int | slice]:
    """What takes something of so many, as Python has it: from the end, in steps, backwards, beyond the end."""
    bound = st.none() | st.integers(-size - 1, size + 1)
    slices = st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -3]))
    return st.integers(-size, size - 1) | slices.filter(lambda each: bool(range(size)[each]))


def written(index: int | slice) -> str:
    if isinstance(index, int):
        return str(index)
    bounds = [index.start, index.stop, *([] if index.step is None else [index.step])]
    return ":".join("" if bound is None else str(bound) for bound in bounds)


@pytest.mark.usefixtures("either_way")
@settings(max_examples=8)
@given(st.data())
def test_any_part_is_that_of_the_whole_whatever_is_asked_with_it(case, data):
    model, source, _ = case
    there = infos(model, source=source)
    asked = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(there)), min_size=1, max_size=4)):
        sizes = there[name].sizes
        index = tuple(data.draw(indices(size)) for size in sizes[: data.draw(st.integers(1, len(sizes)))])
        asked[f"{name}[{', '.join(map(written, index))}]"] = name, index
    found = have(model, asked, source=source)
    for text, (name, index) in asked.items():
        close(found[text], have(model, [name], source=source)[name][index])


ODD = ["", "hook_embed[", "hook_nothing", "logits[]"]
ODD += [f"logits[{index}]" for index in ("9:2", "-7", "0, 0, 0", "::0", "6", "0, 11", "3:3", "9" * 21, "1 2", "--1")]
ODD += ["logits[:]x", "logits[1:2:3:4]", "logits[1,]"]


@given(any_configs(), st.text("abz_.0123456789[]:, -", max_size=40) | st.sampled_from(ODD))
def test_any_text_is_the_name_of_a_part_or_refused_with_a_sentence(config, text):
    there = tensors.infos_of(config, 3, 2 if config.architecture == "encoder-decoder" else 0)
    for name in (text, f"logits[{text}]"):
        try:
            part = tensors.part_of(name, there)
        except ValueError as error:
            assert str(error)
        else:
            whole = np.empty(part.info.sizes, dtype=bool)
            assert whole[part.index].size == part.cells > 0
            assert part.is_small == (tensors.SMALL_PART * part.cells < math.prod(part.info.sizes))


@pytest.mark.parametrize("name", ODD)
def test_what_names_nothing_is_refused(name):
    with pytest.raises(ValueError, match=r"no name|this model has no|dimensions|positions along|no index"):
        tensors.part_of(name, infos(open_model({})))


# What is computed, and how often


def of_heads(model):
    for layer in range(3):
        for head in range(2):
            parts_of_attention(model, (), "self", ["head", layer, head])


@pytest.mark.parametrize(
    ("whole_below", "projections_below", "ask", "passes"),
    [
        (None, None, lambda model: [have(model, [name]) for name in infos(model)], 1),
        (0, None, lambda model: [have(model, [f"blocks.2.{n}"]) for n in ("hook_mlp_out", "ln1.hook_scale")], 1),
        (0, None, lambda model: have(model, [f"blocks.1.attn.hook_pattern[{n}, 3, 3]" for n in (0, 1)]), 1),
        (0, None, of_heads, 2),  # the overview's, and one for all layers
        (0, 100, of_heads, 4),  # and one for each layer
        (None, None, lambda model: [outlines.outline(model, TOKENS) for _ in range(2)], 1),
        (None, None, lambda model: [analyses.attribution(model, TOKENS, (), 2, token) for token in range(5)], 1),
    ],
)
def test_no_pass_is_run_more_often_than_it_has_to_be(monkeypatch, whole_below, projections_below, ask, passes):
    for name, limit in (("WHOLE_BELOW", whole_below), ("PROJECTIONS_BELOW", projections_below)):
        monkeypatch.setattr(tensors, name, getattr(tensors, name) if limit is None else limit)
    model, run = open_model({"n_layers": 3}), []
    model.checkpoint.model.embed.register_forward_hook(lambda *_: run.append(1))
    ask(model)
    assert len(run) == passes


def test_of_a_long_text_no_more_than_a_block_is_cached_or_the_small_part_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    have(open_model({"n_layers": 3}), ["blocks.2.hook_mlp_out"])
    have(open_model({"n_layers": 3}), ["blocks.1.attn.hook_pattern[0, 3, 3]"])
    (block, _), ((part,), _) = cache._SHARED._kept.values()
    assert {name.split(".")[1] for name in block} == {"2"} and part.size == 1


@pytest.mark.usefixtures("either_way")
def test_interventions_change_all_of_it_and_only_with_them():
    model, quiet = open_model({"positions": "rotary"}), (SilencedHead(0, 1),)
    for made in (
        lambda *more: outlines.overview(model, TOKENS, (), "self", *more).tensors["overview"],
        lambda *more: outlines.outline(model, TOKENS, (), *more).tensors["statistics"],
        lambda *more: tensors.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", *more),
        lambda *more: tensors.tensor(model, TOKENS, (), "blocks.0.attn.hook_z[3, 1, 0]", *more),
        lambda *more: analyses.attribution(model, TOKENS, (), 5, 2, *more).tensors["shares"],
        lambda *more: exports.file_of(PassInputs(model, TOKENS, (), *more), "logits").tensors["logits"],
    ):
        before, changed = made(), made(quiet)
        assert not np.allclose(before, changed) and (made() == before).all()
    assert not tensors.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", quiet)[:, 1].any()
    changed = {check.name for check in analyses.checks(model, TOKENS, (), quiet) if check.largest > 1e-3}
    assert changed == {"blocks.0.attn.hook_z"}  # all else follows from it


# What is derived of a pass


def test_every_equation_is_checked(case):
    model, source, found = case
    told = analyses.checks(model, TOKENS, source)
    assert [check.name for check in told] == [each.name for each in deviations(found)]
    assert all(check.largest <= 1e-5 * max(check.magnitude, 1) for check in told)
    assert Deviation("x", math.inf, 1.0).to_dict()["largest"] is None  # which JSON lacks


def test_the_lens_at_a_position_is_that_of_the_outline(case):
    model, source, found = case
    outline, label = outlines.outline(model, TOKENS, source), model.checkpoint.tokenizer.label
    for position in (0, 3, 5):
        there = analyses.lens(model, TOKENS, source, position)
        for name, array in there.tensors.items():
            np.testing.assert_allclose(array[:, 0], outline.tensors[name][:, position], atol=1e-5)
        assert there.metadata["vocabulary"] == {str(each): label(each) for each in there.tensors["lens"].flat}
        assert there.tensors["lens"][-1, 0] == int(found.tensors["logits"][position].argmax())


def test_a_file_of_the_whole_model_has_what_its_picture_is_drawn_of(case):
    model, source, found = case
    there = exports.file_of(PassInputs(model, TOKENS, source), "").tensors
    outline = outlines.outline(model, TOKENS, source).tensors
    drawn = {name.removeprefix("strip.") for name in outline if name.startswith("strip.")}
    drawn |= {f"{name.removeprefix('arcs.')}.hook_pattern" for name in outline if name.startswith("arcs.")}
    assert there.keys() == drawn | {"logits", "probabilities"}
    close(there["probabilities"], found.tensors["logits"].softmax(-1))
