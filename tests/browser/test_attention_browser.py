"""Tests the page Attention in a browser: selection, Python, links, other pages."""

import re
from urllib.parse import urlsplit

import pytest

from tests.browser.address_bar import address
from tests.browser.attention_page import (
    PROMPT,
    WHOLE,
    all_equal,
    badges,
    derive,
    expect,
    head,
    instrument,
    panel,
    parameters,
    part,
    place_of,
    queries,
    shown,
    state,
    turn_to,
    type_prompt,
    until,
    until_shown,
    visits,
)
from transformer.inference.context_windows import window_start


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


def test_looking_costs_no_run_of_the_page_and_the_address_follows(visit):
    page, traffic = visit()
    before = page.evaluate("history.length")
    traffic.forget()
    marks = panel(page, "weights").locator("canvas.marks")
    for column in range(0, 13, 2):
        page.mouse.move(*place_of(page, "weights", 12, column))
    expect(part(page, "readout")).to_contain_text("key “t” at position 12")
    traffic.settle(0.4)
    assert traffic.page_runs == 0 and not traffic.questions

    head(page, 0, 1).click()
    assert shown(page)[:2] == (0, 1)
    head(page, 1, 1).click()
    assert shown(page)[:2] == (1, 1)
    expect(part(page, "where")).to_have_text("Layer 1, head 1")
    derive(page)
    for row, column in ((7, 3), (12, 12), (9, 5)):
        page.mouse.click(*place_of(page, "scaled", row, column))
        assert shown(page) == (1, 1, row, column)
    marks.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert shown(page) == (1, 1, 8, 0)
    for _ in range(2):
        part(page, "closer").click()
    expect(part(page, "note")).to_contain_text("Zoomed in: queries 7 to 10, keys 0 to 3.")
    page.get_by_label("Without ÷ √d_head").check()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_contain_text("The model didn't compute this")
    part(page, "sort").select_option("spread")
    part(page, "direction").select_option("to")
    expect(part(page, "overSentence")).to_contain_text("who looks at “T”: ")
    expected = {
        "layer": "1",
        "head": "1",
        "query": "8",
        "key": "0",
        "zoom": "7,11,0,4",
        "without": "mask,scale",
        "order": "spread",
        "direction": "to",
        "derivation": "open",
    }
    until(page, lambda: expected.items() <= parameters(page).items())
    traffic.settle()
    assert traffic.page_runs == 0
    assert all("/api/tensors?" in url for url in traffic.questions)  # rows, to be compared with; nothing is asked anew
    assert page.evaluate("history.length") == before
    until(page, lambda: len(badges(page)) == 7)

    part(page, "whole").click()
    page.get_by_label("Without ÷ √d_head").uncheck()
    page.get_by_label("Without the mask").uncheck()
    all_equal(page)
    until(page, lambda: not {"zoom", "without"} & set(parameters(page)))

    for wait, name, place in ((0, "Generate", (0, 1)), (100, "Masks", (0, 0))):  # chosen just before the page is left
        head(page, *place).click()
        until(page, lambda place=place: shown(page)[:2] == place)
        marks.focus()
        page.keyboard.press("ArrowUp")
        chosen = shown(page)
        page.wait_for_timeout(wait)
        turn_to(page, name)
        layer, number, query, key = map(str, chosen)
        told = {"query": query, "key": key, "layer": layer, "head": number}
        until(page, lambda told=told: told.items() <= parameters(page).items())
        if name == "Generate":
            expect(page.get_by_test_id("live-text-picture")).to_contain_text(f"layer {layer}, head {number}")
        turn_to(page, "Attention")
        until_shown(page, chosen)
    turn_to(page, "Inside")
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.locator("[data-testid=inside][data-open='blocks.1']").wait_for()
    until(page, lambda: told.items() <= parameters(page).items())
    turn_to(page, "Attention")
    until_shown(page, chosen)
    until(page, lambda: {**told, "inside": "blocks.1"}.items() <= parameters(page).items())
    page.go_back()
    page.locator("[data-testid=inside][data-open='blocks.1']").wait_for()
    turn_to(page, "Attention")
    until_shown(page, chosen)

    for number in (1, 2):  # a click elsewhere in the moment of an event
        traffic.settle()
        page.get_by_test_id("head-grid-head").last.click()
        page.get_by_role("button", name="Examples").click()
        option = page.get_by_role("menuitem").nth(number)
        text = option.inner_text().strip()
        option.evaluate("""(option) => {
          option.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, composed: true }));
          option.click();
        }""")
        expect(page.get_by_role("textbox", name="Prompt")).to_have_value(text.replace(" ↵", "\n"))
    traffic.settle()
    page.evaluate("history.pushState(history.state, '', 'Positions?prompt=another')")  # ahead of the page: after Back
    head(page, 0, 1).click()
    until(page, lambda: parameters(page).get("head") == "1")
    traffic.settle()
    assert urlsplit(address(page)).path == "/Positions" and parameters(page)["prompt"] == "another"


def test_back_forward_reload_and_a_link_show_the_same(visit, wait_ready):
    page, traffic = visit(
        "prompt=To be, or not&layer=1&head=0&query=9&key=4&stage=scaled&zoom=6,11,2,8&without=mask"
        "&order=itself&direction=to"
    )
    first = state(page)
    assert first["shown"] == "1.0.9.4" and first["stage"] == "scaled" and first["without"] == ["mask"]
    assert "queries 6 to 10, keys 2 to 7" in first["note"]
    assert first["selects"][:2] == ["to", "itself"]
    expect(page.locator("[data-step=stream]")).to_contain_text("attention would add")
    expect(page.locator("[data-step=stream]")).to_contain_text("not what the model computed")

    head(page, 0, 1).click()
    traffic.settle()
    chosen = state(page)
    assert chosen["shown"] == "0.1.9.4"
    turn_to(page, "Masks")
    page.go_back()
    page.locator(WHOLE).wait_for()
    until(page, lambda: state(page) == chosen)
    page.go_forward()
    page.get_by_role("heading", level=1, name="Masks").wait_for()
    wait_ready(page)
    page.go_back()
    page.locator(WHOLE).wait_for()
    page.reload()
    page.locator(WHOLE).wait_for()
    until(page, lambda: state(page) == chosen)
    other, _ = visit(urlsplit(address(page)).query, apart=True)
    until(other, lambda: state(other) == chosen)

    wait_ready(page)  # a tab that was opened by a link, which Streamlit tells each run of, whatever the bar holds since
    head(page, 1, 1).click()
    head(other, 1, 0).click()  # two visitors don't mix
    for each, number in ((page, "1"), (other, "0")):
        until(each, lambda each=each, number=number: parameters(each)["head"] == number)
        until(each, lambda each=each, number=number: shown(each)[:2] == (1, int(number)))
    type_prompt(page, "KING: I am")
    until(page, lambda: parameters(page)["prompt"] == "KING: I am")
    assert (parameters(page)["layer"], parameters(page)["head"]) == ("1", "1")
    page.get_by_role("button", name="Share").click()
    link = page.get_by_test_id("stPopoverBody").locator("code").filter(has_text="?model=")
    expect(link).to_have_text(re.compile("prompt=KING%3A.*layer=1&head=1"))
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def test_prompts_of_any_length_keep_the_instrument_alive(visit, wait_ready):
    page, traffic = visit("model=far-reader&prompt=To be, or not&query=9&key=3&layer=2")
    instrument(page).evaluate("(root) => { window.first = root; }")
    long = "To be, or not to be, that is the question: " * 6
    for typed in ("a", long[:256], "KING: I am", long):
        type_prompt(page, typed)
        last = len(typed) - window_start(len(typed), 256) - 1
        expect(queries(page)).to_have_count(last + 1)
        page.locator(WHOLE).wait_for()
        traffic.settle()
        assert shown(page)[0] == 2 and shown(page)[2] <= last
        all_equal(page)
        panel(page, "weights").locator("canvas.marks").focus()
        here = shown(page)[2]
        page.keyboard.press("PageUp")
        assert shown(page)[2] == max(here - 10, 0)
        pooled = "64 × 64 cells for 256 × 256 weights" in part(page, "pooled").inner_text()
        assert pooled == (last == 255)
        if typed != long:  # which the page says is too long, and so draws itself anew
            assert instrument(page).evaluate("(root) => root === window.first")

    held = []  # the answer about one text, which comes after that about the next
    page.route("**/api/overview*", lambda route: held.append(route) if not held else route.continue_())
    type_prompt(page, "To be, or not to be, that is the question")
    until(page, lambda: held)
    type_prompt(page, "KING: I am")
    expect(queries(page)).to_have_count(10)
    held[0].continue_()
    page.wait_for_timeout(300)
    expect(queries(page)).to_have_count(10)
    page.unroute("**/api/overview*")

    head(page, 0, 1).click()
    type_prompt(page, "日本")  # which it can't read; what was asked for is under way
    expect(page.get_by_test_id("stAlert")).to_be_visible()
    expect(page.get_by_text("Shown below is the last prompt that could be read: KING: I am")).to_be_visible()
    expect(instrument(page)).to_have_count(1)
    type_prompt(page, "a")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    expect(part(page, "hand").get_by_label("Key (column)").locator("option")).to_have_text(["0: a"])


def test_where_the_api_can_t_be_reached_the_instrument_says_so(tiny_server, new_window, browser_errors):
    page = new_window()
    page.clock.install()
    page.route("**/api/**", lambda route: route.abort())
    page.goto(f"{tiny_server.url}/Attention?prompt={PROMPT}")
    away = page.get_by_role("alert").filter(has_text="The server can't be reached just now")

    def meanwhile(is_so):
        """Let the pauses between two questions pass until something is so."""
        until(page, lambda: is_so() or page.clock.fast_forward(2_000), seconds=60)

    meanwhile(away.is_visible)
    expect(page.locator("[data-part=root][data-state=failed]")).to_be_visible()
    page.unroute("**/api/**")
    meanwhile(page.locator(WHOLE).is_visible)
    expect(away).to_be_hidden()
    expect(page.locator("[data-part=root][data-state=shown]")).to_be_visible()
    refusal = {"error": "The server has too much to compute."}
    page.route("**/api/**", lambda route: route.fulfill(status=503, json=refusal))
    type_prompt(page, "KING: I am")
    meanwhile(page.get_by_role("alert").filter(has_text=refusal["error"]).is_visible)
    page.unroute("**/api/**")
    meanwhile(lambda: queries(page).count() == 10)
    browser_errors.clear()  # which were provoked
