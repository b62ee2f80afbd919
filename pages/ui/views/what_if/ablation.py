"""Ablation: which parts matter, as a map to click, and beside it what the model says with the changes and without."""

from __future__ import annotations

from pages.ui.frame.page import Session
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.what_if import ablation_map, before_and_after, python_code
from pages.ui.views.what_if.shared import lead_on, read


def show(session: Session) -> None:
    """The view."""
    has_parts = session.config.n_layers > 0
    if not has_parts and not session.interventions:
        lead_on(session)
        return
    reading = read(session)
    if not has_parts:
        said, mapped = before_and_after.said(session, reading), None
        if said:
            before_and_after.next_token(session, reading, said)
    else:
        parts, answer = side_by_side("ablation", 2)
        with answer:  # first, for it is there at once
            said = before_and_after.said(session, reading)
            if said:
                before_and_after.next_token(session, reading, said)
        with parts:
            mapped = ablation_map.show(session, reading, int(said.unchanged.argmax()) if said else None)
        if said and mapped and not session.interventions:
            with answer:
                before_and_after.suggest(session, reading, mapped.found)
    if said and session.interventions:
        before_and_after.what_changed(session, reading, said)
        before_and_after.writing(session, reading)
    if said:
        before_and_after.offer_table(session, said)
    if mapped:
        ablation_map.offer_table(session, mapped)
    python_code.ablation(session, reading, before_and_after.LENGTH, mapped)
