"""Joins rooms, stores a visitor's membership for the tab, and serves the page that a teacher's private link opens.

That link has the key behind a #, which no browser sends to a server; the page's script takes it out of the address bar.
"""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urljoin

from pydantic import BaseModel, Field

from pages.ui.components.assets import PRIVATE_LINK, address, custom_component, reader
from pages.ui.components.events import listening

LONGEST = 240
LINK_PATH = "room"
"""Where the page is served, beside the app's pages."""
KEY = "room_membership_kept"
_mount = custom_component(__file__)


class Found(BaseModel):
    """What the tab tells. membership: as it is stored; "" for none. problem: why a room wasn't joined; "" if it was."""

    membership: Annotated[str, Field(max_length=LONGEST)]
    problem: Annotated[str, Field(max_length=400)]


def keep_membership(
    value: str, *, asks: bool, link: str, joins: tuple[str, str] | None, on_found: Callable[[Found], None]
) -> None:
    """Store a membership in the tab, ask for the one that is stored, or join a room.

    value: what to store; "" for none. asks: the session is new and doesn't know; nothing is stored, and on_found is
    called before another run. link: the code of a room that a tab without a membership joins then; "" for none. joins:
    a code that was typed, after something that tells this wish from others with the same code.
    """
    wish = {"id": joins[0], "code": joins[1]} if joins else None
    data = {"key": KEY, "membership": value, "asks": asks, "link": link, "joins": wish}
    _mount(data=data, **listening(KEY, found=(Found, on_found)))


def link_page() -> str:
    """The page that takes up the private link."""
    return reader(__file__)("private_link.html").format(script=address(PRIVATE_LINK))


def private_link(page: str, code: str, key: str) -> str:
    """The link by which a teacher comes back. page: the address of one of the app's pages."""
    return f"{urljoin(page, LINK_PATH)}#{code}.{key}"
