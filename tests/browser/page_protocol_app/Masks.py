"""Python draws something of model and prompt, and a dial."""

import os
import time
from pathlib import Path

import streamlit as st

from pages.ui.host.exchange import exchange, page_state

GATE = Path(os.environ["GATE"])
"""While there is such a file, a run doesn't end."""

state = page_state()
st.title("Masks")
key = f"tokens of {exchange().reading}"
st.slider(
    "Tokens",
    8,
    512,
    state.positions_shown,
    key=key,
    on_change=lambda: exchange().change({"positions_shown": st.session_state[key]}),
)
st.button("Another model", on_click=lambda: exchange().change({"model": "induction", "prompt": "A B A"}))
st.button(
    "A lesson's view", on_click=lambda: exchange().open({"model": "stories", "prompt": "Once", "positions_shown": "8"})
)
while GATE.exists():
    time.sleep(0.05)
st.text(f"Run {st.session_state['runs']}: {state.model}, {state.prompt}, {state.positions_shown}")
