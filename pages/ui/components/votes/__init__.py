"""How a room has voted: a bar for each answer, one group of bars for each time it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from pages.ui.components.sources import reader, script, style

_mount = st.components.v2.component(
    "headsup_votes",
    html=reader(__file__)("votes.html"),
    css=style(__file__, "votes.css"),
    js=script(__file__, "votes.js"),
)


class Bar(NamedTuple):
    """An answer, how many gave it, and whether it is known to be right."""

    label: str
    count: int
    right: bool


def votes(*, rounds: Sequence[tuple[str, Sequence[Bar]]], key: str) -> None:
    """Draw votes. rounds: what each is called, and its bars."""
    _mount(key=key, data={"rounds": [[title, [*map(list, bars)]] for title, bars in rounds]})
