"""The parts of the page Generate: controls, the text as it is written, and its numbers as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
import torch

from pages.ui import engine
from pages.ui.components.live_text import Candidate, StripToken, live_text
from pages.ui.data import offer_data
from pages.ui.sidebar import Session
from pages.ui.state import PACES, Visitor, tied, visitor, write_url
from pages.ui.writing import Writer
from transformer import Sampling, sampling_distribution

TICK = 0.2
"""Seconds between two looks at a text that is being written."""
TURN = 0.12
"""Of those, the seconds in which it is written on; the rest is for showing it and for other visitors."""


def controls(session: Session) -> None:
    """Buttons that write, the dials of sampling, and whose attention is drawn."""
    writer = session.writer
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button("Generate", type="primary", icon=":material/play_arrow:", disabled=writer.live,
                  on_click=_generate, help="Writes as many tokens as the dial under Sampling says.")  # fmt: skip
        st.button("Step", icon=":material/skip_next:", disabled=writer.live, on_click=_step,
                  help="Writes one token.")  # fmt: skip
        st.button("Stop", icon=":material/stop:", disabled=not writer.live, on_click=_stop)
        st.button("Clear", icon=":material/backspace:", disabled=not writer.written, on_click=_clear,
                  help="Takes away what was written and keeps the prompt.")  # fmt: skip
        with st.popover("Sampling", icon=":material/tune:", help="How the next token is drawn."):
            _sampling_dials()
        _head_dials(session)


def live_view(session: Session) -> None:
    """The text, its candidates and its attention; while it is written, it runs by itself, without the page."""
    interval = max(TICK, 1 / PACES[session.visitor.pace]) if session.writer.live else None
    st.fragment(_live_view, run_every=interval)(session)


def details(session: Session) -> None:
    """The text's numbers, token by token, as a table and as a file."""
    writer = session.writer
    labels = engine.tokenizer(session.name).labels(token.id for token in writer.written)
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
    offer_data(table, "What was written, as a table", f"{session.name}-text.csv", empty="Nothing is written yet.")


def sampling(current: Visitor) -> Sampling:
    """The dials as the engine takes them."""
    return Sampling(
        temperature=current.temperature,
        top_k=current.top_k or None,
        top_p=current.top_p if current.top_p < 1 else None,
        seed=current.seed,
    )


def _sampling_dials() -> None:
    st.slider("Temperature", 0.0, 2.0, step=0.05, **tied("temperature"),
              help="Logits are divided by it. 0 always takes the likeliest token; "
                   "above 1 flattens the odds.")  # fmt: skip
    st.slider("Top-k", 0, 100, **tied("top_k"), help="Only the k likeliest tokens can be drawn. 0 turns it off.")
    st.slider("Top-p", 0.05, 1.0, step=0.05, **tied("top_p"),
              help="Only the likeliest tokens that together reach this probability. 1 turns it off.")  # fmt: skip
    st.number_input("Seed", 0, 2**31 - 1, **tied("seed"),
                    help="The same seed, prompt and dials always write the same text.")  # fmt: skip
    st.slider("Number of tokens", 1, 500, **tied("tokens"))
    st.select_slider("Pace", list(PACES), **tied("pace"), format_func=_pace_in_words)


def _pace_in_words(pace: str) -> str:
    return "as fast as it can" if PACES[pace] == float("inf") else f"{PACES[pace]:.0f} tokens a second"


def _head_dials(session: Session) -> None:
    config = session.config
    if not config.n_layers:
        return
    st.selectbox("Layer", range(config.n_layers), **tied("layer"), format_func="layer {}".format, width=108,
                 label_visibility="collapsed")  # fmt: skip
    st.selectbox("Head", range(config.n_heads), **tied("head"), format_func="head {}".format, width=108,
                 label_visibility="collapsed")  # fmt: skip


def _live_view(session: Session) -> None:
    writer, current = session.writer, session.visitor
    if st.session_state.pop("picked", False):
        st.rerun()  # buttons, table and link are outside of this view
    was_live = writer.live
    if was_live:
        writer.write(sampling(current), TURN, PACES[current.pace])
    current.text = engine.tokenizer(session.name).decode([token.id for token in writer.written])
    _show(session)
    if was_live and not writer.live:
        st.rerun()
    if not writer.live:
        write_url()  # a click on a token runs this view alone


def _show(session: Session) -> None:
    writer, current = session.writer, session.visitor
    tokens = writer.tokens
    selected = _selected(writer, current)
    if writer.live and writer.newest is not None and selected == len(tokens) - 1:
        logits, rows = writer.newest
    else:
        logits, rows = engine.next_token(session.name, tokens[:selected])
    weights = rows[current.layer, current.head] if len(rows) else None
    chosen = tokens[selected] if selected < len(tokens) else None
    live_text(
        key="live_text",
        tokens=_strip_tokens(session),
        selected=selected,
        query=selected - 1,
        weights=weights,
        weights_start=0 if weights is None else selected - len(weights),
        candidates=_candidates(session, logits, chosen),
        candidates_title=_candidates_title(session, selected),
        status=_status(writer),
        live=writer.live,
        layer_head=f"layer {current.layer}, head {current.head}",
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
    return tokens - 1 if writer.live and writer.written else tokens


def _strip_tokens(session: Session) -> list[StripToken]:
    tokenizer, writer = engine.tokenizer(session.name), session.writer
    prompt = [
        StripToken(tokenizer.label(token), tokenizer.decode([token]), token, None, None, None, written=False)
        for token in writer.prompt
    ]
    return prompt + [
        StripToken(
            tokenizer.label(token.id), tokenizer.decode([token.id]), token.id,
            token.probability, token.rank, token.entropy, written=True, picked=token.picked,
        )
        for token in writer.written
    ]  # fmt: skip


def _candidates(session: Session, logits: np.ndarray, chosen: int | None) -> list[Candidate]:
    drawn = sampling_distribution(torch.from_numpy(logits), sampling(session.visitor)).numpy()
    own = sampling_distribution(torch.from_numpy(logits), Sampling()).numpy()
    label = engine.tokenizer(session.name).label
    likeliest = np.argsort(-own, kind="stable")[:10]
    return [
        Candidate(label(int(i)), int(i), float(own[i]), float(drawn[i]), chosen=int(i) == chosen) for i in likeliest
    ]


def _candidates_title(session: Session, selected: int) -> str:
    tokens = session.writer.tokens
    label = engine.tokenizer(session.name).label
    before = label(tokens[selected - 1])
    if selected == len(tokens):
        return f"What may come after {before}"
    return f"What could have come after {before}"


def _status(writer: Writer) -> str:
    if writer.live:
        start = writer.target - len(writer.written)
        return f"Writing: {len(writer.written)} tokens, {start} to go."
    if writer.written:
        return f"{len(writer.written)} tokens written. Click one to see how it was chosen."
    return "Nothing is written yet. These are the model's odds for the first token after the prompt."


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
    visitor().step = index


def _pick(index: int, token_id: int) -> None:
    """Write another token at a place, and go on from there when *Generate* or *Step* is pressed."""
    visitor().step = None
    st.session_state["writer"].pick(index, token_id)
    st.session_state["picked"] = True
