"""Scrolls a page to its top when something else is opened on it."""

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__)


def scroll_to_top(opened: str) -> None:
    """Scroll to the top if something else was open in this tab before. opened: names what is open now."""
    _mount(key="page_top", data={"opened": opened})
