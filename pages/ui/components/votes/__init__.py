"""Shows the votes of a room: a bar for each answer, or numbers as dots on a line."""

from collections.abc import Sequence
from typing import NamedTuple

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__, "tooltip.css")


class Bar(NamedTuple):
    """An answer, how many gave it in each round, and whether it is known to be right."""

    label: str
    counts: Sequence[int]
    right: bool


class Line(NamedTuple):
    """Where numbers lie: the ends of the line, both in words, and what is right, with its words, once that is known."""

    low: float
    high: float
    low_text: str
    high_text: str
    right: tuple[float, str] | None


def votes(
    *,
    scrolls: int,
    key: str,
    rounds: Sequence[str] = (),
    bars: Sequence[Bar] = (),
    line: Line | None = None,
    points: Sequence[tuple[str, Sequence[tuple[float, str, int]]]] = (),
) -> None:
    """Draw votes.

    rounds: what each is called. line and points instead of bars, for numbers: of each round the numbers, each in words,
    too, and how many gave it. scrolls: whenever this grows, the question and its votes are scrolled into sight.
    """
    _mount(
        key=key,
        data={
            "rounds": list(rounds),
            "bars": [*map(list, bars)],
            "line": line and [*line],
            "points": [[title, [*map(list, shares)]] for title, shares in points],
            "scrolls": scrolls,
        },
    )
