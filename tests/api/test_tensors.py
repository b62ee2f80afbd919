"""Tests that any tensor of a pass is the engine's, whole or in part, computed once."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.cases import TOKENS, have, infos, open_model
from tests.engine.test_recording import SilencedHead
from tests.helpers import any_configs
from transformer.api import analyses, exports, outlines, tensors
from transformer.api.library import FOLDER, Library


@pytest.fixture(params=["whole", "block by block"])
def either_way(request, monkeypatch):
    """Whether all of a pass is remembered, or one block of it."""
    if request.param != "whole":
        monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)


def close(found, expected):
    np.testing.assert_allclose(found, np.asarray(expected, dtype=np.float32), atol=2e-5, rtol=1e-5)


@pytest.mark.usefixtures("either_way")
@settings(max_examples=8)
@given(st.data())
def test_any_part_is_that_of_the_whole_whatever_is_asked_with_it(case, data):
    model, source, _ = case
    there = infos(model, source=source)
    asked = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(there)), min_size=1, max_size=4)):
        sizes = there[name].sizes
        index = [
            data.draw(st.integers(0, size - 1) | st.tuples(st.integers(0, size - 1), st.just(size)))
            for size in sizes[: data.draw(st.integers(1, len(sizes)))]
        ]
        words = ", ".join(f"{each[0]}:{each[1]}" if isinstance(each, tuple) else str(each) for each in index)
        asked[f"{name}[{words}]"] = name, tuple(slice(*each) if isinstance(each, tuple) else each for each in index)
    found = have(model, asked, source=source)
    for text, (name, index) in asked.items():
        close(found[text], have(model, [name], source=source)[name][index])


ODD = ["", "hook_embed[", *(f"logits{index}" for index in ("[9:2]", "[-1]", "[0, 0, 0]", "[:]x", f"[{'9' * 21}]"))]


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


def counted(monkeypatch, module, name):
    """The calls of a function, from now on."""
    calls, call = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **kwargs: calls.append(call(*args, **kwargs)) or calls[-1])
    return calls


def test_a_pass_is_run_once_for_everything(case, monkeypatch):
    model, source, _ = case
    runs = counted(monkeypatch, tensors, "trace_pass")
    for _ in range(2):
        have(model, infos(model, source=source), source=source)
    outlines.outline(model, TOKENS, source)
    assert len(runs) <= 2  # one of the parts, one of the picture
    have(model, infos(model, source=source), source=source)
    outlines.outline(model, TOKENS, source)
    assert len(runs) <= 2


def test_of_a_long_text_no_more_than_a_block_is_remembered(monkeypatch):
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    model = open_model({"n_layers": 3})
    kept = counted(monkeypatch, tensors, "_recorded")
    for name in ("blocks.2.hook_mlp_out", "blocks.2.hook_resid_pre", "blocks.2.ln1.hook_scale"):
        tensors.tensor(model, TOKENS, (), name)
    (block,) = kept  # three times the same block
    assert {name.split(".")[1] for name in block} == {"2"}


def test_one_pass_serves_the_rows_of_all_heads_of_a_long_text(monkeypatch):
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    model, passes = open_model({"n_layers": 3}), counted(monkeypatch, tensors, "_recorded")
    names = [f"blocks.1.attn.hook_pattern[{head}, {query}]" for head in range(2) for query in range(0, 6, 3)]
    small = [name for name in names if tensors.part_of(name, infos(model)).is_small] or names
    found = have(model, [*small, "blocks.1.attn.qkv.weight"])
    assert len(found) == len(small) + 1 and len(passes) == 1


@pytest.mark.usefixtures("either_way")
def test_interventions_change_all_of_it_and_only_with_them():
    model = open_model({"positions": "rotary"})
    quiet = (SilencedHead(0, 1),)
    for made in (
        lambda *more: outlines.outline(model, TOKENS, (), *more).tensors["statistics"],
        lambda *more: tensors.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", *more),
        lambda *more: analyses.attribution(model, TOKENS, (), 5, 2, *more).tensors["shares"],
        lambda *more: exports.file_of(model, TOKENS, (), "logits", *more).tensors["logits"],
    ):
        before, changed = made(), made(quiet)
        assert not np.allclose(before, changed) and (made() == before).all()
    assert not tensors.tensor(model, TOKENS, (), "blocks.0.attn.hook_z", quiet)[:, 1].any()
    changed = {check.name for check in analyses.checks(model, TOKENS, (), quiet) if check.largest > 1e-3}
    assert changed == {"blocks.0.attn.hook_z"}  # all else follows from it


# A file to take along


def test_a_file_of_the_whole_model_has_what_its_picture_is_drawn_of(case):
    model, source, found = case
    there = exports.file_of(model, TOKENS, source, "").tensors
    outline = outlines.outline(model, TOKENS, source).tensors
    drawn = {name.removeprefix("strip.") for name in outline if name.startswith("strip.")}
    drawn |= {f"{name.removeprefix('arcs.')}.hook_pattern" for name in outline if name.startswith("arcs.")}
    assert there.keys() == drawn | {"logits", "probabilities"}
    close(there["probabilities"], found.tensors["logits"].softmax(-1))


# The shipped models


def test_a_long_text_on_a_shipped_model_is_answered():
    """256 tokens: too much to be remembered whole."""
    model, text = Library(FOLDER).open("shakespeare"), tuple(torch.arange(256).remainder(60).tolist())
    there = have(model, ["blocks.3.attn.hook_pattern[5]", "blocks.3.mlp.hook_pre", "logits"], tokens=text)
    np.testing.assert_allclose(there["blocks.3.attn.hook_pattern[5]"].sum(-1), 1, atol=1e-5)
    shares = analyses.attribution(model, text, (), 255, 7).tensors["shares"]
    assert shares.sum() == pytest.approx(float(there["logits"][255, 7]), abs=1e-4)
