"""Tests every page with axe-core, in light, dark, and at a phone's width; and the keyboard on a phone."""

import re
import time
from pathlib import Path

import pytest

from tests.browser.attention_page import open_menu, until
from tests.browser.plotly_figures import CRAMPED

axe = pytest.importorskip("axe_playwright_python")
expect = pytest.importorskip("playwright.sync_api").expect

AXE = Path(axe.__file__).with_name("axe.min.js")
# Beside those that axe has on by default: a button's name must have the words that can be seen on it, and be large
# enough to hit.
ALL = {"rules": {rule: {"enabled": True} for rule in ("label-content-name-mismatch", "target-size")}}
OF_COLOUR = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
TURNING = 20
"""Seconds that charts may take to turn dark, and what has just opened to fade in, on a busy machine."""
FIND = """async ([rules, within]) => {
  const { violations } = await axe.run(document.querySelector(within), { resultTypes: ["violations"], ...rules });
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all, none }) => `${id}: ${html.slice(0, 200)} ${[...any, ...all, ...none][0]?.message}`));
}"""

TYPED = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
VIEWS = {
    "Attention": ["Attention?derivation=open&prompt=" + TYPED],
    "Inside": ["Inside", "Inside?model=shakespeare&inside=blocks.1.attn.hook_z&cell=3.1.1"],
    "Masks": ["Masks?prompt=" + TYPED],
    "Positions": ["Positions?prompt=" + TYPED],
    "What if": [
        f"What_if?model=shakespeare&changes=scale~blocks.0.attn.hook_z~0~~0&prompt={TYPED}&question={question}"
        for question in ("ablation", "patching", "comparison&beside=changes")
    ],
    "Learn": ["Learn"],
}
"""Pages that no other test looks through, and what can be open on each, which is looked at in light and dark in turn,
the last in both. What is typed is markup. A view that is gone to names its model."""
FILLED = """() => [...document.querySelectorAll("[data-testid=stExpander] details[open]")]
  .every((drawer) => drawer.textContent.length > drawer.querySelector("summary").textContent.length)"""
"""Whether what is folded has been made, as it is once it is open."""
BACKGROUND = "(app) => getComputedStyle(app).backgroundColor"
ASKED_OUTSIDE = """() => performance.getEntriesByType("resource").map(({ name }) => name)
  .filter((name) => !/^(data|blob):|^http:\\/\\/127\\.0\\.0\\.1/.test(name))"""


def found(page, rules=ALL, within="html"):
    """What axe-core calls serious or critical, still after a while."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    deadline = time.monotonic() + TURNING
    while (problems := page.evaluate(FIND, [rules, within])) and time.monotonic() < deadline:
        page.wait_for_timeout(200)
    return problems


def turn(page, scheme, wait_ready):
    """To the light or the dark scheme."""
    app = page.get_by_test_id("stApp")
    before = app.evaluate(BACKGROUND)
    page.emulate_media(color_scheme=scheme)
    until(page, lambda: app.evaluate(BACKGROUND) != before)
    wait_ready(page)


def turn_dark(page, wait_ready):
    turn(page, "dark", wait_ready)


def look_through(page, wait_ready, other_scheme):
    """Nothing is wrong with a page on which all is open, in this scheme or another, and a phone is wide enough."""
    # All at once: one that opens moves those below it, and each would be waited for until it stands still.
    page.locator("summary").evaluate_all("(all) => all.forEach((each) => each.parentElement.open || each.click())")
    until(page, lambda: page.evaluate(FILLED))
    wait_ready(page)
    assert found(page) == []
    if other_scheme:
        turn(page, other_scheme, wait_ready)
        assert found(page, OF_COLOUR) == []
    page.set_viewport_size({"width": 420, "height": 900})
    for box in ("document.scrollingElement", "document.querySelector('[data-testid=stMain]')"):
        page.wait_for_function(f"{box}.scrollWidth <= {box}.clientWidth", polling=100)
    assert page.evaluate(ASKED_OUTSIDE) == []


def no_markup_is_made_of_what_was_typed(page):
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(TYPED)
    assert page.get_by_test_id("stMain").locator("script, img[src=x]").count() == 0


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_serious_in_light_or_dark_and_a_phone_is_wide_enough(visit, wait_ready, name):
    page = None
    for number, path in enumerate(VIEWS[name]):
        page = visit(path, page)
        if TYPED in path:
            no_markup_is_made_of_what_was_typed(page)
        other = "light" if number % 2 else "dark"
        look_through(page, wait_ready, other if path == VIEWS[name][-1] else None)
        page.set_viewport_size({"width": 1280, "height": 900})
        if "cell=" in path:  # axe measures it only where something stands beside it
            drawers = page.get_by_test_id("inside").locator("summary").all()
            assert drawers and all(drawer.bounding_box()["height"] >= 24 for drawer in drawers)
        if name in ("Masks", "Positions"):
            until(page, lambda page=page: page.locator(".js-plotly-plot").evaluate_all(CRAMPED) == [])
        if path != VIEWS[name][-1]:
            turn(page, other, wait_ready)
    if name == "Positions":
        the_keyboard_passes_by_a_sidebar_that_is_closed_as_it_is_once_a_page_is_chosen(page)
    if name == "Attention":
        what_opens_over_the_page(page, wait_ready)


def the_keyboard_passes_by_a_sidebar_that_is_closed_as_it_is_once_a_page_is_chosen(page):
    page.set_viewport_size({"width": 420, "height": 900})
    page.get_by_role("heading", level=1).click()  # Tab goes on from there
    in_sidebar = "document.activeElement.closest('[data-testid=stSidebar]') !== null"

    def reached():
        page.keyboard.press("Tab")
        return page.evaluate(in_sidebar)

    assert not any(reached() for _ in range(12))
    page.get_by_role("button", name="Expand sidebar").click()
    link = page.get_by_role("link", name="Masks")
    expect(link).to_be_visible()
    link.focus()
    assert page.evaluate(in_sidebar) and reached()
    link.click()
    page.get_by_role("heading", level=1, name="Masks").wait_for()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def what_opens_over_the_page(page, wait_ready):
    """Looks through the shell's menu, of which all has been opened."""
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(open_menu(page, "Share").get_by_label("Link")).to_have_value(re.compile("model="))
    for scheme in ("light", "dark"):
        turn(page, scheme, wait_ready)
        assert found(page) == [], scheme
