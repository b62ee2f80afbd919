"""Shows the tour, the glossary's tooltips and presentation mode, on every page."""

from collections.abc import Callable

from streamlit.components.v2 import component

from pages.ui.components.assets import GLOSSARY, address, reader, script
from pages.ui.components.events import listening

KEY = "guide"
_read = reader(__file__)
_STYLES = {
    "overlay_css": _read("overlay.css") + _read("glossary_entries.css"),
    "page_css": _read("presentation_page.css"),
    "presented_css": _read("presentation_instruments.css"),
}
_mount = component(
    "headsup_guide", html=_read("guide.html") + _read("overlay.html").format(**_STYLES), js=script("guide")
)


def guide(*, tour_requests: int, on_present: Callable[[bool], None]) -> None:
    """Have it at hand; the shell's menu opens its parts.

    tour_requests: how often the tour has been asked for by other means than that menu. on_present: called, before
    another run, when the page begins or ceases to be presented, with whether figures have room for large labels now.
    """
    data = {"key": KEY, "terms": address(GLOSSARY), "tour_requests": tour_requests}
    _mount(data=data, **listening(KEY, presenting=(bool, on_present)))
