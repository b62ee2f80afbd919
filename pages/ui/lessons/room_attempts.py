"""Limits how often somebody can try codes of rooms, of which only the wrong ones count."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cachetools import LRUCache

from pages.ui.lessons.room import RoomError

VISITOR, ADDRESS, ALL = (10, 0.1), (600, 0.2), (3_000, 1.0)
"""Wrong codes of a visitor, of an address (as of a lecture hall) and of all: so many at once, and so many a second."""
REMEMBERED = 20_000
"""Visitors and addresses whose wrong codes are counted: those of the last ones."""


class Attempts:
    """Wrong codes by who tried them. Safe from any thread. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: LRUCache[str, tuple[float, float]] = LRUCache(REMEMBERED)
        """Of each the wrong codes that aren't forgiven yet, and when that was counted."""

    def check(self, visitor: str, address: str) -> None:
        """Whether another code may be tried. Raises: RoomError."""
        with self._lock:
            if any(self._level(who, rate) > most - 1 for who, (most, rate) in _counted(visitor, address)):
                raise RoomError("Too many wrong codes were tried. Check the code, and try again in a minute.")

    def add_wrong(self, visitor: str, address: str) -> None:
        """Count a wrong code."""
        with self._lock:
            for who, (_, rate) in _counted(visitor, address):
                self._counts[who] = (self._level(who, rate) + 1, self._clock())

    def _level(self, who: str, rate: float) -> float:
        count, at = self._counts.get(who, (0.0, 0.0))
        return max(0.0, count - (self._clock() - at) * rate)


def _counted(visitor: str, address: str) -> list[tuple[str, tuple[int, float]]]:
    return [(f"visitor {visitor}", VISITOR), (f"address {address}", ADDRESS), ("all", ALL)]
