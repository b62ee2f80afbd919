"""Tests a site and a saved page as readers have them: by finger, translated, in other scripts, on paper, enlarged."""

import functools
import io
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from PIL import Image

from pages.ui.lessons.lesson import read_lesson
from pages.ui.views.learn.site_lessons import handout, site_document
from tests.browser.attention_page import until
from transformer import Checkpoint, ModelCard, ModelConfig, Tokenizer, build_model, save_checkpoint, show
from transformer.frontend.site import write_site

expect = pytest.importorskip("playwright.sync_api").expect

HEBREW = "שלום עולם"
LONG = "GATTACA" * 30
SHOWN = "[data-part=root][data-state=shown]"
TOKEN = "[data-testid=live-text-token]"
TIP = "[role=tooltip]:popover-open"
WORDS = (
    f'+++\ntitle = "{LONG[:70]}"\nminutes = 5\n+++\n## {LONG[:70]}\n{LONG}, `{LONG}`.\n\n'
    f"| {LONG} |\n| --- |\n| {LONG} |\n\n"
    f'```question\nkind = "order"\ntext = "{LONG}"\noptions = ["{LONG[:30]}", "b", "c", "d"]\n'
    f'right = ["b", "d", "c", "{LONG[:30]}"]\n```\n'
)
# As a browser's translation does it: each text that may be translated becomes <font>, with other letters.
TRANSLATE = r"""() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { parentElement: parent } = walker.currentNode;
    if (parent.matches("script, style, textarea") || !parent.translate || parent.closest(".notranslate")) continue;
    found.push(walker.currentNode);
  }
  for (const node of found) {
    const made = document.createElement("font");
    made.textContent = node.data.replace(/\p{L}+/gu, "XX");
    node.replaceWith(made);
  }
}"""
SMALL = "(all) => all.filter((one) => parseFloat(getComputedStyle(one).fontSize) < 16).length"
"""How many fields have letters so small that a phone zooms in on them."""
PRESS = """(box, how) => {
  const all = { key: "Enter", bubbles: true, cancelable: true, ...how };
  return box.dispatchEvent(new KeyboardEvent("keydown", all));
}"""
SHARPNESS = """() => {
  const seen = [...document.querySelectorAll("canvas")].filter((one) => one.clientWidth);
  return seen.map((one) => Math.round(one.width / one.clientWidth));
}"""
DATA = {
    "": f"{TOKEN}, .choosing li, .shell-examples option:nth-child(2)",
    "Attention/": ".texts .token, .hand option, .sentence bdi",
    "Inside/": ".names .token, .names .next, .names .answer, .lens b, .readout bdi, .formula",
    "Learn/?lesson=words": "code",
}
"""What a model reads and writes, and how its parts are called, by page."""


@pytest.fixture(scope="module")
def hebrew():
    tokenizer = Tokenizer.of_characters(HEBREW + "אבגדGATC")
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context_length=32, n_layers=2, n_heads=2, d_model=16)
    model = build_model(config, seed=0).eval()
    summary = {"summary": "Predicts.", "group": "Texts", "parameters": model.parameter_count()}
    return Checkpoint(model, tokenizer, ModelCard(title="Hebrew", examples=[HEBREW], **summary))


@pytest.fixture(scope="module")
def site(hebrew, tmp_path_factory):
    """The address of a site with one model, and a lesson of a long word."""
    folder = tmp_path_factory.mktemp("readers")
    save_checkpoint(folder / "hebrew", hebrew)
    write_site(folder / "site", {"hebrew": hebrew}, [site_document(read_lesson("words", WORDS))])
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    kind = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 100})
    with kind(("127.0.0.1", 0), functools.partial(handler, directory=folder / "site")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def opened(new_window, site):
    """`opened(path, page=None, **options)`: a page of the site that shows something."""

    def open_page(path, page=None, **options):
        page = page or new_window(**options)
        page.goto(site + path)
        page.wait_for_selector(SHOWN if "Learn" not in path else "[data-part=lesson][data-state=shown]")
        return page

    return open_page


def drag(page, row, by, part=".words"):
    """Move a finger from the words, or another part, of a row up or down by so many pixels."""
    words = row.locator(part).last.bounding_box()
    x, y = words["x"] + 10, words["y"] + words["height"] / 2
    session = page.context.new_cdp_session(page)
    for kind, share in (("touchStart", 0), *(("touchMove", step / 8) for step in range(1, 9)), ("touchEnd", None)):
        points = [] if share is None else [{"x": x, "y": y + by * share}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.detach()


def test_a_tap_says_what_hovering_says(opened):
    page = opened("?model=hebrew", width=390, height=800, has_touch=True, is_mobile=True)
    for path, target, said in (
        ("", TOKEN, "token 1"),
        ("Attention/", ".texts .token", "at position 1"),
        ("Inside/", ".stage > .marks", "layer"),
    ):
        opened(path, page)
        page.locator(target).nth(1 if "token" in target else 0).tap()
        expect(page.locator(TIP)).to_contain_text(said)
        assert page.locator("input, select, textarea").evaluate_all(SMALL) == 0
        page.get_by_role("heading", level=1).tap()
        expect(page.locator(TIP)).to_have_count(0)
    opened("Attention/", page)
    marks = page.locator(".one canvas.marks")
    box = marks.bounding_box()
    marks.tap(position={"x": 0.4 * box["width"], "y": 0.8 * box["height"]})
    expect(page.locator(".over > .readout")).to_contain_text("weight")


def test_a_browser_that_translates_leaves_what_is_data(opened):
    page = opened("?model=hebrew&prompt=GATC")
    for path, data in DATA.items():
        opened(path if "?" in path else f"{path}?model=hebrew&prompt=GATC", page)
        until(page, lambda data=data: all(page.locator(one).count() for one in data.split(", ")))
        before = page.locator(data).all_text_contents()
        words = page.locator(".site-main").inner_text()
        page.evaluate(TRANSLATE)
        assert page.locator(data).all_text_contents() == before, path
        assert page.locator(".site-main").inner_text() != words
    page.set_content(handout(read_lesson("words", WORDS)))
    page.evaluate(TRANSLATE)
    assert page.locator("code").all_text_contents() == [LONG] and "XX" in page.locator("h2").first.inner_text()


def test_enter_that_accepts_a_composed_word_does_nothing_else(opened):
    page = opened("?model=hebrew")
    prompt = page.get_by_label("Prompt")
    prompt.fill("GATTACA")
    for how in ({"isComposing": True}, {"keyCode": 229}):
        assert prompt.evaluate(PRESS, how)  # nobody has prevented it
        expect(prompt).to_be_focused()
    assert not prompt.evaluate(PRESS, {})
    expect(page.locator(TOKEN)).to_have_count(7)


def test_a_saved_picture_has_the_order_of_the_page(opened):
    page = opened("?model=hebrew")
    page.wait_for_selector(TOKEN)
    where = "(all) => all.map((one) => [one.textContent, one.getBoundingClientRect().left])"
    tokens = page.locator(TOKEN).evaluate_all(where)
    page.evaluate(
        """() => {
          globalThis.drawn = [];
          const fill = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (...call) {
            drawn.push(call);
            return fill.apply(this, call);
          };
        }"""
    )
    with page.expect_download():
        page.get_by_role("button", name="Save as PNG").first.click()
    drawn = [(text, x, y) for text, x, y, *_ in page.evaluate("drawn") if len(text) == 1 and text in HEBREW]
    line = [text for text, x, y in sorted(drawn, key=lambda each: each[1]) if y == drawn[0][2]]
    assert (
        [text for text in line if text.strip()]
        == [text for text, _ in sorted(tokens, key=lambda each: each[1]) if text.strip()]
        == [*HEBREW.replace(" ", "")[::-1]]
    )


def test_with_forced_colours_what_is_data_is_seen(opened):
    page = opened("?model=hebrew&tokens=2&pace=unbounded", reduced_motion="reduce")

    def colours(part):
        return len(Image.open(io.BytesIO(part.screenshot())).convert("RGB").getcolors(9999))

    for path, parts in (
        ("", (".track .model", ".generation .ramp.looked", ".generation .ramp.likely")),
        ("Attention/", (".one .ramp", ".measures .meter", ".texts .token[style*='--weight: 0.']")),
    ):
        opened(f"{path}?model=hebrew", page)
        for part in parts:
            page.locator(part).first.scroll_into_view_if_needed()
            page.emulate_media(forced_colors="none")
            drawn = colours(page.locator(part).first)
            page.emulate_media(forced_colors="active")
            assert colours(page.locator(part).first) > 1 and drawn > 1, (path, part)


def test_a_long_word_and_large_type_leave_a_page_as_wide_as_its_window(opened):
    long = f"?model=hebrew&prompt={quote(LONG)}"
    page = opened(long)

    def is_as_wide_as_its_window():
        for width in (360, 640, 1280):  # 640: of a window of 1,280 pixels at 200 %
            page.set_viewport_size({"width": width, "height": 360})
            until(page, lambda: page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0)

    for path in (long, f"Attention/{long}", f"Inside/{long}", "Learn/", "Learn/?lesson=words"):
        opened(path, page)
        is_as_wide_as_its_window()
    page.set_content(handout(read_lesson("words", WORDS)))
    is_as_wide_as_its_window()


def test_a_saved_page_is_printed_light_whole_and_with_its_bars(hebrew, new_window, tmp_path, browser_errors):
    show(hebrew, HEBREW, view="attention").save(tmp_path / "page.html")
    page = new_window(color_scheme="dark")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("[data-whole=true]")
    widths = {int(width) for width in re.findall(rb"/Width (\d+)", page.pdf(format="A4"))}
    assert max(widths) > 1000  # the picture's own pixels, three for each of the page's
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert max(page.evaluate(SHARPNESS)) == 3
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1100})
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    paper = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    assert paper.getpixel((715, 5)) == (255, 255, 255)
    inked = "(one) => getComputedStyle(one).printColorAdjust"
    assert {*page.locator(".meter, .token, .ramp").evaluate_all(f"(all) => all.map({inked})")} == {"exact"}
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert max(page.evaluate(SHARPNESS)) == 1
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 23)"
