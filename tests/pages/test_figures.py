"""Tests that figures draw the numbers they are given, and refuse what doesn't fit."""

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.ui.figures import palette
from pages.ui.figures import positions as position_figures
from pages.ui.figures.lines import line_figure
from pages.ui.figures.palette import Theme
from transformer import sinusoidal_encoding
from transformer.model.positions import position_angles


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


class TestPositionFigures:
    def test_similarities_by_hand(self):
        cosines = position_figures.cosine_similarities(np.array([[3.0, 4.0], [4.0, -3.0], [0.0, 0.0]]))
        np.testing.assert_allclose(cosines[:2, :2], np.eye(2), atol=1e-15)
        assert np.isnan(cosines[2]).all()

    def test_sinusoids_are_as_alike_as_they_are_near_and_nothing_else(self):
        cosines = position_figures.cosine_similarities(sinusoids(20, 16))
        for distance in range(20):
            np.testing.assert_allclose(np.diag(cosines, distance), cosines[0, distance], atol=1e-6)
        (line,) = position_figures.similarity_by_distance(cosines[0]).data
        np.testing.assert_array_equal(line.y, cosines[0])

    def test_waves_are_columns_named_with_their_wavelength(self):
        table = sinusoids(10, 4, base=100.0)
        fig = position_figures.encoding_waves(table, [0, 3], frequencies(4, 100.0))
        assert [wave.name for wave in fig.data] == [
            "dimension 0 (sine), wavelength 6.283",
            "dimension 3 (cosine), wavelength 62.83",
        ]
        np.testing.assert_array_equal(fig.data[1].y, table[:, 3])
        assert len({wave.line.dash for wave in fig.data}) == len({wave.line.color for wave in fig.data}) == 2

    def test_dimensions_that_are_not_there_are_refused(self):
        for dimensions in ([], [4], [-1]):
            with pytest.raises(ValueError, match="give some of 0 to 3"):
                position_figures.encoding_waves(np.ones((3, 4)), dimensions, frequencies(4, 100.0))

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
        assert fig.layout.yaxis.type == "log" and trace(fig, "selected pair").y[0] == pytest.approx(20 * np.pi)
        low, high = 10 ** np.array(fig.layout.yaxis.range)
        assert low < min(fig.data[0].y) and max(*fig.data[0].y, *(line.y0 for line in fig.layout.shapes)) < high
        assert {note.text for note in fig.layout.annotations} == {"2π", "2π · 10000", "length 64"}
        with pytest.raises(ValueError, match="pairs 0 to 3"):
            position_figures.frequency_spectrum(frequencies(8, 1e4), 1e4, length=64, selected=4)


def test_lines_are_named_beside_a_figure_that_has_several():
    for names in ("a", "ab", "abc"):
        fig = line_figure({name: np.arange(3) for name in names}, {}, hover="%{y}")
        assert fig.layout.showlegend == (len(names) > 1)


class TestPalette:
    @pytest.mark.parametrize("dark", [False, True])
    def test_words_and_the_first_lines_can_be_read(self, dark):
        theme = Theme(dark)
        assert all(contrast(color, theme.surface) >= 4.5 for color in palette.text_colors(dark))
        assert all(contrast(color, theme.surface) >= 3 for color in palette.CATEGORICAL[:4])

    def test_each_theme_has_its_own_colours(self):
        light, dark = Theme(False), Theme(True)
        for name in ("foreground", "muted", "grid", "surface"):
            assert getattr(light, name) != getattr(dark, name)
