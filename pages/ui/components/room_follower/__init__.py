"""Follows a room for its teacher: runs the fragment that it stands in when the room is no longer as that has drawn it.

It shows nothing, unless the room can't be reached.
"""

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening

_mount = custom_component(__file__)


def follow_room(code: str, member: str, version: str, *, seconds_left: int = 0, key: str) -> None:
    """Listen to a room's events.

    member: the visitor's key. version: what is drawn; "" for nothing yet. seconds_left: to answer, as
    drawn; as long as there are some, the fragment runs each second.
    """
    data = {"key": key, "membership": {"code": code, "key": member}, "version": version, "left": seconds_left}
    _mount(data=data, **listening(key))
