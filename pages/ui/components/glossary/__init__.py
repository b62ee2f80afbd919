"""Shows the glossary as a searchable list, with a link from each term to its page."""

from streamlit.components.v2 import component

from pages.ui.components import guide
from pages.ui.components.assets import GLOSSARY, address, reader, script, style

_mount = component(
    "headsup_glossary",
    html=reader(__file__)("glossary.html"),
    css=style(__file__, "glossary.css") + reader(guide.__file__)("glossary_entries.css"),
    js=script("glossary"),
)


def glossary(*, key: str) -> None:
    """Show it. key: no other component of the page has it."""
    _mount(key=key, data={"terms": address(GLOSSARY)})
