"""Tests the static site in a real Chromium, with and without a network, and a lesson in one file."""

import functools
import re
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from pages.ui.lessons.lesson import read_lesson
from pages.ui.number_format import percent
from pages.ui.views.learn.site_lessons import lesson_named, site_document
from tests.browser.attention_page import until
from tests.browser.browser_windows import PATIENCE_MS
from tests.browser.older_browser import make_older
from tests.browser.servers import ROOT
from tests.browser.test_accessibility import found as axe_found
from transformer import Sampling, Without, generate, load_checkpoint, record_pass, show, trace_pass
from transformer.checkpoints.folder import list_checkpoints
from transformer.frontend.site import MOST_BYTES, lesson_page, write_site

expect = pytest.importorskip("playwright.sync_api").expect

CHECKPOINTS = ROOT / "checkpoints"
BELOW = Path("below") / "a path"
BEFORE_FIRST_PICTURE = 1_500_000
"""Bytes that are fetched at most until something is seen."""
SHOWN = "[data-part=root][data-state=shown]"


class Host(SimpleHTTPRequestHandler):
    """A web host that has folders' addresses end in a slash."""

    def log_message(self, format, *arguments):
        pass


class StrictHost(Host):
    """One that takes that slash away, of all but the site itself, and allows a site its own files alone."""

    def do_GET(self):
        place = urlsplit(self.path)
        if place.path.endswith("/") and place.path.count("/") > 3:
            self.send_response(301)
            self.send_header("Location", place._replace(path=place.path.rstrip("/")).geturl())
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if not place.path.endswith("/") and Path(self.translate_path(place.path)).is_dir():
            self.path = f"{place.path}/index.html"
        super().do_GET()

    def end_headers(self):
        self.send_header("Content-Security-Policy", "default-src 'self'")
        super().end_headers()


class HostWithoutWorker(Host):
    """A host that has everything but the script that keeps a site."""

    def do_GET(self):
        if self.path.endswith("service_worker.js"):
            self.send_error(403)
        else:
            super().do_GET()


@contextmanager
def served(folder, handler=Host):
    """Yields what ends the server too, and the site's address."""
    kind = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 100})  # a browser asks for all files at once
    with kind(("127.0.0.1", 0), functools.partial(handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def end():
            server.shutdown()
            server.server_close()

        yield f"http://127.0.0.1:{server.server_port}/below/a%20path/", end
        server.shutdown()


def lesson_of(title, views):
    """The file of a lesson with a step for each view. views: links by pages."""
    step = '## Step\nWords.\n```view\npage = "{}"\nlink = "{}"\n```\n'
    return f'+++\ntitle = "{title}"\n+++\n' + "".join(step.format(*view) for view in views.items())


@pytest.fixture(scope="module")
def lesson():
    """A lesson of which one view's link names no model."""
    found = site_document(lesson_named("06-queries-keys-values"))
    found["steps"][1]["view"]["link"] = "prompt=ROMEO:"
    return found


@pytest.fixture(scope="module")
def checkpoints():
    return {name: load_checkpoint(CHECKPOINTS / name) for name in ("shakespeare", "stories", "number-words-en-es")}


@pytest.fixture(scope="module")
def folder(checkpoints, lesson, tmp_path_factory):
    """Where a site of two models and a lesson lies, below a path; of another lesson the model isn't there."""
    folder = tmp_path_factory.mktemp("site")
    models = {name: checkpoints[name] for name in ("shakespeare", "stories")}
    note = "It needs <em>another</em> model."
    other = {**lesson, "name": "other", "title": "Of a large model", "steps": [], "note": note}
    shown = dict.fromkeys(("Inside", "Generate"), "model=stories&prompt=Mary+took+the+ball.")
    pictures = site_document(read_lesson("pictures", lesson_of("Pictures", shown)), is_live=False)
    write_site(folder / BELOW, models, [lesson, other, pictures])
    return folder


@pytest.fixture
def opened(new_window, checkpoints, tmp_path, browser_errors):
    """`opened(lesson)`: its file, in a browser that is offline."""

    def open_file(lesson):
        (tmp_path / "lesson.html").write_text(lesson_page(lesson, checkpoints), encoding="utf-8")
        page = new_window()
        page.context.set_offline(True)
        page.goto((tmp_path / "lesson.html").as_uri())
        return page

    return open_file


def test_a_site_is_there_soon_writes_what_the_engine_does_and_opens_without_a_network(new_window, folder, checkpoints):
    checkpoint = checkpoints["stories"]
    page, fetched = new_window(), set()
    page.on("request", lambda request: fetched.add(request.url))
    with served(folder) as (site, end):

        def visit(path):
            page.goto(f"{site}{path}")
            page.wait_for_selector(SHOWN)

        # An address without a model means the app's, and the first picture comes soon.
        visit("")
        names = [unquote(url.removeprefix(site).partition("?")[0]) or "index.html" for url in fetched if site in url]
        assert "models/stories/model.safetensors" in names and "scripts/generate.js" in names
        assert sum((folder / BELOW / name).stat().st_size for name in names) < BEFORE_FIRST_PICTURE
        expect(page.get_by_label("Model", exact=True)).to_have_value("stories")
        visit("Attention/?prompt=ROMEO:")
        expect(page.get_by_label("Model", exact=True)).to_have_value("shakespeare")

        visit("?model=stories&temperature=0&tokens=20&pace=unbounded")
        page.get_by_role("button", name="Generate", exact=True).click()
        prompt = checkpoint.tokenizer.encode(checkpoint.card.examples[0])
        greedy = {"sampling": Sampling(temperature=0), "stop_tokens": checkpoint.card.stop_tokens}
        steps = generate(checkpoint.model, prompt, max_new_tokens=20, **greedy)
        text = ".".join(str(step.token_id) for step in steps)
        until(page, lambda: parse_qs(urlsplit(page.url).query).get("written") == [text])
        page.evaluate("navigator.serviceWorker.ready")
        visit("Attention/?model=stories")
        page.wait_for_function("navigator.serviceWorker.controller")
        page.reload()  # now by way of the service worker, which keeps the model
        page.wait_for_selector(SHOWN)
        weights = f"{site}models/stories/model.safetensors"
        page.wait_for_function("(url) => caches.match(url).then(Boolean)", arg=weights)
        end()
        visit("Inside/?model=stories")


def test_a_site_opens_where_slashes_are_taken_away_and_only_its_own_files_are_allowed(
    chromium, listen, folder, browser_errors
):
    with served(folder, StrictHost) as (site, end), chromium.new_context() as context:
        listen(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()

        def visit(place, shown=SHOWN):
            page.goto(f"{site}{place}")
            page.wait_for_selector(shown)

        visit("Attention/?model=stories")
        visit("Learn?lesson=pictures", "h1")
        assert page.get_by_role("img").first.evaluate("(image) => image.naturalWidth") > 0
        page.get_by_role("button", name="Next", exact=True).click()
        assert page.locator(".bar").first.evaluate("(bar) => bar.style.width")
        page.evaluate("() => navigator.serviceWorker.ready")
        visit("?model=stories")
        assert page.evaluate("() => Boolean(navigator.serviceWorker.controller)")
        page.get_by_role("link", name="Inside").click()
        expect(page.locator("a[aria-current=page]")).to_have_text("Inside")
        page.wait_for_selector(SHOWN)
        end()
        for place in ("Attention", "Attention/", "Attention/index.html", ""):
            visit(f"{place}?model=stories")
    guessed = re.compile(
        r"/below/(style\.css|scripts/\w+\.js)\)$"
    )  # by the browser, which reads ahead of the first script
    assert [error for error in browser_errors if not guessed.search(error)] == []
    browser_errors.clear()


def test_a_site_works_without_a_word_where_it_can_t_be_kept(new_window, folder, browser_errors):
    with served(folder, HostWithoutWorker) as (site, _):
        page = new_window()
        page.goto(f"{site}?model=stories")
        page.wait_for_selector(SHOWN)
        expect(page.get_by_role("alert")).to_be_hidden()
        until(page, lambda: browser_errors)
        assert ["403" in error for error in browser_errors] == [True]  # the browser's own note, and nothing uncaught
        browser_errors.clear()


def test_the_whole_site_is_small_enough(folder):
    files = {path.relative_to(folder / BELOW): path.stat().st_size for path in (folder / BELOW).rglob("*.*")}
    frame = sum(size for path, size in files.items() if path.parts[0] != "models")
    about = max(size for path, size in files.items() if path.name == "model.json")
    shipped = [entry.path for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None]
    weights = [sum(path.stat().st_size for path in model.glob("*.safetensors")) for model in shipped]
    assert len(shipped) > 20
    assert frame + sum(weights) + about * len(shipped) < MOST_BYTES


def test_views_of_lessons_are_computed_from_one_file(opened, checkpoints):
    """Each view that only lessons have, one still picture, and of a translator what it wrote."""
    shown = {
        "What if": "model=stories&prompt=Mary+took+the+ball.+She&changes=without~mask~&temperature=0",
        "Masks": "model=stories&prompt=Mary+took+the+ball.",
        "Positions": "model=stories&position=5&shift=3",
        "Train": "model=stories&learn=task&task=induction",
        "Inside": "model=number-words-en-es&prompt=forty-two",
    }
    page = opened(site_document(read_lesson("views", lesson_of("Views", shown))))
    following = page.get_by_role("button", name="Next", exact=True)
    what_if, checkpoint = page.get_by_test_id("what-if"), checkpoints["stories"]
    prompt = checkpoint.tokenizer.encode("Mary took the ball. She")
    for changes, texts in (((Without("mask"),), 2), ((), 0)):
        expect(what_if.get_by_role("article")).to_have_count(texts)
        best = trace_pass(checkpoint.model, prompt, interventions=changes)
        share, token = best.tensors["logits"][-1].double().softmax(-1).max(-1)
        row = what_if.get_by_role("row").filter(has_text=checkpoint.tokenizer.label(int(token))).first
        expect(row).to_contain_text(percent(float(share)))
        if changes:
            page.get_by_role("button", name="Menu, 1 change").click()
            page.locator("summary", has_text="Changes (1)").click()
            page.get_by_role("button", name="Remove: without the causal mask").click()
    page.get_by_label("Prompt", exact=True).fill("Tom ran to the")
    page.keyboard.press("Enter")
    expect(what_if).to_contain_text("After “the”")
    following.click()
    expect(page.get_by_test_id("masks").first).to_contain_text("Without the mask")
    following.click()
    expect(page.get_by_text("The cosine of the angle between their rows is 0.")).to_be_visible()
    following.click()
    expect(page.get_by_role("img", name="The loss falls from")).to_be_visible()
    expect(page.get_by_text("It is live in the app")).to_be_visible()
    following.click()
    translator = checkpoints["number-words-en-es"]
    source, ends = translator.tokenizer.encode("forty-two"), translator.card.stop_tokens
    start = [translator.card.start_token_id]
    greedy = {"max_new_tokens": 20, "sampling": Sampling(temperature=0), "stop_tokens": ends}
    written = [step.token_id for step in generate(translator.model, start, source=source, **greedy)]
    labels = [translator.tokenizer.label(token) for token in (*source, *start, *written) if token not in ends]
    names = "(all) => all.map((one) => one.ariaLabel.split(': ')[1])"
    until(page, lambda: page.locator(".token").evaluate_all(names) == labels)


@pytest.mark.parametrize("kind", ["site", "file"])
def test_a_lesson_is_answered_and_shows_what_it_asked_about(new_window, opened, folder, lesson, kind):
    with served(folder) as (site, _):
        if kind == "site":
            page = new_window()
            page.goto(f"{site}Learn/?lesson=other")
            listed = page.get_by_role("listitem").filter(has_text="Of a large model")
            expect(listed).to_contain_text("It needs another model.")
            page.get_by_role("link", name="Queries, keys and values").click()
        else:
            page = opened(lesson)
        expect(page.get_by_text("Step 1 of 3")).to_be_visible()
        expect(page.get_by_text("Many choose ball")).to_have_count(0)
        for choice, said, seen in (
            ("ball", "Your answer: ball at position 3. Correct: garden at position 9.", "“?” looks at “garden”"),
            ("park", "Correct: park at position 15.", "“:” looks at"),  # of Shakespeare, which reads letters
        ):
            page.get_by_role("radio", name=choice).first.check()
            page.get_by_role("button", name="Answer", exact=True).click()
            expect(page.get_by_role("status").first).to_have_text(said)
            page.wait_for_selector(SHOWN)
            expect(page.get_by_test_id("attention")).to_contain_text(seen)
            if choice == "ball":
                page.get_by_role("button", name="Next", exact=True).click()
        with page.expect_download() as answers:
            page.get_by_role("button", name="Save my answers").click()
        assert "park at position 15,yes" in answers.value.path().read_text(encoding="utf-8")
        page.reload()  # the answer is there still
        expect(page.get_by_role("status").first).to_have_text("Correct: park at position 15.")
        page.get_by_role("link", name="Handout to print").click()
        expect(page.get_by_role("heading", name="Answers")).to_be_visible()
        assert page.locator("figure .cell").count() > 20  # a head's weights, on paper


def test_a_browser_of_2022_runs_the_site_saved_pages_and_lesson_files(new_window, folder, checkpoints, lesson):
    stories = checkpoints["stories"]
    prompt = stories.card.examples[0]
    for view in ("inside", "attention", "generation"):
        (folder / f"{view}.html").write_text(show(stories, prompt, view=view).html, encoding="utf-8")
    recorded = record_pass(stories.model, stories.tokenizer.encode(prompt), labels=stories.tokenizer.labels)
    (folder / "recorded.html").write_text(show(recorded).html, encoding="utf-8")
    (folder / "lesson.html").write_text(lesson_page(lesson, checkpoints), encoding="utf-8")
    page = new_window(width=1000, service_workers="block")
    make_older(page)

    def writes():
        page.get_by_role("button", name="Generate", exact=True).click()
        page.wait_for_selector(".token.written")
        washes = "(all) => all.filter((one) => !/, 0\\)$/.test(getComputedStyle(one).backgroundColor)).length"
        until(page, lambda: page.locator(".token").evaluate_all(washes))

    def tells_of(target):
        """What is said of something stands beside it, and goes with Escape or the pointer."""
        target.hover()
        tip = page.locator(".tip:visible")
        expect(tip).to_have_text(re.compile(r"\w"))
        box, there = tip.bounding_box(), target.bounding_box()
        assert abs(box["y"] - there["y"]) < there["height"] + box["height"] + 60, "the tip is elsewhere"
        page.mouse.move(2, 2)
        expect(tip).to_have_count(0)

    def answers():
        page.get_by_role("radio", name="park").first.check()
        page.get_by_role("button", name="Answer", exact=True).click()
        page.wait_for_selector(SHOWN)

    token = ".strip .token >> nth=3"
    with served(folder) as (site, _):
        root = site.partition("below/")[0]
        for address, does in (
            (f"{site}?model=stories", writes),
            (f"{site}Attention/?model=stories", lambda: tells_of(page.locator(token))),
            (
                f"{site}Inside/?model=stories&inside=blocks.1.attn.hook_attn_scores&cell=0,5,3",
                lambda: page.wait_for_selector(".opened canvas:visible"),
            ),
            (f"{site}Learn/?lesson={lesson['name']}", answers),
            (f"{root}generation.html", writes),
            (f"{root}attention.html", lambda: tells_of(page.locator(token))),
            (f"{root}inside.html", lambda: expect(page.locator(".names .token").first).to_be_visible()),
            (f"{root}recorded.html", lambda: expect(page.locator(".names .token").first).to_be_visible()),
            (f"{root}lesson.html", answers),
        ):
            page.goto(address)
            does()
            page.evaluate("localStorage.clear()")  # the next lesson is the same
            expect(page.get_by_role("alert").filter(visible=True)).to_have_count(0)


def test_a_browser_that_lacks_what_is_needed_is_told_so(new_window, folder, checkpoints, browser_errors):
    saved = show(checkpoints["stories"], checkpoints["stories"].card.examples[0], view="attention").html
    (folder / "saved.html").write_text(saved, encoding="utf-8")
    page = new_window(service_workers="block")
    page.add_init_script("delete URLSearchParams.prototype.get; delete HTMLCanvasElement.prototype.getContext")
    with served(folder) as (site, _):
        root = site.partition("below/")[0]
        for address, lacking in ((f"{site}Attention/?model=stories", "get"), (f"{root}saved.html", "getContext")):
            page.goto(address)
            expect(page.get_by_role("alert").filter(visible=True)).to_contain_text(
                re.compile(f"newer.*{lacking}|{lacking}.*newer")
            )
        page.route(
            "**/learn.js", lambda route: route.fulfill(body="class { static { }", content_type="text/javascript")
        )
        page.goto(f"{site}Learn/")
        expect(page.get_by_role("alert").filter(visible=True)).to_contain_text(
            "It needs Chrome or Edge 108, Firefox 108"
        )
        page.route("**/learn.js", lambda route: route.abort())
        page.goto(f"{site}Learn/")
        expect(page.get_by_role("alert").filter(visible=True)).to_have_text(re.compile("couldn't be loaded"))
        scriptless = new_window(java_script_enabled=False)
        scriptless.goto(f"{site}Attention/")
        expect(scriptless.locator("noscript p")).to_be_visible()
    browser_errors.clear()


def test_one_line_holds_model_prompt_and_menu_on_every_page(new_window, folder, browser_errors):
    """And the page state goes along, is part of the link, and of a prompt that can't be read it is said why."""
    page = new_window(width=1280, height=720)
    prompt, model, alert = (
        page.get_by_label("Prompt", exact=True),
        page.get_by_label("Model", exact=True),
        page.get_by_role("alert"),
    )
    heading = page.locator(".shell > .shell-heading")  # of the page, not of a part of its view

    def parameters():
        return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}

    def type_prompt(text):
        prompt.fill(text)
        prompt.press("Enter")

    with served(folder) as (site, _):
        page.goto(f"{site}Attention/?model=stories&prompt=Tom+ran+to+the+school.&query=1")
        page.wait_for_selector(SHOWN)
        assert page.locator(".shell-line").bounding_box()["height"] == 48
        assert heading.bounding_box()["y"] <= 115
        attention = page.get_by_test_id("attention")

        type_prompt("Tom ran to the zebra park.")
        expect(alert.filter(visible=True)).to_contain_text(
            "This model has never seen “zebra” (character 16). Remove it"
        )
        expect(
            page.get_by_role("status").filter(has_text="the last prompt that could be read: “Tom ran to the school.”")
        ).to_be_visible()
        expect(attention).to_contain_text("ran")
        assert parameters()["prompt"] == "Tom ran to the school."  # a link holds what can be read
        page.get_by_role("button", name="Remove what is unknown").click()
        expect(prompt).to_have_value("Tom ran to the  park.")
        expect(attention).to_contain_text("to")
        until(page, lambda: parameters()["prompt"] == "Tom ran to the  park.")
        expect(alert.filter(visible=True)).to_have_count(0)
        prompt.fill("Mary")
        prompt.press("Escape")
        expect(prompt).to_have_value("Tom ran to the  park.")

        # A change takes the place of one that differs by its dial alone.
        page.get_by_role("button", name="Change", exact=True).click()
        for factor in ("0.5", "0.7"):
            attention.get_by_role("slider", name="Scale").fill(factor)
            expect(
                page.get_by_role("status").filter(has_text=f"head 0 × {factor}. After the prompt: “")
            ).to_be_visible()
        until(page, lambda: parameters()["changes"] == "scale~blocks.4.attn.hook_z~0~~0.7")
        menu = page.get_by_role("button", name="Menu, 1 change")
        menu.click()
        page.locator("summary", has_text="About this model").click()
        expect(page.get_by_label("Menu", exact=True)).to_contain_text("It predicts the")
        page.locator("summary", has_text="Share").click()
        expect(page.get_by_label("Link", exact=True)).to_have_value(page.url)
        page.keyboard.press("Escape")
        expect(menu).to_be_focused()

        for name in ("Generate", "Inside", "Masks", "Positions", "What if"):
            page.get_by_role("link", name=name, exact=True).click()
            page.wait_for_selector(SHOWN)
            expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
            assert heading.bounding_box()["y"] <= 150  # with the sentence on what is changed
            assert parameters()["prompt"] == "Tom ran to the  park." and prompt.input_value() == "Tom ran to the  park."
            assert axe_found(page) == []
        length = page.evaluate("history.length")
        model.select_option("shakespeare")
        until(page, lambda: parameters() == {"model": "shakespeare"})
        page.get_by_label("Examples").select_option(index=2)
        until(page, lambda: parameters().get("prompt") == prompt.input_value())
        model.select_option("stories")  # whose changes come back with it
        until(page, lambda: "changes" in parameters())
        assert page.evaluate("history.length") == length
        page.goto(f"{site}Masks/?model=gone&layer=7")
        notices = page.get_by_role("status").first
        expect(notices).to_contain_text("There is no model “gone” here; Shakespeare is shown.")
        expect(notices).to_contain_text("There is no layer 7 here; the last one, 5, is shown.")
    assert all("models/gone/" in error for error in browser_errors)  # which the page's first script asked for
    browser_errors.clear()


def test_a_phone_has_the_same_line_and_edits_the_prompt_over_its_width(new_window, folder):
    with served(folder) as (site, _):
        page = new_window(width=390, height=780)
        page.goto(f"{site}Generate/?model=stories")
        page.wait_for_selector(SHOWN)
        prompt = page.get_by_label("Prompt", exact=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        narrow = prompt.bounding_box()
        prompt.click()
        wide = prompt.bounding_box()
        assert narrow["width"] < 200 and wide["width"] > 340 and wide["height"] > narrow["height"]
        assert page.locator(".shell-line").bounding_box()["height"] == 48
        prompt.press("Escape")
        page.get_by_role("button", name="Menu").click()
        box = page.get_by_label("Menu", exact=True).last.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert axe_found(page) == []
