"""The figures of the page Masks draw what they are given, with every label, and refuse what does not fit."""

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.ui.figures import masks as mask_figures
from pages.ui.figures import palette
from pages.ui.figures.palette import Theme

DARK = pytest.mark.parametrize("dark", [False, True])
CAUSAL = np.tri(3, dtype=bool)
PADDED = np.array([[False, False, True], [False, False, False]])
LABELS = [["a", "␣", "∅"], ["<b>", "$x$", "&lt;"]]


def trace(figure: go.Figure, name: str):
    (found,) = [trace for trace in figure.data if trace.type == "heatmap" and trace.name == name]
    return found


class TestAMask:
    @DARK
    def test_visible_and_hidden_cells_have_a_colour_each_that_is_named(self, dark):
        figure = mask_figures.mask_panel(CAUSAL, list("abc"), list("abc"), theme=Theme(dark))
        np.testing.assert_array_equal(trace(figure, "visible").z == 1, CAUSAL)
        np.testing.assert_array_equal(trace(figure, "hidden").z == 1, ~CAUSAL)
        (names,) = [note.text for note in figure.layout.annotations]
        for name, color in (("visible", palette.CATEGORICAL[0]), ("hidden", Theme(dark).hidden)):
            assert trace(figure, name).colorscale[0][1] == color
            assert f"color:{color}" in names and name in names

    def test_queries_run_down_and_keys_across_from_their_position(self):
        figure = mask_figures.mask_panel(CAUSAL, list("abc"), list("xyz"), offset=5)
        assert figure.layout.xaxis.range == (4.5, 7.5) and figure.layout.yaxis.range == (7.5, 4.5)
        assert list(figure.layout.xaxis.ticktext) == list("xyz")
        assert list(figure.layout.yaxis.ticktext) == list("abc")
        assert list(figure.layout.yaxis.tickvals) == [5, 6, 7]
        assert list(trace(figure, "visible").x) == list(trace(figure, "visible").y) == [5, 6, 7]

    def test_long_labels_stand_upright_below_and_leave_the_cells_less(self):
        words = ["hundred", "and", "seventy"]
        wide, narrow = (mask_figures.mask_panel(CAUSAL, labels, labels) for labels in (["a", "b", "c"], words))
        assert (wide.layout.xaxis.tickangle, narrow.layout.xaxis.tickangle) == (0, -90)
        plots = [fig.layout.height - fig.layout.margin.t - fig.layout.margin.b for fig in (wide, narrow)]
        assert plots[1] < plots[0]

    def test_markup_in_a_token_is_shown_as_it_is(self):
        axes = mask_figures.mask_panel(CAUSAL, ["q"] * 3, ["<b>", "&lt;", "$x$"]).layout
        assert list(axes.xaxis.ticktext) == ["&lt;b&gt;", "&amp;lt;", "&#36;x&#36;"]

    @pytest.mark.parametrize("size", [1, 2, 9, 48, 300])
    def test_any_number_of_tokens_has_a_sensible_height(self, size):
        assert 100 < mask_figures.mask_panel(np.eye(size, dtype=bool), ["q"] * size, ["k"] * size).layout.height < 500

    def test_labels_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="2 and 3 labels"):
            mask_figures.mask_panel(CAUSAL, ["a", "b"], list("abc"))


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
