"""Tests the app inside another origin's page, below a path, in a browser that blocks third-party cookies."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.address_bar import come_to
from tests.browser.at_rest import follow_reruns
from tests.browser.attention_page import until
from tests.browser.browser_windows import PATIENCE_MS
from tests.browser.conftest import CHROMIUM_ARGS, find_chromium
from tests.browser.servers import ROOT
from tests.train_page import LONG

OUTER = """<!doctype html><iframe src="{}" width="800" height="500"></iframe><script>addEventListener("message",
({{ data }}) => {{ if (data.type === "SET_QUERY_PARAM") window.told = data.queryParams; }});</script>"""
SECRET = "Zwielicht"
"""A word of a visitor's text."""


@contextmanager
def learning_platform() -> Iterator[ThreadingHTTPServer]:
    """A server whose pages frame the address that their own has after its question mark."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(OUTER.format(self.path.partition("?")[2]).encode())

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


@pytest.fixture
def tab(chromium, tmp_path):
    """A tab of a visitor who comes over HTTPS, as a proxy says, and whose browser blocks third-party cookies; and with
    them storage, as Chromium does where it doesn't keep one for each page around a frame."""
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
def platform():
    with learning_platform() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def server(serve, tiny_folder, platform, tmp_path):
    folders = {"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_STORE": str(tmp_path / "store")}
    env = folders | {"HEADSUP_FRAME_ANCESTORS": platform}
    with serve(ROOT / "app.py", env=env, options=["--server.baseUrlPath", "school/headsup"]) as server:
        yield server


def test_a_frame_in_another_origins_page_has_all_that_the_app_has_and_keeps_a_training(server, platform, tab, tmp_path):
    app, frame = server.url, tab.frame_locator("iframe")
    tab.goto(f"{platform}/?{app}/Masks?prompt={SECRET}&embed=true")
    expect(frame.get_by_role("heading", level=1, name="Masks")).to_be_visible()
    denied = "() => { try { return sessionStorage.length; } catch { return 'denied'; } }"
    assert tab.frames[1].evaluate(denied) == "denied"
    until(tab, lambda: f"prompt={SECRET}" in (tab.evaluate("window.told") or ""))
    frame.get_by_role("link", name="Attention").click()
    expect(frame.get_by_role("heading", level=1, name="Attention")).to_be_visible()
    frame.get_by_role("button", name="Share").click()
    code = frame.get_by_test_id("stCode").filter(has_text="?model=")  # until it has come, its place is held by blanks
    link = urlsplit(code.inner_text().strip())
    assert f"{link.scheme}://{link.netloc}{link.path}" == f"{app}/Attention"
    assert parse_qs(link.query)["prompt"] == [SECRET] and "embed" not in parse_qs(link.query)
    frame.get_by_role("button", name="Copy link to embed").click()
    expect(frame.get_by_text("Copied.")).to_be_visible()

    tab.goto(f"{platform}/?{app}/Learn?embed=true")
    frame.get_by_role("button", name="Room for a class").click()
    frame.get_by_role("button", name="Open a room").click()
    room = frame.get_by_role("heading", name=re.compile("^Room "))
    room.wait_for()
    tab.reload()
    expect(room).to_be_visible()

    log = server.log()
    assert SECRET not in log and log.count("127.0.0.1") == log.count("URL: http://127.0.0.1") == 1

    # A training is kept over a reload and over the server's end.
    # Short enough that a busy machine, whose estimate is higher, lets it begin.
    tab.goto(f"{platform}/?{server.url}/Train?{urlencode(LONG | {'steps': 1000})}")
    frame.get_by_test_id("stMain").get_by_role("button", name="Train").last.click()
    stops = frame.get_by_role("button", name="Stop and keep")
    stops.wait_for()
    tab.reload()
    stops.wait_for()
    with server.away():
        assert server.process.returncode == -signal.SIGTERM
    tab.goto(f"{platform}/?{server.url}/Train")
    frame.get_by_text("Your models as files").click()
    downloads = frame.get_by_role("button", name=re.compile("^Download "))
    with tab.expect_download() as saved:
        downloads.click()
    saved.value.save_as(tmp_path / "model.headsup.zip")
    files = frame.get_by_test_id("stExpander").filter(has_text="Your models as files")
    files.locator("input[type=file]").set_input_files(tmp_path / "model.headsup.zip")
    expect(downloads).to_have_count(2)
    assert tab.refused == []

    # A page of yet another origin gets no frame.
    with learning_platform() as stranger:
        tab.goto(f"http://localhost:{stranger.server_port}/?{app}/Masks")
        until(tab, lambda: any("frame-ancestors" in said for said in tab.refused))


COMPILES = "() => new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)) instanceof WebAssembly.Module"


def test_no_page_needs_what_the_policy_forbids_such_as_an_inline_script(chromium, tiny_server, wait_ready):
    """Contexts of other tests bypass the policy: Playwright itself evaluates texts."""
    with chromium.new_context() as context:
        page, refused = context.new_page(), []
        page.on("console", lambda message: refused.append(message.text) if "Content Security" in message.text else None)
        context.set_default_timeout(PATIENCE_MS)
        follow_reruns(page)
        page.goto(tiny_server.url)
        page.get_by_role("heading", level=1).wait_for()
        for name in ("", "Learn", "Attention", "Inside", "Masks", "Positions", "What_if", "Train"):
            policy = context.request.get(f"{tiny_server.url}/{name}").headers["content-security-policy"]
            assert "unsafe-inline" not in re.findall(r"script-src [^;]*", policy)[0]
            come_to(page, f"/{name}")
            wait_ready(page)
            page.get_by_role("heading", level=1, name=name.replace("_", " ") or "Generate").wait_for()
        page.get_by_role("button", name="Train", exact=True).wait_for()
        assert page.evaluate(COMPILES), "what multiplies in a browser that computes"
        page.goto(f"{tiny_server.url}/api/docs")
        page.get_by_role("heading").first.wait_for()
        assert not refused
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))"
        )
        until(page, lambda: refused)
        assert page.evaluate("window.ran") is None
