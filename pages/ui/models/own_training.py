"""The one training that a visitor may have, and the server's queue of all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.models.own_models import keep
from transformer.training.plan import Plan
from transformer.training.worker import ENDED, Job, Queue

ABSENCE = 5.0
"""Seconds for which a training outlives its visitor's connection: no hiccup of a network ends it, a closed tab does."""


@dataclass
class Slot:
    """A visitor's training: the job, what its chart compares it with, and the name its result was kept under."""

    job: Job | None = None
    references: dict[str, float] = field(default_factory=dict)
    """Losses in nats, by name."""
    probe_text: str = ""
    """The text whose attention is watched."""
    begun: str = ""
    """What every sample goes on from."""
    kept_as: str | None = None


@st.cache_resource(show_spinner=False)
def queue() -> Queue:
    """The server's queue: so many trainings at once, the others wait."""
    return Queue()


def slot() -> Slot:
    """This visitor's training."""
    return st.session_state.setdefault("training_slot", Slot())


def begin(plan: Plan, references: dict[str, float], probe_text: str, begun: str) -> None:
    """Start a training, or queue it; what was trained before has been kept, if it came to anything."""
    leave()
    own = slot()
    own.references, own.probe_text, own.begun = references, probe_text, begun
    own.job = queue().submit(plan)
    if runtime.exists():
        session = get_script_run_ctx().session_id
        is_here = partial(runtime.get_instance().is_active_session, session)
        threading.Thread(target=close_when_left, args=(own.job, is_here), name="closing-time", daemon=True).start()


def close_when_left(job: Job, is_here: Callable[[], bool]) -> None:
    """Close a job once its visitor has been away for `ABSENCE` seconds; returns then, or when the job has ended.

    is_here: whether the visitor's browser is connected.
    """
    last_seen = time.monotonic()
    while job.state not in ENDED:
        if is_here():
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > ABSENCE:
            job.close()
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
