"""Draws the input for a second prompt, suggests one, and checks that the model can read it."""

import streamlit as st

from pages.ui.computations import prompt_pairs
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models import library
from transformer import TASKS
from transformer.api.text_reading import unknown_sentence

SHOWN = 24
"""Characters of a prompt on a button,"""
BEFORE = 6
"""and how many of them stand before the first that differs."""


def other_prompt(session: Session) -> tuple[int, ...] | None:
    """The tokens of another prompt, and the box that it is typed in; None after saying why it can't be read.

    Of an encoder–decoder it is another source.
    """
    suggestion = prompt_pairs.suggested_prompt(session.name, session.prompt)
    suggested = suggestion or session.prompt
    typed = widgets.text_area("Another prompt", Binding("other_prompt", default=suggested), height=68)
    if typed != suggested and suggestion is not None:
        widgets.button(
            "Suggest another prompt", setattr, visitor(), "other_prompt", None, icon="autorenew", type="tertiary"
        )
    return read_text(session.name, typed, "The other prompt")


def read_text(name: str, text: str, what: str) -> tuple[int, ...] | None:
    """A text's tokens as a model has them; None after saying why it can't read it. what: how the text is called."""
    checkpoint = library.model(name)
    task = TASKS.get(checkpoint.card.task)
    if text.strip() and task and (problem := task.problem(text)):
        st.error(plain(f"{what}: {problem}"))
        return None
    if unknown := checkpoint.tokenizer.unknown_pieces(text):
        st.error(f"{what}: {unknown_sentence(unknown)}")
        return None
    tokens, longest = library.encoded(name, text, visitor().reads), checkpoint.model.config.context_length
    if not tokens:
        st.info(f"{what} is empty. Type something.")
        return None
    if len(tokens) > longest and checkpoint.model.config.architecture != "decoder-only":
        st.error(f"{what} has {len(tokens):,} tokens, and this model reads at most {longest}.")
        return None
    return tokens


def offer_pairs(session: Session) -> None:
    """Pairs of prompts that work well with this model."""
    pairs = [pair for pair in prompt_pairs.suggested_pairs(session.name) if pair[0] != session.prompt]
    if not pairs:
        return
    with st.popover("Pairs", help="Pairs of prompts that work well with this model."):
        for number, (one, other) in enumerate(pairs):
            label = plain(f"{_short(one, other)} | {_short(other, one)}")
            widgets.button(
                label, _take, one, other, key=f"pair_{session.name}_{number}", type="tertiary", width="content"
            )


def swap(session: Session) -> None:
    """Let the other prompt and the one in the bar change places."""
    current = visitor()
    mine = session.prompt
    _take(current.other_prompt or prompt_pairs.suggested_prompt(session.name, mine) or mine, mine)


def _take(prompt: str, other: str) -> None:
    current = visitor()
    current.prompt, current.other_prompt = prompt, other
    current.own_token = current.other_token = None
    if (prompt, other) in prompt_pairs.FACTS:
        current.reads = "plain"  # it is gone on with, not answered


def _short(text: str, beside: str) -> str:
    """A text as far as there is room, marked where it begins to differ from the one beside it."""
    length = SHOWN - 2
    if len(text) <= SHOWN:
        return text.replace("\n", " ↵ ")
    differs = next((at for at, (a, b) in enumerate(zip(text, beside, strict=False)) if a != b), len(text))
    begin = len(text) - length if differs >= len(text) - length else max(differs - BEFORE, 0)
    shown = text[begin : begin + length].replace("\n", " ↵ ")
    return f"{'…' if begin else ''}{shown}{'…' if begin + length < len(text) else ''}"
