"""Counts requests in leaky buckets: each request fills a bucket, and time empties it.

A bucket is known by the seconds until it is empty. Servers that share buckets allow together what one allows: each
counts by itself at once, and every second adds its counts to the shared buckets, so that no request waits for them.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from cachetools import LRUCache

from .errors import ApiError

PER_SECOND, BURST = 60.0, 300
"""Requests of one visitor: so many a second, and so many at once after a pause."""
AT_ONCE = 16
"""Requests of one visitor that are being answered at the same moment, streams among them."""
ROUNDING = 1e-3
"""Rounding error, in requests, of many that are counted as fractions of seconds."""
REMEMBERED = 20_000
"""Buckets in memory: the most recently used."""
SHARE_EVERY = 1.0
"""Seconds between two exchanges with the shared buckets."""
Fill = Callable[[Mapping[str, float]], Mapping[str, float]]
"""Adds seconds to buckets, by name; returns the seconds until each is empty."""


class MemoryBuckets:
    """Buckets in this process's memory, safe from any thread. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = lambda: time.monotonic()) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._empty_at: LRUCache[str, float] = LRUCache(REMEMBERED)

    def fill(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """As in `Fill`."""
        with self._lock:
            now, left = self._clock(), {}
            for name, more in seconds.items():
                left[name] = max(0.0, self._empty_at.get(name, now) - now) + more
                if left[name]:
                    self._empty_at[name] = now + left[name]
        return left


class Counts:
    """Each visitor's recent requests, and those being answered. Safe from any thread.

    fill_shared: fills the buckets that several servers share; None for a server by itself.
    """

    def __init__(
        self,
        per_second: float = PER_SECOND,
        burst: int = BURST,
        at_once: int = AT_ONCE,
        fill_shared: Fill | None = None,
    ) -> None:
        self.per_second, self.burst, self.at_once = per_second, burst, at_once
        self._lock, self._buckets = threading.Lock(), MemoryBuckets()
        self._in_flight: Counter[str] = Counter()
        self._fill_shared, self._unshared = fill_shared, defaultdict[str, float](float)
        """Seconds to add to the shared buckets."""
        self._full: frozenset[str] = frozenset()
        """Who has asked too often, on all servers together."""
        self._is_sharing = False

    def begin(self, who: str, many: int = 1) -> None:
        """Count a request that begins. many: how many visitors' worth this one has.

        Raises: ApiError 429 for one too many, which isn't counted.
        """
        rate = many * self.per_second
        with self._lock:
            counted = self._buckets.fill({who: 0.0})[who] * rate
            is_over = counted > many * self.burst - 1 + ROUNDING or self._in_flight[who] >= many * self.at_once
            if is_over or who in self._full:
                raise ApiError(429, "Too many questions at once; ask again in a second.", retry_after=1)
            self._buckets.fill({who: 1 / rate})
            self._in_flight[who] += 1
            if self._fill_shared:
                self._unshared[who] += 1 / rate
                if not self._is_sharing:
                    self._is_sharing = True
                    threading.Thread(target=self._share_always, name="shared counts", daemon=True).start()

    def end(self, who: str) -> None:
        """Count a request that is answered."""
        with self._lock:
            self._in_flight[who] -= 1
            if not self._in_flight[who]:
                del self._in_flight[who]

    def share(self) -> None:
        """Add what was counted since the last time to the shared buckets, and see who has asked too often."""
        assert self._fill_shared
        with self._lock:
            unshared, self._unshared = self._unshared, defaultdict[str, float](float)
        left = self._fill_shared({**dict.fromkeys(self._full, 0.0), **unshared})
        self._full = frozenset(who for who, seconds in left.items() if seconds > self.burst / self.per_second)

    def _share_always(self) -> None:
        while True:
            time.sleep(SHARE_EVERY)
            self.share()
