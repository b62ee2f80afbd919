"""What the components send to the browser, and what they accept from it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load
from streamlit.testing.v1 import AppTest

from pages.ui.components import head_grid, live_text
from pages.ui.components.live_text import Candidate, StripToken
from pages.ui.components.numbers import short

DEMO = Path(__file__).with_name("browser") / "component_demo.py"


def a_token(text="a", written=True, **changes):
    fields = dict(label=text, text=text, id=7, probability=0.5, rank=1, entropy=1.0, written=written)
    return StripToken(**{**fields, **changes})


def payload(tokens, **changes):
    fields = dict(
        tokens=tokens,
        selected=len(tokens) - 1,
        weights=None,
        weights_start=0,
        query=None,
        candidates=[Candidate("a", 7, 0.5, 0.6, True), Candidate("b", 8, 0.3, 0.0, False)],
        candidates_index=len(tokens) - 1,
        candidates_title="Candidates",
        status="1 token",
        live=False,
        layer_head="layer 0, head 0",
    )
    return live_text.build_payload(**{**fields, **changes})


def test_six_hundred_tokens_fit_in_forty_kilobytes():
    rng = np.random.default_rng(0)
    tokens = [
        a_token(
            chr(97 + i % 26),
            id=i % 80,
            label="␣" if i % 6 == 0 else chr(97 + i % 26),
            probability=float(rng.random()),
            rank=1 + i % 70,
            entropy=float(rng.random()),
        )
        for i in range(600)
    ]
    data = payload(tokens, weights=rng.random(256), weights_start=344, query=599)
    assert len(json.dumps(data)) < 40_000


def test_every_token_can_be_read_back_from_the_table():
    tokens = [a_token("a", id=1), a_token(" ", label="␣", id=2), a_token("a", id=1), a_token("a", id=3)]
    data = payload(tokens)
    kinds = data["kinds"]
    read = [(kinds["shown"][at], kinds["label"][at], kinds["id"][at]) for at in data["kind"]]
    assert read == [("a", "a", 1), (" ", "␣", 2), ("a", "a", 1), ("a", "a", 3)]
    assert len(kinds["id"]) == 3


def test_flags_tell_prompt_written_and_picked():
    tokens = [a_token(written=False, probability=None), a_token(), a_token(picked=True)]
    assert payload(tokens)["flags"] == "pwh"


@pytest.mark.parametrize(
    ("text", "label", "shown"),
    [
        ("a", "a", "a"),
        (" ", "␣", " "),
        ("\n", "↵", "\n"),
        ("", "<pad>", "<pad>"),
        ("\x00", "<0x00>", "<0x00>"),
        ("\u202e", "<U+202E>", "<U+202E>"),  # would turn the direction of everything after it
        ("<script>", "<script>", "<script>"),
    ],
)
def test_text_is_shown_raw_unless_it_cannot_be_seen(text, label, shown):
    assert payload([a_token(text, label=label)])["kinds"]["shown"] == [shown]


@given(st.lists(st.floats() | st.none(), min_size=1, max_size=5))
def test_payload_is_json_that_a_browser_can_read(numbers):
    tokens = [a_token(probability=number, entropy=number) for number in numbers]
    data = payload(tokens, weights=[number or 0.0 for number in numbers], query=0)
    json.dumps(data, allow_nan=False)


def test_numbers_keep_five_significant_digits():
    data = payload([a_token(probability=0.123456789, entropy=1e-7 / 3)])
    assert data["probability"] == [0.12346]
    assert data["entropy"] == [3.3333e-08]


def test_at_most_ten_candidates_and_which_is_chosen():
    candidates = [Candidate(str(i), i, 0.05, 0.05, chosen=i == 3) for i in range(20)]
    data = payload([a_token()], candidates=candidates)["candidates"]
    assert data["id"] == list(range(10))
    assert data["chosen"] == 3
    assert payload([a_token()], candidates=candidates[5:])["candidates"]["chosen"] is None


def test_selected_may_be_one_past_the_end_but_no_further():
    assert payload([a_token()], selected=1)["selected"] == 1
    with pytest.raises(ValueError, match="selected is 2"):
        payload([a_token()], selected=2)


@pytest.mark.parametrize("value", [None, "1", 1.0, True, -1, 0, 3, [1], {"index": 1}])
def test_select_of_anything_but_a_written_token_is_ignored(value):
    data = payload([a_token(written=False), a_token(), a_token()])
    assert live_text.checked_select(value, data) is None


def test_select_of_a_written_token_is_accepted():
    assert live_text.checked_select(1, payload([a_token(written=False), a_token()])) == 1


@pytest.mark.parametrize(
    "value",
    [None, 1, {}, {"index": 0}, {"index": 0, "id": 99}, {"index": 1, "id": 8}, {"index": 0, "id": [8]}],
)
def test_pick_of_what_was_not_offered_is_ignored(value):
    assert live_text.checked_pick(value, payload([a_token()])) is None


def test_pick_of_a_candidate_is_accepted():
    assert live_text.checked_pick({"index": 0, "id": 8}, payload([a_token()])) == (0, 8)


# The grid of heads


def read(data: bytes):
    return load(data)["overview"]


patterns = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=4, max_dims=4, max_side=9),
    elements=st.floats(0, 1, width=32),
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


def test_pooling_four_cells_into_one():
    weights = np.arange(16, dtype=float).reshape(1, 1, 4, 4) / 16
    pooled, _ = head_grid.pool(weights, None, 2)
    np.testing.assert_array_equal(pooled[0, 0] * 16, [[5, 7], [13, 15]])


def test_a_pooled_cell_is_hidden_only_if_all_of_it_is():
    weights = np.full((1, 1, 4, 4), 0.5)
    hidden = np.triu(np.ones((4, 4), bool), 1)
    _, pooled_hidden = head_grid.pool(weights, hidden, 2)
    np.testing.assert_array_equal(pooled_hidden[0, 0], [[False, True], [False, False]])


def test_hidden_weights_and_nan_never_reach_the_browser():
    weights = np.array([[[[0.5, 0.9], [np.nan, 1.0]]]])
    hidden = np.array([[False, True], [False, False]])
    cells = read(head_grid.build_payload(weights, hidden))
    np.testing.assert_array_equal(cells[0, 0], [[127, 255], [255, 254]])


def test_equal_grids_are_equal_bytes():
    weights = np.full((2, 2, 3, 3), 0.5)
    assert len({head_grid.build_payload(weights, None) for _ in range(20)}) == 1


@pytest.mark.parametrize("shape", [(6, 6, 256, 256), (12, 12, 512, 512), (24, 16, 100, 30)])
def test_payload_stays_below_a_megabyte(shape):
    weights = np.zeros(shape, np.float32)
    data = head_grid.build_payload(weights, None)
    cells = read(data)
    assert cells.nbytes <= head_grid.MAX_BYTES
    assert max(cells.shape[2:]) <= head_grid.LIMIT


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 0, 4, 4), (2, 3, 0, 4)])
def test_patterns_of_a_wrong_shape_are_refused(shape):
    with pytest.raises(ValueError, match="shape"):
        head_grid.build_payload(np.zeros(shape), None)


# What the components share


@given(st.floats() | st.none())
def test_short_numbers_are_right_to_five_digits_or_none(number):
    written = short(number)
    if number is None or not abs(number) < 1.7976e308:
        assert written is None or math.isfinite(written)
    else:
        assert written == pytest.approx(number, rel=6e-5)


@pytest.mark.parametrize("page", [{}, {"layers": "2"}])
def test_both_are_drawn_by_an_app(page):
    app = AppTest.from_file(str(DEMO), default_timeout=30)
    app.query_params.update(page)
    assert not app.run().exception


def test_a_component_that_has_gone_with_its_page_tells_nothing():
    def page():
        import streamlit as st

        from pages.ui.components.events import told

        st.write(repr(told("gone", "select")))

    at = AppTest.from_function(page).run()
    assert not at.exception and at.markdown[0].value == "None"
