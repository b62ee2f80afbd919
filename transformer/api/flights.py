"""Computations under way: each once for all who ask at the same moment, on a few threads, ended when nobody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from .errors import ApiError

Progress = Callable[[float], None]
"""Called by a computation with the share that is done, 0 to 1; raises AbandonedError once nobody waits for it."""


class AbandonedError(Exception):
    """Nobody waits for this computation any more."""


class Flight:
    """A computation under way, and how many wait for it."""

    def __init__(self) -> None:
        self.future: Future[Any]
        self.share = 0.0
        """How much of it is done, 0 to 1, if it says so."""
        self.readers = 0
        self.is_wanted = True
        """Whether its result is, if there are readers."""

    def progress(self, share: float) -> None:
        """As `Progress`."""
        self.share = min(max(share, 0.0), 1.0)
        if not (self.readers and self.is_wanted):
            raise AbandonedError


class Flights:
    """Computations by key. threads: how many are computed at the same moment. waiting: how many may be under way."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "api")
        self._waiting = waiting
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Flight] = {}

    @contextmanager
    def joined(self, key: Hashable, compute: Callable[[Progress], Any]) -> Iterator[Flight]:
        """Wait, within, for the computation of a key: one that is under way, or else a new one.

        Raises: ApiError 503 where too many are under way already.
        """
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                if len(self._flights) >= self._waiting:
                    raise ApiError(
                        503, "The server has too much to compute just now; ask again in a second.", retry_after=1
                    )
                flight = self._flights[key] = Flight()
            flight.readers += 1
            if flight.readers == 1:  # before it begins, so that it finds itself waited for
                flight.future = self._threads.submit(compute, flight.progress)
        try:
            yield flight
        finally:
            with self._lock:
                flight.readers -= 1
                if not flight.readers:
                    del self._flights[key]
                    flight.future.cancel()  # if it hasn't begun

    def close(self) -> None:
        """Begin nothing any more, and end what says how far it is."""
        with self._lock:
            for flight in self._flights.values():
                flight.is_wanted = False
        self._threads.shutdown(wait=False, cancel_futures=True)
