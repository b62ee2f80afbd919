"""Opens the app in Chromium for benchmarks, and counts the bytes a tab receives."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import CHROMIUM_ARGS, find_chromium

from .serving import app_server

WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer")
"""Of letters that the models of these benchmarks know."""
QUIET_SECONDS = 1.5
"""When nothing has come for so long, everything that is fetched ahead has."""
PARTS = {"api": "numbers", "modules": "modules"}
"""By the first part of a path, what comes from there; everything else over HTTP is Streamlit's own frontend."""
# When an element was first there, looked for within the page: Playwright looks only twice a second after a while.
NOTE_DRAWN = """(selector) => {
  const look = () => {
    const roots = [document, ...[...document.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean)];
    if (roots.some((root) => root.querySelector(selector))) window.drawnAt = performance.now();
    else setTimeout(look, 10);
  };
  look();
}"""


class Traffic:
    """What has come to a tab: bytes by part, compressed as they were sent, headers of answers included.

    Parts: `messages`, those of Streamlit's websocket; `numbers`, answers of the engine; `modules`, scripts and styles
    of ours; `streamlit`, its own frontend.
    """

    def __init__(self, page: Any) -> None:
        self.parts: Counter[str] = Counter()
        self._came: list[tuple[float, str, int]] = []
        """When what came over HTTP did, in seconds since 1970."""
        self.drawn_at = 0.0
        self._epoch = 0.0
        self.urls: list[str] = []
        """Asked for, in this order."""
        self.page_runs = 0
        self._last = time.perf_counter()
        self._open: dict[str, str] = {}
        page.on("websocket", lambda socket: socket.on("framereceived", self._note))
        self._session = page.context.new_cdp_session(page)
        for event, listener in (("requestWillBeSent", self._asked), ("loadingFinished", self._answered)):
            self._session.on(f"Network.{event}", listener)
        self._session.send("Network.enable")

    @property
    def bytes(self) -> int:
        """Of everything but Streamlit's own frontend."""
        return self.parts.total() - self.parts["streamlit"]

    @property
    def first(self) -> Counter[str]:
        """The bytes by part that had come when the page was drawn, and all messages."""
        found = Counter({"messages": self.parts["messages"]})
        for came, part, size in self._came:
            found[part] += size if came <= self.drawn_at else 0
        return found

    def settle(self, page: Any) -> None:
        """Wait until nothing has come for a while."""
        while time.perf_counter() - self._last < QUIET_SECONDS:
            page.wait_for_timeout(100)

    def forget(self) -> None:
        """Begin to count anew."""
        self.parts.clear()
        self.urls.clear()
        self.page_runs = 0

    def _asked(self, event: dict[str, Any]) -> None:
        self.urls.append(event["request"]["url"])
        self._open[event["requestId"]] = urlsplit(event["request"]["url"]).path.split("/")[1]
        self._epoch = event["wallTime"] - event["timestamp"]
        self._last = time.perf_counter()

    def _answered(self, event: dict[str, Any]) -> None:
        folder = self._open.pop(event["requestId"], None)
        if folder is not None:
            part, size = PARTS.get(folder, "streamlit"), int(event["encodedDataLength"])
            self.parts[part] += size
            self._came.append((self._epoch + event["timestamp"], part, size))
            self._last = time.perf_counter()

    def _note(self, payload: bytes | str) -> None:
        self.parts["messages"] += len(payload)
        self._last = time.perf_counter()
        message = ForwardMsg.FromString(payload if isinstance(payload, bytes) else payload.encode())
        if message.WhichOneof("type") == "script_finished":
            self.page_runs += message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY


class Browser:
    """A Chromium with one tab at a time, on an app that it alone visits."""

    def __init__(self, browser: Any, url: str, width: int, height: int) -> None:
        self._browser, self.url, self._size = browser, url, {"width": width, "height": height}
        self._context: Any = None

    def tab(self, *, is_new: bool = False) -> tuple[Any, Traffic]:
        """A tab in the place of the last. is_new: of a browser that was never here, and has nothing in its cache."""
        if is_new and self._context:
            self._context.close()
        if is_new or not self._context:
            self._context = self._browser.new_context(viewport=self._size, bypass_csp=True)
        for page in self._context.pages:
            page.close()
        page = self._context.new_page()
        return page, Traffic(page)

    def address(self, page: str, length: int, **parameters: object) -> str:
        """A link to a page with a text of this many characters that nobody has asked for."""
        prompt = " ".join(random.choices(WORDS, k=length))[:length]
        return f"{self.url}/{page}?{urlencode({'model': 'shakespeare', 'prompt': prompt, **parameters})}"


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium that nobody sees."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        raise SystemExit("This benchmark needs Chromium: install it, or name it in HEADSUP_CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
        yield browser
        browser.close()


@contextmanager
def app_in_chromium(width: int = 1280, height: int = 900, **environment: str) -> Iterator[Browser]:
    """A Chromium whose tabs have this many pixels, and the app, which has opened its first page. environment: as
    `app_server` has it."""
    with app_server(**environment) as server, chromium() as launched:
        browser = Browser(launched, server.url, width, height)
        page, traffic = browser.tab()
        page.goto(server.url)  # the first page of a server opens the model, too
        traffic.settle(page)
        yield browser


def opened(browser: Browser, address: str, drawn: str, *, is_new: bool = False) -> tuple[Any, Traffic, float]:
    """A tab with an address; its traffic; milliseconds from the navigation until an element is there. drawn: its
    selector, within one root; is_new: as `Browser.tab` has it."""
    page, traffic = browser.tab(is_new=is_new)
    page.add_init_script(f"({NOTE_DRAWN})({json.dumps(drawn)})")
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.drawnAt", timeout=60_000)
    traffic.drawn_at = page.evaluate("(performance.timeOrigin + window.drawnAt) / 1000")
    return page, traffic, page.evaluate("window.drawnAt")


def answer(page: Any, watch: str, argument: Any, act: Callable[[], None]) -> float:
    """Milliseconds from an act to the frame that answers it. watch: a script that puts them into `window.answered`."""
    page.evaluate(watch, argument)
    act()
    page.wait_for_function("window.answered !== null", timeout=30_000)
    return page.evaluate("window.answered")
