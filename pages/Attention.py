"""Attention: who looks at whom, in every head, and how each weight comes about."""

import streamlit as st

from pages.ui.models import places
from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import attention as attention_view
from pages.ui.views.attention_files import offer_files

session = open_page(
    "Attention",
    "Each row is a query, the token that looks; each column is a key, a token it may look at. A row's weights sum to "
    "one. What the mask hides has no weight at all.",
)
session.require_tokens()
kind = places.chosen_attention(session.config, session.visitor.attention)
if kind is None:
    st.info("This model has no layers, and so no attention: it goes straight from a token to the next one's odds.")
else:
    looked = attention_view.choose(session, kind)
    attention_view.explain(session, looked)
    attention_view.show(session, looked)
    offer_files(session, looked)
finish()
