"""Stores a visitor's membership of a room for the tab, and serves the page that a teacher's private link opens.

That link has the key behind a #, which no browser sends to a server; the page's script takes it out of the address bar.
"""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urljoin

from pydantic import Field

from pages.ui.components.assets import PRIVATE_LINK, address, custom_component, reader
from pages.ui.components.events import listening

LONGEST = 240
LINK_PATH = "room"
"""Where the page is served, beside the app's pages."""
KEY = "room_membership_kept"
_mount = custom_component(__file__)


def keep_membership(value: str, *, asks: bool, on_found: Callable[[str], None]) -> None:
    """Store a membership in the tab, or ask for the one that is stored.

    value: what to store; "" for none. asks: the session is new and doesn't know; nothing is stored, and on_found is
    called before another run with 32 hexadecimal digits that tell the browser apart, a space, and what the tab has; ""
    for none.
    """
    listeners = listening(KEY, found=(Annotated[str, Field(max_length=LONGEST)], on_found))
    _mount(data={"key": KEY, "membership": value, "asks": asks}, **listeners)


def link_page() -> str:
    """The page that takes up the private link."""
    return reader(__file__)("private_link.html").format(script=address(PRIVATE_LINK))


def private_link(page: str, code: str, key: str) -> str:
    """The link by which a teacher comes back. page: the address of one of the app's pages."""
    return f"{urljoin(page, LINK_PATH)}#{code}.{key}"
