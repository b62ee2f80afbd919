"""Tests that a session record is found by its token, for a limited time."""

import time

import pytest

from pages.ui.session import session_store
from pages.ui.session.session_store import (
    AWAY_AFTER,
    AWAY_AFTER_DISCONNECT,
    GONE_AFTER,
    HEARTBEAT,
    KEPT_FOR,
    MAX_RECORDS,
    SessionRecord,
    SessionStore,
)


@pytest.fixture
def clock(monkeypatch):
    """The time as records see it: `clock[0]`."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_record_is_found_by_its_token_alone_until_its_tab_has_been_silent_for_too_long(clock):
    store, mine = SessionStore(), SessionRecord(own_text="a text")
    assert SessionRecord().is_empty and not mine.is_empty
    store.put(mine)
    for _ in range(2 * int(KEPT_FOR / HEARTBEAT)):
        clock[0] += HEARTBEAT
        mine.see()
        store.put(SessionRecord())
    clock[0] += KEPT_FOR - 1
    assert len(mine.token) == 32 and store.claim("") is store.claim(mine.token[:-1]) is None
    assert store.claim(mine.token) is mine
    clock[0] += 2
    assert store.claim(mine.token) is None
    store.put(SessionRecord())
    clock[0] -= 2
    assert store.claim(mine.token) is None, "for good"


@pytest.mark.parametrize(("number", "size", "kept"), [(303, 0, 300), (43, 5_000_000, 40)])
def test_who_is_there_keeps_everything_and_of_those_who_left_the_first_go_first(clock, monkeypatch, number, size, kept):
    """More records than are kept, or of more bytes, as largest texts have them."""
    assert MAX_RECORDS >= 300
    monkeypatch.setattr(session_store, "MAX_RECORDS", 300)
    monkeypatch.setattr(session_store, "MAX_BYTES", 200_000_000)
    store, text = SessionStore(), ("text", b" " * size)
    records = [SessionRecord(uploaded_text=text) for _ in range(number)]
    for record in records:
        clock[0] += 0.01
        record.see()
        store.put(record)
    assert all(store.claim(each.token) is each for each in records)
    clock[0] += AWAY_AFTER + 1
    for record in [records[1], records[0]]:
        record.see()
        store.put(record)
    left = [store.claim(each.token) is each for each in records]
    assert left == [True, True, *[False] * (number - kept), *[True] * (kept - 2)]


def test_how_long_a_visitor_has_been_away(clock):
    record = SessionRecord()
    for ends, seconds, is_away, is_gone in (
        (False, AWAY_AFTER_DISCONNECT + 1, False, False),
        (True, AWAY_AFTER_DISCONNECT + 1, True, False),
        (False, AWAY_AFTER + 1, True, False),
        (False, GONE_AFTER + 1, True, True),
    ):
        record.see()
        if ends:
            record.end_connection()
        clock[0] += seconds
        assert (record.is_away, record.is_gone) == (is_away, is_gone), seconds
