"""Runs long computations on a few threads, in turn among visitors, with progress, until they end or are stopped."""

import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Hashable
from contextvars import ContextVar

import streamlit as st

from pages.ui.session.visitor_share import visitor_share
from transformer.fair_queue import FairThreads

THREADS = 4
"""Computations under way at once; the others wait."""
NICENESS = 10
"""How far a thread stands back behind those that answer visitors, where the system lets it."""
_NUMBERS, _THREADS = itertools.count(), FairThreads(THREADS, "job")
_JOBS: weakref.WeakSet["Job"] = weakref.WeakSet()
_job: ContextVar["Job | None"] = ContextVar("job", default=None)


class StoppedError(Exception):
    """The job was stopped."""


class Job:
    """One computation under way. Its result is for whoever computes to keep."""

    def __init__(self, key: Hashable, compute: Callable[[], object], owner: Hashable = None) -> None:
        self.key = key
        self.share = 0.0
        """How much of it is done, 0 to 1."""
        self.error: Exception | None = None
        self._compute = compute
        self._stop, self._over = threading.Event(), threading.Event()
        _JOBS.add(self)
        self._call = _THREADS.submit(owner, self._run)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._over.is_set()

    @property
    def was_stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """End it at its next step."""
        self._stop.set()
        if self._call.cancel():  # it hasn't begun
            self._over.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end; returns whether it came."""
        return self._over.wait(seconds)

    def step(self, share: float) -> None:
        """Called by the computation now and then. Raises: StoppedError once it should end."""
        self.share = min(max(share, 0.0), 1.0)
        if self._stop.is_set():
            raise StoppedError

    def _run(self) -> None:
        token = _job.set(self)
        with contextlib.suppress(AttributeError, OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            self._compute()
        except StoppedError:
            self._stop.set()
        except Exception as error:  # told on the page
            self.error = error
        finally:
            _job.reset(token)
            self._over.set()


def progress(share: float) -> None:
    """How much of what takes long is done, 0 to 1; outside of a job, nothing. Raises: StoppedError, to end it."""
    if (job := _job.get()) is not None:
        job.step(share)


def current(key: Hashable) -> Job | None:
    """This visitor's job of this key, under way or over."""
    job: Job | None = st.session_state.get("job")
    return job if job is not None and job.key == key else None


def start(key: Hashable, compute: Callable[[], object]) -> None:
    """Begin a job for this visitor; one that is under way is stopped."""
    if (former := st.session_state.get("job")) is not None:
        former.stop()
    job = st.session_state["job"] = Job(key, compute, visitor_share())
    _until_left(next(_NUMBERS), job)


def stop_all() -> None:
    """End all visitors' jobs, each at its next step: the server, which is to end, would wait for them."""
    for job in list(_JOBS):
        job.stop()


@st.cache_resource(scope="session", max_entries=1, show_spinner=False, on_release=Job.stop)
def _until_left(number: int, _job: Job) -> Job:
    """Streamlit lets go of it, which stops it, when the visitor's connection ends."""
    return _job
