"""Tests back, forward, links between pages, what is typed, and reloads in a browser."""

from urllib.parse import urlsplit

from tests.browser.address_bar import address
from tests.browser.attention_page import WHOLE, menu_button, parameters, turn_to, type_prompt, until, until_shown
from tests.browser.generate_page import expect, look_at, picture, tokens, write

CHOOSE_AND_LEAVE = """([dial, link, ms]) => new Promise((resolve) => {
  dial.selectedIndex = 1 - dial.selectedIndex;
  for (const kind of ["input", "change"]) dial.dispatchEvent(new Event(kind, { bubbles: true }));
  setTimeout(() => { link.click(); resolve(); }, ms);
})"""
"""Chooses something, and follows a link so many milliseconds later."""
DRAFT = "sessionStorage.getItem('headsup-draft')"
CLICKABLE = {
    "seed": "http://example.org/x",
    "model": "https://www.example.org",
    "pace": "www.example.org/a",
    "temperature": "me@example.org",
    "top_k": "mailto:me@example.org",
    "top_p": ":material/info:",
    "tokens": ":streamlit:",
    "layer": "![x](http://example.org/a.png)",
}


def until_on(page, name, wait_ready):
    page.get_by_role("heading", level=1, name=name).wait_for()
    wait_ready(page)


def go(page, name, wait_ready):
    """To another page by the navigation."""
    turn_to(page, name)
    wait_ready(page)


def prompt_box(page):
    return page.get_by_role("textbox", name="Prompt", exact=True)


def entries(page):
    return page.evaluate("history.length")


def by_hand(page):
    """What is said of the cell that is open on Inside, once its arithmetic is there."""
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    page.locator(".by-hand[data-state=shown]").wait_for()
    expect(page.locator(".by-hand .badge")).to_have_attribute("data-state", "equal")
    return page.locator(".by-hand .where").inner_text()


def test_one_step_back_leaves_a_page_to_the_one_before_as_it_was(visit, wait_ready):
    page = visit("?tokens=6")
    before = entries(page)
    for typed in ("To be", "KING: I am"):
        type_prompt(page, typed)
        until(page, lambda typed=typed: parameters(page).get("prompt") == typed)
    look_at(page, "Layer", "layer 1")
    until(page, lambda: parameters(page).get("layer") == "1")
    assert entries(page) == before
    go(page, "Attention", wait_ready)
    page.get_by_role("button", name="Layer 1, head 1").click()
    until(page, lambda: parameters(page).get("head") == "1")
    attention = parameters(page)
    assert (attention["prompt"], attention["layer"], attention["head"]) == ("KING: I am", "1", "1")
    go(page, "Masks", wait_ready)
    type_prompt(page, "Hello world")
    until(page, lambda: parameters(page)["prompt"] == "Hello world")
    assert entries(page) == before + 2

    page.go_back()
    until_on(page, "Attention", wait_ready)
    until(page, lambda: urlsplit(address(page)).path == "/Attention" and parameters(page) == attention)
    expect(prompt_box(page)).to_have_value("KING: I am")
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    page.go_back()
    until_on(page, "Generate", wait_ready)
    until(page, lambda: (parameters(page)["layer"], parameters(page)["head"]) == ("1", "0"))
    expect(picture(page)).to_contain_text("layer 1, head 0")
    page.go_forward()
    until_on(page, "Attention", wait_ready)
    page.go_forward()
    until_on(page, "Masks", wait_ready)
    expect(prompt_box(page)).to_have_value("Hello world")
    assert entries(page) == before + 2

    # A page is come to, though the one before is told something at that moment.
    go(page, "Generate", wait_ready)
    for ms in (380, 599):  # just before it is told of what was chosen
        before = entries(page)
        parts = page.get_by_label("Layer", exact=True), page.get_by_role("link", name="Attention")
        page.evaluate(CHOOSE_AND_LEAVE, [*(part.element_handle() for part in parts), ms])
        until_on(page, "Attention", wait_ready)
        assert entries(page) == before + 1
        go(page, "Generate", wait_ready)
    until(page, lambda: parameters(page)["layer"] == "1")

    # What was written comes back with its page.
    tokens(page).first.wait_for()
    given = tokens(page).count()
    write(page, wait_ready, 6)
    until(page, lambda: parameters(page).get("written", "").count(".") == 5)
    written = parameters(page)["written"]
    go(page, "Positions", wait_ready)
    type_prompt(page, "KING:")
    until(page, lambda: "written" not in parameters(page))
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(tokens(page)).to_have_count(given + 6)
    until(page, lambda: parameters(page).get("written") == written)
    a_number_is_opened_inside_and_back_and_the_browser_returns(visit, page)


def a_number_is_opened_inside_and_back_and_the_browser_returns(visit, page):
    said = page.locator("[data-drawn=logits] .text")
    until(page, lambda: " has " in said.inner_text())
    token, logit = said.inner_text().split("“")[1].removesuffix(".").split("” has ")
    page.get_by_role("button", name="Open in Inside").click()
    where = by_hand(page)
    assert where.startswith("Logits, ") and f"token “{token}”" in where
    assert where.rpartition(": ")[2].startswith(logit[:4])
    until(page, lambda: "cell" in parameters(page))
    visit("Attention?model=shakespeare&prompt=To be, or&layer=1&head=1&query=5&key=2", page)
    until_shown(page, (1, 1, 5, 2))
    page.get_by_role("button", name="Open in Inside").click()
    place = "head 1, query “,” at position 5, key “␣” at position 2"
    assert by_hand(page).startswith(f"Attention weights, {place}: ")
    until(page, lambda: parameters(page).get("cell") == "1,5,2")
    page.set_viewport_size({"width": 420, "height": 900})  # where the links of the sidebar are out of sight
    page.get_by_role("button", name="layer 0", exact=True).first.click()
    page.get_by_role("button", name="Open in Attention").click()
    page.get_by_role("heading", level=1, name="Attention").wait_for()
    page.locator(WHOLE).wait_for()
    page.go_back()
    page.locator("[data-testid=inside][data-open='blocks.0']").wait_for()
    page.go_back()
    until_shown(page, (1, 1, 5, 2))


def test_a_prompt_that_isn_t_applied_can_t_be_read_or_is_too_long_for_a_link_outlives_a_reload(visit, wait_ready):
    page = visit("?prompt=ROMEO&seed=7")
    prompt_box(page).fill("KING: I")
    page.reload()
    wait_ready(page)
    expect(prompt_box(page)).to_have_value("KING: I")
    expect(prompt_box(page)).to_be_focused()
    assert parameters(page)["prompt"] == "ROMEO"  # as it was: it still waits to be applied
    page.keyboard.type(" am")  # where the cursor was
    page.keyboard.press("Control+Enter")
    until(page, lambda: parameters(page)["prompt"] == "KING: I am")

    type_prompt(page, "To be 日本")
    wait_ready(page)
    expect(page.get_by_role("alert").filter(has_text="This model has never seen")).to_be_visible()
    assert parameters(page)["prompt"] == "KING: I am"
    page.reload()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("To be 日本")

    # One that is too long for a link is left out, and takes the place of what couldn't be read.
    type_prompt(page, "," * 2_600)
    expect(page.get_by_text("Too long for the link: the prompt.")).to_be_visible()
    until(page, lambda: len(address(page)) < 8_000 and "prompt" not in parameters(page))
    go(page, "Masks", wait_ready)
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("," * 2_600)
    page.reload()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("," * 2_600)
    expect(prompt_box(page)).not_to_be_focused()
    assert parameters(page).get("seed") == "7" and page.evaluate(DRAFT) is None

    # A link to another view says itself what is to be shown, and nothing of it becomes something to click.
    prompt_box(page).fill("KING: I")
    assert page.evaluate(DRAFT)
    page.goto(f"{address(page).partition('?')[0]}?prompt=ROMEO&seed=7")
    until_on(page, "Generate", wait_ready)
    assert page.evaluate(DRAFT) is None
    expect(prompt_box(page)).to_have_value("ROMEO")
    page = visit("?" + "&".join(f"{name}={value}" for name, value in CLICKABLE.items()))
    notices = page.locator(".shell-notices")
    said = notices.inner_text()
    assert [said.count(f"“{value}”") for value in CLICKABLE.values()] == [1] * len(CLICKABLE)
    assert page.get_by_test_id("stMain").locator("a, img").count() == 0
    notices.get_by_role("button", name="OK").click()
    expect(notices).to_be_hidden()
    expect(menu_button(page)).to_be_focused()


def test_a_page_whose_scripts_can_t_be_had_says_what_it_is_and_what_to_do(app_url, new_page, browser_errors):
    page = new_page()
    page.route("**/modules/**", lambda route: route.abort())
    page.goto(f"{app_url}/Masks?model=shakespeare&prompt=To+be")
    shell = page.locator(".st-key-shell")
    shell.get_by_text("This part of the page could not be loaded. Reload the page.").wait_for()
    assert shell.get_by_role("heading", level=1).inner_text() == "Masks"
    assert shell.get_by_text("Shakespeare").is_visible() and shell.get_by_text("To be", exact=True).is_visible()
    page.goto("about:blank")  # each part asks for its script in its own time
    browser_errors.clear()


def test_the_shell_is_hidden_until_its_style_sheet_is_there_or_can_t_be_had(app_url, new_page, browser_errors):
    page, held = new_page(), []
    page.route("**/modules/**/shell.css", lambda route: held.append(route))
    page.goto(f"{app_url}/Attention?model=shakespeare&prompt=To+be")
    shell = page.locator(".st-key-shell")
    shell.get_by_text("The page is being loaded.").wait_for(state="attached")
    until(page, lambda: page.evaluate("globalThis.headsupGuide !== undefined"))  # by then the shell's script is there
    expect(shell.get_by_text("The page is being loaded.")).to_be_hidden()
    for route in held:
        route.abort()
    page.locator(WHOLE).wait_for()
    expect(shell.get_by_role("heading", level=1)).to_be_visible()
    browser_errors.clear()
