"""Converts a visitor's choices to URL parameters, and back."""

from collections.abc import Mapping

from pages.ui.frame.visitor_choices import Visitor
from pages.ui.host.page_state import PARAMETERS, PageState, as_text


def embedded(link: str) -> str:
    """A link for a frame in another page: it opens the app without what a frame has no room for."""
    return f"{link}{'&' if '?' in link else '?'}embed=true"


def from_query(parameters: Mapping[str, str]) -> Visitor:
    """Read a link. What can't be used keeps its default, and a notice says so."""
    state = PageState.of(parameters)
    return Visitor(**state.values, notices=[*state.notices])


def everything(current: Visitor) -> dict[str, str]:
    texts = {name: as_text(name, getattr(current, name)) for name in PARAMETERS}
    return {"model": current.model} | {name: text for name, text in texts.items() if text is not None}
