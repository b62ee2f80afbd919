"""Tests that figures and their payloads draw the numbers they are given, refuse what doesn't fit, and label axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.components import batch_table, matrix
from pages.ui.components.masks import MaskPanel
from pages.ui.components.masks import build_payload as masks_payload
from pages.ui.figures import axes, lines, palette
from pages.ui.figures import positions as position_figures
from pages.ui.figures.palette import Theme
from transformer import Recording
from transformer.model.positions import position_angles


def frequencies(d_model: int, base: float) -> np.ndarray:
    return position_angles(2, d_model, base)[1].numpy()


# Lines and bars


def test_a_line_each_told_apart_by_colour_dash_and_symbol():
    values = {"with": np.array([0.1, 0.2]), "without": np.array([0.3, 0.4])}
    figure = lines.lines_by_position(values, list("abc"), list("bc?"), unit="probability", offset=7)
    with_, without = figure.data
    assert (with_.name, without.name) == ("with", "without") and figure.layout.showlegend
    assert list(with_.x) == [7, 8] and list(without.y) == [0.3, 0.4]
    assert with_.line.color != without.line.color and with_.line.dash != without.line.dash
    assert with_.marker.symbol != without.marker.symbol
    assert list(with_.text) == ["after a, before b", "after b, before c"]
    assert list(figure.layout.xaxis.ticktext) == list("abc")
    assert figure.layout.xaxis.range == (6.5, 9.5)
    for numbers, top, end in (([2.0, 4.0], None, 4.2), ([0.2], 1.0, 1.05), ([1e-6], None, 0.105), ([], None, 0.105)):
        figure = lines.lines_by_position({"": np.array(numbers)}, ["a"] * 2, ["a"] * 2, unit="nats", top=top)
        assert figure.layout.yaxis.range[1] == pytest.approx(end)
    assert not lines.line_figure({"alone": np.arange(3)}, {}, hover="%{y}").layout.showlegend


def test_what_tokens_and_models_are_called_is_no_markup_in_a_figure():
    name, shown = "%{x} <b>$y$", "&#37;{x} &lt;b&gt;&#36;y&#36;"
    assert lines.line_figure({name: np.arange(3)}, {}, hover="%{y}").data[0].name == shown


# Payloads


def test_a_matrix_is_sent_with_a_range_that_is_never_empty():
    limits = {(0.02, -0.01): 0.02, (3.0, -1.5): 3, (0.8, 0.1): 1, (1.0000001, 0): 1, (0, 0): 1, (np.nan, np.inf): 1}
    for values, limit in limits.items():
        sent = Recording.from_bytes(matrix.build_payload(np.array([values]), {}))
        np.testing.assert_array_equal(sent.tensors["values"], np.array([values], np.float32))
        assert sent.metadata["about"]["limit"] == pytest.approx(limit)


PADDED = np.array([[False, False, True], [False, False, False]])
MISFITS = [
    ("give some of 0 to 3", lambda: position_figures.encoding_waves(np.ones((3, 4)), [], frequencies(4, 9.0))),
    ("give some of 0 to 3", lambda: position_figures.encoding_waves(np.ones((3, 4)), [4], frequencies(4, 9.0))),
    ("give some of 0 to 3", lambda: position_figures.encoding_waves(np.ones((3, 4)), [-1], frequencies(4, 9.0))),
    ("pairs 0 to 3", lambda: position_figures.frequency_spectrum(frequencies(8, 1e4), 1e4, length=64, selected=4)),
    (r"for a mask of \(3, 3\)", lambda: masks_payload([MaskPanel("", ["a", "b"], np.tri(3, dtype=bool), "")])),
    ("rows of labels", lambda: batch_table.build_payload([["a"] * 3] * 2, PADDED, [1], 0)),
    ("rows of labels", lambda: batch_table.build_payload([["a"], ["b"]], PADDED, [1, 2], 0)),
    ("1 and 2 labels were", lambda: matrix.build_payload(np.ones((2, 2)), {"labels": (["a"], ["a", "b"])})),
    ("shape", lambda: matrix.build_payload(np.array([1.0]), {})),
    ("shape", lambda: matrix.build_payload(np.ones((0, 3)), {})),
]


@pytest.mark.parametrize(("words", "make"), MISFITS)
def test_what_does_not_fit_is_refused(words, make):
    with pytest.raises(ValueError, match=words):
        make()


# The labels of token axes


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), min_size=1, max_size=200),
    st.floats(0.5, 60),
)
def test_no_label_touches_the_next_and_the_pointer_knows_them_all(labels, pitch):
    places = np.arange(len(labels)) + 7
    axis, height = axes.token_axis(labels, places, pitch)
    size, steps = axis["tickfont"]["size"], np.diff(axis["tickvals"])
    longest = axes.CHARACTER * size * axes.longest_label(labels)
    assert axes.SMALLEST <= size <= axes.LARGEST
    assert (steps * pitch >= axes.LINE * size - 1e-9).all()
    assert height >= longest if axis["tickangle"] else (steps * pitch >= longest).all()
    assert axis["tickvals"][0] == 7 and len(set(steps)) <= 1
    texts = [axes.plotly_label(label) for label in labels]
    assert axis["ticktext"] == [texts[place - 7] for place in axis["tickvals"]]
    assert axis["labelalias"] == {str(place): text for place, text in zip(places, texts, strict=True)}


def test_what_an_axis_leaves_out_is_said():
    told = "is labelled; point at or tap a line to see its token."
    left_out = {1: "", 16: "", 40: f"Every second token {told}", 60: f"Every third token {told}"}
    left_out |= {300: f"One token in 15 {told}"}
    for size, note in left_out.items():
        labels = ["a"] * size
        figure = lines.lines_by_position({"with": np.zeros(size)}, labels, labels, unit="probability")
        step = np.diff([*figure.layout.xaxis.tickvals, size])[0]
        assert axes.labelling_note(figure) == note and (step == 1) == (note == "")
        assert not note or axes.STEPS.get(step, f"in {step} ") in note


# Colours


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(color: str) -> float:
        channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted([luminance(first), luminance(second)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_and_the_first_lines_can_be_read(dark):
    theme = Theme(dark)
    assert all(contrast(color, theme.surface) >= 4.5 for color in palette.text_colors(dark))
    assert all(contrast(color, theme.surface) >= 3 for color in palette.CATEGORICAL[:4])
