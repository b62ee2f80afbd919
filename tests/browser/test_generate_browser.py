"""Tests the page Generate in a browser: a text is written, stopped, cut off, branched, compared, and saved."""

import re

import pytest

from tests.browser.address_bar import address
from tests.browser.attention_page import Traffic, open_menu, turn_to, type_prompt, until
from tests.browser.generate_page import (
    branches,
    candidates,
    expect,
    inspect,
    labels,
    live_text,
    look_at,
    main_button,
    part,
    picture,
    sampling_opened,
    tokens,
    until_at_rest,
    until_shown,
    until_written,
    write,
    written,
)
from tests.browser.test_accessibility import TYPED, look_through, no_markup_is_made_of_what_was_typed

PROMPT = "ROMEO:"
AT_ONCE = """(root, [selector, values]) => values.map((value) => {
  const input = root.querySelector(selector);
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  const parts = ["details", "title", "largest", "drawnPlace", "verdict"];
  return parts.map((name) => root.querySelector(`[data-part=${name}]`).textContent);
})"""
"""What is shown at the moment each of several values is put in, one right after the other: before the server can have
answered."""
KEEP_WHAT_IS_LEFT = """(event) => addEventListener(event, () => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=live-text]")).find(Boolean);
  const spans = root?.querySelectorAll("[data-testid=live-text-token]");
  if (root) localStorage.left = [...spans].map((span) => span.innerText).join("");
}, { capture: true })"""
"""Notes the text that is on screen when its page is left."""


@pytest.fixture
def watched(new_page):
    """A page, and what is said between it and the server."""
    page = new_page()
    traffic = Traffic(page)
    yield page, traffic
    traffic.stop()


def raw_text(page):
    return "".join(tokens(page).all_inner_texts())


def until_it_reads(page, expected):
    until(page, lambda: labels(page) == expected)


def dial(page, name, value):
    sampling_opened(page)
    page.get_by_label(name).fill(str(value))


def test_a_text_is_stopped_left_cut_off_and_goes_on(watched, tiny_server, wait_ready, browser_errors):
    page, traffic = watched
    held, is_open = [], []
    page.route("**/api/scores*", lambda route: route.continue_() if is_open else held.append(route))
    page.goto(f"{tiny_server.url}/?prompt={PROMPT}&temperature=1&pace=fast")
    number, heat = page.get_by_label("Number of tokens"), page.get_by_label("Temperature")
    number.fill("5")
    number.blur()
    heat.fill("0")
    until(page, lambda: held)
    page.get_by_role("button", name="Next token").dispatch_event("click")  # of a text that hasn't come
    is_open.append(True)
    for route in held:
        route.continue_()
    until_shown(page)
    page.unroute("**/api/scores*")
    assert raw_text(page) == PROMPT
    write(page, wait_ready, 5)
    assert tokens(page).count() == len(PROMPT) + 5, "dials that are turned before the first answer count"
    for place in range(len(PROMPT), len(PROMPT) + 5):
        tokens(page).nth(place).click()
        assert "✓" in candidates(page).first.inner_text()

    # Stopped.
    dial(page, "Temperature", 1)
    dial(page, "Number of tokens", 500)
    number.blur()
    wait_ready(page)
    traffic.forget()
    main_button(page, "Generate").click()
    until_written(page, len(PROMPT) + 8)
    assert candidates(page).evaluate_all("(all) => all.every(({ disabled, ariaDisabled }) => disabled || ariaDisabled)")
    candidates(page).nth(3).click(force=True)
    until_written(page, tokens(page).count() + 2)
    main_button(page, "Stop").click()
    stopped = raw_text(page)
    until_at_rest(page, wait_ready)
    expect(candidates(page).first).to_be_enabled()
    assert traffic.page_runs == 0
    assert raw_text(page) == stopped
    count = tokens(page).count()
    for _ in range(2):
        main_button(page, "Step").click()
    until_written(page, count + 2)
    until_at_rest(page, wait_ready)

    # Another page, and a reload, find what was on screen.
    for event, leave in (("click", lambda: turn_to(page, "Masks")), ("pagehide", page.reload)):
        begun = tokens(page).count()
        main_button(page, "Generate").click()
        until_written(page, begun + 10)
        page.evaluate(KEEP_WHAT_IS_LEFT, event)
        leave()
        if event == "click":
            wait_ready(page)
            turn_to(page, "Generate")
        until_shown(page)
        until_at_rest(page, wait_ready)
        left = page.evaluate("localStorage.left")
        assert len(left) >= begun + 10 and raw_text(page).startswith(left), event
        until(page, lambda: len(PROMPT) + len(written(page)) == tokens(page).count())
        expect(main_button(page, "Stop")).to_be_disabled()

    # Nothing is written after a prompt that can't be read, and the link stays that of the text on screen.
    shown, link = raw_text(page), address(page)
    main_button(page, "Generate").click()
    until_written(page, tokens(page).count() + 3)
    type_prompt(page, "中")
    page.get_by_text("Shown below is the last prompt that could be read").wait_for()
    expect(part(page, "status")).to_have_text("The prompt can't be read. Correct it to generate.")
    expect(main_button(page, "Generate")).to_be_disabled()
    assert raw_text(page).startswith(shown) and address(page).startswith(link.split("&written")[0])

    # A connection that breaks is taken up again, and what can't be written says so.
    type_prompt(page, PROMPT)
    main_button(page, "Clear").click()
    dial(page, "Number of tokens", 70)
    page.get_by_label("Pace").select_option("8 tokens a second")
    wait_ready(page)
    expect(tokens(page)).to_have_count(len(PROMPT))
    main_button(page, "Generate").click()
    until_written(page, len(PROMPT) + 5)
    page.route("**/api/generate*", lambda route: route.abort())
    dial(page, "Temperature", 0.5)  # asks anew, in vain
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("can't be reached just now")
    expect(main_button(page, "Stop")).to_be_enabled()
    page.unroute("**/api/generate*")
    page.get_by_label("Pace").select_option("as fast as it can")
    until_written(page, len(PROMPT) + 70)
    expect(alert).to_be_hidden()
    until_at_rest(page, wait_ready)
    refusal = {"error": "There is no such model.", "parameter": "model"}
    page.route("**/api/generate*", lambda route: route.fulfill(status=400, json=refusal))
    main_button(page, "Generate").click()
    expect(alert).to_contain_text("There is no such model.")
    expect(main_button(page, "Generate")).to_be_enabled()
    page.unroute("**/api/generate*")
    browser_errors.clear()


def test_what_was_written_is_looked_at_without_the_server_branched_compared_linked_and_saved(
    watched, tiny_server, new_page, wait_ready, tmp_path
):
    page, traffic = watched
    page.goto(f"{tiny_server.url}/?prompt={PROMPT}&tokens=12&pace=unbounded&temperature=1")
    until_shown(page)
    wait_ready(page)
    write(page, wait_ready, 12)
    first = labels(page)
    answered_without_the_server(page, traffic)
    place = what_the_dials_offer_is_written_in_a_branch(page, first)
    count = place + 1 - len(PROMPT)
    expect(branches(page).last).to_contain_text(re.compile(f"{count} tokens?, shown"))
    main_button(page, "Return to branch 1").click()
    until_it_reads(page, first)

    # Another candidate begins a branch.
    place = len(PROMPT) + 5
    inspect(page, place)
    row = next(row for row in range(10) if "✓" not in candidates(page).nth(row).inner_text())
    label = candidates(page).nth(row).locator(".label").inner_text()
    candidates(page).nth(row).click()
    expect(tokens(page)).to_have_count(place + 1)
    until(page, lambda: not live_text(page).locator("[data-part=candidates] [aria-disabled=true]").count())
    page.mouse.down(click_count=2)  # of a double click, whose first half has been answered: it counts once
    page.mouse.up(click_count=2)
    expect(branches(page)).to_have_count(3)
    expect(branches(page).last).to_contain_text(f"at {place}: “{label}” instead of “{first[place].split(', ')[0]}”")
    write(page, wait_ready, 12)
    other = labels(page)
    branches(page).first.get_by_role("button", name="Compare").click()
    compared = page.get_by_test_id("live-text-compared")
    beside = compared.locator("[data-part=otherText] .token")
    expect(beside).to_have_count(12 - 5)
    assert beside.evaluate_all("(spans) => spans.map((span) => span.ariaLabel)") == first[place:]
    expect(compared.locator("[data-part=ownText] .token")).to_have_count(len(other) - place)
    branches(page).first.get_by_role("button", name="Close").click()
    expect(compared).to_be_hidden()
    main_button(page, "Clear").click()
    expect(tokens(page)).to_have_count(len(PROMPT))
    expect(page).not_to_have_url(re.compile("written="))
    main_button(page, "Undo").click()
    until_it_reads(page, other)
    wait_ready(page)
    until(page, lambda: len(PROMPT) + len(written(page)) == tokens(page).count())

    # A link brings all of it to another tab, where something else becomes of it.
    listed = branches(page).all_inner_texts()
    another = new_page()
    another.goto(address(page))
    until_shown(another)
    until_it_reads(another, other)
    expect(branches(another)).to_have_count(len(listed))
    branches(another).locator("button[aria-disabled=false]", has_text="Return").first.click()
    until_it_reads(another, first)
    write(another, wait_ready, 12)

    # All of it survives a reload, and another prompt; and it can be saved.
    page.reload()
    until_shown(page)
    wait_ready(page)
    until(page, lambda: (labels(page), branches(page).all_inner_texts()) == (other, listed))
    type_prompt(page, "KING:")
    expect(tokens(page)).to_have_count(len("KING:"))
    type_prompt(page, PROMPT)
    until_it_reads(page, other)
    page.get_by_text("Written tokens as a table").click()
    rows = part(page, "table").get_by_role("row")
    expect(rows).to_have_count(len(other) - len(PROMPT) + 1)
    for kind in ("csv", "png"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save as {kind.upper()}").press("Enter")
        download.value.save_as(tmp_path / kind)
    lines = (tmp_path / "csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "position,token,id,probability,rank,entropy (nats)"
    assert len(lines) == len(other) - len(PROMPT) + 1 and lines[1].startswith(f"{len(PROMPT)},")
    content = (tmp_path / "png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) > 20_000

    expect(open_menu(page, "About this model")).to_contain_text("Texts: These continue a text in the style of")
    page.keyboard.press("Escape")

    # With all of it open, and with markup as the prompt, nothing is wrong with the page.
    branches(page).first.get_by_role("button", name="Compare").click()
    page.get_by_test_id("live-text-compared").wait_for()
    sampling_opened(page)
    look_through(page, wait_ready, "dark")
    type_prompt(page, TYPED)
    wait_ready(page)
    no_markup_is_made_of_what_was_typed(page)


def answered_without_the_server(page, traffic):
    """The timeline, the dials and the heads."""
    traffic.settle()
    traffic.forget()
    positions = range(len(PROMPT), len(PROMPT) + 12)
    timeline = ["[data-part=timeline]", [str(at) for at in positions]]
    seen = live_text(page).evaluate(AT_ONCE, timeline)
    for at, (details, _, largest, place, verdict) in zip(positions, seen, strict=True):
        assert details.startswith(f"Token {at} ") and place.startswith(f"token {at} ")
        assert f": token {at - 1} “" in largest
        assert re.fullmatch("So “.+” was written.", verdict)
    turned = live_text(page).evaluate(AT_ONCE, ["[data-setting=temperature]", ["0", "0.05", "1.95", "1"]])
    assert "still falls on" in turned[0][4] or "now falls on" in turned[0][4]
    assert turned[3][4] == seen[-1][4]
    before = picture(page).inner_text()
    look_at(page, "Layer", "layer 1")
    look_at(page, "Head", "head 1")
    expect(part(page, "largest")).to_contain_text("in layer 1, head 1: token")
    assert picture(page).inner_text() != before
    seen = live_text(page).evaluate(AT_ONCE, timeline)
    assert all("looks most at token" in largest for _, _, largest, _, _ in seen)
    traffic.settle()
    assert traffic.page_runs == 0


def what_the_dials_offer_is_written_in_a_branch(page, first):
    dial(page, "Temperature", 0.05)
    offer = part(page, "instead")
    for place in range(len(PROMPT), len(PROMPT) + 12):
        tokens(page).nth(place).click()
        if offer.is_visible():
            break
    token = re.search("now falls on “(.+)”", part(page, "verdict").inner_text())[1]
    assert offer.inner_text() == f"Write “{token}” here"
    offer.click()
    expect(tokens(page)).to_have_count(place + 1)
    assert labels(page)[:place] == first[:place] and labels(page)[place].startswith(f"{token}, ")
    expect(branches(page)).to_have_count(2)
    return place
