"""Draws the shell of every page: model, prompt, changes and share, and the views that the frontend draws whole."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.components.assets import script, style
from pages.ui.components.events import heard, listening
from pages.ui.host.exchange import KEY, Exchange
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.models import library
from pages.ui.session.visitor_models import own_models
from transformer import CheckpointEntry
from transformer.training.presets import Group

_STYLES = (
    *("tooltip.css", "save.css", "intervention_controls.css", "on_page.css", "head_overview.css", "top_tokens.css"),
    *("attention/attention.css", "inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
    *("generation/generation.css", "filling/filling.css", "page/shell.css", "page/changes_menu.css"),
)
MARKUP = '<div data-part="root"></div>'
YOURS, SHARED, OTHERS = "Yours", "Shared with you", "Others"
"""Groups of models beside those of the models that ship."""
_mount = component(
    "headsup_shell", html=MARKUP, js=script("shell"), css=style(__file__, "host.css", instruments=_STYLES)
)


def shell(page: str, opening: Mapping[str, Any], exchange: Exchange, next_page: str | None) -> None:
    """Draw it, and tell the tab what this run draws.

    opening: how the page opens, as `PageOptions` has it, and whether the tour is offered. next_page: the title of
    a page to open.
    """
    _mount(
        data={
            "key": KEY,
            "heard": heard(),
            **exchange.told(page, opening["view"]),
            "path": urlsplit(st.context.url or "").path,
            "page": {"title": page, "sentence": opening["sentence"]},
            "reads_prompt": opening["reads_prompt"],
            "is_bare": opening["is_bare"],
            "offers_tour": opening["offers_tour"],
            "catalogue": _catalogue(),
            "own": [name for name, entry in library.usable().items() if library.is_own(name)],
            "next_page": next_page,
        },
        on_page_state_change=lambda: None,
        **listening(KEY),
    )


def _catalogue() -> list[dict[str, Any]]:
    """The models that can be picked, by group, the default model first in its own."""
    entries = library.usable()
    listed = [
        {"name": name, "title": entry.card.title, "group": _group(name, entry), "examples": list(entry.card.examples)}
        for name, entry in entries.items()
    ]
    groups = [*Group, YOURS, SHARED]
    ranks = {group: rank for rank, group in enumerate(groups)}
    return sorted(listed, key=lambda each: (ranks.get(each["group"], len(groups)), each["name"] != DEFAULT_MODEL))


def _group(name: str, entry: CheckpointEntry) -> str:
    return YOURS if name in own_models() else SHARED if library.is_own(name) else entry.card.group or OTHERS
