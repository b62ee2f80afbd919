"""What a visitor has made, handed back to a session that is new: the tab kept the token of its record."""

from __future__ import annotations

import re

import streamlit as st

from pages.ui.components.session_token import session_token
from pages.ui.frame import saved_view
from pages.ui.frame.state import visitor
from pages.ui.models.session_store import HEARTBEAT, keep_record, restore_record, session_record
from pages.ui.models.visitor_models import own_models, restore_models
from transformer.api.store import is_token

HEARD = "session_token_heard"
"""Key of the session: whether its tab has handed over what it had."""


def find_record() -> None:
    """Called as a run of a page begins: let the tab keep the record's token, or hand over the one that it has."""
    record = session_record()
    record.own_text = visitor().own_text
    keep_record()
    value = "" if record.is_empty else " ".join([record.token, *own_models()])
    session_token(value, heard=st.session_state.get(HEARD, False), on_found=_restore)


def stay_here() -> None:
    """Called as a run of a page ends: from now on a sign comes, again and again, that the visitor is there."""
    keep_record()
    if not session_record().is_empty:
        with st.container(key="session_heartbeat"):
            st.fragment(keep_record, run_every=HEARTBEAT, key="heartbeat")()


def _restore(kept: str) -> None:
    """Take up the record of before; where it has gone with its server, the models that lie in the store."""
    st.session_state[HEARD] = True
    token, *models = kept.split(" ")
    if re.fullmatch("[0-9a-f]{32}", token) and restore_record(token):
        visitor().own_text = visitor().own_text or session_record().own_text
        if (loan := saved_view.loan()) and session_record().put_away is not None:
            loan.own = session_record().put_away
    restore_models([name for name in models if is_token(name)])
