"""Tests the app inside another origin's page, below a path, in a browser that blocks third-party cookies."""

import re
from urllib.parse import parse_qs, urljoin, urlsplit

from playwright.sync_api import expect

from tests.browser.at_rest import IDLE
from tests.browser.attention_page import until
from tests.browser.framing_pages import learning_platform
from tests.browser.servers import ROOT
from transformer import load_checkpoint
from transformer.checkpoints.archive import pack_checkpoint

SECRET = "Zwielicht"
"""A word of a visitor's text."""
STORAGE = "() => { try { return sessionStorage.length; } catch { return 'denied'; } }"
COMPILES = "() => new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)) instanceof WebAssembly.Module"
INLINE = "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))"


def test_a_frame_in_another_origins_page_has_all_that_the_app_has_and_needs_nothing_that_the_policy_forbids(
    serve, tiny_folder, tmp_path, framed_tab
):
    folders = {"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_STORE": str(tmp_path / "store")}
    options = ["--server.baseUrlPath", "school/headsup"]
    with (
        learning_platform() as platform,
        serve(ROOT / "app.py", env=folders | {"HEADSUP_FRAME_ANCESTORS": platform}, options=options) as server,
    ):
        in_a_frame(framed_tab, platform, server.url, pack_checkpoint(load_checkpoint(tiny_folder / "shakespeare")))
        assert framed_tab.request.head(f"{server.url}/api/models").ok
        leads_to = framed_tab.request.get(server.url, max_redirects=0).headers["location"]
        assert urljoin(f"{server.url}?".replace("http:", "https:"), leads_to) == f"{server.url}/".replace(
            "http:", "https:"
        )
        log = server.log()
        assert SECRET not in log and log.count("127.0.0.1") == log.count("URL: http://127.0.0.1") == 1
        with learning_platform() as stranger:  # a page of yet another origin gets no frame
            framed_tab.goto(f"{stranger}/?{server.url}/Masks")
            until(framed_tab, lambda: any("frame-ancestors" in said for said in framed_tab.refused))


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
    frame.get_by_role("button", name="Menu").click()
    frame.locator("summary", has_text="Share").click()
    link = urlsplit(frame.get_by_label("Link", exact=True).input_value())
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


def test_scripts_are_fetched_while_the_page_is_awaited_and_only_once(visit):
    page = visit("Attention?model=shakespeare&prompt=To+be")
    assert page.title() == "Attention · HeadsUp"
    fetched = page.evaluate(
        """performance.getEntriesByType("resource").filter(({ name }) => name.includes("/modules/"))
        .map(({ name, initiatorType }) => [name.split("/").at(-1), initiatorType])"""
    )
    parts = [[name, how] for name, how in fetched if name in ("components.js", "attention_view.js")]
    assert [name for name, _ in parts] == ["components.js", "attention_view.js"]
    assert parts[0][1] == "other"  # than by a script; on a slow machine the page's part is asked for by the first, too
