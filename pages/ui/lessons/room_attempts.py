"""Limits how often somebody can try codes of rooms, of which only the wrong ones count, and join rooms anew."""

from collections.abc import Mapping

from pages.ui.lessons.room import TooOftenError
from pages.ui.shared_redis import Buckets

VISITOR, ADDRESS, ALL = (10, 0.1), (600, 0.2), (3_000, 1.0)
"""Wrong codes of a visitor, of an address (as of a lecture hall) and of all: so many at once, and so many a second."""
JOINS = (10, 0.1)
"""Joins of a visitor, which is one browser: so many at once, and so many a second."""
CLASSES, REFILL = 2, 600.0
"""Joins of a room from one address: so many times as many as it takes at once, and as many as it takes in so many
seconds. A class behind one address can join, and join anew with other browsers."""


class Attempts:
    """Wrong codes and joins by who tried. Safe from any thread. buckets: where they are counted.

    address: None where it isn't counted.
    """

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def check(self, visitor: str, address: str | None) -> None:
        """Whether another code may be tried. Raises: TooOftenError."""
        if self._is_full(_codes(visitor, address)):
            raise TooOftenError("Too many wrong codes were tried. Check the code, and try again in a minute.")

    def add_wrong(self, visitor: str, address: str | None) -> None:
        self._add(_codes(visitor, address))

    def join(self, visitor: str, address: str | None, code: str, size: int) -> None:
        """Count somebody who joins a room of a size, and hasn't been in it. Raises: TooOftenError for one too many."""
        counted: dict[str, tuple[int, float]] = {f"joins of visitor {visitor}": JOINS}
        if address is not None:
            counted[f"joins of {code} by address {address}"] = (CLASSES * size, size / REFILL)
        if self._is_full(counted):
            raise TooOftenError("This browser or your network has joined too often. Wait a minute, and join again.")
        self._add(counted)

    def _is_full(self, counted: Mapping[str, tuple[int, float]]) -> bool:
        left = self._buckets.fill(dict.fromkeys(counted, 0.0))
        return any(left[who] * rate > most - 1 for who, (most, rate) in counted.items())

    def _add(self, counted: Mapping[str, tuple[int, float]]) -> None:
        self._buckets.fill({who: 1 / rate for who, (_, rate) in counted.items()})


def _codes(visitor: str, address: str | None) -> dict[str, tuple[int, float]]:
    by_address = {} if address is None else {f"codes of address {address}": ADDRESS}
    return {f"codes of visitor {visitor}": VISITOR, **by_address, "codes of all": ALL}
