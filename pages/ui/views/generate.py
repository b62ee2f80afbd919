"""The page Generate: the instrument that shows a text while it is written, and all it tells and asks."""

from __future__ import annotations

import streamlit as st

from pages.ui.components.writing import Event, Extent, writing
from pages.ui.models import passages, places
from pages.ui.shell import crossings, instruments
from pages.ui.shell.choices import PACES
from pages.ui.shell.sidebar import Session
from pages.ui.shell.state import REWRITE_EVERY
from pages.ui.views.desk import CONTROLS, LOOKS_AT, Desk

KEY = "writing"
TIED = (*CONTROLS, "step")
"""What the instrument and the link agree on: fields of the visitor."""


def show(session: Session) -> None:
    """The instrument."""
    current, writer, config = session.visitor, session.writer, session.config
    desk: Desk = st.session_state.setdefault("desk", Desk(current, writer))
    desk.forget()
    choosable = tuple(LOOKS_AT) if session.source and desk.kind else ()
    heads = config.n_heads if desk.kind else 0
    extent = Extent(choosable, places.depth(config, desk.kind or ""), heads, tuple(PACES))
    def take(event: Event) -> None:
        desk.take(event)
        instruments.told(KEY, current, TIED)

    def rewrite_every() -> float:
        return 0.0 if writer.goal is None else REWRITE_EVERY

    writing(
        key=KEY,
        name=passages.identity(writer),
        title=session.file_name,
        extent=extent,
        choices={
            "layers": extent.layers,
            "heads": extent.heads,
            "attentions": [[value, words] for value, words in LOOKS_AT.items() if value in choosable],
            "paces": [[pace, _in_words(pace)] for pace in PACES],
        },
        serial=instruments.serial(KEY, current, TIED),
        take=take,
        answer=desk.answer,
        after=instruments.follower(current, (*TIED, *crossings.TO_INSIDE, "text"), "address_writing", rewrite_every),
        patient=st.session_state["begins"],
    )


def _in_words(pace: str) -> str:
    return "as fast as it can" if PACES[pace] == float("inf") else f"{PACES[pace]:.0f} tokens a second"
