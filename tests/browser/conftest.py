"""Defines the fixtures of the browser tests: Chromium, servers, tabs.

    def test_title(visit):
        page = visit("Masks")
        assert page.get_by_role("heading", level=1).inner_text() == "Masks"

`HEADSUP_CHROMIUM` names the browser, else Debian's or the one on the PATH is taken. Without one these tests
are skipped, unless `HEADSUP_REQUIRE_BROWSER=1` says that they must run; `all` says so of Firefox and WebKit, too, of
which each page is opened in `test_other_browsers.py`. A test fails when a server logs a
traceback, or a page it opened reports an error; one that provokes them says so with
`Server.forget_tracebacks()` or `browser_errors.clear()`.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from tests.browser.address_bar import come_to
from tests.browser.at_rest import follow_reruns, wait_until_ready
from tests.browser.browser_windows import PATIENCE_MS, Window
from tests.browser.servers import ROOT, Server
from tests.tiny_models import save_encoder, save_pair, save_tiny, save_translator

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
# One process for all pages of a server: each that it shows after the first finds what the others have loaded.
SHARING = "--process-per-site"
LOOKED_FOR_IN_VAIN = re.compile(r"/\w+/_stcore/(health|host-config)$")
"""Of a page that is opened by its address, Streamlit asks for its server below that first."""


def pytest_collection_modifyitems(config, items):
    """Mark the tests of this folder. One process runs them last: the fast ones have failed by then. Several run
    them first: their files take longest, and the others fill what time is left."""
    browser = [item for item in items if HERE in item.path.parents]
    for item in browser:
        item.add_marker(pytest.mark.browser)
    others = [item for item in items if HERE not in item.path.parents]
    items[:] = browser + others if hasattr(config, "workerinput") else others + browser


def find_chromium(shell: bool = False) -> str | None:
    """The browser to drive: the one that is named, or Chromium, or Chrome; None if there is none.

    shell: rather Chromium's headless shell than the other two. It is the same engine without windows around it, and
    takes a fifth less of the processor.
    """
    named = os.environ.get("HEADSUP_CHROMIUM")
    if named:
        if not shutil.which(named):
            pytest.fail(f"HEADSUP_CHROMIUM names {named}, which cannot be run", pytrace=False)
        return named
    names = ["/usr/bin/chromium", "chromium", "google-chrome", "chromium-browser"]
    found = map(shutil.which, ["chromium-headless-shell", *names] if shell else names)
    return next(filter(None, found), None)


def unavailable(reason, needs="1") -> NoReturn:
    """Skip a test for want of a browser, or fail it where HEADSUP_REQUIRE_BROWSER is `needs`, or "all"."""
    required = os.environ.get("HEADSUP_REQUIRE_BROWSER")
    if required in (needs, "all"):
        pytest.fail(f"HEADSUP_REQUIRE_BROWSER={required}, but {reason}", pytrace=False)
    pytest.skip(f"{reason} (HEADSUP_REQUIRE_BROWSER={needs} makes this a failure)")


@pytest.fixture(scope="package")
def chromium():
    """The one headless browser of this process; it ends with the last browser test, as does Playwright's event
    loop, which until then is in the way of whatever wants one of its own."""
    executable = find_chromium(shell=True)
    if executable is None:
        unavailable("no Chromium was found: install the package chromium or set HEADSUP_CHROMIUM")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        unavailable("playwright is not installed: see requirements-dev.txt")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=[*CHROMIUM_ARGS, SHARING])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def windows():
    """The windows that visitors' tabs are opened in, kept from test to test; the first is most visitors'."""
    return []


@pytest.fixture(scope="package")
def servers():
    """Every server that `serve` has started; all are stopped after the last browser test."""
    started = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture(scope="package")
def serve(servers, chromium, tmp_path_factory):
    """`serve(script, cwd=ROOT, env={}, options=()) -> Server`, healthy when it returns.

    `env` is added to the environment, `options` to the command line. `Server.stop()` frees the memory earlier than the
    end of the tests, as does `with serve(script) as server:`.
    """
    logs = tmp_path_factory.mktemp("streamlit-logs")

    def start(script, cwd=ROOT, env=None, options=()):
        server = Server(script, log_path=logs / f"{len(servers)}.log", cwd=cwd, env=env or {}, options=options)
        servers.append(server)
        server.wait_until_healthy()
        return server

    return start


@pytest.fixture(scope="package")
def app_server(serve):
    """The server of the project's own app: one training at a time, the tests' lessons, the tour offered."""
    lessons = str(ROOT / "tests" / "lessons")
    return serve(ROOT / "app.py", env={"HEADSUP_TRAININGS": "1", "HEADSUP_LESSONS": lessons, "HEADSUP_START": ""})


@pytest.fixture(scope="package")
def app_url(app_server):
    """The address of the project's own app, without a slash at the end."""
    return app_server.url


@pytest.fixture(scope="package")
def tiny_folder(tmp_path_factory):
    """Tiny models of two groups: a pair that writes, one that reads far, two with less in them; one that sorts, a
    translator, and one that fills masks."""
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder, context_length=64, group="Texts")
    save_tiny(folder, "far-reader", title="Far reader", group="Texts", context_length=256, n_layers=3)
    save_tiny(folder, "average", title="Average", group="Texts", attention="uniform", residual=False)
    save_tiny(folder, "bare", title="Bare", group="Texts", residual=False, norm="none", positions="none")
    save_tiny(folder, "sorting", title="Sorting", group="Tasks")
    save_translator(folder)
    save_encoder(folder)
    return folder


@pytest.fixture(scope="package")
def tiny_store(tmp_path_factory):
    """Where the server on tiny models keeps what visitors have trained."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="package")
def tiny_server(serve, tiny_folder, tiny_store):
    """The server of the app on tiny models, the same for every file."""
    return serve(ROOT / "app.py", env={"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_STORE": str(tiny_store)})


@pytest.fixture(autouse=True)
def no_tracebacks(servers):
    """Fail the test during which a server logged a traceback, with the end of its log."""
    yield
    guilty = [server for server in servers if server.has_traceback()]
    for server in guilty:
        server.forget_tracebacks()  # reported now, not again by every later test
    if guilty:
        logs = "\n\n".join(server.log_tail() for server in guilty)
        pytest.fail(f"the server logged a traceback:\n{logs}", pytrace=False)


@pytest.fixture
def browser_errors(no_tracebacks):
    """Console errors and uncaught exceptions of every page the test opened; any left at its end fail it."""
    errors = []
    yield errors
    if errors:
        pytest.fail("the browser reported errors:\n" + "\n".join(errors), pytrace=False)


@pytest.fixture
def listen(servers, browser_errors):
    """`listen(context)`: add what goes wrong on the pages of a context to `browser_errors`, until the test's end."""
    heard = []

    def note(page, error):
        if page is None or not any(server.stopped and page.url.startswith(server.url) for server in servers):
            browser_errors.append(error)

    def note_console(message):
        if message.type == "error" and not LOOKED_FOR_IN_VAIN.search(message.location["url"]):
            note(message.page, f"{message.text} ({message.location['url']})")

    def note_exception(error):
        note(error.page, f"uncaught: {error.error.stack}")

    def start(context):
        # follow_reruns also follows a tab that the page itself opens
        for event, listener in {"console": note_console, "weberror": note_exception, "page": follow_reruns}.items():
            context.on(event, listener)
            heard.append((context, event, listener))

    yield start
    for context, event, listener in heard:
        context.remove_listener(event, listener)


@pytest.fixture
def new_page(chromium, windows, servers, listen):
    """`new_page(width=1280, height=900, dark=False, apart=False) -> Page`, each its own visitor.

    apart: in another browser, as it were, which shares neither cookies nor storage with any other page. A tab may be
    one that an earlier test had: its history and storage are gone, but listeners and init scripts would stay.
    """
    used = []

    def take_window():
        if len(used) == len(windows):
            windows.append(Window(chromium))
        used.append(windows[len(used)])
        listen(used[-1].context)
        return used[-1]

    def create(width=1280, height=900, dark=False, apart=False):
        common = used[0] if used else take_window()
        page = (take_window() if apart else common).open_tab()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="no-preference")
        return page

    yield create
    for window in used:
        window.empty(servers)


@pytest.fixture
def new_window(chromium, listen):
    """`new_window(width=1280, height=900, **options) -> Page`, in a window that goes with the test.

    For a touch screen, a clock, or connections that are cut.
    """
    contexts = []

    def create(width=1280, height=900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, bypass_csp=True, **options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        listen(context)
        return context.new_page()

    yield create
    for context in contexts:
        context.close()


@pytest.fixture
def framed_tab(chromium, tmp_path):
    """A tab of a visitor who comes over HTTPS, as a proxy says, and whose browser blocks third-party cookies; and with
    them storage, as Chromium does where it doesn't keep one for each page around a frame. It obeys the policy, which
    other tests' tabs bypass: Playwright itself evaluates texts."""
    folder = tmp_path / "Default"
    folder.mkdir()
    blocks = {"profile": {"cookie_controls_mode": 1, "block_third_party_cookies": True}}
    (folder / "Preferences").write_text(json.dumps(blocks), encoding="utf-8")
    others = {
        "EXCLUDE 127.0.0.1": "EXCLUDE 127.0.0.1, EXCLUDE localhost",
        "--disable-features=": "--disable-features=ThirdPartyStoragePartitioning,",
    }
    args = [*CHROMIUM_ARGS]
    for before, after in others.items():
        args = [arg.replace(before, after) for arg in args]
    context = chromium.browser_type.launch_persistent_context(
        str(tmp_path),
        executable_path=find_chromium(),
        args=args,
        extra_http_headers={"X-Forwarded-Proto": "https"},
        viewport={"width": 840, "height": 560},
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.refused = []
    page.on("console", lambda said: "Content Security Policy" in said.text and page.refused.append(said.text))
    yield page
    context.close()


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    """`visit(path="", page=None, **options) -> Page`: one of the app on tiny models, which has come to rest. A page
    that is there already is only changed, which costs a third of a page that is opened; its path names a model."""

    def open_page(path="", page=None, **options):
        if page:
            come_to(page, f"/{path}")
        else:
            page = new_page(**options)
            page.goto(f"{tiny_server.url}/{path}")
        page.get_by_role("heading", level=1).wait_for()
        wait_ready(page)
        # whose script comes after the page is at rest
        page.wait_for_function("() => globalThis.headsupGuide", polling=100)
        return page

    return open_page


@pytest.fixture(scope="session")
def wait_ready():
    """`wait_ready(page, timeout=120.0, settled=0.25)`: `wait_until_ready`, without an import."""
    return wait_until_ready
