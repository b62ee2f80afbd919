"""Shows the glossary as a searchable list, with a link from each term to its page."""

from __future__ import annotations

import streamlit as st

from pages.ui.components import guide
from pages.ui.components.sources import GLOSSARY, address, reader, script, style

_mount = st.components.v2.component(
    "headsup_glossary",
    html=reader(__file__)("glossary.html"),
    css=style(__file__, "glossary.css") + reader(guide.__file__)("entries.css"),
    js=script(__file__, "glossary.js"),
)


def glossary(*, key: str) -> None:
    """Show it. key: no other component of the page has it."""
    _mount(key=key, data={"terms": address(GLOSSARY)})
