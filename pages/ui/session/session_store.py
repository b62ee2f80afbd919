"""Keeps a record of what each visitor has made, which outlives the Streamlit session.

A reload or a lost connection ends the Streamlit session. The record stays here, under a token that only the browser's
tab holds (`components/session_token`). Every run of a page or fragment shows that the visitor is there.
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

import streamlit as st

from pages.ui.session.lesson_answers import Answers
from transformer import CheckpointEntry
from transformer.api.model_store import checkpoint_bytes
from transformer.training.training_job import TrainingJob

HEARTBEAT = 30.0
"""Seconds between two heartbeats of an open page. Browsers run hidden pages once a minute."""
GONE_AFTER = 600.0
"""Seconds without a heartbeat after which a visitor is gone."""
KEPT_FOR = 1800.0
"""Seconds without a heartbeat after which a record is deleted."""
MAX_RECORDS, MAX_BYTES = 1000, 200_000_000
"""Records kept at once, and what they may hold together. Beyond that, the one left longest ago is deleted; those of
visitors who are there never are: their sessions hold them anyway."""
AWAY_AFTER_DISCONNECT, AWAY_AFTER = 8.0, 90.0
"""Seconds without a heartbeat after which a visitor loses their place in a queue: with an ended connection, and with
any."""


@dataclass
class TrainingRecord:
    """A visitor's training: the job, its reference losses, and the token of its result."""

    job: TrainingJob | None = None
    references: dict[str, float] = field(default_factory=dict)
    """Losses in nats, by name."""
    probe_text: str = ""
    """The text whose attention is watched."""
    sample_prompt: str = ""
    """The prompt of every sample."""
    is_causal: bool = True
    """Whether the model writes; False: it fills masks."""
    settings: str = ""
    """What is trained, and how, as Markdown."""
    model_token: str | None = None
    problem: str = ""
    """Why the result isn't kept yet, in a sentence."""


@dataclass
class SessionRecord:
    """What a visitor has made."""

    token: str = field(default_factory=lambda: secrets.token_hex(16))
    models: dict[str, CheckpointEntry] = field(default_factory=dict)
    """The visitor's models by token, oldest first."""
    shared: dict[str, CheckpointEntry] = field(default_factory=dict)
    """The models that links have shared."""
    training: TrainingRecord = field(default_factory=TrainingRecord)
    own_text: str = ""
    """A pasted training text."""
    uploaded_text: tuple[str, bytes] | None = None
    """An uploaded training text: the file's name and content."""
    lesson_text: str = ""
    answers: Answers = field(default_factory=Answers)
    saved_view: dict[str, str] | None = None
    """The visitor's view, as a link has it, while a lesson shows its own."""
    seen_at: float = field(default_factory=lambda: time.monotonic())
    """The time of the last heartbeat."""
    connection_ended: bool = False

    def see(self) -> None:
        """Note that the visitor is there."""
        self.seen_at, self.connection_ended = time.monotonic(), False

    def end_connection(self) -> None:
        """Note that the connection has ended; it may come back."""
        self.connection_ended = True

    @property
    def seconds_away(self) -> float:
        """Since the last sign of the visitor."""
        return time.monotonic() - self.seen_at

    @property
    def is_gone(self) -> bool:
        """Whether nobody is expected to come back."""
        return self.seconds_away > GONE_AFTER

    @property
    def is_away(self) -> bool:
        """Whether whoever waits for this visitor's place may have it."""
        return self.seconds_away > (AWAY_AFTER_DISCONNECT if self.connection_ended else AWAY_AFTER)

    @property
    def size(self) -> int:
        """About how many bytes it holds: of texts, and of a trained model."""
        texts = len(self.own_text) + len(self.lesson_text) + len(self.uploaded_text[1] if self.uploaded_text else b"")
        result = self.training.job.checkpoint if self.training.job else None
        return texts + (checkpoint_bytes(result) if result else 0)

    @property
    def is_empty(self) -> bool:
        """True while there is nothing worth keeping."""
        made = self.models or self.training.job or self.own_text or self.uploaded_text or self.lesson_text
        return not made and self.answers.is_empty and self.saved_view is None


class SessionStore:
    """The records of all visitors who are there, or were until half an hour ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, SessionRecord] = {}

    def put(self, record: SessionRecord) -> None:
        """Keep a record, and let go of those whose visitors have been away too long."""
        with self._lock:
            self._kept[record.token] = record
            total = 0
            for rank, kept in enumerate(sorted(self._kept.values(), key=lambda kept: kept.seconds_away)):
                total += kept.size
                is_one_too_many = kept.is_away and (rank >= MAX_RECORDS or total > MAX_BYTES)
                if is_one_too_many or kept.seconds_away > KEPT_FOR:
                    del self._kept[kept.token]

    def claim(self, token: str) -> SessionRecord | None:
        """The record of a token, None if there is none or it has gone."""
        with self._lock:
            record = self._kept.get(token)
            return record if record and record.seconds_away <= KEPT_FOR else None


_NOBODY: ContextVar[SessionRecord | None] = ContextVar("nobody", default=None)


@contextlib.contextmanager
def without_session() -> Iterator[None]:
    """Within, as where no page runs, nothing is a visitor's own."""
    token = _NOBODY.set(SessionRecord())
    try:
        yield
    finally:
        _NOBODY.reset(token)


def has_session() -> bool:
    """Whether this is the run of a visitor's page."""
    return _NOBODY.get() is None


def session_record() -> SessionRecord:
    """This visitor's record; reading it counts as a heartbeat."""
    if nobody := _NOBODY.get():
        return nobody
    record: SessionRecord = st.session_state.setdefault("session_record", SessionRecord())
    record.see()
    return record


def keep_record() -> None:
    """Keep this visitor's record, if it has anything, for when the session has ended."""
    record = session_record()
    _connected(record.token, record)
    if not record.is_empty:
        session_store().put(record)


def restore_record(token: str) -> bool:
    """Restore the record of a token in this session; return whether there is one.

    The lesson that the new session has opened is merged into it.
    """
    own, kept = session_record(), session_store().claim(token)
    if kept is None:
        return False
    st.session_state["session_record"] = kept
    kept.answers.merge(own.answers.responses)
    kept.own_text = own.own_text or kept.own_text
    if own.answers.last:
        kept.answers.open(own.answers.last)
    kept.saved_view = kept.saved_view or own.saved_view
    kept.see()
    return True


@st.cache_resource(show_spinner=False)
def session_store() -> SessionStore:
    return SessionStore()


@st.cache_resource(scope="session", show_spinner=False, on_release=SessionRecord.end_connection)
def _connected(token: str, _record: SessionRecord) -> SessionRecord:
    """Streamlit lets go of it when the connection ends."""
    return _record
