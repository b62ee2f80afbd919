"""Thirty whom a teacher leads on at once: the runs of their pages are let in one by one, in the order they came in.

A run of a page is Python that holds the interpreter. Were thirty begun at once, each would get a thirtieth of it: all
would end late together, and the thread that sends what they draw would wait behind every one of them. One by one they
take as long altogether, and the middle one ends in half the time. And a run that has drawn what is read first steps
back: so all have the words of a step before anybody has the live view below them. That is so for runs that are alike
and compute little; visitors who each go their own way, some with a pass to compute, wait less without a queue (measured
by the benchmarks `room` and `load`).
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

LEASE = 0.25
"""Seconds after which a run that is still at it no longer keeps the next one out: it computes something large, which
needs no interpreter, or was broken off."""


class _Waiting(NamedTuple):
    who: str
    called: threading.Event
    has_begun: bool = False
    """Whether it stepped back, and waits to go on."""


class RunQueue:
    """Who may run now. `who` names a visitor. Safe from any thread."""

    def __init__(self, lease: float = LEASE) -> None:
        self._lease = lease
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._inside: str | None = None
        self._until = 0.0
        """When the one inside keeps nobody out any more, on the monotonic clock."""

    def enter(self, who: str) -> None:
        """Wait for one's turn. A run that is begun anew has that of the one before it, which is about to break off."""
        own = _Waiting(who, threading.Event())
        with self._lock:
            if self._inside == who:
                self._until = time.monotonic() + self._lease
                return
            before = next((at for at, other in enumerate(self._waiting) if other.who == who), None)
            if before is None:
                self._waiting.append(own)
            else:
                self._waiting[before].called.set()
                self._waiting[before] = own
            self._call_next()
        self._wait(own)

    def step_back(self, who: str) -> None:
        """Let all who haven't begun go first, and wait for one's turn to go on. Nothing for a run not inside."""
        own = _Waiting(who, threading.Event(), has_begun=True)
        with self._lock:
            if self._inside != who:
                return
            self._inside = None
            self._waiting.append(own)
            self._call_next()
        self._wait(own)

    def leave(self, who: str) -> None:
        """The run is over. Says nothing of a run that is not the one inside."""
        with self._lock:
            if self._inside == who:
                self._inside = None
                self._call_next()

    def _wait(self, own: _Waiting) -> None:
        while not own.called.wait(self._lease):
            with self._lock:
                self._call_next()

    def _call_next(self) -> None:
        if self._waiting and (self._inside is None or time.monotonic() > self._until):
            first = min(self._waiting, key=lambda waiting: waiting.has_begun)
            self._waiting.remove(first)
            self._inside = first.who
            self._until = time.monotonic() + self._lease
            first.called.set()
