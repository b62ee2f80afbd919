"""Opens the model of the page state, or another where it is gone."""

from collections.abc import Callable
from typing import NoReturn

import streamlit as st

from pages.ui.frame import selection_sync
from pages.ui.frame.state import visitor
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.session.visitor_models import add_shared_model, is_own
from transformer import CheckpointError


def pick_model(current: Visitor, stop: Callable[[], NoReturn]) -> str:
    """The model of the page state, or another where it is gone. stop: ends the page where none can be opened."""
    for linked in (current.model, current.other_model or ""):
        add_shared_model(linked)
    entries = library.usable()
    for entry in library.catalogue():
        if entry.problem:
            st.warning(plain(f"A model can't be used. {entry.problem}"), icon=":material/broken_image:")
    if not entries:
        st.error(
            f"There is no model: {library.FOLDER.name}/ holds no usable checkpoint. "
            "Train one with `python -m transformer train shakespeare`."
        )
        stop()
    if current.model not in entries:
        fallback = DEFAULT_MODEL if DEFAULT_MODEL in entries else next(iter(entries))
        title = entries[fallback].card.title
        if is_own(current.model):
            missing = "The link's model, trained or uploaded by a visitor, was deleted a day after its last use"
        else:
            missing = f"There is no model “{current.model[:40]}” here"
        current.notices.append(f"{missing}; {title} is shown.")
        current.model = fallback
    try:
        library.model(current.model)
    except CheckpointError:  # the shell says why, and offers others
        stop()
    return current.model


def choose_model(name: str) -> None:
    """Turn to another model, and to its own prompt."""
    visitor().model = name
    _forget_model()


def _forget_model() -> None:
    """With another model come its own prompt, and its own layers and heads."""
    current = visitor()
    current.prompt, current.written, current.branches = None, (), ""
    current.other_prompt = current.own_token = current.other_token = current.token = None
    selection_sync.reset(current, "layer", "head", "query", "key", "step")
