"""Exports the page Generate: a model that writes, or fills masks, as one HTML page."""

import streamlit as st

from pages.ui.expanders import drawer
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from transformer.api import exports
from transformer.api.pass_inputs import PassInputs
from transformer.frontend.saved_model import too_large


def offer_page(session: Session) -> None:
    """The model as an HTML file, which is made when it is asked for."""
    drawer("Export this model", "drawer_live", lambda: _show(session), icon=":material/html:")


def _show(session: Session) -> None:
    text, title = session.text, f"{session.file_name}-generation"
    if too_large(text.model.checkpoint.model):
        st.markdown("This model is too large for an HTML page that computes by itself.")
        return
    changed = "the sampling changed" if session.config.is_causal else "any word masked and filled in"
    st.markdown(
        f"The model as one HTML page that works offline: in it another prompt can be typed, {changed}, and heads "
        "ablated."
    )
    widgets.download_button(
        "Save as a page", lambda: _page(session, title), f"{title}.html", key="save_live_page", icon="html"
    )


def _page(session: Session, title: str) -> bytes:
    text, current = session.text, session.state
    looked_at = {"layer": current.layer or 0, "head": current.head or 0}
    inputs = PassInputs(text.model, text.prompt, text.source, text.interventions)
    return exports.generation_page(inputs, title=title, **looked_at).encode()
