"""What one visitor has made, models, a training, answers: kept in the session, and found again after a reload.

Reloading a page ends its session and begins another. Whatever was trained or uploaded would go with the first one, so
it also lies here for a while, under a key that the reloaded tab brings along and nobody else knows.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.components.tab_key import key_before_reload, tab_key
from pages.ui.models.lessons.answers import Answers
from transformer import Checkpoint
from transformer.training.worker import Job

KEPT = 60.0
"""Seconds for which belongings outlive their tab's connection."""
MOST_KEPT = 64
"""Tabs whose belongings are kept at once; with one more, those left longest ago go."""


@dataclass
class Slot:
    """A visitor's training: the job, what its chart compares it with, and the name its result was kept under."""

    job: Job | None = None
    references: dict[str, float] = field(default_factory=dict)
    """Losses in nats, by name."""
    probe_text: str = ""
    """The text whose attention is watched."""
    begun: str = ""
    """What every sample continues."""
    kept_as: str | None = None


@dataclass
class Belongings:
    """What a visitor has made."""

    key: str = field(default_factory=lambda: secrets.token_hex(16))
    session: str = ""
    """The session that shows it now."""
    models: dict[str, Checkpoint] = field(default_factory=dict)
    """By name, oldest first."""
    training: Slot = field(default_factory=Slot)
    own_text: str = ""
    """What was pasted to be trained on."""
    uploaded_text: tuple[str, bytes] | None = None
    """What was uploaded to be trained on: the file's name, and what is in it."""
    answers: Answers = field(default_factory=Answers)
    """What was answered in the lessons."""
    put_away: Any = None
    """The visitor's own choices while a lesson has lent them others."""

    def is_here(self) -> bool:
        """Whether the visitor's browser is connected; outside a server, where nobody can leave, it always is."""
        return not runtime.exists() or runtime.get_instance().is_active_session(self.session)

    @property
    def is_empty(self) -> bool:
        """True while there is nothing worth keeping."""
        made = self.models or self.training.job is not None or self.own_text or self.uploaded_text
        return not made and self.answers.is_empty and self.put_away is None


class Cabinet:
    """The belongings of all tabs that are open, or were until a moment ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Belongings] = {}
        self._last_seen: dict[str, float] = {}

    def put(self, belongings: Belongings) -> None:
        """Keep a visitor's belongings, and let go of those whose tabs were left a while ago."""
        now = time.monotonic()
        with self._lock:
            self._kept[belongings.key] = belongings
            for key, kept in self._kept.items():
                if key not in self._last_seen or kept.is_here():
                    self._last_seen[key] = now
            by_age = sorted(self._kept, key=self._last_seen.__getitem__, reverse=True)
            for place, key in enumerate(by_age):
                if place >= MOST_KEPT or now - self._last_seen[key] > KEPT:
                    del self._kept[key], self._last_seen[key]

    def claim(self, key: str) -> Belongings | None:
        """The belongings under a key, None if there are none or they have gone."""
        with self._lock:
            return self._kept.get(key)


def belongings() -> Belongings:
    """This visitor's belongings; after a reload, those of before."""
    found: Belongings | None = st.session_state.get("belongings")
    if found is None:
        found = _cabinet().claim(key_before_reload()) or Belongings()
        st.session_state["belongings"] = found
        found.session = _session()
    return found


def keep_across_reloads() -> None:
    """Called once in each run of a page: let the tab find its belongings again should it be reloaded."""
    own = belongings()
    if not own.is_empty:
        _cabinet().put(own)
    tab_key("" if own.is_empty else own.key, round(KEPT))


@st.cache_resource(show_spinner=False)
def _cabinet() -> Cabinet:
    return Cabinet()


def _session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""
