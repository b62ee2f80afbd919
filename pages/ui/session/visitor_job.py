"""Runs one long computation for a visitor, until it ends, another begins, or the visitor leaves."""

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from pages.ui.session.visitor_share import visitor_share
from transformer.jobs import FairThreads, Job

THREADS = FairThreads(4, "job", niceness=10)
"""Behind those that answer visitors."""
_NUMBERS = itertools.count()


def current(key: Hashable) -> Job[Any] | None:
    """This visitor's job of this key, under way or over. Its result is for whoever computes to keep."""
    known, job = st.session_state.get("job", (None, None))
    return job if known == key else None


def start(key: Hashable, compute: Callable[[], object]) -> None:
    """Begin a job for this visitor; one that is under way is stopped."""
    _, former = st.session_state.get("job", (None, None))
    if former is not None:
        former.stop()
    job = THREADS.submit(visitor_share(), compute)
    st.session_state["job"] = key, job
    _until_left(next(_NUMBERS), job)


@st.cache_resource(scope="session", max_entries=1, show_spinner=False, on_release=Job.stop)
def _until_left(number: int, _job: Job[Any]) -> Job[Any]:
    """Streamlit lets go of it, which stops it, when the visitor's connection ends."""
    return _job
