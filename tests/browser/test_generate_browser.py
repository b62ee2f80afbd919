"""Tests the page Generate in a browser: a text is written, stopped, branched, compared, kept, and saved."""

import re

import pytest

from tests.browser.address_bar import address
from tests.browser.attention_page import Traffic, turn_to, type_prompt, until
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
    text,
    tokens,
    until_at_rest,
    until_shown,
    until_written,
    write,
    written,
)
from transformer.inference.context_windows import window_start

PROMPT = "ROMEO:"
# What a view shows at the moment each of several values is put in, one right after the other: before the server can
# have answered.
AT_ONCE = """(root, [selector, values]) => values.map((value) => {
  const input = root.querySelector(selector);
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  const parts = ["details", "title", "largest", "drawnPlace", "verdict"];
  return parts.map((name) => root.querySelector(`[data-part=${name}]`).textContent);
})"""


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    """`visit(query, **options)`: a visitor of Generate that has come to rest, and what is said to the server."""
    followed = []

    def open_page(query="", **options):
        page = new_page(**options)
        traffic = Traffic(page)
        followed.append(traffic)
        page.goto(f"{tiny_server.url}/?prompt={PROMPT}&{query}")
        until_shown(page)
        wait_ready(page)
        traffic.settle()
        return page, traffic

    yield open_page
    for traffic in followed:
        traffic.stop()


def raw_text(page):
    return "".join(tokens(page).all_inner_texts())


def until_it_reads(page, expected):
    until(page, lambda: labels(page) == expected)


def dial(page, name, value):
    sampling_opened(page)
    page.get_by_label(name).fill(str(value))


KEEP_WHAT_IS_LEFT = """(event) => addEventListener(event, () => {
  const shadows = [...document.querySelectorAll("*")].map((element) => element.shadowRoot);
  const root = shadows.map((shadow) => shadow?.querySelector("[data-testid=live-text]")).find(Boolean);
  const spans = root?.querySelectorAll("[data-testid=live-text-token]");
  if (root) localStorage.left = [...spans].map((span) => span.innerText).join("");
}, { capture: true })"""
"""Notes the text that is on screen when its page is left."""


def test_a_text_is_stopped_stepped_and_goes_on_as_if_it_had_been_written_in_one_go(visit, wait_ready):
    page, traffic = visit("tokens=500&pace=fast&top_k=9")
    buttons = candidates(page)
    for row in (0, 9):
        label, value = (buttons.nth(row).locator(piece).inner_text() for piece in (".label", ".value"))
        name = buttons.nth(row).aria_snapshot().removeprefix('- button "')
        assert name.startswith(f"{label} {value} from the model, ")
    assert "cut off by the sampling" in buttons.nth(9).aria_snapshot()
    traffic.forget()
    main_button(page, "Generate").click()
    until_written(page, len(PROMPT) + 3)
    assert traffic.page_runs == 0
    assert buttons.evaluate_all("(all) => all.every(({ disabled, ariaDisabled }) => disabled || ariaDisabled)")
    buttons.nth(3).click(force=True)
    until_written(page, tokens(page).count() + 2)
    main_button(page, "Stop").click()
    stopped = raw_text(page)
    until_at_rest(page, wait_ready)
    expect(buttons.first).to_be_enabled()
    assert traffic.page_runs <= 1  # that is told what was written
    assert raw_text(page) == stopped
    until(page, lambda: len(written(page)) == len(stopped) - len(PROMPT))
    page.reload()
    until_shown(page)
    wait_ready(page)
    assert raw_text(page) == stopped
    for _ in range(2):
        main_button(page, "Step").click()
    until_written(page, len(stopped) + 2)
    until_at_rest(page, wait_ready)
    dial(page, "Number of tokens", 10)
    write(page, wait_ready, 10)
    in_parts = labels(page)
    count = len(in_parts) - len(PROMPT)
    main_button(page, "Clear").click()
    expect(tokens(page)).to_have_count(len(PROMPT))
    expect(main_button(page, "Clear")).to_be_disabled()
    expect(page).not_to_have_url(re.compile("written="))
    wait_ready(page)
    dial(page, "Number of tokens", count)
    write(page, wait_ready, count)
    until_it_reads(page, in_parts)


def test_timeline_dials_and_heads_are_answered_without_the_server_and_another_tab_has_its_own_text(visit, wait_ready):
    page, traffic = visit("tokens=20&pace=unbounded&temperature=1")
    write(page, wait_ready, 20)
    first = labels(page)
    traffic.settle()
    traffic.forget()
    positions = range(len(PROMPT), len(PROMPT) + 20)
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
    until(page, lambda: traffic.page_runs)
    traffic.settle(1.0)  # after which the page has been told all that the hand has come to
    assert traffic.page_runs <= 3  # of what was changed, not of each value on the way
    traffic.forget()
    seen = live_text(page).evaluate(AT_ONCE, timeline)
    assert all("looks most at token" in largest for _, _, largest, _, _ in seen)
    traffic.settle()
    assert traffic.page_runs == 0

    # What the dials offer instead is written in a branch.
    dial(page, "Temperature", 0.05)
    offer = part(page, "instead")
    for place in positions:
        tokens(page).nth(place).click()
        if offer.is_visible():
            break
    token = re.search("now falls on “(.+)”", part(page, "verdict").inner_text())[1]
    assert offer.inner_text() == f"Write “{token}” here"
    offer.click()
    expect(tokens(page)).to_have_count(place + 1)
    assert labels(page)[:place] == first[:place] and labels(page)[place].startswith(f"{token}, ")
    expect(branches(page)).to_have_count(2)

    # Another tab of the same browser has a text of its own.
    other, _ = visit("tokens=10&pace=unbounded&seed=2")
    expect(tokens(other)).to_have_count(len(PROMPT))
    write(other, wait_ready, 10)
    texts = raw_text(page), raw_text(other)
    assert texts[0] != texts[1]
    for tab, text_before in zip((page, other), texts, strict=True):
        tab.reload()
        until_shown(tab)
        until(tab, lambda tab=tab, text_before=text_before: raw_text(tab) == text_before)


def test_dials_that_are_turned_before_the_first_answer_count(tiny_server, new_page, wait_ready):
    page, held, is_open = new_page(), [], []
    page.route("**/api/scores*", lambda route: route.continue_() if is_open else held.append(route))
    page.goto(f"{tiny_server.url}/?prompt={PROMPT}&temperature=1&pace=unbounded")
    number, heat = page.get_by_label("Number of tokens"), page.get_by_label("Temperature")
    number.fill("5")
    number.blur()
    heat.fill("0")
    assert (number.input_value(), heat.input_value()) == ("5", "0")
    until(page, lambda: held)
    is_open.append(True)
    for route in held:
        route.continue_()
    until_shown(page)
    page.unroute("**/api/scores*")
    write(page, wait_ready, 5)
    assert tokens(page).count() == len(PROMPT) + 5
    for place in range(len(PROMPT), len(PROMPT) + 5):
        tokens(page).nth(place).click()
        assert "✓" in candidates(page).first.inner_text()


def test_a_branch_is_listed_compared_undone_and_returned_to(visit, wait_ready, new_page, tmp_path):
    page, _ = visit("tokens=12&pace=unbounded")
    write(page, wait_ready, 12)
    first = labels(page)
    assert not part(page, "branches").is_visible() and not part(page, "aside").is_visible()
    place = len(PROMPT) + 5
    inspect(page, place)
    row = next(row for row in range(10) if "✓" not in candidates(page).nth(row).inner_text())
    label = candidates(page).nth(row).locator(".label").inner_text()
    candidates(page).nth(row).click()
    expect(tokens(page)).to_have_count(place + 1)
    until(page, lambda: not live_text(page).locator("[data-part=candidates] [aria-disabled=true]").count())
    page.mouse.down(click_count=2)  # of a double click, whose first half has been answered: it counts once
    page.mouse.up(click_count=2)
    expect(branches(page)).to_have_count(2)
    expect(part(page, "status")).to_have_text("6 tokens written in branch 2. Branch 1 is kept.")
    expect(branches(page).last).to_contain_text("6 tokens, shown")
    main_button(page, "Return to branch 1").click()
    until_it_reads(page, first)
    expect(part(page, "aside")).to_be_hidden()
    branches(page).last.get_by_role("button", name="Return").click()
    expect(tokens(page)).to_have_count(place + 1)
    expect(branches(page).last).to_contain_text(f"at {place}: “{label}” instead of “{first[place].split(', ')[0]}”")
    write(page, wait_ready, 12)
    other = labels(page)

    branches(page).first.get_by_role("button", name="Compare").click()
    compared = page.get_by_test_id("live-text-compared")
    beside = compared.locator("[data-part=otherText] .token")
    expect(beside).to_have_count(12 - 5)
    assert beside.evaluate_all("(spans) => spans.map((span) => span.ariaLabel)") == first[place:]
    expect(compared.locator("[data-part=ownText] .token")).to_have_count(len(other) - place)
    expect(part(page, "ownTitle")).to_contain_text(
        re.compile(rf"Branch 2 from token {place} on: \d+\.\d\d nats per token")
    )
    branches(page).first.get_by_role("button", name="Close").click()
    expect(compared).to_be_hidden()

    main_button(page, "Undo").click()
    until_it_reads(page, first)
    expect(main_button(page, "Undo")).to_be_disabled()
    branches(page).last.get_by_role("button", name="Return").click()
    until_it_reads(page, other)
    main_button(page, "Clear").click()
    expect(tokens(page)).to_have_count(len(PROMPT))
    main_button(page, "Undo").click()
    until_it_reads(page, other)
    wait_ready(page)
    until(page, lambda: len(PROMPT) + len(written(page)) == tokens(page).count())

    # All of it survives a reload and a link.
    listed = branches(page).all_inner_texts()
    page.reload()
    until_shown(page)
    wait_ready(page)
    until(page, lambda: (labels(page), branches(page).all_inner_texts()) == (other, listed))
    another = new_page(apart=True)
    another.goto(page.evaluate("location.href"))
    until_shown(another)
    until_it_reads(another, other)
    expect(branches(another)).to_have_count(len(listed))
    branches(another).locator("button[aria-disabled=false]", has_text="Return").first.click()
    until_it_reads(another, first)

    # So do the texts of another prompt; and all can be saved.
    type_prompt(page, "KING:")
    expect(tokens(page)).to_have_count(len("KING:"))
    type_prompt(page, PROMPT)
    until_it_reads(page, other)
    page.get_by_text("Written tokens as a table").click()
    rows = part(page, "table").get_by_role("row")
    expect(rows).to_have_count(len(other) - len(PROMPT) + 1)
    expect(rows.last).to_contain_text(re.compile(r"\d\.\d{4}"))
    files = {}
    for kind in ("CSV", "PNG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save as {kind}").press("Enter")
        files[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[kind])
    lines = files["CSV"].read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "position,token,id,probability,rank,entropy (nats)"
    assert len(lines) == len(other) - len(PROMPT) + 1 and lines[1].startswith(f"{len(PROMPT)},")
    assert text(page).endswith("".join(line.split(",")[1] for line in lines[1:])) or '"' in "".join(lines)
    content = files["PNG"].read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) > 20_000


def test_what_is_left_turned_or_cut_off_in_the_middle_of_the_writing(visit, wait_ready, browser_errors):
    page, _ = visit("tokens=500&pace=fast&temperature=1.5")
    main_button(page, "Generate").click()
    until_written(page, len(PROMPT) + 10)
    with page.expect_request("**/api/generate*"):
        page.get_by_label("Temperature").fill("0")
    turned = tokens(page).count()
    until_written(page, turned + 15)
    main_button(page, "Stop").click()
    until_at_rest(page, wait_ready)
    for place in range(turned + 12, turned + 15):
        tokens(page).nth(place).click()
        assert "✓" in candidates(page).first.inner_text()
    tokens(page).nth(len(PROMPT) + 3).click()
    expect(part(page, "verdict")).to_contain_text("The settings have changed since")

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
        expect(main_button(page, "Generate")).to_be_enabled()

    # Nothing is written after a prompt that can't be read, and the link stays that of the text on screen.
    shown, link = raw_text(page), address(page)
    main_button(page, "Generate").click()
    until_written(page, len(shown) + 3)
    page.get_by_label("Prompt", exact=True).fill("中")
    page.get_by_label("Prompt", exact=True).press("Control+Enter")
    page.get_by_text("Shown below is the last prompt that could be read").wait_for()
    expect(part(page, "status")).to_have_text("The prompt can't be read. Correct it to generate.")
    expect(main_button(page, "Generate")).to_be_disabled()
    candidates(page).nth(3).click(force=True)
    assert raw_text(page).startswith(shown) and address(page).startswith(link.split("&written")[0])

    # A connection that breaks is taken up again, and what can't be written says so.
    page.get_by_label("Prompt", exact=True).fill(PROMPT)
    page.get_by_label("Prompt", exact=True).press("Control+Enter")
    main_button(page, "Clear").click()
    dial(page, "Number of tokens", 70)
    page.get_by_label("Pace").select_option("8 tokens a second")
    wait_ready(page)
    expect(tokens(page)).to_have_count(len(PROMPT))
    main_button(page, "Generate").click()
    until_written(page, len(PROMPT) + 5)
    page.route("**/api/generate*", lambda route: route.abort())
    dial(page, "Temperature", 0.5)  # asks anew, in vain
    expect(page.get_by_role("alert").first).to_contain_text("can't be reached just now")
    away = tokens(page).count()
    expect(main_button(page, "Stop")).to_be_enabled()
    page.unroute("**/api/generate*")
    page.get_by_label("Pace").select_option("as fast as it can")
    until_written(page, len(PROMPT) + 70)
    expect(page.get_by_role("alert").first).to_be_hidden()
    assert tokens(page).count() == len(PROMPT) + 70 > away
    until_at_rest(page, wait_ready)
    refusal = {"error": "There is no such model.", "parameter": "model"}
    page.route("**/api/generate*", lambda route: route.fulfill(status=400, json=refusal))
    main_button(page, "Generate").click()
    expect(page.get_by_role("alert").first).to_contain_text("There is no such model.")
    expect(main_button(page, "Generate")).to_be_enabled()
    page.unroute("**/api/generate*")
    write(page, wait_ready, 70)
    first = window_start(tokens(page).count() - 1, 64)
    expect(part(page, "details")).to_contain_text(f"The model reads from token {first} on: its context holds 64")
    browser_errors.clear()
