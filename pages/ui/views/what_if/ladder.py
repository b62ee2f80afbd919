"""The ladder: one prompt on every rung."""

from __future__ import annotations

from pages.ui.shell.sidebar import Session


def show(session: Session) -> None:
    """The view."""
