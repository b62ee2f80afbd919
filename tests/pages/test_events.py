"""Tests that what a visitor does counts once, and for what was on the screen, whatever runs."""

import pytest

from pages.ui.components import events
from tests.component_events import sent


def test_each_event_is_heard_once_and_in_order_and_only_by_its_session(monkeypatch):
    heard, states = [], {}
    monkeypatch.setattr(events, "sent_by", states.get)
    events.listening("there", told=(int, lambda value: heard.append(("there", value))))
    hear = events.listening("here", told=(int, heard.append))["on_events_change"]

    first = sent("here", ("told", 1), ("told", "no number"), ("unknown", 2), ("told", 3))
    for states["here"] in (None, [], {"events": {}}, sent("here", ("told", 0), session="another"), first, first):
        hear()
    assert heard == [1, 3]
    later = sent("there", ("told", 4))  # what another page left behind
    states["here"] = {**later, "events": [*first["events"], *later["events"]]}
    events.hear_all()
    assert heard == [1, 3, ("there", 4)]
    assert {event["number"] for event in states["here"]["events"]} <= set(events.heard())
    for _ in range(2 * events.MOST):  # they aren't kept forever
        states["here"] = sent("here", *(("told", 5),) * 3)
        hear()
    assert len(events.heard()) <= 2 * events.MOST + 3


def test_an_answer_that_is_broken_off_is_given_to_its_end_and_once_for_each_event(monkeypatch):
    class BrokenOffError(BaseException):
        """As Streamlit raises at the next use of a session from which the browser wants something more by then."""

    heard, breaks = [], iter([True, False, True, False, False])

    def answer(value):
        if next(breaks):
            raise BrokenOffError
        heard.append(value)

    state = sent("here", *(("told", value) for value in (1, 2)))
    monkeypatch.setattr(events, "sent_by", lambda key: state)
    arguments = events.listening("here", told=(int, answer))
    with pytest.raises(BrokenOffError):
        arguments["on_events_change"]()
    events.hear_all()
    assert heard == [1, 2]
