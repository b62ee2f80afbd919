"""How long a visitor waits: for the first page of a server just started, and for the first token after a click.

Both in real Chromium on this machine. The first page counts as usable when its text and its candidates are drawn and
*Generate* can be pressed; the clock starts with the server's process. The first token counts when its node is in the
page; that clock starts with the click, and both its ends are read inside the page.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.browser.conftest import CHROMIUM_ARGS, find_chromium
from tests.browser.servers import ROOT, Server

from .measuring import Timing, machine, print_table

TOKEN = "[data-testid=live-text-token]"
CLICKS = 4
"""For each server."""

WATCH = """() => {
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


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        raise SystemExit("This benchmark needs Chromium: install it, or name it in HEADSUP_CHROMIUM.")
    pages, tokens = [], []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
        for number in range(1 if quick else 5):
            page_seconds, token_seconds = _one_server(browser, Path(folder) / f"{number}.log")
            pages.append(page_seconds)
            tokens += token_seconds
        browser.close()
    timings = {"start_to_usable_page": Timing(tuple(pages)), "click_to_first_token": Timing(tuple(tokens))}
    print_table(
        ("from", "median s", "least s", "most s", "times"),
        [
            (name.replace("_", " "), f"{timing.median:.3f}", f"{min(timing.seconds):.3f}",
             f"{max(timing.seconds):.3f}", str(len(timing.seconds)))
            for name, timing in timings.items()
        ],
    )  # fmt: skip
    return {
        **{f"{name}_seconds": round(timing.median, 3) for name, timing in timings.items()},
        **{f"{name}_all": [round(second, 3) for second in timing.seconds] for name, timing in timings.items()},
        **machine(),
    }


def _one_server(browser, log_path: Path) -> tuple[float, list[float]]:
    started = time.perf_counter()
    with Server(ROOT / "app.py", log_path=log_path, cwd=ROOT, env={}, options=()) as server:
        server.wait_until_healthy()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(server.url)
        page.wait_for_selector(TOKEN, timeout=60_000)
        page.wait_for_selector("[data-testid=live-text-candidates] button:enabled", timeout=60_000)
        generate = page.get_by_test_id("stMain").get_by_role("button", name="Generate")
        generate.and_(page.locator(":enabled")).wait_for(timeout=60_000)
        usable = time.perf_counter() - started
        waits = [_one_click(page, generate) for _ in range(CLICKS)]
        page.close()
    return usable, waits


def _one_click(page, generate) -> float:
    """Seconds from a click on Generate to the first new token; ends with the text stopped and cleared."""
    main = page.get_by_test_id("stMain")
    page.evaluate(WATCH)
    generate.click()
    page.wait_for_function("window.waited !== null", timeout=60_000)
    main.get_by_role("button", name="Stop").click()
    main.get_by_role("button", name="Clear").and_(page.locator(":enabled")).click(timeout=60_000)
    page.wait_for_function("window.isCleared()", timeout=60_000)
    generate.and_(page.locator(":enabled")).wait_for(timeout=60_000)
    return page.evaluate("window.waited") / 1000
