"""Tests the page What if in a browser: ablation by click and by keyboard, and what stands beside it."""

import re

from playwright.sync_api import expect

from tests.browser.attention_page import fits, turn_to

PATH = "What_if?prompt=To%20be,%20or%20not"


def cells(page, number=0):
    return page.get_by_test_id("effect-heatmaps").locator("canvas.marks").nth(number)


def sentence(page):
    return page.get_by_test_id("effect-heatmaps").get_by_role("status")


def until_changed(page, wait_ready, words):
    """Until the menu says how much is changed."""
    expect(page.get_by_role("button", name=f"Menu, {words}", exact=True)).to_be_visible()
    wait_ready(page)


def test_a_part_is_ablated_by_click_and_brought_back_by_key_and_both_texts_are_compared(visit, wait_ready):
    page = visit(f"{PATH}&effect=loss")
    # In a map of two rows, row 0 at the bottom, whose cells are 141 pixels wide and 44 high, after the labels.
    feed_forward = {"x": 52 + 141 * 2 + 70, "y": 7 + 22}
    cells(page).hover(position=feed_forward)
    told = r"Without layer 1, feed-forward, the loss is [\d.]+ nats (higher|lower)\.\nClick: ablate it"
    expect(page.get_by_role("tooltip")).to_have_text(re.compile(told))
    before = cells(page).bounding_box()
    cells(page).click(position=feed_forward)
    until_changed(page, wait_ready, "1 change")
    assert cells(page).bounding_box() == before, "nothing moves"
    expect(page.get_by_text("Changed: feed-forward of layer 1 ablated.")).to_be_visible()
    expect(sentence(page)).to_have_text(re.compile(r"Without layer 1, feed-forward, .* It is ablated now\."))
    page.wait_for_function("() => decodeURIComponent(location.search).includes('scale~blocks.1.hook_mlp_out')")
    cells(page).focus()
    for key, words in (("ArrowDown", "feed-forward"), ("Home", "head 0"), ("ArrowRight", "head 1")):
        page.keyboard.press(key)
        expect(sentence(page)).to_contain_text(f"Without layer 0, {words},")
    page.keyboard.press("Enter")
    until_changed(page, wait_ready, "2 changes")
    page.keyboard.press("Enter")  # the cell still has the focus, and is chosen again
    until_changed(page, wait_ready, "1 change")
    texts = page.get_by_test_id("text-comparison").locator("article")
    expect(texts).to_have_count(2)
    parts = texts.evaluate_all(
        "(all) => all.map((one) => [...one.querySelectorAll('p > *')].map((part) => [part.tagName, part.textContent]))"
    )
    assert [text[0] for text in parts] == [["SPAN", "To be, or not"]] * 2
    marked = [part for text in parts for part in text if part[0] == "MARK"]
    assert len(marked) == 2 and marked[0] != marked[1]  # the first difference
    turn_to(page, "Attention")
    expect(page.get_by_text("Changed: feed-forward of layer 1 ablated.")).to_be_visible()


def test_at_the_width_of_a_phone_the_pictures_are_read_and_saved_and_models_compared(visit, wait_ready):
    page = visit(f"{PATH}&question=comparison&beside=models&changes=scale~blocks.0.attn.hook_z~1~~0.0", width=420)
    expect(page.get_by_test_id("matrix")).to_have_count(3)
    expect(page.locator("svg.lines polyline")).to_have_count(2)
    assert fits(page)
    with page.expect_download() as download:
        page.get_by_text("Both distributions as a table").click()
        page.get_by_role("button", name="Save as CSV").click()
    assert "probability: " in download.value.path().read_text("utf-8-sig").splitlines()[0]

    visit(f"{PATH}&model=translator&prompt=forty-two&question=needed", page)
    maps = page.get_by_test_id("effect-heatmaps")
    expect(maps.locator("figcaption")).to_have_text(["Encoder", "Decoder", "Cross-attention"])
    expect(maps.get_by_role("application", name="Arrow keys go from cell to cell")).to_have_count(3)
    assert fits(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as PNG").click()
    saved = download.value.path().read_bytes()
    assert saved.startswith(b"\x89PNG") and len(saved) > 5_000

    # A place is put in from another prompt, by key alone.
    visit(f"{PATH}&model=left&question=patching&other_prompt=To%20be,%20or%20now", page)
    expect(maps.locator("figcaption")).to_have_count(3)
    assert fits(page)
    cells(page).focus()
    for key in ("End", "ArrowUp"):
        page.keyboard.press(key)
    words = "layer 1, position 12, t (the other prompt has w) moves the logit difference 1"
    expect(sentence(page)).to_contain_text(words)
    page.keyboard.press("Enter")
    wait_ready(page)
    expect(page.get_by_text("Changed: the stream before layer 1 at position 12 as on another prompt.")).to_be_visible()
    expect(sentence(page)).to_contain_text("It is ablated now.")
