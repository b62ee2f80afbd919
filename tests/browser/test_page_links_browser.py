"""Tests the links between Attention, Inside and Generate in a browser."""

import pytest

from tests.browser.attention_page import WHOLE, parameters, shown, turn_to, until, until_shown

expect = pytest.importorskip("playwright.sync_api").expect

MOBILE = {"width": 420, "height": 900}


def by_hand(page):
    """What is said of the cell that is open on Inside, once its arithmetic is there."""
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    page.locator(".by-hand[data-state=shown]").wait_for()
    expect(page.locator(".by-hand .badge")).to_have_attribute("data-state", "equal")
    return page.locator(".by-hand .where").inner_text()


def test_a_weight_is_opened_inside_and_back_and_the_browser_returns(visit):
    page = visit("Attention?prompt=To be, or&layer=1&head=1&query=5&key=2")
    page.locator(WHOLE).wait_for()
    page.get_by_role("button", name="Open in Inside").click()
    place = "head 1, query “,” at position 5, key “␣” at position 2"
    assert by_hand(page).startswith(f"Attention weights, {place}: ")
    until(page, lambda: parameters(page).get("cell") == "1,5,2")
    page.set_viewport_size(MOBILE)  # where the links of the sidebar are out of sight
    page.get_by_role("button", name="layer 0", exact=True).first.click()
    page.get_by_role("button", name="Open in Attention").click()
    page.get_by_role("heading", level=1, name="Attention").wait_for()
    page.locator(WHOLE).wait_for()
    until(page, lambda: shown(page)[:3] == (0, 1, 5))
    page.go_back()
    page.locator("[data-testid=inside][data-open='blocks.0']").wait_for()
    page.go_back()
    until_shown(page, (1, 1, 5, 2))

    # So are the logits of the next token.
    page.set_viewport_size({"width": 1280, "height": 900})
    turn_to(page, "Generate")
    said = page.locator("[data-drawn=logits] .text")
    until(page, lambda: " has " in said.inner_text())
    token, logit = said.inner_text().split("“")[1].removesuffix(".").split("” has ")
    page.get_by_role("button", name="Open in Inside").click()
    where = by_hand(page)
    assert where.startswith("Logits, “r” at position 8, token ") and f"token “{token}”" in where
    assert where.rpartition(": ")[2].startswith(logit[:4])
