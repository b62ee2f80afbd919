"""Shows a text in two orders as a table, with the likeliest next tokens after each."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.ui.components.sources import reader, script, style

_mount = st.components.v2.component(
    "headsup_two_orders",
    html=reader(__file__)("two_orders.html"),
    css=style(__file__, "two_orders.css", instruments=["likeliest.css"]),
    js=script(__file__, "two_orders.js"),
)

Likeliest = Sequence[tuple[str, float]]
"""Labels of tokens and their probabilities, the likeliest first."""


def two_orders(
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
