"""Embeds an instrument of the frontend in a page; the browser fetches its data from the API.

Selections stay in the browser. An instrument sends the page changes of the model, the request to open another page, and
the selection if the page depends on it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.components.assets import script, style
from pages.ui.components.events import listening
from transformer import Intervention, to_code
from transformer.api.open_models import OWN, OpenModel, is_for_browsers

MARKUP = '<div data-part="root"></div>'
STYLES = {
    "attention": ("head_overview.css", "attention/attention.css"),
    "inside": ("inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
    "generation": ("generation/generation.css",),
    "filling": ("generation/generation.css", "filling/filling.css"),
}
_MOUNTS = {
    kind: component(
        f"headsup_{kind}",
        html=MARKUP,
        js=script(kind),
        css=style(
            __file__, instruments=["tooltip.css", "save.css", "intervention_controls.css", "on_page.css", *styles]
        ),
    )
    for kind, styles in STYLES.items()
}


def request_of(
    model: OpenModel, tokens: Sequence[int], source: Sequence[int], changes: Sequence[Intervention], begin: int
) -> dict[str, Any]:
    """The parameters of every API request about a pass. begin: the position of its first token in the whole text."""
    return {
        "model": OWN if model.is_own else model.name,
        "version": None if model.is_own else model.version,
        "tokens": ",".join(map(str, tokens)),
        "source": ",".join(map(str, source)) or None,
        "changes": "!".join(map(to_code, changes)) or None,
        "begin": begin or None,
    }


def asks_server_first(model: OpenModel) -> bool:
    """Whether the browser will ask the server for what it draws first, and not compute it itself: a small model, once
    it has been shown, it has."""
    before, now = st.session_state.get("model_shown"), (model.name, model.version)
    st.session_state["model_shown"] = now
    return before != now or not is_for_browsers(model)


def instrument(
    kind: str,
    *,
    key: str,
    model: OpenModel,
    request: Mapping[str, Any],
    about: Mapping[str, Any],
    on_navigate: Callable[[Mapping[str, Any]], None],
    on_change: Callable[[Mapping[str, Any]], None] | None = None,
    on_select: Callable[[Mapping[str, Any]], None] | None = None,
) -> None:
    """Show an instrument. kind: of `STYLES`; request: the parameters of its API requests, from `request_of`.

    about: its other data. Callbacks get untrusted values: on_navigate the page to open, on_change a change of the
    model, on_select the selection. Without on_select, selections don't rerun the page.
    """
    token = model.name if model.is_own else None
    callbacks = {"navigate": on_navigate, "change": on_change, "select": on_select}
    listeners = listening(key, **{event: (dict, act) for event, act in callbacks.items() if act})
    shown = {"sends_selection": on_select is not None, "in_browser": is_for_browsers(model)}
    data = {"key": key, "request": dict(request), "token": token, **shown, **about}
    _MOUNTS[kind](data=data, **listeners)
