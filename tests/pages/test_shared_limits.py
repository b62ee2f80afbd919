"""Tests limits that servers share: wrong codes of rooms, and requests, counted in Redis together."""

import pytest

from pages.ui.lessons import room_attempts
from pages.ui.lessons.room import RoomError
from pages.ui.lessons.room_attempts import Attempts
from pages.ui.shared_redis import REDIS_VARIABLE, buckets, redis_client
from tests.redis_server import RedisServer
from transformer.api.errors import ApiError
from transformer.api.limits import CLASSES
from transformer.api.request_counts import BURST, PER_SECOND, Counts, MemoryBuckets

HERE = "203.0.113.7"


@pytest.fixture
def now():
    """The time of buckets in memory: `now[0]`."""
    return [100.0]


@pytest.fixture
def ours(now):
    return MemoryBuckets(lambda: now[0])


@pytest.fixture
def server(tmp_path, monkeypatch):
    with RedisServer(tmp_path) as server:
        monkeypatch.setenv(REDIS_VARIABLE, server.address)
        yield server


def test_buckets_are_emptied_by_time_alone(now, ours):
    assert ours.fill({"a": 3.0, "b": 0.0}) == {"a": 3.0, "b": 0.0}
    now[0] += 1
    assert ours.fill({"a": 2.0, "b": 1.0}) == {"a": 4.0, "b": 1.0}
    now[0] += 10
    assert ours.fill({"a": 0.0}) == {"a": 0.0}


def test_servers_with_one_redis_have_the_same_buckets_and_while_it_is_away_their_own(server):
    one, other = buckets(), buckets()
    assert one.fill({f"address {HERE}": 50.0, "b": 0.0}) == {f"address {HERE}": 50.0, "b": 0.0}
    assert other.fill({f"address {HERE}": 50.0})[f"address {HERE}"] == pytest.approx(100, abs=5)
    client = redis_client(server.address)
    (key,) = client.keys()
    assert HERE not in key and 0 < client.pttl(key) <= 100_000 and client.get(key) == ""
    server.kill()
    assert one.fill({"me": 7.0}) == other.fill({"me": 7.0}) == {"me": 7.0}
    assert one.fill({"me": 7.0})["me"] == pytest.approx(14, abs=1)
    server.start()
    assert one.fill({f"address {HERE}": 0.0})[f"address {HERE}"] == pytest.approx(100, abs=15)


def test_wrong_codes_are_limited_by_visitor_by_address_and_in_all(now, ours):
    attempts = Attempts(ours)
    for visitor, address, (most, rate) in (  # who shows another cookie each time, and another address
        ("me", "here", room_attempts.VISITOR),
        ("{}", "here", room_attempts.ADDRESS),
        ("{}", "{}", room_attempts.ALL),
    ):
        attempts.check("me", "elsewhere")
        for number in range(most):
            attempts.add_wrong(visitor.format(number), address.format(number))
        with pytest.raises(RoomError, match="Too many wrong codes"):
            attempts.check("me", "here")
        now[0] += 2 * most / rate
        attempts.check("me", "here")
    for _ in range(room_attempts.VISITOR[0]):
        attempts.check("me", "here")
        attempts.add_wrong("me", "here")
    attempts.check("you", "here")


def test_joins_are_limited_by_browser_and_by_room_and_address_and_a_class_behind_one_address_passes(now, ours):
    attempts, size = Attempts(ours), 1_000
    for number in range(room_attempts.CLASSES * size):
        attempts.join(f"{number}", "hall", "ABCDE", size)
    with pytest.raises(RoomError, match="your network has joined too often"):
        attempts.join("one more", "hall", "ABCDE", size)
    attempts.join("one more", "hall", "FGHJK", size)
    for who in range(3 * size):  # behind a proxy that nobody has named, everybody has one address
        attempts.join(f"{who} elsewhere", None, "ABCDE", size)
    for _ in range(room_attempts.JOINS[0]):
        attempts.join("me", None, "ABCDE", size)
    with pytest.raises(RoomError, match="This browser or your network"):
        attempts.join("me", None, "FGHJK", size)
    now[0] += 1 / room_attempts.JOINS[1] + 1
    attempts.join("me", "hall", "ABCDE", size)


def test_requests_count_on_all_servers_together_and_each_counts_alone_at_once(server, monkeypatch):
    monkeypatch.setattr(Counts, "_share_always", lambda self: None)  # the test says when
    one, other = (Counts(fill_shared=buckets().fill) for _ in range(2))

    def ask(counts, who="visitor me", many=1):
        counts.begin(who, many)
        counts.end(who)

    for counts in (one, other):
        for _ in range(BURST - 2):  # neither of which is too many for one of them
            ask(counts)
            ask(counts, f"address {HERE}", CLASSES)
        counts.share()
    ask(one)
    one.share()  # the other learned it as it shared
    for counts in (one, other):
        with pytest.raises(ApiError, match="Too many questions at once"):
            ask(counts)
        ask(counts, f"address {HERE}", CLASSES)
        ask(counts, "visitor you")
    with pytest.raises(ApiError):
        for _ in range(2 * BURST):
            ask(one, "visitor fast")


def test_who_waits_is_served_again_and_without_a_redis_a_server_is_by_itself(now, ours, monkeypatch):
    counts = Counts(fill_shared=ours.fill)
    ours.fill({"me": 2 * BURST / PER_SECOND})
    counts.begin("me")
    counts.share()
    with pytest.raises(ApiError):
        counts.begin("me")
    now[0] += BURST / PER_SECOND + 1
    counts.share()
    counts.begin("me")
    monkeypatch.delenv(REDIS_VARIABLE, raising=False)
    assert isinstance(buckets(), MemoryBuckets)
