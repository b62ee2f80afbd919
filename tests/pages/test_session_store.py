"""Tests that a session record is found by its token, for a limited time."""

import time

import pytest

from pages.ui.models.session_store import (
    AWAY_AFTER,
    AWAY_AFTER_DISCONNECT,
    GONE_AFTER,
    HEARTBEAT,
    KEPT_FOR,
    MAX_RECORDS,
    SessionRecord,
    SessionStore,
)
from pages.ui.server_startup import check_settings


@pytest.fixture
def clock(monkeypatch):
    """The time as records see it; set it with `clock[0] = seconds`."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def some() -> SessionRecord:
    return SessionRecord(own_text="a text")


def test_tokens_are_long_and_no_two_alike():
    tokens = {SessionRecord().token for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 32 for token in tokens)


def test_what_was_left_is_found_for_a_while_and_by_its_token_alone(clock):
    store, mine = SessionStore(), some()
    store.put(mine)
    clock[0] += KEPT_FOR - 1
    store.put(some())
    assert store.claim("") is store.claim(mine.token[:-1]) is None
    assert store.claim(mine.token) is mine
    store.put(mine)
    clock[0] += KEPT_FOR + 1
    assert store.claim(mine.token) is None
    store.put(some())
    clock[0] -= 2
    assert store.claim(mine.token) is None  # for good
    assert SessionRecord().is_empty and not mine.is_empty


def test_what_a_tab_that_is_open_has_made_stays_however_long_it_rests(clock):
    store, mine = SessionStore(), some()
    store.put(mine)
    for _ in range(200):
        clock[0] += HEARTBEAT
        mine.see()
        store.put(some())
    clock[0] += KEPT_FOR - 1
    store.put(some())
    assert store.claim(mine.token) is mine


def test_only_so_many_are_kept_those_left_longest_ago_go_first(clock):
    store, all_of_them = SessionStore(), []
    for _ in range(MAX_RECORDS + 3):
        clock[0] += 0.1
        all_of_them.append(some())
        store.put(all_of_them[-1])
    assert [store.claim(one.token) is one for one in all_of_them] == [False] * 3 + [True] * MAX_RECORDS


def test_how_long_a_visitor_has_been_away(clock):
    record = some()
    clock[0] += AWAY_AFTER_DISCONNECT + 1
    assert not record.is_away
    record.end_connection()
    assert record.is_away and not record.is_gone
    record.see()
    assert not record.is_away
    clock[0] += AWAY_AFTER + 1
    assert record.is_away and not record.is_gone
    clock[0] += GONE_AFTER
    assert record.is_gone
    record.see()
    assert not record.is_gone


def test_a_stopped_training_is_found_for_a_while_and_a_hidden_page_is_open():
    assert KEPT_FOR > 2 * GONE_AFTER
    assert AWAY_AFTER > 60 + HEARTBEAT / 2  # a browser lets a page that is hidden run once a minute


def test_a_server_whose_store_can_be_no_folder_does_not_start(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HEADSUP_STORE", str(tmp_path / "file"))
    with pytest.raises(SystemExit, match=r"^Error: HEADSUP_STORE is .*which can't be a folder for own models"):
        check_settings()
    monkeypatch.setenv("HEADSUP_STORE", str(tmp_path / "new" / "folder"))
    check_settings()
    assert (tmp_path / "new" / "folder").is_dir()
