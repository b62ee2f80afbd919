"""Tests the arithmetic of the page Inside for models with modern parts."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import MODERN, modern_config, tiny_model, unpadded, viewed_shape
from tests.inside_outlines import arrays_of, labelled_outline, parts_of
from transformer import Card, Checkpoint, Tokenizer, equations
from transformer.inference.recompute import viewed, whole_pass

PLACES = 3  # cells of each tensor


@pytest.fixture(scope="module", params=MODERN)
def worked(request, node, tmp_path_factory):
    """(pass, its tensors, what the scripts make of a sample of its cells: [(name, place, found)])."""
    model = tiny_model(modern_config(request.param))
    found = whole_pass(model, unpadded(model.config)[0].tolist())
    arrays, chosen = arrays_of(found), random.Random(request.param)
    cells = [
        (name, [chosen.randrange(size) for size in arrays[name].shape])
        for name in equations(found.config)
        for _ in range(PLACES)
    ]
    folder = tmp_path_factory.mktemp("cells")
    files = [folder / "outline", folder / "parts", folder / "cells.json"]
    checkpoint = Checkpoint(model, Tokenizer.of_characters("abcdefghijk"), Card(title="x"))
    files[0].write_bytes(labelled_outline(found, checkpoint).to_bytes())
    files[1].write_bytes(parts_of(found).to_bytes())
    files[2].write_text(json.dumps(cells), encoding="utf-8")
    ran = node(Path(__file__).parents[1] / "frontend" / "inside_cells.mjs", *files)
    assert ran.returncode == 0, ran.stderr
    return found, arrays, [(*cell, each) for cell, each in zip(cells, json.loads(ran.stdout), strict=True)]


def test_the_arithmetic_ends_in_the_number_that_was_recorded(worked):
    _, arrays, cells = worked
    for name, place, got in cells:
        recorded, result = (float(got[each].replace("Infinity", "inf")) for each in ("recorded", "result"))
        assert recorded == float(arrays[name][tuple(place)]), name
        largest = np.abs(arrays[name][np.isfinite(arrays[name])].astype(float)).max()
        assert result == recorded or abs(result - recorded) <= 1e-5 * max(largest, 1), f"{name} {place}: {got}"
        assert got["lines"] and all("NaN" not in line and "undefined" not in line for line in got["lines"]), got
        assert got["words"] and "undefined" not in got["words"] and got["drawn"], got


def test_the_cells_a_cell_is_made_of_are_those_of_the_table(worked):
    found, arrays, cells = worked
    for name, place, got in cells:
        equation = equations(found.config)[name]
        shape = viewed_shape(equation.dims, arrays[name].shape, found.config)
        where = np.unravel_index(np.ravel_multi_index(place, arrays[name].shape), shape)
        by_dim = dict(zip(equation.dims, where, strict=True))
        token = int(found.tokens[by_dim["pos"]]) if "pos" in by_dim else None
        expected = {each.name: np.zeros(arrays[each.name].shape, bool) for each in equation.sources}
        for operand in equation.sources:
            expected[operand.name].reshape(tuple(viewed(found, operand).shape))[operand.at(by_dim, token)] = True
        named = {each: np.zeros_like(mask) for each, mask in expected.items()}
        for cell in got["cells"]:
            named[cell["name"]][tuple(slice(None) if at is None else at for at in cell["index"])] = True
        for each, mask in expected.items():
            assert np.array_equal(mask, named[each]), f"{name} {place} reads {each}"
