"""The one training that a visitor may have, and the server's queue of all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import streamlit as st
from streamlit import runtime

from pages.ui.models.belongings import Slot, belongings
from pages.ui.models.own_models import keep
from transformer.training.plan import Plan
from transformer.training.queue import Queue
from transformer.training.worker import ENDED, Job

ABSENCE = 8.0
"""Seconds for which a training outlives its visitor's connection: a hiccup of the network or a reload of the page
doesn't end it, a closed tab does."""


@st.cache_resource(show_spinner=False)
def queue() -> Queue:
    """The server's queue: at most `limit` trainings at once, the others wait."""
    return Queue()


def slot() -> Slot:
    """This visitor's training."""
    return belongings().training


def begin(plan: Plan, references: dict[str, float], probe_text: str, begun: str) -> None:
    """Start a training, or queue it; what was trained before has been kept, if it came to anything."""
    leave()
    own = slot()
    own.references, own.probe_text, own.begun = references, probe_text, begun
    own.job = queue().submit(plan)
    if runtime.exists():  # else there is nobody who could leave
        watched = own.job, belongings().is_here
        threading.Thread(target=stop_when_left, args=watched, name="closing-time", daemon=True).start()


def stop_when_left(job: Job, is_here: Callable[[], bool]) -> None:
    """Stop a job once its visitor has been away for `ABSENCE` seconds; returns when the job has ended.

    What came out is there for a visitor who comes back while belongings are kept.

    is_here: whether the visitor's browser is connected.
    """
    last_seen = time.monotonic()
    while job.state not in ENDED:
        if is_here():
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > ABSENCE:
            job.stop()
        job.join(ABSENCE / 10)


def leave() -> None:
    """End the training there is, if any, and go back to the choice of what to train."""
    own = slot()
    if own.job:
        own.job.close()
    own.job, own.kept_as = None, None


def collect() -> str | None:
    """Put a model that has been trained among the visitor's own, once; returns its name."""
    own = slot()
    if own.job and own.job.state in ENDED and own.job.result and not own.kept_as:
        own.kept_as = keep(own.job.result)
    return own.kept_as


def is_under_way() -> bool:
    """True while a training waits, runs or pauses."""
    job = slot().job
    return job is not None and job.state not in ENDED
