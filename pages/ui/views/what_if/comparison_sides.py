"""Chooses the two sides of a comparison: two prompts, two models, or one with and without changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models import comparison, library
from pages.ui.views.what_if.other_prompt import other_prompt, read_text
from transformer import Intervention, ModelConfig

MODES = {"prompts": "Two prompts", "models": "Two models", "changes": "With and without changes"}


@dataclass(frozen=True)
class Side:
    """A text as one model reads it."""

    title: str
    """What it is called; not yet safe for Markdown."""
    name: str
    tokens: tuple[int, ...]
    """What fits the context; of an encoder–decoder what its decoder reads."""
    source: tuple[int, ...]
    place: int
    """Of the token, among `tokens`, after which the next one is looked at."""
    begin: int
    """The first token's place in the whole text."""
    interventions: tuple[Intervention, ...]

    @property
    def config(self) -> ModelConfig:
        """The model's."""
        return library.config(self.name)

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """What an attention's queries and keys are called. kind: as in `attention_modules`."""
        named = library.tokenizer(self.name).labels
        text, source = named(self.tokens), named(self.source)
        return (source if kind == "encoder" else text), (source if kind in ("encoder", "cross") else text)

    def offsets(self, kind: str) -> tuple[int, int]:
        """The places of the first query and the first key."""
        return (0 if kind == "encoder" else self.begin), (self.begin if kind in ("self", "decoder") else 0)


def choose(session: Session) -> tuple[Side, Side] | None:
    """The dials that choose what is put beside what; None after saying what is missing."""
    mode = widgets.segmented_control("Compare", MODES, "beside", MODES.get)
    own = session.source or session.require_tokens()
    if mode == "prompts":
        other = other_prompt(session)
        if other is None:
            return None
        return _sides(session, ("Your prompt", "The other prompt"), (own, other), (session.interventions,) * 2)
    if mode == "changes":
        if not session.interventions:
            st.info("This model has no changes. Ablate a head first, for example.")
            st.button("Go to Ablation", type="primary", on_click=_try)
            return None
        return _sides(session, ("Unchanged", "Changed"), (own, own), ((), session.interventions))
    return _models(session, own)


def _models(session: Session, own: tuple[int, ...]) -> tuple[Side, Side] | None:
    names = comparison.other_models(session.name)
    if not names:
        st.info("There is no other model here.")
        return None
    entries, wish = library.usable(), session.visitor.other_model
    default = comparison.first_readable(names, session.prompt)
    if wish is not None and wish not in names:
        st.warning(plain(f"There is no model “{wish[:40]}” to compare with; another is shown."))
        session.visitor.other_model = None
    name = widgets.selectbox(
        "Other model",
        names,
        Binding("other_model", default=default),
        lambda other: entries[other].card.title,
        width=320,
    )
    tokens = read_text(name, session.prompt, f"To {entries[name].card.title}, your prompt")
    if tokens is None:
        return None
    if session.interventions:
        st.caption("The changes apply to the selected model only.")
    titles = [entries[each].card.title for each in (session.name, name)]
    if titles[0] == titles[1]:  # a visitor's own may be called the same
        titles = [f"{title} ({number})" for number, title in enumerate(titles, start=1)]
    return _side(session.name, titles[0], own, session.interventions), _side(name, titles[1], tokens)


def _sides(
    session: Session,
    titles: tuple[str, str],
    texts: tuple[tuple[int, ...], tuple[int, ...]],
    changes: tuple[tuple[Intervention, ...], tuple[Intervention, ...]],
) -> tuple[Side, Side]:
    """Two texts, or one, in the model that is selected.

    Answers of an encoder–decoder are looked at where they part; with its changes and without them it reads one answer,
    that of the unchanged model.
    """
    first, second = (_side(session.name, *each) for each in zip(titles, texts, changes, strict=True))
    if not session.source:
        return first, second
    pairs = enumerate(zip(first.tokens, second.tokens, strict=False))
    parted = next((place for place, (one, other) in pairs if one != other), 1)
    if texts[0] == texts[1]:
        second = replace(second, tokens=first.tokens)
    return replace(first, place=parted - 1), replace(second, place=parted - 1)


def _side(name: str, title: str, text: tuple[int, ...], interventions: tuple[Intervention, ...] = ()) -> Side:
    """text: of an encoder–decoder the source; what comes next is then the first token of its answer."""
    if library.config(name).architecture == "encoder-decoder":
        tokens = comparison.decoder_tokens(name, text, interventions)
        return Side(title, name, tokens, text, 0, 0, interventions)
    tokens = library.window(name, text)
    return Side(title, name, tokens, (), len(tokens) - 1, len(text) - len(tokens), interventions)


def _try() -> None:
    visitor().question = "ablation"
