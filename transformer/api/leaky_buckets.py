"""Counts what is limited in leaky buckets: what is counted adds to a bucket, and time takes it away.

A bucket is known by the seconds until it is empty.
"""

import threading
import time
from collections.abc import Callable, Mapping

from cachetools import LRUCache

REMEMBERED = 20_000
"""Buckets in memory: those that were asked for last."""


class MemoryBuckets:
    """Buckets in this process's memory, safe from any thread. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = lambda: time.monotonic()) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._empty_at: LRUCache[str, float] = LRUCache(REMEMBERED)

    def fill(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Add so many seconds to each bucket, by name; returns the seconds until each is empty."""
        with self._lock:
            now, left = self._clock(), {}
            for name, more in seconds.items():
                left[name] = max(0.0, self._empty_at.get(name, now) - now) + more
                if left[name]:
                    self._empty_at[name] = now + left[name]
        return left
