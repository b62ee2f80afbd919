"""Tests the grid of heads and the loss chart in a browser, with made-up numbers."""

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

DEMO = Path(__file__).with_name("component_app.py")


@pytest.fixture(scope="module")
def demo(serve):
    with serve(DEMO) as server:
        yield server


@pytest.fixture(scope="module")
def kept(chromium, demo, listen):
    """The page that tests share, unless one has failed on it, and what it reports."""
    with chromium.new_context() as context:
        errors = []
        listen(context, errors)
        yield SimpleNamespace(context=context, errors=errors, page=None)


@pytest.fixture
def open_grid(has_failed, kept, demo, browser_errors, wait_ready):
    """`open_grid(settings, width)`: the grid as it is when it is opened, on a page that is opened once."""

    def open_page(settings="", width=1280):
        new = kept.page is None
        page = kept.page = kept.page or kept.context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        if new:
            page.goto(f"{demo.url}/?{urlencode({'settings': settings})}")
        else:
            page.mouse.move(0, 0)
            page.get_by_role("link", name="Losses").click()  # and back: a grid begins anew with its page
            page.get_by_test_id("loss-chart").first.wait_for()
            page.get_by_label("Settings").fill(settings)
            page.get_by_label("Settings").press("Enter")
            wait_ready(page)
            page.get_by_role("link", name="Heads").click()
        page.get_by_test_id("head-grid-head").first.wait_for()
        wait_ready(page)
        return page

    yield open_page
    if has_failed() and kept.page:
        kept.page.close()
        kept.page = None
    browser_errors += kept.errors
    kept.errors.clear()


# The grid of heads


def test_heads_are_picked_by_click_and_keys(open_grid, wait_ready):
    page = open_grid()
    heads = page.get_by_test_id("head-grid-head")
    assert heads.count() == 24
    pressed = page.locator("[data-testid=head-grid-head][aria-pressed=true]")
    assert pressed.count() == 0
    page.get_by_role("button", name="Layer 2, head 4").click()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert pressed.get_attribute("aria-label") == "Layer 2, head 4"
    page.keyboard.press("Enter")
    assert pressed.get_attribute("aria-label") == "Layer 1, head 3"
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")  # other patterns
    wait_ready(page)
    assert pressed.get_attribute("aria-label") == "Layer 1, head 3"


def test_canvases_are_drawn_over_and_hidden_cells_are_empty(open_grid, wait_ready):
    page = open_grid()
    canvas = page.get_by_test_id("head-grid-head").first.locator("canvas")
    pixel = "(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data]"
    canvas.evaluate("(canvas) => { canvas.tagged = true; }")
    assert canvas.evaluate("(canvas) => [canvas.width, canvas.height]") == [40, 40]
    assert canvas.evaluate(pixel, [39, 0])[3] == 0
    assert canvas.evaluate(pixel, [0, 0]) == [253, 231, 37, 255]  # the first token sees only itself: weight 1
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    wait_ready(page)
    assert canvas.evaluate("(canvas) => canvas.tagged")
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before


@pytest.mark.parametrize("settings", ["layers=12&heads=12&size=100", "layers=1&heads=12"])
def test_a_large_grid_scrolls_inside_itself(open_grid, wait_ready, settings):
    page = open_grid(settings, width=360)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") == 0
    last = page.get_by_test_id("head-grid-head").last
    last.click()
    assert last.get_attribute("aria-pressed") == "true"


# Pictures to save


def saved_picture(page, tmp_path):
    """The PNG file of the button on screen, pressed with the keyboard: its width and height, and its bytes."""
    button = page.get_by_role("button", name="Save as PNG")
    button.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert file.suffix == ".png"
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24]), len(content)


def test_the_grid_is_saved_as_a_picture(open_grid, wait_ready, tmp_path):
    page = open_grid()
    width, height, size = saved_picture(page, tmp_path)
    assert width > 6 * 160 and height > 4 * 160  # 6 heads in each of 4 layers
    assert size > 20_000


def test_the_losses_are_saved_as_a_picture(open_grid, wait_ready, tmp_path):
    page = open_grid()
    page.get_by_role("link", name="Losses").click()
    page.get_by_test_id("loss-chart").locator(".train").wait_for()
    wait_ready(page)
    width, height, size = saved_picture(page, tmp_path)
    chart = page.get_by_test_id("loss-chart").bounding_box()
    assert width > 2 * chart["width"] and height > 2 * chart["height"]
    assert size > 10_000
