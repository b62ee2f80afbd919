"""Exports the page Generate: a model that writes, as one HTML page."""

from __future__ import annotations

import streamlit as st

from pages.ui.frame.page import Session
from transformer.api import exports
from transformer.frontend.live_page import too_large


def offer_page(session: Session) -> None:
    """The model as an HTML file, which is made when it is asked for."""
    text, title = session.text, f"{session.file_name}-generation"
    opened = st.expander("Export this model", icon=":material/html:", key="drawer_live", on_change="rerun")
    if not opened.open:
        return
    with opened:
        if too_large(text.model.checkpoint.model):
            st.markdown("This model is too large for an HTML page that writes by itself.")
            return
        st.markdown(
            "The model as one HTML page that works offline: in it another prompt can be typed, the sampling changed, "
            "and heads ablated."
        )
        st.download_button(
            "Save as a page",
            lambda: exports.generation_page(
                text.model, text.prompt, text.source, text.interventions, title=title
            ).encode(),
            f"{title}.html",
            key="save_live_page",
            on_click="ignore",
            icon=":material/html:",
        )
