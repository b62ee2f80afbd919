"""Tests the labels of token axes: they never overlap, and a note says what is left out."""

import numpy as np
import plotly.graph_objects as go
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.figures import axes, lines

LABELS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), min_size=1, max_size=200)


@given(LABELS, st.floats(0.5, 60))
def test_no_label_touches_the_next_wherever_the_tokens_are_as_far_apart_as_promised(labels, pitch):
    axis, height = axes.token_axis(labels, np.arange(len(labels)) + 7, pitch)
    size = axis["tickfont"]["size"]
    between = np.diff(axis["tickvals"]) * pitch
    assert (between >= axes.LINE * size - 1e-9).all()
    if axis["tickangle"] == 0:
        assert (between >= axes.CHARACTER * size * axes.longest_label(labels)).all()
    assert axes.SMALLEST <= size <= axes.LARGEST
    if axis["tickangle"]:
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


def figure_of(size: int) -> go.Figure:
    labels = ["a"] * size
    return lines.lines_by_position({"with": np.zeros(size)}, labels, labels, unit="probability")


def test_what_an_axis_leaves_out_is_said():
    told = "is labelled; point at or tap a line to see its token."
    left_out = {1: "", 16: "", 40: f"Every second token {told}", 60: f"Every third token {told}"}
    left_out |= {300: f"One token in 15 {told}"}
    assert {size: axes.labelling_note(figure_of(size)) for size in left_out} == left_out


@given(st.integers(1, 200))
def test_a_note_tells_the_step_between_the_labels_that_are_drawn(size):
    figure = figure_of(size)
    steps = np.diff(figure.layout.xaxis.tickvals)
    note = axes.labelling_note(figure)
    assert (note == "") == (len(figure.layout.xaxis.tickvals) == size)
    if note and len(steps):
        assert axes.STEPS.get(steps[0], f"in {steps[0]} ") in note
