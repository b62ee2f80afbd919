"""Identifies a visitor to the queues in which visitors are served in turn."""

import streamlit as st

from pages.ui.session.session_store import session_record
from transformer.api.limits import COOKIE, Share, counted_address, share_of


def visitor_share() -> Share:
    """This visitor's share, by the cookie and the address of the page's connection."""
    address = counted_address(st.context.ip_address or "127.0.0.1", st.context.headers.get_all("X-Forwarded-For"))
    return share_of(st.context.cookies.get(COOKIE, ""), address, session_record().token)
