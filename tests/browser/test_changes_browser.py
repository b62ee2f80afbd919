"""Tests changing a model in a browser: menu, keyboard, sliders, narrow screen."""

import re

import pytest

from tests.browser.attention_page import (
    all_equal,
    badges,
    compared,
    drag,
    expect,
    head,
    instrument,
    panel,
    parameters,
    part,
    place_of,
    shown,
    until,
    until_drawn,
    until_shown,
    visits,
)
from tests.browser.test_accessibility import OF_COLOUR, turn_dark
from tests.browser.test_accessibility import found as found_by_axe

SILENCED = "scale~blocks.0.attn.hook_z~1~~0.0"


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


def said(page):
    return page.get_by_test_id("stMain").get_by_text("Changed:")


def changes(page):
    return parameters(page).get("changes", "")


def equal_or_set(page):
    """What is said of each step by hand; none may be a contradiction."""
    found = compared(page)
    assert all(badge.startswith(("recomputed, equal", "set by: ")) for badge in found), found
    return found


def test_a_head_is_ablated_from_its_menu_by_keyboard_and_brought_back(visit, wait_ready):
    page, _ = visit("prompt=To be, or not&layer=0&head=0")
    all_equal(page)
    head(page, 0, 1).focus()
    page.keyboard.press("Shift+F10")
    drawer = part(page, "changing")
    expect(drawer.get_by_role("combobox", name="What")).to_be_focused()
    assert shown(page)[:2] == (0, 1)
    drawer.get_by_role("button", name="Zero ablation").press("Enter")
    expect(said(page)).to_have_text(re.compile("Changed: layer 0, head 1 ablated."))
    expect(drawer.get_by_text("layer 0, head 1 ablated")).to_be_visible()  # the drawer is still open
    expect(head(page, 0, 1)).to_have_attribute("aria-label", "Layer 0, head 1, changed")
    until(page, lambda: changes(page) == SILENCED)
    until(page, lambda: "set by: layer 0, head 1 ablated" in badges(page))
    assert equal_or_set(page).count("set by: layer 0, head 1 ablated") == 1
    page.get_by_role("button", name="1 change").click()
    expect(page.get_by_role("button", name="Change this")).to_be_visible()
    page.get_by_role("button", name="Menu of this change").press("Enter")
    page.get_by_role("button", name="Its opposite").wait_for()
    wait_ready(page)
    assert found_by_axe(page) == []
    page.keyboard.press("Escape")
    turn_dark(page, wait_ready)
    assert found_by_axe(page, OF_COLOUR) == []
    drawer.get_by_role("button", name="Take back: layer 0, head 1 ablated").press("Enter")
    expect(said(page)).to_have_count(0)
    until(page, lambda: not changes(page))
    until(page, lambda: not [badge for badge in badges(page) if badge.startswith("set by")])
    all_equal(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Changes").click()
    page.get_by_role("button", name="Undo").click()
    expect(said(page)).to_have_count(1)


def weights_set(page, query=5):
    """By key, what a query of layer 1, head 0 gives it by hand."""
    found = re.findall(rf"weigh~blocks\.1\.attn\.hook_pattern~0~{query}~(\d+)~([\d.]+)~1", changes(page))
    return {int(key): float(weight) for key, weight in found}


def test_a_dial_s_last_word_counts_and_a_weight_is_set_and_carried_to_another_key(visit):
    page, _ = visit("prompt=To be, or not&layer=1&head=0")
    part(page, "change").click()
    drawer = part(page, "changing")
    for _ in range(7):
        drawer.get_by_label("Scale").press("ArrowLeft")
    until(page, lambda: changes(page) == "scale~blocks.1.attn.hook_z~0~~0.3")
    until(page, lambda: any("set by: layer 1, head 0 × 0.3" in badge for badge in badges(page)))
    place = shown(page)
    weight = drawer.get_by_label(re.compile("^Weight that"))
    weight.press("Home")  # the heaviest key of its row has no weight any more
    until(page, lambda: f"weigh~blocks.1.attn.hook_pattern~0~{place[2]}~{place[3]}~0.0~1" in changes(page))
    until_shown(page, place)
    until(page, lambda: parameters(page)["key"] == str(place[3]))
    expect(instrument(page)).to_have_attribute("data-whole", "true")
    assert any("set by: layer 1, head 0 × 0.3" in badge for badge in equal_or_set(page))
    expect(part(page, "readout")).to_have_text(re.compile("weight 0"))

    # A weight is carried to another key by mouse and by keyboard.
    page.mouse.click(*place_of(page, "weights", 5, 2))
    until_shown(page, (1, 0, 5, 2))
    row = drawer.get_by_role("application", name=re.compile("^Weights of “,”"))
    row.scroll_into_view_if_needed()
    until_drawn(page)
    box, said = row.bounding_box(), drawer.locator(".weights-readout")
    x, y = [box["x"] + (key + 0.5) * box["width"] / 13 for key in range(13)], box["y"] + 30
    before = float(re.match(r"“␣” ([\d.]+);", said.inner_text())[1])
    page.mouse.move(x[2], y)
    page.mouse.down()
    page.mouse.move(x[9], y)  # which is after the query: nothing can be put there
    page.mouse.move(x[4], y)
    expect(said).to_have_text(re.compile(r"“e”, which then has [\d.]+$"))
    both = float(re.search(r"“e”, which then has ([\d.]+)$", said.inner_text())[1])
    page.mouse.up()
    until(page, lambda: weights_set(page).keys() == {2, 4})
    assert weights_set(page)[2] == 0 and weights_set(page)[4] == pytest.approx(both, abs=1e-3) and both > before
    until_shown(page, (1, 0, 5, 4))
    expect(said).to_have_text(re.compile(f"^“e” {both:.3f}"))  # what the changed pass has
    equal_or_set(page)
    in_panel = panel(page, "weights")
    expect(in_panel.locator("figcaption")).to_contain_text("drag a weight to another key of its row")
    page.mouse.move(*place_of(page, "weights", 6, 3))
    page.mouse.down()
    page.mouse.move(*place_of(page, "weights", 6, 8))  # hidden: it stays where it is
    page.mouse.move(*place_of(page, "weights", 6, 5))
    expect(part(page, "readout")).to_have_text(re.compile("^“b” .* → “,”, which then has"))
    page.mouse.up()
    until(page, lambda: weights_set(page, 6).keys() == {3, 5})
    assert weights_set(page, 6)[3] == 0 < weights_set(page, 6)[5]
    assert "zoom" not in parameters(page)
    part(page, "change").click()  # closed: a drag zooms again
    expect(in_panel.locator("figcaption")).not_to_contain_text("drag")
    drag(page, "weights", (6, 3), (8, 5))
    until(page, lambda: "zoom" in parameters(page))
    assert weights_set(page, 6).keys() == {3, 5}
    part(page, "whole").click()
    part(page, "change").click()
    page.mouse.click(*place_of(page, "weights", 5, 4))
    for key in ("End", "Home", "Enter"):
        row.press(key)
    expect(said).to_have_text(re.compile("“T” .* is taken up"))
    row.press("ArrowRight")
    row.press("Escape")  # puts it back, and leaves the drawer open
    for key in ("Enter", "ArrowRight", "Enter"):
        row.press(key)
    until(page, lambda: weights_set(page).keys() == {0, 1, 2, 4})
    assert weights_set(page)[0] == 0 < weights_set(page)[1]


IS_STILL = """(main) => new Promise((resolve) => {
  const before = main.scrollTop;
  setTimeout(() => requestAnimationFrame(() => resolve(main.scrollTop === before)), 200);
})"""
"""Whether it scrolls no more, as it does for a while after a swipe."""


class Finger:
    """A finger on a page's glass. It takes its time, as Chromium tells a swipe from a jump by its speed."""

    def __init__(self, page):
        self._page, self._session = page, page.context.new_cdp_session(page)

    def drag(self, start, end, steps=6):
        self._touch("touchStart", start)
        for step in range(1, steps + 1):
            self._touch("touchMove", [a + (b - a) * step / steps for a, b in zip(start, end, strict=True)])
        self._touch("touchEnd")

    def _touch(self, kind, place=None):
        points = [{"x": place[0], "y": place[1]}] if place else []
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        self._page.wait_for_timeout(20)


def test_a_finger_carries_a_weight_along_its_row_and_scrolls_across_it(visit, new_window):
    page = new_window(width=420, has_touch=True)
    visit("prompt=To be, or not&layer=1&head=0&query=6&key=3", page=page)
    part(page, "change").tap()
    main = page.get_by_test_id("stMain")
    start, end = place_of(page, "weights", 6, 3), place_of(page, "weights", 6, 5)
    above = main.evaluate("(main) => main.scrollTop")
    finger = Finger(page)
    finger.drag(start, (start[0], start[1] - 200))
    until(page, lambda: main.evaluate("(main) => main.scrollTop") > above)
    until(page, lambda: main.evaluate(IS_STILL))
    assert not changes(page) and "zoom" not in parameters(page)
    finger.drag(place_of(page, "weights", 6, 3), (end[0], place_of(page, "weights", 6, 3)[1]))
    until(page, lambda: weights_set(page, 6).keys() == {3, 5})
    assert weights_set(page, 6)[3] == 0 < weights_set(page, 6)[5]
    assert "zoom" not in parameters(page)


def test_a_rule_is_taken_away_on_a_narrow_page_of_inside(tiny_server, new_page, wait_ready):
    page = new_page(width=420)
    page.goto(f"{tiny_server.url}/Inside?prompt=To be&inside=blocks.0.attn")
    page.get_by_test_id("inside").wait_for()
    wait_ready(page)
    page.get_by_test_id("inside").get_by_role("button", name="layer 1").first.click(button="right")
    expect(page.get_by_test_id("inside")).to_have_attribute("data-open", "blocks.1")
    expect(part(page, "changing").get_by_role("combobox", name="What")).to_be_focused()
    page.keyboard.press("Escape")
    expect(part(page, "changing")).to_be_hidden()
    page.get_by_role("button", name="layer 0").first.click(button="right")
    page.get_by_label("Without ÷ √d_head").check()
    expect(said(page)).to_have_text(re.compile("without ÷ √d_head in layer 0"))
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text(re.compile("In the other one something was set"))).to_be_visible()
    expect(page.get_by_role("cell", name="set by: without ÷ √d_head in layer 0")).to_have_count(1)
    until(page, lambda: page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth"))
