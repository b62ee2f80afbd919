"""Shows texts side by side and marks the first token in which they differ."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__, "what_if/text_comparison.css")


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
    _mount(key=key, data={"versions": [dataclasses.asdict(version) for version in versions]})
