"""The keyboard's place among buttons: it isn't lost when the button that has it is disabled."""

from __future__ import annotations

import streamlit as st

from pages.ui.components.sources import script

_mount = st.components.v2.component("headsup_focus", js=script(__file__, "focus.js"))


def keep_focus(container: str) -> None:
    """When a button in a container is disabled while it has the focus, move that to the first button in it that isn't.

    container: its key. What is pressed by keyboard to start something is then followed by what stops it, and back.
    """
    _mount(key=f"focus_{container}", data={"container": container})
