"""A small app around the components, fed with made-up numbers: only for the browser tests, no model anywhere."""

import math
import sys
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.ui.components.head_grid import head_grid
from pages.ui.components.live_text import Candidate, StripToken, live_text
from pages.ui.components.loss_chart import loss_chart

st.set_page_config(page_title="Components", layout="wide")
SETTINGS = dict(parse_qsl(st.text_input("Settings", st.query_params.get("settings", ""), key="settings")))
INTERVAL = float(SETTINGS.get("interval", 0.125))
TOTAL = int(SETTINGS.get("total", 40))
BURST = int(SETTINGS.get("burst", 1))  # tokens an update

PROMPT = "<script>alert(1)</script>\n"
TEXT = (
    "Aquí me pongo a cantar\nal compás de la vigüela,\nque el hombre que lo desvela\nuna pena extraordinaria,\n"
    "como la ave solitaria\ncon el cantar se consuela.\n"
) * 4
VOCABULARY = sorted(set(PROMPT + TEXT))
CONTEXT = 64


def label(character: str) -> str:
    return {" ": "␣", "\n": "↵"}.get(character, character)


def made_up(index: int) -> float:
    """A number between 0 and 1 that depends on nothing but the index."""
    return 0.5 + 0.5 * math.sin(index * 12.9898)


def token(index: int) -> StripToken:
    written = index >= len(PROMPT)
    character = TEXT[(index - len(PROMPT)) % len(TEXT)] if written else PROMPT[index]
    picked = st.session_state.picks.get(index)
    character = character if picked is None else VOCABULARY[picked]
    probability = made_up(index) ** 0.4 if written else None
    return StripToken(
        label=label(character),
        text=character,
        id=VOCABULARY.index(character),
        probability=probability,
        rank=1 + int(5 * (1 - probability)) if written else None,
        entropy=2 * (1 - probability) if written else None,
        written=written,
        picked=picked is not None,
    )


def candidates_for(index: int, chosen: int) -> list[Candidate]:
    probabilities = np.exp(-0.6 * np.arange(10) * made_up(index))
    probabilities /= probabilities.sum() * 1.05
    ids = [(chosen + 7 * step) % len(VOCABULARY) for step in range(10)]
    sampled = np.where(np.arange(10) < 6, probabilities**1.5, 0)
    sampled /= sampled.sum()
    return [
        Candidate(label(VOCABULARY[i]), i, float(p), float(s), chosen=i == chosen)
        for i, p, s in zip(ids, probabilities, sampled, strict=True)
    ]


def begin_anew() -> None:
    """As it was when the page was opened."""
    st.session_state.update(written=0, picks={}, selected=None, live=False, events=[])
    st.session_state.update(page_runs=0, fragment_runs=0)


def start() -> None:
    st.session_state.update(written=0, picks={}, selected=None, live=True)


def stop() -> None:
    st.session_state.live = False


def on_select(index: int) -> None:
    st.session_state.selected = index
    st.session_state.events.append(f"select {index}")


def on_pick(index: int, token_id: int) -> None:
    st.session_state.picks = {**st.session_state.picks, index: token_id}
    st.session_state.written = index - len(PROMPT) + 1
    st.session_state.selected = index
    st.session_state.events.append(f"pick {index} {token_id}")


def draw() -> None:
    state = st.session_state
    state.fragment_runs += 1
    if state.live:
        state.written = min(state.written + BURST, TOTAL)
    if state.live and state.written >= TOTAL:
        state.live = False
        state.ended = True
    tokens = [token(index) for index in range(len(PROMPT) + state.written)]
    last = len(tokens) - 1
    selected = last if state.live or state.selected is None else min(state.selected, last)
    query = selected - 1
    begin = max(0, query - CONTEXT + 1)
    weights = np.array([made_up(3 * index + query) ** 6 for index in range(begin, query + 1)])
    live_text(
        tokens=tokens,
        selected=selected,
        weights=weights / weights.sum(),
        weights_start=begin,
        query=query,
        candidates=candidates_for(selected, tokens[selected].id),
        candidates_title=f"Candidates for token {selected}",
        status=f"writing… {state.written} of {TOTAL}" if state.live else f"{state.written} tokens written",
        live=state.live,
        layer_head="layer 2, head 3",
        key="text",
        on_select=on_select,
        on_pick=on_pick,
    )
    st.caption(
        f"events: {'; '.join(state.events)} | page runs {state.page_runs} | fragment runs {state.fragment_runs}"
    )
    if state.pop("ended", False):
        st.rerun()  # a whole run, without run_every: the timer in the browser stops


def writing_page() -> None:
    if "page_runs" not in st.session_state:
        begin_anew()
    st.session_state.page_runs += 1
    st.title("Components")
    with st.container(horizontal=True):
        st.button("Write", on_click=start, type="primary")
        st.button("Stop", on_click=stop)
        st.button("Begin anew", on_click=begin_anew)
    st.fragment(draw, run_every=INTERVAL if st.session_state.live else None)()


def grid_page() -> None:
    layers, heads, size = (int(SETTINGS.get(*given)) for given in (("layers", 4), ("heads", 6), ("size", 40)))
    st.title("Heads")
    shift = st.slider("Sharpness", 1, 9, 3)
    scores = np.random.default_rng(0).normal(size=(layers, heads, size, size)) * shift
    hidden = np.triu(np.ones((size, size), bool), 1)
    scores[..., hidden] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    head_grid(
        patterns=weights / weights.sum(-1, keepdims=True),
        hidden=hidden,
        key="heads",
    )


def loss_page() -> None:
    st.title("Losses")
    losses = [(step, 2 + 2 * math.exp(-step / 40)) for step in range(0, 101, 5)]
    loss_chart(
        train=losses, validation=losses[::4], references={"guessing": 4.2}, steps=120, here=50, key="loss"
    )


if __name__ == "__main__":
    demo_pages = [
        st.Page(writing_page, title="Writing", default=True),
        st.Page(grid_page, title="Heads"),
        st.Page(loss_page, title="Losses"),
    ]
    for demo_page in demo_pages:
        st.page_link(demo_page)
    st.navigation(demo_pages, position="hidden").run()
