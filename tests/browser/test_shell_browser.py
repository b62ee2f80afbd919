"""Tests the shell in a page whose models a server computes: what the app's pages are, without Streamlit."""

import asyncio
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn

from tests.browser.attention_page import head, instrument, type_prompt, until
from tests.browser.servers import ROOT
from tests.browser.test_accessibility import found
from tests.tiny_models import save_chatty, save_tiny
from transformer import load_checkpoint
from transformer.api.model_library import Library
from transformer.api.serve import application
from transformer.frontend import FOLDER, bundle
from transformer.frontend.site import style

expect = pytest.importorskip("playwright.sync_api").expect

SHOWN = "[data-part=root][data-state=shown]"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Page</title><base href="/"><style>{style}</style>
<body><main></main><script type="module">{script}</script></html>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two shipped models, one that reads its prompts in a chat template, and a tiny one."""
    folder = tmp_path_factory.mktemp("checkpoints")
    save_chatty(folder)
    save_tiny(folder, "tiny", title="Tiny")
    for name in ("stories", "number-words-en-es"):
        (folder / name).symlink_to(ROOT / "checkpoints" / name)
    return folder


@pytest.fixture(scope="module")
def api(folder):
    """The address of the API that these models answer."""
    server = uvicorn.Server(uvicorn.Config(application(Library(folder)), port=0, log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture
def page(api, new_window):
    """A tab in which `page?LINK` is such a page."""
    page, worker = new_window(), bundle(FOLDER / "engine" / "worker.js")
    html = PAGE.format(style=style(), script=bundle(Path(__file__).with_name("page_over_http.js")))
    page.route(f"{api}page**", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.route("**/worker_bundle.js", lambda route: route.fulfill(body=worker, content_type="text/javascript"))
    return page


def test_a_page_asks_a_server_and_computes_what_follows_in_the_browser(api, page):
    asked = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path.removeprefix("/api/")))
    page.goto(f"{api}page?model=stories&prompt=Tom+ran.")
    page.wait_for_selector(SHOWN)
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "stories")
    encoded = lambda text: ",".join(map(str, checkpoint.tokenizer.encode(text)))  # noqa: E731
    until(page, lambda: page.evaluate("document.body.dataset.read") == encoded("Tom ran."))
    expect(page.locator(".computed")).to_contain_text("from now on in your browser")

    asked.clear()
    prompt = page.get_by_label("Prompt")
    for text in ("Mary took the ball.", "Tom ran, Mary ran."):
        prompt.fill(text)
        prompt.press("Enter")
    until(page, lambda: page.evaluate("document.body.dataset.read") == encoded("Mary took the ball."))
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("never seen")
    expect(page.get_by_test_id("attention")).to_contain_text("took")
    assert asked == []  # the tab reads and computes a small model's texts itself

    # A link to another page keeps the state.
    page.get_by_label("Model", exact=True).select_option("number-words-en-es")
    page.wait_for_selector(SHOWN)
    expect(page.get_by_test_id("attention")).to_contain_text("doscientos")
    page.get_by_role("button", name="How it comes about").click()
    page.locator("[data-panel=weights] canvas.marks").press("Home")
    page.get_by_role("button", name="Open in Inside").first.click()
    expect(page.get_by_role("heading", name="Inside", exact=True)).to_be_visible()
    page.wait_for_selector(SHOWN)
    until(page, lambda: "cross_attn" in parse_qs(urlsplit(page.url).query).get("inside", [""])[0])


def test_the_words_that_may_come_next_are_offered_to_keys_and_to_touch(api, page):
    page.goto(f"{api}page?model=stories&prompt=Tom+ran+to+the+park.")
    page.wait_for_selector(SHOWN)
    prompt, words = page.get_by_label("Prompt"), page.get_by_role("listbox", name="Words that may come next")
    heading = page.get_by_role("heading", name="Attention", exact=True)
    box = heading.bounding_box()
    prompt.fill("Mary went to the gard")
    expect(words.get_by_role("option")).to_have_text(["garden"])
    assert heading.bounding_box() == box
    prompt.press("ArrowDown")
    option = words.get_by_role("option", selected=True)
    expect(prompt).to_have_attribute("aria-activedescendant", option.get_attribute("id"))
    assert found(page) == []
    prompt.press("Enter")
    expect(prompt).to_have_value("Mary went to the garden ")
    words.get_by_role("option", name=".").click()
    expect(prompt).to_have_value("Mary went to the garden. ")
    expect(prompt).to_be_focused()
    prompt.press_sequentially("who h")
    prompt.press("ArrowDown")
    prompt.press("Enter")
    expect(prompt).to_have_value("Mary went to the garden. who has ")
    prompt.fill("")
    few = words.get_by_role("option").count()
    prompt.press("ArrowDown")
    for _ in range(few - 1):
        prompt.press("ArrowRight")
    prompt.press("Enter")  # on the last, which stands for the others
    until(page, lambda: words.get_by_role("option").count() > few)
    prompt.press("Escape")  # from the words to the text, and from there to the page
    expect(words).to_be_hidden()
    expect(prompt).to_be_focused()
    prompt.press("Escape")
    expect(prompt).to_have_value("Tom ran to the park.")
    expect(prompt).not_to_be_focused()

    prompt.fill("Tom found ")
    prompt.press("Enter")  # no word is chosen: the text is sent
    until(page, lambda: parse_qs(urlsplit(page.url).query)["prompt"] == ["Tom found "])


def test_slips_are_named_a_sentence_outside_the_grammar_is_called_that_and_an_empty_prompt_changes_nothing(api, page):
    page.goto(f"{api}page?model=stories&prompt=")
    picture, notices = page.get_by_test_id("attention"), page.locator(".shell-notices")
    problem = page.get_by_role("alert").filter(visible=True)
    expect(notices).to_contain_text("The prompt is empty")
    expect(picture).to_contain_text("?")  # the first example

    type_prompt(page, "Mary went to the gardn. Where is Mary?")
    page.get_by_role("button", name="Write “garden” instead of “gardn”").click()
    until(page, lambda: parse_qs(urlsplit(page.url).query).get("prompt") == ["Mary went to the garden. Where is Mary?"])
    expect(picture).to_contain_text("garden")
    expect(notices).to_be_hidden()

    type_prompt(page, "Tom has gave the key.")
    expect(notices).to_contain_text("never met sentences like “Tom has gave the key.”")
    expect(notices).to_contain_text("After “has”, it knows “the”")
    expect(picture).to_contain_text("gave")
    notices.get_by_role("button", name="OK").click()
    expect(notices).to_be_hidden()

    type_prompt(page, "")
    expect(notices).to_contain_text("The prompt is empty")
    expect(notices).to_contain_text("“Tom has gave the key.”")
    expect(picture).to_contain_text("gave")
    expect(problem).to_have_count(0)


def test_a_model_that_was_tuned_to_answer_reads_its_prompt_in_a_template_or_as_plain_text(api, page):
    page.goto(f"{api}page?model=chatty&prompt=Hi")
    page.wait_for_selector(SHOWN)
    page.get_by_role("button", name="Menu").click()
    page.locator("summary", has_text="Read as").click()
    menu = page.get_by_role("group", name="Menu")
    expect(menu).to_contain_text("⟨im_start⟩user\nHi⟨im_end⟩", use_inner_text=True)
    in_template = page.evaluate("document.body.dataset.read")
    menu.get_by_label("The prompt is read as").select_option("plain")
    until(page, lambda: page.evaluate("document.body.dataset.read") != in_template)
    expect(menu).not_to_contain_text("im_start")
    until(page, lambda: parse_qs(urlsplit(page.url).query).get("reads") == ["plain"])
    page.reload()
    until(page, lambda: len(page.evaluate("document.body.dataset.read ?? ''")) < len(in_template))


def test_what_failed_for_the_moment_is_tried_again(api, page, browser_errors):
    page.clock.install()
    problem = page.get_by_role("alert").filter(has_text="The server can't be reached just now", visible=True)

    def meanwhile(is_so):
        """Let the pauses between two tries pass until something is so."""
        until(page, lambda: is_so() or page.clock.fast_forward(2_000), seconds=60)

    page.route("**/api/models/**", lambda route: route.abort())
    page.goto(f"{api}page?model=chatty&prompt=Hi")
    meanwhile(problem.is_visible)
    page.unroute("**/api/models/**")
    meanwhile(lambda: page.locator(SHOWN).count())
    expect(problem).to_have_count(0)

    before = page.evaluate("document.body.dataset.read")
    page.route("**/api/tokens*", lambda route: route.abort())
    type_prompt(page, "Ho")
    meanwhile(problem.is_visible)
    page.unroute("**/api/tokens*")
    meanwhile(lambda: page.evaluate("document.body.dataset.read") != before)
    expect(problem).to_have_count(0)
    browser_errors.clear()  # which were provoked


def test_a_page_goes_on_with_the_new_files_of_a_model_and_loses_nothing_that_was_typed(
    api, page, folder, browser_errors
):
    page.route("**/api/weights*", lambda route: route.abort())  # so that the server computes
    page.goto(f"{api}page?model=tiny&prompt=To+be&written=2.3&scope=all&layer=1&head=1")
    page.wait_for_selector(SHOWN)
    heads = head(page, "\\d", "\\d")
    save_tiny(folder, "tiny", title="Tiny", n_layers=1)
    head(page, 0, 0).click()
    expect(page.locator(".shell-notices")).to_contain_text("Tiny was replaced by another version")
    expect(heads).to_have_count(2)
    assert parse_qs(urlsplit(page.url).query)["written"] == ["2.3"]
    save_tiny(folder, "tiny", title="Tiny", n_layers=3)
    type_prompt(page, "No one")
    expect(heads).to_have_count(6)
    expect(instrument(page)).to_contain_text("“e” looks at")
    expect(page.locator(".problem:visible")).to_have_count(0)
    browser_errors.clear()  # which were provoked


def test_a_model_s_changes_are_put_away_with_it_and_come_back(api, page):
    change = "scale~blocks.0.attn.hook_z~0~~0.0"
    page.goto(f"{api}page?model=stories&changes={change}")
    page.wait_for_selector(SHOWN)
    changes = lambda: parse_qs(urlsplit(page.url).query).get("changes")  # noqa: E731
    for name, own in (("number-words-en-es", None), ("stories", [change])):
        page.get_by_label("Model", exact=True).select_option(name)
        until(page, lambda name=name, own=own: f"model={name}" in page.url and changes() == own)
        page.wait_for_selector(SHOWN)
        expect(page.get_by_role("button", name="Menu, 1 change")).to_be_visible(visible=own is not None)
