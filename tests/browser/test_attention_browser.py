"""The page Attention in a real browser: what is looked at is answered there; Python, link and other pages follow."""

import time
from urllib.parse import urlsplit

import pytest

from tests.browser.address import address
from tests.browser.attention_page import (
    PROMPT,
    WHOLE,
    all_equal,
    badges,
    expect,
    head,
    instrument,
    panel,
    parameters,
    part,
    place_of,
    shown,
    state,
    turn_to,
    type_prompt,
    until,
    until_shown,
    visits,
)


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


# Looking


def test_looking_costs_no_run_of_the_page_and_the_address_follows(visit):
    page, traffic = visit()
    before = page.evaluate("history.length")
    traffic.forget()
    marks = panel(page, "weights").locator("canvas.marks")
    for column in range(0, 13, 2):
        page.mouse.move(*place_of(page, "weights", 12, column))
    expect(part(page, "readout")).to_contain_text("key “t” at place 12")
    page.wait_for_timeout(600)
    assert traffic.page_runs == traffic.fragment_runs == 0

    head(page, 0, 1).click()
    assert shown(page)[:2] == (0, 1)
    head(page, 1, 1).click()
    assert shown(page)[:2] == (1, 1)
    expect(part(page, "where")).to_have_text("Layer 1, head 1")
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
    part(page, "share").select_option("layer")
    expect(part(page, "overSentence")).to_contain_text("Who looked at “T” at place 0 in the mean of layer 1")
    expected = {
        "layer": "1", "head": "1", "query": "8", "key": "0", "zoom": "7,11,0,4", "without": "mask,scale",
        "order": "spread", "direction": "to", "share": "layer",
    }  # fmt: skip
    until(page, lambda: expected.items() <= parameters(page).items())
    traffic.settle()
    seconds = time.monotonic() - traffic.since
    assert traffic.page_runs == 0
    assert traffic.fragment_runs <= seconds + 1
    assert page.evaluate("history.length") == before
    assert len(badges(page)) == 7

    part(page, "whole").click()
    page.get_by_label("Without ÷ √d_head").uncheck()
    page.get_by_label("Without the mask").uncheck()
    all_equal(page)
    until(page, lambda: not {"zoom", "without"} & set(parameters(page)))


def test_what_was_chosen_just_before_a_change_of_page_arrives_there_and_is_there_on_return(visit):
    page, _ = visit()
    for wait, name, place in ((0, "Generate", (0, 1)), (100, "Masks", (1, 1)), (1000, "Generate", (0, 0))):
        head(page, *place).click()
        marks = panel(page, "weights").locator("canvas.marks")
        marks.focus()
        page.keyboard.press("ArrowUp")
        chosen = shown(page)
        assert chosen[:2] == place
        page.wait_for_timeout(wait)
        turn_to(page, name)
        layer, number, query, key = map(str, chosen)
        told = {"query": query, "key": key, "layer": layer, "head": number}
        until(page, lambda told=told: told.items() <= parameters(page).items())
        if name == "Generate":
            expect(page.get_by_test_id("live-text-picture")).to_contain_text(f"layer {layer}, head {number}")
        turn_to(page, "Attention")
        until_shown(page, chosen)


ASK_AND_LEAVE = """(title) => {
  const links = [...document.querySelectorAll("[data-testid=stPageLink] a")];
  for (const box of globalThis.headsupBoxes.values()) box.send?.("want", { id: "", parts: [] });
  links.find((link) => link.innerText.endsWith(title)).click();
}"""


def test_a_part_that_is_asked_for_in_the_moment_of_leaving_takes_no_page_away(visit):
    page, traffic = visit()
    for name in ("Masks", "Positions"):
        page.evaluate(ASK_AND_LEAVE, name)
        page.get_by_role("heading", level=1, name=name).wait_for()
        traffic.settle()
        assert page.get_by_role("heading", level=1).inner_text() == name
        until(page, lambda: parameters(page).get("prompt") == PROMPT)
        turn_to(page, "Attention")
        page.locator(f"{WHOLE}[data-fetched=true]").wait_for()


def test_nothing_is_written_over_the_address_of_another_page(visit):
    page, traffic = visit()
    page.evaluate("history.pushState(history.state, '', 'Positions?prompt=another')")  # ahead of the page: after Back
    traffic.forget()
    head(page, 1, 1).click()
    until_shown(page, (1, 1, *shown(page)[2:]))
    until(page, lambda: traffic.fragment_runs)
    traffic.settle()
    assert address(page).endswith("/Positions?prompt=another")


def test_back_forward_reload_and_a_link_show_the_same(visit, wait_ready):
    page, traffic = visit("prompt=To be, or not&layer=1&head=0&query=9&key=4&stage=scaled&zoom=6,11,2,8&without=mask"
                          "&order=itself&direction=to&share=layer")  # fmt: skip
    first = state(page)
    assert first["shown"] == "1.0.9.4" and first["stage"] == "scaled" and first["without"] == ["mask"]
    assert "queries 6 to 10, keys 2 to 7" in first["note"]
    assert first["selects"][:3] == ["itself", "to", "layer"]
    assert "the mean of layer 1" in first["over"]
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
    assert state(other) == chosen


def test_prompts_of_any_length_keep_the_instrument_alive(visit):
    page, traffic = visit("model=far-reader&prompt=To be, or not&query=9&key=3&layer=2")
    instrument(page).evaluate("(root) => { window.first = root; }")
    long = "To be, or not to be, that is the question: " * 6
    for typed in ("To be", "a", long[:256], "KING: I am", long):
        type_prompt(page, typed)
        last = len(typed[-256:]) - 1
        expect(part(page, "hand").get_by_label("Query (row)").locator("option")).to_have_count(last + 1)
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


def test_a_click_elsewhere_in_the_moment_of_an_event_is_not_lost(visit):
    page, traffic = visit()
    for group, title in (("Tasks", "Sorting"), ("Texts", "Shakespeare")):
        traffic.settle()
        page.get_by_test_id("head-grid-head").last.click()
        page.get_by_role("radio", name=group).evaluate("""(radio) => {
          radio.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, composed: true }));
          radio.click();
        }""")
        expect(page.get_by_role("combobox", name="Model")).to_have_value(title)


def test_an_event_of_an_instrument_that_has_gone_leaves_the_page_as_it_is(visit):
    page, traffic = visit("model=translator&prompt=forty-two")
    page.evaluate("window.box = headsupBoxes.get('attention')")
    type_prompt(page, "Hello world")
    expect(page.get_by_test_id("stAlert")).to_be_visible()
    traffic.settle()
    page.evaluate("box.send('want', { id: box.feed.metadata.id, parts: [['head', 1, 1]] })")
    traffic.settle()
    expect(page.get_by_role("heading", level=1, name="Attention")).to_be_visible()
    expect(instrument(page)).to_have_count(0)
    type_prompt(page, "seven")
    page.locator(WHOLE).wait_for()


# Others


def test_two_visitors_at_once_see_their_own(visit):
    (one, _), (other, _) = visit(), visit("model=martin-fierro&prompt=Aqui me pongo", apart=True)
    for place in ((0, 1), (1, 0), (1, 1)):
        head(one, *place).click()
        head(other, place[1], 3 - place[0]).click()
    assert (shown(one)[:2], shown(other)[:2]) == ((1, 1), (1, 2))
    for page, wanted in ((one, {"layer": "1", "head": "1"}), (other, {"layer": "1", "head": "2"})):
        until(page, lambda page=page, wanted=wanted: wanted.items() <= parameters(page).items())
        all_equal(page)
    type_prompt(one, "KING: I am here")
    expect(part(one, "hand").get_by_label("Query (row)").locator("option")).to_have_count(15)
    expect(part(other, "hand").get_by_label("Query (row)").locator("option")).to_have_count(13)
