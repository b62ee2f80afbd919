"""Tests the glossary and presentation mode in a browser."""

from itertools import pairwise

import pytest

from tests.browser.attention_page import until
from tests.browser.test_accessibility import found

TERM = """(name) => {
  for (const { term, range, block } of headsupGuide.underlines.first.values()) {
    if (term.name !== name) continue;
    block.scrollIntoView({ block: "center" });
    const live = document.createRange();
    live.setStart(range.startContainer, range.startOffset);
    live.setEnd(range.endContainer, range.endOffset);
    const { left, top, width, height } = live.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  }
  return null;
}"""
"""Where a term is underlined on the page, in pixels."""
COVERED = """() => {
  let focus = document.activeElement;
  while (focus?.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement;
  const [one, other] = [focus, headsupGuide.gloss.element].map((each) => each.getBoundingClientRect());
  const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  return Math.max(0, width) * Math.max(0, Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top));
}"""
"""How much of what has the focus the glossary's card covers, in pixels."""
UNDERLINED = """() => [...CSS.highlights.get("headsup-term")].map(({ startContainer, startOffset, endOffset }) => {
  const within = "button, a, label, summary, legend, select, option, code, h1, h2, h3, table, .strip, .token, " +
    "[role=option], [role=tab], [role=radio], [data-testid=stWidgetLabel], [data-testid=stMetric]";
  const text = startContainer.data.slice(startOffset, endOffset);
  const block = startContainer.parentElement.closest("p, li, dd, figcaption");
  const [mark] = headsupGuide.underlines.of(block)
    .filter(({ range }) => range.startContainer === startContainer && range.startOffset === startOffset);
  return { text, term: mark?.term.name, within: startContainer.parentElement.closest(within)?.outerHTML.slice(0, 80),
    isSentence: /[.?]/.test(block?.textContent ?? "") };
})"""
"""Every underlined term: its words, and what it must not stand within."""
REPLACED = """async () => {
  const highlight = CSS.highlights.get("headsup-term"), before = [...highlight];
  const nodes = new Set(before.map(({ startContainer }) => startContainer));
  for (const node of nodes) node.data = "An epic, one c, and a softmax.";
  await Promise.resolve();  // no frame has been drawn since
  return [...highlight].filter((range) => nodes.has(range.startContainer)).map(String);
}"""
"""Puts another text in the place of every one that has an underlined term; returns what stays underlined of it."""
OUTSIDE = """() => [...headsupGuide.start.parts.card.querySelectorAll("*")].some((each) => {
  const { left, right, top, bottom } = each.getBoundingClientRect();
  return each.checkVisibility() && (left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1);
})"""
"""Whether anything of the start's card is outside of the window."""
LEAST_TYPE = """() => Math.min(...[...document.querySelectorAll("[data-testid=stMain] .js-plotly-plot text")]
  .filter((each) => each.textContent.trim() && each.checkVisibility())
  .map((each) => parseFloat(getComputedStyle(each).fontSize)))"""
SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"
CUT_METRICS = """() => [...document.querySelectorAll("[data-testid=stMetricValue] *")]
  .filter((each) => each.scrollWidth > each.clientWidth && each.clientWidth).map((each) => each.textContent)"""
NAMES_OF_BARS = """() => [...document.querySelectorAll(".js-plotly-plot .ytick text")]
  .map((each) => each.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])"""
MIDDLE = """(element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x + width / 2, y + height / 2].map(Math.round);
}"""
RUNGS = "() => [...document.querySelectorAll('[class*=st-key-view_]')].map((each) => each.getBoundingClientRect().top)"


def point_at(page, name):
    """Rest with the mouse on a term."""
    page.wait_for_function(f"({TERM})", arg=name)
    page.mouse.move(5, 5)
    place = page.evaluate(TERM, name)
    page.mouse.move(place["x"], place["y"])


def reach_by_tab(page, control):
    """Give a control the focus as the keyboard does."""
    control.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")


def test_a_term_is_explained_where_it_stands_but_over_nothing_that_is_used_and_all_are_listed(visit):
    page = visit("?seed=3")
    page.get_by_role("button", name="Tour", exact=True).click()
    page.get_by_test_id("start").wait_for()
    page.mouse.move(800, 500)
    page.mouse.wheel(0, 3_000)  # so that what the tour's card points at is above the window
    page.wait_for_function("() => headsupGuide.start.target.getBoundingClientRect().bottom < 0")
    page.wait_for_timeout(300)  # longer than between two looks at where that is
    until(page, lambda: not page.evaluate(OUTSIDE))
    page.keyboard.press("Escape")
    page.get_by_test_id("start").wait_for(state="hidden")
    page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")

    gloss, panel = page.get_by_test_id("gloss"), page.get_by_test_id("terms")
    point_at(page, "Token")
    gloss.get_by_text("Token", exact=True).wait_for()
    page.keyboard.press("Escape")
    gloss.wait_for(state="hidden")
    point_at(page, "Token")
    gloss.get_by_text("Token", exact=True).wait_for()
    # A press on it is one on what it lies over, and closes it.
    page.evaluate(
        "document.addEventListener('pointerdown', ({ target }) => (window.pressed = target.dataset.testid), true)"
    )
    box = gloss.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 8)
    gloss.wait_for(state="hidden")
    assert page.evaluate("window.pressed") != "guide-overlay"

    reach_by_tab(page, page.get_by_role("slider", name="Temperature"))
    gloss.get_by_text("Temperature", exact=True).wait_for()
    assert page.evaluate(COVERED) == 0
    page.keyboard.press("ArrowRight")
    gloss.wait_for(state="hidden")

    # No card opens over what is pressed, typed into or chosen from.
    def stays_away():
        page.wait_for_timeout(800)  # longer than anything has to be pointed at, or to have the focus
        return gloss.is_hidden()

    main = page.get_by_test_id("stMain")
    for pressed in (
        main.get_by_label("Number of tokens"),
        main.get_by_role("slider", name="Temperature"),
        main.get_by_role("textbox", name="Prompt"),
    ):
        pressed.click()
        assert stays_away()
    page.keyboard.type("ab")
    assert stays_away()
    main.get_by_role("combobox").first.click()
    page.get_by_role("listbox").first.wait_for()
    assert stays_away()
    place = page.wait_for_function(f"({TERM})", arg="Transformer").json_value()
    page.mouse.move(place["x"], place["y"])
    assert stays_away()
    page.keyboard.press("Escape")

    reach_by_tab(page, main.get_by_role("slider", name="Temperature"))
    gloss.wait_for()
    assert page.evaluate(COVERED) == 0
    page.keyboard.press("Tab")
    gloss.wait_for(state="hidden")

    page.keyboard.press("?")
    panel.get_by_role("heading", name="Terms on this page").wait_for()
    assert {"Token", "Temperature", "Logit"} <= set(panel.locator(".name").all_inner_texts())
    page.keyboard.type("rotary")
    panel.get_by_text("Rotary positions", exact=True).wait_for()
    assert panel.get_by_text("Temperature", exact=True).count() == 0
    panel.get_by_role("button", name="See it on Positions").first.press("Enter")
    page.get_by_role("heading", level=1, name="Positions").wait_for()
    assert panel.is_hidden()


def test_terms_are_underlined_once_and_in_running_text_alone(visit):
    page = None
    for path in ("", "Attention", "Inside", "Learn"):
        page = visit(f"{path}?seed=3", page)
        page.wait_for_function("() => CSS.highlights.get('headsup-term').size")
        underlined = page.evaluate(UNDERLINED)
        assert [each for each in underlined if each["within"]] == []
        assert all(each["isSentence"] for each in underlined), underlined
        assert len({each["term"] for each in underlined}) == len(underlined)
        assert page.evaluate(REPLACED) == []  # no underline outlasts its word
        if not path:
            page.wait_for_function(
                "(name) => headsupGuide.underlines.shown.some((one) => one.name === name)", arg="Softmax"
            )


def present(page, wait_ready):
    page.wait_for_function(f"() => ({LEAST_TYPE})() < Infinity")
    small = page.evaluate(LEAST_TYPE)
    page.keyboard.press("p")
    page.wait_for_function(f"(small) => ({LEAST_TYPE})() > 1.3 * small", arg=small)
    wait_ready(page)


def test_a_page_is_presented_in_large_type_and_gone_through_by_a_clicker(visit, wait_ready):
    page = visit("What_if?model=left&question=beside", width=1280, height=720)
    present(page, wait_ready)
    bar = page.get_by_test_id("presenting")
    bar.wait_for()
    assert page.get_by_test_id("stTopNavLink").first.is_hidden() and page.get_by_label("Model").first.is_hidden()
    assert page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)") > 19
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")

    page.keyboard.press("l")
    page.mouse.move(300, 200)
    until(page, lambda: page.get_by_test_id("pointer").evaluate(MIDDLE) == [300, 200])
    until(page, lambda: page.evaluate(CUT_METRICS) == [])

    def turned(key):
        page.keyboard.press(key)
        return page.evaluate(SCROLLED)

    first, second = turned("PageDown"), turned("PageDown")
    assert turned("PageUp") == first < second
    places = [0, first]
    while (now := turned("PageDown")) > places[-1]:  # from view to view, until the next page is asked for
        places.append(now)
    assert len(places) > 2
    for one, next_one in pairwise(places):  # none is where the last one was, and nothing in between is left out
        assert 100 < next_one - one <= 720
    page.get_by_role("heading", level=1, name="Train").wait_for()
    wait_ready(page)
    assert bar.is_visible()
    page.keyboard.press("Escape")
    bar.wait_for(state="hidden")
    page.get_by_test_id("stTopNavLink").first.wait_for()
    page.get_by_role("button", name="Present", exact=True).click()
    bar.wait_for()


def test_a_clicker_stops_at_the_figure_of_the_ladder_and_at_every_rung(app_url, new_page, wait_ready):
    page = new_page(width=1280, height=720)
    page.goto(f"{app_url}/What_if?question=ladder")
    wait_ready(page)
    page.wait_for_function("() => globalThis.headsupGuide")
    page.set_viewport_size({"width": 420, "height": 720})
    page.get_by_role("button", name="Choose this rung").nth(6).wait_for()
    wait_ready(page)
    assert found(page) == []
    page.set_viewport_size({"width": 1280, "height": 720})
    present(page, wait_ready)
    for (_, bottom), (top, _) in pairwise(page.evaluate(NAMES_OF_BARS)):
        assert bottom <= top
    page.keyboard.press("PageDown")
    assert page.locator(".js-plotly-plot").bounding_box()["y"] == pytest.approx(12, abs=2)
    reached = []
    for _ in page.evaluate(RUNGS):
        page.keyboard.press("PageDown")
        reached += [rung for rung, top in enumerate(page.evaluate(RUNGS)) if abs(top - 12) < 2]
    assert reached == list(range(8))
