"""Tests the app inside another origin's page, below a path, in a browser that blocks third-party cookies."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.at_rest import IDLE
from tests.browser.attention_page import until
from tests.browser.browser_windows import PATIENCE_MS
from tests.browser.conftest import CHROMIUM_ARGS, find_chromium
from tests.browser.servers import ROOT
from transformer import load_checkpoint
from transformer.checkpoints.archive import pack_checkpoint

OUTER = """<!doctype html><iframe src="{}" width="800" height="500"></iframe><script>addEventListener("message",
({{ data }}) => {{ if (data.type === "SET_QUERY_PARAM") window.told = data.queryParams; }});</script>"""
SECRET = "Zwielicht"
"""A word of a visitor's text."""
STORAGE = "() => { try { return sessionStorage.length; } catch { return 'denied'; } }"
COMPILES = "() => new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)) instanceof WebAssembly.Module"
INLINE = "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))"


@contextmanager
def learning_platform() -> Iterator[str]:
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
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()


@pytest.fixture
def tab(chromium, tmp_path):
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


def test_a_frame_in_another_origins_page_has_all_that_the_app_has_and_needs_nothing_that_the_policy_forbids(
    serve, tiny_folder, tmp_path, tab
):
    folders = {"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_STORE": str(tmp_path / "store")}
    options = ["--server.baseUrlPath", "school/headsup"]
    with (
        learning_platform() as platform,
        serve(ROOT / "app.py", env=folders | {"HEADSUP_FRAME_ANCESTORS": platform}, options=options) as server,
    ):
        in_a_frame(tab, platform, server.url, pack_checkpoint(load_checkpoint(tiny_folder / "shakespeare")))
        assert tab.request.head(f"{server.url}/api/models").ok
        leads_to = tab.request.get(server.url, max_redirects=0).headers["location"]
        assert urljoin(f"{server.url}?".replace("http:", "https:"), leads_to) == f"{server.url}/".replace(
            "http:", "https:"
        )
        log = server.log()
        assert SECRET not in log and log.count("127.0.0.1") == log.count("URL: http://127.0.0.1") == 1
        with learning_platform() as stranger:  # a page of yet another origin gets no frame
            tab.goto(f"{stranger}/?{server.url}/Masks")
            until(tab, lambda: any("frame-ancestors" in said for said in tab.refused))


def in_a_frame(tab, platform, app, model):
    frame = tab.frame_locator("iframe")

    def turn_to(name):
        frame.get_by_role("link", name=name).click()
        frame.get_by_role("heading", level=1, name=name).wait_for()
        frame.locator(IDLE).wait_for()

    tab.goto(f"{platform}/?{app}/Learn?prompt={SECRET}&embed=true")
    frame.get_by_role("heading", level=1, name="Learn").wait_for()
    assert tab.frames[1].evaluate(STORAGE) == "denied"
    until(tab, lambda: f"prompt={SECRET}" in (tab.evaluate("window.told") or ""))
    frame.get_by_role("button", name="Room for a class").click()
    frame.get_by_role("button", name="Open a room").click()
    room = frame.get_by_role("heading", name=re.compile("^Room "))
    room.wait_for()

    turn_to("Attention")
    frame.get_by_role("button", name="Share").click()
    code = frame.get_by_test_id("stCode").filter(has_text="?model=")  # until it has come, its place is held by blanks
    link = urlsplit(code.inner_text().strip())
    assert f"{link.scheme}://{link.netloc}{link.path}" == f"{app}/Attention"
    assert parse_qs(link.query)["prompt"] == [SECRET] and "embed" not in parse_qs(link.query)
    frame.get_by_role("button", name="Copy link to embed").click()
    expect(frame.get_by_text("Copied.")).to_be_visible()
    tab.keyboard.press("Escape")

    # A visitor's model and their room are there after a reload.
    turn_to("Train")
    files = frame.get_by_test_id("stExpander").filter(has_text="Your models as files")
    files.locator("summary").click()
    own = {"name": "own.zip", "mimeType": "application/zip", "buffer": model}
    files.locator("input[type=file]").set_input_files(own)
    download = files.get_by_role("button", name=re.compile("^Download "))
    download.wait_for()
    tab.reload()
    room.wait_for()
    turn_to("Train")
    files.locator("summary").click()
    with tab.expect_download():
        download.click()

    for name in ("Generate", "Inside", "Masks", "Positions", "What if"):
        turn_to(name)
    assert tab.frames[1].evaluate(COMPILES), "what multiplies in a browser that computes"
    assert tab.refused == []
    tab.frames[1].evaluate(INLINE)
    until(tab, lambda: tab.refused)
    assert tab.frames[1].evaluate("window.ran") is None
    tab.refused.clear()
    assert tab.goto(f"{app}/api/docs").ok
    tab.get_by_role("heading").first.wait_for()
    assert tab.refused == []
