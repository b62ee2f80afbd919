"""Tests the static site in a real Chromium: it computes below any path, and then without a network."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from transformer import Sampling, generate, load_checkpoint
from transformer.frontend.site import write_site

pytestmark = pytest.mark.browser
STORIES = Path(__file__).resolve().parents[2] / "checkpoints" / "stories"
SHOWN = "[data-part=root][data-state=shown]"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


def test_a_site_writes_what_the_engine_does_and_opens_without_a_network(chromium, tmp_path):
    checkpoint = load_checkpoint(STORIES)
    write_site(tmp_path / "below" / "a path", [(STORIES, checkpoint, checkpoint.card)])
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}/below/a%20path/"
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"{site}?model=stories&temperature=0&tokens=20&pace=unbounded")
        page.wait_for_selector(SHOWN)
        page.get_by_role("button", name="Generate", exact=True).click()
        prompt = checkpoint.tokenizer.encode(checkpoint.card.examples[0])
        greedy = Sampling(temperature=0)
        ends = checkpoint.card.stop_tokens
        steps = generate(checkpoint.model, prompt, max_new_tokens=20, sampling=greedy, stop_tokens=ends)
        text = ".".join(str(step.token_id) for step in steps)
        page.wait_for_function(f"new URLSearchParams(location.search).get('written') === {text!r}")
        assert parse_qs(urlsplit(page.url).query)["written"] == [text]
        page.evaluate("navigator.serviceWorker.ready")
        page.goto(f"{site}Attention/?model=stories")
        page.wait_for_selector(SHOWN)
        page.wait_for_function("navigator.serviceWorker.controller")
        page.reload()  # now by way of the service worker, which keeps the model
        page.wait_for_selector(SHOWN)
        server.shutdown()
        server.server_close()
        page.goto(f"{site}Inside/?model=stories")
        page.wait_for_selector(SHOWN)
    finally:
        context.close()
        server.shutdown()
