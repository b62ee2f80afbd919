"""Tests the exports of the page Inside in a browser."""

import pytest

from tests.browser.attention_page import Traffic, parameters, until
from transformer import Recording

pytest.importorskip("playwright.sync_api")

LOADED = "(part) => performance.getEntriesByType('resource').some(({ name }) => name.includes(part))"


@pytest.fixture
def page(tiny_server, new_page, wait_ready):
    """A visitor who has followed a link to a tensor."""
    page = new_page()
    page.traffic = Traffic(page)
    page.goto(f"{tiny_server.url}/Inside?prompt=To%20be&inside=blocks.1.attn.hook_pattern")
    page.locator("[data-testid=inside][data-open='blocks.1.attn.hook_pattern']").wait_for()
    wait_ready(page)
    yield page
    page.traffic.stop()


def test_what_is_open_is_in_the_address_and_is_what_is_saved(page, wait_ready):
    page.traffic.forget()
    trail = page.get_by_role("navigation").get_by_role("button")
    trail.nth(0).click()
    page.get_by_role("button", name="layer 0", exact=True).first.click()
    until(page, lambda: parameters(page).get("inside") == "blocks.0")
    assert page.traffic.page_runs == 0
    assert not page.evaluate(LOADED, "SyntaxHighlighter"), "1.5 MB that the picture doesn't need"
    for words in ("Export this view", "Export these numbers"):
        page.get_by_test_id("stMain").locator("summary", has_text=words).click()
        wait_ready(page)
    code = page.get_by_test_id("stCode").first
    assert "open='blocks.0'" in code.inner_text()
    page.get_by_role("combobox", name="Find a tensor").fill("blocks.0.mlp.hook_pre")
    page.keyboard.press("Enter")
    until(page, lambda: "open='blocks.0.mlp.hook_pre'" in code.inner_text())  # which the page says, and so is run
    wait_ready(page)
    page.set_viewport_size({"width": 420, "height": 900})
    for lines in page.get_by_test_id("stCode").locator("pre").all():  # which can't be reached by keys, to be scrolled
        assert lines.evaluate("(pre) => pre.scrollWidth <= pre.clientWidth")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save these numbers").click()
    saved = Recording.from_bytes(download.value.path().read_bytes())
    assert download.value.suggested_filename == "shakespeare-inside.safetensors"
    assert saved.tensors.keys() == {"blocks.0.mlp.hook_pre"}
    assert saved.tensors["blocks.0.mlp.hook_pre"].shape == (5, 64) and len(saved.metadata["labels"]["text"]) == 5
