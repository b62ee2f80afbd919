"""Shows components with made-up numbers, for browser tests only."""

import math
import sys
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.ui.components.head_grid import head_grid
from pages.ui.components.loss_chart import loss_chart

st.set_page_config(page_title="Components", layout="wide")
SETTINGS = dict(parse_qsl(st.text_input("Settings", st.query_params.get("settings", ""), key="settings")))


def grid_page() -> None:
    layers, heads, size = (int(SETTINGS.get(*given)) for given in (("layers", 4), ("heads", 6), ("size", 40)))
    st.title("Heads")
    shift = st.slider("Sharpness", 1, 9, 3)
    scores = np.random.default_rng(0).normal(size=(layers, heads, size, size)) * shift
    hidden = np.triu(np.ones((size, size), bool), 1)
    scores[..., hidden] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    head_grid(patterns=weights / weights.sum(-1, keepdims=True), hidden=hidden, key="heads")


def loss_page() -> None:
    st.title("Losses")
    losses = [(step, 2 + 2 * math.exp(-step / 40)) for step in range(0, 101, 5)]
    loss_chart(train=losses, validation=losses[::4], references={"guessing": 4.2}, steps=120, here=50, key="loss")


if __name__ == "__main__":
    demo_pages = [st.Page(grid_page, title="Heads", default=True), st.Page(loss_page, title="Losses")]
    for demo_page in demo_pages:
        st.page_link(demo_page)
    st.navigation(demo_pages, position="hidden").run()
