"""Train: choose a task or a text and a small architecture, and watch its attention form."""

import streamlit as st

from pages.ui.models import own_training as training
from pages.ui.shell import model_files
from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import train_choice
from pages.ui.views import train_progress as train_view

open_page(
    "Train",
    "Train a tiny transformer here and now. Its loss falls, its samples begin to make sense, and the attention of "
    "one fixed text takes shape, head by head.",
    reads_prompt=False,
)
if training.slot().job is None:
    choice = train_choice.choose()
    bearable = choice is not None and train_choice.costs(choice)
    pressed = st.button("Train", type="primary", icon=":material/model_training:", disabled=not bearable)
    if pressed and bearable and train_choice.start(choice):
        st.rerun()
else:
    train_view.watch()
model_files.exchange()
finish()
