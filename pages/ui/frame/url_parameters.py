"""Converts a visitor's choices to URL parameters, and back."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from pages.ui.frame.visitor_choices import Selection, Visitor, fields
from pages.ui.host.page_state import LONGEST_ADDRESS, PARAMETERS, PageState, as_text

SELECTION_FIELDS = tuple(fields(Selection))
"""What the browser holds."""
TOO_LONG = {
    name: row["called"]
    for name, row in sorted(PARAMETERS.items(), key=lambda each: each[1].get("left_out", 0))
    if "left_out" in row
}
"""The texts that a link may have no room for, in the order in which they are left out, and what they are called."""


def embedded(link: str) -> str:
    """A link for a frame in another page: it opens the app without what a frame has no room for."""
    return f"{link}{'&' if '?' in link else '?'}embed=true"


def from_query(parameters: Mapping[str, str]) -> Visitor:
    """Read a link. What can't be used keeps its default, and a notice says so."""
    state = PageState.of(parameters)
    return Visitor(**state.values, notices=[*state.notices])


def to_query(current: Visitor) -> dict[str, str]:
    """The link's parameters: everything that differs from the default, less what makes it too long."""
    return _without(everything(current), left_out(current))


def left_out(current: Visitor) -> list[str]:
    """The texts that the link has no room for, of those in `TOO_LONG`."""
    parameters, names = everything(current), []
    for name in TOO_LONG:
        if len(urlencode(_without(parameters, names))) <= LONGEST_ADDRESS:
            break
        if parameters.get(name):  # one that is empty takes no room
            names.append(name)
    return names


def _without(parameters: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    gone = {*names, *(name for name, row in PARAMETERS.items() if not set(row.get("needs", ())).isdisjoint(names))}
    return {name: value for name, value in parameters.items() if name not in gone}


def everything(current: Visitor) -> dict[str, str]:
    texts = {name: as_text(name, getattr(current, name)) for name in PARAMETERS}
    return {"model": current.model} | {name: text for name, text in texts.items() if text is not None}
