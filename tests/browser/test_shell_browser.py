"""Tests the shell in a page whose models a server computes: what the app's pages are, without Streamlit."""

import asyncio
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn

from tests.browser.attention_page import until
from tests.browser.servers import ROOT
from transformer import load_checkpoint
from transformer.api.model_library import Library
from transformer.api.serve import application
from transformer.frontend import FOLDER, bundle
from transformer.frontend.site import style

expect = pytest.importorskip("playwright.sync_api").expect

SHOWN = "[data-part=root][data-state=shown]"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Page</title><base href="/"><style>{style}</style>
<body><main></main><script type="module">{script}</script></html>"""


@pytest.fixture(scope="module")
def api():
    """The address of the API, which the shipped models answer."""
    server = uvicorn.Server(uvicorn.Config(application(Library(ROOT / "checkpoints")), port=0, log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


def test_a_page_asks_a_server_and_computes_what_follows_in_the_browser(api, new_window):
    page, asked = new_window(), []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path.removeprefix("/api/")))
    html = PAGE.format(style=style(), script=bundle(Path(__file__).with_name("page_over_http.js")))
    page.route(f"{api}page**", lambda route: route.fulfill(body=html, content_type="text/html"))
    worker = bundle(FOLDER / "engine" / "worker.js")
    page.route("**/worker_bundle.js", lambda route: route.fulfill(body=worker, content_type="text/javascript"))
    page.goto(f"{api}page?model=stories&prompt=Tom+ran.")
    page.wait_for_selector(SHOWN)
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "stories")
    encoded = lambda text: ",".join(map(str, checkpoint.tokenizer.encode(text)))  # noqa: E731
    until(page, lambda: page.evaluate("document.body.dataset.read") == encoded("Tom ran."))
    expect(page.locator(".computed")).to_contain_text("from now on in your browser")

    asked.clear()
    prompt = page.get_by_label("Prompt")
    for text in ("Mary took the ball.", "Tom saw a zebra."):
        prompt.fill(text)
        prompt.press("Enter")
    until(page, lambda: page.evaluate("document.body.dataset.read") == encoded("Mary took the ball."))
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("never seen")
    expect(page.get_by_test_id("attention")).to_contain_text("took")
    assert asked == []  # the tab reads and computes a small model's texts itself

    # A link to another page keeps the state.
    page.get_by_label("Model", exact=True).select_option("number-words-en-es")
    page.wait_for_selector(SHOWN)
    expect(page.get_by_test_id("attention")).to_contain_text("doscientos")
    page.get_by_role("button", name="How it comes about").click()
    page.locator("[data-panel=weights] canvas.marks").press("Home")
    page.get_by_role("button", name="Open in Inside").first.click()
    expect(page.get_by_role("heading", name="Inside", exact=True)).to_be_visible()
    page.wait_for_selector(SHOWN)
    until(page, lambda: "cross_attn" in parse_qs(urlsplit(page.url).query).get("inside", [""])[0])
