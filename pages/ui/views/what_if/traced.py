"""Where does it know it from: activation patching between two prompts."""

from __future__ import annotations

from pages.ui.shell.sidebar import Session


def show(session: Session) -> None:
    """The view."""
