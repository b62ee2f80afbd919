"""Tests the API's rate, size and time limits."""

import pytest

from transformer.api import limits
from transformer.api.app import create_app
from transformer.api.errors import ApiError
from transformer.api.limits import CLASSES, COOKIE, NEW_FOR, STRANGERS, Limits, Share, counted_address, share_of
from transformer.api.request_counts import AT_ONCE, BURST, PER_SECOND, REMEMBERED, Counts
from transformer.inference.scheduler import Scheduler


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when they are told to."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    return now


class Door:
    """The limits in front of an application that answers at once."""

    def __init__(self, counts=None):
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        self.limits = Limits(app, counts)

    def ask(self, cookie="", address="203.0.113.7", forwarded=()):
        """The status, and the cookie that is set."""
        sent = []

        async def note(message):
            sent.append(message)

        headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
        if cookie:
            headers.append((b"cookie", f"{COOKIE}={cookie}".encode()))
        scope = {"type": "http", "query_string": b"", "path": "/", "headers": headers, "client": (address, 1)}
        with pytest.raises(StopIteration):  # it never waits
            self.limits(scope, None, note).send(None)
        set_cookie = dict(sent[0]["headers"]).get(b"set-cookie", b"").decode()
        return sent[0]["status"], set_cookie.partition(f"{COOKIE}=")[2].partition(";")[0]


def test_a_flood_is_told_to_wait_while_others_are_served(make_client):
    client = make_client(Counts(per_second=1e-3, burst=20))  # however slow the flood is
    client.get("/health")  # which brings the cookie
    answers = [client.get("/health") for _ in range(21)]
    refused = answers[-1]
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    assert refused.json() == {"error": "Too many questions at once; ask again in a second.", "parameter": ""}
    assert {answer.status_code for answer in answers[:-1]} == {200}
    client.cookies.clear()  # another visitor, at the same address
    assert [client.get("/health").status_code for _ in range(5)] == [200] * 5


def test_a_flood_without_a_cookie_is_told_to_wait_and_visitors_at_its_address_are_served(clock):
    door = Door()
    visitor = door.ask()[1]
    statuses = [door.ask()[0] for _ in range(STRANGERS * BURST + 100)]
    assert statuses.count(429) >= 100 and statuses[-1] == 429
    assert door.ask(visitor)[0] == 200
    assert door.ask(address="198.51.100.1")[0] == 200
    clock[0] += 1
    assert door.ask()[0] == 200


def test_thirty_visitors_behind_one_address_never_meet_its_cap(clock):
    door, visitors, fast = Door(), [], 50
    for _ in range(30):  # all open a page at once, which asks ten things before it has a cookie
        answers = [door.ask() for _ in range(10)]
        assert {status for status, _ in answers} == {200}
        visitors.append(answers[-1][1])
    for _ in range(4 * fast):
        clock[0] += 1 / fast
        assert {door.ask(visitor)[0] for visitor in visitors} == {200}
    assert fast < PER_SECOND


def test_an_address_has_a_cap_however_many_cookies_it_shows(clock):
    door = Door(Counts(1.0, 5))
    visitors = [limits.signer().sign(f"{each}").decode() for each in range(2 * CLASSES)]
    statuses = [door.ask(visitor)[0] for visitor in visitors for _ in range(5)]
    assert statuses.count(200) == 5 * CLASSES


def test_a_cookie_that_was_tampered_with_is_nobody_s_and_replicas_may_share_a_secret(clock, monkeypatch):
    door = Door()
    cookie = door.ask()[1]
    assert door.ask(cookie)[1] == ""  # it is known
    name, _, signature = cookie.partition(".")
    for wrong in (f"{name}.{signature[::-1]}", f"0{cookie}", name, "....", "é", f"{name}.{signature[:-1]}"):
        status, other = door.ask(wrong)
        assert status == 200 and other and other != cookie
    assert Door().ask(cookie)[1] == "", "a server has one secret"
    limits._signer.cache_clear()
    assert Door().ask(cookie)[1], "another secret has signed it"
    monkeypatch.setenv(limits.SECRET_VARIABLE, "a secret")
    assert Door().ask(Door().ask()[1])[1] == ""


@pytest.mark.parametrize(
    ("proxies", "client", "header", "is_one"),
    [
        ("", "203.0.113.7", lambda at: [f"198.51.100.{at % 250}"], True),  # whoever says so may lie
        ("203.0.113.7", "203.0.113.7", lambda at: [f"198.51.100.{at % 250}"], False),
        ("203.0.113.0/24", "203.0.113.7", lambda at: [f"10.0.0.{at % 250}, 198.51.100.1"], True),  # the proxy's word
        ("203.0.113.7", "203.0.113.7", lambda at: [f"10.0.0.{at % 250}", "198.51.100.1"], True),  # in its own line
        ("203.0.113.7,192.0.2.1", "203.0.113.7", lambda at: [f"10.0.0.9, 198.51.100.{at % 250}, 192.0.2.1"], False),
        ("203.0.113.7", "192.0.2.9", lambda at: [f"198.51.100.{at % 250}"], True),
        ("", "2001:db8:1:2::{at:x}", lambda at: [], True),  # a household has a network
        ("", "2001:db8:1:{at:x}::1", lambda at: [], False),
    ],
)
def test_a_forwarded_address_counts_from_a_configured_proxy_alone(clock, monkeypatch, proxies, client, header, is_one):
    monkeypatch.setenv(limits.PROXIES_VARIABLE, proxies)
    door = Door(Counts(1.0, 5))
    statuses = {
        door.ask(address=client.format(at=at % 250), forwarded=header(at))[0] for at in range(STRANGERS * 5 + 50)
    }
    assert statuses == ({200, 429} if is_one else {200})
    monkeypatch.setenv(limits.PROXIES_VARIABLE, "everybody")
    with pytest.raises(ValueError, match="HEADSUP_PROXIES is 'everybody'; it must name addresses"):
        create_app()


@pytest.mark.parametrize(
    ("proxies", "client", "forwarded", "counted"),
    [
        ("", "203.0.113.7", [], "203.0.113.7"),
        ("", "10.0.0.5", ["198.51.100.1"], None),  # all visitors have the address of a proxy that nobody has named
        ("", "10.0.0.5", ["", " "], "10.0.0.5"),
        ("10.0.0.5", "10.0.0.5", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.5", "203.0.113.7", ["198.51.100.1"], "203.0.113.7"),  # who isn't it may lie
        ("10.0.0.5", "10.0.0.5", ["198.51.100.9, 2001:db8:1:2::3"], "2001:db8:1:2::/64"),
    ],
)
def test_an_address_is_counted_unless_all_visitors_share_it(monkeypatch, proxies, client, forwarded, counted):
    monkeypatch.setenv(limits.PROXIES_VARIABLE, proxies)
    assert counted_address(client, forwarded) == counted


def test_cookies_that_are_fetched_at_once_buy_few_shares_until_they_are_known(monkeypatch):
    now = [1_700_000_000.0]
    monkeypatch.setattr(limits.time, "time", lambda: now[0])
    cookies = [limits.signer().sign(f"{number}").decode() for number in range(200)]
    monkeypatch.setattr(limits.time, "time", lambda: now[0] + NEW_FOR + 1)
    assert len({share_of(cookie, "203.0.113.7") for cookie in cookies}) == 200
    monkeypatch.setattr(limits.time, "time", lambda: now[0] + NEW_FOR - 1)
    strangers = {share_of(cookie, "203.0.113.7") for cookie in cookies}
    assert len(strangers) == STRANGERS and not any(share.is_visitor for share in strangers)
    for forged in ("", "5", cookies[5][:-1], f"6{cookies[5]}"):
        assert share_of(forged, "203.0.113.7") in strangers
    tabs = {share_of("", "203.0.113.7", f"tab {number}") for number in range(200)}
    assert tabs == strangers and tabs.isdisjoint({share_of("", "198.51.100.1", f"tab {number}") for number in range(9)})
    behind_a_proxy = {share_of(cookie, None) for cookie in cookies}
    assert len(behind_a_proxy) == 200 and all(share.is_visitor for share in behind_a_proxy)


def test_whatever_is_asked_is_answered_in_the_turn_of_who_asks(make_client, monkeypatch):
    client, turns = make_client(), {}

    def note(where, method, name):
        """Note whose turn a queue is told; the share is its only one among the arguments."""
        usual = getattr(where, method)

        def noted(*args, **kwargs):
            turns.setdefault(name, []).extend(each for each in (*args, *kwargs.values()) if isinstance(each, Share))
            return usual(*args, **kwargs)

        monkeypatch.setattr(where, method, noted)

    responder = client.app.state.responder
    note(responder._opening, "submit", "opening")
    note(responder._short, "join", "short")
    note(responder._long, "join", "long")
    note(Scheduler, "submit", "texts")
    for address, text in (("203.0.113.7", "To be"), ("198.51.100.1", "or not to be")):  # the same would be cached
        client._transport.client = (address, 1)
        for path in ("overview", "ablation", "generate"):
            assert client.get(f"/{path}", params={"model": "rotary", "text": text}).status_code == 200
        for name in ("opening", "short", "long", "texts"):
            assert {share.address for share in turns.pop(name)} == {address}, name


def test_only_so_many_questions_of_a_visitor_are_under_way_and_only_so_many_visitors_are_counted(clock):
    counts = Counts()
    for _ in range(AT_ONCE):
        counts.begin("one")
    with pytest.raises(ApiError) as told:
        counts.begin("one")
    assert told.value.status_code == 429
    for each in range(REMEMBERED + 500):
        counts.begin(f"{each}")
        counts.end(f"{each}")
    assert len(counts._buckets._empty_at) <= REMEMBERED and len(counts._in_flight) == 1
    counts.end("one")  # which is kept, though others came after it
    counts.begin("one")


def test_what_is_too_long_is_refused_before_it_is_read(client):
    long = client.get("/overview", params={"model": "rotary", "text": "a" * 9000})
    assert long.status_code == 414 and "body of a POST" in long.json()["error"]
    for body in (b"x" * 300_000, (b"x" * 1000 for _ in range(300))):  # with a length, and in pieces
        large = client.post("/overview", content=body, headers={"Content-Type": "application/json"})
        assert large.status_code == 413 and large.json()["error"].startswith("The body has more than")


def test_errors_are_sentences_wherever_they_come_from(make_client, monkeypatch):
    client = make_client(raise_server_exceptions=False)
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("DELETE", "/overview", 405),
        ("POST", "/models", 405),
        ("POST", "/overview", 400),
        ("GET", "/tensors/../app", 404),
    ):
        found = client.request(method, path)
        assert found.status_code == status and found.json()["error"].endswith(".")
        assert found.headers["cache-control"] == "no-store"
    for more, sentence in (
        ({}, "The parameter position is missing."),
        ({"position": 0, "colour": "red"}, "There is no parameter 'colour' here."),
        ({"position": "two"}, "position can't be used: 'two': input should be a valid integer"),
    ):
        found = client.get("/lens", params={"model": "rotary", "text": "To be", **more}).json()
        assert found["error"].startswith(sentence) and found["parameter"] in sentence
    monkeypatch.setattr(client.app.state.responder, "model", None)
    found = client.get("/overview", params={"model": "rotary", "text": "To be"})
    assert found.status_code == 500 and found.json()["error"].endswith("in its log.")
