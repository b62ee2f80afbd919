"""Tests the guide in a browser, on the app as it is shipped: the tour, the glossary, presentation mode."""

import re
import time
from itertools import pairwise

import pytest

from tests.browser.address_bar import address, come_to
from tests.browser.attention_page import menu_button, until
from tests.browser.older_browser import OLDER_THAN_STREAMLIT
from tests.browser.test_accessibility import found

expect = pytest.importorskip("playwright.sync_api").expect

STATE = """() => {
  const { start } = headsupGuide;
  start.look();
  const rects = (elements) => elements.filter(Boolean).map((each) => each.getBoundingClientRect());
  const [card, subject] = rects([start.parts.card, start.target]);
  const menus = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
    .flatMap(({ shadowRoot }) => [...shadowRoot.querySelectorAll(".shell-menu")]);
  const overlaps = (other) => Math.min(card.right, other.right) - Math.max(card.left, other.left) > 1
    && Math.min(card.bottom, other.bottom) - Math.max(card.top, other.top) > 1;
  return {
    places: [card, subject].map((rect) => rect && [rect.left, rect.top, rect.right, rect.bottom].map(Math.round)),
    covers: rects([start.target, ...menus]).filter(overlaps).length,
    isOutside: card.left < -1 || card.top < -1 || card.right > innerWidth + 1 || card.bottom > innerHeight + 1,
    isSeen: !subject || (subject.bottom > 0 && subject.top < innerHeight),
  };
}"""
"""Of the tour's card, laid anew: how much it covers of what it must not, and whether that can be seen."""
CLEAR = {"covers": 0, "isOutside": False, "isSeen": True}
CHANGED = "() => headsupGuide.start.changed.codes"
IS_DONE = "([isDone, title]) => headsupGuide.start.isDone === isDone && headsupGuide.start.record.title === title"

TERM = """(name) => {
  for (const { term, range, block } of headsupGuide.underlines.first.values()) {
    if (term.name !== name) continue;
    block.scrollIntoView({ block: "nearest" });
    const live = document.createRange();
    live.setStart(range.startContainer, range.startOffset);
    live.setEnd(range.endContainer, range.endOffset);
    const { left, top, width, height } = live.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  }
  return null;
}"""
"""Where a term is underlined on the page, in pixels; it is scrolled to."""
IN_SIGHT = """() => [...headsupGuide.underlines.first.values()].find(({ block }) => {
  const { top, bottom } = block.getBoundingClientRect();
  return top > innerHeight / 2 && bottom < innerHeight;
}).term.name"""
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
  const nodes = new Set(before.map(({ startContainer }) => startContainer).filter((node) => node.isConnected));
  for (const node of nodes) node.data = "Something else.";
  await Promise.resolve();  // no frame has been drawn since
  return [...highlight].filter((range) => nodes.has(range.startContainer)).map(String);
}"""
"""Puts another text in the place of every one that has an underlined term; returns what stays underlined of it."""

SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"
TOPS = "(all) => all.map((each) => each.getBoundingClientRect().top)"


@pytest.fixture
def visit(app_url, new_page, wait_ready):
    """`visit(path="", page=None, **options)`, as `conftest.visit`, of the app as it is shipped."""

    def open_page(path="", page=None, **options):
        if page:
            come_to(page, f"/{path}")
        else:
            page = new_page(**options)
            page.goto(f"{app_url}/{path}")
        page.get_by_role("heading", level=1).wait_for()
        wait_ready(page)
        page.wait_for_function("() => globalThis.headsupGuide", polling=100)
        return page

    return open_page


def choose_in_menu(page, name, key=None):
    """Choose what the shell's menu has, by mouse or by a key."""
    for button in (menu_button(page), page.get_by_role("group", name="Menu").get_by_role("button", name=name)):
        button.press(key) if key else button.click()


class Tour:
    """The tour on a page; after each step it lies still, covers nothing of what it is about, and is in the window."""

    def __init__(self, page):
        self.page, self.card, self.title = page, page.get_by_test_id("start"), ""
        self.card.wait_for()

    def look(self, is_done=False):
        self.title = self.card.get_by_role("heading").inner_text()
        self.page.wait_for_function(IS_DONE, arg=[is_done, self.title], polling=100)
        deadline, before = time.monotonic() + 60, None
        while (state := self.page.evaluate(STATE)) != before or state | CLEAR != state:
            assert time.monotonic() < deadline, (self.title, state)
            before = state
            self.page.wait_for_timeout(100)

    def button(self, name):
        return self.card.get_by_role("button", name=name)

    def go_on(self, title):
        self.button("Next").click()
        self.card.get_by_role("heading", name=title).wait_for()
        self.look()


def test_the_tour_is_offered_once_gone_through_and_covers_nothing_that_it_is_about(visit, wait_ready):
    page = visit(width=1280, height=720)
    offer = page.get_by_role("button", name="New here? Take the tour")
    offer.wait_for()
    assert page.get_by_test_id("start").is_hidden()
    page.get_by_role("button", name="No tour").click()
    offer.wait_for(state="hidden")
    expect(menu_button(page)).to_be_focused()

    choose_in_menu(page, "Tour")
    tour = Tour(page)
    tour.look()
    page.get_by_role("button", name="Generate", exact=True).click()
    tour.look(is_done=True)
    written = page.get_by_test_id("live-text-token").and_(page.locator(".written"))
    assert "garden" in written.first.inner_text(), "where the ball is in the story that is told there"
    page.get_by_text(re.compile("^2 tokens written, and the text has ended.")).wait_for()
    tour.go_on("Attention")
    written.first.click()
    tour.look(is_done=True)
    tour.go_on("Ablate a head")
    writing = page.get_by_test_id("live-text")
    layer, head = (writing.get_by_label(dial, exact=True).input_value().split()[-1] for dial in ("Layer", "Head"))
    menu_button(page).click()
    tour.look()
    page.locator("summary", has_text="Changes").click()
    page.get_by_text(f"The change: layer {layer}, head {head} ablated.").wait_for()
    tour.look()
    page.get_by_role("button", name="Change this").click()
    tour.look(is_done=True)
    assert page.evaluate(CHANGED) == [f"scale~blocks.{layer}.attn.hook_z~{head}~~0.0"]
    page.get_by_role("region", name="Attention").get_by_text("(ablated: its output is set to zero)").wait_for()
    tour.button("Skip").click()  # what a step has changed is undone however it is left
    until(page, lambda: page.evaluate(CHANGED) == [])
    tour.card.wait_for(state="hidden")
    wait_ready(page)

    come_to(page, "/Learn")
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    choose_in_menu(page, "Tour")  # begun on another page
    tour.card.get_by_role("heading", name="Six steps on Generate").wait_for()
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    tour.button("Next").click()
    page.get_by_role("heading", level=1, name="Generate").wait_for()
    tour.look(is_done=True)  # the text has ended: there is nothing to press
    page.goto(address(page).partition("?")[0])
    menu_button(page).wait_for()
    wait_ready(page)
    assert offer.is_hidden()


def test_the_tour_is_gone_through_by_keyboard_on_a_phone(visit, wait_ready):
    page = visit("?model=shakespeare&seed=3", width=420, height=860)
    choose_in_menu(page, "Tour", key="Enter")
    tour = Tour(page)
    card = tour.card
    until(page, lambda: card.evaluate("(card) => card.getRootNode().activeElement === card"))
    assert card.get_attribute("role") == "dialog" and card.get_attribute("aria-modal") is None
    page.get_by_label("Number of tokens").fill("30")  # the page can be used beside the card
    card.focus()

    def take(*keys):
        tour.button("Take me there").press("Enter")
        for key in keys:
            page.keyboard.press(key)

    def go_on(title):
        page.keyboard.press("Enter")  # "Next" has had the focus since the step was done
        card.get_by_role("heading", name=title).wait_for()
        tour.look()

    take("Enter")
    tour.look(is_done=True)
    page.get_by_text(re.compile("tokens written")).wait_for()
    go_on("Attention")
    take("ArrowLeft")
    tour.look(is_done=True)
    go_on("Ablate a head")
    take("Enter")
    for control in (page.locator("summary", has_text="Changes"), page.get_by_role("button", name="Change this")):
        expect(control).to_be_focused()
        tour.look()
        page.keyboard.press("Enter")
    tour.look(is_done=True)
    assert len(page.evaluate(CHANGED)) == 1
    go_on("Another head")
    until(page, lambda: page.evaluate(CHANGED) == [])
    wait_ready(page)
    layers = page.get_by_test_id("live-text").get_by_label("Layer", exact=True)
    is_first = layers.evaluate("(dial) => dial.selectedIndex === 0")
    take("ArrowDown" if is_first else "ArrowUp")
    tour.look(is_done=True)
    go_on("Follow a logit")
    take("Enter")
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    tour.look(is_done=True)
    wait_ready(page)
    go_on("What next?")
    tour.button("Learn").press("Enter")
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    card.wait_for(state="hidden")


def point_at(page, name):
    """Rest with the mouse on a term."""
    page.wait_for_function(f"({TERM})", arg=name, polling=100)
    page.mouse.move(5, 5)
    place = page.evaluate(TERM, name)
    page.mouse.move(place["x"], place["y"])


def reach_by_tab(page, control):
    """Give a control the focus as the keyboard does."""
    control.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")


def test_a_term_is_underlined_once_in_running_text_explained_over_nothing_that_is_used_and_listed(visit, wait_ready):
    page = visit("?model=shakespeare&seed=3")
    gloss, panel, main = (page.get_by_test_id(name) for name in ("gloss", "terms", "stMain"))
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

    # No card opens over what is pressed, typed into or chosen from.
    def stays_away():
        page.wait_for_timeout(800)  # longer than anything has to be pointed at, or to have the focus
        return gloss.is_hidden()

    main.get_by_label("Number of tokens").click()
    assert stays_away()
    page.keyboard.press("Tab")  # what was typed into is left, of which the page is told before the list is open
    wait_ready(page)
    menu_button(page).click()
    place = page.evaluate(TERM, page.evaluate(IN_SIGHT))
    page.mouse.move(place["x"], place["y"])
    assert stays_away()
    page.keyboard.press("Escape")

    reach_by_tab(page, page.get_by_role("slider", name="Temperature"))
    gloss.get_by_text("Temperature", exact=True).wait_for()
    assert page.evaluate(COVERED) == 0
    page.keyboard.press("ArrowRight")
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

    for path in ("Attention", "Inside", "Learn", ""):
        visit(f"{path}?model=shakespeare&seed=3", page)
        page.wait_for_function("() => CSS.highlights.get('headsup-term').size", polling=100)
        underlined = page.evaluate(UNDERLINED)
        assert [each for each in underlined if each["within"]] == []
        assert all(each["isSentence"] for each in underlined), underlined
        assert len({each["term"] for each in underlined}) == len(underlined)
    assert page.evaluate(REPLACED) == []  # no underline outlasts its word


def test_a_page_is_presented_in_large_type_and_gone_through_by_a_clicker(visit, wait_ready):
    page = visit("What_if?question=ladder", width=420, height=720)
    page.get_by_role("button", name="Choose this rung").nth(6).wait_for()
    wait_ready(page)
    assert found(page) == []
    page.set_viewport_size({"width": 1280, "height": 720})
    page.keyboard.press("p")
    bar = page.get_by_test_id("presenting")
    bar.wait_for()
    wait_ready(page)
    assert page.get_by_test_id("stTopNavLink").first.is_hidden() and page.get_by_label("Model").first.is_hidden()
    assert page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)") > 19
    page.keyboard.press("l")
    page.mouse.move(300, 200)
    until(page, lambda: 270 < page.get_by_test_id("pointer").bounding_box()["x"] < 300)

    # It stops at every rung of the ladder, several of which may stand side by side.
    rungs, reached = page.locator(".rung"), []
    while 7 not in reached and len(reached) < 8:
        page.keyboard.press("PageDown")
        reached += [rung for rung, top in enumerate(rungs.evaluate_all(TOPS)) if abs(top - 12) < 2]
        assert reached, "the first stop is the first rung"
    assert reached == list(range(8))

    # Of views that are taller than the window nothing is left out, up to the next page.
    visit("What_if?model=shakespeare&question=comparison", page)
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")

    def turned(key):
        page.keyboard.press(key)
        return page.evaluate(SCROLLED)

    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")
    first, second = turned("PageDown"), turned("PageDown")
    assert turned("PageUp") == first < second
    places = [0, first]
    while (now := turned("PageDown")) > places[-1]:
        places.append(now)
    assert len(places) > 2
    for one, next_one in pairwise(places):
        assert 100 < next_one - one <= 720
    page.get_by_role("heading", level=1, name="Train").wait_for()
    wait_ready(page)
    assert bar.is_visible()
    page.keyboard.press("Escape")
    bar.wait_for(state="hidden")
    page.get_by_test_id("stTopNavLink").first.wait_for()
    choose_in_menu(page, "Present")
    bar.wait_for()


def test_the_guide_and_the_instruments_work_in_older_browsers(new_window, app_url, wait_ready):
    page = new_window()
    page.add_init_script(OLDER_THAN_STREAMLIT)
    page.goto(f"{app_url}/?model=shakespeare&seed=3")
    wait_ready(page)
    gloss, tip, token = page.get_by_test_id("gloss"), page.locator(".tip:visible"), page.locator(".strip .token").nth(2)
    page.wait_for_function("() => globalThis.headsupGuide", polling=100)
    point_at(page, "Token")
    gloss.get_by_text("Token", exact=True).wait_for()
    place, box = page.evaluate(TERM, "Token"), gloss.bounding_box()
    assert box["x"] - 10 < place["x"] < box["x"] + box["width"] and abs(place["y"] - box["y"]) < box["height"] + 40
    page.keyboard.press("Escape")
    gloss.wait_for(state="hidden")
    token.hover()
    tip.wait_for()
    token_box, tip_box = token.bounding_box(), tip.bounding_box()
    assert abs(tip_box["x"] - token_box["x"]) < 20 and abs(tip_box["y"] - token_box["y"]) < tip_box["height"] + 40
    page.get_by_role("button", name="Generate", exact=True).click()
    page.locator(".token.written").first.wait_for()
    page.keyboard.press("?")
    page.get_by_test_id("terms").get_by_role("heading", name="Terms on this page").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    page.wait_for_function("() => document.documentElement.dataset.presenting !== undefined", polling=100)
    page.keyboard.press("PageDown")
