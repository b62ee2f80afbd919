"""Python draws something of model and prompt, and a dial."""

import os
import time
from pathlib import Path

import streamlit as st

from pages.ui.host.exchange import exchange, page_state

GATE = Path(os.environ["GATE"])
"""While there is such a file, a run doesn't end."""

state = page_state()
st.title("Positions")
key = f"length of {exchange().reading}"
st.slider(
    "Length", 2, 512, state.length, key=key, on_change=lambda: exchange().change({"length": st.session_state[key]})
)
st.button("Another model", on_click=lambda: exchange().change({"model": "induction", "prompt": "A B A"}))
st.button("A lesson's view", on_click=lambda: exchange().open({"model": "stories", "prompt": "Once", "length": "8"}))
while GATE.exists():
    time.sleep(0.05)
st.text(f"Run {st.session_state['runs']}: {state.model}, {state.prompt}, {state.length}")
