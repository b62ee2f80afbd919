"""Tests that uploads fill no server, in front of Streamlit's own upload route."""

import random
from collections import Counter
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_routes import XSRF_COOKIE_NAME, create_upload_routes

from pages.ui import upload_limits
from pages.ui.upload_limits import Limit, UploadLimits, has_lapsed

SESSIONS = ("one", "two", "three")
TOKEN = generate_xsrf_token_string()
HEADERS = {"Cookie": f"{XSRF_COOKIE_NAME}={TOKEN}", "X-Xsrftoken": TOKEN}


class Server:
    """Streamlit's upload route behind the limits."""

    def __init__(self, base="", **how):
        self.files = MemoryUploadedFileManager("")
        runtime = SimpleNamespace(is_active_session=SESSIONS.__contains__)
        routes = create_upload_routes(runtime, self.files, base)
        self.app = Starlette(routes=routes, middleware=[Middleware(UploadLimits, **how)])
        self.base = f"/{base}".rstrip("/")
        self.client = TestClient(self.app, headers=HEADERS)

    @property
    def limits(self):
        return self.app.middleware_stack.app

    def at(self, session, file):
        return f"{self.base}/_stcore/upload_file/{session}/{file}"

    def put(self, session, file, content, address="203.0.113.7", **headers):
        self.client._transport.client = (address, 1)
        return self.client.put(self.at(session, file), files={"file": ("a.txt", content)}, headers=headers)

    def delete(self, session, file):
        return self.client.delete(self.at(session, file))

    def held(self, session):
        kept = self.files.file_storage.get(session, {}).values()
        return Limit(len(kept), sum(len(file.data) for file in kept))


@pytest.fixture
def small(monkeypatch):
    """Limits that a few small files meet, each of which comes in a hundred bytes or two of HTTP."""
    for name, limit in {"SESSION": Limit(4, 6_000), "ADDRESS": Limit(6, 8_000), "ALL": Limit(8, 10_000)}.items():
        monkeypatch.setattr(upload_limits, name, limit)


@pytest.mark.parametrize("base", ["", "school/headsup"])
def test_whatever_is_uploaded_and_deleted_stays_within_the_limits_and_is_counted_as_it_is_kept(small, base):
    source, server, statuses = random.Random(1), Server(base), Counter()
    with server.client:
        addresses = {}
        for _ in range(400):
            session, file = source.choice(SESSIONS), f"{source.randrange(6)}"
            if source.random() < 0.3:
                assert server.delete(session, file).status_code == 204
                addresses.pop((session, file), None)
                continue
            address, size = source.choice(("203.0.113.7", "2001:db8::1")), source.choice((0, 100, 1_000, 3_000))
            chunks = iter([b"x" * size]) if size and source.random() < 0.3 else None
            if chunks:  # without a length
                body = [b'--e\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n', *chunks, b"\r\n--e--"]
                kind = {"Content-Type": "multipart/form-data; boundary=e"}
                server.client._transport.client = (address, 1)
                answer = server.client.put(server.at(session, file), content=iter(body), headers=kind)
            else:
                answer = server.put(session, file, b"x" * size, address)
            statuses[answer.status_code] += 1
            if answer.status_code == 204:
                addresses[session, file] = address
            else:
                assert answer.status_code == 429 and answer.headers["retry-after"] == "120"
                assert answer.text.endswith("two minutes.")
            kept = {each: server.held(each) for each in SESSIONS}
            assert all(files <= 4 and size <= 6_000 for files, size in kept.values())
            assert sum(files for files, _ in kept.values()) <= 8 and sum(size for _, size in kept.values()) <= 10_000
            by_address = Counter(addresses.values())
            assert max(by_address.values(), default=0) <= 6
            assert server.limits._files["all"] == sum(files for files, _ in kept.values()) == len(addresses)
            assert {f"session {each}": kept[each].files for each in SESSIONS if kept[each].files} == {
                whose: files for whose, files in server.limits._files.items() if whose.startswith("session")
            }
        assert min(statuses[204], statuses[429]) > 50
        for session, file in addresses:
            server.delete(session, file)
        assert not server.limits._files and not server.limits._bytes and not server.limits._kept


def test_what_streamlit_refuses_counts_for_nothing_and_no_address_counts_behind_a_proxy_without_a_name(small):
    server = Server()
    with server.client:
        for _ in range(10):
            assert server.put("nobody", "a", b"x").status_code == 400
            assert server.put("one", "a", b"x", **{"X-Xsrftoken": "2|0|0|0"}).status_code == 403
        assert not server.limits._files and not server.limits._bytes
        for session, statuses in (("one", [204] * 4), ("two", [204, 204, 429]), ("three", [429])):
            assert [server.put(session, f"{file}", b"x").status_code for file in range(len(statuses))] == statuses
        behind = {"X-Forwarded-For": "198.51.100.1"}
        assert [server.put("three", f"{file}", b"x", **behind).status_code for file in range(3)] == [204, 204, 429]


def test_a_file_is_deleted_when_its_time_is_over(small):
    server = Server(kept_for=0.0)
    with server.client:
        for number in range(20):
            assert server.put("one", f"mine-{number}", b"x" * 3_000).status_code == 204
            server.client.options(server.at("one", "none"))  # by then its time is over
            assert has_lapsed(f"mine-{number}") and not server.held("one").files
        assert not has_lapsed("other") and not server.limits._files and not server.limits._kept
