"""Tests the page What if in a browser: ablation by click and by keyboard."""

import re

from playwright.sync_api import expect

from tests.browser.attention_page import until

PATH = "What_if?prompt=To%20be,%20or%20not"


def cells(page, number=0):
    return page.get_by_test_id("effect-heatmaps").locator("canvas.marks").nth(number)


def sentence(page):
    return page.get_by_test_id("effect-heatmaps").get_by_role("status")


def until_changed(page, words):
    """Until the bar says how much is changed."""
    expect(page.get_by_role("button", name=words, exact=True)).to_be_visible()


def middle_of(row, column):
    """In a map of two rows, row 0 at the bottom, whose cells are 141 pixels wide and 44 high, after the labels."""
    return {"x": 52 + 141 * column + 70, "y": 7 + 44 * (1 - row) + 22}


def test_a_part_is_ablated_by_click_and_brought_back_by_key(visit, wait_ready):
    page = visit(f"{PATH}&effect=loss")
    cells(page).hover(position=middle_of(1, 2))
    told = r"Without layer 1, feed-forward, the loss is [\d.]+ nats (higher|lower)\.\nClick: ablate it"
    expect(page.get_by_role("tooltip")).to_have_text(re.compile(told))
    before = cells(page).bounding_box()
    cells(page).click(position=middle_of(1, 2))
    until_changed(page, "1 change")
    wait_ready(page)
    until(page, lambda: cells(page).bounding_box() == before)  # nothing moves
    expect(page.get_by_text("Changed: feed-forward of layer 1 ablated.")).to_be_visible()
    expect(sentence(page)).to_have_text(re.compile(r"Without layer 1, feed-forward, .* It is ablated now\."))
    page.wait_for_function("() => decodeURIComponent(location.search).includes('scale~blocks.1.hook_mlp_out')")
    cells(page).focus()
    for key, words in (("ArrowDown", "feed-forward"), ("Home", "head 0"), ("ArrowRight", "head 1")):
        page.keyboard.press(key)
        expect(sentence(page)).to_contain_text(f"Without layer 0, {words},")
    page.keyboard.press("Enter")
    until_changed(page, "2 changes")
    wait_ready(page)
    page.keyboard.press("Enter")  # the cell still has the focus, and is chosen again
    until_changed(page, "1 change")
    wait_ready(page)
    page.get_by_role("link", name="Attention").click()
    page.get_by_role("heading", level=1, name="Attention").wait_for()
    expect(page.get_by_text("Changed: feed-forward of layer 1 ablated.")).to_be_visible()


def fits(page):
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")


def test_at_the_width_of_a_phone_the_pictures_are_read_and_saved_and_models_compared(visit, wait_ready, tmp_path):
    page = visit(f"{PATH}&question=beside&beside=models&changes=scale~blocks.0.attn.hook_z~1~~0.0", width=420)
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    fits(page)
    chart = page.locator(".js-plotly-plot").first
    chart.locator(".main-svg").first.hover()
    expect(chart.locator(".modebar").first).to_be_visible()
    seen = """(bar) => {
      const { x, y, width, height } = bar.getBoundingClientRect();
      return bar.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    }"""
    until(page, lambda: chart.locator(".modebar").first.evaluate(seen))
    bar, drawn = chart.locator(".modebar").first.bounding_box(), chart.locator(".main-svg").first.bounding_box()
    assert bar["y"] + bar["height"] <= drawn["y"]

    page = visit(f"{PATH}&model=translator&prompt=forty-two&question=needed", page)
    expect(page.get_by_test_id("effect-heatmaps").locator("figcaption")).to_have_text(
        ["Encoder", "Decoder", "Cross-attention"]
    )
    fits(page)
    pictures = page.get_by_test_id("effect-heatmaps").get_by_role("application", name="Arrow keys go from cell to cell")
    expect(pictures).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as PNG").click()
    file = tmp_path / "saved.png"
    download.value.save_as(file)
    assert file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size > 5_000

    # A place is put in from another prompt, by key alone.
    page = visit(f"{PATH}&model=left&question=traced&other_prompt=To%20be,%20or%20now", page)
    expect(page.get_by_test_id("effect-heatmaps").locator("figcaption")).to_have_count(3)
    fits(page)
    cells(page).focus()
    for key in ("End", "ArrowUp"):
        page.keyboard.press(key)
    expect(sentence(page)).to_contain_text(
        "layer 1, position 12, t (the other prompt has w) moves the logit difference 1"
    )
    page.keyboard.press("Enter")
    wait_ready(page)
    expect(page.get_by_text("Changed: the stream before layer 1 at position 12 as on another prompt.")).to_be_visible()
    expect(sentence(page)).to_contain_text("It is ablated now.")


def test_one_press_changes_the_model_and_the_first_difference_of_the_texts_is_marked(visit, wait_ready):
    page = visit(PATH, dark=True)
    page.get_by_test_id("stMain").get_by_role("button", name=re.compile("^Ablate ")).first.click()
    versions = page.get_by_test_id("text-comparison")
    expect(versions.locator("article")).to_have_count(2)
    wait_ready(page)
    texts = versions.locator("article").evaluate_all(
        "(all) => all.map((one) => [...one.querySelectorAll('p > *')].map((part) => [part.tagName, part.textContent]))"
    )
    assert [text[0] for text in texts] == [["SPAN", "To be, or not"]] * 2
    assert texts[0][1] == texts[1][1]  # what both write
    marked = [part for text in texts for part in text if part[0] == "MARK"]
    assert len(marked) == 2 and marked[0] != marked[1]
