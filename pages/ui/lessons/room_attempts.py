"""Limits how often somebody can try codes of rooms, of which only the wrong ones count."""

from pages.ui.lessons.room import RoomError
from pages.ui.models.shared_redis import Buckets

VISITOR, ADDRESS, ALL = (10, 0.1), (600, 0.2), (3_000, 1.0)
"""Wrong codes of a visitor, of an address (as of a lecture hall) and of all: so many at once, and so many a second."""


class Attempts:
    """Wrong codes by who tried them. Safe from any thread. buckets: where they are counted."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def check(self, visitor: str, address: str) -> None:
        """Whether another code may be tried. Raises: RoomError."""
        counted = _counted(visitor, address)
        left = self._buckets.fill(dict.fromkeys(counted, 0.0))
        if any(left[who] * rate > most - 1 for who, (most, rate) in counted.items()):
            raise RoomError("Too many wrong codes were tried. Check the code, and try again in a minute.")

    def add_wrong(self, visitor: str, address: str) -> None:
        self._buckets.fill({who: 1 / rate for who, (_, rate) in _counted(visitor, address).items()})


def _counted(visitor: str, address: str) -> dict[str, tuple[int, float]]:
    return {f"codes of visitor {visitor}": VISITOR, f"codes of address {address}": ADDRESS, "codes of all": ALL}
