"""Benchmarks the page Generate in Chromium: speed and cost of generation.

Writing is at the pace of 25 tokens a second. Bytes are those that come to the browser, from the press of *Generate*
until the page is at rest; questions are those to the engine. What the hand does counts from its event to the end of the
frame that shows the answer; both ends are read inside the page.
"""

from __future__ import annotations

import itertools
import statistics
from urllib.parse import urlencode

from .chromium import Browser, app_in_chromium, opened
from .measuring import machine, print_table

PROMPT = "ROMEO:\nBut, soft"
HEADS = 6
FIND = """() => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  return shadows.map((shadow) => shadow?.querySelector("[data-testid=live-text]")).find(Boolean);
}"""
# When each token was painted, in milliseconds, until the writing ends; and when Generate was pressed.
FOLLOW = f"""() => {{
  const root = ({FIND})();
  const strip = root.querySelector("[data-testid=live-text-strip]");
  window.painted = [];
  let count = strip.children.length;
  const button = root.querySelector("[data-part=generate]");
  button.addEventListener("click", (event) => {{ window.pressed = event.timeStamp; }}, {{ capture: true, once: true }});
  const look = () => {{
    for (; count < strip.children.length; count++) window.painted.push(performance.now());
    requestAnimationFrame(look);
  }};
  look();
}}"""
# Sets a dial, and waits for the frame in which a part of the page says what it is to say.
SET = f"""([name, index, part, words]) => new Promise((resolve) => {{
  const root = ({FIND})();
  const dial = root.querySelector(`[data-setting=${{name}}]`);
  if (dial.tagName === "SELECT") dial.selectedIndex = index;
  else dial.value = index;
  const began = performance.now();
  dial.dispatchEvent(new Event(dial.tagName === "SELECT" ? "change" : "input", {{ bubbles: true }}));
  const look = () => {{
    if (!root.querySelector(`[data-part=${{part}}]`).textContent.match(words)) requestAnimationFrame(look);
    else {{
      const channel = new MessageChannel();  // its message comes when the frame has been painted
      channel.port1.onmessage = () => resolve(performance.now() - began);
      requestAnimationFrame(() => channel.port2.postMessage(null));
    }}
  }};
  look();
}})"""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    tokens, times = (100, 6) if quick else (400, 20)
    with app_in_chromium() as browser:
        figures = _written(browser, tokens)
        figures |= _answers(browser, times)
    print_table(("what", "figure"), [(name.replace("_", " "), f"{value:,.2f}") for name, value in figures.items()])
    return {**{name: round(value, 3) for name, value in figures.items()}, **machine()}


def _open(browser: Browser, **parameters: object) -> tuple:
    address = f"{browser.url}/?{urlencode({'model': 'shakespeare', 'prompt': PROMPT, **parameters})}"
    page, traffic, _ = opened(browser, address, "[data-testid=live-text-token]")
    traffic.settle(page)
    traffic.forget()
    return page, traffic


def _written(browser: Browser, tokens: int) -> dict[str, float]:
    """What writing costs, and how evenly tokens come."""
    page, traffic = _open(browser, tokens=tokens, pace="fast")
    page.evaluate(FOLLOW)
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function("(count) => window.painted.length >= count", arg=tokens, timeout=120_000)
    traffic.settle(page)
    painted, pressed = page.evaluate("[window.painted, window.pressed]")
    gaps = [after - before for before, after in itertools.pairwise(painted)]
    return {
        "tokens": len(painted),
        "tokens_a_second": 1000 * (len(painted) - 1) / (painted[-1] - painted[0]),
        "ms_to_the_first_token": painted[0] - pressed,
        "ms_between_tokens_median": statistics.median(gaps),
        "ms_between_tokens_worst": max(gaps),
        "questions": sum("/api/" in url for url in traffic.urls),
        "page_runs": traffic.page_runs,
        "bytes_a_token": traffic.bytes / tokens,
    }


def _answers(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds from a change of head, or of a dial, to its picture: heads that were never asked for come first."""
    page, traffic = _open(browser, tokens=100, pace="unbounded", layer=0, head=0)
    page.get_by_role("button", name="Generate", exact=True).click()
    page.get_by_test_id("live-text-token").nth(len(PROMPT) + 99).wait_for(timeout=60_000)
    traffic.settle(page)
    traffic.forget()
    found: dict[str, list[float]] = {"new_head": [], "known_head": [], "dial": []}
    for at in range(times):
        layer, head = at // (HEADS - 1), 1 + at % (HEADS - 1)
        if head == 1 and layer:
            _set(page, "layer", layer, "largest", f"layer {layer}, head {HEADS - 1}: token")
        found["new_head"].append(_set(page, "head", head, "largest", f"layer {layer}, head {head}: token"))
        found["known_head"].append(_set(page, "head", head - 1, "largest", f"layer {layer}, head {head - 1}: token"))
        _set(page, "head", head, "largest", f"layer {layer}, head {head}: token")
        temperature = 0.5 + 0.05 * at
        found["dial"].append(_set(page, "temperature", temperature, "drawn", f"÷ {temperature:g} ="))
        page.wait_for_timeout(1200)  # as a hand that looks at what it has turned to
    medians = {f"{what}_ms": statistics.median(waits) for what, waits in found.items()}
    worst = {f"worst_{what}_ms": max(waits) for what, waits in found.items()}
    return medians | worst | {"page_runs_meanwhile": traffic.page_runs}


def _set(page, name: str, value: float, part: str, words: str) -> float:
    return page.evaluate(SET, [name, value, part, words])
