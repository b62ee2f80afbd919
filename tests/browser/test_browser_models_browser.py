"""Tests that the app's visitors compute small models in their own browsers, and that the server stands behind them."""

import re

import pytest

from tests.browser.at_rest import DISCONNECTED
from tests.browser.attention_page import (
    PROMPT,
    WHOLE,
    all_equal,
    head,
    parameters,
    pick,
    queries,
    turn_to,
    type_prompt,
    until,
)
from tests.browser.generate_page import branches, candidates, live_text, main_button, tokens, until_written, written
from tests.browser.generate_page import text as text_on_screen
from tests.browser.generate_page import until_shown as until_text_shown
from tests.browser.servers import ROOT
from transformer import Sampling, generate, load_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect

FROM_NOW_ON = re.compile(r"^Computed on the server at first, from now on in your browser\. Its numbers differ")
ALONE = re.compile(
    r"^Computed in your browser\. Its numbers differ from the engine's by at most .+ of the largest \(measured here"
)
FILES = ("description", "weights")


@pytest.fixture(scope="module")
def server(serve, tiny_folder):
    """Of the app on tiny models, as it is by itself: browsers compute them."""
    with serve(ROOT / "app.py", env={"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_BROWSER_MODELS": ""}) as found:
        yield found


@pytest.fixture
def visit(server, new_page):
    """`visit(address, page=None)`: a page once its model is in the browser, and what is asked of the API."""

    def open_page(address, page=None):
        page, asked = page or new_page(), []
        page.on("request", lambda request: "/api/" in request.url and asked.append(request.url.split("/api/")[1]))
        page.goto(f"{server.url}/{address}")
        expect(said(page)).to_have_text(FROM_NOW_ON)
        return page, asked

    return open_page


def said(page):
    """Who computes what is on screen."""
    return page.locator("p.computed")


def place(page):
    return page.get_by_test_id("attention").get_attribute("data-shown").split(".")


def test_attention_a_pass_and_a_text_are_computed_where_they_are_looked_at(visit, wait_ready, tiny_folder):
    page, asked = visit(f"Attention?model=far-reader&prompt={PROMPT}")
    assert [question.split("?")[0] for question in asked if question.startswith(FILES)] == [*FILES]
    page.locator(f"{WHOLE}[data-fetched=true]").wait_for()
    all_equal(page)
    asked.clear()
    type_prompt(page, "KING: I am")
    expect(queries(page)).to_have_count(10)
    expect(said(page)).to_have_text(ALONE)
    head(page, 2, 1).click()
    until(page, lambda: place(page)[:2] == ["2", "1"])
    page.locator(WHOLE).wait_for()
    all_equal(page)
    wait_ready(page)
    pick(page, "Model", "Average")
    expect(said(page)).to_have_text(FROM_NOW_ON)
    assert {question.split("?")[0] for question in asked} >= {"overview", *FILES}  # of the other model
    until(page, lambda: len(page.workers) == 1)
    turn_to(page, "Inside")
    expect(said(page)).to_have_text(ALONE)

    # A pass is computed with what is changed in it.
    page, asked = visit(f"Inside?model=far-reader&prompt={PROMPT}", page)
    asked.clear()
    type_prompt(page, "KING: I am")
    expect(said(page)).to_have_text(ALONE)
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.get_by_role("button", name="layer 1 · feed-forward").click()
    page.locator(".name.row", has_text="pre-activation").first.click()
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    expect(page.locator(".by-hand .badge").first).to_contain_text("recomputed, equal")
    page.goto(page.url + "&changes=scale~blocks.1.attn.hook_z~0~~0.0")
    expect(said(page)).to_have_text(FROM_NOW_ON)
    asked.clear()
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text("tensors of this pass were recomputed")).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_text("Changed: layer 1, head 0 ablated.")).to_be_visible()
    assert not [question for question in asked if not question.startswith(FILES)]

    # A text is written with the tokens that the server would write.
    checkpoint = load_checkpoint(tiny_folder / "far-reader")
    prompt = checkpoint.tokenizer.encode(PROMPT)
    steps = generate(checkpoint.model, prompt, max_new_tokens=40, sampling=Sampling(temperature=0.8, seed=3))
    expected = [step.token_id for step in steps]
    begun = ".".join(map(str, expected[:10]))
    page, asked = visit(f"?model=far-reader&prompt={PROMPT}&seed=3&tokens=30&pace=unbounded&written={begun}", page)
    asked.clear()
    main_button(page, "Generate").click()
    until_written(page, len(prompt) + 40)
    until(page, lambda: written(page) == expected)
    assert asked == []
    tokens(page).nth(len(prompt) + 5).click()  # another candidate there begins a branch, whose scores are asked for
    candidates(page).nth(3).click()
    expect(branches(page)).to_have_count(2)
    page.get_by_label("Pace").select_option("2 tokens a second")
    main_button(page, "Generate").click()
    until_written(page, len(prompt) + 7)
    main_button(page, "Stop").click()
    live_text(page).and_(page.locator("[data-live=false]")).wait_for()
    until(page, lambda: len(written(page)) < 30)
    assert asked == []
    expect(said(page)).to_have_text(FROM_NOW_ON)


@pytest.mark.parametrize("damage", ["missing", "no workers"])
def test_the_server_answers_where_the_browser_can_not(server, new_window, browser_errors, damage):
    page, asked = new_window(), []
    if damage == "no workers":
        page.add_init_script("delete window.Worker")
    else:
        page.route("**/api/weights*", lambda route: route.fulfill(status=404, json={"error": "Gone."}))
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.url.split("/api/")[1]))
    page.goto(f"{server.url}/Attention?model=far-reader&prompt={PROMPT}")
    page.locator(f"{WHOLE}[data-fetched=true]").wait_for()
    until(page, lambda: any(question.startswith("weights") for question in asked))
    asked.clear()
    type_prompt(page, "KING: I am")
    expect(queries(page)).to_have_count(10)
    page.locator(f"{WHOLE}[data-fetched=true]").wait_for()
    all_equal(page)
    assert any(question.startswith("overview") for question in asked)
    assert not any(question.startswith(FILES) for question in asked)
    expect(said(page)).to_have_text("")
    expect(page.get_by_role("alert").locator("visible=true")).to_have_count(0)
    assert parameters(page)["prompt"] == "KING: I am"
    browser_errors.clear()  # of what isn't there


def test_two_tabs_go_on_when_the_server_has_gone(server, new_page, browser_errors):
    """The last test of the module: it stops the server."""
    attention, text = new_page(), new_page()
    for page, address in (
        (attention, f"Attention?model=far-reader&prompt={PROMPT}"),
        (text, "?tokens=20&pace=unbounded"),
    ):
        page.goto(f"{server.url}/{address}")
        expect(said(page)).to_have_text(FROM_NOW_ON)
    attention.locator(WHOLE).wait_for()
    until_text_shown(text)
    before = text_on_screen(text)
    server.stop()
    for page in (attention, text):
        page.locator(DISCONNECTED).wait_for()
    head(attention, 2, 1).click()
    until(attention, lambda: place(attention)[:2] == ["2", "1"])
    all_equal(attention)
    main_button(text, "Generate").click()
    until_written(text, len(before) + 20)
    assert text_on_screen(text).startswith(before)
    expect(text.get_by_role("alert").filter(has_text="can't be reached")).to_have_count(0)
