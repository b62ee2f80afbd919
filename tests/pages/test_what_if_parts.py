"""Tests the parts of the page What if: heatmaps, colours, comparison of distributions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pages.ui.components.effect_heatmaps import Cell, Matrix, build_payload
from pages.ui.components.events import parsed
from pages.ui.figures.bars import paired_bars
from pages.ui.models.activations import log_softmax
from pages.ui.views.what_if.ablation_map import colour_limit, matrices_of
from pages.ui.views.what_if.shared import divergence
from tests.helpers import any_configs, tiny_model
from transformer import ablation

WORDS = {"name": "AblationEffects", "sentences": ("{cell}: {value}", "{cell}: −{value}"), "actions": ("do", "undo")}
numbers = st.floats(-1e6, 1e6) | st.just(float("nan"))
grids = arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers)
logits = arrays.arrays(np.float32, st.integers(2, 9), elements=st.floats(-80, 80, width=32))
anything = st.none() | st.booleans() | st.integers(-3, 7) | st.floats() | st.text(max_size=2) | st.lists(st.integers())


def matrix_of(values, **more):
    rows, columns = values.shape
    return Matrix("", values, [f"layer {row}" for row in range(rows)], [f"head {at}" for at in range(columns)], **more)


@given(grids)
def test_numbers_arrive_with_five_digits_and_what_is_none_as_null(values):
    payload = json.loads(json.dumps(build_payload([matrix_of(values)], **WORDS, limit=1.0), allow_nan=False))
    arrived = np.array([[np.nan if cell is None else cell for cell in row] for row in payload["matrices"][0]["values"]])
    np.testing.assert_allclose(arrived, values, rtol=1e-4)


@given(st.dictionaries(st.sampled_from(["matrix", "row", "column", "x"]), anything) | anything)
def test_only_a_cell_that_is_there_is_chosen(value):
    values = np.zeros((2, 3))
    values[1, 1] = np.nan
    found = parsed(Cell, value)
    if found is not None and found.is_in([matrix_of(values)]):
        assert vars(found) == {name: value[name] for name in ("matrix", "row", "column")}
        assert found.matrix == 0 and np.isfinite(values[found.row, found.column])
    assert not parsed(Cell, {"matrix": 0, "row": 1, "column": 1}).is_in([matrix_of(values)])
    assert parsed(Cell, {"matrix": 0, "row": 1, "column": 2}).is_in([matrix_of(values)])


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="names"):
        build_payload([matrix_of(np.zeros((2, 2)), row_labels=["0"])], **WORDS, limit=1.0)


@given(any_configs())
def test_every_part_of_a_model_has_a_cell_of_its_own(config):
    model = tiny_model(config).eval()
    parts = ablation(model, (1, 2), (1, 2) if config.architecture == "encoder-decoder" else ()).parts
    values = np.arange(1.0, len(parts) + 1)
    placed = matrices_of(parts, values, parts[:1]) if parts else []
    found = {part: float(each.matrix.values[cell]) for each in placed for cell, part in each.parts.items()}
    assert found == dict(zip(parts, values, strict=True))
    for each in placed:
        assert np.isfinite(each.matrix.values).sum() == len(each.parts)
        assert {each.parts[cell] for cell in each.matrix.marked} == set(parts[:1]) & set(each.parts.values())
        for (row, column), part in each.parts.items():
            assert str(part.point.split("blocks.")[1][0]) in each.matrix.rows[row]
            assert each.matrix.columns[column] == ("feed-forward" if part.head is None else f"head {part.head}")


@given(arrays.arrays(np.float64, st.integers(1, 30), elements=st.floats(-100, 100)))
def test_colours_end_within_the_effects_and_never_at_zero(values):
    limit = colour_limit(values)
    assert 0 < limit <= max(np.abs(values).max(), 1.0) and (limit >= np.abs(values).max() / 51 or limit == 1)


@given(logits)
def test_a_divergence_is_never_below_zero_and_zero_from_itself(values):
    one, other = log_softmax(values), log_softmax(values[::-1])
    assert np.exp(one).sum() == pytest.approx(1)
    assert divergence(one, one) == 0
    assert divergence(one, other) >= -1e-12


def test_bars_of_one_token_stand_together():
    figure = paired_bars(["a", "<b>"], np.array([0.75, 0.25]), np.array([0.1, 0.9]))
    assert [trace.name for trace in figure.data] == ["unchanged", "changed"]
    assert list(figure.layout.yaxis.ticktext) == ["a", "&lt;b&gt;"]
    assert figure.data[1].text == ("10%", "90%")
    with pytest.raises(ValueError, match="2 labels"):
        paired_bars(["a", "b"], np.zeros(2), np.zeros(3))
