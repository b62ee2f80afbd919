"""Benchmarks waiting times: server start, first token, change of page.

All in real Chromium on this machine, one visitor. For the start the browser is there already, on a page that asks for
the server twenty times a second and goes to it as soon as it answers; the clock starts with the server's process. The
first page is usable when its text and its candidates are drawn and *Generate* can be pressed, and answers when the
first token after that press is in the page. Changes of page start with the click on the link, and end twice: with the
page's own content (its heading, and what it is for), and with the last change to it before it rests.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.browser.servers import ROOT, Server

from .chromium import chromium
from .measuring import machine, print_table

TOKEN = "[data-testid=live-text-token]"
CONTENT = {
    "Generate": TOKEN,
    "Attention": "[data-testid=attention][data-whole=true]",
    "Masks": "[data-testid=masks] canvas",
    "Positions": "[data-testid=word-orders] table",
    "Inside": "[data-testid=inside] .names [data-open]",
    "What if": "[data-testid=effect-heatmaps] canvas",
    "Learn": ".lesson-list .act",
    "Train": "[data-testid=stBaseButton-primary]",
}
"""What each page is for, once it is drawn."""
CLICKS = 4
"""On *Generate*, for each server."""
QUIET_MS = 600
"""A page that hasn't changed for so long, and that no run of Python will change, rests."""

# Of a page that is open already: it goes to the server as soon as that answers anything.
WAIT_FOR_SERVER = """(url) => {
  const ask = () => fetch(`${url}/_stcore/health`, { mode: "no-cors" })
    .then(() => location.assign(`${url}/?model=shakespeare`), () => setTimeout(ask, 50));
  ask();
}"""

PRESS_AND_WATCH = """() => {
  const token = "[data-testid=live-text-token]";  // inside the component's shadow root
  const root = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).find((r) => r?.querySelector(token));
  const count = () => root.querySelectorAll(token).length;
  const before = count();
  window.isCleared = () => count() === before;
  window.waited = null;
  let clicked = null;
  document.addEventListener("click", () => { clicked = performance.now(); }, { capture: true, once: true });
  const look = () => {
    if (clicked !== null && count() > before) window.waited = performance.now() - clicked;
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""

# Clicks a link of the navigation, and follows what becomes of the page. Nodes of the page before may stay until the new
# page's run has ended; until then they don't count as its content.
TURN = """([name, selector, quiet]) => new Promise((resolve) => {
  const main = document.querySelector("[data-testid=stMain]");
  const app = document.querySelector("[data-testid=stApp]");
  const links = [...document.querySelectorAll("[data-testid=stTopNavLink]")];
  const roots = () => [main, ...[...main.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean)];
  const before = new WeakSet(roots().flatMap((root) => [...root.querySelectorAll("*")]));
  const began = performance.now();
  let content = null, last = began;
  const seen = new WeakSet();
  const observer = new MutationObserver(() => { last = performance.now(); });
  const look = () => {
    const now = performance.now();
    for (const root of roots()) {
      if (!seen.has(root)) observer.observe(root, { childList: true, subtree: true, characterData: true });
      seen.add(root);
    }
    const running = app.dataset.testScriptState !== "notRunning" || main.querySelector("[data-stale=true]");
    if (running) last = now;
    if (content === null && roots().some((root) => root.querySelector("h1")?.textContent.trim() === name)) {
      const drawn = roots().map((root) => root.querySelector(selector)).find(Boolean);
      if (drawn && !(running && before.has(drawn))) content = now;
    }
    if (content !== null && now - last > quiet) {
      observer.disconnect();
      resolve({ content: content - began, settled: Math.max(last, content) - began });
    } else if (now - began > 30000) resolve(null);
    else requestAnimationFrame(look);
  };
  links.find((link) => link.innerText.trim().endsWith(name)).click();
  requestAnimationFrame(look);
})"""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    starts, tokens, changes = [], [], []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for number in range(1 if quick else 5):
            with _waiting_page(browser) as page:
                start, server = _start(page, Path(folder, f"{number}.log"))
                starts.append(start)
                with server:
                    tokens += [_one_click(page) for _ in range(CLICKS)]
                    if number < 2:
                        changes += _changes(page, 1 if quick else 2)
    return _report(starts, tokens, changes)


def _report(starts: list[dict], tokens: list[float], changes: list[dict]) -> dict:
    again = [change for change in changes if not change["first"]]
    figures = {
        **{f"start_to_{what}": [start[what] for start in starts] for what in starts[0]},
        "click_to_first_token": tokens,
        "change_of_page_to_content": [change["content"] for change in again],
        "change_of_page_to_settled": [change["settled"] for change in again],
        "first_visit_of_a_page_to_content": [change["content"] for change in changes if change["first"]],
        "first_visit_of_a_page_to_settled": [change["settled"] for change in changes if change["first"]],
    }
    for name in CONTENT:
        for what in ("content", "settled"):
            figures[f"{name.replace(' ', '_')}_to_{what}"] = [change[what] for change in again if change["to"] == name]
    print_table(
        ("from", "median s", "least s", "most s", "times"),
        [
            (
                name.replace("_", " "),
                f"{statistics.median(seconds):.3f}",
                f"{min(seconds):.3f}",
                f"{max(seconds):.3f}",
                str(len(seconds)),
            )
            for name, seconds in figures.items()
        ],
    )
    return {
        **{f"{name}_seconds": round(statistics.median(seconds), 3) for name, seconds in figures.items()},
        **{f"{name}_worst": round(max(seconds), 3) for name, seconds in figures.items()},
        **{f"{name}_all": [round(second, 3) for second in figures[name]] for name in list(figures)[:7]},
        **machine(),
    }


class _Waiting(BaseHTTPRequestHandler):
    """An empty page of this machine's: a browser lets such a one ask another server here."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>Waiting</title>")

    def log_message(self, *_: object) -> None:
        """Nobody wants to know."""


@contextmanager
def _waiting_page(browser) -> Iterator:
    """A tab of somebody who was never here."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Waiting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        yield page
        context.close()
        server.shutdown()


def _start(page, log_path: Path) -> tuple[dict, Server]:
    """Seconds from the start of a server's process, by what they end with; and the server."""
    started = time.perf_counter()
    server = Server(ROOT / "app.py", log_path=log_path, cwd=ROOT, env={}, options=())
    page.evaluate(WAIT_FOR_SERVER, server.url)
    page.wait_for_url(f"{server.url}/**", wait_until="commit", timeout=60_000)
    answers = time.perf_counter() - started
    page.wait_for_selector(TOKEN, timeout=60_000)
    page.wait_for_selector("[data-testid=live-text-candidates] button:enabled", timeout=60_000)
    _generate(page).and_(page.locator(":enabled")).wait_for(timeout=60_000)
    usable = time.perf_counter() - started
    return {"server": answers, "usable_page": usable, "first_token": usable + _one_click(page)}, server


def _generate(page):
    return page.get_by_test_id("stMain").get_by_role("button", name="Generate", exact=True)


def _one_click(page) -> float:
    """Seconds from a click on Generate to the first new token; ends with the text stopped and cleared."""
    main = page.get_by_test_id("stMain")
    page.evaluate(PRESS_AND_WATCH)
    _generate(page).click()
    page.wait_for_function("window.waited !== null", timeout=60_000)
    main.get_by_role("button", name="Stop").click()
    main.get_by_role("button", name="Clear").and_(page.locator(":enabled")).click(timeout=60_000)
    page.wait_for_function("window.isCleared()", timeout=60_000)
    _generate(page).and_(page.locator(":enabled")).wait_for(timeout=60_000)
    return page.evaluate("window.waited") / 1000


def _changes(page, rounds: int) -> list[dict]:
    """All changes between two pages, each `rounds` times; begins and ends on Generate."""
    found, seen = [], {"Generate"}
    for _ in range(rounds):
        for name in _walk(list(CONTENT)):
            change = page.evaluate(TURN, [name, CONTENT[name], QUIET_MS])
            if change is None:
                raise SystemExit(f"The page {name} didn't come to rest in half a minute.")
            found.append(
                {
                    "to": name,
                    "first": name not in seen,
                    **{what: change[what] / 1000 for what in ("content", "settled")},
                }
            )
            seen.add(name)
    return found


def _walk(names: list[str]) -> list[str]:
    """A walk from the first name that makes each step from one to another once, and ends where it began."""
    left = {name: [other for other in names if other != name] for name in names}
    path, way = [names[0]], []
    while path:  # Hierholzer's algorithm
        if left[path[-1]]:
            path.append(left[path[-1]].pop(0))
        else:
            way.append(path.pop())
    return way[::-1][1:]
