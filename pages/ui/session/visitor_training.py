"""Runs a visitor's training in the server's queue."""

import threading

import streamlit as st

from pages.ui.session.session_store import GONE_AFTER, SessionRecord, TrainingRecord, session_record
from pages.ui.session.visitor_models import StorageFullError, add_model
from pages.ui.session.visitor_share import visitor_share
from transformer import Checkpoint, CheckpointError
from transformer.api.limits import Share
from transformer.training.plan import TrainingPlan
from transformer.training.training_job import ENDED, TrainingJob
from transformer.training.training_queue import TrainingQueue

POLL_INTERVAL = 1.0
"""Seconds between two checks that the visitor is there."""
MOST_OF_VISITOR, MOST_OF_ADDRESS, MOST = 3, 64, 200
"""Trainings under way of a visitor, who may have several tabs; of an address, as of a class; and of all visitors."""
STOPPED_WHILE_AWAY = f"The training was stopped because you had been away for {GONE_AFTER / 60:.0f} minutes."


@st.cache_resource(show_spinner=False)
def queue() -> TrainingQueue:
    """The server's queue of trainings."""
    return TrainingQueue()


def training_record() -> TrainingRecord:
    return session_record().training


def start(plan: TrainingPlan, references: dict[str, float], probe_text: str, sample_prompt: str, settings: str) -> None:
    """Queue a training; the result of the one before is kept. Raises: ValueError, a sentence, if there are too many."""
    share = visitor_share()
    _check_room(share, [owner for owner in queue().owners if isinstance(owner, Share)])
    end_training()
    job = queue().train(plan, share)
    training = TrainingRecord(job, references, probe_text, sample_prompt, plan.config.is_causal, settings)
    session_record().training = training
    watched = job, session_record(), queue()
    threading.Thread(target=watch_over, args=watched, name="training-watch", daemon=True).start()


def _check_room(share: Share, under_way: list[Share]) -> None:
    of_address = sum(each.address == share.address for each in under_way)
    if share.is_visitor and under_way.count(share) >= MOST_OF_VISITOR:
        raise ValueError(
            f"You have {MOST_OF_VISITOR} trainings under way in other tabs. Stop one, or wait for its end."
        )
    if len(under_way) >= MOST or (share.address is not None and of_address >= MOST_OF_ADDRESS):
        raise ValueError("Too many trainings wait already. Try again when some have ended, or run the app yourself.")


def watch_over(job: TrainingJob, record: SessionRecord, trainings: TrainingQueue) -> None:
    """Stop a job whose visitor has gone, and let others go first while they are away; return when it has ended.

    A training goes on without a connection. A visitor who returns in time finds its result.
    """
    while job.state not in ENDED:
        if record.is_gone:
            job.stop(STOPPED_WHILE_AWAY)
        elif record.is_away:
            trainings.step_back(job)
        job.join(POLL_INTERVAL)


def end_training() -> None:
    """End the training there is, if any, and go back to the choice of what to train."""
    record = training_record()
    if record.job:
        record.job.close()
    record.job, record.model_token, record.problem = None, None, ""


def store_result() -> None:
    """Put a model that has been trained among the visitor's own, once."""
    record = training_record()
    if (model := result()) is not None and not record.model_token:
        record.problem = ""
        try:
            record.model_token = add_model(model)
        except (StorageFullError, CheckpointError) as error:
            record.problem = str(error)


def result() -> Checkpoint | None:
    """The model with which a training has ended, if one has."""
    job = training_record().job
    return job.checkpoint if job is not None and job.state in ENDED else None


def is_under_way() -> bool:
    """True while a training waits, runs or pauses."""
    job = training_record().job
    return job is not None and job.state not in ENDED
