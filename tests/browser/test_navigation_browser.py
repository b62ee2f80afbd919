"""Tests back, forward, typing and reconnecting in a browser."""

from urllib.parse import urlsplit

import pytest

from tests.browser.address_bar import address
from tests.browser.attention_page import parameters, until
from tests.browser.generate_page import expect, focused, look_at, picture, sampling_opened, tokens

HISTORY_LOG = """() => {
  window.historyLog = [];
  for (const name of ["pushState", "replaceState"]) {
    const change = history[name].bind(history);
    history[name] = (...values) => {
      window.historyLog.push(`${Math.round(performance.now())} ${name} ${values[2]}`);
      return change(...values);
    };
  }
}"""
"""Notes what is written into the history, for the message of a test that fails."""
CHOOSE_AND_LEAVE = """([dial, link, ms]) => new Promise((resolve) => {
  dial.selectedIndex = 1 - dial.selectedIndex;
  for (const kind of ["input", "change"]) dial.dispatchEvent(new Event(kind, { bubbles: true }));
  setTimeout(() => { link.click(); resolve(); }, ms);
})"""
"""Chooses something, and follows a link so many milliseconds later."""


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    def open_page(path="", **options):
        page = new_page(**options)
        page.add_init_script(f"({HISTORY_LOG})()")
        page.goto(f"{tiny_server.url}/{path}")
        until_on(page, path.partition("?")[0] or "Generate", wait_ready)
        return page

    return open_page


def until_on(page, name, wait_ready):
    page.get_by_role("heading", level=1, name=name).wait_for()
    wait_ready(page)


def turn_to(page, name, wait_ready):
    """Go to another page by the navigation."""
    page.get_by_role("link", name=name).click()
    until_on(page, name, wait_ready)


def prompt_box(page):
    return page.get_by_role("textbox", name="Prompt", exact=True)


def type_prompt(page, typed, wait_ready):
    prompt_box(page).fill(typed)
    prompt_box(page).press("Control+Enter")
    wait_ready(page)


def entries(page):
    return page.evaluate("history.length")


def expect_entries(page, number):
    assert entries(page) == number, "\n".join(page.evaluate("historyLog"))


def test_one_step_back_leaves_a_page_to_the_one_before_as_it_was(visit, wait_ready):
    page = visit("?tokens=6")
    before = entries(page)
    for typed in ("To be", "To be, or", "KING: I am"):
        type_prompt(page, typed, wait_ready)
        until(page, lambda typed=typed: parameters(page).get("prompt") == typed)
    look_at(page, "Layer", "layer 1")
    until(page, lambda: parameters(page).get("layer") == "1")
    expect_entries(page, before)
    turn_to(page, "Attention", wait_ready)
    expect_entries(page, before + 1)
    page.get_by_role("button", name="Layer 1, head 1").click()
    until(page, lambda: parameters(page).get("head") == "1")
    attention = parameters(page)
    assert (attention["prompt"], attention["layer"], attention["head"]) == ("KING: I am", "1", "1")
    turn_to(page, "Masks", wait_ready)
    type_prompt(page, "Hello world", wait_ready)
    expect_entries(page, before + 2)

    page.go_back()
    until_on(page, "Attention", wait_ready)
    until(page, lambda: urlsplit(address(page)).path == "/Attention" and parameters(page) == attention)
    expect(prompt_box(page)).to_have_value("KING: I am")
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    page.go_back()
    until_on(page, "Generate", wait_ready)
    assert urlsplit(address(page)).path == "/"
    until(page, lambda: parameters(page) == attention | {"head": "0"})
    expect(picture(page)).to_contain_text("layer 1, head 0")
    page.go_forward()
    until_on(page, "Attention", wait_ready)
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    page.go_forward()
    until_on(page, "Masks", wait_ready)
    expect(prompt_box(page)).to_have_value("Hello world")
    expect_entries(page, before + 2)

    # A page is come to, though the one before is told something at that moment.
    turn_to(page, "Generate", wait_ready)
    for ms in (380, 599):  # just before it is told of what was chosen
        before = entries(page)
        parts = page.get_by_label("Layer", exact=True), page.get_by_role("link", name="Attention")
        page.evaluate(CHOOSE_AND_LEAVE, [*(part.element_handle() for part in parts), ms])
        until_on(page, "Attention", wait_ready)
        expect_entries(page, before + 1)
        turn_to(page, "Generate", wait_ready)
    until(page, lambda: parameters(page)["layer"] == "1")

    # What was written comes back with its page.
    main = page.get_by_test_id("stMain")
    tokens(page).first.wait_for()
    given = tokens(page).count()
    main.get_by_role("button", name="Generate", exact=True).click()
    expect(tokens(page)).to_have_count(given + 6)
    wait_ready(page)
    until(page, lambda: parameters(page).get("written", "").count(".") == 5)
    written = parameters(page)["written"]
    turn_to(page, "Positions", wait_ready)
    type_prompt(page, "KING:", wait_ready)
    until(page, lambda: "written" not in parameters(page))
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(tokens(page)).to_have_count(given + 6)
    until(page, lambda: parameters(page).get("written") == written)


def test_a_prompt_that_isn_t_applied_can_t_be_read_or_is_too_long_for_a_link_outlives_a_reload(visit, wait_ready):
    page = visit("?prompt=ROMEO&seed=7")
    page.wait_for_function("globalThis.headsupInputDrafts?.session")
    prompt_box(page).fill("KING: I")
    page.reload()
    wait_ready(page)
    expect(prompt_box(page)).to_have_value("KING: I")
    expect(prompt_box(page)).to_be_focused()
    assert parameters(page)["prompt"] == "ROMEO"  # as it was: it still waits to be applied
    page.keyboard.type(" am")  # where the cursor was
    page.keyboard.press("Control+Enter")
    until(page, lambda: parameters(page)["prompt"] == "KING: I am")

    # One that can't be read outlives a reload until another takes its place.
    type_prompt(page, "To be 日本", wait_ready)
    expect(page.get_by_role("alert").filter(has_text="This model has never seen")).to_be_visible()
    assert parameters(page)["prompt"] == "KING: I am"
    page.reload()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("To be 日本")
    type_prompt(page, "To be, or", wait_ready)
    until(page, lambda: parameters(page)["prompt"] == "To be, or")
    page.reload()  # nothing waits any more
    until_on(page, "Generate", wait_ready)
    page.wait_for_timeout(500)
    expect(prompt_box(page)).to_have_value("To be, or")
    expect(prompt_box(page)).not_to_be_focused()

    # One that is too long for a link is left out, and the page can be opened again.
    type_prompt(page, "," * 2_600, wait_ready)
    expect(page.get_by_text("Too long for the link: the prompt.")).to_be_visible()
    until(page, lambda: len(address(page)) < 8_000 and "prompt" not in parameters(page))
    turn_to(page, "Masks", wait_ready)
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("," * 2_600)
    page.reload()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("," * 2_600)
    until(page, lambda: parameters(page).get("seed") == "7")
    page.goto(address(page).partition("?")[0])  # another view, to which the prompt doesn't belong
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).not_to_have_value("," * 2_600)
    prompt_box(page).fill("a" * 6_000)
    assert len(prompt_box(page).input_value()) <= 5_000
    page.goto(f"{address(page).partition('?')[0]}?prompt=ROMEO&seed=7")  # a link says itself what is to be shown
    until_on(page, "Generate", wait_ready)
    page.wait_for_timeout(500)
    expect(prompt_box(page)).to_have_value("ROMEO")


CLICKABLE = (
    "http://example.org/x",
    "https://www.example.org",
    "www.example.org/a",
    "me@example.org",
    "mailto:me@example.org",
    ":material/info:",
    ":streamlit:",
    "![x](http://example.org/a.png)",
)
PARAMETERS = ("seed", "model", "pace", "temperature", "top_k", "top_p", "tokens", "layer")


def test_the_menu_of_a_phone_closes_when_a_page_is_chosen(visit, wait_ready):
    page = visit(width=420, height=860)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Masks").click()
    until_on(page, "Masks", wait_ready)
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def test_nothing_of_a_link_becomes_something_to_click(visit):
    values = CLICKABLE
    page = visit("?" + "&".join(f"{name}={value}" for name, value in zip(PARAMETERS, values, strict=True)))
    alert = page.get_by_test_id("stMain").get_by_test_id("stAlert")
    said = alert.inner_text().replace("\u2060", "")
    assert [said.count(f"“{value}”") for value in values] == [1] * len(values)
    assert alert.locator("a, img, [data-testid=stIconMaterial]:not(:scope > *)").count() <= 1  # the alert's own icon
    assert page.get_by_test_id("stMain").locator("a").count() == 0


def test_the_keyboard_stays_on_what_starts_and_stops_the_writing(visit, wait_ready):
    page = visit("?tokens=500&pace=steady")
    main = page.get_by_test_id("stMain")
    for key in ("Enter", "Space"):
        main.get_by_role("button", name="Generate", exact=True).focus()
        page.keyboard.press(key)
        until(page, lambda: focused(page) == "Stop")
        page.keyboard.press(key)
        until(page, lambda: focused(page) == "Generate")
        wait_ready(page)
        expect(main.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
        page.keyboard.press("Tab")
        until(page, lambda: focused(page) == "Step")
        page.keyboard.press(key)
        wait_ready(page)
        assert focused(page) == "Step"
        prompt_box(page).focus()
        wait_ready(page)
        expect(prompt_box(page)).to_be_focused()
    sampling_opened(page)
    for label, value in (("Pace", "as fast as it can"), ("Number of tokens", "3")):
        dial = page.get_by_label(label)
        dial.select_option(value) if label == "Pace" else dial.fill(value)
    wait_ready(page)
    main.get_by_role("button", name="Generate", exact=True).focus()
    before = tokens(page).count()
    page.keyboard.press("Enter")  # the keyboard comes back when the writing ends by itself
    expect(tokens(page)).to_have_count(before + 3)
    until(page, lambda: focused(page) == "Generate")
    wait_ready(page)
    assert focused(page) == "Generate"
