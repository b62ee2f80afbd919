"""Opens the page Generate in browser tests, and reads its buttons, tokens and state."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

FOCUSED = """() => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active.innerText.trim().split("\\n").pop();
}"""
"""What is written on the element that has the focus, in a component's shadow root, too."""


def main_button(page, name):
    # Streamlit puts a "Stop" of its own into the header of a slow run.
    return page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True)


def live_text(page):
    return page.get_by_test_id("live-text")


def part(page, name):
    return live_text(page).locator(f"[data-part={name}]")


def branches(page):
    return part(page, "branchList").get_by_role("listitem")


def tokens(page):
    return page.get_by_test_id("live-text-token")


def candidates(page):
    return page.get_by_test_id("live-text-candidates").get_by_role("button")


def picture(page):
    return page.get_by_test_id("live-text-picture")


def labels(page):
    return tokens(page).evaluate_all("(spans) => spans.map((span) => span.getAttribute('aria-label'))")


def written(page):
    """The tokens that the address holds."""
    found = parse_qs(urlsplit(page.evaluate("location.href")).query).get("written", [""])[0]
    return [int(each) for each in found.split(".") if each]


def focused(page):
    return page.evaluate(FOCUSED)


def sampling_opened(page):
    """The part with the dials of sampling, which is closed at first."""
    drawn = page.get_by_test_id("live-text-drawn")
    if not drawn.is_visible():
        main_button(page, "Sampling").click()
    expect(drawn).to_be_visible()
    return drawn


def until_written(page, count):
    tokens(page).nth(count - 1).wait_for()


def until_shown(page):
    """Until the model has said what it thinks of the text that is there."""
    page.locator("[data-part=root][data-state=shown]").get_by_test_id("live-text").wait_for()


def until_at_rest(page, wait_ready):
    """Until nothing is being written, and the page has heard what was."""
    page.locator("[data-testid=live-text][data-live=false]").wait_for()
    wait_ready(page)


def write(page, wait_ready, count):
    """Press Generate, and wait for so many tokens and for the end of it."""
    before = tokens(page).count()
    main_button(page, "Generate").click()
    until_written(page, before + count)
    until_at_rest(page, wait_ready)


def look_at(page, name, words):
    """Choose a layer, or a head, by the words of its option."""
    dial = live_text(page).get_by_label(name, exact=True)
    dial.focus()  # as a hand does: what was typed elsewhere counts from then on
    dial.select_option(words)


def inspect(page, index):
    """Click a token, and wait until it is the one whose odds are shown."""
    tokens(page).nth(index).click()
    expect(tokens(page).nth(index)).to_have_attribute("aria-selected", "true")
    before = labels(page)[index - 1].split(", ")[0]
    panel = page.get_by_test_id("live-text-candidates")
    expect(panel).to_contain_text(f"Candidates for token {index}, after “{before}”")
    expect(page).to_have_url(re.compile(f"step={index}"))
