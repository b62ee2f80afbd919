"""Tests that visitors compute small models in their own browsers, and what stands behind them: a server, or a copy."""

import re
import shutil

import pytest

from deploy.replicas import Replicas, free_port
from tests.browser.address_bar import come_to
from tests.browser.at_rest import CONNECTED, DISCONNECTED
from tests.browser.attention_page import (
    PROMPT,
    WHOLE,
    all_equal,
    head,
    parameters,
    pick_model,
    queries,
    turn_to,
    type_prompt,
    until,
)
from tests.browser.generate_page import (
    branches,
    candidates,
    main_button,
    tokens,
    until_at_rest,
    until_written,
    write,
    written,
)
from tests.browser.servers import ROOT
from transformer import Sampling, generate, load_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect

FROM_NOW_ON = re.compile(r"^Computed on the server at first, from now on in your browser\. Its numbers differ")
ALONE = re.compile(
    r"^Computed in your browser\. Its numbers differ from the engine's by at most .+ of the largest \(measured here"
)
HERE = re.compile(f"{FROM_NOW_ON.pattern}|{ALONE.pattern}")
FILES = ("description", "weights")


HAS_NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is not None


@pytest.fixture(scope="module")
def server(serve, tiny_folder, tmp_path_factory):
    """Of the app on tiny models, as it is by itself: browsers compute them. Behind nginx, if that is here, are two."""
    env = {"HEADSUP_CHECKPOINTS": str(tiny_folder), "HEADSUP_BROWSER_MODELS": "", "HEADSUP_START": "off"}
    if not HAS_NGINX:
        with serve(ROOT / "app.py", env=env) as found:
            yield found
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        with Replicas(tmp_path_factory.mktemp("replicas"), 2, free_port()) as found:
            found.start_all()
            yield found


def said(page):
    """Who computes what is on screen."""
    return page.locator("p.computed")


def follow(page):
    """What a page asks of the API, as it grows."""
    asked = []
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.url.split("/api/")[1]))
    return asked


def place(page):
    return page.get_by_test_id("attention").get_attribute("data-shown").split(".")


def test_the_server_answers_where_the_browser_can_not_and_another_copy_of_it_once_it_is_killed(
    server, new_window, wait_ready, browser_errors
):
    page = new_window()
    asked = follow(page)
    page.route("**/api/weights*", lambda route: route.fulfill(status=404, json={"error": "Gone."}))
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
    if HAS_NGINX:
        a_tab_is_back_with_its_own_model_when_its_copy_is_killed(page, server, wait_ready)
    browser_errors.clear()  # of what isn't there, and that nobody answered


def copy_of(page):
    """The name of the copy that the visitor is on."""
    (found,) = [each["value"] for each in page.context.cookies() if each["name"] == "headsup_server"]
    return found


def a_tab_is_back_with_its_own_model_when_its_copy_is_killed(page, replicas, wait_ready):
    page.goto(f"{replicas.url}/Train?learn=task&task=next-vowel&shape=dials&n_heads=1&d_model=16&n_layers=1&steps=50")
    wait_ready(page)
    main_button(page, "Train").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    turn_to(page, "Generate")
    wait_ready(page)
    tokens(page).first.wait_for()
    before = tokens(page).all_inner_texts()
    own = page.get_by_label("Model", exact=True).locator("optgroup[label=Yours] option").first.get_attribute("value")
    pick_model(page, own)
    wait_ready(page)
    until(page, lambda: tokens(page).all_inner_texts() not in ([], before))
    write(page, wait_ready, 1)
    shown, address = tokens(page).all_inner_texts(), parameters(page)
    cookie = copy_of(page)
    replicas.kill(replicas.app_of(cookie))
    until(page, lambda: copy_of(page) != cookie)
    page.locator(CONNECTED).wait_for()
    wait_ready(page)
    until(page, lambda: (parameters(page), tokens(page).all_inner_texts()) == (address, shown))
    expect(page.get_by_label("Model", exact=True)).to_have_value(own)
    turn_to(page, "Attention")
    expect(page.get_by_role("heading", name="Layer 0, head 0")).to_be_visible()
    assert page.get_by_text("was deleted").count() == 0 and parameters(page)["model"] == address["model"]


def test_attention_a_pass_and_a_text_are_computed_where_they_are_looked_at_even_when_the_server_has_gone(
    server, new_page, wait_ready, tiny_folder, browser_errors
):
    """The last test of the module: it stops the server."""
    page = new_page()
    asked = follow(page)
    page.goto(f"{server.url}/Attention?model=far-reader&prompt={PROMPT}")
    expect(said(page)).to_have_text(FROM_NOW_ON)
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
    assert asked == []
    pick_model(page, "Average")
    expect(said(page)).to_have_text(FROM_NOW_ON)
    assert {question.split("?")[0] for question in asked} >= {"overview", *FILES}  # of the other model
    until(page, lambda: len(page.workers) == 1)

    # A pass is computed with what is changed in it.
    come_to(page, f"/Inside?model=far-reader&prompt={PROMPT}")
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    expect(said(page)).to_have_text(HERE)  # the page that is left may have asked for the model already
    asked.clear()
    type_prompt(page, "KING: I am")
    expect(said(page)).to_have_text(ALONE)
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.get_by_role("button", name="layer 1 · feed-forward").click()
    page.locator(".name.row", has_text="pre-activation").first.click()
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    expect(page.locator(".by-hand .badge").first).to_contain_text("recomputed, equal")
    come_to(page, f"/Inside?model=far-reader&prompt={PROMPT}&changes=scale~blocks.1.attn.hook_z~0~~0.0")
    expect(page.get_by_test_id("stMain").get_by_text("Changed: layer 1, head 0 ablated.")).to_be_visible()
    expect(said(page)).to_have_text(ALONE)
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text("tensors of this pass were recomputed")).to_be_visible()
    assert asked == []

    # A text is written with the tokens that the server would write.
    checkpoint = load_checkpoint(tiny_folder / "far-reader")
    prompt = checkpoint.tokenizer.encode(PROMPT)
    steps = generate(checkpoint.model, prompt, max_new_tokens=40, sampling=Sampling(temperature=0.8, seed=3))
    expected = [step.token_id for step in steps]
    begun = ".".join(map(str, expected[:10]))
    come_to(page, f"/?model=far-reader&prompt={PROMPT}&seed=3&tokens=30&pace=unbounded&written={begun}")
    until_written(page, len(prompt) + 10)
    wait_ready(page)
    main_button(page, "Generate").click()
    until_written(page, len(prompt) + 40)
    until(page, lambda: written(page) == expected)
    tokens(page).nth(len(prompt) + 5).click()  # another candidate there begins a branch, whose scores are asked for
    candidates(page).nth(3).click()
    expect(branches(page)).to_have_count(2)
    page.get_by_label("Pace").select_option("2 tokens a second")
    main_button(page, "Generate").click()
    until_written(page, len(prompt) + 7)
    main_button(page, "Stop").click()
    until_at_rest(page, wait_ready)
    assert len(written(page)) < 30
    assert asked == []

    # Both tabs go on when the server has gone.
    other = new_page()
    other.goto(f"{server.url}/Attention?model=far-reader&prompt={PROMPT}")
    expect(said(other)).to_have_text(FROM_NOW_ON)
    other.locator(WHOLE).wait_for()
    server.stop()
    for tab in (page, other):
        tab.locator(DISCONNECTED).wait_for()
    head(other, 2, 1).click()
    until(other, lambda: place(other)[:2] == ["2", "1"])
    all_equal(other)
    before = tokens(page).all_inner_texts()
    page.get_by_label("Pace").select_option("as fast as it can")
    main_button(page, "Generate").click()
    until_written(page, len(before) + 20)
    assert tokens(page).all_inner_texts()[: len(before)] == before
    expect(page.get_by_role("alert").filter(has_text="can't be reached")).to_have_count(0)
    for tab in (page, other):
        tab.close()
    browser_errors.clear()  # that nobody answered
