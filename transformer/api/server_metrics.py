"""Measures how a server fares, in Prometheus's text format: latencies, memory, and what else it is told to look up."""

import contextlib
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: the upper bounds of the histogram's buckets, those that Prometheus's own clients have."""
Gauges = Callable[[], Mapping[str, float]]
"""Looks up what there is now, by name."""


class Histogram:
    """Counts seconds by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def put(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """As Prometheus reads it."""
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), accumulate(self._counts), strict=True):
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {sum(self._counts)}"


class Latency:
    """ASGI middleware that measures the seconds until an answer begins; that of a stream with its first event."""

    def __init__(self, app: ASGIApp, histogram: Histogram) -> None:
        self._app, self._histogram = app, histogram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked_at, has_begun = time.perf_counter(), False

        async def measured(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.body" and not has_begun:
                has_begun = True
                self._histogram.put(time.perf_counter() - asked_at)
            await send(message)

        await self._app(scope, receive, measured)


def gauge_lines(gauges: Mapping[str, float]) -> Iterator[str]:
    """As Prometheus reads them."""
    for name, value in gauges.items():
        yield f"# TYPE headsup_{name} gauge"
        yield f"headsup_{name} {value:g}"


def resident_bytes() -> Mapping[str, float]:
    """The memory that the process has, where the system tells it."""
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return {"memory_bytes": pages * os.sysconf("SC_PAGE_SIZE")}
    return {}
