"""Shows a text in two orders as a table, with the likeliest tokens that are predicted for each."""

from collections.abc import Sequence

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__, "top_tokens.css")

Likeliest = Sequence[tuple[str, float]]
"""Labels of tokens and their probabilities, the likeliest first."""


def word_orders(
    ways: Sequence[str],
    texts: Sequence[tuple[str, Sequence[str]]],
    cells: Sequence[Sequence[Likeliest]],
    moved: Sequence[float],
    *,
    key: str,
) -> None:
    """Show the table.

    ways: what its columns are called. texts: what its rows are called, and the labels of their tokens. cells: by row
    and column. moved: by column, how far the order moves any probability.
    """
    _mount(key=key, data={"ways": ways, "texts": texts, "cells": cells, "moved": moved})
