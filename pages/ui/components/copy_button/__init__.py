"""Shows a button that copies a text which isn't on screen."""

from __future__ import annotations

from streamlit.components.v2 import component

from pages.ui.components.assets import reader, script, style

_mount = component(
    "headsup_copy_button",
    html=reader(__file__)("copy_button.html"),
    css=style(__file__, "copy_button.css"),
    js=script(__file__, "copy_button.js"),
)


def copy_button(label: str, text: str, *, key: str) -> None:
    """Show the button. text: what it copies."""
    _mount(key=key, data={"label": label, "text": text})
