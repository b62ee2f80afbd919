"""Tests the events of rooms over HTTP: on one server, on two that share a Redis, and as they stop."""

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from urllib.error import HTTPError

import pytest
import uvicorn
from starlette.types import ASGIApp

from pages.ui import server_startup
from pages.ui.lessons import room, room_events
from pages.ui.lessons.room_events import AT_ONCE, HEADER, RoomEvents
from pages.ui.lessons.room_stores import STREAMS_LAPSE, MemoryStore, RedisStore
from pages.ui.lessons.rooms import Rooms
from pages.ui.session.lesson_answers import StepId
from pages.ui.shared_redis import redis_client
from pages.ui.views.learn.room_api import app_of
from tests.redis_server import RedisServer, within

HERE, THERE = StepId("heads", 0), StepId("heads", 1)


@contextmanager
def serving(all_rooms: Rooms, is_stopping: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """The address of a server of a room's events, which is stopped at the end, and ends by itself."""
    with served(app_of(lambda: all_rooms, RoomEvents(lambda: all_rooms, is_stopping))) as url:
        yield url


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    assert within(30, lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def ask(url: str, code: str, key: str) -> tuple[int, str]:
    """Status and sentence of an answer that is no stream."""
    with pytest.raises(HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{url}/{code}/events", headers={HEADER: key}), timeout=30)
    return refused.value.code, json.loads(refused.value.read())["error"]


class Follower:
    """A page that follows its room. versions: those that it has heard of. events: how many have come, of any kind."""

    def __init__(self, url: str, code: str, key: str) -> None:
        self.versions: list[str] = []
        self.events = 0
        self.ended = False
        request = urllib.request.Request(f"{url}/{code}/events", headers={HEADER: key})
        threading.Thread(target=self._follow, args=(request,), daemon=True).start()

    def _follow(self, request: urllib.request.Request) -> None:
        with urllib.request.urlopen(request, timeout=100) as response:
            name = ""
            for line in response:
                field, _, value = line.decode().strip().partition(": ")
                name = value if field == "event" else name
                self.events += field == "event"
                if field == "data" and name == "room":
                    self.versions.append(json.loads(value)["version"])
        self.ended = True


@pytest.fixture(params=["one server", "two servers"])
def servers(request, tmp_path) -> Iterator[tuple[Rooms, Rooms, str, str]]:
    """The rooms of a teacher's server and of a student's, and where either is."""
    with ExitStack() as stack:
        if request.param == "one server":
            one = other = Rooms(MemoryStore())
            url = another = stack.enter_context(serving(one))
        else:
            redis = stack.enter_context(RedisServer(tmp_path))
            one, other = (Rooms(RedisStore(redis_client(redis.address))) for _ in range(2))
            url, another = (stack.enter_context(serving(each)) for each in (one, other))
        yield one, other, url, another


def test_a_page_hears_at_once_of_what_its_teacher_does(servers, monkeypatch):
    monkeypatch.setattr(room_events, "LOOK_EVERY", 3600.0)  # what is heard, the store has said
    monkeypatch.setattr(room_events, "QUIET", 3600.0)
    one, other, url, another = servers
    code, key = one.open(HERE)
    member = other.join(code)[1]
    teacher, student = Follower(url, code, key), Follower(another, code, member)
    assert within(30, lambda: teacher.versions and student.versions)
    assert within(30, lambda: teacher.versions[-1] == one.versions(code).of(key))
    before = len(student.versions)
    one.move(code, key, THERE)
    assert within(30, lambda: len(student.versions) > before)
    assert student.versions[-1] == other.versions(code).of(member)
    told, events = len(student.versions), student.events
    for answer in "ab":
        other.vote(code, member, THERE, answer)
        assert within(30, lambda: teacher.versions[-1] == one.versions(code).of(key))
    one.move(code, key, HERE)
    assert within(30, lambda: len(student.versions) > told)
    assert student.events == events + 1, "how others vote is the teacher's to see, and wakes no student's page"
    one.end(code, key)
    assert within(30, lambda: teacher.ended and student.ended)


def test_who_has_many_tabs_open_is_limited_over_all_servers_together(servers):
    one, other, url, another = servers
    code, key = one.open(HERE)
    for asked in ((code, ""), (code, code), (code, "0" * 32), ("ZZZZZ", key)):
        assert ask(url, *asked) == (404, "You are not in this room, or it has ended."), "nor whether there is one"
    followers = [Follower(another, code, one.join(code)[1])]
    followers += [Follower(address, code, key) for address in (url, another) for _ in range(AT_ONCE // 2)]
    assert within(30, lambda: all(each.versions for each in followers))
    if url != another:
        for store in (one.store, other.store):
            assert within(30, lambda store=store: store.streams_elsewhere(code, "a third", key) == AT_ONCE)
        killed, long_ago = copy(one.store), one.store.now() - STREAMS_LAPSE - 1
        killed.note_streams(code, "killed", {key: AT_ONCE})
        assert one.store.streams_elsewhere(code, "a third", key) == 2 * AT_ONCE
        killed.now = lambda: long_ago
        killed.note_streams(code, "killed", {key: AT_ONCE})
        assert one.store.streams_elsewhere(code, "a third", key) == AT_ONCE, "it lapses"
    for server in (url, another):
        assert ask(server, code, key) == (429, "This room is open in too many tabs.")


def test_who_follows_a_room_is_here(monkeypatch):
    monkeypatch.setattr(room, "HERE", 0.6)
    monkeypatch.setattr(room_events, "LOOK_EVERY", 0.2)
    all_rooms = Rooms()
    with serving(all_rooms) as url:
        code, key = all_rooms.open(HERE)
        stays, _ = (all_rooms.join(code)[1] for _ in range(2))
        Follower(url, code, stays)
        assert within(30, lambda: all_rooms.tally(code, key, HERE).here == 1)
        time.sleep(1)
        assert within(30, lambda: all_rooms.tally(code, key, HERE).here == 1)


def test_streams_end_where_the_server_stops_and_say_so_where_rooms_cannot_be_reached(tmp_path, monkeypatch):
    monkeypatch.setattr(room_events, "LOOK_EVERY", 0.2)
    stopping = threading.Event()
    with RedisServer(tmp_path) as redis:
        all_rooms = Rooms(RedisStore(redis_client(redis.address)))
        code, key = all_rooms.open(HERE)
        with serving(all_rooms, stopping.is_set) as url:
            first = Follower(url, code, key)
            assert within(30, lambda: first.versions)
            redis.kill()
            assert within(10, lambda: first.ended)
            status, sentence = ask(url, code, key)
            assert status == 503 and "can't be reached" in sentence
            redis.start()
            second = Follower(url, code, key)
            assert within(30, lambda: second.versions)
            stopping.set()
            assert within(30, lambda: second.ended)
            assert ask(url, code, key)[0] == 503


def test_a_server_that_is_told_to_end_notes_that_and_does_what_it_did_then():
    told: list[int] = []
    usual = signal.signal(signal.SIGUSR1, lambda number, frame: told.append(number))
    try:
        server_startup._note_as_stopping(signal.SIGUSR1)
        assert not server_startup._stopping.is_set()
        signal.raise_signal(signal.SIGUSR1)
        assert server_startup._stopping.is_set() and told == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, usual)
        server_startup._stopping.clear()
