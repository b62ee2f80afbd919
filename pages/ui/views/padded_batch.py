"""Draws the part of the page Masks about a batch: prompts, padding, and their masks.

Dimensions: batch, pos, query, key.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.batch_table import batch_table
from pages.ui.components.masks import MaskPanel, masks
from pages.ui.computations import masked_predictions
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.host.exchange import change, page_state
from pages.ui.markdown import code, counted
from pages.ui.models import library
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views import prompt_batch as batches
from pages.ui.views.prompt_batch import MAX_LINES, PADDING, PromptBatch
from pages.ui.views.two_readings import ROUNDING_ERROR

SIDES = {"right": "On the right", "left": "On the left"}


def batch(session: Session) -> None:
    """The visitor's prompts as a rectangle, and the masks of one of them."""
    st.markdown("A batch is one rectangle of numbers: padding tokens make its prompts equally long.")
    batch = _edit(session)
    for problem in batch.problems:
        st.warning(problem, icon=":material/info:")
    if not batch.prompts:
        st.error("The batch is empty. Type one prompt per line, or restore the examples.")
        return
    pad = batches.padding_id(session.config)
    row = _dials(batch)
    tokens = batches.rectangle(batch.prompts, pad, page_state().pad_side)
    _picture(session, batch, tokens, pad, row)
    _masks(session, batch, tokens, pad, row)


def _edit(session: Session) -> PromptBatch:
    """The text area with one prompt a line."""
    tokenizer, context = session.tokenizer, session.config.context_length
    examples = library.model(session.name).card.examples or [session.prompt]
    suggested = batches.suggest_batch(examples, tokenizer, context)
    typed = widgets.text_area(
        "Prompts, one per line", Binding("batch", default=suggested), height=140, help=f"Up to {MAX_LINES} lines."
    )
    is_suggested = page_state().batch is None
    widgets.button("Restore the examples", lambda: change(batch=None), icon="undo", disabled=is_suggested)
    return batches.read_batch(typed, tokenizer, context)


def _dials(batch: PromptBatch) -> int:
    """The side of the padding, and whose masks are shown; returns the latter, as a row of the rectangle."""
    rows, row = len(batch.prompts), page_state().batch_row
    if row >= rows:
        st.info(f"The batch has no prompt {row + 1}; the last one, {rows}, is shown.")
        change(batch_row=rows - 1)
    names = [f"line {line}: {_short(text)}" for line, text in zip(batch.lines, batch.texts, strict=True)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.segmented_control("Padding", SIDES, "pad_side", SIDES.__getitem__)
        return widgets.selectbox("Masks of", range(rows), "batch_row", names.__getitem__, width=320)


def _picture(session: Session, batch: PromptBatch, tokens: np.ndarray, pad: int, row: int) -> None:
    """The rectangle, and what of it is wasted."""
    rows, width = tokens.shape
    labels = [batches.token_labels(line, batch.tokenizer, pad) for line in tokens]
    batch_table(labels, tokens == pad, batch.lines, selected=row, key="batch_table")
    filled = int((tokens == pad).sum())
    what = f"{PADDING} is this model's own padding token."
    if session.config.pad_token_id is None:
        what = f"This model has no padding token; {PADDING} is token {pad}, just past its vocabulary."
    count = "1 is" if filled == 1 else f"{filled or 'none'} are"
    st.caption(
        f"Each row is a prompt, each column a position: {rows} × {width} = {counted(tokens.size, 'cell')}, "
        f"of which {count} padding. The outlined row is the one whose masks are below. {what}"
    )
    st.dataframe(_costs(session, batch, tokens, pad), hide_index=True)
    kept = ", or whose key the causal mask hides" if _is_causal(session) else ""
    st.caption(
        f"In each layer and head, every prompt of this batch takes {width} × {width} = "
        f"{counted(width**2, 'cell')} of attention. Wasted are those whose query or key is "
        f"padding{kept}."
    )
    indices = np.indices(tokens.shape)
    cells = {
        "line": np.array(batch.lines)[indices[0]].ravel(),
        "position": indices[1].ravel(),
        "token": [label for line in labels for label in line],
        "padding": (tokens == pad).ravel(),
    }
    offer_data(lambda: pd.DataFrame(cells), "This batch as a table", f"{session.file_name}-batch.csv")


def _costs(session: Session, batch: PromptBatch, tokens: np.ndarray, pad: int) -> pd.DataFrame:
    """What is computed for each prompt, and how much of it is wasted."""
    is_causal = _is_causal(session)
    counts = [batches.count_cells(mask, causal=is_causal) for mask in batches.hides_padding(tokens, pad)]
    future = {"wasted: future": [count.future for count in counts]} if is_causal else {}
    return pd.DataFrame(
        {
            "line": batch.lines,
            "prompt": [_short(text) for text in batch.texts],
            "tokens": [len(prompt) for prompt in batch.prompts],
            "padding": (tokens == pad).sum(1),
            "cells of use": [count.used for count in counts],
            "wasted: padding": [count.wasted for count in counts],
            **future,
            "wasted": [f"{(count.future + count.wasted) / tokens.shape[1] ** 2:.0%}" for count in counts],
        }
    )


def _is_causal(session: Session) -> bool:
    """Whether the prompts are read by causal attention; sources, and what an encoder-only model reads, aren't."""
    return session.config.is_causal and not session.source


def _short(text: str) -> str:
    return text if len(text) <= 32 else f"{text[:31]}…"


def _masks(session: Session, batch: PromptBatch, tokens: np.ndarray, pad: int, row: int) -> None:
    """The padding mask of one prompt; for a model with a causal mask that, too, and both at once."""
    padding, causal = batches.hides_padding(tokens, pad)[row], batches.hides_future(tokens.shape[1])
    labels = batches.token_labels(tokens[row], batch.tokenizer, pad)
    filled = int((tokens[row] == pad).sum())
    where = "last" if page_state().pad_side == "right" else "first"
    columns = {0: "This is the longest prompt, so it has none.", 1: f"Here it is the {where} column."}
    hidden = columns.get(filled, f"Here they are the {where} {filled} columns.")
    table = {"padding mask": padding}
    panels = [
        MaskPanel("Its padding mask", labels, padding, f"The columns of padding are hidden in every row. {hidden}")
    ]
    if session.config.is_causal:
        table |= {"causal mask": causal, "both": causal & padding}
        panels += [
            MaskPanel(title, labels, mask, words)
            for title, mask, words in (
                ("The causal mask", causal, "The same for every prompt: it doesn't depend on padding."),
                ("Both: causal and padding", causal & padding, "A key is visible only where both masks allow it."),
            )
        ]
    masks([replace(panel, words=f"{panel.words} {_hidden(panel.mask)}") for panel in panels], key="batch_masks")
    if filled:
        st.markdown(_why(session, batch.prompts[row], tokens[row] != pad, padding, causal))
    else:
        others = "Pick a shorter one" if (tokens == pad).any() else "Add one of another length"
        st.markdown(f"This prompt has no padding. {others} to see the effect of a padding mask.")
    offer_data(
        lambda: matrix_table(table, labels, labels),
        "These masks as a table",
        f"{session.file_name}-batch-masks-line{batch.lines[row]}.csv",
    )


def _hidden(mask: np.ndarray) -> str:
    return f"Of {counted(mask.size, 'cell')} here, {int((~mask).sum()):,} are hidden."


def _why(session: Session, prompt: tuple[int, ...], real: np.ndarray, padding: np.ndarray, causal: np.ndarray) -> str:
    """What padding does to a causal model and to an encoder, for this prompt, which has some."""
    filled, side = int((~real).sum()), page_state().pad_side
    by_causal = int((causal & ~padding)[real].sum())
    to_encoder = int((~padding)[real].sum())
    if not session.config.is_causal:
        return (
            "This encoder has no causal mask: **only the padding mask keeps padding from its tokens**, in "
            f"{counted(to_encoder, 'cell')} here. {_tried(session, prompt, filled, side)}"
        )
    if side == "right":
        general = (
            "**Padding on the right never matters to the real tokens of a causal model**: it stands after them, where "
            "the causal mask hides it anyway."
        )
    else:
        general = (
            "**Padding on the left stands before the real tokens**, where a causal mask lets them look. So even a "
            "causal model needs the padding mask then. It also moves every real token to a later position."
        )
    return (
        f"{general} In the rows of real tokens the padding mask hides {counted(by_causal, 'cell')} that the causal "
        "mask leaves visible. An encoder has no causal mask: **only the padding mask keeps padding from it**, "
        f"in {counted(to_encoder, 'cell')} here. "
        f"{_tried(session, prompt, filled, side)}"
    )


def _tried(session: Session, prompt: tuple[int, ...], filled: int, side: str) -> str:
    """What the model itself does with the padding, under several masks."""
    if not session.config.n_layers:
        return ""

    def effect(causal: bool, padding: bool) -> str:
        moved = masked_predictions.padding_effect(
            session.name, prompt, filled, side, causal=causal, padding=padding, interventions=session.interventions
        )
        return "not at all" if moved < ROUNDING_ERROR else f"by up to {100 * moved:.3g} percentage points"

    token = code(session.tokenizer.label(masked_predictions.filler_token(session.config)))
    tried = f"Tried on this model with {filled} × {token} as padding: "
    if not _is_causal(session):
        of = "the probabilities of what it writes" if session.source else "its probabilities at the real tokens"
        return f"{tried}{of} change {effect(False, True)} with the padding mask, and {effect(False, False)} without it."
    both = "" if side == "right" else f", {effect(True, True)} under both masks"
    return (
        f"{tried}its probabilities at the real tokens change {effect(True, False)} under the causal mask "
        f"alone{both}, and {effect(False, False)} with no mask, as an encoder would read."
    )
