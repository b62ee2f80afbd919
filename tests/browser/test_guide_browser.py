"""The start, the glossary in the page, and presentation mode, in a real browser."""

import re
from itertools import pairwise

import pytest

from tests.browser.address import address
from tests.browser.servers import ROOT

TERM = """(name) => {
  for (const [block, marks] of headsupGuide.marks.blocks) for (const { term, range } of marks) {
    if (term.name !== name || !block.checkVisibility()) continue;
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
RUNGS = "() => [...document.querySelectorAll('[class*=st-key-view_]')].map((each) => each.getBoundingClientRect().top)"


@pytest.fixture(scope="module")
def server(serve, tiny_folder):
    """An app that begins a first visit with the start, as other test servers don't."""
    with serve(ROOT / "app.py", env={"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_START": ""}) as server:
        yield server


@pytest.fixture
def visit(server, new_page, wait_ready):
    """`visit(path, **options)`: a page that has come to rest."""

    def open_page(path="", **options):
        page = new_page(**options)
        page.goto(f"{server.url}/{path}")
        page.get_by_role("heading", level=1).wait_for(timeout=60_000)
        wait_ready(page, timeout=90)
        page.wait_for_function("() => globalThis.headsupGuide")  # whose script comes after the page is at rest
        return page

    return open_page


@pytest.mark.parametrize("width", [1280, 420])
def test_the_start_is_gone_through_by_keyboard_and_never_shown_again(visit, wait_ready, width):
    page = visit(width=width)
    card = page.get_by_test_id("start")
    card.wait_for()
    assert card.evaluate("(card) => card.getRootNode().activeElement === card")
    page.get_by_label("Number of tokens").fill("30")  # the page can be used beside the card
    card.focus()
    assert card.get_attribute("role") == "dialog" and card.get_attribute("aria-modal") is None

    def is_done(number):
        page.wait_for_function(
            "(number) => headsupGuide.start.step === number - 1 && headsupGuide.start.isDone", arg=number
        )
        assert not page.evaluate(OUTSIDE)

    def go_there():
        card.get_by_role("button", name="Take me there").press("Enter")

    def go_on(title):
        page.keyboard.press("Enter")  # "Next" has had the focus since the step was done
        card.get_by_role("heading", name=title).wait_for()

    go_there()
    page.keyboard.press("Enter")
    is_done(1)
    page.get_by_text(re.compile("tokens written")).wait_for(timeout=60_000)
    go_on("Where did it look?")
    go_there()
    page.keyboard.press("ArrowLeft")
    is_done(2)
    go_on("Another head")
    go_there()
    page.keyboard.press("ArrowUp")
    page.wait_for_timeout(400)  # longer than between two looks at what is done; of two layers, one of the keys leads on
    page.keyboard.press("ArrowDown")
    is_done(3)
    go_on("Take one away")
    if width < 640:  # the sidebar is closed, and then in the way
        go_there()
        page.keyboard.press("Enter")
        page.wait_for_function("() => headsupGuide.start.target?.closest('.st-key-change_form')")
    go_there()
    page.keyboard.press("Enter")
    page.wait_for_function("() => headsupGuide.start.target?.closest('.st-key-change_this')")
    wait_ready(page)
    go_there()
    page.keyboard.press("Enter")
    is_done(4)
    go_on("Follow one number")
    if width < 640:
        go_there()
        page.keyboard.press("Enter")
        page.wait_for_function("() => headsupGuide.start.target?.dataset.part === 'inside'")
    go_there()
    page.keyboard.press("Enter")
    is_done(5)
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    wait_ready(page, timeout=60)
    go_on("What next")
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")

    page.goto(address(page).partition("/Inside")[0])
    wait_ready(page, timeout=60)
    assert card.is_hidden()


def test_the_start_leaves_links_alone_and_is_there_for_who_asks(visit, wait_ready):
    page = visit("?seed=3")
    card = page.get_by_test_id("start")
    assert card.is_hidden()
    page.get_by_role("button", name="Tour").click()
    card.wait_for()
    page.mouse.move(800, 500)
    page.mouse.wheel(0, 3_000)  # so that what it points at is above the window
    page.wait_for_function("() => headsupGuide.start.target.getBoundingClientRect().bottom < 0")
    page.wait_for_timeout(300)  # longer than between two looks at where that is
    assert not page.evaluate(OUTSIDE)
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")


def test_a_term_is_explained_where_it_stands_and_all_are_listed(visit):
    page = visit("?model=left")
    gloss, panel = page.get_by_test_id("gloss"), page.get_by_test_id("terms")
    for name in ("Token", "Temperature"):  # in a caption of the page's, and on a dial of the instrument's
        page.wait_for_function(f"({TERM})", arg=name)
        page.mouse.move(5, 5)
        place = page.evaluate(TERM, name)
        page.mouse.move(place["x"], place["y"])
        gloss.get_by_text(name, exact=True).wait_for()
        page.keyboard.press("Escape")
        gloss.wait_for(state="hidden")
    page.get_by_role("slider", name="Temperature").focus()
    page.keyboard.press("ArrowRight")  # so that the focus is one that can be seen
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    gloss.get_by_text("Temperature", exact=True).wait_for()

    page.keyboard.press("?")
    panel.get_by_role("heading", name="Terms on this page").wait_for()
    assert {"Token", "Temperature", "Logit"} <= set(panel.locator(".name").all_inner_texts())
    page.keyboard.type("rotary")
    panel.get_by_text("Rotary positions", exact=True).wait_for()
    assert panel.get_by_text("Temperature", exact=True).count() == 0
    panel.get_by_role("button", name="See it on Positions").first.press("Enter")
    page.get_by_role("heading", level=1, name="Positions").wait_for(timeout=60_000)
    assert panel.is_hidden()


def present(page, wait_ready):
    page.wait_for_function(f"() => ({LEAST_TYPE})() < Infinity")
    small = page.evaluate(LEAST_TYPE)
    page.keyboard.press("p")
    page.wait_for_function(f"(small) => ({LEAST_TYPE})() > 1.3 * small", arg=small, timeout=60_000)
    wait_ready(page, timeout=60)


def test_a_page_is_presented_in_large_type_and_gone_through_by_a_clicker(visit, wait_ready):
    page = visit("Masks?model=left", width=1280, height=720)
    present(page, wait_ready)
    bar = page.get_by_test_id("presenting")
    bar.wait_for()
    assert page.get_by_test_id("stTopNavLink").first.is_hidden() and page.get_by_label("Model").first.is_hidden()
    assert page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)") > 19
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")

    page.keyboard.press("l")
    page.mouse.move(300, 200)
    box = page.get_by_test_id("pointer").bounding_box()
    assert abs(box["x"] + box["width"] / 2 - 300) < 2 and abs(box["y"] + box["height"] / 2 - 200) < 2

    assert page.evaluate(CUT_METRICS) == []

    def turned(key):
        page.keyboard.press(key)
        return page.evaluate(SCROLLED)

    first, second = turned("PageDown"), turned("PageDown")
    assert turned("PageUp") == first < second
    places = [0, first]
    while (now := turned("PageDown")) > places[-1]:  # from view to view, until the next page is asked for
        places.append(now)
    assert len(places) > 4
    for one, next_one in pairwise(places):  # none is where the last one was, and nothing in between is left out
        assert 100 < next_one - one <= 720
    page.get_by_role("heading", level=1, name="Positions").wait_for(timeout=60_000)
    wait_ready(page, timeout=60)
    assert bar.is_visible()
    page.keyboard.press("Escape")
    bar.wait_for(state="hidden")
    page.get_by_test_id("stTopNavLink").first.wait_for()


def test_a_clicker_stops_at_the_figure_of_the_ladder_and_at_every_rung(app_url, new_page, wait_ready):
    page = new_page(width=1280, height=720)
    page.goto(f"{app_url}/What_if?question=ladder")
    wait_ready(page, timeout=90)
    page.wait_for_function("() => globalThis.headsupGuide")
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
