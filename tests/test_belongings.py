"""What a visitor has made is found again under its tab's key, for a while, and under no other."""

import time

import pytest

from pages.ui.models.belongings import KEPT, MOST_KEPT, Belongings, Cabinet


@pytest.fixture
def clock(monkeypatch):
    """The time as the cabinet sees it; set it with `clock[0] = seconds`."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def connected(monkeypatch):
    """The sessions whose browsers are connected."""
    sessions: set[str] = set()
    monkeypatch.setattr(Belongings, "is_here", lambda self: self.session in sessions)
    return sessions


def some(session: str) -> Belongings:
    return Belongings(session=session, own_text="a text")


def test_keys_are_long_and_no_two_alike():
    keys = {Belongings().key for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) == 32 for key in keys)


def test_what_was_left_a_moment_ago_is_found_and_by_its_key_alone(clock, connected):
    cabinet, mine = Cabinet(), some("mine")
    cabinet.put(mine)
    clock[0] += KEPT - 1
    cabinet.put(some("another"))
    assert cabinet.claim(mine.key) is mine
    assert cabinet.claim("") is None
    assert cabinet.claim(mine.key[:-1]) is None


def test_what_was_left_long_ago_has_gone(clock, connected):
    cabinet, mine = Cabinet(), some("mine")
    cabinet.put(mine)
    clock[0] += KEPT + 1
    cabinet.put(some("another"))
    assert cabinet.claim(mine.key) is None


def test_what_a_tab_that_is_open_has_made_stays_however_long_it_rests(clock, connected):
    cabinet, mine = Cabinet(), some("mine")
    connected.add("mine")
    cabinet.put(mine)
    for _ in range(5):
        clock[0] += KEPT - 1
        cabinet.put(some("another"))
    connected.clear()
    clock[0] += KEPT - 1
    cabinet.put(some("another"))
    assert cabinet.claim(mine.key) is mine


def test_only_so_many_are_kept_those_left_longest_ago_go_first(clock, connected):
    cabinet, all_of_them = Cabinet(), [some(str(number)) for number in range(MOST_KEPT + 3)]
    for one in all_of_them:
        clock[0] += 0.1
        cabinet.put(one)
    assert [cabinet.claim(one.key) is one for one in all_of_them] == [False] * 3 + [True] * MOST_KEPT


def test_nothing_is_kept_of_a_visitor_who_made_nothing():
    assert Belongings().is_empty
    assert not some("mine").is_empty
