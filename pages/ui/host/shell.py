"""Draws the shell of every page: model, prompt, changes and share, and the views that the frontend draws whole."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.components.assets import script, style
from pages.ui.components.events import heard, listening
from pages.ui.host.exchange import KEY, Exchange
from pages.ui.session.visitor_models import is_own

_STYLES = (
    *("tooltip.css", "save.css", "intervention_controls.css", "on_page.css", "head_overview.css", "top_tokens.css"),
    *("attention/attention.css", "inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
    *("generation/generation.css", "filling/filling.css", "page/shell.css", "page/changes_menu.css"),
)
MARKUP = '<div data-part="root"></div>'
_mount = component(
    "headsup_shell", html=MARKUP, js=script("shell"), css=style(__file__, "host.css", instruments=_STYLES)
)


def shell(
    page: str,
    opening: Mapping[str, Any],
    models: Sequence[Mapping[str, Any]],
    exchange: Exchange,
    next_page: str | None,
) -> None:
    """Draw it, and tell the tab what this run draws.

    opening: how the page opens, as `PageOptions` has it, and whether the tour is offered. models: those that can be
    picked, as `model_picker.catalogue` lists them. next_page: the title of a page to open.
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
            "catalogue": models,
            "own": [model["name"] for model in models if is_own(model["name"])],
            "next_page": next_page,
        },
        on_page_state_change=lambda: None,
        **listening(KEY),
    )
