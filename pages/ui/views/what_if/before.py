"""Before and after: what the model says next and writes, with the changes that are set and without them."""

from __future__ import annotations

from pages.ui.shell.sidebar import Session


def show(session: Session) -> None:
    """The view."""
