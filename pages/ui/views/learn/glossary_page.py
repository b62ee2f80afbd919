"""Draws the glossary on the page Learn."""

import streamlit as st

from pages.ui.components import glossary
from pages.ui.frame import widgets
from pages.ui.views.learn.opened_step import leave


def show() -> None:
    """Every term of the interface, to be searched, each with a way to where it can be seen."""
    widgets.button("All lessons", leave, key="glossary_back", icon="list", type="tertiary")
    st.subheader("Glossary", anchor=False)
    st.caption("Point at or tap a word with a dotted underline to read its entry. *Terms* lists all on the page.")
    glossary.glossary(key="glossary")
