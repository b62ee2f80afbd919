"""Measures how long the page's own thread is busy while a model is computed in the browser.

In Chromium, with Shakespeare: a prompt of 64 tokens is shown by each instrument, and a text of 200 tokens is written as
fast as it can be, in the app and in saved pages. A task longer than 50 ms is one that a visitor may notice (Long Tasks
API); which scripts it consists of, long animation frames say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from transformer import load_checkpoint, show
from transformer.frontend.live_page import View

from .chromium import chromium
from .serving import app_server

CHECKPOINT = Path(__file__).resolve().parents[2] / "checkpoints" / "shakespeare"
FIRST = "To be, or not to be, that is the question: Whether 'tis nobler "
OTHER = "All the world's a stage, And all the men and women merely player"
WRITTEN = 200
SHOWN = "[data-part=root][data-state=shown], .live[data-state=shown]"
QUIET_MS = 1_500
VIEWS: tuple[View, ...] = ("attention", "inside", "generation")
# Tasks longer than 50 ms, and of the frames that took so long the scripts: those of Streamlit lie below /static/.
NOTE_TASKS = """() => {
  window.tasks = { longest: 0, ours: 0, streamlit: 0 };
  const note = (who, duration) => { window.tasks[who] = Math.max(window.tasks[who], duration); };
  const follow = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type });
  follow("longtask", ({ duration }) => note("longest", duration));
  follow("long-animation-frame", ({ scripts }) => scripts.forEach(({ sourceURL, duration }) => {
    note(sourceURL.includes("/static/") ? "streamlit" : "ours", duration);
  }));
}"""
FORGET = "Object.keys(window.tasks).forEach((who) => { window.tasks[who] = 0; })"


def longest_tasks() -> dict[str, dict[str, float]]:
    """By what is done: milliseconds of the longest task, and of the longest script of ours and of Streamlit's in long
    frames; 0 where none took 50 ms."""
    found: dict[str, dict[str, float]] = {}
    with app_server(HEADSUP_BROWSER_MODELS="") as server, chromium() as browser, _saved() as pages:
        for name in ("Attention", "Inside", ""):
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            page.add_init_script(f"({NOTE_TASKS})()")
            query = {"model": "shakespeare", "prompt": FIRST, "tokens": WRITTEN, "pace": "unbounded"}
            page.goto(f"{server.url}/{name}?{urlencode(query)}")
            page.locator("p.computed", has_text="from now on in your browser").wait_for(timeout=60_000)
            prompt = page.get_by_role("textbox", name="Prompt", exact=True)
            found |= _measure(page, f"app, {name or 'Generate'}", prompt, "Control+Enter")
            page.close()
        for view, path in pages.items():
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            page.add_init_script(f"({NOTE_TASKS})()")
            page.goto(path.as_uri())
            page.locator("p.computed[data-deviation]").wait_for(timeout=60_000)
            found |= _measure(page, f"saved page, {view}", page.get_by_label("Prompt"), "Control+Enter")
            page.close()
    return found


def _measure(page: Any, name: str, prompt: Any, enter: str) -> dict[str, dict[str, float]]:
    page.wait_for_timeout(QUIET_MS)
    page.evaluate(FORGET)
    prompt.fill(OTHER)
    prompt.press(enter)
    page.wait_for_timeout(QUIET_MS)
    page.locator(SHOWN).wait_for(timeout=60_000)
    page.wait_for_timeout(QUIET_MS)
    found = {f"{name}: a prompt": page.evaluate("window.tasks")}
    generate = page.get_by_role("button", name="Generate", exact=True)
    if generate.count():
        page.evaluate(FORGET)
        generate.click()
        page.get_by_test_id("live-text-token").nth(len(OTHER) + WRITTEN - 1).wait_for(timeout=60_000)
        page.wait_for_timeout(QUIET_MS)
        found[f"{name}: a text"] = page.evaluate("window.tasks")
    return found


@contextmanager
def _saved() -> Iterator[dict[str, Path]]:
    """Pages that compute, by what they show."""
    checkpoint = load_checkpoint(CHECKPOINT)
    with tempfile.TemporaryDirectory() as folder:
        paths: dict[View, Path] = {view: Path(folder, f"{view}.html") for view in VIEWS}
        for view, path in paths.items():
            show(checkpoint, FIRST, view=view).save(path)
        yield {str(view): path for view, path in paths.items()}
