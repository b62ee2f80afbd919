"""Draws the bar with the model and the prompt, and tokenizes the prompt."""

from collections.abc import Callable
from typing import NoReturn

import streamlit as st

from pages.ui.components.events import to_its_end
from pages.ui.frame import change_form, change_menu, changes, model_picker, selection_sync, widgets
from pages.ui.frame.state import visitor
from pages.ui.frame.visitor_choices import READS, Visitor
from pages.ui.markdown import code, counted, plain
from pages.ui.models import library
from transformer import TASKS, UnknownPiece

READINGS = {"chat": "A chat", "plain": "Plain text"}
LONGEST_LABEL = 60
MAX_WORDS = 60
"""Of a vocabulary that is listed."""


def pick(current: Visitor, stop: Callable[[], NoReturn], *, is_whole: bool, is_shown: bool) -> tuple[str, str]:
    """The model and the prompt; returns both.

    stop: ends the page where there is no model at all. is_whole: whether the page uses them; if not, its bar is a line
    with the model of the other pages. is_shown: whether the bar is drawn.
    """
    if is_shown and not is_whole:
        st.caption("Model on the other pages", width="content")
    label = "visible" if is_whole else "collapsed"
    name = model_picker.pick_model(current, stop, is_shown=is_shown, label_visibility=label)
    changes.settle(name, library.config(name))
    if current.prompt is None:
        current.prompt = next(iter(library.model(name).card.examples), "")
    if is_shown and is_whole:
        _pick_prompt(current, name)
    return name, current.prompt


def offer_tools(name: str, prompt: str, *, is_whole: bool) -> None:
    """What can be done with a model and its prompt, each folded behind a button."""
    if not is_whole:
        model_picker.show_card(name)
        return
    examples = library.model(name).card.examples
    if examples:
        st.menu_button(
            "Examples",
            examples,
            key=f"examples_{name}",
            format_func=_one_line,
            on_click=to_its_end,
            args=(_use_example, name),
        )
    _show_changes(name, prompt)
    model_picker.show_card(name)
    _choose_reading(visitor(), name, prompt)


def read_prompt(name: str, prompt: str) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """What the decoder continues, or an encoder-only model reads, and the source; None for the first after saying what
    is wrong."""
    tokenizer, shape, card = library.tokenizer(name), library.config(name), library.model(name).card
    if prompt.strip() and card.task in TASKS and (problem := TASKS[card.task].problem(prompt)):
        st.error(plain(problem))
        return None, ()
    if unknown := tokenizer.unknown_pieces(prompt):
        with st.container(border=True):
            st.error(unknown_sentence(unknown))
            if words := _known_words(name):
                st.caption(f"It knows these words: {', '.join(f'“{word}”' for word in words)}.")
            widgets.button("Remove what is unknown", _remove_unknown, name, type="primary")
        return None, ()
    tokens = library.encoded(name, prompt, visitor().reads)
    if not tokens:
        st.info("The prompt is empty. Type a text or pick an example.")
        return None, ()
    over = len(tokens) - shape.context_length
    reads_source = shape.architecture == "encoder-decoder"
    if over > 0 and (reads_source or not shape.is_causal):  # an encoder has no newest tokens that would do
        st.error(
            f"The {'source' if reads_source else 'prompt'} has {len(tokens):,} tokens, and this model reads at most "
            f"{shape.context_length}. Take {over:,} away."
        )
        return None, ()
    if reads_source:
        return card.start_tokens, tokens
    if over > 0 and shape.n_layers:  # without layers it reads the last token alone
        begin = library.window_start(name, len(tokens))
        st.info(
            f"The prompt has {len(tokens):,} tokens. This model's context holds {shape.context_length} and moves by a "
            f"quarter of that at a time: it reads the last {len(tokens) - begin}."
        )
    return tokens, ()


def _known_words(name: str) -> list[str]:
    """All words of a model that knows few of them; of one that reads characters, or much, none."""
    tokenizer = library.tokenizer(name)
    if tokenizer.vocab_size > MAX_WORDS:
        return []
    return sorted(word for word in tokenizer.labels(range(tokenizer.vocab_size)) if len(word) > 1 and word.isalpha())


def unknown_sentence(unknown: list[UnknownPiece]) -> str:
    """What is wrong with a text of which a model doesn't know some pieces."""
    listed = ", ".join(f"“{code(piece.text)}” (character {piece.position + 1})" for piece in unknown[:6])
    more = f", and {len(unknown) - 6} more" if len(unknown) > 6 else ""
    it = "it" if len(unknown) == 1 else "them"
    return f"This model has never seen {listed}{more}. Remove {it}, or pick another model."


def _show_changes(name: str, prompt: str) -> None:
    """What is changed in the model, and a form that changes more, folded behind a button that counts them."""
    count = sum(change.on for change in visitor().changes)
    # Opening it runs the page: what the form offers is made only then.
    opened = st.popover(
        counted(count, "change") if count else "Changes",
        on_change="rerun",
        type="primary" if count else "secondary",
        key="popover_changes",
    )
    with opened:
        changes.show(lambda index, change: change_menu.show(index, change, library.config(name)))
        if opened.open:
            selection_sync.request()
            change_form.show(name, prompt)
        else:
            change_form.close()


def _pick_prompt(current: Visitor, name: str) -> None:
    shape = library.config(name)
    label, what = "Prompt", "The model continues this"
    if shape.architecture == "encoder-decoder":
        label, what = "Source", "The encoder reads this"
    elif not shape.is_causal:
        what = f"The model reads this in both directions, and fills in {code(library.mask_name(name))}"
    linked = current.prompt
    widgets.text_area(label, "prompt", height=68, help=f"{what}.")
    if current.prompt != linked:  # a tab that was open before this session has another; the link's text isn't its
        current.written, current.branches, current.step = (), "", None


def _choose_reading(current: Visitor, name: str, prompt: str) -> None:
    """For a model that was tuned to answer: whether its chat template stands around the prompt, and what that is."""
    around = library.chat(name)
    if around is None:
        return
    with st.popover("Read as"):
        widgets.segmented_control("The prompt is read as", READS, "reads", READINGS.__getitem__)
        if current.reads == "chat":
            st.caption(
                "This model was tuned on conversations. It reads this, and goes on with the assistant's turn; "
                "names in ⟨…⟩ are single tokens of its own:"
            )
            marked = around.text(prompt).replace("<|", "⟨").replace("|>", "⟩")
            st.code(marked, language=None, wrap_lines=True)


def _one_line(text: str) -> str:
    """A prompt as a label, with line ends as signs and nothing read as Markdown."""
    shown = text.strip(" ").replace("\n", " ↵ ")
    return plain(shown if len(shown) <= LONGEST_LABEL else f"{shown[: LONGEST_LABEL - 1]}…")


def _use_example(name: str) -> None:
    visitor().prompt = st.session_state[f"examples_{name}"]


def _remove_unknown(name: str) -> None:
    current = visitor()
    current.prompt = library.tokenizer(name).without_unknown(current.prompt or "")
