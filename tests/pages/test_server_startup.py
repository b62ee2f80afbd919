"""Tests what the server prepares before its first visitor."""

import asyncio
import base64
import gc
import hashlib
import re
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.web.server.app_discovery import discover_asgi_app

from pages.ui import security_headers, server_startup
from pages.ui.components import assets
from pages.ui.models.visitor_training import queue
from pages.ui.security_headers import SecurityHeaders
from pages.ui.upload_limits import UploadLimits
from transformer.api.graceful_shutdown import ending_in_order

ROOT = Path(__file__).parents[2]
FIRST_PAGE = """
import sys, transformer
print({"fastapi", "starlette", "uvicorn"} & set(sys.modules))
from pages.ui import server_startup
server_startup.prepare_first_page()
from transformer.training import cost_estimate
from pages.ui.models import library
cost_estimate.parameter_count(library.config("shakespeare"))
cost_estimate.CALIBRATION_SECONDS = 0
cost_estimate.machine()  # trains a few steps
print([name for name in ("torch._dynamo", "sympy", "streamlit.emojis") if name in sys.modules])
"""


def test_the_engine_needs_no_web_framework_and_neither_the_first_page_nor_a_training_the_compiler_or_emojis():
    """PyTorch's compiler takes a second and 80 MB to import; a table of emojis a quarter of a second."""
    found = subprocess.run([sys.executable, "-c", FIRST_PAGE], cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert found.stdout.splitlines() == ["set()", "[]"], found.stderr


@pytest.mark.parametrize(("base", "below"), [("", ""), ("headsup", "/headsup"), ("/a/b/", "/a/b")])
def test_the_app_is_found_and_serves_the_engine_below_the_path_of_the_pages(base, below, monkeypatch):
    monkeypatch.setattr(server_startup, "API", server_startup.MadeWhenAsked(server_startup._api))
    assert discover_asgi_app(ROOT / "app.py").import_string == "app:app"
    assert {SecurityHeaders, UploadLimits} <= {each.cls for each in import_module("app").app._user_middleware}
    visitor = TestClient(Starlette(routes=server_startup.routes(base)))
    try:
        assert visitor.get(f"{below}/api/health").status_code == 200
        assert "headsup_trainings_running 0" in visitor.get(f"{below}/api/metrics").text
        is_busy = server_startup.API.made.state.responder.is_busy
        assert queue().is_busy == is_busy, "trainings are told when visitors wait for answers"
    finally:
        queue.clear()
    assert visitor.get(f"{below}/modules/{assets.MODULES.address(assets.COMPONENTS)}").status_code == 200
    assert "You are not in this room" in visitor.get(f"{below}/api/rooms/events").text
    front = visitor.get(f"{below}/Generate?prompt=a%20b", follow_redirects=False)
    assert front.headers["location"] == f"{below}/?prompt=a%20b", "the first page's address has no name"


def test_who_wants_pages_run_waits_until_the_first_page_is_prepared(monkeypatch):
    prepared = threading.Event()
    monkeypatch.setattr(server_startup, "_prepared", prepared)
    let_in = []

    async def app(scope, receive, send):
        let_in.append((scope["type"], server_startup.WaitUntilPrepared.connected))

    async def visit():
        door = server_startup.WaitUntilPrepared(app)
        waiting = asyncio.create_task(door({"type": "websocket"}, None, None))
        await door({"type": "http"}, None, None)
        await asyncio.sleep(0.05)
        assert let_in == [("http", 0)]
        prepared.set()
        await waiting
        assert let_in == [("http", 0), ("websocket", 1)] and server_startup.WaitUntilPrepared.connected == 0

    asyncio.run(visit())


def test_what_can_not_be_prepared_keeps_nobody_waiting(monkeypatch, caplog):
    collected = []

    def fail():
        collected.append(gc.isenabled())
        raise OSError("no disk")

    monkeypatch.setattr(server_startup, "_prepared", threading.Event())
    monkeypatch.setattr(server_startup, "prepare_first_page", fail)
    monkeypatch.setattr(server_startup, "prepare_other_pages", fail)
    monkeypatch.setattr(server_startup, "REST", 0.0)
    before = sys.getswitchinterval()
    server_startup._prepare()
    assert server_startup._prepared.is_set()
    assert sys.getswitchinterval() == before
    assert collected == [False, False] and gc.isenabled()
    assert "Not everything could be prepared" in caplog.text
    monkeypatch.undo()
    server_startup.prepare_other_pages()


def answered(**headers):
    """What a server answers that sets a cookie."""

    async def answer(request):
        return PlainTextResponse(
            "", headers={"Set-Cookie": "who=me; Path=/; SameSite=Lax", "Cache-Control": "no-cache"}
        )

    app = Starlette(routes=[Route("/", answer)], middleware=[Middleware(SecurityHeaders)])
    return [TestClient(app).get(path, headers=headers).headers for path in ("/", "/nothing")]


def test_every_answer_says_what_a_page_may_load_who_may_frame_it_and_to_whom_its_cookies_go(monkeypatch):
    plain, over_https = "who=me; Path=/; SameSite=Lax", {"X-Forwarded-Proto": "https"}
    assert answered(**over_https)[0]["set-cookie"] == plain
    monkeypatch.setenv("HEADSUP_FRAME_ANCESTORS", "https://a.example, https://*.b.example:8443")
    for headers in answered():
        policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
        assert policy["frame-ancestors"] == "'self' https://a.example https://*.b.example:8443"
        assert "'unsafe" not in policy["script-src"] + policy["default-src"]
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"
    assert answered()[0]["set-cookie"] == plain
    assert answered(**over_https)[0]["set-cookie"] == "who=me; Path=/; SameSite=None; Secure; Partitioned"
    index = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    scripts = re.findall("<script>(.*?)</script>", index, re.DOTALL)  # Streamlit's own, all of them
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert [f"'sha256-{digest}'" for digest in digests] == re.findall(r"'sha256-[^']*'", policy["script-src"])


@pytest.mark.parametrize("setting", ["*", "a.example", "https://a.example; script-src *", "https://a.example/path"])
def test_what_is_no_origin_ends_the_server_with_a_sentence(monkeypatch, setting):
    monkeypatch.setenv(security_headers.VARIABLE, setting)
    with pytest.raises(SystemExit, match=r"HEADSUP_FRAME_ANCESTORS names .* it must name origins, such as"):
        server_startup.check_settings()


@pytest.mark.parametrize("ends_by_itself", [True, False])
def test_sigterm_ends_the_server_after_what_runs_or_after_a_while(ends_by_itself):
    heard, done = [], []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append("server"))

    async def serve():
        begin, end = lambda: heard.append("begin"), lambda: heard.append("end")
        with ending_in_order(begin, lambda: bool(done), end, patience=60.0 if ends_by_itself else 0.0):
            for _ in range(2):  # whoever asks twice waits no less
                signal.raise_signal(signal.SIGTERM)
                await asyncio.sleep(0.05)
            assert heard == (["begin"] if ends_by_itself else ["begin", "end", "server"])
            done.append(True)
            async with asyncio.timeout(20):
                while "server" not in heard:
                    await asyncio.sleep(0.01)

    try:
        asyncio.run(serve())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == ["begin", "end", "server"]
