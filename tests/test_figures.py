"""The figures draw the numbers they are given, in cells, words and clicks, and refuse what does not fit."""


import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pages.ui.figures import attention as figures
from pages.ui.figures import palette
from pages.ui.figures import positions as position_figures
from pages.ui.figures.palette import Theme
from transformer import sinusoidal_encoding
from transformer.model.positions import position_angles

LABELS = ["a", "␣", "a"]
CAUSAL = np.tril(np.ones((3, 3), dtype=bool))
WEIGHTS = np.array([[1, 0, 0], [0.25, 0.75, 0], [1 / 3, 1 / 6, 0.5]], dtype=np.float32)
SCORES = np.array([[1.5, -np.inf, -np.inf], [-4.0, 0.125, -np.inf], [2.0, 1e-7, 3.0]], dtype=np.float32)


def weights_heatmap(weights: np.ndarray, queries: list[str], keys: list[str], **options) -> go.Figure:
    """`attention_heatmap` of which nothing is hidden."""
    return figures.attention_heatmap(weights, queries, keys, mask=np.ones(np.shape(weights), dtype=bool), **options)


HEATMAPS = [weights_heatmap, figures.scores_heatmap, figures.mask_heatmap]


def trace(fig: go.Figure, name: str):
    (found,) = [trace for trace in fig.data if trace.name == name]
    return found


def frequencies(d_model: int, base: float) -> np.ndarray:
    return position_angles(2, d_model, base)[1].numpy()


def sinusoids(length: int, d_model: int, base: float = 10000.0) -> np.ndarray:
    return sinusoidal_encoding(length, d_model, base).numpy().astype(np.float64)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(color: str) -> float:
        channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted([luminance(first), luminance(second)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


class TestAttention:
    def test_visible_cells_are_the_weights_and_hidden_cells_have_no_colour_value(self):
        z = trace(figures.attention_heatmap(WEIGHTS, LABELS, LABELS, mask=CAUSAL), "weight").z
        np.testing.assert_array_equal(z[CAUSAL], WEIGHTS[CAUSAL])
        assert np.isnan(z[~CAUSAL]).all()
        assert z.dtype == np.float32

    @pytest.mark.parametrize("dark", [False, True])
    def test_hidden_cells_are_the_grey_of_the_theme(self, dark):
        fig = figures.attention_heatmap(WEIGHTS, LABELS, LABELS, mask=CAUSAL, theme=Theme(dark))
        hidden = trace(fig, "hidden by the mask")
        np.testing.assert_array_equal(hidden.z == 1, ~CAUSAL)
        assert {color for _, color in hidden.colorscale} == {palette.HIDDEN["dark" if dark else "light"]}

    def test_a_visible_weight_of_zero_is_a_weight(self):
        z = trace(weights_heatmap(np.zeros((2, 2)), ["a", "b"], ["a", "b"]), "weight").z
        np.testing.assert_array_equal(z, 0)

    def test_colour_runs_from_0_to_1_whatever_the_weights(self):
        heatmap = trace(weights_heatmap(WEIGHTS * 0.1, LABELS, LABELS), "weight")
        assert (heatmap.zmin, heatmap.zmax) == (0, 1)

    def test_words_have_six_significant_digits(self):
        text = trace(figures.attention_heatmap(WEIGHTS, LABELS, LABELS, mask=CAUSAL), "cells").text
        hidden = "hidden by the mask"
        assert list(text) == [
            "weight 1",
            hidden,
            hidden,
            "weight 0.25",
            "weight 0.75",
            hidden,
            "weight 0.333333",
            "weight 0.166667",
            "weight 0.5",
        ]

    def test_a_visible_cell_that_is_no_number_is_neither_hidden_nor_coloured_as_one(self):
        weights = np.array([[np.nan, 0.5], [np.inf, 0.5]])
        fig = figures.attention_heatmap(
            weights, ["a", "b"], ["a", "b"], mask=np.array([[True, True], [False, True]])
        )
        assert list(trace(fig, "cells").text) == [
            "NaN: not a finite number",
            "weight 0.5",
            "hidden by the mask",
            "weight 0.5",
        ]
        assert trace(fig, "NaN: not a finite number").colorscale[0][1] == palette.INVALID


class TestScores:
    def test_minus_infinity_is_hidden(self):
        fig = figures.scores_heatmap(SCORES, LABELS, LABELS)
        np.testing.assert_array_equal(np.isnan(trace(fig, "score").z), ~CAUSAL)
        np.testing.assert_array_equal(trace(fig, "−∞: hidden by the mask").z == 1, ~CAUSAL)
        assert list(trace(fig, "cells").text[:4]) == [
            "score 1.5",
            "−∞: hidden by the mask",
            "−∞: hidden by the mask",
            "score -4",
        ]
        assert trace(fig, "cells").text[7] == "score 1e-07"

    def test_range_is_symmetric_over_the_finite_values(self):
        heatmap = trace(figures.scores_heatmap(SCORES, LABELS, LABELS), "score")
        assert (heatmap.zmin, heatmap.zmax) == (-4, 4)

    @pytest.mark.parametrize("value", [0.0, -np.inf, np.nan, np.inf])
    def test_range_is_never_empty(self, value):
        fig = figures.scores_heatmap(np.full((2, 2), value), ["a", "b"], ["a", "b"])
        assert (trace(fig, "score").zmin, trace(fig, "score").zmax) == (-1, 1)


class TestMask:
    def test_two_plain_colours_named_by_a_legend(self):
        fig = figures.mask_heatmap(CAUSAL, LABELS, LABELS)
        cells = {trace.name: trace for trace in fig.data if trace.type == "heatmap"}
        np.testing.assert_array_equal(cells["visible"].z == 1, CAUSAL)
        np.testing.assert_array_equal(cells["hidden"].z == 1, ~CAUSAL)
        assert not any(heatmap.showscale for heatmap in cells.values())
        legend = {trace.name: trace.marker.color for trace in fig.data if trace.showlegend}
        assert legend == {name: heatmap.colorscale[0][1] for name, heatmap in cells.items()}
        assert legend["visible"] != legend["hidden"]

    def test_numbers_are_refused(self):
        with pytest.raises(ValueError, match=r"mask is float64.*give bool"):
            figures.mask_heatmap(np.ones((3, 3)), LABELS, LABELS)


@pytest.mark.parametrize("heatmap", HEATMAPS)
class TestEveryHeatmap:
    def test_rows_are_queries_from_the_top_and_repeated_labels_all_stay(self, heatmap):
        fig = heatmap(np.ones((2, 3), dtype=bool), ["x", "x"], LABELS)
        assert list(fig.layout.xaxis.ticktext) == LABELS and list(fig.layout.yaxis.ticktext) == ["x", "x"]
        assert list(fig.layout.xaxis.tickvals) == [0, 1, 2]
        assert fig.layout.yaxis.range == (1.5, -0.5)
        assert fig.layout.xaxis.title.text.startswith("key") and fig.layout.yaxis.title.text.startswith(
            "query"
        )

    def test_a_click_reports_row_and_column_as_plain_lists(self, heatmap):
        cells = trace(
            heatmap(np.ones((2, 3), dtype=bool), ["x", "y"], LABELS, query_offset=7, key_offset=5), "cells"
        )
        assert cells.type == "scatter"
        assert list(cells.customdata) == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
        assert [type(value) for value in cells.customdata[0]] == [int, int]
        assert list(cells.x) == [5, 6, 7, 5, 6, 7] and list(cells.y) == [7, 7, 7, 8, 8, 8]

    @pytest.mark.parametrize(("size", "clickable"), [(64, True), (65, False)])
    def test_clicks_are_left_out_above_the_limit(self, heatmap, size, clickable):
        fig = heatmap(np.ones((size, 64), dtype=bool), ["q"] * size, ["k"] * 64)
        assert ("cells" in {trace.name for trace in fig.data}) == clickable

    def test_markup_in_a_token_is_shown_as_it_is(self, heatmap):
        fig = heatmap(np.ones((1, 3), dtype=bool), ["q"], ["<b>", "&lt;", "$x$"])
        assert list(fig.layout.xaxis.ticktext) == ["&lt;b&gt;", "&amp;lt;", "&#36;x&#36;"]

    def test_selection_outlines_the_cell_and_its_row(self, heatmap):
        fig = heatmap(
            np.ones((2, 3), dtype=bool), ["x", "y"], LABELS, selected=(1, 2), query_offset=10, key_offset=20
        )
        boxes = {(box.x0, box.x1, box.y0, box.y1) for box in fig.layout.shapes}
        assert boxes == {(21.5, 22.5, 10.5, 11.5), (19.5, 22.5, 10.5, 11.5)}

    @pytest.mark.parametrize("shape", [(1, 1), (2, 9), (9, 2), (1, 200), (200, 1), (300, 300)])
    def test_any_shape_has_a_sensible_height(self, heatmap, shape):
        fig = heatmap(np.ones(shape, dtype=bool), ["q"] * shape[0], ["k"] * shape[1])
        assert 100 < fig.layout.height < 500
        fig.to_json()

    @pytest.mark.parametrize(
        ("shape", "queries", "keys", "options", "message"),
        [
            ((3,), 3, 3, {}, r"shape \(3,\); give"),
            ((1, 3, 3), 3, 3, {}, r"shape \(1, 3, 3\); give"),
            ((0, 3), 0, 3, {}, r"shape \(0, 3\); give"),
            ((2, 3), 3, 3, {}, "3 query labels were given for 2 query positions"),
            ((2, 3), 2, 2, {}, "2 key labels were given for 3 key positions"),
            ((2, 3), 2, 3, {"selected": (2, 0)}, r"selected is \(2, 0\); the matrix has rows 0 to 1"),
            ((2, 3), 2, 3, {"selected": (0, -1)}, r"selected is \(0, -1\)"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, heatmap, shape, queries, keys, options, message):
        with pytest.raises(ValueError, match=message):
            heatmap(np.ones(shape, dtype=bool), ["q"] * queries, ["k"] * keys, **options)


@pytest.mark.parametrize("mask", [np.ones((3, 2), dtype=bool), np.ones((3, 3), dtype=np.float32)])
def test_a_mask_of_another_shape_or_kind_is_refused(mask):
    with pytest.raises(ValueError, match=r"give bool of shape \(3, 3\), True where"):
        figures.attention_heatmap(WEIGHTS, LABELS, LABELS, mask=mask)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
def test_property_each_cell_shows_its_own_number(data, shape):
    """Whatever the scores: coloured and worded where finite, within the colour range."""
    scores = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(width=32)))
    fig = figures.scores_heatmap(scores, ["q"] * shape[0], ["k"] * shape[1])
    heatmap, cells = trace(fig, "score"), trace(fig, "cells")
    shown = np.isfinite(scores)
    np.testing.assert_array_equal(np.isfinite(heatmap.z), shown)
    np.testing.assert_array_equal(heatmap.z[shown], scores[shown])
    assert heatmap.zmin == -heatmap.zmax < 0
    assert (np.abs(scores[shown]) <= heatmap.zmax).all()
    for (row, column), words in zip(cells.customdata, cells.text, strict=True):
        assert words.startswith("score ") == shown[row, column]
        if shown[row, column]:
            assert float(words.removeprefix("score ")) == pytest.approx(float(scores[row, column]), rel=1e-5)


class TestPositionArithmetic:
    def test_similarities_by_hand(self):
        table = np.array([[3.0, 4.0], [4.0, -3.0], [0.0, 0.0]])
        np.testing.assert_allclose(position_figures.dot_products(table), [[25, 0, 0], [0, 25, 0], [0, 0, 0]])
        cosines = position_figures.cosine_similarities(table)
        np.testing.assert_allclose(cosines[:2, :2], np.eye(2), atol=1e-15)
        assert np.isnan(cosines[2]).all()

    def test_summary_by_hand(self):
        distance, mean, least, greatest = position_figures.summarise_by_distance(
            position_figures.pair_distances(2), np.array([[1.0, 5.0], [7.0, 3.0]])
        )
        assert distance.tolist() == [0, 1] and mean.tolist() == [2, 6]
        assert least.tolist() == [1, 5] and greatest.tolist() == [3, 7]

    def test_summary_refuses_what_does_not_pair_up(self):
        with pytest.raises(ValueError, match="give one of each for every pair"):
            position_figures.summarise_by_distance(np.arange(3), np.ones(2))

    def test_sinusoids_are_as_alike_as_they_are_near_and_nothing_else(self):
        _, mean, least, greatest = position_figures.summarise_by_distance(
            position_figures.pair_distances(20), position_figures.dot_products(sinusoids(20, 16))
        )
        np.testing.assert_allclose(least, greatest, atol=1e-6)
        assert mean[0] == pytest.approx(1)


class TestPositionFigures:
    def test_encoding_heatmap_shows_the_table(self):
        table = sinusoids(5, 8).astype(np.float32)
        fig = position_figures.encoding_heatmap(table, selected=(2, 3))
        heatmap = trace(fig, "value")
        np.testing.assert_array_equal(heatmap.z, table)
        assert (heatmap.zmin, heatmap.zmax) == (-1, 1) and fig.layout.yaxis.range == (4.5, -0.5)
        assert (2.5, 3.5, 1.5, 2.5) in {(box.x0, box.x1, box.y0, box.y1) for box in fig.layout.shapes}

    @pytest.mark.parametrize("size", [0.02, 3.0])
    def test_a_learned_table_has_its_own_symmetric_range(self, size):
        heatmap = trace(position_figures.encoding_heatmap(np.array([[size, -size / 2]])), "value")
        assert heatmap.zmax == pytest.approx(size) and heatmap.zmin == -heatmap.zmax

    def test_waves_are_columns_named_with_their_wavelength(self):
        table = sinusoids(10, 4, base=100.0)
        fig = position_figures.encoding_waves(table, [0, 3], frequencies(4, 100.0))
        assert [wave.name for wave in fig.data] == [
            "dimension 0 (sine), wavelength 6.283",
            "dimension 3 (cosine), wavelength 62.83",
        ]
        np.testing.assert_array_equal(fig.data[1].y, table[:, 3])
        assert len({wave.line.dash for wave in fig.data}) == len({wave.line.color for wave in fig.data}) == 2

    def test_a_number_that_is_none_is_named_by_position_and_dimension(self):
        fig = position_figures.encoding_heatmap(np.array([[np.nan, 1.0]]))
        assert trace(fig, "NaN: not a finite number").hovertemplate.startswith(
            "position %{y}, dimension %{x}<br>"
        )

    @pytest.mark.parametrize("dimensions", [[], [4], [-1]])
    def test_dimensions_that_are_not_there_are_refused(self, dimensions):
        with pytest.raises(ValueError, match="give some of 0 to 3"):
            position_figures.encoding_waves(np.ones((3, 4)), dimensions, frequencies(4, 100.0))

    def test_similarity_matrix_shows_cosines(self):
        heatmap = position_figures.similarity_matrix(np.array([[3.0, 4.0], [4.0, 3.0]])).data[0]
        assert heatmap.z[0, 1] == pytest.approx(24 / 25) and (heatmap.zmin, heatmap.zmax) == (-1, 1)

    def test_similarity_by_distance_draws_mean_and_band(self):
        fig = position_figures.similarity_by_distance(np.array([0, 1, 1]), np.array([1.0, 0.25, 0.75]))
        assert list(trace(fig, "mean").y) == [1, 0.5]
        assert list(trace(fig, "least to greatest").y) == [1, 0.25] and list(trace(fig, "greatest").y) == [
            1,
            0.75,
        ]

    @pytest.mark.parametrize("position", [0, 3, 11])
    def test_a_shift_turns_by_the_same_angle_from_every_position(self, position):
        fig = position_figures.rotation_figure(0.3, position, 4, length=16, pair=2)
        before, after = (
            complex(trace(fig, f"position {p}").x[1], trace(fig, f"position {p}").y[1])
            for p in (position, position + 4)
        )
        assert after / before == pytest.approx(complex(np.cos(1.2), np.sin(1.2)))
        assert any(trace.name == f"{position} → {position + 4}: 1.2 rad = 68.75°" for trace in fig.data)
        np.testing.assert_allclose(trace(fig, "positions 0 to 15").x, np.cos(0.3 * np.arange(16)))
        assert fig.layout.xaxis.title.text == "cosine (dimension 5)"

    def test_spectrum_is_every_wavelength_on_a_log_axis(self):
        fig = position_figures.frequency_spectrum(frequencies(8, 1e4), 1e4, length=64, selected=1)
        np.testing.assert_allclose(fig.data[0].y, 2 * np.pi * np.array([1, 10, 100, 1000]))
        assert fig.layout.yaxis.type == "log" and trace(fig, "selected pair").y[0] == pytest.approx(
            20 * np.pi
        )
        assert {note.text for note in fig.layout.annotations} == {"2π", "2π · 10000", "length 64"}
        with pytest.raises(ValueError, match="pairs 0 to 3"):
            position_figures.frequency_spectrum(frequencies(8, 1e4), 1e4, length=64, selected=4)


class TestPalette:
    def test_stops_run_along_the_sequential_scale(self):
        stops = palette.sequential_stops(10)
        assert stops == [color for _, color in palette.SEQUENTIAL]
        assert len(palette.sequential_stops()) == 64 and palette.sequential_stops(2) == [stops[0], stops[-1]]
        with pytest.raises(ValueError, match="at least 2"):
            palette.sequential_stops(1)

    def test_diverging_scale_is_neutral_in_the_middle_only(self):
        def spread(color):
            return np.ptp([int(color[i : i + 2], 16) for i in (1, 3, 5)])

        middle = [color for place, color in palette.DIVERGING if place == 0.5]
        assert [place for place, _ in palette.DIVERGING] == sorted(place for place, _ in palette.DIVERGING)
        assert len(middle) == 1 and spread(middle[0]) == min(spread(color) for _, color in palette.DIVERGING)

    @pytest.mark.parametrize("dark", [False, True])
    def test_words_and_the_first_lines_can_be_read(self, dark):
        theme = Theme(dark)
        assert all(contrast(color, theme.surface) >= 4.5 for color in palette.text_colors(dark))
        assert all(contrast(color, theme.surface) >= 3 for color in palette.CATEGORICAL[:4])

    def test_each_theme_has_its_own_colours(self):
        light, dark = Theme(False), Theme(True)
        for name in ("foreground", "muted", "grid", "hidden", "surface"):
            assert getattr(light, name) != getattr(dark, name)
