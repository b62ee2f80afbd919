"""Tests what shipped models write at one click, and a training, in a browser."""

import re

import pytest

from tests.browser.at_rest import CONNECTED, DISCONNECTED
from tests.browser.attention_page import expect_model_of
from transformer.checkpoints.archive import unpack_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect

SMALL = "?learn=task&task=sort-letters&shape=dials&n_layers=1&n_heads=2&d_model=96&steps=3000"

PIXELS = """(canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].join()"""
"""What a head of the grid looks like."""
CHANGED = f"""(before) => {{
  const grid = "[data-testid=head-grid-head] canvas";  // inside the component's shadow root
  const root = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).find((r) => r?.querySelector(grid));
  return root && ({PIXELS})(root.querySelector(grid)) !== before;
}}"""
"""Whether the first head looks other than before."""


@pytest.fixture
def visit(app_url, new_page, wait_ready):
    """`visit(path)`: a visitor of their own on a page of the shipped app that has come to rest."""

    def open_page(path, **options):
        page = new_page(**options)
        page.goto(f"{app_url}/{path}")
        page.get_by_test_id("stMain").get_by_role("heading").first.wait_for()
        wait_ready(page)
        return page

    return open_page


def button(page, name):
    return page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True)


def link(page, name):
    return page.get_by_role("link", name=name)


def heads(page):
    return page.get_by_test_id("head-grid-head").locator("canvas")


def save(page, folder, press):
    """The file that a press leads to, saved."""
    with page.expect_download() as download:
        press()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def test_a_story_s_question_is_answered_at_one_click_and_a_number_translated(visit, wait_ready):
    page = visit("")
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(re.compile(r"Where is the ball\?$"))
    button(page, "Generate").click()
    tokens = page.get_by_test_id("live-text-token")
    expect(tokens.and_(page.locator(".written")).first).to_have_text(re.compile("garden"))
    expect(page.get_by_test_id("live-text-status")).to_have_text(
        "2 tokens written, and the text has ended. Click another candidate, change the prompt, or press Clear."
    )
    page.goto(page.url.partition("?")[0] + "?model=number-words-en-es&prompt=two+hundred+and+five&temperature=0")
    expect(tokens).to_have_count(4 + 1)
    button(page, "Generate").click()
    expect(tokens).to_have_count(4 + 1 + 3)  # the source, the start token, two words and the end
    assert "".join(tokens.all_inner_texts()[5:]).split() == ["doscientos", "cinco", "[end]"]
    expect(button(page, "Generate")).to_be_disabled()
    link(page, "Attention").click()
    for label in (*["two", "hundred", "and", "five"], "[start]", "doscientos", "cinco"):
        expect(page.get_by_test_id("attention")).to_contain_text(label)


CUT = """
const Socket = WebSocket;
globalThis.sockets = [];
globalThis.WebSocket = class extends Socket { constructor(...rest) { super(...rest); sockets.push(this); } };
"""
"""What lets a test close a tab's connections."""


def steps(page):
    """How many steps the training on the page has taken."""
    text = page.get_by_text(re.compile(r"^(Training|Paused|Stopped|Finished): step ")).first.inner_text()
    return int(re.search(r"step ([\d,]+) of", text)[1].replace(",", ""))


def test_a_training_goes_on_whatever_its_page_does_and_its_model_can_be_used_and_taken_away(
    visit, new_window, app_url, browser_errors, wait_ready, tmp_path
):
    """In a browser of its own, for its connections are cut; another visitor sees nothing of it, and waits for it."""
    page = new_window()
    page.add_init_script(CUT)
    page.goto(f"{app_url}/Train{SMALL}")
    button(page, "Train").click()
    expect(heads(page)).to_have_count(2)
    early = heads(page).first.evaluate(PIXELS)
    heads(page).first.evaluate("(canvas) => { canvas.tagged = true; }")
    first_row = "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, 1).data]"
    pixels = heads(page).first.evaluate(first_row)
    assert pixels[:4] == [253, 231, 37, 255] and pixels[-1] == 0  # the first token sees itself alone: weight 1
    training = page.get_by_text(re.compile(r"^Training: step "))
    expect(training).to_be_visible()
    chart = page.get_by_test_id("loss-chart")
    expect(chart.locator(".train")).to_have_attribute("d", re.compile("L"))

    other = visit(f"Train{SMALL}", apart=True)
    expect(other.get_by_role("heading", name="Training data")).to_be_visible()
    expect(other.get_by_text("Your training")).to_have_count(0)
    button(other, "Train").click()
    waiting = other.get_by_text("Waiting for a place on the server, place 1 in the queue")
    expect(waiting).to_be_visible()
    button(other, "Stop and keep").click()  # whoever waits goes first while the other is away
    expect(other.get_by_text("stopped before its first step")).to_be_visible()

    page.wait_for_function(CHANGED, arg=early)
    assert heads(page).first.evaluate("(canvas) => canvas.tagged")  # drawn over
    link(page, "Positions").click()
    expect(page.get_by_text("Your training continues")).to_be_visible()
    link(page, "Train").click()
    expect(heads(page)).to_have_count(2)
    page.context.set_offline(True)
    page.evaluate("sockets.forEach((socket) => socket.close())")
    page.locator(DISCONNECTED).wait_for()
    before = steps(page)
    page.wait_for_timeout(1_000)
    assert steps(page) == before  # on screen
    page.context.set_offline(False)
    page.locator(CONNECTED).wait_for()
    browser_errors.clear()  # that nobody answered
    page.wait_for_function(
        """(before) => {
      const found = document.body.innerText.match(/Training: step ([\\d,]+) of/);
      return found && Number(found[1].replaceAll(",", "")) > before;
    }""",
        arg=before,
    )
    page.reload()
    expect(training).to_be_visible()
    assert steps(page) > before
    head = page.get_by_test_id("head-grid-head").last
    head.click()
    expect(head).to_have_attribute("aria-pressed", "true")
    pictures = page.get_by_role("button", name="Save as PNG")
    expect(pictures).to_have_count(2)
    box = chart.bounding_box()
    for number, least in enumerate(((2 * box["width"], 2 * box["height"]), (2 * 160, 160))):
        content = save(page, tmp_path, pictures.nth(number).click).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) > 5_000
        assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) > least

    button(other, "Train another").click()
    button(other, "Train").click()
    expect(waiting).to_be_visible()
    button(page, "Stop and keep").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    assert page.get_by_text("you had been away").count() == 0
    expect(other.get_by_text(re.compile(r"^Training: step "))).to_be_visible()
    wait_ready(page)
    file = save(page, tmp_path, button(page, "Download it").click)
    assert unpack_checkpoint(file.read_bytes()).model.config.n_layers == 1
    button(other, "Stop and keep").click()
    button(other, "Train another").click()
    expect(other.get_by_role("heading", name="Training data")).to_be_visible()
    button(page, "Look at its attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    wait_ready(page)
    page.reload()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    expect(heads(page).first).to_be_visible()
    expect_model_of(page, "Yours")
