"""Shows texts side by side and marks the first token in which they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.ui.components.sources import reader, script, style

_mount = st.components.v2.component(
    "headsup_versions",
    html=reader(__file__)("versions.html"),
    css=style(__file__, "versions.css"),
    js=script(__file__, "versions.js"),
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
