"""Restores a visitor's session record in a new session, by the token that the tab kept."""

import re

import streamlit as st

from pages.ui.components.session_token import session_token
from pages.ui.frame import saved_view
from pages.ui.frame.state import notices
from pages.ui.session.kept_lessons import keep_lesson, kept_lesson
from pages.ui.session.session_store import HEARTBEAT, keep_record, restore_record, session_record
from pages.ui.session.visitor_models import own_models, restore_models
from pages.ui.session.visitor_training import is_under_way
from transformer.api.model_store import is_token

HEARD = "session_token_heard"
"""Key of the session: whether its tab has sent its token."""
TRAINING = "training"
"""What a tab keeps beside its token while a training of its visitor is under way."""
TRAINING_LOST = (
    "Your training has ended: its server stopped, or you were away for too long. Its model wasn't kept; start the "
    "training again."
)


def find_record() -> None:
    """Store the record's token in the tab, or restore the record of the tab's token; called as a run begins."""
    record = session_record()
    keep_record()
    trains = [TRAINING] if is_under_way() else []
    value = "" if record.is_empty else " ".join([record.token, *own_models(), *trains])
    session_token(value, heard=st.session_state.get(HEARD, False), on_found=_restore)


def stay_here() -> None:
    """Start the heartbeat that shows that the visitor is there; called as a run ends."""
    keep_record()
    if not session_record().is_empty:
        with st.container(key="session_heartbeat"):
            st.fragment(keep_record, run_every=HEARTBEAT, key="heartbeat")()


def _restore(kept: str) -> None:
    """Restore the record; if it is lost with its server, the lesson and the models that are still in a store."""
    st.session_state[HEARD] = True
    token, *others = kept.split(" ")
    is_token_of_ours = re.fullmatch("[0-9a-f]{32}", token) is not None
    if is_token_of_ours and restore_record(token):
        if (saved := saved_view.saved_view()) and (view := session_record().saved_view):
            saved.view = view
    elif is_token_of_ours:
        if text := kept_lesson(token):
            session_record().lesson_text = text
            keep_lesson(session_record().token, text)
        if TRAINING in others:
            notices().append(TRAINING_LOST)
    restore_models([name for name in others if is_token(name)])
