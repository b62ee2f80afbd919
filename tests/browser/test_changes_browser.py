"""Tests changing a model in a browser: menu, keyboard, sliders, fingers, and the export of what is open."""

import contextlib
import os
import re
import signal

import pytest

from tests.browser.address_bar import come_to
from tests.browser.attention_page import (
    STAGES,
    all_equal,
    badges,
    compared,
    derive,
    drag,
    expect,
    fits,
    head,
    instrument,
    open_menu,
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
from tests.browser.test_accessibility import found as found_by_axe
from transformer import Recording


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


def said(page):
    return page.get_by_test_id("stMain").get_by_text("Changed:")


def changes(page):
    return parameters(page).get("changes", "")


def weights_set(page, query=5):
    """By key, what a query of layer 1, head 0 gives it by hand."""
    found = re.findall(rf"weigh~blocks\.1\.attn\.hook_pattern~0~{query}~(\d+)~([\d.]+)~1", changes(page))
    return {int(key): float(weight) for key, weight in found}


def until_carried(page, query, start, end):
    """Wait until a query's weight on one key is another's."""
    until(page, lambda: weights_set(page, query).keys() == {start, end})
    assert weights_set(page, query)[start] == 0 < weights_set(page, query)[end]
    assert "zoom" not in parameters(page)


def equal_or_set(page):
    """What is said of each step by hand; none may be a contradiction."""
    found = compared(page)
    assert all(badge.startswith(("recomputed, equal", "set by: ")) for badge in found), found
    return found


def test_a_head_is_ablated_scaled_and_its_weights_are_set_by_key_and_by_mouse(visit, wait_ready):
    page, _ = visit("prompt=To be, or not&layer=0&head=0")
    head(page, 0, 1).focus()
    page.keyboard.press("Shift+F10")
    drawer = part(page, "changing")
    expect(drawer.get_by_role("combobox", name="What")).to_be_focused()
    assert shown(page)[:2] == (0, 1)
    drawer.get_by_role("button", name="Zero ablation").press("Enter")
    expect(said(page)).to_have_text(re.compile("Changed: layer 0, head 1 ablated."))
    expect(drawer.get_by_text("layer 0, head 1 ablated")).to_be_visible()  # the drawer is still open
    expect(head(page, 0, 1)).to_have_attribute("aria-label", "Layer 0, head 1, changed")
    until(page, lambda: changes(page) == "scale~blocks.0.attn.hook_z~1~~0.0")
    until(page, lambda: "set by: layer 0, head 1 ablated" in badges(page))
    assert equal_or_set(page).count("set by: layer 0, head 1 ablated") == 1
    expect(page.get_by_role("button", name="Menu, 1 change")).to_be_visible()
    listed = open_menu(page, "Changes")
    listed.get_by_label("Edit: layer 0, head 1 ablated").press("Enter")
    listed.get_by_role("button", name="Its opposite").wait_for()
    wait_ready(page)
    assert found_by_axe(page) == []
    page.keyboard.press("Escape")
    drawer.get_by_role("button", name="Take back: layer 0, head 1 ablated").press("Enter")
    expect(said(page)).to_have_count(0)
    until(page, lambda: not changes(page))
    until(page, lambda: not [badge for badge in badges(page) if badge.startswith("set by")])
    all_equal(page)

    # The last value of a slider counts.
    head(page, 1, 0).click()
    for _ in range(7):
        drawer.get_by_label("Scale").press("ArrowLeft")
    until(page, lambda: changes(page) == "scale~blocks.1.attn.hook_z~0~~0.3")
    until(page, lambda: any("set by: layer 1, head 0 × 0.3" in badge for badge in badges(page)))
    place = shown(page)
    drawer.get_by_label(re.compile("^Weight that")).press("Home")  # the heaviest key of its row has no weight any more
    until(page, lambda: f"weigh~blocks.1.attn.hook_pattern~0~{place[2]}~{place[3]}~0.0~1" in changes(page))
    until_shown(page, place)
    expect(instrument(page)).to_have_attribute("data-whole", "true")
    assert any("set by: layer 1, head 0 × 0.3" in badge for badge in equal_or_set(page))
    expect(part(page, "readout")).to_have_text(re.compile("weight 0"))

    # A weight is carried to another key by mouse and by keyboard.
    page.mouse.click(*place_of(page, "weights", 5, 2))
    until_shown(page, (1, 0, 5, 2))
    row = drawer.get_by_role("application", name=re.compile("^Weights of “,”"))
    row.scroll_into_view_if_needed()
    until_drawn(page)
    box, told = row.bounding_box(), drawer.locator(".weights-readout")
    x, y = [box["x"] + (key + 0.5) * box["width"] / 13 for key in range(13)], box["y"] + 30
    before = float(re.match(r"“␣” ([\d.]+);", told.inner_text())[1])
    page.mouse.move(x[2], y)
    page.mouse.down()
    page.mouse.move(x[9], y)  # which is after the query: nothing can be put there
    page.mouse.move(x[4], y)
    expect(told).to_have_text(re.compile(r"“e”, which then has [\d.]+$"))
    both = float(re.search(r"“e”, which then has ([\d.]+)$", told.inner_text())[1])
    page.mouse.up()
    until_carried(page, 5, 2, 4)
    assert weights_set(page)[4] == pytest.approx(both, abs=1e-3) and both > before
    until_shown(page, (1, 0, 5, 4))
    expect(told).to_have_text(re.compile(f"^“e” {both:.3f}"))  # what the changed pass has
    equal_or_set(page)
    in_panel = panel(page, "weights").locator("figcaption")
    expect(in_panel).to_contain_text("drag a weight to another key of its row")
    page.mouse.move(*place_of(page, "weights", 6, 3))
    page.mouse.down()
    page.mouse.move(*place_of(page, "weights", 6, 8))  # hidden: it stays where it is
    page.mouse.move(*place_of(page, "weights", 6, 5))
    expect(part(page, "readout")).to_have_text(re.compile("^“b” .* → “,”, which then has"))
    page.mouse.up()
    until_carried(page, 6, 3, 5)
    part(page, "change").click()  # closed: a drag zooms again
    expect(in_panel).not_to_contain_text("drag")
    drag(page, "weights", (6, 3), (8, 5))
    until(page, lambda: "zoom" in parameters(page))
    assert weights_set(page, 6).keys() == {3, 5}
    part(page, "whole").click()
    part(page, "change").click()
    page.mouse.click(*place_of(page, "weights", 5, 4))
    for key in ("End", "Home", "Enter"):
        row.press(key)
    expect(told).to_have_text(re.compile("“T” .* is taken up"))
    for key in ("ArrowRight", "Escape", "Enter", "ArrowRight", "Enter"):  # Escape puts it back; the drawer stays open
        row.press(key)
    until(page, lambda: weights_set(page).keys() == {0, 1, 2, 4})
    assert weights_set(page)[0] == 0 < weights_set(page)[1]
    open_menu(page, "Changes").get_by_role("button", name="Undo").click()
    until(page, lambda: weights_set(page).keys() == {2, 4})


IS_STILL = """(main) => new Promise((resolve) => {
  const before = main.scrollTop;
  setTimeout(() => requestAnimationFrame(() => resolve(main.scrollTop === before)), 200);
})"""
"""Whether it scrolls no more, as it does for a while after a swipe."""


def swipe(page, start, end, steps=6):
    """Draw a finger over the glass. It takes its time, as Chromium tells a swipe from a jump by its speed."""
    session = page.context.new_cdp_session(page)
    places = [[a + (b - a) * step / steps for a, b in zip(start, end, strict=True)] for step in range(steps + 1)]
    for at, (x, y) in enumerate(places):
        kind = "touchMove" if at else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(20)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_on_a_phone_a_finger_selects_and_carries_a_weight_and_inside_is_changed_and_exported(
    visit, new_window, wait_ready
):
    page = new_window(width=420, has_touch=True)
    _, traffic = visit("prompt=To be, or not&layer=1&head=0", page=page)
    traffic.forget()
    derive(page)
    for stage, drawn in STAGES.items():  # the steps are behind tabs
        page.locator(f"[data-stage={stage}]").and_(page.get_by_role("button")).tap()
        expect(page.locator(".panels [data-panel]:visible")).to_have_attribute("data-panel", drawn)
    page.touchscreen.tap(*place_of(page, "weights", 9, 4))
    until(page, lambda: shown(page)[2:] == (9, 4))
    head(page, 0, 1).tap()
    until_shown(page, (0, 1, 9, 4))
    part(page, "texts").get_by_role("option").nth(5).tap()
    until(page, lambda: parameters(page).get("query") == "5" == str(shown(page)[2]))
    assert traffic.page_runs == 0
    expect(page.locator(".grid.table")).to_have_css("overflow-y", "visible")  # nothing of it is out of sight
    assert fits(page)

    head(page, 1, 0).tap()
    part(page, "change").tap()
    main = page.get_by_test_id("stMain")
    x, y = place_of(page, "weights", 6, 3)
    above = main.evaluate("(main) => main.scrollTop")
    swipe(page, (x, y), (x, y - 200))
    until(page, lambda: main.evaluate("(main) => main.scrollTop") > above)
    until(page, lambda: main.evaluate(IS_STILL))
    assert not changes(page) and "zoom" not in parameters(page)
    end, start = place_of(page, "weights", 6, 5), place_of(page, "weights", 6, 3)
    swipe(page, start, (end[0], start[1]))
    until_carried(page, 6, 3, 5)

    # A rule is taken away on Inside.
    come_to(page, "/Inside?prompt=To be, or not&inside=blocks.0.attn")
    inside = page.get_by_test_id("inside")
    inside.get_by_role("button", name="layer 1").first.click(button="right")
    expect(inside).to_have_attribute("data-open", "blocks.1")
    expect(part(page, "changing").get_by_role("combobox", name="What")).to_be_focused()
    page.keyboard.press("Escape")
    expect(part(page, "changing")).to_be_hidden()
    page.get_by_role("button", name="layer 0").first.click(button="right")
    assert page.get_by_label("Without ÷ √d_head").evaluate(TICK_AND_DRAW)
    expect(said(page)).to_have_text(re.compile("without ÷ √d_head in layer 0"))
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text(re.compile("In the other one something was set"))).to_be_visible()
    expect(page.get_by_role("cell", name="set by: without ÷ √d_head in layer 0")).to_have_count(1)
    until(page, lambda: fits(page))

    # What is open is in the address, costs no run, and is what is saved.
    wait_ready(page)
    traffic.settle()
    traffic.forget()
    page.get_by_role("navigation").get_by_role("button").nth(0).click()
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    until(page, lambda: parameters(page).get("inside") == "blocks.1")
    assert traffic.page_runs == 0
    loaded = "() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('SyntaxHighlighter'))"
    assert page.evaluate(loaded) == [], "1.5 MB that the picture doesn't need"
    for words in ("Export this view", "Export these numbers"):
        main.locator("summary", has_text=words).click()
        wait_ready(page)
    code = page.get_by_test_id("stCode").first
    assert "open='blocks.1'" in code.inner_text()
    page.get_by_role("combobox", name="Find a tensor").fill("blocks.0.mlp.hook_pre")
    page.keyboard.press("Enter")
    until(page, lambda: "open='blocks.0.mlp.hook_pre'" in code.inner_text())  # which the page says, and so is run
    wait_ready(page)
    for block in page.get_by_test_id("stCode").locator("pre").all():  # which can't be reached by keys, to be scrolled
        assert block.evaluate("(pre) => pre.scrollWidth <= pre.clientWidth")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save these numbers").click()
    saved = Recording.from_bytes(download.value.path().read_bytes())
    assert download.value.suggested_filename == "shakespeare-inside.safetensors"
    assert {name: each.shape for name, each in saved.tensors.items()} == {"blocks.0.mlp.hook_pre": (13, 64)}


TICK_AND_DRAW = """(box) => {
  box.click();
  const head = box.getRootNode().querySelector("[data-part=head]");
  head.selectedIndex += 1;
  head.dispatchEvent(new Event("change", { bubbles: true }));
  return box.checked && box.isConnected;
}"""
"""Numbers that arrive after a box was ticked, and before the page has answered, leave it ticked."""
PRESS_ALL = "(buttons) => buttons.forEach((button) => button.click())"


@contextlib.contextmanager
def held_up(server):
    """Meanwhile the server hears nothing; afterwards it gets all at once, as one does that is too slow."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def test_every_press_counts_though_the_server_is_slow_and_the_page_is_left(visit, tiny_server, wait_ready):
    page, _ = visit("prompt=To be, or not&layer=0&head=0")
    part(page, "change").click()
    drawer = part(page, "changing")
    heads = [(0, 0), (0, 1), (1, 0), (1, 1)]
    ablate = drawer.get_by_role("button", name="Zero ablation")
    pressed = [each.element_handle() for place in heads for each in (head(page, *place), ablate)]
    with held_up(tiny_server):
        page.evaluate(PRESS_ALL, pressed)
    until(page, lambda: changes(page).count("scale~") == len(heads))

    # What is drawn anew leaves a button in place that is about to be pressed.
    head(page, 1, 1).click()
    back = drawer.get_by_role("button", name="Take back: layer 1, head 1 ablated")
    button = back.element_handle()
    page.mouse.click(*place_of(page, "weights", 5, 2))
    until_shown(page, (1, 1, 5, 2))
    assert button.evaluate("(button) => button.isConnected")

    with held_up(tiny_server):
        back.press("Enter")
        head(page, 1, 0).click()
        last = drawer.get_by_role("button", name="Take back: layer 1, head 0 ablated")
        page.evaluate(PRESS_ALL, [last.element_handle(), page.get_by_role("link", name="Inside").element_handle()])
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    until(page, lambda: changes(page) == "!".join(f"scale~blocks.0.attn.hook_z~{number}~~0.0" for number in (0, 1)))
    wait_ready(page)
    expect(said(page)).to_have_text(re.compile("Changed: layer 0, head 0 ablated; layer 0, head 1 ablated."))
