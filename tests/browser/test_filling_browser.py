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


def test_masks_are_filled_by_the_model_and_by_hand_and_every_change_is_taken_back(visit, tiny_server, browser_errors):
    page = visit(f"?model=encoder&prompt={PROMPT}")
    filling, status = page.get_by_test_id("filling"), page.get_by_test_id("filling-status")
    words = page.get_by_test_id("filling-strip").get_by_role("option")
    candidates = page.get_by_test_id("filling-candidates").get_by_role("button")

    def press(name, said):
        filling.get_by_role("button", name=name, exact=True).click()
        expect(status).to_contain_text(said)

    with urlopen(f"{tiny_server.url}/api/masked?{urlencode({'model': 'encoder', 'text': PROMPT})}") as asked:
        answer = json.load(asked)
    first, second = sorted(answer["masks"], key=lambda mask: -mask["candidates"][0]["probability"])
    label = answer["kinds"][str(first["candidates"][0]["id"])][0]
    expect(status).to_contain_text("2 masks. The surest:")
    for name in ("Undo", "Clear"):
        expect(filling.get_by_role("button", name=name, exact=True)).to_be_disabled()
    masked = ["[mask]" if at in MASKS else re.compile(".+") for at in range(8)]
    expect(words).to_have_text(masked)
    expect(candidates.first).to_contain_text(label)
    press("Fill in", "One mask.")
    expect(words.nth(first["position"])).to_have_attribute("aria-label", re.compile(f"^{re.escape(label)}, "))
    expect(words.nth(second["position"])).to_have_text("[mask]")
    press("Fill in", "Every mask is filled in")
    press("Undo", "One mask.")
    press("Clear", "2 masks.")
    press("Fill all", "Every mask is filled in")
    press("Clear", "2 masks.")

    # A word is masked by hand, and filled with another candidate.
    words.nth(0).click()
    expect(page.get_by_test_id("filling-candidates")).to_contain_text("“T”, token 0, isn't masked")
    press("Mask this word", "3 masks.")
    expect(words.nth(0)).to_have_text("[mask]")
    candidates.nth(1).click()
    expect(status).to_contain_text("2 masks.")
    expect(candidates.nth(1)).to_contain_text("✓")
    press("Mask it again", "3 masks.")
    press("Show the word again", "2 masks.")
    expect(words.nth(0)).to_have_text("T")
    until(page, lambda: "query=0" in address(page))

    # A server that is away is said, and the next click asks again.
    page.route("**/api/masked*", lambda route: route.abort())
    filling.get_by_role("button", name="Fill in", exact=True).click()
    problem = page.get_by_role("alert").filter(has_text="The server can't be reached")
    expect(problem).to_be_visible()
    page.unroute("**/api/masked*")
    press("Fill in", "One mask.")
    expect(problem).to_be_hidden()
    assert all("Failed to load resource: net::ERR_FAILED" in error for error in browser_errors), browser_errors
    browser_errors.clear()
    press("Clear", "2 masks.")

    # Attention is that of the head, and goes on behind the mask; on a phone, too.
    page.set_viewport_size({"width": 420, "height": 860})
    attention = page.get_by_test_id("filling-attention")
    words.nth(MASKS[0]).click()
    attention.get_by_label("Layer").select_option("1")
    expect(attention).to_contain_text("in layer 1, head 0: “[mask]” looks most at token")
    expect(attention).to_contain_text("% on the words after it")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    filling.get_by_role("button", name="Open in Inside").click()
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    until(page, lambda: "inside=logits" in address(page) and f"place={MASKS[0]}" in address(page))
