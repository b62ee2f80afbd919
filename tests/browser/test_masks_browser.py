"""Tests the page Masks in a browser: links, typing, small screens."""

import re

import pytest

from tests.browser.attention_page import until, until_drawn
from tests.browser.plotly_figures import CRAMPED, OVERLAPPING

expect = pytest.importorskip("playwright.sync_api").expect

CHARTS, ROWS = 2, 3
"""Figures of Plotly's, and rows of masks, once all is unfolded."""
LONG = "?prompt=To%20be,%20or%20not%20to%20be,%20that%20is%20the%20question%20now%20asked"
LONG_LINE = "batch=To%20be,%20or%20not%20to%20be,%20that%20is%20the%20question%0Aor"

MISPLACED = """(charts) => charts.flatMap((chart) => {
  const frame = chart.getBoundingClientRect();
  const words = ".xtick text, .ytick text, .annotation-text, .g-xtitle text, .g-ytitle text";
  const ticks = [...chart.querySelectorAll(words)];
  const boxes = ticks.map((tick) => ({ text: tick.textContent, box: tick.getBoundingClientRect() }));
  const outside = boxes.filter(({ box }) => box.left < frame.left - 1 || box.right > frame.right + 1 ||
    box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  const along = [...chart.querySelectorAll(".xtick text")].map((tick) => tick.getBoundingClientRect());
  along.sort((one, other) => one.left - other.left);
  // Text that stands upright has a box as wide as its line is high, which is more than the letters take.
  const overlaps = along.filter((box, i) => i && along[i - 1].right > box.left + 5);
  return [...outside.map(({ text }) => text), ...overlaps.map(() => "two labels overlap")];
})"""
"""The labels that leave their figure, or run into one another."""

BLUE = """(marks, size) => {
  const { width, height } = marks.parentElement.querySelector(".picture");
  const pixels = marks.parentElement.querySelector(".picture").getContext("2d").getImageData(0, 0, width, height).data;
  const places = [...Array(width * height).keys()].filter((at) => pixels[4 * at] === 0 && pixels[4 * at + 1] === 114);
  const [xs, ys] = [places.map((at) => at % width), places.map((at) => Math.floor(at / width))];
  const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs) + 1, Math.max(...ys) + 1];
  const blue = new Set(places);
  const middle = (from, to, at) => Math.floor(from + ((at + 0.5) * (to - from)) / size);
  return [...Array(size).keys()].map((row) => [...Array(size).keys()].map((column) =>
    blue.has(middle(top, bottom, row) * width + middle(left, right, column))));
}"""
"""Of a mask whose first column and last row are visible: which of its cells are drawn so."""
IS_WIDE_ENOUGH = "(main) => main.scrollWidth <= main.clientWidth"


@pytest.fixture
def masks_page(visit, wait_ready):
    """`masks_page(link, page=None, **options)`: a visitor of the page, which has come to rest with all open."""

    def open_page(link="", page=None, **options):
        page = visit(f"Masks{link}", page, **options)
        expect(page.get_by_test_id("masks").first).to_be_visible()
        unfold(page, wait_ready)
        return page

    return open_page


def unfold(page, wait_ready):
    """Open what is folded, and isn't open already."""
    for name in ("Every prediction of the text", "Padding mask, and no mask", "A batch of prompts"):
        drawer = page.locator("details", has=page.locator("summary", has_text=name))
        if drawer.get_attribute("open") is None:
            drawer.locator("summary").click()
            wait_ready(page)
    expect(charts(page)).to_have_count(CHARTS)
    expect(page.get_by_test_id("masks")).to_have_count(ROWS)
    wait_ready(page)


def masks(page, row, number=0):
    """The canvas of a mask: the causal one in row 0, others of the prompt in row 1, those of the batch in row 2."""
    return page.get_by_test_id("masks").nth(row).locator("figure").nth(number).locator("canvas.marks")


def said_of(page, row):
    return page.get_by_test_id("masks").nth(row).get_by_role("status")


def charts(page):
    return page.locator(".js-plotly-plot")


def picture(page):
    """The batch."""
    return page.get_by_test_id("batch-table")


def editor(page):
    return page.get_by_role("textbox", name="Prompts, one per line")


def until_written(page, cells):
    """Wait for what is in the cells of the batch."""
    expect(picture(page).locator("td")).to_have_text(cells)


def test_a_cold_link_opens_the_batch_whose_masks_are_read_cell_by_cell_and_typing_changes_it(masks_page, wait_ready):
    page = masks_page("?prompt=To%20be&filler=2&batch=To%20be%0Aor&pad_side=left&batch_row=1")
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    expect(page.get_by_role("link", name="Attention")).to_be_visible()
    expect(editor(page)).to_have_value("To be\nor")
    until_written(page, [*"To␣be", *"∅∅∅or"])
    expect(page.get_by_text("Padding on the left stands before the real tokens")).to_be_visible()

    page.get_by_role("radio", name="On the right").click()
    expect(page.get_by_text("Padding on the right never matters")).to_be_visible()
    expect(page).not_to_have_url(re.compile("pad_side"))

    # Every cell can be read by pointer and by key.
    wait_ready(page)
    causal = [[key <= query for key in range(5)] for query in range(5)]
    until(page, lambda: masks(page, 0).evaluate(BLUE, 5) == causal)

    marks = masks(page, 0)
    marks.scroll_into_view_if_needed()  # while the page scrolls, a tooltip would go
    until_drawn(page)
    place = {"x": 300, "y": 20}  # in the last column of the first row: cells of 64 pixels, after the rows' labels
    marks.hover(position=place)
    tip = page.get_by_test_id("masks").first.get_by_role("tooltip")
    expect(tip).to_have_text("query T at position 0\nkey e at position 4\nhidden")
    marks.click(position=place)
    words = "Causal mask: query T at position 0, key e at position 4, hidden. Likeliest: with the mask"
    expect(said_of(page, 0)).to_contain_text(words)
    after = page.get_by_test_id("masks").first.locator(".predictions")
    expect(after.get_by_role("heading", level=2)).to_have_text("What comes after “T”, position 0")
    first = after.locator("ol").first.inner_text()
    page.keyboard.press("PageDown")
    expect(said_of(page, 0)).to_contain_text("Causal mask: query e at position 4, key e at position 4, visible.")
    expect(after.get_by_role("heading", level=2)).to_have_text("What comes after “e”, position 4")
    expect(after.get_by_text("5 of 5 keys visible.")).to_be_visible()
    assert after.locator("ol").first.inner_text() != first

    masks(page, 1).focus()
    page.keyboard.press("End")
    expect(said_of(page, 1)).to_have_text("Padding mask: query ∅ at position 6, key ∅ at position 6, hidden.")
    assert "is a padding token" in masks(page, 1).get_attribute("aria-label")
    masks(page, 2, 2).focus()
    page.keyboard.press("ArrowDown")
    words = "Both: causal and padding: query ∅ at position 4, key o at position 0, visible."
    expect(said_of(page, 2)).to_have_text(words)

    page.get_by_role("link", name="Positions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Positions")
    wait_ready(page)
    page.get_by_role("link", name="Masks").click()
    expect(editor(page)).to_have_value("To be\nor")
    wait_ready(page)

    editor(page).fill("To be\nor\n<b>é\nnot")
    editor(page).press("Control+Enter")
    until_written(page, [*"To␣be", *"or∅∅∅", *"not∅∅"])
    expect(page.get_by_text("Line 3 has")).to_contain_text("é")
    expect(editor(page)).to_have_value("To be\nor\n<b>é\nnot")
    expect(page).to_have_url(re.compile(r"batch=To\+be%0Aor%0A%3Cb%3E%C3%A9%0Anot"))

    page.get_by_role("button", name="Restore the examples").click()
    expect(editor(page)).to_have_value("KING:\nROMEO:\nBut, soft\nTo be, or not")
    expect(page).not_to_have_url(re.compile("batch=To"))
    wait_ready(page)


def test_nothing_is_clipped_or_overlaps(masks_page):
    page = masks_page(f"{LONG}&{LONG_LINE}", width=390, dark=True)
    fits(page, rows=3)
    # The batch scrolls inside itself, so that it can be read.
    assert picture(page).evaluate("(box) => box.scrollWidth > box.clientWidth && box.clientWidth < innerWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    note = page.get_by_test_id("masks").first.locator(".note")
    expect(note).to_have_text(re.compile("^Every (second|third) token is labelled; point at or tap a cell to see both"))
    page.emulate_media(color_scheme="light")
    for width, height in ((1440, 900), (960, 540), (420, 900)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)  # plotly draws anew when its box has come to rest
        expect(charts(page)).to_have_count(CHARTS)
        until(page, lambda: charts(page).evaluate_all(OVERLAPPING) == [])
        until(page, lambda: charts(page).evaluate_all(CRAMPED) == [])
        until(page, lambda: page.get_by_text(re.compile("Every (second|third) token is labelled")).count() >= 2)
        until(page, lambda: page.get_by_test_id("stMain").evaluate(IS_WIDE_ENOUGH))
    page.set_viewport_size({"width": 1280, "height": 900})
    masks_page("?model=translator", page)
    fits(page, rows=1)
    expect(page.get_by_test_id("masks").nth(2).locator(".note")).to_be_empty()


def fits(page, rows):
    """The page is wide enough for its pictures, of which those of the batch stand in so many rows."""
    until(page, lambda: page.get_by_test_id("stMain").evaluate(IS_WIDE_ENOUGH))
    until(page, lambda: charts(page).evaluate_all(MISPLACED) == [])
    shown = page.get_by_test_id("masks").nth(2).locator("figure")
    until(page, lambda: len({shown.nth(i).bounding_box()["y"] for i in range(3)}) == rows)


BOTTOM = "(element) => element.getBoundingClientRect().bottom"


def test_the_picture_is_on_the_first_screen_and_the_page_is_short(visit, wait_ready):
    page = visit("Masks?model=shakespeare", width=1280, height=720)
    for path, parts in (("Masks", ("canvas.picture", ".predictions ol >> nth=1")), ("Positions", ("table",))):
        page.get_by_role("link", name=path).click()
        page.locator(parts[0]).first.wait_for()
        wait_ready(page)
        for part in parts:
            until(page, lambda part=part: page.locator(part).first.evaluate(BOTTOM) <= 720)
        until(page, lambda: page.get_by_test_id("stMain").evaluate("(main) => main.scrollHeight") < 1500)
