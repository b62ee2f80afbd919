"""Tests a training in a browser: it is drawn as it goes on, whatever its page does, and its model can be used."""

import re

import pytest

from tests.browser.attention_page import expect_model_of, turn_to, until
from tests.browser.generate_page import main_button
from tests.browser.test_accessibility import look_through
from transformer.checkpoints.archive import unpack_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect

LONG = "?learn=task&task=sort-letters&shape=dials&n_layers=1&n_heads=2&d_model=96&steps=3000"
PIXELS = """(canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]"""
"""What a head of the grid looks like."""


def steps(page):
    """How many steps the training on the page has taken."""
    text = page.get_by_text(re.compile("^Training: step ")).first.inner_text()
    return int(re.search(r"step ([\d,]+) of", text)[1].replace(",", ""))


def save(page, folder, press):
    """The file that a press leads to, saved."""
    with page.expect_download() as download:
        press()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file.read_bytes()


def test_a_training_goes_on_whatever_its_page_does_and_its_model_can_be_used_and_taken_away(
    visit, wait_ready, tmp_path
):
    page = visit(f"Train{LONG}")
    heads, chart = page.get_by_test_id("head-grid-head"), page.get_by_test_id("loss-chart")
    main_button(page, "Train").click()
    page.get_by_text(re.compile("^Training: step [1-9]")).first.wait_for()
    expect(heads).to_have_count(2)
    canvas = heads.first.locator("canvas")
    early = canvas.evaluate(PIXELS)
    first_row = early[: 4 * canvas.evaluate("(canvas) => canvas.width")]
    assert first_row[:4] == [253, 231, 37, 255] and first_row[-1] == 0  # the first token sees itself alone: weight 1
    canvas.evaluate("(canvas) => { canvas.tagged = true; }")
    until(page, lambda: canvas.evaluate(PIXELS) != early)
    assert canvas.evaluate("(canvas) => canvas.tagged"), "the next picture is drawn over the one before"
    expect(chart.locator(".train")).to_have_attribute("d", re.compile("L"))
    heads.last.click()
    expect(heads.last).to_have_attribute("aria-pressed", "true")
    pictures = page.get_by_role("button", name="Save as PNG")
    expect(pictures).to_have_count(2)
    box = chart.bounding_box()
    for number, least in enumerate(((2 * box["width"], 2 * box["height"]), (2 * 160, 160))):
        content = save(page, tmp_path, pictures.nth(number).click)
        assert content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) > 5_000
        assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) > least

    # It goes on while another page is open, and the page is loaded anew.
    turn_to(page, "Positions")
    expect(page.get_by_text("Your training continues")).to_be_visible()
    turn_to(page, "Train")
    expect(heads).to_have_count(2)
    before = steps(page)
    page.reload()
    expect(heads).to_have_count(2)
    assert steps(page) > before

    main_button(page, "Stop and keep").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    assert page.get_by_text("you had been away").count() == 0
    wait_ready(page)
    look_through(page, wait_ready, "dark")
    page.set_viewport_size({"width": 1280, "height": 900})
    content = save(page, tmp_path, main_button(page, "Download it").click)
    assert unpack_checkpoint(content).model.config.n_layers == 1
    main_button(page, "Look at its attention").click()
    page.get_by_role("heading", level=1, name="Attention").wait_for()
    expect(heads.first).to_be_visible()
    wait_ready(page)
    expect_model_of(page, "Yours")
