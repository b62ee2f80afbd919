"""Draws the model picker, and says what the model is and where it comes from."""

from collections.abc import Callable
from typing import Any, NoReturn

import streamlit as st

from pages.ui.frame import selection_sync, widgets
from pages.ui.frame.state import visitor
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.frame.widgets import Binding
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.markdown import architecture, command, counted, plain
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.session.visitor_models import add_shared_model, is_own, own_models
from transformer import TASKS, CheckpointError, ModelCard, ModelConfig
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


def pick_model(current: Visitor, stop: Callable[[], NoReturn], *, is_shown: bool, **look: Any) -> str:
    """The list that picks a model; returns the name of the one picked.

    stop: ends the page where there is no model that can be looked into. is_shown: whether the list is drawn. look:
    passed on to Streamlit.
    """
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
    if is_shown:
        groups = [*GROUPS, OTHERS]

        def rank(name: str) -> tuple[int, bool, str]:
            group = _group(name, entries[name].card)
            return groups.index(group) if group in groups else len(groups), name != DEFAULT_MODEL, name

        names = {name: _label(name, entries[name].card) for name in sorted(entries, key=rank)}
        widgets.selectbox("Model", names, Binding("model", after=_forget_model), names.__getitem__, width=270, **look)
    try:
        library.model(current.model)
    except CheckpointError as error:
        st.error(plain(f"This model can't be opened. {error} Pick another one."))
        stop()
    return current.model


def _group(name: str, card: ModelCard) -> str:
    return YOURS if name in own_models() else SHARED if is_own(name) else card.group or OTHERS


def _label(name: str, card: ModelCard) -> str:
    """A model's title, after its group where the titles of two groups look alike."""
    group = _group(name, card)
    return card.title if group in (Group.TEXTS, Group.TASKS, OTHERS) else f"{group} · {card.title}"


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


def show_card(name: str) -> None:
    """What is known of a model, folded behind a button."""
    checkpoint = library.model(name)
    with st.popover("About"):
        _show_card(checkpoint.card, checkpoint.model.config)
        group = _group(name, checkpoint.card)
        if group in GROUPS:
            st.caption(f"{group}: {GROUPS[group]}")


def _show_card(card: ModelCard, config: ModelConfig) -> None:
    st.caption(f"{plain(card.summary, 300)} {architecture(config)}, {_size(card.parameters)}.")
    training, predicted = card.training, "next token" if card.task in TASKS else card.task
    if not config.is_causal:
        predicted = "masked tokens"
    rows = {
        "Trained on": f"{card.corpus.get('title', '?')} ({card.corpus.get('licence', '?')})",
        "Language": card.language,
        "It predicts the": predicted,
        "Correct answers": "" if card.accuracy is None else f"{percent(card.accuracy)} of unseen examples",
        "Validation loss": _nats(card.validation_loss),
        "Training-set loss": _nats(card.train_loss),
        "Steps": str(training.get("best_step", training.get("steps", "?"))),
        "Trained in": f"{_duration(training.get('seconds', 0))} on {training.get('machine', '?')}",
    }
    lines = [f"- **{label}:** {plain(value, 200)}" for label, value in rows.items() if value]
    if "command" in training:  # what a visitor trained has none
        lines.append(f"- **Train it again:** {command(str(training['command']), 200)}")
    st.markdown("\n".join(lines))


def _size(parameters: int) -> str:
    return f"{parameters / 1e6:.1f} M parameters" if parameters >= 1e6 else counted(parameters, "parameter")


def _duration(seconds: object) -> str:
    """A card's seconds in words; a file from elsewhere may hold anything."""
    if not isinstance(seconds, int | float):
        return "?"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else counted(max(round(seconds), 1), "second")


def _nats(loss: float | None) -> str:
    return "" if loss is None else f"{loss:.4f} nats per token"
