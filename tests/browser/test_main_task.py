"""Tests the app's main task in a browser: generate a text, look inside, share the link."""

import re
import time
from urllib.parse import urlsplit

import pytest

from tests.browser.generate_page import expect, inspect, labels, main_button, text, tokens, until_at_rest, until_written
from tests.browser.plotly_figures import CRAMPED

PAGES = {
    "": "[data-testid=live-text-token]",
    "Attention": "[data-testid=head-grid-head]",
    "Positions": "[data-testid=two-orders] table",
    "Masks": "[data-testid=masks] canvas",
    "What_if": "[data-testid=effects]",
}
"""Each page's path, and what is there once it is drawn."""
PROMPT = "ROMEO:\nBut, soft"

# Follows the text from before the first token to the last: which nodes go, how many tokens there are, what moves.
WATCH = """(root) => {
  const strip = root.querySelector("[data-testid=live-text-strip]");
  const main = document.querySelector("[data-testid=stMain]");
  const tokens = () => strip.querySelectorAll("[data-testid=live-text-token]").length;
  const seen = (window.seen = { counts: [tokens()], places: new Set(), lost: 0 });
  window.tagged = [root, ...root.querySelectorAll("*")];
  for (const node of window.tagged) node.tagged = true;
  new MutationObserver((changes) => {
    for (const { removedNodes } of changes) for (const node of removedNodes) seen.lost += node.tagged ? 1 : 0;
    if (tokens() !== seen.counts.at(-1)) seen.counts.push(tokens());
  }).observe(root, { childList: true, subtree: true });
  const look = () => {
    seen.places.add(JSON.stringify([root.getBoundingClientRect().top, main.scrollTop, window.scrollY]));
    requestAnimationFrame(look);
  };
  look();
}"""
SEEN = "() => ({ ...window.seen, places: [...window.seen.places] })"
LOST = "() => window.tagged.filter((node) => !node.isConnected).length"
HAS_SCHEME = """(scheme) => {
  const background = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
  return (background.match(/\\d+/)[0] < 60) === (scheme === "dark");
}"""


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    """`visit(path, again=None, **options)`: a visitor of their own on a page that has come to rest.

    again: a page of somebody who was here before, and whose browser has all it needs; they begin anew all the same.
    At the end, no page has asked any other machine for anything, and none has shown a dialog.
    """
    outside, dialogs, followed = [], [], []

    def note_request(request):
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname != "127.0.0.1":
            outside.append(request.url)

    def note_dialog(dialog):
        dialogs.append(dialog.message)
        dialog.dismiss()

    listeners = {"request": note_request, "websocket": note_request, "dialog": note_dialog}

    def open_page(path="", again=None, **options):
        page = again or new_page(**options)
        if not again:
            followed.append(page)
            for event, listener in listeners.items():
                page.on(event, listener)
        page.goto(f"{tiny_server.url}/{path}")
        page.locator(PAGES[path.partition("?")[0]]).first.wait_for(timeout=60_000)
        wait_ready(page, timeout=60)
        return page

    yield open_page
    for page in followed:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    assert not outside
    assert not dialogs


def turn_to(page, name):
    """Go to another page by the navigation."""
    page.get_by_role("link", name=name).click()
    page.get_by_role("heading", level=1, name=name).wait_for(timeout=60_000)
    page.locator(PAGES["" if name == "Generate" else name]).first.wait_for(timeout=60_000)


def prompt_box(page):
    return page.get_by_role("textbox", name="Prompt", exact=True)


def type_prompt(page, typed):
    prompt_box(page).fill(typed)
    prompt_box(page).press("Control+Enter")


# Generate


def test_tokens_appear_one_after_another_and_nothing_flickers_or_moves(visit, wait_ready):
    page = visit("?tokens=40&pace=steady", height=600)
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 40)")
    live_text = page.get_by_test_id("live-text")
    live_text.evaluate(WATCH)
    before = tokens(page).count()
    main_button(page, "Generate").click()
    until_written(page, before + 40)
    until_at_rest(page, wait_ready)
    seen = page.evaluate(SEEN)
    assert seen["counts"] == sorted(seen["counts"])
    assert (seen["counts"][0], seen["counts"][-1]) == (before, before + 40) == (len(PROMPT), len(PROMPT) + 40)
    assert len(seen["counts"]) >= 6
    assert seen["lost"] == 0 and page.evaluate(LOST) == 0
    assert live_text.evaluate("(root) => root === window.tagged[0]")
    assert len(seen["places"]) == 1, seen["places"]


def test_stop_goes_on_step_inspect_pick_and_clear(visit, wait_ready):
    page = visit("?tokens=500&pace=steady")
    prompt = tokens(page).count()
    main_button(page, "Generate").click()
    until_written(page, prompt + 4)
    main_button(page, "Stop").click()
    page.wait_for_timeout(500)
    stopped = tokens(page).count()
    page.wait_for_timeout(1000)
    assert tokens(page).count() == stopped < prompt + 100
    until_at_rest(page, wait_ready)
    first = text(page)

    main_button(page, "Generate").click()
    until_written(page, stopped + 3)
    main_button(page, "Stop").click()
    until_at_rest(page, wait_ready)
    assert text(page).startswith(first)

    before = labels(page)
    main_button(page, "Step").click()
    until_written(page, len(before) + 1)
    wait_ready(page)
    assert labels(page)[:-1] == before

    place = prompt + 3
    inspect(page, place)
    panel = page.get_by_test_id("live-text-candidates")
    buttons = panel.get_by_role("button")
    other = next(row for row in range(10) if "✓" not in buttons.nth(row).inner_text())
    label = buttons.nth(other).locator(".label").inner_text()
    buttons.nth(other).click()
    expect(tokens(page)).to_have_count(place + 1)
    wait_ready(page)
    assert labels(page)[:-1] == before[:place]
    assert labels(page)[-1].startswith(label)
    assert "picked" in tokens(page).nth(place).get_attribute("class")
    expect(page).not_to_have_url(re.compile("step="))

    main_button(page, "Clear").click()
    expect(tokens(page)).to_have_count(prompt)
    expect(main_button(page, "Clear")).to_be_disabled()
    expect(page).not_to_have_url(re.compile("written="))


def test_a_token_picked_before_anything_is_written_can_be_cleared(visit, wait_ready):
    page = visit()
    prompt = tokens(page).count()
    page.get_by_test_id("live-text-candidates").get_by_role("button").nth(5).click()
    until_written(page, prompt + 1)
    expect(page).to_have_url(re.compile("written="))
    main_button(page, "Clear").click()
    expect(tokens(page)).to_have_count(prompt)


# Attention and Positions


def test_a_head_a_cell_and_its_arithmetic_and_the_dials_of_positions(visit, wait_ready):
    page = visit()
    turn_to(page, "Attention")
    heads = page.get_by_test_id("head-grid-head")
    wait_ready(page, timeout=60)
    expect(heads).to_have_count(4)
    heads.nth(1).click()
    expect(page.get_by_role("heading", name="Layer 0, head 1")).to_be_visible()
    expect(heads.nth(1)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="How it comes about").click()
    page.get_by_label("Query (row)").select_option("0")
    expect(page.locator("[data-step=weight]")).to_contain_text("÷ the sum of the row's 1 exponential:")
    for label, place in (("Query (row)", "5"), ("Key (column)", "3")):
        page.get_by_label(label).select_option(place)
    weight = page.locator("[data-step=weight]")
    expect(weight).to_contain_text("÷ the sum of the row's 6 exponentials:")
    expect(weight).to_contain_text("recomputed, equal")
    for parameter in ("query=5", "key=3", "head=1"):
        expect(page).to_have_url(re.compile(parameter))

    turn_to(page, "Positions")
    wait_ready(page, timeout=60)
    for name in ("One number by hand", "The waves", "How alike", "A step", "The positions of"):
        page.locator("summary", has_text=name).click()
        wait_ready(page, timeout=60)
    formula = page.locator(".katex annotation").first
    expect(formula).to_contain_text("PE_{(5,\\,4)}")
    dimension = page.get_by_role("spinbutton", name="Dimension")
    dimension.fill("7")
    dimension.press("Enter")
    expect(formula).to_contain_text("PE_{(5,\\,7)}")
    expect(page).to_have_url(re.compile("dimension=7"))
    expect(page.get_by_text("It turns each pair of dimensions of its queries and keys")).to_be_visible()
    plots = page.locator(".js-plotly-plot")
    expect(plots).to_have_count(4)
    assert plots.evaluate_all(CRAMPED) == []


# Everybody, everywhere


def test_on_a_phone_nothing_is_too_wide_in_light_and_dark_and_markup_in_a_prompt_is_text(visit, wait_ready):
    typed = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    page = None
    for name in PAGES:
        page = visit(f"{name}?prompt={typed}&text=,%20my%20love&scope=all", again=page, width=420)
        expect(prompt_box(page)).to_have_value(typed)
        if not name:
            assert text(page) == f"{typed}, my love".replace(" ", "␣")
        assert page.get_by_test_id("stMain").locator("script, img[src=x]").count() == 0
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(HAS_SCHEME, arg=scheme)
            wait_ready(page, timeout=60)
            assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
            assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")
        page.emulate_media(color_scheme="light")


def test_a_link_with_pictures_in_it_loads_none(visit):
    page = visit("?temperature=![x](http://127.0.0.2/a.png)&model=![x](http://127.0.0.3/b.png)")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_contain_text("![x](http:\u2060//127.0.0.2/a.png)")  # an invisible sign keeps links from being made
    expect(alert.locator("img")).to_have_count(0)


def test_unknown_characters_are_named_and_removed_at_a_click(visit, wait_ready):
    page = visit()
    type_prompt(page, "Romé 😀")
    expect(page.get_by_text("This model has never seen")).to_contain_text("“é” (character 4), “😀” (character 6)")
    expect(prompt_box(page)).to_have_value("Romé 😀")
    main_button(page, "Remove what is unknown").click()
    expect(prompt_box(page)).to_have_value("Rom ")
    expect(tokens(page)).to_have_count(4)
    assert text(page) == "Rom␣"


def test_one_visitor_writes_while_another_looks(visit, wait_ready):
    one, other = visit("?tokens=300&pace=steady"), visit("?prompt=KING:", apart=True)
    main_button(one, "Generate").click()
    until_written(one, len(PROMPT) + 3)
    began = time.monotonic()
    main_button(other, "Step").click()
    until_written(other, len("KING:") + 1)
    print(f"the other visitor's step took {time.monotonic() - began:.2f} s")
    wait_ready(other)
    expect(tokens(other)).to_have_count(len("KING:") + 1)
    main_button(one, "Stop").click()
    until_at_rest(one, wait_ready)
    assert tokens(one).count() > len(PROMPT) + 3
