"""Keeps a record of what each visitor has made, which outlives the Streamlit session.

A reload of the page, a lost connection or a server's restart ends a session of Streamlit's. The record lies here
meanwhile, under a token that only the browser's tab holds (`components/session_token`). A run of the page, or of a part
of it, means that the visitor is there.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.ui.models.lesson_answers import Answers
from transformer import CheckpointEntry
from transformer.training.worker import Job

HEARTBEAT = 30.0
"""Seconds between two signs that a page is open. A browser lets a page that is hidden run once a minute."""
GONE_AFTER = 600.0
"""Seconds without a sign after which a visitor is taken to have gone."""
KEPT_FOR = 1800.0
"""Seconds without a sign for which a record is kept: a training that was stopped is still found."""
MAX_RECORDS = 64
"""Records that are kept at once; with one more, that of who has been away longest goes."""
AWAY_AFTER_DISCONNECT, AWAY_AFTER = 8.0, 90.0
"""Seconds without a sign after which a visitor's place in a queue is another's: of one whose connection has ended, and
of any."""


@dataclass
class TrainingRecord:
    """A visitor's training: the job, what its chart compares it with, and the token its result was kept under."""

    job: Job | None = None
    references: dict[str, float] = field(default_factory=dict)
    """Losses in nats, by name."""
    probe_text: str = ""
    """The text whose attention is watched."""
    sample_prompt: str = ""
    """What every sample continues."""
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
    """The visitor's own, by their tokens in the store, oldest first."""
    shared: dict[str, CheckpointEntry] = field(default_factory=dict)
    """Those that a link has brought, likewise."""
    training: TrainingRecord = field(default_factory=TrainingRecord)
    own_text: str = ""
    """What was pasted to be trained on."""
    uploaded_text: tuple[str, bytes] | None = None
    """What was uploaded to be trained on: the file's name, and what is in it."""
    answers: Answers = field(default_factory=Answers)
    """What was answered in the lessons."""
    saved_visitor: Any = None
    """The visitor's own choices while a lesson has lent them others."""
    seen_at: float = field(default_factory=lambda: time.monotonic())
    """When there was the last sign of the visitor."""
    connection_ended: bool = False
    """Whether the connection has ended since."""

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
    def is_empty(self) -> bool:
        """True while there is nothing worth keeping."""
        made = self.models or self.training.job is not None or self.own_text or self.uploaded_text
        return not made and self.answers.is_empty and self.saved_visitor is None


class SessionStore:
    """The records of all visitors who are there, or were until half an hour ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, SessionRecord] = {}

    def put(self, record: SessionRecord) -> None:
        """Keep a record, and let go of those whose visitors have been away too long."""
        with self._lock:
            self._kept[record.token] = record
            for place, each in enumerate(sorted(self._kept.values(), key=lambda each: each.seconds_away)):
                if place >= MAX_RECORDS or each.seconds_away > KEPT_FOR:
                    del self._kept[each.token]

    def claim(self, token: str) -> SessionRecord | None:
        """The record of a token, None if there is none or it has gone."""
        with self._lock:
            found = self._kept.get(token)
            return found if found and found.seconds_away <= KEPT_FOR else None


def session_record() -> SessionRecord:
    """This visitor's record. Whoever asks for it is there."""
    found: SessionRecord = st.session_state.setdefault("session_record", SessionRecord())
    found.see()
    return found


def keep_record() -> None:
    """Keep this visitor's record, if it has anything, for when the session has ended."""
    record = session_record()
    _connected(record.token, record)
    if not record.is_empty:
        session_store().put(record)


def restore_record(token: str) -> bool:
    """Give this session the record that its tab had before; returns whether there is one.

    What the first run of the new session has opened of a lesson is taken along.
    """
    own, found = session_record(), session_store().claim(token)
    if found is None:
        return False
    st.session_state["session_record"] = found
    found.answers.merge(own.answers.responses)
    if own.answers.last:
        found.answers.open(own.answers.last)
    found.saved_visitor = found.saved_visitor or own.saved_visitor
    found.see()
    return True


@st.cache_resource(show_spinner=False)
def session_store() -> SessionStore:
    """The records of this server's visitors."""
    return SessionStore()


@st.cache_resource(scope="session", show_spinner=False, on_release=SessionRecord.end_connection)
def _connected(token: str, _record: SessionRecord) -> SessionRecord:
    """Streamlit lets go of it when the connection ends."""
    return _record
