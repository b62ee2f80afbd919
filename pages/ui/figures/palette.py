"""Defines the colours, fonts and margins of every figure, in light and dark.

Source: the categorical palette of Okabe and Ito (2008).
"""

from dataclasses import dataclass

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

CATEGORICAL: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito without black and yellow. The first four have a contrast of 3 on white and on near-black."""


def text_colors(dark: bool) -> tuple[str, str]:
    """(main, muted) text colours for a dark or a light page."""
    return ("#fafafa", "#a9b0bb") if dark else ("#262730", "#5f6570")


@dataclass(frozen=True)
class Theme:
    """What a figure needs to know of the page that it is drawn on, whose background shows through."""

    dark: bool = False

    @property
    def foreground(self) -> str:
        return text_colors(self.dark)[0]

    @property
    def muted(self) -> str:
        return text_colors(self.dark)[1]

    @property
    def grid(self) -> str:
        return "#3a3f4a" if self.dark else "#dfe2e8"

    @property
    def surface(self) -> str:
        """The page's own colour, for what must cover something: hover labels and halos."""
        return "#0e1117" if self.dark else "#ffffff"


LIGHT = Theme(dark=False)
LEGEND_ABOVE = dict(orientation="h", x=0, xanchor="left", y=1.01, yanchor="bottom")


def style(
    theme: Theme, *, height: int, across: str, down: str, top: int = 14, bottom: int = 54, left: int = 44
) -> dict:
    """The layout that all figures share, for `go.Figure(traces, layout)`, with `xaxis` and `yaxis` to add to.

    `height` is of the plot area in pixels. `across` and `down` name the axes. top, bottom, left: pixels beside the plot
    area. Where what stands there needs more, plotly draws the figure a second time, with less of a plot area. Figures
    are built from whole dictionaries because each `add_trace` and `update_layout` costs milliseconds.
    """
    font = dict(family=SANS, color=theme.foreground)
    hover = dict(bgcolor=theme.surface, bordercolor=theme.muted, align="left", font=dict(size=13, **font))
    axis = dict(gridcolor=theme.grid, linecolor=theme.grid, tickcolor=theme.muted, zeroline=False)
    axis |= dict(showline=True, mirror=True, automargin=True)
    return dict(
        template="none",
        height=height + top + bottom,
        margin=dict(l=left, r=14, t=top, b=bottom),
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font=dict(size=12, **font),
        hoverlabel=hover,
        xaxis=axis | dict(title=dict(text=across, standoff=8)),
        yaxis=axis | dict(title=dict(text=down, standoff=6)),
    )
