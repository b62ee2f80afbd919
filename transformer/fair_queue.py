"""Fair queuing: owners are served in turn, so that who queues much waits behind themselves (Nagle 1987, RFC 970)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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


class _Call(Future[T]):
    def __init__(self, compute: Callable[[], T]) -> None:
        super().__init__()
        self.compute = compute


class FairThreads:
    """A pool of threads that begins waiting calls owner by owner, of each as many at once as `most_of` says."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, name)
        self._lock = threading.RLock()
        self._waiting, self._running = FairQueue[_Call[Any]](), Counter[Hashable]()

    def submit(self, owner: Hashable, compute: Callable[[], T]) -> Future[T]:
        """Call a function on one of the threads, in its owner's turn. It can be cancelled until it begins."""
        call = _Call(compute)
        call.add_done_callback(self._forget)
        with self._lock:
            self._waiting.put(owner, call)
            self._begin()
        return call

    def share(self, owner: Hashable, call: Future[Any]) -> None:
        """Let a call that waits begin in this owner's turn, too, if that comes first."""
        with self._lock:
            if call in self._waiting and isinstance(call, _Call):
                self._waiting.put(owner, call)

    def make_room(self, owner: Hashable, error: Exception) -> bool:
        """End, by an error, the last call that waits of whoever has most waiting; returns whether there is one.

        There is none if this owner would have as many.
        """
        with self._lock:
            call = self._waiting.last_of_longest(owner)
            if call is not None:
                self._waiting.remove(call)
        if call is not None:
            call.set_exception(error)
        return call is not None

    def close(self) -> None:
        """Cancel what hasn't begun, and don't wait for the rest."""
        with self._lock:
            waiting = [*self._waiting]
        for call in waiting:
            call.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _forget(self, call: Future[Any]) -> None:
        with self._lock:
            if isinstance(call, _Call):
                self._waiting.remove(call)

    def _begin(self) -> None:
        while self._running.total() < self._threads:
            taken = self._waiting.take(lambda owner: self._running[owner] < most_of(owner, self._threads))
            if taken is None:
                return
            owner, call = taken
            if call.set_running_or_notify_cancel():
                self._running[owner] += 1
                self._pool.submit(self._run, owner, call)

    def _run(self, owner: Hashable, call: _Call[Any]) -> None:
        try:
            result = call.compute()
        except BaseException as error:
            call.set_exception(error)
        else:
            call.set_result(result)
        finally:
            with self._lock:
                self._running[owner] -= 1
                self._running += Counter()  # without those that have none
                self._begin()
