"""Benchmarks the page Inside: opening, response times, play, in Chromium.

The picture of a text that nobody has asked for counts from the navigation, in a browser that was never here, or from
the click on the page's link, until it is there. Zoom, hover and selection count from the event to the end of the frame
that answers it, read inside the page. Of Play, to the end of the pass, each frame counts from the one before.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .chromium import Browser, Traffic, answer, app_in_chromium, opened
from .latency import QUIET_MS, TURN
from .measuring import machine, print_table

WIDTH, HEIGHT = 1440, 900
SHORT, LONG = 32, 256
ROOT = "[data-testid=inside]"
DRAWN = f"{ROOT} .names [data-open]"
GENERATE = "[data-testid=live-text-candidates] button:enabled"
ZOOMS = ("blocks.{layer}", "blocks.{layer}.attn", "blocks.{layer}.attn.hook_z", "")
"""What is opened, one after the other; the last is the way back."""
SLOW_FRAME = 25.0
PLAYED_MS = 6000

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
# Milliseconds between frames, while Play runs; `window.isPlaying` until it has come to its end.
NOTE_FRAMES = """() => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=inside]")).find(Boolean);
  const toggle = [...root.querySelectorAll(".play button")].find((button) => /Play/.test(button.ariaLabel));
  Object.assign(window, { frames: [], isPlaying: true });
  let before = null;
  const look = (now) => {
    const isRunning = toggle.textContent === "Pause";
    if (before !== null) window.isPlaying = isRunning;
    if (isRunning && before !== null) window.frames.push(now - before);
    before = isRunning ? now : null;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    times = 6 if quick else 20
    figures: dict[str, float] = {}
    with app_in_chromium(WIDTH, HEIGHT) as browser:
        figures |= _first_pictures(browser, 2 if quick else 8)
        for length in (SHORT, LONG):
            figures |= _answers(_opened(browser, length), length, times)
        figures |= _frames(_opened(browser, SHORT)[0], PLAYED_MS if quick else None)
    print_table(("what", "figure"), [(name.replace("_", " "), f"{value:,.1f}") for name, value in figures.items()])
    return {**{name: round(value, 2) for name, value in figures.items()}, **machine()}


def _opened(browser: Browser, length: int) -> tuple:
    page, traffic, _ = opened(browser, browser.address("Inside", length), DRAWN)
    traffic.settle(page)
    return page, traffic


def _first_pictures(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds until the picture is drawn: by a link that is opened, and from the page Generate."""
    found: dict[str, list[float]] = {}
    for _ in range(times):
        for length in (SHORT, LONG):
            for cache, is_new in (("", True), ("_cached", False)):
                _, _, waited = opened(browser, browser.address("Inside", length), DRAWN, is_new=is_new)
                found.setdefault(f"link_to_picture_ms_at_{length}{cache}", []).append(waited)
        page, traffic, _ = opened(browser, browser.address("", SHORT), GENERATE)
        traffic.settle(page)
        change = page.evaluate(TURN, ["Inside", DRAWN, QUIET_MS])
        found.setdefault(f"page_to_picture_ms_at_{SHORT}", []).append(change["content"])
    return {name: statistics.median(waits) for name, waits in found.items()}


def _answers(shown: tuple, length: int, times: int) -> dict[str, float]:
    """Milliseconds from the hand to its answer, once a block's numbers have come, and how often the page ran."""
    page, traffic = shown
    root, runs = page.locator(ROOT), traffic.page_runs
    found: dict[str, list[float]] = {"zoom": [], "hover": [], "selection": []}
    for at in range(times):
        for number, place in enumerate(ZOOMS):
            target = place.format(layer=at % 2)
            name = (
                root.locator(f'.names [data-open="{target}"]').first
                if target
                else root.get_by_role("navigation").get_by_role("button").first
            )
            waited = answer(page, WATCH, "click", name.click)
            assert root.get_attribute("data-open") == target
            _settle_once(page, traffic, at, number)
            if at >= 2:  # both blocks have come by then
                found["zoom"].append(waited)
        root.locator(".stage").evaluate("(stage) => stage.scrollIntoView({ block: 'center' })")
        box = root.locator(".stage").bounding_box()
        place = box["x"] + box["width"] * (0.3 + 0.02 * at), box["y"] + box["height"] * (0.2 + 0.03 * at)
        found["hover"].append(answer(page, WATCH, "pointermove", lambda place=place: page.mouse.move(*place)))
        root.locator(".stage").focus()
        found["selection"].append(answer(page, WATCH, "keydown", lambda: page.keyboard.press("ArrowLeft")))
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


def _frames(page, enough: float | None) -> dict[str, float]:
    """Of Play's frames the median, the time within which 95 % come, the longest. enough: milliseconds; None for all."""
    page.evaluate(NOTE_FRAMES)
    stage = page.locator(f"{ROOT} .stage")
    stage.focus()
    page.keyboard.press("Space")
    if enough:
        page.wait_for_timeout(enough)
    else:
        page.wait_for_function("!window.isPlaying", timeout=120_000)
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
