"""Benchmarks the page Attention, and a link to Inside: response times and bytes, in Chromium.

A click, or the key that ends a prompt, counts from its event to the end of the frame in which the instrument has
drawn what follows; both ends are read inside the page. The prompts are read and computed by a browser that has the
model. A link to Inside is compared with the first contentful paint of the same visit, which is Streamlit's own. Bytes
are those that come over the wire until the head is drawn from its own numbers, by part (see `chromium.Traffic`), in a
browser that has the modules in its cache and in one that was never here; Streamlit's own frontend is told apart, and
not counted. First paints begin with the navigation; long and short prompts take turns, each a text that nobody has
asked for before.
"""

from __future__ import annotations

import operator
import statistics
from collections import Counter
from collections.abc import Callable

from .chromium import Browser, Traffic, answer, app_in_chromium, opened
from .measuring import machine, print_table

INSTRUMENT = "[data-testid=attention]"
WHOLE = f"{INSTRUMENT}[data-whole=true]"
INSIDE = "[data-testid=inside] .names [data-open]"
LENGTHS = (64, 256)
SHORT = 24
NAMES = ("Mary", "Tom", "Anna", "Ben")
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"

WATCH = """(act) => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=attention]")).find(Boolean);
  const before = root.dataset.shown;
  window.answered = null;
  let began = null;
  for (const kind of ["click", "pointerup", "keydown"]) {
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


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    clicks, paints = (6, 2) if quick else (20, 8)
    figures: dict[str, float] = {}
    with app_in_chromium() as browser:
        for length in LENGTHS:
            figures |= _clicks(browser, length, clicks)
        figures |= _fetched(browser, clicks // 2)
        figures |= _bytes(browser)
        figures |= _first_paints(browser, paints)
        figures |= _link(browser, paints)
    with app_in_chromium(HEADSUP_BROWSER_MODELS="") as browser:
        figures |= _prompts(browser, clicks // 2)
    print_table(("what", "figure"), [(name.replace("_", " "), f"{value:,.1f}") for name, value in figures.items()])
    return {**{name: round(value, 2) for name, value in figures.items()}, **machine()}


def _open(browser: Browser, length: int, **parameters: object) -> tuple:
    page, traffic, _ = opened(browser, browser.address("Attention", length, **parameters), WHOLE)
    return page, traffic


def _clicks(browser: Browser, length: int, times: int) -> dict[str, float]:
    """Milliseconds from a click to its picture, once the data are there, and how often the page ran."""
    page, traffic = _open(browser, length)
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
    return answer(page, WATCH, None, act)


def _fetched(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds from a click on a head whose numbers have yet to come, right after a long text's first paint."""
    waits = []
    for at in range(2 * times):
        page, traffic = _open(browser, 256, layer=0, head=0)
        if any(f"blocks.5.attn.hook_rot_q%5B%3A%2C+{at % 6}%5D" in url for url in traffic.urls):
            continue  # fetched ahead already
        waits.append(_answer(page, page.get_by_test_id("head-grid-head").nth(at % 6).click))
        if len(waits) == times:
            break
    return {
        "fetched_head_ms_at_256": statistics.median(waits),
        "worst_fetched_head_ms_at_256": max(waits),
        "fetched_heads": len(waits),
    }


def _prompts(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds from Enter to the picture of another prompt of a model that the browser reads and computes."""
    page, traffic, _ = opened(browser, f"{browser.url}/Attention?model=stories&prompt=Tom+ran.", WHOLE)
    page.get_by_text("in your browser").wait_for()
    traffic.settle(page)
    traffic.forget()
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    waits = []
    for at in range(times):  # each text has another length than the one before: a picture says which cell it shows
        prompt.fill(
            f"{NAMES[at % 4]} took the ball." + " Mary went to the garden." * (at % 3)
        )  # twelve of three lengths
        waits.append(_answer(page, lambda: prompt.press("Enter")))
        page.wait_for_timeout(300)
    return {
        "prompt_to_picture_ms_in_the_browser": statistics.median(waits),
        "worst_prompt_to_picture_ms_in_the_browser": max(waits),
        f"requests_for_{times}_prompts": len(traffic.urls),
        f"runs_of_the_page_for_{times}_prompts": traffic.page_runs,
    }


def _bytes(browser: Browser) -> dict[str, float]:
    """Kilobytes of the page with a text of 64 tokens: until the head is drawn, and when all has come."""
    found = {}
    for how in ("not_cached", "cached"):  # the second visit has what came with the first
        first, traffic = _first_bytes(browser, is_new=how == "not_cached")
        name = f"first_paint_kB_6x6_at_64_{how}"
        found[name] = (first.total() - first["streamlit"]) / 1000
        found |= {f"{name}_{part}": size / 1000 for part, size in sorted(first.items())}
        found[f"everything_kB_6x6_at_64_{how}"] = traffic.bytes / 1000
    first, _ = _first_bytes(browser, model="martin-fierro")
    return found | {"first_paint_kB_4x4_at_64_cached": (first.total() - first["streamlit"]) / 1000}


def _first_bytes(browser: Browser, *, is_new: bool = False, **parameters: object) -> tuple[Counter[str], Traffic]:
    """What has come by part when the head is drawn, and the traffic once all has."""
    page, traffic, _ = opened(browser, browser.address("Attention", 64, **parameters), WHOLE, is_new=is_new)
    traffic.settle(page)
    return traffic.first, traffic


def _link(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds from the navigation, in a browser that was never here, to the picture of Inside."""
    drawn, painted = [], []
    for _ in range(times):
        page, _, wait = opened(browser, browser.address("Inside", SHORT), INSIDE, is_new=True)
        drawn.append(wait)
        painted.append(page.evaluate(FIRST_PAINT))
    return {
        "link_to_inside_ms_in_a_new_browser": statistics.median(drawn),
        "first_paint_of_streamlit_ms_in_a_new_browser": statistics.median(painted),
        "link_to_inside_ms_after_that": statistics.median(map(operator.sub, drawn, painted)),
    }


def _first_paints(browser: Browser, times: int) -> dict[str, float]:
    """Milliseconds from the navigation to the head drawn, of short and long texts in turn."""
    waits: dict[int, list[float]] = {SHORT: [], 256: []}
    for _ in range(times):
        for length, found in waits.items():
            found.append(opened(browser, browser.address("Attention", length), WHOLE)[2])
    medians = {length: statistics.median(found) for length, found in waits.items()}
    return {
        **{f"first_paint_ms_at_{length}": median for length, median in medians.items()},
        "first_paint_ratio_256_to_short": medians[256] / medians[SHORT],
    }
