"""Tests the static site in a real Chromium, with and without a network, and a lesson in one file."""

import functools
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from pages.ui.number_format import percent
from tests.browser.attention_page import until
from tests.browser.servers import ROOT
from transformer import Sampling, Without, generate, load_checkpoint, trace_pass
from transformer.checkpoints.folder import list_checkpoints
from transformer.frontend.live_model import weights_of
from transformer.frontend.site import MOST_BYTES, described, lesson_page, write_site

expect = pytest.importorskip("playwright.sync_api").expect

CHECKPOINTS = ROOT / "checkpoints"
MODELS = ("shakespeare", "stories")
BELOW = Path("below") / "a path"
BEFORE_FIRST_PICTURE = 1_500_000
"""Bytes that are fetched at most until something is seen."""
SHOWN = "[data-part=root][data-state=shown]"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 100  # a browser asks for all files at once


@contextmanager
def served(folder):
    """Yields what ends the server too, and the site's address."""
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def end():
        server.shutdown()
        server.server_close()

    try:
        yield f"http://127.0.0.1:{server.server_port}/below/a%20path/", end
    finally:
        if thread.is_alive():
            end()


@pytest.fixture(scope="module")
def lesson():
    """A lesson of which one view's link names no model."""
    from pages.ui.views.learn.site_lessons import as_data, lesson_named

    found = as_data(lesson_named("06-queries-keys-values"))
    found["steps"][1]["view"]["link"] = "prompt=ROMEO:"
    return found


@pytest.fixture(scope="module")
def checkpoints():
    return {name: load_checkpoint(CHECKPOINTS / name) for name in MODELS}


@pytest.fixture(scope="module")
def folder(checkpoints, lesson, tmp_path_factory):
    """Where a site of two models and a lesson lies, below a path; of another lesson the model isn't there."""
    folder = tmp_path_factory.mktemp("site")
    models = [(CHECKPOINTS / name, checkpoint, checkpoint.card) for name, checkpoint in checkpoints.items()]
    other = {
        **lesson,
        "name": "other",
        "title": "Of a large model",
        "steps": [],
        "note": "It needs <em>another</em> model.",
    }
    write_site(folder / BELOW, models, [lesson, other])
    return folder


def test_a_site_is_there_soon_writes_what_the_engine_does_and_opens_without_a_network(new_window, folder, checkpoints):
    checkpoint = checkpoints["stories"]
    page, fetched = new_window(), set()
    page.on("request", lambda request: fetched.add(request.url))
    with served(folder) as (site, end):
        # An address without a model means the app's, and the first picture comes soon.
        page.goto(site)
        page.wait_for_selector(SHOWN)
        names = [unquote(url.removeprefix(site).partition("?")[0]) or "index.html" for url in fetched if site in url]
        assert "models/stories/model.safetensors" in names and "scripts/generate.js" in names
        assert sum((folder / BELOW / name).stat().st_size for name in names) < BEFORE_FIRST_PICTURE
        expect(page.get_by_label("Model")).to_have_value("stories")
        page.goto(f"{site}Attention/?prompt=ROMEO:")
        page.wait_for_selector(SHOWN)
        expect(page.get_by_label("Model")).to_have_value("shakespeare")

        page.goto(f"{site}?model=stories&temperature=0&tokens=20&pace=unbounded")
        page.wait_for_selector(SHOWN)
        page.get_by_role("button", name="Generate", exact=True).click()
        prompt = checkpoint.tokenizer.encode(checkpoint.card.examples[0])
        greedy = Sampling(temperature=0)
        ends = checkpoint.card.stop_tokens
        steps = generate(checkpoint.model, prompt, max_new_tokens=20, sampling=greedy, stop_tokens=ends)
        text = ".".join(str(step.token_id) for step in steps)
        until(page, lambda: parse_qs(urlsplit(page.url).query).get("written") == [text])
        page.evaluate("navigator.serviceWorker.ready")
        page.goto(f"{site}Attention/?model=stories")
        page.wait_for_selector(SHOWN)
        page.wait_for_function("navigator.serviceWorker.controller")
        page.reload()  # now by way of the service worker, which keeps the model
        page.wait_for_selector(SHOWN)
        weights = f"{site}models/stories/model.safetensors"
        page.wait_for_function("(url) => caches.match(url).then(Boolean)", arg=weights)
        end()
        page.goto(f"{site}Inside/?model=stories")
        page.wait_for_selector(SHOWN)


def test_the_whole_site_is_small_enough(folder):
    files = {path.relative_to(folder / BELOW): path.stat().st_size for path in (folder / BELOW).rglob("*.*")}
    frame = sum(size for path, size in files.items() if path.parts[0] != "models")
    about = max(size for path, size in files.items() if path.name == "model.json")
    shipped = [entry.path for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None]
    weights = [sum(path.stat().st_size for path in model.glob("*.safetensors")) for model in shipped]
    assert len(shipped) > 20
    assert frame + sum(weights) + about * len(shipped) < MOST_BYTES


@pytest.fixture(scope="module")
def views():
    """A lesson that shows each view which only lessons have, and one still picture."""
    from pages.ui.lessons.lesson import read_lesson
    from pages.ui.views.learn.site_lessons import as_data

    header = '+++\ntitle = "Views"\n+++\n'
    step = '## Step\nWords.\n```view\npage = "{}"\nlink = "{}"\n```\n'
    shown = {
        "What if": "model=stories&prompt=Mary+took+the+ball.+She&changes=without~mask~&temperature=0",
        "Masks": "model=stories&prompt=Mary+took+the+ball.",
        "Positions": "model=stories&position=5&shift=3",
        "Train": "model=stories&learn=task&task=induction",
    }
    return as_data(read_lesson("views", header + "".join(step.format(*view) for view in shown.items())))


def test_views_of_lessons_are_computed_from_one_file(new_window, views, checkpoints, tmp_path, browser_errors):
    checkpoint = checkpoints["stories"]
    models = {"stories": (described(checkpoint, checkpoint.card), weights_of(checkpoint.model))}
    (tmp_path / "lesson.html").write_text(lesson_page(views, models), encoding="utf-8")
    page = new_window()
    page.context.set_offline(True)
    page.goto((tmp_path / "lesson.html").as_uri())
    what_if = page.get_by_test_id("what-if")
    prompt = "Mary took the ball. She"
    for changes in ((Without("mask"),), ()):
        best = trace_pass(checkpoint.model, checkpoint.tokenizer.encode(prompt), interventions=changes)
        share, token = best.tensors["logits"][-1].double().softmax(-1).max(-1)
        row = what_if.get_by_role("row").filter(has_text=checkpoint.tokenizer.label(int(token))).first
        expect(row).to_contain_text(percent(float(share)))
        if changes:
            expect(what_if.get_by_role("article")).to_have_count(2)
            page.get_by_role("button", name="Take back").click()
            expect(what_if.get_by_role("article")).to_have_count(1)
    page.get_by_label("Prompt").fill("Tom ran to the")
    page.get_by_role("button", name="Compute").click()
    expect(what_if).to_contain_text("Tom ran to the")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_test_id("masks")).to_contain_text("Without the mask")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_text("The cosine of the angle between their rows is 0.")).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_role("img", name="The loss falls from")).to_be_visible()
    expect(page.get_by_text("It is live in the app")).to_be_visible()


@pytest.mark.parametrize("kind", ["site", "file"])
def test_a_lesson_is_answered_and_shows_what_it_asked_about(new_window, folder, lesson, checkpoints, tmp_path, kind):
    page = new_window()
    with served(folder) as (site, _):
        if kind == "site":
            page.goto(f"{site}Learn/?lesson=other")
            expect(page.get_by_role("listitem").filter(has_text="Of a large model")).to_contain_text(
                "It needs another model."
            )
            page.get_by_role("link", name="Queries, keys and values").click()
        else:
            models = {name: (described(read, read.card), weights_of(read.model)) for name, read in checkpoints.items()}
            (tmp_path / "lesson.html").write_text(lesson_page(lesson, models), encoding="utf-8")
            page.context.set_offline(True)
            page.goto((tmp_path / "lesson.html").as_uri())
        expect(page.get_by_text("Step 1 of 3")).to_be_visible()
        expect(page.get_by_text("Many choose ball")).to_have_count(0)
        page.get_by_role("radio", name="ball").first.check()
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.get_by_role("status").first).to_have_text("Your answer: ball. Correct: garden at position 9.")
        page.wait_for_selector(SHOWN)
        expect(page.get_by_test_id("attention")).to_contain_text("“?” looks at “garden”")
        page.get_by_role("button", name="Next", exact=True).click()
        page.get_by_role("radio", name="park").check()
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.get_by_role("status").first).to_have_text("Correct.")
        page.wait_for_selector(SHOWN)
        expect(page.get_by_test_id("attention")).to_contain_text("“:” looks at")  # of Shakespeare, which reads letters
        page.reload()  # the answer is there still
        expect(page.get_by_role("status").first).to_have_text("Correct.")
