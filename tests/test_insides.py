"""What the page Inside is sent is what the engine computes, however long the text, and computed once."""

import numpy as np
import pytest
import torch

from pages.ui.models import cache, insides, library
from tests.app_driver import ROOT, use
from tests.test_recording import SilencedHead
from tests.test_recordings import SHAPES, SOURCE, TOKENS, open_model
from transformer import Recording, deviations, whole_pass
from transformer.api import exports

BOTH = {"architecture": "encoder-decoder", "n_encoder_layers": 3}
RUNGS = {"no layers": {"n_layers": 0}, "no layers, no norm": {"n_layers": 0, "norm": "none", "positions": "none"}}
CASES = {**SHAPES, **RUNGS, **{f"both, {shape}": fields | BOTH for shape, fields in SHAPES.items()}}


@pytest.fixture(autouse=True)
def _nothing_remembered():
    cache.clear()


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A model, its source, and its whole pass. Only to be read."""
    fields = CASES[request.param]
    model, source = open_model(fields), SOURCE if "architecture" in fields else ()
    return model, source, whole_pass(model.checkpoint.model, TOKENS, source)


@pytest.fixture(params=["whole", "block by block"])
def either_way(request, monkeypatch):
    """Whether all of a pass is remembered, or one block of it."""
    if request.param != "whole":
        monkeypatch.setattr(insides, "WHOLE_BELOW", 0)


def close(found, expected):
    np.testing.assert_allclose(found, np.asarray(expected, dtype=np.float32), atol=2e-5, rtol=1e-5)


@pytest.mark.usefixtures("either_way")
def test_every_tensor_can_be_had(case):
    model, source, found = case
    infos = insides.infos(model, TOKENS, source)
    assert infos.keys() >= found.tensors.keys() - {"encoder.embed.weight", "decoder.embed.weight"}
    there = insides.parts(model, TOKENS, source, [("tensor", name) for name in infos]).tensors
    for name, info in infos.items():
        assert there[name].shape == info.sizes and not there[name].flags.writeable
        close(there[name].reshape(-1), found.tensors[name].reshape(-1))
    assert Recording.from_bytes(Recording(there, {}).to_bytes()).tensors.keys() == infos.keys()


@pytest.mark.usefixtures("either_way")
def test_one_head_s_part_is_a_slice_of_the_whole(case):
    model, source, _ = case
    for name, info in insides.infos(model, TOKENS, source).items():
        if "head" in info.dims:
            there = insides.parts(model, TOKENS, source, [("slice", name, 1), ("tensor", name)]).tensors
            axis = info.dims.index("head")
            assert (there[f"{name}[1]"] == np.moveaxis(there[name], axis, 0)[1]).all()


def test_the_outline_is_labelled(case):
    model, source, found = case
    about = insides.outline(model, TOKENS, source).metadata
    labels = model.checkpoint.tokenizer.labels
    assert about["labels"] == {"text": tuple(labels(TOKENS)), "source": tuple(labels(source))}
    assert about["ids"] == {"text": TOKENS, "source": source}
    assert list(about["vocabulary"]) == labels(range(found.config.vocab_size))


def test_of_a_large_vocabulary_only_what_is_shown_is_labelled(case, monkeypatch):
    monkeypatch.setattr(insides, "LABELLED_VOCABULARY", 3)
    model, source, _ = case
    there = insides.outline(model, TOKENS, source)
    shown = {*TOKENS, *source, *there.tensors["next"].flat, *there.tensors["lens"].flat}
    label = model.checkpoint.tokenizer.label
    assert there.metadata["vocabulary"] == {str(each): label(each) for each in shown}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(("pos", "token"), [(0, 3), (5, 10)])
def test_the_shares_in_a_logit_sum_to_it(case, pos, token):
    model, source, found = case
    there = insides.parts(model, TOKENS, source, [("who", pos, token)])
    names, shares = there.metadata["who"]["names"], there.tensors[f"who[{pos}, {token}]"]
    assert len(names) == len(shares) == len(set(names)) and shares.dtype == np.float32
    assert shares.sum() == pytest.approx(float(found.tensors["logits"][pos, token]), abs=1e-4)


def test_what_holds_is_checked(case):
    model, source, found = case
    told = insides.parts(model, TOKENS, source, [("checks",)]).metadata["checks"]
    assert [check["name"] for check in told] == [each.name for each in deviations(found)]
    assert all(check["largest"] <= 1e-5 * max(check["magnitude"], 1) for check in told)


def test_a_pass_is_run_once_for_everything(case, monkeypatch):
    model, source, _ = case
    runs = []
    run = insides.whole_pass
    monkeypatch.setattr(insides, "whole_pass", lambda *args, **kwargs: runs.append(args) or run(*args, **kwargs))
    insides.outline(model, TOKENS, source)
    names = list(insides.infos(model, TOKENS, source))
    for _ in range(2):
        insides.parts(model, TOKENS, source, [*(("tensor", name) for name in names), ("who", 2, 1), ("who", 3, 4)])
        insides.outline(model, TOKENS, source)
    assert len(runs) == 1


def test_of_a_long_text_no_more_than_a_block_is_remembered(monkeypatch):
    monkeypatch.setattr(insides, "WHOLE_BELOW", 0)
    model, kept = open_model({"n_layers": 3}), []
    run = insides.whole_pass
    monkeypatch.setattr(insides, "whole_pass", lambda *args, **kwargs: kept.append(run(*args, **kwargs)) or kept[-1])
    for name in ("blocks.2.attn.hook_z", "blocks.2.hook_resid_pre", "blocks.2.ln1.hook_scale"):
        insides.tensor(model, TOKENS, (), name)
    (block,) = kept  # three times the same block
    for token in range(5):
        insides.parts(model, TOKENS, (), [("who", 2, token)])
    assert len(kept) == 2  # one position, whichever token is asked about
    assert {name.split(".")[1] for name in block.tensors if ".hook" in name} == {"2"}


def test_one_pass_serves_a_request_of_which_nothing_can_be_remembered(monkeypatch):
    monkeypatch.setattr(insides, "WHOLE_BELOW", 0)
    monkeypatch.setattr(cache, "_cache_for", lambda model: cache.Cache(0))
    model, passes, run = open_model({"n_layers": 3}), [], insides.whole_pass
    monkeypatch.setattr(insides, "whole_pass", lambda *args, **kwargs: passes.append(1) or run(*args, **kwargs))
    names = [f"blocks.1.attn.hook_{name}" for name in ("q", "k", "pattern", "z")]
    wanted = [*(("slice", name, head) for name in names for head in range(2)), ("tensor", "blocks.1.hook_resid_post")]
    found = insides.parts(model, TOKENS, (), [*wanted, ("tensor", "blocks.1.attn.qkv.weight")])
    assert len(found.tensors) == 10 and len(passes) == 1
    insides.parts(model, TOKENS, (), [("tensor", "blocks.0.attn.hook_z"), ("tensor", "blocks.2.attn.hook_z")])
    assert len(passes) == 3


@pytest.mark.usefixtures("either_way")
def test_interventions_change_all_of_it_and_only_with_them():
    model = open_model({"positions": "rotary"})
    quiet = (SilencedHead(0, 1),)
    for made in (
        lambda *more: insides.outline(model, TOKENS, (), *more).tensors["statistics"],
        lambda *more: insides.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", *more),
        lambda *more: insides.parts(model, TOKENS, (), [("who", 5, 2)], *more).tensors["who[5, 2]"],
        lambda *more: exports.file_of(model, TOKENS, (), "logits", *more).tensors["logits"],
    ):
        before, changed = made(), made(quiet)
        assert not np.allclose(before, changed) and (made() == before).all()
    assert not insides.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", quiet)[:, 1].any()
    changed = {check.name for check in insides.checks(model, TOKENS, (), quiet) if check.largest > 1e-3}
    assert changed == {"blocks.0.attn.hook_z"}  # all else follows from it


def test_an_equation_that_fails_to_the_infinite_is_said_without_a_number(monkeypatch):
    from transformer import Deviation

    monkeypatch.setattr(insides, "deviations_of_text", lambda *text: [Deviation("x", float("inf"), 1.0)])
    model = open_model({})
    (check,) = insides.parts(model, TOKENS, (), [("checks",)]).metadata["checks"]
    assert check["largest"] is None


# A file to take along


def test_a_file_has_what_is_open_as_the_engine_has_it(case):
    model, source, found = case
    stack = "decoder." if source else ""
    layer = f"{stack}blocks.1" if found.config.n_layers else f"{stack}hook_embed"
    for place in (layer, "logits", "unembed"):
        there = Recording.from_bytes(exports.file_of(model, TOKENS, source, place).to_bytes())
        assert there.tensors.keys() == {
            name for name in insides.infos(model, TOKENS, source) if name == place or name.startswith(f"{place}.")
        }
        for name, array in there.tensors.items():
            assert array.shape == tuple(found.tensors[name].shape)
            close(array, found.tensors[name])


def test_a_file_of_the_whole_model_has_what_its_picture_is_drawn_of(case):
    model, source, found = case
    there = exports.file_of(model, TOKENS, source, "").tensors
    outline = insides.outline(model, TOKENS, source).tensors
    drawn = {name.removeprefix("strip.") for name in outline if name.startswith("strip.")}
    drawn |= {f"{name.removeprefix('arcs.')}.hook_pattern" for name in outline if name.startswith("arcs.")}
    assert there.keys() == drawn | {"logits", "probabilities"}
    close(there["probabilities"], found.tensors["logits"].softmax(-1))


# The shipped models


@pytest.mark.parametrize(("tokens", "most"), [(32, 300_000), (256, 900_000)])
def test_the_first_message_is_small(tokens, most, monkeypatch):
    use(monkeypatch, ROOT / "checkpoints")
    text = tuple(torch.arange(tokens).remainder(60).tolist())
    there = insides.outline("shakespeare", text)
    assert len(there.to_bytes()) <= most


def test_a_long_text_on_a_shipped_model_is_answered(monkeypatch):
    """256 tokens: too much to be remembered whole."""
    use(monkeypatch, ROOT / "checkpoints")
    text = tuple(torch.arange(256).remainder(60).tolist())
    model = library.opened("shakespeare")
    wanted = [("slice", "blocks.3.attn.hook_pattern", 5), ("tensor", "blocks.3.mlp.hook_pre"), ("who", 255, 7)]
    there = insides.parts(model, text, (), wanted)
    np.testing.assert_allclose(there.tensors["blocks.3.attn.hook_pattern[5]"].sum(-1), 1, atol=1e-5)
    logit = insides.tensor(model, text, (), "logits")[255, 7]
    assert there.tensors["who[255, 7]"].sum() == pytest.approx(float(logit), abs=1e-4)
