"""The glossary as part of the page Learn."""

from __future__ import annotations

import streamlit as st

from pages.ui.components import glossary
from pages.ui.glossary import entries


def show() -> None:
    """Every term of the interface, to be searched, each with a way to where it can be seen."""
    st.subheader("Glossary", anchor=False)
    st.caption("Wherever one of these words is underlined with dots, pointing at it says what is said here. "
               "? lists those of a page.")  # fmt: skip
    glossary.glossary(entries(), key="glossary")
