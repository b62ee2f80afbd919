"""The page Attention in a real browser: what is looked at is answered there; Python, link and other pages follow."""

import csv
import io
import itertools
import re
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch
from streamlit.proto.BackMsg_pb2 import BackMsg

from transformer import load_checkpoint

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=30_000)

PROMPT = "To be, or not"
LAST = len(PROMPT) - 1
WHOLE = "[data-testid=attention][data-whole=true]"
STAGES = ("raw", "scaled", "masked", "weights")
# On a deep link Streamlit first looks for its server below the page's address, in vain.
BENIGN = re.compile(r"Failed to load resource: .* 404 .*\(http://127\.0\.0\.1:\d+/[A-Z][a-z]+/_stcore/[a-z-]+\)")

# Every canvas knows what is written on it: { text, x, y, turned, width, align } in CSS pixels.
NOTE_WRITING = """() => {
  if (window.notesWriting) return; // asked for again, in a tab that was used before
  window.notesWriting = true;
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    clearRect(...box) {
      this.canvas.written = [];
      return clearRect.apply(this, box);
    },
    fillText(text, x, y, widest = Infinity) {
      const at = new DOMPoint(x, y).matrixTransform(this.getTransform());
      const width = Math.min(this.measureText(text).width, widest);
      const { textAlign: align } = this;
      const turned = this.getTransform().b !== 0;
      const [left, top] = [at.x / devicePixelRatio, at.y / devicePixelRatio];
      (this.canvas.written ??= []).push({ text, x: left, y: top, turned, width, align });
      return fillText.call(this, text, x, y);
    },
  });
}"""
STATE = """(root) => ({
  ...root.dataset,
  stage: root.querySelector(".panels").dataset.stage,
  note: root.querySelector("[data-part=note]").textContent,
  without: [...root.querySelectorAll("[data-without]:checked")].map((box) => box.dataset.without),
  selects: [...root.querySelectorAll("select")].map((select) => select.value),
  over: root.querySelector("[data-part=overSentence]").textContent,
  heads: [...root.querySelectorAll("[data-testid=head-grid-head]")].map((button) => button.ariaLabel),
})"""
"""What is looked at, as it is on screen."""


class Traffic:
    """What a page and its server tell each other."""

    def __init__(self, page):
        self.page = page
        self.forget()
        page.on("websocket", self._follow)

    def stop(self):
        self.page.remove_listener("websocket", self._follow)

    def forget(self):
        self.page_runs = self.fragment_runs = 0
        """What the page has asked for."""
        self.since = self.last = time.monotonic()

    def _follow(self, socket):
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame):
        self.last = time.monotonic()
        message = BackMsg.FromString(frame) if isinstance(frame, bytes) else BackMsg()
        if message.WhichOneof("type") == "rerun_script":
            fragment = bool(message.rerun_script.fragment_id)
            self.fragment_runs += fragment
            self.page_runs += not fragment

    def _received(self, frame):
        self.last = time.monotonic()

    def settle(self, quiet=0.8):
        """Wait until nothing has been said for so many seconds."""
        deadline = time.monotonic() + 30
        while time.monotonic() < self.last + quiet:
            assert time.monotonic() < deadline, "they don't stop talking"
            self.page.wait_for_timeout(50)


@pytest.fixture
def visit(tiny_server, new_page, wait_ready, browser_errors):
    """`visit(query, page=None, **options)`: a visitor on Attention, and the traffic; all heads have arrived."""
    followed = []

    def open_page(query="", page=None, **options):
        page = page or new_page(**options)
        page.add_init_script(f"({NOTE_WRITING})()")
        traffic = Traffic(page)
        followed.append(traffic)
        page.goto(f"{tiny_server.url}/Attention?{query or f'prompt={PROMPT}'}")
        page.locator(WHOLE).wait_for(timeout=60_000)
        wait_ready(page, timeout=60)
        traffic.settle()
        return page, traffic

    yield open_page
    for traffic in followed:
        traffic.stop()
    browser_errors[:] = [error for error in browser_errors if not BENIGN.fullmatch(error)]


def instrument(page):
    return page.get_by_test_id("attention")


def state(page):
    return instrument(page).evaluate(STATE)


def shown(page):
    """(layer, head, query, key) that are looked at."""
    return tuple(map(int, instrument(page).get_attribute("data-shown").split(".")))


def until_shown(page, place):
    expect(instrument(page)).to_have_attribute("data-shown", ".".join(map(str, place)))
    page.locator(WHOLE).wait_for()


def head(page, layer, number):
    return page.get_by_role("button", name=re.compile(f"^Layer {layer}, head {number}"))


def panel(page, stage):
    return page.locator(f"[data-panel={stage}]")


def part(page, name):
    return page.locator(f"[data-part={name}]")


def labels(page, stage):
    """What is written at the rows, and at the columns, of a heatmap."""
    written = panel(page, stage).locator("canvas.picture").evaluate("(canvas) => canvas.written")
    rows = [label for label in written if label["align"] == "right" and not label["turned"]]
    return rows, [label for label in written if label not in rows]


def place_of(page, stage, row, column):
    """Where a cell is, by the labels beside and below it: every one must have room."""
    rows, columns = labels(page, stage)
    marks = panel(page, stage).locator("canvas.marks")
    marks.scroll_into_view_if_needed()
    box = marks.bounding_box()
    return box["x"] + columns[column]["x"], box["y"] + rows[row]["y"]


def drag(page, stage, start, end):
    page.mouse.move(*place_of(page, stage, *start))
    page.mouse.down()
    page.mouse.move(*place_of(page, stage, *end), steps=3)
    page.mouse.up()


def parameters(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def until(page, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, page.url
        page.wait_for_timeout(50)


def turn_to(page, name):
    page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
    page.get_by_role("heading", level=1, name=name).wait_for(timeout=60_000)


def type_prompt(page, typed):
    box = page.get_by_role("textbox", name=re.compile("Prompt|Source"))
    box.fill(typed)
    box.press("Control+Enter")


def pick(page, label, option):
    page.get_by_role("combobox", name=re.compile(label)).click()
    page.get_by_role("option", name=option, exact=True).click()


def badges(page):
    return page.locator(".badge:visible").all_inner_texts()


def all_equal(page):
    """Wait until what the model computed has come; what then is said of each step."""
    until(page, lambda: badges(page) and "comparing with the model …" not in badges(page))
    found = badges(page)
    assert all(badge.startswith("recomputed, equal") for badge in found), found
    return found


# Looking


def test_looking_costs_no_run_of_the_page_and_the_address_follows(visit):
    page, traffic = visit()
    before = page.evaluate("history.length")
    traffic.forget()
    marks = panel(page, "weights").locator("canvas.marks")
    for column in range(0, 13, 2):
        page.mouse.move(*place_of(page, "weights", 12, column))
    expect(part(page, "readout")).to_contain_text("key “t” at place 12")
    page.wait_for_timeout(600)
    assert traffic.page_runs == traffic.fragment_runs == 0

    head(page, 0, 1).click()
    assert shown(page)[:2] == (0, 1)
    head(page, 1, 1).click()
    assert shown(page)[:2] == (1, 1)
    expect(part(page, "where")).to_have_text("Layer 1, head 1")
    for row, column in ((7, 3), (12, 12), (9, 5)):
        page.mouse.click(*place_of(page, "scaled", row, column))
        assert shown(page) == (1, 1, row, column)
    marks.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert shown(page) == (1, 1, 8, 0)
    for _ in range(2):
        part(page, "closer").click()
    expect(part(page, "note")).to_contain_text("Zoomed in: queries 7 to 10, keys 0 to 3.")
    page.get_by_label("Without ÷ √d_head").check()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_contain_text("The model didn't compute this")
    part(page, "sort").select_option("spread")
    part(page, "direction").select_option("to")
    part(page, "share").select_option("layer")
    expect(part(page, "overSentence")).to_contain_text("Who looked at “T” at place 0 in the mean of layer 1")
    expected = {
        "layer": "1", "head": "1", "query": "8", "key": "0", "zoom": "7,11,0,4", "without": "mask,scale",
        "order": "spread", "direction": "to", "share": "layer",
    }  # fmt: skip
    until(page, lambda: expected.items() <= parameters(page).items())
    traffic.settle()
    seconds = time.monotonic() - traffic.since
    assert traffic.page_runs == 0
    assert traffic.fragment_runs <= seconds + 1
    assert page.evaluate("history.length") == before
    assert len(badges(page)) == 7

    part(page, "whole").click()
    page.get_by_label("Without ÷ √d_head").uncheck()
    page.get_by_label("Without the mask").uncheck()
    all_equal(page)
    until(page, lambda: not {"zoom", "without"} & set(parameters(page)))


def test_what_was_chosen_just_before_a_change_of_page_arrives_there_and_is_there_on_return(visit):
    page, _ = visit()
    for wait, name, place in ((0, "Generate", (0, 1)), (100, "Masks", (1, 1)), (1000, "Generate", (0, 0))):
        head(page, *place).click()
        marks = panel(page, "weights").locator("canvas.marks")
        marks.focus()
        page.keyboard.press("ArrowUp")
        chosen = shown(page)
        assert chosen[:2] == place
        page.wait_for_timeout(wait)
        turn_to(page, name)
        layer, number, query, key = map(str, chosen)
        told = {"query": query, "key": key, "layer": layer, "head": number}
        until(page, lambda told=told: told.items() <= parameters(page).items())
        if name == "Generate":
            expect(page.get_by_test_id("live-text-picture")).to_contain_text(f"layer {layer}, head {number}")
        turn_to(page, "Attention")
        until_shown(page, chosen)


def test_back_forward_reload_and_a_link_show_the_same(visit, wait_ready):
    page, traffic = visit("prompt=To be, or not&layer=1&head=0&query=9&key=4&stage=scaled&zoom=6,11,2,8&without=mask"
                          "&order=itself&direction=to&share=layer")  # fmt: skip
    first = state(page)
    assert first["shown"] == "1.0.9.4" and first["stage"] == "scaled" and first["without"] == ["mask"]
    assert "queries 6 to 10, keys 2 to 7" in first["note"]
    assert first["selects"][:3] == ["itself", "to", "layer"]
    assert "the mean of layer 1" in first["over"]

    head(page, 0, 1).click()
    traffic.settle()
    chosen = state(page)
    assert chosen["shown"] == "0.1.9.4"
    turn_to(page, "Masks")
    page.go_back()
    page.locator(WHOLE).wait_for()
    until(page, lambda: state(page) == chosen)
    page.go_forward()
    page.get_by_role("heading", level=1, name="Masks").wait_for()
    wait_ready(page)
    page.go_back()
    page.locator(WHOLE).wait_for()
    page.reload()
    page.locator(WHOLE).wait_for()
    until(page, lambda: state(page) == chosen)
    other, _ = visit(urlsplit(page.url).query, apart=True)
    assert state(other) == chosen


def test_prompts_of_any_length_keep_the_instrument_alive(visit):
    page, traffic = visit("model=far-reader&prompt=To be, or not&query=9&key=3&layer=2")
    instrument(page).evaluate("(root) => { window.first = root; }")
    long = "To be, or not to be, that is the question: " * 6
    for typed in ("To be", "a", long[:256], "KING: I am", long):
        type_prompt(page, typed)
        last = len(typed[-256:]) - 1
        expect(part(page, "hand").get_by_label("Query (row)").locator("option")).to_have_count(last + 1)
        page.locator(WHOLE).wait_for()
        traffic.settle()
        assert shown(page)[0] == 2 and shown(page)[2] <= last
        all_equal(page)
        panel(page, "weights").locator("canvas.marks").focus()
        here = shown(page)[2]
        page.keyboard.press("PageUp")
        assert shown(page)[2] == max(here - 10, 0)
        pooled = "64 × 64 cells for 256 × 256 weights" in part(page, "pooled").inner_text()
        assert pooled == (last == 255)
        if typed != long:  # which the page says is too long, and so draws itself anew
            assert instrument(page).evaluate("(root) => root === window.first")


def test_a_click_elsewhere_in_the_moment_of_an_event_is_not_lost(visit):
    page, traffic = visit()
    for group, title in (("Tasks", "Sorting"), ("Texts", "Shakespeare")):
        traffic.settle()
        page.get_by_test_id("head-grid-head").last.click()
        page.get_by_role("radio", name=group).evaluate("""(radio) => {
          radio.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, composed: true }));
          radio.click();
        }""")
        expect(page.get_by_role("combobox", name="Model")).to_have_value(title)


# Keyboard and touch


def test_every_cell_can_be_reached_with_the_keyboard_and_is_read_out(visit):
    page, _ = visit("prompt=abcd&layer=1&head=1")
    marks = panel(page, "weights").locator("canvas.marks")
    part(page, "csv").focus()
    page.keyboard.press("Tab")
    expect(panel(page, "raw").locator("canvas.marks")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(marks).to_be_focused()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    reached = {}
    readout = part(page, "readout")
    for _ in range(4):
        for _ in range(4):
            reached[shown(page)[2:]] = readout.inner_text()
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        expect(marks).to_be_focused()
    assert set(reached) == {(row, column) for row in range(4) for column in range(4)}
    for (row, column), words in reached.items():
        assert words.startswith(f"Query “{'abcd'[row]}” at place {row}, key “{'abcd'[column]}” at place {column}:")
        assert ("hidden by the mask" in words) == (column > row)
        assert re.search(r"weight \d", words)

    for key, note in (("+", ""), ("-", ""), ("0", "")):  # nothing to zoom into: four tokens are the least
        page.keyboard.press(key)
        assert part(page, "note").inner_text() == note
    part(page, "closer").focus()
    page.keyboard.press("Enter")
    expect(part(page, "closer")).to_be_focused()
    part(page, "whole").focus()
    page.keyboard.press("Enter")
    expect(part(page, "whole")).to_be_focused()
    here = head(page, 1, 1)
    here.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert shown(page)[:2] == (1, 0)
    expect(head(page, 1, 0)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(part(page, "sort")).to_be_focused()
    part(page, "sort").select_option("spread")
    expect(part(page, "sort")).to_be_focused()
    tokens = part(page, "texts").get_by_role("option")
    tokens.nth(shown(page)[2]).focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert shown(page)[2:] == (0, 0)
    expect(tokens.first).to_be_focused()


def test_a_finger_selects_and_the_steps_are_behind_tabs_on_a_phone(visit, chromium, listen, browser_errors):
    phone = chromium.new_context(viewport={"width": 420, "height": 900}, has_touch=True)
    listen(phone, browser_errors)
    page, traffic = visit(page=phone.new_page())
    traffic.forget()
    visible = page.locator("[data-panel]:visible")
    for stage in STAGES:
        page.locator(f"[data-stage={stage}]").and_(page.get_by_role("button")).tap()
        expect(visible).to_have_count(1)
        assert visible.get_attribute("data-panel") == stage
    page.touchscreen.tap(*place_of(page, "weights", 9, 4))
    assert shown(page)[2:] == (9, 4)
    head(page, 1, 0).tap()
    assert shown(page) == (1, 0, 9, 4)
    part(page, "texts").get_by_role("option").nth(5).tap()
    assert shown(page)[2] == 5
    until(page, lambda: parameters(page).get("query") == "5")
    assert traffic.page_runs == 0
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")
    phone.close()


# What is drawn


def test_each_step_is_recomputed_and_equal_for_every_kind_of_attention(visit):
    page, traffic = visit()
    for title, steps in (("Shakespeare", 7), ("Martín Fierro", 7), ("Average", 2), ("Bare", 6)):
        if title != "Shakespeare":
            pick(page, "Model", title)
            expect(page.get_by_role("combobox", name="Model")).to_have_value(title)
        traffic.settle()
        assert len(all_equal(page)) == steps
        for which in (0, -1):
            page.get_by_test_id("head-grid-head").nth(which).click()
            traffic.settle()
            assert len(all_equal(page)) == steps
    page.get_by_role("radio", name="Tasks").click()
    expect(page.get_by_role("combobox", name="Model")).to_have_value("Sorting")
    pick(page, "Model", "Translator")
    for kind, mask in (("Cross: the text looks at the source", False), ("Encoder: the source looks at itself", False),
                       ("Decoder: the text looks back at itself", True)):  # fmt: skip
        if not kind.startswith("Cross"):
            pick(page, "Attention", kind)
        expect(instrument(page)).to_have_attribute("data-kind", kind.split(":")[0].lower())
        traffic.settle()
        all_equal(page)
        expect(page.get_by_label("Without the mask")).to_be_visible(visible=mask)
        assert ("No mask here" in panel(page, "masked").inner_text()) != mask
        if kind.startswith("Cross"):
            rows, _ = labels(page, "weights")
            assert rows[0]["text"].startswith("[start] → ") and len(rows[0]["text"]) > len("[start] → ")


def test_what_the_switches_redraw_is_said_not_to_be_the_model_s(visit):
    page, _ = visit("prompt=To be, or not&query=5&key=9&layer=1")
    assert "hidden by the mask, weight 0" in part(page, "readout").inner_text()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_be_visible()
    assert re.search(r"q · k .*, scaled .*, weight \d", part(page, "readout").inner_text())
    assert panel(page, "masked").inner_text().endswith("Left out: every query sees every key, those after it too.")
    assert "not what the model computed" in panel(page, "weights").inner_text()
    said = badges(page)
    assert all(badge.startswith("recomputed, equal") for badge in said[:2])  # before the mask nothing has changed
    assert set(said[2:-1]) == {"not what the model computed"}
    assert "would add" in page.locator("[data-step=stream] .text").inner_text()
    page.get_by_label("Without ÷ √d_head").check()
    assert ", scaled" not in part(page, "readout").inner_text()


def test_what_was_dragged_over_is_what_is_zoomed_into(visit):
    page, _ = visit()
    drag(page, "weights", (2, 1), (6, 5))
    assert "queries 2 to 6, keys 1 to 5" in part(page, "note").inner_text()
    assert [label["text"] for label in labels(page, "raw")[0]] == list(PROMPT[2:7].replace(" ", "␣"))
    page.mouse.click(*place_of(page, "weights", 1, 1))
    assert shown(page)[2:] == (3, 2)
    panel(page, "weights").locator("canvas.marks").focus()
    page.keyboard.press("Home")  # out of the part that is drawn, which follows
    assert shown(page)[2:] == (3, 0)
    assert "queries 2 to 6, keys 0 to 4" in part(page, "note").inner_text()
    page.keyboard.press("0")
    x, y = place_of(page, "weights", 8, 3)
    page.mouse.move(x - 4, y - 4)
    page.mouse.down()
    page.mouse.move(x + 4, y + 4, steps=3)  # an unsteady hand
    page.mouse.up()
    assert shown(page)[2:] == (8, 3)
    assert part(page, "note").inner_text() == ""


@pytest.mark.parametrize("query", [f"prompt={'To be, or not to be, that is the question now asked of us.'[:60]}",
                                   "model=translator&prompt=nine hundred and ninety-nine thousand"])  # fmt: skip
def test_no_label_runs_into_the_next(visit, query):
    page, _ = visit(query)
    for width in (1280, 420):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        steps = []
        for stage in STAGES:
            if not panel(page, stage).locator("canvas.picture").is_visible():
                continue
            rows, columns = labels(page, stage)
            for one, two in itertools.pairwise(rows):
                assert two["y"] - one["y"] >= 11
            for one, two in itertools.pairwise(columns):
                least = 11 if one["turned"] else (one["width"] + two["width"]) / 2
                assert two["x"] - one["x"] >= least
            assert all(label["x"] - label["width"] >= 0 for label in rows)
            steps.append(len(rows))
        left_out = min(steps) < part(page, "hand").get_by_label("Query (row)").locator("option").count()
        assert ("labelled" in part(page, "note").inner_text()) == left_out
        assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")


def test_the_files_have_what_is_on_screen(visit, tiny_folder, tmp_path):
    page, _ = visit("prompt=To be, or not&layer=1&head=1&without=mask,scale")
    saved = {}
    for name in ("png", "csv"):
        with page.expect_download() as download:
            part(page, name).click()
        assert download.value.suggested_filename == f"shakespeare-layer1-head1.{name}"
        download.value.save_as(tmp_path / name)
        saved[name] = (tmp_path / name).read_bytes()
    assert saved["png"].startswith(b"\x89PNG\r\n\x1a\n") and len(saved["png"]) > 10_000
    table = list(csv.DictReader(io.StringIO(saved["csv"].decode("utf-8"))))
    checkpoint = load_checkpoint(tiny_folder / "shakespeare")
    _, cache = checkpoint.model.run_with_cache(torch.tensor([checkpoint.tokenizer.encode(PROMPT)]))
    for column, point in (("q·k", "raw_scores"), ("q·k/√d_head", "scaled_scores"), ("masked score", "attn_scores"),
                          ("weight", "pattern")):  # fmt: skip
        own = cache[f"blocks.1.attn.hook_{point}"][0, 1].numpy().ravel()
        found = np.array([float(row[column]) for row in table])
        assert np.allclose(found, own, rtol=0, atol=1e-5 * np.abs(own[np.isfinite(own)]).max())
    assert [row["key"] for row in table[: len(PROMPT)]] == list(PROMPT.replace(" ", "␣"))


# Others


def test_two_visitors_at_once_see_their_own(visit):
    (one, _), (other, _) = visit(), visit("model=martin-fierro&prompt=Aqui me pongo", apart=True)
    for place in ((0, 1), (1, 0), (1, 1)):
        head(one, *place).click()
        head(other, place[1], 3 - place[0]).click()
    assert (shown(one)[:2], shown(other)[:2]) == ((1, 1), (1, 2))
    for page, wanted in ((one, ("1", "1")), (other, ("1", "2"))):
        until(page, lambda page=page, wanted=wanted: (
            parameters(page).get("layer"), parameters(page).get("head")) == wanted)  # fmt: skip
        all_equal(page)
    type_prompt(one, "KING: I am here")
    expect(part(one, "hand").get_by_label("Query (row)").locator("option")).to_have_count(15)
    expect(part(other, "hand").get_by_label("Query (row)").locator("option")).to_have_count(13)


def test_the_instrument_goes_on_when_the_server_was_away(tiny_server, visit, wait_ready, browser_errors):
    page, _ = visit("model=far-reader&prompt=To be, or not&query=7&key=3")
    with tiny_server.away():
        page.locator("[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])").wait_for(timeout=60_000)
    page.locator("[data-testid='stApp'][data-test-connection-state='CONNECTED']").wait_for(timeout=60_000)
    wait_ready(page, timeout=60)
    browser_errors.clear()  # that nobody answered
    until_shown(page, (0, 0, 7, 3))
    head(page, 2, 1).click()
    assert shown(page) == (2, 1, 7, 3)
    all_equal(page)
    until(page, lambda: {"layer": "2", "head": "1", "query": "7", "key": "3"}.items() <= parameters(page).items())
    turn_to(page, "Generate")
    expect(page.get_by_test_id("live-text-picture")).to_contain_text("layer 2, head 1")
