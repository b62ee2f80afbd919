"""Side by side: two prompts, two models, or one model with its changes and without."""

from __future__ import annotations

from pages.ui.shell.sidebar import Session


def show(session: Session) -> None:
    """The view."""
