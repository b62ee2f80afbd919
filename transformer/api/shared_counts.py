"""Counts questions together with other servers: what several allow together is what one allows.

Each server counts by itself at once, as `Counts` does. Every second it adds what it has counted to what they share, so
that nobody waits for that.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from .limits import Counts, too_many

SHARE_EVERY = 1.0
"""Seconds between two looks at what all servers have counted."""


class SharedCounts(Counts):
    """Who has asked how often, on all servers.

    fill: adds seconds to leaky buckets, by name, and returns the seconds until each is empty.
    """

    def __init__(self, fill: Callable[[Mapping[str, float]], Mapping[str, float]]) -> None:
        super().__init__()
        self._fill, self._asked = fill, defaultdict[str, float](float)
        """Seconds that aren't shared yet."""
        self._full: frozenset[str] = frozenset()
        """Who has asked too often, on all servers together."""
        self._shares = False

    def begin(self, who: str, many: int = 1) -> None:
        if who in self._full:
            raise too_many()
        super().begin(who, many)
        with self._lock:
            self._asked[who] += 1 / (many * self.per_second)
            begins, self._shares = not self._shares, True
        if begins:
            threading.Thread(target=self._share_always, name="shared counts", daemon=True).start()

    def share(self) -> None:
        """Add what was counted since the last time, and learn who has asked too often."""
        with self._lock:
            asked, self._asked = self._asked, defaultdict[str, float](float)
        left = self._fill({**dict.fromkeys(self._full, 0.0), **asked})
        self._full = frozenset(who for who, seconds in left.items() if seconds > self.burst / self.per_second)

    def _share_always(self) -> None:
        while True:
            time.sleep(SHARE_EVERY)
            self.share()
