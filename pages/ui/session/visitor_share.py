"""Says whose turn it is when a visitor's page computes something that others may have to wait for."""

import streamlit as st

from pages.ui.session.session_store import session_record
from transformer.api.limits import COOKIE, Share, counted_address, share_of


def visitor_share() -> Share:
    """This visitor's share. Known from the cookie with which the page's connection was opened, and its address."""
    address = counted_address(st.context.ip_address or "127.0.0.1", st.context.headers.get_all("X-Forwarded-For"))
    return share_of(st.context.cookies.get(COOKIE, ""), address, session_record().token)
