"""The one training that a visitor may have, and the server's queue of all of them."""

from __future__ import annotations

import threading

import streamlit as st

from pages.ui.models.session_store import GONE_AFTER, SessionRecord, Slot, session_record
from pages.ui.models.visitor_models import NoRoomError, keep
from transformer import CheckpointError
from transformer.training.plan import Plan
from transformer.training.queue import Queue
from transformer.training.worker import ENDED, Job

LOOK_EVERY = 1.0
"""Seconds between two looks whether the visitor is still there."""
LEFT = f"It was stopped because you had been away for {GONE_AFTER / 60:.0f} minutes."


@st.cache_resource(show_spinner=False)
def queue() -> Queue:
    """The server's queue: at most `limit` trainings at once, the others wait."""
    return Queue()


def slot() -> Slot:
    """This visitor's training."""
    return session_record().training


def begin(plan: Plan, references: dict[str, float], probe_text: str, begun: str, settings: str) -> None:
    """Start a training, or queue it; what was trained before has been kept, if it came to anything."""
    leave()
    own = slot()
    own.references, own.probe_text, own.begun, own.settings = references, probe_text, begun, settings
    own.job = queue().submit(plan)
    watched = own.job, session_record(), queue()
    threading.Thread(target=watch_over, args=watched, name="training-watch", daemon=True).start()


def watch_over(job: Job, record: SessionRecord, trainings: Queue) -> None:
    """Stop a job whose visitor has gone, and let another go first while they are away; returns when it has ended.

    It goes on without a connection. What came out is there for a visitor who comes back while the record is kept.
    """
    while job.state not in ENDED:
        if record.is_gone:
            job.stop(LEFT)
        elif record.is_away:
            trainings.step_back(job)
        job.join(LOOK_EVERY)


def leave() -> None:
    """End the training there is, if any, and go back to the choice of what to train."""
    own = slot()
    if own.job:
        own.job.close()
    own.job, own.kept_as, own.problem = None, None, ""


def collect() -> str | None:
    """Put a model that has been trained among the visitor's own, once; returns its token, None while there is none."""
    own = slot()
    if has_result() and not own.kept_as:
        try:
            own.kept_as = keep(own.job.result)
        except (NoRoomError, CheckpointError) as error:
            own.problem = str(error)
        else:
            own.problem = ""
    return own.kept_as


def has_result() -> bool:
    """Whether a training has ended with a model."""
    job = slot().job
    return job is not None and job.state in ENDED and job.result is not None


def is_under_way() -> bool:
    """True while a training waits, runs or pauses."""
    job = slot().job
    return job is not None and job.state not in ENDED
