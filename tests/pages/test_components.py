"""Tests what components send to the browser, and what they accept from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load
from streamlit.testing.v1 import AppTest

from pages.ui.components import head_grid
from pages.ui.components.rounding import rounded

# The grid of heads


def read(data: bytes):
    return load(data)["overview"]


patterns = arrays.arrays(
    np.float32, arrays.array_shapes(min_dims=4, max_dims=4, max_side=9), elements=st.floats(0, 1, width=32)
)


@given(patterns)
def test_small_patterns_arrive_within_half_a_step(weights):
    cells = read(head_grid.build_payload(weights, None))
    np.testing.assert_allclose(cells / 254, weights, atol=0.5 / 254 + 1e-6)


@given(patterns, st.integers(1, 9))
def test_pooling_keeps_the_largest_weight_of_every_head(weights, limit):
    pooled, hidden = head_grid.pool(weights, None, limit)
    assert pooled.shape[:2] == weights.shape[:2]
    assert max(pooled.shape[2:]) <= limit
    assert not hidden.any()
    np.testing.assert_array_equal(pooled.max((2, 3)), weights.max((2, 3)))


def test_pooling_four_cells_into_one_which_is_hidden_only_if_all_of_it_is():
    weights = np.arange(16, dtype=float).reshape(1, 1, 4, 4) / 16
    pooled, _ = head_grid.pool(weights, None, 2)
    np.testing.assert_array_equal(pooled[0, 0] * 16, [[5, 7], [13, 15]])
    _, hidden = head_grid.pool(weights, np.triu(np.ones((4, 4), bool), 1), 2)
    np.testing.assert_array_equal(hidden[0, 0], [[False, True], [False, False]])


def test_hidden_weights_and_nan_never_reach_the_browser():
    weights = np.array([[[[0.5, 0.9], [np.nan, 1.0]]]])
    hidden = np.array([[False, True], [False, False]])
    cells = read(head_grid.build_payload(weights, hidden))
    np.testing.assert_array_equal(cells[0, 0], [[127, 255], [255, 254]])


@pytest.mark.parametrize("shape", [(6, 6, 256, 256), (24, 16, 100, 30)])
def test_payload_stays_below_a_megabyte(shape):
    weights = np.zeros(shape, np.float32)
    data = head_grid.build_payload(weights, None)
    cells = read(data)
    assert cells.nbytes <= head_grid.MAX_BYTES and max(cells.shape[2:]) <= head_grid.LIMIT
    assert head_grid.build_payload(weights, None) == data, "equal grids are equal bytes"


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 0, 4, 4), (2, 3, 0, 4)])
def test_patterns_of_a_wrong_shape_are_refused(shape):
    with pytest.raises(ValueError, match="shape"):
        head_grid.build_payload(np.zeros(shape), None)


# What the components share


@given(st.floats() | st.none())
def test_short_numbers_are_right_to_five_digits_or_none(number):
    written = rounded(number)
    if number is None or not abs(number) < 1.7976e308:
        assert written is None or math.isfinite(written)
    else:
        assert written == pytest.approx(number, rel=6e-5)


def test_a_component_that_has_gone_with_its_page_tells_nothing():
    def page():
        import streamlit as st

        from pages.ui.components.events import event_value

        st.write(repr(event_value("gone", "select")))

    at = AppTest.from_function(page).run()
    assert not at.exception and at.markdown[0].value == "None"
