"""The pictures of the page Masks draw what they are given, with every label, and refuse what does not fit."""

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.ui.components.masks import Panel, build_payload
from pages.ui.figures import masks as mask_figures
from pages.ui.figures import palette
from pages.ui.figures.palette import Theme

DARK = pytest.mark.parametrize("dark", [False, True])
PADDED = np.array([[False, False, True], [False, False, False]])
LABELS = [["a", "␣", "∅"], ["<b>", "$x$", "&lt;"]]


def trace(figure: go.Figure, name: str):
    (found,) = [trace for trace in figure.data if trace.type == "heatmap" and trace.name == name]
    return found


class TestMasks:
    @pytest.mark.parametrize("size", [1, 3, 96])
    def test_each_cell_is_sent_as_visible_or_hidden_row_by_row(self, size):
        mask = np.tri(size, dtype=bool)
        panel = Panel("Causal", ["<b>"] * size, mask, 5, "Hides the future.")
        (sent,) = build_payload([panel])["panels"]
        assert (np.array(list(sent["visible"])) == "1").reshape(size, size).tolist() == mask.tolist()
        assert (sent["labels"], sent["offset"], sent["title"], sent["words"]) == (
            ["<b>"] * size, 5, "Causal", "Hides the future.",
        )  # fmt: skip

    def test_labels_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match=r"2 labels were given for a mask of \(3, 3\)"):
            build_payload([Panel("Causal", ["a", "b"], np.tri(3, dtype=bool), 0, "")])


class TestABatch:
    @DARK
    def test_each_cell_is_a_token_or_padding_and_says_which(self, dark):
        figure = mask_figures.batch_picture(LABELS, PADDED, [1, 4], theme=Theme(dark))
        np.testing.assert_array_equal(trace(figure, "padding").z == 1, PADDED)
        np.testing.assert_array_equal(trace(figure, "token").z == 1, ~PADDED)
        token, padding = ([list(row) for row in trace(figure, name).text] for name in ("token", "padding"))
        assert token == [["a", "␣", ""], ["&lt;b&gt;", "&#36;x&#36;", "&amp;lt;"]]
        assert padding == [["", "", "∅"], ["", "", ""]]
        legend = {trace.name: trace.marker.color for trace in figure.data if trace.showlegend}
        assert legend == {"token": palette.CATEGORICAL[0], "padding": Theme(dark).hidden}

    def test_rows_are_called_by_their_lines(self):
        figure = mask_figures.batch_picture(LABELS, PADDED, [1, 4])
        assert list(figure.layout.yaxis.ticktext) == ["1", "4"]
        assert figure.layout.yaxis.range == (1.5, -0.5)

    def test_the_selected_row_is_outlined(self):
        assert not mask_figures.batch_picture(LABELS, PADDED, [1, 2]).layout.shapes
        shapes = mask_figures.batch_picture(LABELS, PADDED, [1, 2], selected=1).layout.shapes
        assert {(shape.x0, shape.x1, shape.y0, shape.y1) for shape in shapes} == {(-0.5, 2.5, 0.5, 1.5)}

    def test_a_batch_without_padding_still_has_it_in_the_legend(self):
        figure = mask_figures.batch_picture([["a"]], np.array([[False]]), [1])
        assert [trace.name for trace in figure.data] == ["token", "token", "padding"]

    def test_tokens_are_written_in_their_cells_while_there_can_be_room_to_read_them(self):
        def picture(count, label):
            labels = [[label] * count]
            figure = mask_figures.batch_picture(labels, np.zeros((1, count), dtype=bool), [1])
            return mask_figures.readable_width(labels), trace(figure, "token").texttemplate

        assert picture(10, "a") == (154, "%{text}")
        assert picture(30, "hundred")[0] > 30 * 7 * 9
        assert picture(256, "a")[1] == "%{text}"
        assert picture(256, "ab") == (None, None)

    @pytest.mark.parametrize("lines", [[1], [1, 2, 3]])
    def test_labels_that_do_not_fit_are_refused(self, lines):
        with pytest.raises(ValueError, match="rows of labels"):
            mask_figures.batch_picture(LABELS, PADDED, lines)
        with pytest.raises(ValueError, match="rows of labels"):
            mask_figures.batch_picture([["a"], ["b"]], PADDED, [1, 2])


class TestPredictions:
    def test_a_line_each_told_apart_by_colour_dash_and_symbol(self):
        values = {"with": np.array([0.1, 0.2]), "without": np.array([0.3, 0.4])}
        figure = mask_figures.lines_by_position(values, list("abc"), list("bc?"), unit="probability", offset=7)
        with_, without = figure.data
        assert (with_.name, without.name) == ("with", "without")
        assert list(with_.x) == [7, 8] and list(without.y) == [0.3, 0.4]
        assert with_.line.color != without.line.color and with_.line.dash != without.line.dash
        assert with_.marker.symbol != without.marker.symbol
        assert list(with_.text) == ["after a, before b", "after b, before c"]
        assert list(figure.layout.xaxis.ticktext) == list("abc")
        assert figure.layout.xaxis.range == (6.5, 9.5)

    @pytest.mark.parametrize(
        ("values", "top", "end"),
        [([2.0, 4.0], None, 4.2), ([0.2], 1.0, 1.05), ([1e-6], None, 0.105), ([], None, 0.105)],
    )
    def test_the_axis_ends_where_it_is_told_or_where_the_numbers_end(self, values, top, end):
        labels = ["a"] * max(len(values), 1)
        figure = mask_figures.lines_by_position({"with": np.array(values)}, labels, labels, unit="nats", top=top)
        assert figure.layout.yaxis.range[1] == pytest.approx(end)

    def test_bars_are_the_probabilities_the_likeliest_on_top(self):
        figure = mask_figures.candidate_bars(["a", "<"], np.array([0.75, 0.0001]), limit=0.8, color="#123456")
        (bars,) = figure.data
        assert list(bars.x) == [0.75, 0.0001] and list(bars.text) == ["75.0%", "< 0.1%"]
        assert list(figure.layout.yaxis.ticktext) == ["a", "&lt;"]
        assert figure.layout.yaxis.range == (1.5, -0.5)
        assert figure.layout.xaxis.range == pytest.approx((0, 1.0))
        assert bars.marker.color == "#123456"
