"""How fast the page Attention answers the hand, and how much it sends: one visitor, in real Chromium on this machine.

A click counts from its event to the end of the frame in which the instrument has drawn it; both ends are read inside
the page. Bytes are those of the websocket's messages. First paints begin with the navigation and end when the chosen
head is drawn from its own numbers; long and short prompts take turns, each a text that nobody has asked for before.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import numpy as np
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.ui.components import head_grid
from pages.ui.components.sources import script, style
from tests.browser.conftest import CHROMIUM_ARGS, find_chromium

from .measuring import machine, print_table
from .serving import app_server

INSTRUMENT = "[data-testid=attention]"
WHOLE = f"{INSTRUMENT}[data-whole=true]"
LENGTHS = (64, 256)
SHORT = 24
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer")
"""Of letters that both models know."""
QUIET_SECONDS = 1.5
"""Without a message for so long, everything that is fetched ahead has come."""

WATCH = """(act) => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=attention]")).find(Boolean);
  const before = root.dataset.shown;
  window.answered = null;
  let began = null;
  for (const kind of ["click", "pointerup"]) {
    document.addEventListener(kind, (event) => { began ??= event.timeStamp; }, { capture: true, once: true });
  }
  const look = () => {
    if (began !== null && root.dataset.shown !== before && root.dataset.whole === "true") {
      const channel = new MessageChannel();  // its message comes when the frame has been painted
      channel.port1.onmessage = () => { window.answered = performance.now() - began; };
      requestAnimationFrame(() => channel.port2.postMessage(null));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


class Traffic:
    """What a page's websocket has brought."""

    def __init__(self, page) -> None:
        self.bytes = self.page_runs = 0
        self.last = time.perf_counter()
        page.on("websocket", lambda socket: socket.on("framereceived", self._note))

    def _note(self, payload: bytes | str) -> None:
        self.bytes += len(payload)
        self.last = time.perf_counter()
        message = ForwardMsg()
        message.ParseFromString(payload if isinstance(payload, bytes) else payload.encode())
        if message.WhichOneof("type") == "script_finished":
            self.page_runs += message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY

    def settle(self, page) -> None:
        """Wait until nothing has come for a while."""
        while time.perf_counter() - self.last < QUIET_SECONDS:
            page.wait_for_timeout(100)


def run(quick: bool = False) -> dict:
    """Measure, print the tables, and return every figure."""
    clicks, paints = (6, 2) if quick else (20, 8)
    figures: dict[str, float] = {}
    with app_in_chromium() as (open_page, url):
        open_page()[0].goto(url)  # the first page of a server opens the model, too
        for length in LENGTHS:
            figures |= _clicks(open_page, url, length, clicks)
        figures |= _fetched(open_page, url, clicks // 2)
        figures |= _bytes(open_page, url)
        figures |= _first_paints(open_page, url, paints)
    print_table(("what", "figure"), [(name.replace("_", " "), f"{value:,.1f}") for name, value in figures.items()])
    return {**{name: round(value, 2) for name, value in figures.items()}, **machine()}


@contextmanager
def app_in_chromium(width: int = 1280, height: int = 900) -> Iterator[tuple[Callable, str]]:
    """What opens a tab, the only one, of these many pixels, and the address of the app."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        raise SystemExit("This benchmark needs Chromium: install it, or name it in HEADSUP_CHROMIUM.")
    with app_server() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
        context = browser.new_context(viewport={"width": width, "height": height})

        def open_page() -> tuple:
            for page in context.pages:
                page.close()
            page = context.new_page()
            return page, Traffic(page)

        yield open_page, server.url
        browser.close()


def _address(url: str, length: int, **parameters: object) -> str:
    """A link to Attention with a text of this many characters that nobody has asked for."""
    words = random.choices(WORDS, k=length)
    prompt = " ".join(words)[:length]
    return f"{url}/Attention?{urlencode({'model': 'shakespeare', 'prompt': prompt, **parameters})}"


def _open(open_page: Callable, address: str) -> tuple:
    page, traffic = open_page()
    page.goto(address)
    page.wait_for_selector(WHOLE, timeout=60_000)
    return page, traffic


def _clicks(open_page: Callable, url: str, length: int, times: int) -> dict[str, float]:
    """Milliseconds from a click to its picture, once the data are there, and how often the page ran."""
    page, traffic = _open(open_page, _address(url, length))
    traffic.settle(page)
    runs = traffic.page_runs
    heads = page.get_by_test_id("head-grid-head")
    canvas = page.locator("[data-panel=weights] canvas.marks")
    found: dict[str, list[float]] = {"head": [], "layer": [], "cell": []}
    for at in range(times):
        found["head"].append(_answer(page, lambda at=at: heads.nth(6 * (at % 6) + (at + 1) % 6).click()))
        found["layer"].append(_answer(page, lambda at=at: heads.nth((6 * at + 12 + (at + 1) % 6) % 36).click()))
        box = canvas.bounding_box()
        place = {"x": box["width"] * (0.2 + 0.02 * at), "y": box["height"] * (0.85 - 0.02 * at)}
        found["cell"].append(_answer(page, lambda place=place: canvas.click(position=place)))
        page.wait_for_timeout(300)
    return {
        **{f"{what}_ms_at_{length}": statistics.median(waits) for what, waits in found.items()},
        f"worst_click_ms_at_{length}": max(max(waits) for waits in found.values()),
        f"runs_of_the_page_for_{3 * times}_clicks_at_{length}": traffic.page_runs - runs,
    }


def _answer(page, act: Callable[[], None]) -> float:
    page.evaluate(WATCH)
    act()
    page.wait_for_function("window.answered !== null", timeout=30_000)
    return page.evaluate("window.answered")


def _fetched(open_page: Callable, url: str, times: int) -> dict[str, float]:
    """Milliseconds from a click on a head whose numbers have yet to come, right after a long text's first paint."""
    waits = []
    for at in range(times):
        page, _ = _open(open_page, _address(url, 256, layer=0, head=0))
        head = page.get_by_test_id("head-grid-head").nth(30 + at % 6)
        waits.append(_answer(page, head.click))
    return {"fetched_head_ms_at_256": statistics.median(waits), "worst_fetched_head_ms_at_256": max(waits)}


def _bytes(open_page: Callable, url: str) -> dict[str, float]:
    """Kilobytes of the page with a text of 64 tokens: until the head is drawn, and when all has come."""
    page, traffic = _open(open_page, _address(url, 64))
    first = traffic.bytes
    traffic.settle(page)
    found = {"first_paint_kB_6x6_at_64": first / 1000, "everything_kB_6x6_at_64": traffic.bytes / 1000}
    page, traffic = _open(open_page, _address(url, 64).replace("shakespeare", "martin-fierro"))
    # The page Train sends its grid by itself: its cells, and the source of its component with them.
    styles = style(head_grid.__file__, instruments=["save.css", "overview.css"])
    scripts = script(head_grid.__file__, "head_grid.js"), styles
    grid = len(head_grid.build_payload(np.zeros((4, 4, 64, 64)), None)) + sum(map(len, scripts))
    return found | {"first_paint_kB_4x4_at_64": traffic.bytes / 1000, "grid_alone_kB_4x4_at_64": grid / 1000}


def _first_paints(open_page: Callable, url: str, times: int) -> dict[str, float]:
    """Milliseconds from the navigation to the head drawn, of short and long texts in turn."""
    waits: dict[int, list[float]] = {SHORT: [], 256: []}
    for _ in range(times):
        for length, found in waits.items():
            page, _traffic = open_page()
            began = time.perf_counter()
            page.goto(_address(url, length))
            page.wait_for_selector(WHOLE, timeout=60_000)
            found.append(1000 * (time.perf_counter() - began))
    medians = {length: statistics.median(found) for length, found in waits.items()}
    return {
        **{f"first_paint_ms_at_{length}": median for length, median in medians.items()},
        "first_paint_ratio_256_to_short": medians[256] / medians[SHORT],
    }
