"""Tests accessibility: axe-core, overlapping labels, keyboard."""

import time
from pathlib import Path

import pytest

from tests.browser.attention_page import until
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

WHAT_IF = [
    f"What_if?question={question}&changes=scale~blocks.0.attn.hook_z~0~~0&beside=changes"
    for question in ("ablation", "traced", "beside")
]

CELL = "Inside?inside=blocks.1.attn.hook_z&cell=3.1.1"  # with a tensor and the arithmetic of a cell open

FIND = """async (rules) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all, none }) => `${id}: ${html.slice(0, 200)} ${[...any, ...all, ...none][0]?.message}`));
}"""


def found(page, rules=ALL):
    """What axe-core calls serious or critical, still after a while."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    deadline = time.monotonic() + TURNING
    while (problems := page.evaluate(FIND, rules)) and time.monotonic() < deadline:
        page.wait_for_timeout(200)
    return problems


def said(page):
    """What the page says to those who can't see it."""
    return page.locator("body").aria_snapshot()


def turn_dark(page, wait_ready):
    light = page.get_by_test_id("stApp").evaluate("(app) => getComputedStyle(app).backgroundColor")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "(light) => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor !== light",
        arg=light,
    )
    wait_ready(page)


TYPED = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
WITH_PROMPT = ["", "Attention?derivation=open", "Masks", "Positions", WHAT_IF[0]]
PATHS = [*WITH_PROMPT, "Inside", CELL, *WHAT_IF[1:], "Learn", "Train"]
"""Every page and what can be open on it; the first five are given a prompt that is markup."""
ASKED_OUTSIDE = """() => performance.getEntriesByType("resource").map(({ name }) => name)
  .filter((name) => !/^(data|blob):|^http:\\/\\/127\\.0\\.0\\.1/.test(name))"""


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_serious_in_light_or_dark_and_a_phone_is_wide_enough(visit, wait_ready, path):
    sign = "&" if "?" in path else "?"
    page = visit(f"{path}{sign}prompt={TYPED}&text=,%20my%20love&scope=all" if path in WITH_PROMPT else path)
    if path in WITH_PROMPT:
        expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(TYPED)
        assert page.get_by_test_id("stMain").locator("script, img[src=x]").count() == 0
    if not path:  # with a branch compared, there is more to be found
        page.get_by_test_id("live-text-token").last.click()
        page.get_by_test_id("live-text-candidates").get_by_role("button").nth(4).click()
        page.get_by_role("button", name="Compare").first.click()
        page.get_by_test_id("live-text-compared").wait_for()
        page.get_by_test_id("stMain").get_by_role("button", name="Sampling").click()
    # All at once: one that opens moves those below it, and each would be waited for until it stands still.
    page.locator("summary").evaluate_all("(all) => all.forEach((drawer) => drawer.click())")
    # What is folded is made once it is open: an open drawer that shows its name alone is still to be filled.
    page.wait_for_function("""() => [...document.querySelectorAll("[data-testid=stExpander] details[open]")].every(
      (drawer) => drawer.innerText.length > drawer.querySelector("summary").innerText.length)""")
    wait_ready(page)
    if path == CELL:  # axe measures it only where something stands beside it
        drawers = page.get_by_test_id("inside").locator("summary").all()
        assert drawers and all(drawer.bounding_box()["height"] >= 24 for drawer in drawers)
    if path in ("Masks", "Positions"):
        until(page, lambda: page.locator(".js-plotly-plot").evaluate_all(CRAMPED) == [])
    assert found(page) == []
    light = said(page)
    turn_dark(page, wait_ready)
    assert found(page, OF_COLOUR) == []
    until(page, lambda: said(page) == light)  # and so the other rules hold, too
    page.set_viewport_size({"width": 420, "height": 900})
    for box in ("document.scrollingElement", "document.querySelector('[data-testid=stMain]')"):
        page.wait_for_function(f"{box}.scrollWidth <= {box}.clientWidth")
    assert page.evaluate(ASKED_OUTSIDE) == []
    if path == "Positions":
        the_keyboard_passes_by_a_sidebar_that_is_closed(page)


def the_keyboard_passes_by_a_sidebar_that_is_closed(page):
    page.get_by_role("heading", level=1).click()  # Tab goes on from there
    in_sidebar = "document.activeElement.closest('[data-testid=stSidebar]') !== null"

    def reached():
        page.keyboard.press("Tab")
        return page.evaluate(in_sidebar)

    assert not any(reached() for _ in range(12))
    page.get_by_role("button", name="Expand sidebar").click()
    expect(page.get_by_role("link", name="Masks")).to_be_visible()
    page.get_by_role("link", name="Masks").focus()
    assert page.evaluate(in_sidebar) and reached()


def test_axe_finds_nothing_serious_in_what_opens_over_the_page(visit, wait_ready):
    page = visit()
    light = {}
    for dark in (False, True):
        if dark:
            turn_dark(page, wait_ready)
        for name in ("About", "Share"):
            page.get_by_role("button", name=name).click()
            page.get_by_test_id("stPopoverBody").wait_for()
            wait_ready(page)
            if name == "Share":  # until it has come, the link's place is held by blanks
                expect(page.get_by_test_id("stPopoverBody").locator("code").first).to_contain_text("?model=")
            assert found(page, OF_COLOUR if dark else ALL) == []
            until(page, lambda name=name: light.setdefault(name, said(page)) == said(page))
            page.keyboard.press("Escape")
            page.get_by_test_id("stPopoverBody").wait_for(state="detached")
