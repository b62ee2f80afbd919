"""Fixtures for the browser tests: one Chromium a process, Streamlit servers on free ports, one tab a visitor.

    def test_title(page, app_url, wait_ready):
        page.goto(app_url)
        wait_ready(page)
        assert page.get_by_role("heading", level=1).inner_text() == "Generate"

`HEADSUP_CHROMIUM` names the browser, else Debian's or the one on the PATH is taken. Without one these tests
are skipped, unless `HEADSUP_REQUIRE_BROWSER=1` says that they must run. A test fails when a server logs a
traceback, or a page it opened reports an error; one that provokes them says so with
`Server.forget_tracebacks()` or `browser_errors.clear()`.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, WebSocket

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Chromium renders the suggestions of its invisible address bar as two web pages for each tab.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,PaintHolding,MediaRouter,OptimizationHints",
    # The app works without a network, and so do its tests: no other host has an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
START_SECONDS = 60.0
LOG_TAIL_LINES = 60
TRACEBACK = "Traceback (most recent call last)"

IDLE = "[data-testid='stApp'][data-test-connection-state='CONNECTED'][data-test-script-state='notRunning']"
EXCEPTION = "[data-testid='stException']"

# Pages whose last rerun request has not been answered by the start of a script run.
_unanswered: "WeakSet[Page]" = WeakSet()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder. One process runs them last: the fast ones have failed by then. Several run
    them first: their files take longest, and the others fill what time is left."""
    browser = [item for item in items if HERE in item.path.parents]
    for item in browser:
        item.add_marker(pytest.mark.browser)
        item.add_marker(pytest.mark.flaky(reruns=2))  # a busy machine can outlast a time limit; a fault stays
    others = [item for item in items if HERE not in item.path.parents]
    items[:] = browser + others if hasattr(config, "workerinput") else others + browser


def _unavailable(reason: str) -> None:
    if os.environ.get("HEADSUP_REQUIRE_BROWSER") == "1":
        pytest.fail(f"HEADSUP_REQUIRE_BROWSER=1, but {reason}", pytrace=False)
    pytest.skip(f"{reason} (HEADSUP_REQUIRE_BROWSER=1 makes this a failure)")


def find_chromium() -> str | None:
    named = os.environ.get("HEADSUP_CHROMIUM")
    if named:
        if not shutil.which(named):
            pytest.fail(f"HEADSUP_CHROMIUM names {named}, which cannot be run", pytrace=False)
        return named
    for candidate in ("/usr/bin/chromium", "chromium", "google-chrome", "chromium-browser"):
        if found := shutil.which(candidate):
            return found
    return None


@pytest.fixture(scope="package")
def chromium() -> Iterator["Browser"]:
    """The one headless browser of this process; it ends with the last browser test, as does Playwright's event
    loop, which until then is in the way of whatever wants one of its own."""
    executable = find_chromium()
    if executable is None:
        _unavailable("no Chromium was found: install the package chromium or set HEADSUP_CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _unavailable("playwright is not installed: see requirements-dev.txt")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def window(chromium: "Browser") -> Iterator["BrowserContext"]:
    """The window that visitors' tabs are opened in: scripts that one of them has loaded are there for the next."""
    with chromium.new_context() as context:
        yield context


class Server:
    """One `streamlit run` on a free port of 127.0.0.1. Also a context manager, which stops it at the end."""

    def __init__(
        self,
        script: Path,
        *,
        log_path: Path,
        cwd: Path,
        env: Mapping[str, str],
        options: Sequence[str],
        port: int | None = None,
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = port or probe.getsockname()[1]
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log_path = log_path
        self._forgotten = 0
        self.stopped = False
        command = [sys.executable, "-m", "streamlit", "run", str(script)]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        command += ["--server.headless", "true", "--browser.gatherUsageStats", "false"]
        command += ["--logger.enableRich", "false", *options]  # which would dress tracebacks so that none is found
        with log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_healthy(self, seconds: float = START_SECONDS) -> None:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with direct.open(f"{self.url}/_stcore/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.1)
        state = "did not answer" if self.process.poll() is None else f"ended with {self.process.returncode}"
        self.stop()
        pytest.fail(f"the server {state}; its log ends with\n{self.log_tail()}", pytrace=False)

    def log(self) -> str:
        """Everything the server has printed so far."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        return "\n".join(self.log().splitlines()[-lines:])

    def has_traceback(self) -> bool:
        """Whether a traceback was logged since the start, or since `forget_tracebacks`."""
        return TRACEBACK in self.log()[self._forgotten :]

    def forget_tracebacks(self) -> None:
        """What is in the log by now was expected."""
        self._forgotten = len(self.log())

    def stop(self) -> None:
        """End the server and whatever it started. Errors of pages still open on it no longer count."""
        self.stopped = True
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, sign)
                try:
                    self.process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    continue

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


@pytest.fixture(scope="package")
def servers() -> Iterator[list[Server]]:
    """Every server that `serve` has started; all are stopped after the last browser test."""
    started: list[Server] = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture(scope="package")
def serve(
    servers: list[Server], chromium: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Server]:
    """`serve(script, cwd=None, env=None, options=(), port=None) -> Server`, healthy when it returns.

    `cwd` is the project's root unless given, so that its `.streamlit/config.toml` counts and its packages can
    be imported; `env` is added to the environment, `options` to the command line; the port is a free one unless
    given. `Server.stop()` frees the memory earlier than that, as does `with serve(script) as server:`.
    """
    logs = tmp_path_factory.mktemp("streamlit-logs")

    def start(
        script: str | Path,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        port: int | None = None,
    ) -> Server:
        server = Server(
            Path(script).resolve(),
            log_path=logs / f"{len(servers)}.log",
            cwd=Path(cwd or ROOT),
            env=env or {},
            options=options,
            port=port,
        )
        servers.append(server)
        server.wait_until_healthy()
        return server

    return start


@pytest.fixture(scope="package")
def app_server(serve: Callable[..., Server]) -> Server:
    """The server of the project's own app, where one training runs at a time."""
    return serve(ROOT / "app.py", env={"HEADSUP_TRAININGS": "1"})


@pytest.fixture(scope="package")
def app_url(app_server: Server) -> str:
    """The address of the project's own app, without a slash at the end."""
    return app_server.url


@pytest.fixture(autouse=True)
def no_tracebacks(servers: list[Server]) -> Iterator[None]:
    """Fail the test during which a server logged a traceback, with the end of its log."""
    yield
    guilty = [server for server in servers if server.has_traceback()]
    for server in guilty:
        server.forget_tracebacks()  # reported now, not again by every later test
    if guilty:
        logs = "\n\n".join(server.log_tail() for server in guilty)
        pytest.fail(f"the server logged a traceback:\n{logs}", pytrace=False)


@pytest.fixture
def browser_errors(no_tracebacks: None) -> Iterator[list[str]]:
    """Console errors and uncaught exceptions of every page the test opened; any left at its end fail it."""
    errors: list[str] = []
    yield errors
    if errors:
        pytest.fail("the browser reported errors:\n" + "\n".join(errors), pytrace=False)


@pytest.fixture
def new_page(
    chromium: "Browser", window: "BrowserContext", servers: list[Server], browser_errors: list[str]
) -> Iterator[Callable[..., "Page"]]:
    """`new_page(width=1280, height=900, dark=False, apart=False) -> Page`, each its own visitor.

    apart: in another browser, as it were, which shares neither cookies nor storage with any other page.
    """
    opened: list[BrowserContext] = []

    def note(page: "Page | None", error: str) -> None:
        if page is None or not any(server.stopped and page.url.startswith(server.url) for server in servers):
            browser_errors.append(error)

    def note_console(message: "ConsoleMessage") -> None:
        if message.type == "error":
            note(message.page, f"{message.text} ({message.location['url']})")

    def note_exception(error: "WebError") -> None:
        note(error.page, f"uncaught: {error.error}")

    # follow_reruns also follows a tab that the page itself opens
    listeners = {"console": note_console, "weberror": note_exception, "page": follow_reruns}

    def create(
        width: int = 1280, height: int = 900, dark: bool = False, apart: bool = False, **context_options: object
    ) -> "Page":
        context = chromium.new_context(**context_options) if apart or context_options else window
        if context not in opened:
            opened.append(context)
            for event, listener in listeners.items():
                context.on(event, listener)
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        return page

    yield create
    for context in opened:
        if context is window:
            _leave_nothing(context, servers)
            for event, listener in listeners.items():
                context.remove_listener(event, listener)
        else:
            context.close()


def _leave_nothing(context: "BrowserContext", servers: list[Server]) -> None:
    """Close every page, and forget what pages have stored; what the browser has loaded stays."""
    blank = context.new_page()
    for page in context.pages:
        if page is not blank:
            page.close()
    storage = context.new_cdp_session(blank)
    for server in servers:
        storage.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    blank.close()


@pytest.fixture
def page(new_page: Callable[..., "Page"]) -> "Page":
    """A light page of 1280 × 900."""
    return new_page()


def follow_reruns(page: "Page") -> None:
    """Keep `_unanswered` up to date: after a click the app looks at rest until the server starts a rerun."""

    def sent(frame: bytes | str) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            _unanswered.add(page)

    def received(frame: bytes | str) -> None:
        if isinstance(frame, bytes) and ForwardMsg.FromString(frame).WhichOneof("type") == "new_session":
            _unanswered.discard(page)

    def follow(socket: "WebSocket") -> None:
        if "/_stcore/stream" in socket.url:
            _unanswered.discard(page)  # what an earlier connection asked for is forgotten
            socket.on("framesent", sent)
            socket.on("framereceived", received)

    page.on("websocket", follow)


def wait_until_ready(page: "Page", timeout: float = 30.0, settled: float = 0.25) -> None:
    """Wait until the app is connected and idle, no rerun is asked for, and that has lasted `settled` seconds.

    Both times are in seconds; `settled` covers widgets that wait a moment before they ask for a rerun.
    AssertionError if the app does not come to rest, or if it then shows an exception.
    """
    deadline = time.monotonic() + timeout
    resting_since = None
    while resting_since is None or time.monotonic() - resting_since < settled:
        page.wait_for_timeout(25)  # lets Playwright hand over the frames that have come in
        if page in _unanswered or page.locator(IDLE).count() == 0:
            resting_since = None
        elif resting_since is None:
            resting_since = time.monotonic()
        if time.monotonic() > deadline:
            raise AssertionError(f"{page.url} did not come to rest in {timeout} s")
    exceptions = page.locator(EXCEPTION).all_inner_texts()
    if exceptions:
        raise AssertionError("the page shows an exception:\n" + "\n".join(exceptions))


@pytest.fixture(scope="session")
def wait_ready() -> Callable[..., None]:
    """`wait_ready(page, timeout=30.0, settled=0.25)`: `wait_until_ready`, without an import."""
    return wait_until_ready
