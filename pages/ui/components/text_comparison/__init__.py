"""Shows texts side by side and marks the first token in which they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from streamlit.components.v2 import component

from pages.ui.components.assets import reader, script, style

_mount = component(
    "headsup_text_comparison",
    html=reader(__file__)("text_comparison.html"),
    css=style(__file__, "text_comparison.css"),
    js=script(__file__, "text_comparison.js"),
)


@dataclass(frozen=True)
class Version:
    """One text, in parts that follow each other."""

    title: str
    before: str
    """What was there before it was written."""
    same: str
    """What it has in common with the others."""
    differs: str
    """The first token that is its own; empty if there is none."""
    rest: str
    ends: bool
    """Whether the text has come to its end, rather than being cut here."""


def text_comparison(*, versions: Sequence[Version], key: str) -> None:
    """Show texts."""
    _mount(key=key, data={"versions": [dataclasses.asdict(version) for version in versions]})
