"""Tests the labels of token axes: they never overlap, and a note says what is left out."""

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.figures import axes, masks

LABELS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), min_size=1, max_size=200)


@given(LABELS, st.floats(0.5, 60), st.booleans())
def test_no_label_touches_the_next_wherever_the_cells_are_as_wide_as_promised(labels, pitch, upright):
    axis, height = axes.token_axis(labels, np.arange(len(labels)) + 7, pitch, upright=upright)
    size = axis["tickfont"]["size"]
    between = np.diff(axis["tickvals"]) * pitch
    assert (between >= axes.LINE * size - 1e-9).all()
    if upright and axis["tickangle"] == 0:
        assert (between >= axes.CHARACTER * size * axes.longest_label(labels)).all()
    assert axes.SMALLEST <= size <= axes.LARGEST
    if upright and axis["tickangle"]:
        assert height >= axes.CHARACTER * size * axes.longest_label(labels)


@given(LABELS, st.floats(0.5, 60))
def test_labels_are_evenly_spaced_from_the_first_token_on_and_the_pointer_knows_all(labels, pitch):
    places = np.arange(len(labels)) + 7
    axis, _ = axes.token_axis(labels, places, pitch)
    steps = set(np.diff(axis["tickvals"]))
    assert axis["tickvals"][0] == 7 and len(steps) <= 1
    texts = [axes.plotly_label(label) for label in labels]
    assert axis["ticktext"] == [texts[place - 7] for place in axis["tickvals"]]
    assert axis["labelalias"] == {str(place): text for place, text in zip(places, texts, strict=True)}


def test_where_there_is_room_every_token_is_labelled():
    axis, _ = axes.token_axis(list("abcdef"), np.arange(6), 12)
    assert axis["ticktext"] == list("abcdef")


def thinned(size: int) -> go.Figure:
    """Tokens along both axes, in the width that a figure beside two others has at the least."""
    labels, places = ["q"] * size, np.arange(size)
    pitch = axes.room(axes.THIRD, labels) / size
    across, down = (axes.token_axis(labels, places, pitch, upright=upright)[0] for upright in (True, False))
    return go.Figure(layout=dict(xaxis=across, yaxis=down))


@pytest.mark.parametrize(
    ("size", "note"),
    [
        (1, ""),
        (16, ""),
        (17, "Every second token is labelled; pointing at a cell names both of its tokens."),
        (48, "Every third token is labelled; pointing at a cell names both of its tokens."),
        (160, "One token in 10 is labelled; pointing at a cell names both of its tokens."),
    ],
)
def test_what_a_picture_of_cells_leaves_out_is_said(size, note):
    assert axes.labelling_note(thinned(size)) == note


@given(st.integers(1, 200))
def test_a_note_tells_the_step_between_the_labels_that_are_drawn(size):
    figure = thinned(size)
    assert figure.layout.xaxis.tickvals.tolist() == figure.layout.yaxis.tickvals.tolist()
    steps = np.diff(figure.layout.xaxis.tickvals)
    note = axes.labelling_note(figure)
    assert (note == "") == (len(figure.layout.xaxis.tickvals) == size)
    if note and len(steps):
        words = axes.STEPS.get(steps[0], f"in {steps[0]} ")
        assert words in note


def test_lines_have_tokens_on_one_axis():
    values = {"with": np.zeros(40), "without": np.zeros(40)}
    figure = masks.lines_by_position(values, ["a"] * 40, ["b"] * 40, unit="probability")
    note = "Every second token is labelled; pointing at a line names its token."
    assert axes.labelling_note(figure) == note
