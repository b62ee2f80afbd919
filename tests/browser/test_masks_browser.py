"""Tests the page Masks in a browser: links, typing, small screens."""

import re

import pytest

from tests.browser.attention_page import fits, until, until_drawn
from tests.browser.plotly_figures import CRAMPED, OVERLAPPING

expect = pytest.importorskip("playwright.sync_api").expect

CHARTS, ROWS = 2, 3
"""Figures of Plotly's, and rows of masks, once all is unfolded."""
LONG = "To be, or not to be, that is the question now asked"

MISPLACED = """(charts) => charts.flatMap((chart) => {
  const frame = chart.getBoundingClientRect();
  const words = ".xtick text, .ytick text, .annotation-text, .g-xtitle text, .g-ytitle text";
  return [...chart.querySelectorAll(words)].filter((word) => {
    const box = word.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
      box.bottom > frame.bottom + 1;
  }).map(({ textContent }) => textContent);
})"""
"""The labels that leave their figure."""
BLUE = """(marks, size) => {
  const picture = marks.parentElement.querySelector(".picture");
  const { width, height } = picture;
  const pixels = picture.getContext("2d").getImageData(0, 0, width, height).data;
  const places = [...Array(width * height).keys()].filter((at) => pixels[4 * at] === 0 && pixels[4 * at + 1] === 114);
  const [xs, ys] = [places.map((at) => at % width), places.map((at) => Math.floor(at / width))];
  const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs) + 1, Math.max(...ys) + 1];
  const blue = new Set(places);
  const middle = (from, to, at) => Math.floor(from + ((at + 0.5) * (to - from)) / size);
  return [...Array(size).keys()].map((row) => [...Array(size).keys()].map((column) =>
    blue.has(middle(top, bottom, row) * width + middle(left, right, column))));
}"""
"""Of a mask whose first column and last row are visible: which of its cells are drawn so."""


def unfold(page, wait_ready):
    """Open what is folded, and isn't open already."""
    for name in ("Every prediction of the text", "Padding mask, and no mask", "A batch of prompts"):
        drawer = page.locator("details", has=page.locator("summary", has_text=name))
        if drawer.get_attribute("open") is None:
            drawer.locator("summary").click()
            wait_ready(page)
    expect(charts(page)).to_have_count(CHARTS)
    expect(page.get_by_test_id("masks")).to_have_count(ROWS)


def row_of(page, row):
    """A row of masks: the causal one, others of the prompt, those of the batch."""
    return page.get_by_test_id("masks").nth(row)


def mask(page, row, number=0):
    return row_of(page, row).locator("figure").nth(number).locator("canvas.marks")


def charts(page):
    return page.locator(".js-plotly-plot")


BOTTOM = "(element) => element.getBoundingClientRect().bottom"


def test_a_cold_link_opens_the_batch_whose_masks_are_read_cell_by_cell_and_typing_changes_it(visit, wait_ready):
    page = visit("Masks?prompt=To%20be&filler=2&batch=To%20be%0Aor&pad_side=left&batch_row=1", height=720)
    for selector in ("canvas.picture", ".predictions ol >> nth=1"):  # on the first screen
        until(page, lambda selector=selector: page.locator(selector).first.evaluate(BOTTOM) <= 720)
    page.set_viewport_size({"width": 1280, "height": 900})
    unfold(page, wait_ready)
    editor, cells = page.get_by_role("textbox", name="Prompts, one per line"), page.get_by_test_id("batch-table")
    expect(editor).to_have_value("To be\nor")
    expect(cells.locator("td")).to_have_text([*"To␣be", *"∅∅∅or"])
    expect(page.get_by_text("Padding on the left stands before the real tokens")).to_be_visible()
    page.get_by_role("radio", name="On the right").click()
    expect(page.get_by_text("Padding on the right never matters")).to_be_visible()
    expect(page).not_to_have_url(re.compile("pad_side"))
    wait_ready(page)

    # Every cell can be read by pointer and by key.
    marks = mask(page, 0)
    causal = [[key <= query for key in range(5)] for query in range(5)]
    until(page, lambda: marks.evaluate(BLUE, 5) == causal)
    marks.scroll_into_view_if_needed()  # while the page scrolls, a tooltip would go
    until_drawn(page)
    place = {"x": 300, "y": 20}  # in the last column of the first row: cells of 64 pixels, after the rows' labels
    marks.hover(position=place)
    tip = row_of(page, 0).get_by_role("tooltip")
    expect(tip).to_have_text("query T at position 0\nkey e at position 4\nhidden")
    marks.click(position=place)
    words = "Causal mask: query T at position 0, key e at position 4, hidden. Likeliest: with the mask"
    expect(row_of(page, 0).get_by_role("status")).to_contain_text(words)
    after = row_of(page, 0).locator(".predictions")
    expect(after.get_by_role("heading", level=2)).to_have_text("What comes after “T”, position 0")
    first = after.locator("ol").first.inner_text()
    page.keyboard.press("PageDown")
    words = "Causal mask: query e at position 4, key e at position 4, visible."
    expect(row_of(page, 0).get_by_role("status")).to_contain_text(words)
    expect(after.get_by_role("heading", level=2)).to_have_text("What comes after “e”, position 4")
    expect(after.get_by_text("5 of 5 keys visible.")).to_be_visible()
    assert after.locator("ol").first.inner_text() != first
    for row, number, key, words in (
        (1, 0, "End", "Padding mask: query ∅ at position 6, key ∅ at position 6, hidden."),
        (2, 2, "ArrowDown", "Both: causal and padding: query ∅ at position 4, key o at position 0, visible."),
    ):
        mask(page, row, number).press(key)
        expect(row_of(page, row).get_by_role("status")).to_have_text(words)
    assert "is a padding token" in mask(page, 1).get_attribute("aria-label")

    editor.fill("To be\nor\n<b>é\nnot")
    editor.press("Control+Enter")
    expect(cells.locator("td")).to_have_text([*"To␣be", *"or∅∅∅", *"not∅∅"])
    expect(page.get_by_text("Line 3 has")).to_contain_text("é")
    expect(editor).to_have_value("To be\nor\n<b>é\nnot")
    expect(page).to_have_url(re.compile(r"batch=To\+be%0Aor%0A%3Cb%3E%C3%A9%0Anot"))
    page.get_by_role("button", name="Restore the examples").click()
    expect(editor).to_have_value("KING:\nROMEO:\nBut, soft\nTo be, or not")
    expect(page).not_to_have_url(re.compile("batch=To"))
    wait_ready(page)

    # Nothing is clipped or overlaps.
    for box, typed in ((editor, f"{LONG}\nor"), (page.get_by_role("textbox", name="Prompt", exact=True), LONG)):
        box.fill(typed)
        box.press("Control+Enter")
        wait_ready(page)
    unfold(page, wait_ready)
    note = row_of(page, 0).locator(".note")
    expect(note).to_have_text(re.compile("^Every (second|third) token is labelled; point at or tap a cell to see both"))
    for width, height in ((960, 540), (420, 900)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)  # plotly draws anew when its box has come to rest
        expect(charts(page)).to_have_count(CHARTS)
        for problems in (OVERLAPPING, CRAMPED, MISPLACED):
            until(page, lambda problems=problems: charts(page).evaluate_all(problems) == [])
        until(page, lambda: page.get_by_text(re.compile("Every (second|third) token is labelled")).count() >= 2)
        until(page, lambda: fits(page))
    until(page, lambda: stand_in_rows(page) == 3)
    # The batch scrolls inside itself, so that it can be read.
    assert cells.evaluate("(box) => box.scrollWidth > box.clientWidth && box.clientWidth < innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    visit("Masks?model=translator", page)
    unfold(page, wait_ready)
    until(page, lambda: fits(page) and charts(page).evaluate_all(MISPLACED) == [] and stand_in_rows(page) == 1)
    expect(row_of(page, 2).locator(".note")).to_be_empty()


def stand_in_rows(page):
    """In how many rows the three pictures of the batch stand."""
    shown = row_of(page, 2).locator("figure")
    return len({shown.nth(i).bounding_box()["y"] for i in range(3)})
