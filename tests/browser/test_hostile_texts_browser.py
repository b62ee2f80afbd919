"""Tests that no text of a card, a tokenizer, a lesson or a visitor becomes a script in any page that is made of it."""

import html
import json
from urllib.parse import urlencode

import pytest
import tokenizers

from pages.ui.lessons.lesson import read_lesson
from pages.ui.views.learn.site_lessons import handout, site_document
from tests.browser.attention_page import until
from tests.browser.test_site_browser import SHOWN, served
from transformer import Checkpoint, ModelCard, ModelConfig, Tokenizer, build_model, record_pass, show
from transformer.frontend.site import lesson_page, write_site

expect = pytest.importorskip("playwright.sync_api").expect

PAYLOADS = (
    "</SCRIPT><script>ran('an_end')</script>",
    "</script\t><img/src/onerror=ran('an_image')>",
    "<!--<script>",
    "\"><img/src/onerror=ran('an_attribute')>",
    "'><svg/onload=ran('a_drawing')>",
    "]]><script>ran('a_section')</script>",
    "</title></style></textarea><script>ran('a_title')</script>",
    "&lt;img/src=x/onerror=ran('a_reference')&gt;",
    "\\u003cimg/src=x/onerror=ran('JSON')\\u003e",
    "\u2028;ran('a_line');//",
    "${ran('a_template')}",
    "javascript:ran('a_link')",
)
"""Texts that run something where a page takes them for markup; without spaces, for which labels have signs."""
CONTROL = "<img/src/onerror=ran('control')>"
SLIP_IN = """(text) => new Promise((done) => {
  window.ran = (what) => (window.did = what);
  document.body.insertAdjacentHTML("beforeend", `<a href="javascript:ran('a link')">x</a>${text}`);
  document.body.append(Object.assign(document.createElement("script"), { text: "ran('a script')" }));
  document.body.querySelector("a[href^=javascript]").click();
  const image = document.body.querySelector("img:last-of-type");
  image.addEventListener("error", () => setTimeout(() => done(window.did ?? null)));
})"""
AROUND = "() => { try { return parent.document.title; } catch { return 'denied'; } }"
MEASURE = '```measure\n[sure]\nwhat = "probability"\ntoken = "b"\n```'
LESSON = """+++
title = {0}
asks = {1}
aims = [{2}]
+++
## {words}
{words}
```view
page = "Generate"
link = "model=induction&prompt=abcab"
```
{measure}
```question
kind = "choose"
text = {0}
options = [{1}, {3}]
right = ["sure >= 0", "sure < 0"]
```
```reveal
{words}
```
## {words}
```view
page = "What if"
link = "model=induction&prompt=abcab&question=comparison&beside=models"
```
```question
kind = "number"
text = {6}
right = "sure"
low = 0
high = 9
step = 1
near = 1
unit = "<plaintext>"
```
## {words}
```question
kind = "order"
text = {7}
options = [{3}, {4}]
right = [{3}, {4}]
```
""".format(*map(json.dumps, PAYLOADS), words=" ".join(PAYLOADS[:9]), measure=MEASURE)


@pytest.fixture(scope="module")
def hostile():
    """A model whose every text means something to a browser: a token a payload."""
    words = {word: token for token, word in enumerate(PAYLOADS)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token=""))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Split("\n", "removed")
    config = ModelConfig(vocab_size=len(words), n_layers=1, n_heads=2, d_model=16, context_length=16)
    card = {"title": PAYLOADS[0], "summary": PAYLOADS[1], "group": PAYLOADS[3], "examples": ["\n".join(PAYLOADS)]}
    return Checkpoint(build_model(config, seed=0).eval(), Tokenizer(backend), ModelCard(**card))


@pytest.fixture
def opened(new_window, tmp_path, browser_errors):
    """`opened(page)`: HTML that was saved as a file, in a window of its own in which no policy holds anything back."""
    ran, window = [], new_window()
    window.expose_function("ran", lambda what: ran.append(what))

    def open_file(page):
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        window.goto((tmp_path / "page.html").as_uri())
        return window

    yield open_file
    window.set_content(CONTROL)
    until(window, lambda: ran)
    assert ran == ["control"]


def test_what_a_saved_page_and_a_notebook_show_runs_nothing(opened, hostile):
    text, labels = hostile.card.examples[0], hostile.tokenizer.labels(range(len(PAYLOADS)))
    page = opened(show(hostile, text, view="generation", title=PAYLOADS[6]).html)
    strip = page.get_by_role("listbox", name="Text, token by token")
    for payload in PAYLOADS[2:9]:
        expect(strip).to_contain_text(payload)
    expect(page).to_have_title(PAYLOADS[6])
    expect(page.get_by_label("Prompt")).to_have_value(text)
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.locator(".token.written")).to_have_count(1)
    unknown = PAYLOADS[3].replace("'", "") * 2
    page.get_by_label("Prompt").fill(unknown)
    page.get_by_label("Prompt").press("Enter")
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text(unknown)

    recording = record_pass(hostile.model, range(len(PAYLOADS)), labels=hostile.tokenizer.labels)
    for shown in (show(hostile, text, title=PAYLOADS[0]), show(recording, title=PAYLOADS[1])):
        opened(shown.html)
        expect(page.get_by_role("region", name="The forward pass").or_(page.locator(".inside")).first).to_be_visible()
    opened(show(recording, "self", title=PAYLOADS[3], layer=0, head=0, query=3).html)
    expect(page.locator("main")).to_contain_text(labels[3])
    page.set_content(show(hostile, text, view="attention", title=PAYLOADS[3])._repr_html_())
    frame = page.frame_locator("iframe")
    expect(frame.locator(SHOWN)).to_contain_text(labels[3])
    assert (
        page.frames[1].evaluate("() => { try { return parent.document.title; } catch { return 'denied'; } }")
        == "denied"
    )


def test_what_a_lesson_says_runs_nothing_on_paper_and_in_a_frame_that_allows_scripts_alone(opened, hostile):
    """As learning platforms have it: nothing may be submitted, kept, or downloaded."""
    lesson = read_lesson("own", LESSON)
    data, name = site_document(lesson), PAYLOADS[3]
    data["steps"][0]["view"]["link"] = urlencode({"model": name, "prompt": hostile.card.examples[0]})
    file = lesson_page(data, {name: hostile})
    page = opened(f'<iframe sandbox="allow-scripts" style="width: 95vw; height: 95vh" srcdoc="{html.escape(file)}">')
    frame = page.frame_locator("iframe")
    said, answer = frame.get_by_role("status"), frame.get_by_role("button", name="Answer", exact=True)
    following = frame.get_by_role("button", name="Next", exact=True)
    expect(frame.get_by_role("heading", level=1)).to_have_text(PAYLOADS[0])
    expect(answer).to_be_disabled()  # nothing is chosen yet
    frame.get_by_role("radio", name=PAYLOADS[3]).check()
    answer.click()
    expect(said).to_contain_text(f"Your answer: “{PAYLOADS[3]}”. Correct: “{PAYLOADS[1].expandtabs(1)}”.")
    expect(frame.locator(SHOWN)).to_contain_text(PAYLOADS[3])
    frame.get_by_label("Prompt", exact=True).fill(PAYLOADS[4])
    frame.get_by_label("Prompt", exact=True).press("Enter")
    expect(frame.locator(SHOWN)).to_contain_text(PAYLOADS[4])
    following.click()
    frame.get_by_role("slider").fill("3")
    frame.get_by_role("slider").press("Enter")
    expect(said).to_contain_text("Your answer: 3 <plaintext>.")
    following.click()
    frame.get_by_role("button", name="Move down").first.click()
    answer.click()
    expect(said).to_contain_text(f"Your answer: {PAYLOADS[4]} → {PAYLOADS[3]}. The correct order")
    frame.get_by_role("button", name="Save my answers").click()
    expect(frame.get_by_text("this page is shown in a frame that allows no downloads")).to_be_visible()
    opened(handout(lesson))
    expect(page.locator("body")).to_contain_text(" ".join(PAYLOADS[2:9]))


def test_what_a_site_shows_runs_nothing(opened, hostile, tmp_path, browser_errors):
    lesson = site_document(read_lesson("own", LESSON))
    other = lesson | {"name": PAYLOADS[11], "steps": [], "note": html.escape(PAYLOADS[3])}
    folder = PAYLOADS[3].replace("/", " ")
    write_site(tmp_path / "below" / "a path", {folder: hostile}, [lesson, other])
    page = opened("")
    with served(tmp_path) as (site, _):
        page.goto(f"{site}?{urlencode({'prompt': PAYLOADS[3]})}")
        expect(page.locator(SHOWN)).to_contain_text(PAYLOADS[3])
        expect(page.get_by_label("Model", exact=True).locator("option")).to_have_text(PAYLOADS[0])
        page.goto(f"{site}Attention/?{urlencode({'model': PAYLOADS[0], 'changes': PAYLOADS[3]})}")
        notices = page.locator(".shell-notices")
        expect(notices).to_contain_text(f"There is no model “{PAYLOADS[0][:40]}” here; {PAYLOADS[0]} is shown.")
        page.goto(f"{site}Inside/?{urlencode({'model': folder, 'changes': PAYLOADS[3]})}")
        expect(notices).to_contain_text('Reason: there is no change called “"><img/src')
        browser_errors.clear()  # a model that isn't there was looked for
        page.goto(f"{site}Learn/?lesson={PAYLOADS[11]}")
        expect(page.get_by_role("listitem").nth(1)).to_contain_text(PAYLOADS[3])
        page.get_by_role("link", name=PAYLOADS[0]).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(PAYLOADS[0])


def test_what_is_slipped_into_a_saved_page_does_not_run(chromium, hostile, tmp_path):
    """By the page's own policy, which lets its own script compute."""
    lesson = site_document(read_lesson("own", LESSON), is_live=False)
    pages = {
        show(hostile, PAYLOADS[3]).html: SHOWN,
        lesson_page(lesson, {}): "h1",
        handout(read_lesson("own", LESSON)): "h1",
    }
    with chromium.new_context() as context:
        page = context.new_page()
        for text, shown in pages.items():
            (tmp_path / "page.html").write_text(text, encoding="utf-8")
            page.goto((tmp_path / "page.html").as_uri())
            expect(page.locator(shown).first).to_be_visible()
            assert page.evaluate(SLIP_IN, CONTROL) is None
