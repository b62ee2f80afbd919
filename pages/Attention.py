"""Attention: who looks at whom, in every head, and how each weight comes about."""

import streamlit as st

from pages.ui import attention_view
from pages.ui.sidebar import finish, open_page

session = open_page(
    "Attention",
    "Each row is a query, the token that looks; each column is a key, a token it may look at. A row's weights sum to "
    "one. The future is hidden: no token sees what comes after it.",
)
session.require_tokens()
if not session.config.n_layers:
    st.info("This model has no layers, and so no attention: it goes straight from a token to the next one's odds.")
else:
    shown = attention_view.choose(session)
    attention_view.heads(session, shown)
    attention_view.weights(session, shown)
    attention_view.by_hand(session, shown)
    attention_view.steps_before(session, shown)
    attention_view.table(session, shown)
finish()
