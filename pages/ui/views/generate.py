"""The parts of the page Generate: controls, the text as it is written, and its numbers as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
import torch

from pages.ui.components.focus import keep_focus
from pages.ui.components.live_text import Candidate, StripToken, live_text
from pages.ui.models import activations, library, places
from pages.ui.models.writer import Writer
from pages.ui.shell import widgets
from pages.ui.shell.choices import PACES, Visitor
from pages.ui.shell.sidebar import Session
from pages.ui.shell.state import REWRITE_EVERY, visitor, write_address
from pages.ui.shell.widgets import Tie
from pages.ui.tables import offer_data
from transformer import Sampling, Tokenizer, sampling_distribution

TICK = 0.2
"""Seconds between two looks at a text that is being written."""
TURN = 0.12
"""Of those, the seconds in which it is written on; the rest is for showing it and for other visitors."""
LOOKS_AT = {"cross": "at the source", "decoder": "at its own words"}
"""The attentions of an encoder–decoder that choose the next token."""
WRITING = "writing"
"""The key of the buttons that start and stop it."""
ARROW = " → "
"""Stands for the start token, between the source and what is written from it."""


def controls(session: Session) -> None:
    """Buttons that write, the dials of sampling, and whose attention is drawn."""
    writer = session.writer
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=WRITING):
        over = writer.live or writer.finished
        st.button("Generate", type="primary", icon=":material/play_arrow:", disabled=over,
                  on_click=_generate, help="Writes as many tokens as the dial under Sampling says.")  # fmt: skip
        st.button("Step", icon=":material/skip_next:", disabled=over, on_click=_step,
                  help="Writes one token.")  # fmt: skip
        st.button("Stop", icon=":material/stop:", disabled=not writer.live, on_click=_stop)
        st.button("Clear", icon=":material/backspace:", disabled=not writer.written, on_click=_clear,
                  help="Takes away what was written and keeps the prompt.")  # fmt: skip
        with st.popover("Sampling", icon=":material/tune:", help="How the next token is drawn."):
            _sampling_dials()
        _head_dials(session)
    keep_focus(WRITING)


def live_view(session: Session) -> None:
    """The text, its candidates and its attention; while it is written, it runs by itself, without the page."""
    interval = max(TICK, 1 / PACES[session.visitor.pace]) if session.writer.live else None
    st.fragment(_live_view, run_every=interval)(session)


def details(session: Session) -> None:
    """The text's numbers, token by token, as a table and as a file."""
    writer = session.writer
    labels = library.tokenizer(session.name).labels(token.id for token in writer.written)
    table = pd.DataFrame(
        {
            "position": range(len(writer.prompt), len(writer.prompt) + len(writer.written)),
            "token": labels,
            "id": [token.id for token in writer.written],
            "probability": [token.probability for token in writer.written],
            "rank": [token.rank for token in writer.written],
            "entropy (nats)": [token.entropy for token in writer.written],
        }
    )
    offer_data(lambda: table, "What was written, as a table", f"{session.name}-text.csv",
               empty="Nothing is written yet.")  # fmt: skip


def sampling(current: Visitor) -> Sampling:
    """The dials as the engine takes them."""
    return Sampling(
        temperature=current.temperature,
        top_k=current.top_k or None,
        top_p=current.top_p if current.top_p < 1 else None,
        seed=current.seed,
    )


def _sampling_dials() -> None:
    widgets.slider("Temperature", 0.0, 2.0, "temperature", step=0.05,
                   help="Logits are divided by it. 0 always takes the likeliest token; "
                        "above 1 flattens the odds.")  # fmt: skip
    widgets.slider("Top-k", 0, 100, "top_k", help="Only the k likeliest tokens can be drawn. 0 turns it off.")
    widgets.slider("Top-p", 0.05, 1.0, "top_p", step=0.05,
                   help="Only the likeliest tokens that together reach this probability. 1 turns it off.")  # fmt: skip
    widgets.number_input("Seed", 0, 2**31 - 1, "seed",
                         help="The same seed, prompt and dials always write the same text.")  # fmt: skip
    widgets.slider("Number of tokens", 1, 500, "tokens")
    widgets.select_slider("Pace", PACES, "pace", _pace_in_words)


def _pace_in_words(pace: str) -> str:
    return "as fast as it can" if PACES[pace] == float("inf") else f"{PACES[pace]:.0f} tokens a second"


def _head_dials(session: Session) -> None:
    config, kind = session.config, _attention(session)
    if kind is None:
        return
    if kind != "self":
        widgets.selectbox("Looks at", LOOKS_AT, Tie("attention", value=kind), LOOKS_AT.get, width=170,
                          label_visibility="collapsed")  # fmt: skip
    widgets.selectbox("Layer", range(config.n_layers), "layer", "layer {}".format, width=108,
                      label_visibility="collapsed")  # fmt: skip
    widgets.selectbox("Head", range(config.n_heads), "head", "head {}".format, width=108,
                      label_visibility="collapsed")  # fmt: skip


def _attention(session: Session) -> str | None:
    """The attention whose newest row is drawn; the encoder's has none."""
    return places.chosen_attention(session.config, session.visitor.attention, among=("self", *reversed(LOOKS_AT)))


def _live_view(session: Session) -> None:
    writer, current = session.writer, session.visitor
    if st.session_state.pop("picked", False):
        st.rerun()  # buttons, table and link are outside of this view
    was_live = writer.live
    if was_live:
        writer.write(sampling(current), TURN, PACES[current.pace])
    current.text = library.tokenizer(session.name).decode([token.id for token in writer.written])
    _show(session)
    if was_live and not writer.live:
        st.rerun()
    write_address("address_live", at_most_every=REWRITE_EVERY if writer.live else 0.0)


def _show(session: Session) -> None:
    writer, current = session.writer, session.visitor
    tokens, kind = writer.tokens, _attention(session)
    selected = _selected(writer, current)
    if writer.live and writer.newest is not None and selected == len(tokens) - 1:
        logits, rows = writer.newest
    else:
        logits, rows = activations.next_token(session.name, tokens[:selected], session.source)
    weights = rows[kind][min(current.layer, len(rows[kind]) - 1), current.head] if kind else None
    chosen = tokens[selected] if selected < len(tokens) else None
    before = len(session.source)  # the source stands before the text
    live_text(
        key="live_text",
        tokens=_strip_tokens(session),
        selected=before + selected,
        query=before + selected - 1,
        weights=weights,
        weights_start=0 if weights is None or kind == "cross" else before + selected - len(weights),
        candidates=_candidates(session, logits, chosen),
        candidates_title=_candidates_title(session, selected),
        status=_status(session),
        live=writer.live,
        layer_head=f"{'cross-attention, ' if kind == 'cross' else ''}layer {current.layer}, head {current.head}",
        on_select=_select,
        on_pick=_pick,
    )


def _selected(writer: Writer, current: Visitor) -> int:
    """The token inspected: the visitor's choice; else the newest while writing, and then the one to come."""
    tokens = len(writer.prompt) + len(writer.written)
    if current.step is not None and not len(writer.prompt) <= current.step < tokens:
        current.step = None
    if current.step is not None:
        return current.step
    at_newest = writer.finished or (writer.live and writer.written)  # nothing comes after an end token
    return tokens - 1 if at_newest else tokens


def _strip_tokens(session: Session) -> list[StripToken]:
    """The source, if there is one, the prompt, and what was written."""
    tokenizer, writer = library.tokenizer(session.name), session.writer
    read = [*session.source, *writer.prompt]
    given = [
        StripToken(tokenizer.label(token), tokenizer.piece(token, first=not i) or ARROW, token, None, None, None,
                   written=False)
        for i, token in enumerate(read)
    ]  # fmt: skip
    return given + [
        StripToken(
            tokenizer.label(token.id), _piece(tokenizer, token.id, first=bool(session.source) and not i), token.id,
            token.probability, token.rank, token.entropy, written=True, picked=token.picked,
        )
        for i, token in enumerate(writer.written)
    ]  # fmt: skip


def _piece(tokenizer: Tokenizer, token_id: int, *, first: bool) -> str:
    """What a token adds to the strip; a special one, which adds nothing to a text, by its name."""
    return tokenizer.piece(token_id, first=first) or f" {tokenizer.label(token_id)}"


def _candidates(session: Session, logits: np.ndarray, chosen: int | None) -> list[Candidate]:
    drawn = sampling_distribution(torch.tensor(logits), sampling(session.visitor)).numpy()
    own = sampling_distribution(torch.tensor(logits), Sampling()).numpy()
    label = library.tokenizer(session.name).label
    likeliest = np.argsort(-own, kind="stable")[:10]
    return [
        Candidate(label(int(i)), int(i), float(own[i]), float(drawn[i]), chosen=int(i) == chosen) for i in likeliest
    ]


def _candidates_title(session: Session, selected: int) -> str:
    tokens = session.writer.tokens
    label = library.tokenizer(session.name).label
    before = label(tokens[selected - 1])
    if selected == len(tokens):
        return f"What may come after {before}"
    return f"What could have come after {before}"


def _status(session: Session) -> str:
    writer = session.writer
    if writer.live:
        start = writer.target - len(writer.written)
        return f"Writing: {_counted(len(writer.written))}, {start} to go."
    if writer.finished:
        return f"{_counted(len(writer.written))} written, the last of which ends the text. Click one to look into it."
    if writer.written:
        return f"{_counted(len(writer.written))} written. Click one to see how it was chosen."
    what = "of what it writes" if session.source else "after the prompt"
    return f"Nothing is written yet. These are the model's odds for the first token {what}."


def _counted(tokens: int) -> str:
    return f"{tokens} token{'' if tokens == 1 else 's'}"


def _generate() -> None:
    current, writer = visitor(), st.session_state["writer"]
    current.step = None
    writer.start(current.tokens)


def _step() -> None:
    current, writer = visitor(), st.session_state["writer"]
    current.step = None
    writer.write_one(sampling(current))


def _stop() -> None:
    st.session_state["writer"].stop()


def _clear() -> None:
    visitor().step = None
    st.session_state["writer"].clear()


def _select(index: int) -> None:
    visitor().step = index - len(st.session_state["writer"].source)


def _pick(index: int, token_id: int) -> None:
    """Write another token at a place; *Generate* and *Step* continue from there."""
    visitor().step = None
    writer = st.session_state["writer"]
    writer.pick(index - len(writer.source), token_id)
    st.session_state["picked"] = True
