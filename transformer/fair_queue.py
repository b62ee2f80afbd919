"""Fair queuing: owners are served in turn, so that who queues much waits behind themselves (Nagle 1987, RFC 970)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import zip_longest
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_NONE: Any = object()


class FairQueue(Generic[T]):
    """Items that wait, by owner: round robin among owners, and of each owner the item that came first.

    An item may be several owners', whichever is served first. Not safe from several threads.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[T]] = {}
        """The owner who is served next comes first."""

    def put(self, owner: Hashable, item: T) -> None:
        """Add an item behind those of its owner."""
        self._waiting.setdefault(owner, []).append(item)

    def take(self, may: Callable[[Hashable], bool] = lambda owner: True) -> tuple[Hashable, T] | None:
        """Take the next item out, of owners who `may` be served; returns its owner and the item, or None."""
        for owner, items in self._waiting.items():
            if may(owner):
                item = items[0]
                self._pass_on(owner)
                self.remove(item)
                return owner, item
        return None

    def serve(self, item: T) -> None:
        """Put an item that has been served, and stays, behind those of its owner, and the owner behind all others."""
        for owner in [owner for owner, items in self._waiting.items() if item in items]:
            self._waiting[owner].remove(item)
            self._waiting[owner].append(item)
            self._pass_on(owner)

    def remove(self, item: T) -> None:
        """Take an item out; one that isn't there changes nothing."""
        for owner, items in [*self._waiting.items()]:
            if item in items:
                items.remove(item)
                if not items:
                    del self._waiting[owner]

    def last_of_longest(self, than: Hashable) -> T | None:
        """The last item of whoever has most; None if the owner `than` would have as many with one more."""
        items = max(self._waiting.values(), key=len, default=[])
        return items[-1] if len(items) > len(self._waiting.get(than, [])) + 1 else None

    def __iter__(self) -> Iterator[T]:
        """In the order in which they would be taken."""
        rounds = zip_longest(*self._waiting.values(), fillvalue=_NONE)
        return iter(dict.fromkeys(item for items in rounds for item in items if item is not _NONE))

    def __contains__(self, item: object) -> bool:
        return any(item in items for items in self._waiting.values())

    def __len__(self) -> int:
        return len({id(item) for items in self._waiting.values() for item in items})

    def _pass_on(self, owner: Hashable) -> None:
        self._waiting[owner] = self._waiting.pop(owner)


def most_of(owner: Hashable, places: int) -> int:
    """How many places an owner may have at once: not all of several, unless it is nobody in particular."""
    return places if owner is None else max(1, places - 1)
