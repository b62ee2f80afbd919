"""Tests a translator and a training in a browser."""

import re
from pathlib import Path

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
ROOT = Path(__file__).resolve().parents[2]
expect.set_options(timeout=60_000)

SMALL = "?learn=task&task=sort-letters&shape=dials&n_layers=1&n_heads=2&d_model=32&steps=3000"

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
        page.get_by_test_id("stMain").get_by_role("heading").first.wait_for(timeout=90_000)
        wait_ready(page, timeout=90)
        return page

    return open_page


def button(page, name):
    return page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True)


def link(page, name):
    return page.get_by_role("link", name=name)


def expect_model_of(page, group):
    """The list of models has one of these."""
    page.get_by_role("combobox", name="Model").click()
    expect(page.get_by_role("option", name=re.compile(f"^{group} · ")).first).to_be_visible()
    page.keyboard.press("Escape")


def heads(page):
    return page.get_by_test_id("head-grid-head").locator("canvas")


def test_the_shipped_model_writes_at_one_click(visit, wait_ready):
    page = visit("?model=shakespeare")
    expect(page.get_by_test_id("live-text-candidates").get_by_role("button")).to_have_count(10)
    tokens = page.get_by_test_id("live-text-token")
    before = tokens.count()
    button(page, "Generate").click()
    tokens.nth(before + 4).wait_for(timeout=60_000)
    button(page, "Stop").click()
    button(page, "Generate").and_(page.locator(":enabled")).wait_for(timeout=60_000)
    wait_ready(page, timeout=60)


def test_the_front_door_answers_a_story_s_question_at_one_click(visit):
    page = visit("")
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(re.compile(r"Where is the ball\?$"))
    button(page, "Generate").click()
    expect(page.get_by_test_id("live-text-token").and_(page.locator(".written")).first).to_have_text(
        re.compile("garden")
    )
    expect(page.get_by_test_id("live-text-status")).to_have_text(
        "2 tokens written, and the text has ended. Click another candidate, change the prompt, or press Clear."
    )


def test_a_number_is_translated_and_each_word_looks_back(visit, wait_ready):
    page = visit("?model=number-words-en-es&prompt=two+hundred+and+five&temperature=0")
    button(page, "Generate").click()
    tokens = page.get_by_test_id("live-text-token")
    expect(tokens).to_have_count(4 + 1 + 3)  # the source, the start token, two words and the end
    assert "".join(tokens.all_inner_texts()[5:]).split() == ["doscientos", "cinco", "[end]"]
    expect(button(page, "Generate")).to_be_disabled()
    link(page, "Attention").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attention")
    wait_ready(page, timeout=60)
    for label in (*["two", "hundred", "and", "five"], "[start]", "doscientos", "cinco"):
        expect(page.get_by_test_id("attention")).to_contain_text(label)


def test_attention_forms_and_the_model_can_be_used_taken_away_and_brought_back(visit, wait_ready, tmp_path):
    page = visit(f"Train{SMALL}")
    button(page, "Train").click()
    expect(heads(page)).to_have_count(2)
    early = heads(page).first.evaluate(PIXELS)
    status = page.get_by_text(re.compile(r"^Training: step "))
    expect(status).to_be_visible()
    expect(page.get_by_test_id("loss-chart").locator(".train")).to_have_attribute("d", re.compile("L"))

    link(page, "Positions").click()
    expect(page.get_by_text("Your training continues")).to_be_visible()
    link(page, "Train").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Train")
    expect(status).to_have_text(re.compile(r"step (\d{2,}|\d,\d{3}) of 3,000"))
    expect(heads(page)).to_have_count(2)
    page.wait_for_function(CHANGED, arg=early)

    page.reload()  # which begins a new session
    expect(status).to_have_text(re.compile(r"step (\d{2,}|\d,\d{3}) of 3,000"))
    button(page, "Stop and keep").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    wait_ready(page, timeout=60)
    with page.expect_download() as download:
        button(page, "Download it").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    button(page, "Look at its attention").click()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    wait_ready(page, timeout=60)
    expect(heads(page).first).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible()
    expect(heads(page).first).to_be_visible()
    expect_model_of(page, "Yours")

    other = visit("Train", apart=True)
    other.get_by_text("Your models as files").click()
    other.locator("input[type=file]").set_input_files(file)
    expect(other.get_by_text("is now one of your models").first).to_be_visible()
    expect_model_of(other, "Yours")


def test_who_waits_sees_the_queue_and_is_next_once_the_tab_before_is_closed(visit):
    first, second = visit(f"Train{SMALL}"), visit(f"Train{SMALL}", apart=True)
    button(first, "Train").click()
    expect(first.get_by_text(re.compile(r"^Training: step "))).to_be_visible()
    button(second, "Train").click()
    expect(second.get_by_text("Waiting for a place on the server, place 1 in the queue")).to_be_visible()
    first.close()
    expect(second.get_by_text(re.compile(r"^Training: step "))).to_be_visible()
    button(second, "Stop and keep").click()
    button(second, "Train another").click()
    expect(second.get_by_role("heading", name="Training data")).to_be_visible()


CUT = """
const Socket = WebSocket;
globalThis.sockets = [];
globalThis.WebSocket = class extends Socket { constructor(...rest) { super(...rest); sockets.push(this); } };
"""
"""What lets a test close a tab's connections."""
CONNECTED = "[data-testid=stApp][data-test-connection-state=CONNECTED]"


def steps(page):
    """How many steps the training on the page has taken."""
    text = page.get_by_text(re.compile(r"^(Training|Paused|Stopped|Finished): step ")).first.inner_text()
    return int(re.search(r"step ([\d,]+) of", text)[1].replace(",", ""))


def test_a_training_outlives_a_lost_connection_and_a_reload_and_its_model_every_page(app_url, chromium, listen):
    """In a browser of its own, for its connections are cut; another visitor sees nothing of it."""
    context = chromium.new_context()
    errors = []
    stop_listening = listen(context, errors)
    page = context.new_page()
    page.add_init_script(CUT)
    page.goto(f"{app_url}/Train?learn=task&task=induction&shape=dials&n_layers=2&n_heads=4&d_model=128&steps=3000")
    button(page, "Train").click()
    training = page.get_by_text(re.compile(r"^Training: step "))
    expect(training).to_be_visible()
    context.set_offline(True)
    page.evaluate("sockets.forEach((socket) => socket.close())")
    before = steps(page)
    page.wait_for_timeout(12_000)
    assert steps(page) == before  # on screen
    context.set_offline(False)
    page.locator(CONNECTED).wait_for()
    errors.clear()  # that nobody answered
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

    other = context.new_page()
    other.goto(f"{app_url}/Train")
    expect(other.get_by_role("heading", name="Training data")).to_be_visible()
    expect(other.get_by_text("Your training")).to_have_count(0)
    other.close()

    button(page, "Stop and keep").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    assert page.get_by_text("you had been away").count() == 0
    page.reload()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    link(page, "Masks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    expect_model_of(page, "Yours")
    stop_listening()
    context.close()
    assert errors == []


def test_models_outlive_a_restart_where_the_server_has_a_folder_and_a_link_shares_them(
    serve, new_page, wait_ready, browser_errors, tmp_path
):
    server = serve(ROOT / "app.py", env={"HEADSUP_STORE": str(tmp_path / "store")})
    page = new_page()
    page.goto(f"{server.url}/Train{SMALL.replace('3000', '50')}")
    button(page, "Train").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    (folder,) = (tmp_path / "store").iterdir()
    with server.away():
        page.locator("[data-testid=stApp]:not([data-test-connection-state=CONNECTED])").wait_for()
    page.locator(CONNECTED).wait_for()
    browser_errors.clear()  # that nobody answered
    link(page, "Masks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    expect_model_of(page, "Yours")
    other = new_page(apart=True)
    other.goto(f"{server.url}/Masks?model={folder.name}")
    expect_model_of(other, "Shared with you")
    wait_ready(other, timeout=60)
    assert other.get_by_text("was deleted a day after its last use").count() == 0
    assert folder.name not in server.log()
    server.stop()
