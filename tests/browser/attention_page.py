"""Opens the page Attention in browser tests, and reads what it shows and sends."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.address_bar import address

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect

PROMPT = "To be, or not"
WHOLE = "[data-testid=attention][data-whole=true]"
STAGES = {"raw": "raw", "scaled": "scaled", "masked": "masked", "weights": "softmax"}
"""The steps, each with the panel that shows it."""

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
TWO_FRAMES = "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
STATE = """(root) => ({
  ...root.dataset, fetched: null, // which goes on by itself
  stage: root.querySelector(".panels").dataset.stage,
  note: root.querySelector("[data-part=note]").textContent,
  without: [...root.querySelectorAll("[data-without]:checked")].map((box) => box.dataset.without),
  selects: [...root.querySelectorAll("select")].filter((select) => !select.closest("[data-part=changing]"))
    .map((select) => select.value),
  over: root.querySelector("[data-part=overSentence]").textContent,
  heads: [...root.querySelectorAll("[data-testid=head-grid-head]")].map((button) => button.ariaLabel),
})"""
"""What is looked at, as it is on screen."""


class Traffic:
    """What a page and its server tell each other: runs that are asked for, of the page or of a part of it (which are
    counted apart, too), and the addresses of the API that are asked."""

    def __init__(self, page):
        self.page = page
        self.forget()
        page.on("websocket", self._follow)
        page.on("request", self._asked)

    def stop(self):
        self.page.remove_listener("websocket", self._follow)
        self.page.remove_listener("request", self._asked)

    def forget(self):
        self.page_runs, self.fragment_runs, self.questions = 0, 0, []
        self.last = time.monotonic()

    def _follow(self, socket):
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _received(self, frame):
        self.last = time.monotonic()

    def _sent(self, frame):
        self.last = time.monotonic()
        message = BackMsg.FromString(frame) if isinstance(frame, bytes) else BackMsg()
        if message.WhichOneof("type") == "rerun_script":
            self.page_runs += 1
            self.fragment_runs += bool(message.rerun_script.fragment_id)

    def _asked(self, request):
        if "/api/" in request.url:
            self.last = time.monotonic()
            self.questions.append(request.url)

    def settle(self, quiet=0.3):
        """Wait until nothing has been said for so many seconds."""
        deadline = time.monotonic() + 30
        while time.monotonic() < self.last + quiet:
            assert time.monotonic() < deadline, "they don't stop talking"
            self.page.wait_for_timeout(50)


def visits(tiny_server, new_page, wait_ready):
    """`visit(query, page=None, **options)` for a fixture: a visitor of Attention, and the traffic; all has come."""
    followed = []

    def open_page(query="", page=None, **options):
        page = page or new_page(**options)
        page.add_init_script(f"({NOTE_WRITING})()")
        traffic = Traffic(page)
        followed.append(traffic)
        page.goto(f"{tiny_server.url}/Attention?{query or f'prompt={PROMPT}'}")
        page.locator(f"{WHOLE}[data-fetched=true]").wait_for()
        wait_ready(page)
        traffic.settle()
        return page, traffic

    yield open_page
    for traffic in followed:
        traffic.stop()


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
    """What is written at the rows, and at the columns, of a heatmap, less the titles of the axes."""
    drawn = panel(page, stage).locator("canvas.picture").evaluate("(canvas) => canvas.written")
    written = [label for label in drawn if not re.match("query|key", label["text"])]
    rows = [label for label in written if label["align"] == "right" and not label["turned"]]
    return rows, [label for label in written if label not in rows]


def place_of(page, stage, row, column):
    """Where a cell is, by the labels beside and below it: every one must have room."""
    marks = panel(page, stage).locator("canvas.marks")
    marks.scroll_into_view_if_needed()
    until_drawn(page)
    rows, columns = labels(page, stage)
    box = marks.bounding_box()
    return box["x"] + columns[column]["x"], box["y"] + rows[row]["y"]


def drag(page, stage, start, end):
    page.mouse.move(*place_of(page, stage, *start))
    page.mouse.down()
    page.mouse.move(*place_of(page, stage, *end), steps=3)
    page.mouse.up()


def parameters(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(address(page)).query).items()}


def until(page, condition, seconds=120):
    """Wait for what comes a moment later, and return it: the address, say, follows the screen after up to 400 ms."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, address(page)
        page.wait_for_timeout(50)
    return found


def until_drawn(page):
    """Until what has been changed, scrolled or given another size has been laid out and drawn."""
    page.evaluate(TWO_FRAMES)


def fits(page):
    """Whether nothing is wider than the page."""
    return page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")


def turn_to(page, name):
    page.get_by_role("link", name=name).click()
    page.get_by_role("heading", level=1, name=name).wait_for()


def type_prompt(page, typed):
    box = page.get_by_role("textbox", name="Prompt", exact=True)
    box.fill(typed)
    box.press("Enter")


def menu_button(page):
    return page.get_by_role("button", name=re.compile("^Menu"))


def open_menu(page, section):
    """Open a part of the shell's menu, and return it."""
    menu = page.get_by_role("group", name="Menu", exact=True)
    if not menu.is_visible():
        menu_button(page).click()
    part = menu.locator("details", has=page.locator("summary", has_text=section))
    if part.get_attribute("open") is None:
        part.locator("> summary").click()
    return part


def queries(page):
    """The tokens that can be looked at as queries: each has an option."""
    return part(page, "hand").get_by_label("Query (row)").locator("option")


def pick_model(page, name):
    """Pick a model by its title, or by its name."""
    page.get_by_label("Model", exact=True).select_option(name)


def expect_model_of(page, group):
    """The list of models has one of these."""
    page.get_by_label("Model", exact=True).locator(f"optgroup[label={group}]").wait_for(state="attached")


def derive(page):
    """Open how the weights come about, where it isn't seen."""
    button = part(page, "derive")
    if button.get_attribute("aria-expanded") == "false":
        button.click()


def badges(page):
    """What is said of each step."""
    derive(page)
    return page.locator(".badge:visible").all_inner_texts()


def compared(page):
    """What is said of each step, once what the model computed has come."""

    def those_that_have_come():
        found = badges(page)  # read once: the next drawing may be under way
        return [] if "comparing with the model …" in found else found

    return until(page, those_that_have_come)


def all_equal(page):
    """Wait until what the model computed has come, and each step by hand agrees with it. Returns how many there are."""
    found = compared(page)
    assert all(badge.startswith("recomputed, equal") for badge in found), found
    return len(found)
