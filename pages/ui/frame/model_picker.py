"""Lists the models by group, and opens the one that the page state names."""

from collections.abc import Callable
from typing import Any, NoReturn

import streamlit as st

from pages.ui.frame import state
from pages.ui.host.exchange import change, page_state
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.session.visitor_models import add_shared_model, is_own, own_models
from transformer import CheckpointError, ModelCard
from transformer.frontend.live_model import listed
from transformer.training.presets import Group

YOURS, SHARED = "Yours", "Shared with you"
GROUPS = {
    Group.TEXTS: "These continue a text in the style of their training text.",
    Group.TASKS: "Each of these solves one task.",
    Group.LADDER: "All trained on one text, from a bigram table to a transformer: each adds one part.",
    Group.SINCE_2017: "The paper's decoder, and later changes: each adds one.",
    YOURS: "Trained or uploaded by you. Only you, and people with a link, can see these.",
    SHARED: "Trained or uploaded by the person who shared the link.",
}
OTHERS = "Others"


def pick_model(stop: Callable[[], NoReturn]) -> str:
    """The name of the model that the page state names, or of the one that is shown instead.

    stop: ends the page where there is no model that can be looked into.
    """
    current = page_state()
    name = current.model
    for linked in (name, current.other_model or ""):
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
    if name not in entries:
        if is_own(name):
            missing = "The link's model, trained or uploaded by a visitor, was deleted a day after its last use"
        else:
            missing = f"There is no model “{name[:40]}” here"
        name = DEFAULT_MODEL if DEFAULT_MODEL in entries else next(iter(entries))
        if "model" in st.query_params:  # else the tab may hold another model: the server has restarted
            state.notices().append(f"{missing}; {entries[name].card.title} is shown.")
            change(model=name)
    try:
        library.model(name)
    except CheckpointError:  # the shell says why, and offers others
        stop()
    return name


def catalogue() -> list[dict[str, Any]]:
    """The models that can be picked, as the shell lists them: group by group, the default first. The first of a group
    has its `meaning`."""
    groups = [*GROUPS, OTHERS]
    models = [
        {**listed(name, entry.config, entry.card), "group": _group(name, entry.card)}
        for name, entry in library.usable().items()
    ]

    def rank(model: dict[str, Any]) -> tuple[int, bool, str]:
        group, name = model["group"], model["name"]
        return groups.index(group) if group in groups else len(groups), name != DEFAULT_MODEL, name

    models.sort(key=rank)
    for group, meaning in GROUPS.items():
        next((model for model in models if model["group"] == group), {})["meaning"] = meaning
    return models


def _group(name: str, card: ModelCard) -> str:
    return YOURS if name in own_models() else SHARED if is_own(name) else card.group or OTHERS
