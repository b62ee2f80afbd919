"""How fast the page Inside opens, answers the hand, and plays: one visitor, in real Chromium at 1440 × 900.

The picture of a text that nobody has asked for counts from the navigation, or from the click on the page's link, to
the frame in which it is drawn. Zoom, hover and selection count from the event to the end of the frame that answers it,
read inside the page. Of Play, all chapters one after the other, each frame counts from the one before it.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from .exploring import Traffic, app_in_chromium
from .measuring import machine, print_table

WIDTH, HEIGHT = 1440, 900
SHORT, LONG = 32, 256
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer")
"""Of letters that the model knows."""
ROOT = "[data-testid=inside]"
DRAWN = f"{ROOT} .names [data-open]"
ZOOMS = ("blocks.{layer}", "blocks.{layer}.attn", "blocks.{layer}.attn.hook_z", "")
"""What is opened, one after the other; the last is the way back."""
SLOW_FRAME = 25.0

# From the first event of a kind to the end of the frame after it.
WATCH = """(kind) => {
  window.answered = null;
  document.addEventListener(kind, (event) => {
    const note = () => { window.answered ??= performance.now() - event.timeStamp; };
    const channel = new MessageChannel();  // its message comes when the frame has been painted
    channel.port1.onmessage = note;
    requestAnimationFrame(() => {
      channel.port2.postMessage(null);
      requestAnimationFrame(note);  // while something moves, the next frame can come before the message
    });
  }, { capture: true, once: true });
}"""
# Milliseconds between frames, while Play runs; `window.chapters` counts those that have come to their end.
NOTE_FRAMES = """() => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=inside]")).find(Boolean);
  const toggle = [...root.querySelectorAll(".play button")].find((button) => /Play/.test(button.ariaLabel));
  Object.assign(window, { frames: [], chapters: 0 });
  let before = null;
  const look = (now) => {
    const isRunning = toggle.textContent === "Stop";
    if (isRunning && before !== null) window.frames.push(now - before);
    if (!isRunning && before !== null) window.chapters += 1;
    before = isRunning ? now : null;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    times, chapters = (6, 3) if quick else (20, None)
    figures: dict[str, float] = {}
    with app_in_chromium(WIDTH, HEIGHT) as (open_page, url):
        open_page()[0].goto(url)  # the first page of a server opens the model, too
        figures |= _first_pictures(open_page, url, 2 if quick else 8)
        for length in (SHORT, LONG):
            figures |= _answers(_opened(open_page, url, length), length, times)
        figures |= _frames(_opened(open_page, url, SHORT)[0], chapters)
    print_table(("what", "figure"), [(name.replace("_", " "), f"{value:,.1f}") for name, value in figures.items()])
    return {**{name: round(value, 2) for name, value in figures.items()}, **machine()}


def _address(url: str, page: str, length: int) -> str:
    prompt = " ".join(random.choices(WORDS, k=length))[:length]
    return f"{url}/{page}?{urlencode({'model': 'shakespeare', 'prompt': prompt})}"


def _opened(open_page: Callable, url: str, length: int) -> tuple:
    page, traffic = open_page()
    page.goto(_address(url, "Inside", length))
    page.wait_for_selector(DRAWN, timeout=60_000)
    traffic.settle(page)
    return page, traffic


def _first_pictures(open_page: Callable, url: str, times: int) -> dict[str, float]:
    """Milliseconds until the picture is drawn: by a link that is opened, and from the page Generate."""
    found: dict[str, list[float]] = {}
    for _ in range(times):
        for length in (SHORT, LONG):
            page, _traffic = open_page()
            began = time.perf_counter()
            page.goto(_address(url, "Inside", length))
            page.wait_for_selector(DRAWN, timeout=60_000)
            found.setdefault(f"link_to_picture_ms_at_{length}", []).append(1000 * (time.perf_counter() - began))
        page, traffic = open_page()
        page.goto(_address(url, "", SHORT))
        page.wait_for_selector("[data-testid=live-text-candidates] button:enabled", timeout=60_000)
        traffic.settle(page)
        began = time.perf_counter()
        page.get_by_test_id("stSidebar").get_by_role("link", name="Inside").click()
        page.wait_for_selector(DRAWN, timeout=60_000)
        found.setdefault(f"page_to_picture_ms_at_{SHORT}", []).append(1000 * (time.perf_counter() - began))
    return {name: statistics.median(waits) for name, waits in found.items()}


def _answers(opened: tuple, length: int, times: int) -> dict[str, float]:
    """Milliseconds from the hand to its answer, once a block's numbers have come, and how often the page ran."""
    page, traffic = opened
    root, runs = page.locator(ROOT), traffic.page_runs
    found: dict[str, list[float]] = {"zoom": [], "hover": [], "selection": []}
    for at in range(times):
        for number, place in enumerate(ZOOMS):
            target = place.format(layer=at % 2)
            name = root.locator(f'.names [data-open="{target}"]').first if target else root.get_by_role(
                "navigation").get_by_role("button").first  # fmt: skip
            waited = _answer(page, "click", name.click)
            assert root.get_attribute("data-open") == target
            _settle_once(page, traffic, at, number)
            if at >= 2:  # both blocks have come by then
                found["zoom"].append(waited)
        root.locator(".stage").evaluate("(stage) => stage.scrollIntoView({ block: 'center' })")
        box = root.locator(".stage").bounding_box()
        place = box["x"] + box["width"] * (0.3 + 0.02 * at), box["y"] + box["height"] * (0.2 + 0.03 * at)
        found["hover"].append(_answer(page, "pointermove", lambda place=place: page.mouse.move(*place)))
        root.locator(".stage").focus()
        found["selection"].append(_answer(page, "keydown", lambda: page.keyboard.press("ArrowLeft")))
    return {
        **{f"{what}_ms_at_{length}": statistics.median(waits) for what, waits in found.items()},
        **{f"worst_{what}_ms_at_{length}": max(waits) for what, waits in found.items()},
        f"runs_of_the_page_at_{length}": traffic.page_runs - runs,
    }


def _settle_once(page, traffic: Traffic, at: int, number: int) -> None:
    """Let what was opened for the first time arrive."""
    if at < 2 and number < len(ZOOMS) - 1:
        traffic.settle(page)
    else:
        page.wait_for_timeout(400)


def _answer(page, kind: str, act: Callable[[], None]) -> float:
    page.evaluate(WATCH, kind)
    act()
    page.wait_for_function("window.answered !== null", timeout=30_000)
    return page.evaluate("window.answered")


def _frames(page, chapters: int | None) -> dict[str, float]:
    """Of Play's frames the median, the time within which 95 % come, the longest. chapters: how many; None for all."""
    page.evaluate(NOTE_FRAMES)
    stage = page.locator(f"{ROOT} .stage")
    stage.focus()
    page.keyboard.press("Space")
    slider = page.locator(f"{ROOT} .play input")
    count = min(int(slider.get_attribute("max")), chapters or 1000)
    for chapter in range(1, count + 1):
        page.wait_for_function("(chapter) => window.chapters >= chapter", arg=chapter, timeout=30_000)
        if chapter < count:
            page.keyboard.press("Space")
    return figures_of_frames(page.evaluate("window.frames"))


def figures_of_frames(frames: Sequence[float]) -> dict[str, float]:
    """Milliseconds: the median, the time within which 95 % of frames come, the longest; and the share of slow ones."""
    ordered = sorted(frames)
    return {
        "play_frames": len(ordered),
        "play_frame_ms_median": statistics.median(ordered),
        "play_frame_ms_95": ordered[max(-(-len(ordered) * 95 // 100) - 1, 0)],
        "play_frame_ms_worst": ordered[-1],
        "play_frames_over_25_ms_percent": 100 * sum(frame > SLOW_FRAME for frame in ordered) / len(ordered),
    }
