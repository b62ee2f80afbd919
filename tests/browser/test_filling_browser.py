"""Tests the page Generate with a model that fills masks, in a browser."""

import json
import re
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.browser.address_bar import address
from tests.browser.attention_page import until

expect = pytest.importorskip("playwright.sync_api").expect
PROMPT = "To [mask]e [mask]r"
MASKS = (3, 6)


def asked(server, **parameters):
    with urlopen(f"{server.url}/api/masked?{urlencode({'model': 'encoder', **parameters})}") as answer:
        return json.load(answer)


def words(page):
    return page.get_by_test_id("filling-strip").get_by_role("option")


def press(page, name):
    page.get_by_test_id("filling").get_by_role("button", name=name, exact=True).click()


def test_masks_are_filled_by_the_model_and_by_hand_and_every_change_is_taken_back(visit, tiny_server, browser_errors):
    page = visit(f"?model=encoder&prompt={PROMPT}")
    status = page.get_by_test_id("filling-status")
    answer = asked(tiny_server, text=PROMPT)
    first, second = sorted(answer["masks"], key=lambda mask: -mask["candidates"][0]["probability"])
    expect(status).to_contain_text("2 masks. The surest:")
    expect(words(page)).to_have_count(8)
    for name in ("Undo", "Clear"):
        expect(page.get_by_test_id("filling").get_by_role("button", name=name, exact=True)).to_be_disabled()
    for position in MASKS:
        expect(words(page).nth(position)).to_have_text("[mask]")
    label = answer["kinds"][str(first["candidates"][0]["id"])][0]
    expect(page.get_by_test_id("filling-candidates").get_by_role("button").first).to_contain_text(label)

    press(page, "Fill in")
    expect(status).to_contain_text("One mask.")
    expect(words(page).nth(first["position"])).to_have_attribute("aria-label", re.compile(f"^{re.escape(label)}, "))
    expect(words(page).nth(second["position"])).to_have_text("[mask]")
    press(page, "Fill in")
    expect(status).to_contain_text("Every mask is filled in")
    press(page, "Undo")
    expect(status).to_contain_text("One mask.")
    press(page, "Clear")
    expect(status).to_contain_text("2 masks.")
    press(page, "Fill all")
    expect(status).to_contain_text("Every mask is filled in")
    press(page, "Clear")
    expect(status).to_contain_text("2 masks.")

    # A word is masked by hand, and filled with another candidate.
    words(page).nth(0).click()
    expect(page.get_by_test_id("filling-candidates")).to_contain_text("“T”, token 0, isn't masked")
    press(page, "Mask this word")
    expect(status).to_contain_text("3 masks.")
    expect(words(page).nth(0)).to_have_text("[mask]")
    second = page.get_by_test_id("filling-candidates").get_by_role("button").nth(1)
    second.click()
    expect(status).to_contain_text("2 masks.")
    expect(second).to_contain_text("✓")
    press(page, "Mask it again")
    expect(status).to_contain_text("3 masks.")
    press(page, "Show the word again")
    expect(status).to_contain_text("2 masks.")
    expect(words(page).nth(0)).to_have_text("T")
    until(page, lambda: "query=0" in address(page))

    # A server that is away is said, and the next click asks again.
    page.route("**/api/masked*", lambda route: route.abort())
    press(page, "Fill in")
    problem = page.get_by_role("alert").filter(has_text="The server can't be reached")
    expect(problem).to_be_visible()
    page.unroute("**/api/masked*")
    press(page, "Fill in")
    expect(status).to_contain_text("One mask.")
    expect(problem).to_be_hidden()
    assert all("Failed to load resource: net::ERR_FAILED" in error for error in browser_errors), browser_errors
    browser_errors.clear()
    press(page, "Clear")
    expect(status).to_contain_text("2 masks.")

    # Attention is that of the head, and goes on behind the mask.
    attention = page.get_by_test_id("filling-attention")
    words(page).nth(MASKS[0]).click()
    attention.get_by_label("Layer").select_option("1")
    expect(attention).to_contain_text("in layer 1, head 0: “[mask]” looks most at token")
    expect(attention).to_contain_text("% on the words after it")
    press(page, "Open in Inside")
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    page.wait_for_function("location.search.includes('inside=logits')")
    until(page, lambda: f"place={MASKS[0]}" in address(page))

    # A prompt without masks says what to do, on a phone.
    page.set_viewport_size({"width": 420, "height": 860})
    visit("?model=encoder&prompt=To be", page)
    expect(page.get_by_test_id("filling-status")).to_have_text("No word is masked. Click one, and mask it.")
    press(page, "Mask this word")
    expect(page.get_by_test_id("filling-status")).to_contain_text("One mask.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
