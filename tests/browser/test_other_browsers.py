"""Tests every page of the app, a site and saved pages in Firefox and in WebKit, each opened once."""

import functools
import threading
from collections import Counter
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import pytest

from tests.browser.conftest import unavailable
from tests.browser.other_browsers import Firefox, WebKit
from tests.browser.servers import ROOT
from transformer import load_checkpoint, record_pass, show
from transformer.frontend.site import write_site

ALL = """const hosts = [...document.querySelectorAll("*")].filter(({ shadowRoot }) => shadowRoot);
const roots = [document, ...hosts.map(({ shadowRoot }) => shadowRoot)];
const isSeen = (element) => element.getClientRects().length > 0;
const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]).filter(isSeen);
const texts = (selector) => all(selector).map((one) => one.textContent.trim()).filter(Boolean);
const isDrawn = (canvas) => {
  const { width, height } = canvas;
  if (!width || !height) return false;
  return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer)).size > 2;
};
const drawn = () => all("canvas").filter(isDrawn).length;"""
"""Finds elements that are seen, in shadow trees, too; and canvases with a picture on them."""
PICTURES = {
    "Generate": "texts('.strip .token').length > 3 && texts('.choosing li').length > 3",
    "Learn": "texts('.lesson-list .facts').filter((text) => /\\d minutes/.test(text)).length",
    "Attention": "drawn() > 2 && texts('.strip .token').length > 3",
    "Inside": "drawn() && texts('.names .token').length > 3",
    "Masks": "drawn() && texts('.predictions b, .predictions td, .predictions li').length",
    "Positions": "drawn()",
    "What if": "drawn()",
    "Train": "texts('svg text').length > 3",
}
"""When the main picture of a page is there."""
TURNED = """[...document.querySelectorAll(".names .token.turned span")]
  .filter(({ textContent }) => textContent.length > 2)
  .map((label) => {
    const { writingMode, rotate } = getComputedStyle(label);
    const { width, height } = label.getBoundingClientRect();
    return [writingMode, rotate, height > width];
  })"""
AT_REST = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
STORY = "Mary took the ball. She went to the garden. Where is the ball?"


@pytest.fixture(scope="module", params=[Firefox, WebKit], ids=lambda kind: kind.name)
def browser(request, tmp_path_factory):
    if missing := request.param.missing():
        unavailable(f"{request.param.name} was not found: install {missing}", needs="all")
    browser = request.param(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def site(tiny_folder, tmp_path_factory):
    """The address of a folder with a site and saved pages, and how often each file was asked for."""
    folder, asked = tmp_path_factory.mktemp("site"), Counter()
    models = [(path, load_checkpoint(path)) for path in (ROOT / "checkpoints" / "stories", tiny_folder / "encoder")]
    write_site(folder / "site", {path.name: read for path, read in models})
    (_, stories), (_, encoder) = models
    for view in ("inside", "attention", "generation"):
        (folder / f"{view}.html").write_text(show(stories, STORY, view=view).html, encoding="utf-8")
    (folder / "filling.html").write_text(show(encoder, "To [mask]e", view="generation").html, encoding="utf-8")
    recorded = record_pass(stories.model, stories.tokenizer.encode(STORY), labels=stories.tokenizer.labels)
    (folder / "recorded.html").write_text(show(recorded).html, encoding="utf-8")

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            asked[self.path.partition("?")[0]] += 1
            super().do_GET()

        def log_message(self, format, *args):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def see(browser, condition):
    """Wait until a condition holds on the page, which has reported no error by then."""
    browser.wait_for(f"(() => {{ {ALL} return {condition}; }})()")
    assert browser.errors() == []
    assert browser.evaluate(f"(() => {{ {ALL} return texts('[role=alert]'); }})()") == []


def test_every_page_of_the_app_is_drawn(browser, tiny_server):
    browser.open_heard(f"{tiny_server.url}/?model=far-reader", beside=f"{tiny_server.url}/_stcore/health")
    for title, picture in PICTURES.items():
        browser.wait_for(f"document.querySelector('[data-testid=stTopNavLink]') && {AT_REST}")
        browser.evaluate(
            "[...document.querySelectorAll('[data-testid=stTopNavLink]')]"
            f".find((link) => link.textContent.trim().endsWith('{title}')).click()"
        )
        here = f"texts('h1').includes('{title}')"
        see(browser, f"{here} && {AT_REST} && {picture}")
    # Terms are underlined with dots, where the browser highlights what isn't an element.
    underlined = "CSS.highlights && [...CSS.highlights.get('headsup-term')].length"
    assert browser.wait_for(underlined)
    rule = "[...document.adoptedStyleSheets].flatMap(({ cssRules }) => [...cssRules])"
    rule += ".find(({ selectorText }) => selectorText === '::highlight(headsup-term)').style"
    assert browser.evaluate(f"[{rule}.textDecorationLine, {rule}.textDecorationStyle]") == ["underline", "dotted"]


def test_a_site_is_drawn_from_files_that_are_fetched_once(browser, site):
    address, asked = site
    asked.clear()
    browser.open(f"{address}/site/Attention/?model=stories")
    browser.wait_for("document.querySelector('[data-part=view][data-state=shown]')")
    fetched = {name: count for name, count in asked.items() if name.startswith("/site/models")}
    assert fetched == dict.fromkeys(fetched, 1) and len(fetched) == 2
    for path, picture in (
        ("?model=stories", PICTURES["Generate"]),
        ("?model=encoder", PICTURES["Generate"]),
        ("Attention/?model=stories", PICTURES["Attention"]),
        (f"Inside/?{urlencode({'model': 'stories', 'prompt': ' '.join([STORY] * 4)})}", PICTURES["Inside"]),
    ):
        browser.open_heard(f"{address}/site/{path}", beside=f"{address}/site/models/")
        see(browser, picture)
    # The prompt is seen as a whole, and labels below narrow columns are turned: read from below.
    hidden = "(({ clientHeight, scrollHeight }) => scrollHeight - clientHeight)(document.querySelector('textarea'))"
    assert browser.evaluate(hidden) <= 1
    turned = browser.evaluate(TURNED)
    assert len(turned) > 20 and all(label == ["vertical-rl", "180deg", True] for label in turned), turned


@pytest.mark.parametrize("name", ["inside", "attention", "generation", "filling", "recorded"])
def test_a_saved_page_is_drawn(browser, site, name):
    picture = {"inside": "Inside", "recorded": "Inside", "attention": "Attention"}.get(name, "Generate")
    browser.open_heard(f"{site[0]}/{name}.html", beside=f"{site[0]}/site/models/")
    see(browser, PICTURES[picture])
