"""Draws the shell of every page: model, prompt, changes and share, and the views that the frontend draws whole."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.components.assets import SHELL_STYLE, address, script
from pages.ui.components.events import heard, listening
from pages.ui.host.exchange import KEY, Exchange
from pages.ui.session.visitor_models import is_own
from transformer.frontend.page_titles import SENTENCES

_LINK = f'<link rel="stylesheet" href="./{address(SHELL_STYLE)}">'
MARKUP = f"""<style data-part="until_styled">.waiting {{ visibility: hidden; }}</style>
{_LINK}
<div data-part="root"><div class="shell waiting">
<div class="shell-line"><b data-part="waiting_model"></b><span data-part="waiting_prompt"></span></div>
<div class="shell-heading"><h1 data-part="waiting_title"></h1>
<p data-part="waiting_for" role="status">The page is being loaded. If it takes long, reload it.</p></div>
</div></div>"""
"""What is seen, once the style sheet is there, until the frontend takes its place."""
_mount = component("headsup_shell", html=MARKUP, js=script("shell"))
_mount_step_view = component(
    "headsup_step_view", html=f'{_LINK}<div data-part="root" class="shell"></div>', js=script("step_view")
)


def shell(
    page: str,
    opening: Mapping[str, Any],
    models: Sequence[Mapping[str, Any]],
    exchange: Exchange,
    next_page: str | None,
    open_page: Callable[[str], None],
    on_read: Callable[[bool], None],
) -> None:
    """Draw it, and tell the tab what this run draws.

    opening: how the page opens, as `PageOptions` has it, `notices`, whether the tour is offered, and what Python
    `draws` something of, as `drawn_by` takes it. models: those that can be picked, as `model_picker.catalogue` lists
    them. next_page: the title of a page to open. open_page: called with the one that the view of a lesson's step leads
    to. on_read: called when the notices have been read.
    """
    data = {
        "key": KEY,
        "heard": heard(),
        **exchange.told(*(each if each != opening["folded"] else "" for each in (page, opening["draws"]))),
        "path": urlsplit(st.context.url or "").path,
        "page": {"title": page, "sentence": opening["sentence"]},
        "view": opening["view"],
        "uses_model": opening["uses_model"],
        "is_bare": opening["is_bare"],
        "is_fixed": opening["is_fixed"],
        "is_linked": opening["is_linked"],
        "offers_tour": opening["offers_tour"],
        "catalogue": models,
        "waiting": {"waiting_title": page} if opening["is_bare"] else _waiting(page, exchange.texts, models),
        "own": [model["name"] for model in models if is_own(model["name"])],
        "next_page": next_page,
        "notices": list(dict.fromkeys(opening["notices"])),
    }
    _mount(
        data=[data],  # in a dictionary Streamlit looks for tables, and the first page would wait for pandas
        on_page_state_change=lambda: None,
        **listening(KEY, navigate=(Literal[*SENTENCES], open_page), notices_read=(bool, on_read)),
    )


def step_view() -> None:
    """Make the place where the shell draws the view of a lesson's step."""
    _mount_step_view(data={}, key="step_view")


def _waiting(page: str, texts: Mapping[str, str], models: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the markup says of the page: its title, its model and its prompt."""
    model = next((entry for entry in models if entry["name"] == texts.get("model")), {"title": "", "examples": []})
    prompt = texts.get("prompt") or "".join(model["examples"][:1])
    return {"waiting_title": page, "waiting_model": model["title"], "waiting_prompt": prompt[:200]}
