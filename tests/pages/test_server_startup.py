"""Tests what the server prepares before its first visitor."""

import asyncio
import base64
import contextlib
import gc
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urljoin

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.web.server.app_discovery import discover_asgi_app

from deploy import replicas
from pages.ui import server_startup
from pages.ui.components import assets
from pages.ui.lessons import rooms
from pages.ui.security_headers import SecurityHeaders
from pages.ui.session import visitor_training
from pages.ui.session.visitor_training import queue
from pages.ui.upload_limits import UploadLimits
from transformer.api import graceful_shutdown
from transformer.api.graceful_shutdown import ending_in_order
from transformer.inference.scheduler import schedulers

ROOT = Path(__file__).parents[2]
FIRST_PAGE = """
import sys, transformer
print({"fastapi", "starlette", "uvicorn"} & set(sys.modules))
from deploy import replicas
from pages.ui import server_startup
server_startup.prepare_first_page()
from pathlib import Path
from streamlit.testing.v1 import AppTest
AppTest.from_file(str(Path("pages/main.py").resolve()), default_timeout=100).run()
print("pandas" in sys.modules)
from transformer.training import cost_estimate
from pages.ui.models import library
cost_estimate.parameter_count(library.config("shakespeare"))
cost_estimate.CALIBRATION_SECONDS = 0
cost_estimate.machine()  # trains a few steps
print([name for name in ("torch._dynamo", "sympy", "streamlit.emojis") if name in sys.modules])
"""


def test_the_engine_needs_no_web_framework_the_first_page_no_pandas_and_neither_it_nor_a_training_the_compiler():
    """PyTorch's compiler takes a second and 80 MB to import; pandas half a second, a table of emojis a quarter."""
    found = subprocess.run([sys.executable, "-c", FIRST_PAGE], cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert found.stdout.splitlines() == ["set()", "False", "[]"], found.stderr


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
    for ask in (visitor.get, visitor.head):
        front = ask(f"{below}/Generate?prompt=a%20b", follow_redirects=False)
        leads_to = urljoin(f"https://school.example{below}/Generate?prompt=a%20b", front.headers["location"])
        assert leads_to == f"https://school.example{below}/?prompt=a%20b", "the first page's address has no name"
    script = re.search('<script type="module" src="(.*?)">', visitor.get(f"{below}/room").text)
    assert "location.hash" in visitor.get(f"{below}/{script[1]}").text, "a private link's page has its script"


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


SWITCHES = ["no", "0", "false", " off"]
NUMBERS = ["0", "-1", "1.5", "1e3", "99999", "many", "٣", "1 2"]
FOLDERS = ["/nowhere/at/all", "/dev/null", "/dev/null/x"]
BAD: dict[str, list[str]] = {
    "HEADSUP_SECRET": [" ", "\t"],
    "HEADSUP_PROXIES": ["everybody", "10.0.0.300", "10.0.0.0/64", "10.0.0.1:80"],
    "HEADSUP_FRAME_ANCESTORS": ["*", "a.example", "https://a.example; script-src *", "https://a.example/path"],
    "HEADSUP_STORE": ["/dev/null", "/dev/null/x", "/proc/store"],
    "HEADSUP_MODEL_MEMORY": ["0 MB", "1500", "much", "1 TB", "-1 GB", " "],
    **dict.fromkeys(("HEADSUP_CHECKPOINTS", "HEADSUP_LESSONS", "HEADSUP_CORPORA"), FOLDERS),
    **dict.fromkeys(("HEADSUP_TRAININGS", "HEADSUP_ROOMS", "HEADSUP_ROOM_SIZE"), NUMBERS),
    "HEADSUP_REDIS": ["localhost:6379", "http://localhost", "redis://localhost:port", "redis://localhost:99999"],
    **dict.fromkeys(("HEADSUP_BROWSER_MODELS", "HEADSUP_START"), SWITCHES),
}
"""Every setting, and values that it can't have."""
GOOD = {
    "HEADSUP_SECRET": "0123abcd",
    "HEADSUP_PROXIES": "10.0.0.5, 172.16.0.0/12",
    "HEADSUP_FRAME_ANCESTORS": "https://moodle.school.example, https://*.school.example",
    "HEADSUP_MODEL_MEMORY": "1500 MB",
    "HEADSUP_TRAININGS": " 2",
    "HEADSUP_ROOMS": "10000",
    "HEADSUP_ROOM_SIZE": "300",
    "HEADSUP_REDIS": "rediss://user:pass@localhost:6379/0",
    "HEADSUP_BROWSER_MODELS": "Off",
    "HEADSUP_START": "off",
}


@pytest.fixture
def no_settings(monkeypatch):
    for name in BAD:
        monkeypatch.delenv(name, raising=False)
    rooms.all_rooms.cache_clear()
    yield
    rooms.all_rooms.cache_clear()


@pytest.mark.parametrize("name", BAD)
def test_a_setting_that_can_not_be_ends_the_server_with_a_sentence(name, no_settings, monkeypatch, tmp_path):
    for value in BAD[name]:
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            server_startup.check_settings()
        said = str(ended.value)
        assert re.match(rf"Error: {name} (is|names|isn't) .*\.$", said), value
    for value in (GOOD.get(name, str(tmp_path)), ""):
        monkeypatch.setenv(name, value)
        server_startup.check_settings()


def test_every_setting_is_checked():
    source = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("pages", "transformer")
        for file in (ROOT / folder).glob("**/*.py")
    )
    assert set(re.findall(r'"(HEADSUP_\w+)"', source)) == BAD.keys()


@pytest.mark.parametrize("base", ["a b", "{x}", "é", "a//b", "http://a.example", "a?b"])
def test_a_base_path_that_can_not_be_ends_the_server_with_a_sentence(base):
    with pytest.raises(SystemExit, match=r"^Error: server.baseUrlPath is .* such as 'headsup' or"):
        server_startup.routes(base)


def test_a_server_with_such_a_setting_ends_and_says_nothing_else():
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.port",
        "9",
        "--server.address",
        "127.0.0.1",
    ]
    env = {**os.environ, "HEADSUP_START": "no"}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=250)
    assert ended.returncode == 1
    assert ended.stderr.strip() == "Error: HEADSUP_START is 'no'; it must be 'on', as without it, or 'off'."
    assert "Traceback" not in ended.stdout


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


def test_pages_have_time_to_keep_their_trainings_models_before_the_server_ends(monkeypatch):
    """Counted from the end of the last training; and a container's engine waits for all of that."""
    now, texts, patience, stopped = [100.0], [0], [], []
    trainings = SimpleNamespace(unfinished=1, stop=stopped.append)
    for name, value in {
        "time": SimpleNamespace(monotonic=lambda: now[0]),
        "_prepare": lambda: None,
        "_note_as_stopping": lambda number: None,
        "_stopping": threading.Event(),
        "_trainings_seen_until": 0.0,
    }.items():
        monkeypatch.setattr(server_startup, name, value)
    monkeypatch.setattr(type(schedulers), "texts", property(lambda _: texts[0]))
    monkeypatch.setattr(visitor_training, "queue", lambda: trainings)
    monkeypatch.setattr(
        graceful_shutdown, "ending_in_order", lambda *given: patience.append(given[3]) or contextlib.nullcontext()
    )

    async def live():
        async with server_startup.preparing(None):
            pass

    asyncio.run(live())
    server_startup._begin_nothing()
    assert len(stopped) == 1 and server_startup._stopping.is_set()

    def ends_after(most=60.0):
        began = now[0]
        while not server_startup._has_ended() and now[0] < began + most:
            now[0] += 0.25
        return now[0] - began

    assert ends_after(4.0) == 4.0, "the training is being measured"
    trainings.unfinished = 0
    assert ends_after() == server_startup.SEEN_WITHIN, "pages look once a second, and draw themselves anew"
    assert patience[0] >= server_startup.TRAININGS_WITHIN + server_startup.SEEN_WITHIN
    texts[0] = 1
    server_startup._begin_nothing()
    assert ends_after() == server_startup.TEXTS_WITHIN
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    grace = float(re.search(r"stop_grace_period: (\d+)s", compose)[1])
    assert min(grace, replicas.SECONDS_TO_END) > patience[0] + graceful_shutdown.FORCED_AFTER
