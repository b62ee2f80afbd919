"""Draws the glossary on the page Learn."""

import streamlit as st

from pages.ui.components import glossary
from pages.ui.frame import widgets
from pages.ui.views.learn.opened_step import leave


def show() -> None:
    """Show every term of the interface with a search field, and a link to where each can be seen."""
    widgets.button("All lessons", leave, key="glossary_back", icon="list", type="tertiary")
    st.subheader("Glossary", anchor=False)
    st.caption("Point at or tap a word with a dotted underline to read its entry. *Terms* lists all on the page.")
    glossary.glossary(key="glossary")
