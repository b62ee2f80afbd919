"""Tests that HEAD is answered wherever GET is, and that redirects lead to the same server whatever stands before it."""

import asyncio
from urllib.parse import quote, urljoin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient

from tests.api.test_answers import QUESTIONS
from transformer.api.heads_and_redirects import HeadsAndRedirects, relative
from transformer.api.serve import application

OTHERS = ("/health", "/metrics", "/docs", "/openapi.json", "/models", "/modules/none/api.js", "/nothing", "/models/")
GENERATE = {"model": "rotary", "tokens": "1,2", "max_new_tokens": 4}
ASKED = [*QUESTIONS.items(), *((path, {}) for path in OTHERS), ("/generate", GENERATE), ("/lens", {"model": "rotary"})]
PATIENCE = 120
"""Seconds after which something that should have happened hasn't."""
VARYING = {"set-cookie", "content-length"}
"""Headers that two questions may have different, the second those of streams and counts."""


@pytest.mark.parametrize(("path", "asked"), ASKED)
def test_head_has_the_status_and_the_headers_of_get_and_no_body(client, path, asked):
    head, get = (ask(path, params=asked, follow_redirects=False) for ask in (client.head, client.get))
    assert head.status_code == get.status_code and head.content == b""
    assert head.headers.keys() - VARYING == get.headers.keys() - VARYING
    assert {name: head.headers.get(name) for name in ("content-type", "etag", "location")} == {
        name: get.headers.get(name) for name in ("content-type", "etag", "location")
    }


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
def test_a_stream_that_would_never_end_is_closed_once_its_head_is_answered(spec_version):
    async def events():
        while True:
            yield b"event"
            await asyncio.sleep(0)

    async def hears_nothing():
        await asyncio.Event().wait()
        raise AssertionError

    async def head():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "HEAD", "path": "/", "headers": [], "query_string": b""}
        app = HeadsAndRedirects(StreamingResponse(events()))
        await app({**scope, "asgi": {"version": "3.0", "spec_version": spec_version}}, hears_nothing, send)
        return sent

    sent = asyncio.run(asyncio.wait_for(head(), PATIENCE))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_what_goes_wrong_before_an_answer_is_not_swallowed():
    async def broken(scope, receive, send):
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        TestClient(HeadsAndRedirects(broken)).head("/")


NAMES = st.lists(st.text("ab:?#é %&;", min_size=1, max_size=4).map(lambda name: quote(name)), max_size=3)


def path_of(names, ends_in_slash):
    return f"/{'/'.join(names)}{'/' if names and ends_in_slash else ''}"


def request_for(path):
    headers = [(b"host", b"school.example")]
    return Request({"type": "http", "scheme": "http", "path": path, "query_string": b"", "headers": headers})


@given(NAMES, NAMES, st.booleans(), st.booleans(), st.sampled_from(["", "?a=%2F&b=//"]))
@example(["api", "models"], ["api", "models"], True, False, "")
@example(["api"], ["api"], False, True, "")
@example(["x"], ["a:b"], False, True, "")
def test_a_redirect_leads_to_the_same_place_below_whatever_a_proxy_takes_off(asked, leads_to, here, there, query):
    asked, leads_to = path_of(asked, here), path_of(leads_to, there)
    location = relative(f"http://school.example{leads_to}{query}", request_for(asked))
    assert "school.example" not in location
    for outside in ("https://school.example", "https://school.example/course/headsup"):
        assert urljoin(f"{outside}{asked}", location) == f"{outside}{leads_to}{query}"


@pytest.mark.parametrize("location", ["https://elsewhere.example/a", "//elsewhere.example/a", "docs", "./?a"])
def test_an_address_elsewhere_and_a_relative_one_stay_as_they_are(location):
    assert relative(location, request_for("/a")) == location


@pytest.mark.parametrize(
    ("path", "leads_to"), [("/", "/api/docs"), ("/api", "/api/docs"), ("/api/models/", "/api/models")]
)
def test_a_server_behind_tls_sends_nobody_to_http(library, path, leads_to):
    site = "https://school.example"
    visitor = TestClient(application(library), base_url="http://school.example")
    for ask in (visitor.get, visitor.head):
        found = ask(path, headers={"X-Forwarded-Proto": "https"}, follow_redirects=False)
        assert urljoin(f"{site}{path}", found.headers["location"]) == f"{site}{leads_to}"
    # A name that two slashes begin is no other server's.
    strange = visitor.get("http://school.example//elsewhere.example/", follow_redirects=False)
    location = strange.headers.get("location", "")
    assert urljoin(f"{site}//elsewhere.example/", location).startswith(f"{site}/")
