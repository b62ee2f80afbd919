"""Chooses the two sides of a comparison: two prompts, two models, or one with and without changes."""

from dataclasses import dataclass, replace

import streamlit as st

from pages.ui.computations import comparable_models
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models import library
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
    position: int
    """Of the token, among `tokens`, after which the next one is looked at; of an encoder, of the predicted one."""
    begin: int
    """The first token's position in the whole text."""
    interventions: tuple[Intervention, ...]

    @property
    def config(self) -> ModelConfig:
        return library.config(self.name)

    def labels(self, kind: str) -> tuple[list[str], list[str]]:
        """What an attention's queries and keys are called. kind: as in `attention_modules`."""
        named = library.tokenizer(self.name).labels
        text, source = named(self.tokens), named(self.source)
        return (source if kind == "encoder" else text), (source if kind in ("encoder", "cross") else text)

    def offsets(self, kind: str) -> tuple[int, int]:
        """The positions of the first query and the first key."""
        return (0 if kind == "encoder" else self.begin), (self.begin if kind in ("self", "decoder") else 0)


def choose(session: Session) -> tuple[Side, Side] | None:
    """The dials that choose what is put beside what; None after saying what is missing."""
    mode = widgets.segmented_control("Compare", MODES, "beside", MODES.__getitem__)
    own, changes = session.source or session.require_tokens(), session.interventions
    if mode == "prompts":
        other = other_prompt(session)
        if other is None:
            return None
        return _sides(session, ("Your prompt", "The other prompt"), (own, other), (changes, changes))
    if mode == "changes":
        if not changes:
            st.info("This model has no changes. Ablate a head first, for example.")
            widgets.button("Go to Ablation", setattr, session.visitor, "question", "ablation", type="primary")
            return None
        return _sides(session, ("Unchanged", "Changed"), (own, own), ((), changes))
    return _models(session, own)


def _models(session: Session, own: tuple[int, ...]) -> tuple[Side, Side] | None:
    names = comparable_models.other_models(session.name)
    if not names:
        kind = "model" if session.config.is_causal else "encoder"
        st.info(f"There is no other {kind} here.")
        return None
    entries, wish = library.usable(), session.visitor.other_model
    default = next((other for other in names if comparable_models.can_read(other, session.prompt)), names[0])
    if wish is not None and wish not in names:
        st.warning(plain(f"There is no model “{wish[:40]}” to compare with; another is shown."))
        session.visitor.other_model = None
    name = widgets.selectbox(
        "Other model", names, Binding("other_model", default=default), lambda name: entries[name].card.title, width=320
    )
    prompt = session.prompt
    if not session.config.is_causal:  # each encoder has its own name for masks
        prompt = prompt.replace(library.mask_name(session.name), library.mask_name(name))
    tokens = read_text(name, prompt, f"To {entries[name].card.title}, your prompt")
    if tokens is None:
        return None
    if not comparable_models.same_corpus(session.name, name):
        st.caption("The other model was trained on other data. It may never have seen a text like this prompt.")
    if session.interventions:
        st.caption("The changes apply to the selected model only.")
    titles = [entries[model].card.title for model in (session.name, name)]
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
    first, second = (_side(session.name, *side) for side in zip(titles, texts, changes, strict=True))
    if not session.source:
        return first, second
    pairs = enumerate(zip(first.tokens, second.tokens, strict=False))
    parted = next((at for at, (one, other) in pairs if one != other), 1)
    if texts[0] == texts[1]:
        second = replace(second, tokens=first.tokens)
    return replace(first, position=parted - 1), replace(second, position=parted - 1)


def _side(name: str, title: str, text: tuple[int, ...], interventions: tuple[Intervention, ...] = ()) -> Side:
    """text: of an encoder–decoder the source; what comes next is then the first token of its answer."""
    if library.config(name).architecture == "encoder-decoder":
        tokens = comparable_models.decoder_tokens(name, text, interventions)
        return Side(title, name, tokens, text, 0, 0, interventions)
    tokens = library.window(name, text)
    position = library.model(name).predicted_position(tokens)
    return Side(title, name, tokens, (), position, len(text) - len(tokens), interventions)
