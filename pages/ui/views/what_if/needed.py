"""What is needed here: the effect of silencing each head and each feed-forward layer, one at a time."""

from __future__ import annotations

from pages.ui.shell.sidebar import Session


def show(session: Session) -> None:
    """The view."""
