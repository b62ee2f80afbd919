"""The components in a real browser, in a demo app that streams made-up tokens."""

import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

DEMO = Path(__file__).with_name("component_demo.py")
PROMPT_LENGTH = len("<script>alert(1)</script>\n")

# Everything that is to stay the same node from the first token to the last: tagged once, counted at the end.
TAG = """(root) => {
  window.tagged = [root, ...root.querySelectorAll("*")];
  for (const node of window.tagged) node.tagged = true;
}"""
WHERE = """(root) => {
  const names = ["live-text-strip", "live-text-candidates", "live-text-picture", "live-text-timeline"];
  const parts = [root, ...names.map((name) => root.querySelector(`[data-testid=${name}]`))];
  const scrolled = document.querySelector("[data-testid=stMain]").scrollTop;
  return JSON.stringify([...parts.map((part) => part.getBoundingClientRect()), scrolled, scrollY]);
}"""
LOST = "() => window.tagged.filter((node) => !node.isConnected).length"
TOKENS_TAGGED = "(spans) => spans.filter((span) => span.tagged).length"


@pytest.fixture(scope="module")
def demo(serve):
    with serve(DEMO) as server:
        yield server


def address(demo, settings):
    return f"{demo.url}/?{urlencode({'settings': settings})}"


@pytest.fixture(scope="module")
def kept(chromium, demo, listen):
    """The page that tests share, unless one has failed on it, and what it reports."""
    with chromium.new_context() as context:
        errors = []
        listen(context, errors)
        yield SimpleNamespace(context=context, errors=errors, page=None)


@pytest.fixture
def open_demo(has_failed, kept, demo, browser_errors, wait_ready):
    """`open_demo(settings, width, height)`: the demo as it is when it is opened, on a page that is opened once."""

    def open_page(settings="", width=1280, height=900):
        new = kept.page is None
        page = kept.page = kept.page or kept.context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        if new:
            page.goto(address(demo, settings))
        else:
            page.emulate_media(reduced_motion="no-preference")
            page.mouse.move(0, 0)
            if page.get_by_test_id("live-text").count() == 0:
                page.get_by_role("link", name="Writing").click()
                page.get_by_test_id("live-text-token").first.wait_for()
            page.get_by_label("Settings").fill(settings)
            page.get_by_label("Settings").press("Enter")
            wait_ready(page)
            press(page, "Begin anew")
            page.evaluate("document.activeElement.blur()")
        page.get_by_test_id("live-text-token").first.wait_for()
        wait_ready(page)
        return page

    yield open_page
    if has_failed() and kept.page:
        kept.page.close()
        kept.page = None
    browser_errors += kept.errors
    kept.errors.clear()


def press(page, name):
    # Streamlit puts a "Stop" of its own into the header of a slow run.
    page.get_by_test_id("stMain").get_by_role("button", name=name).click()


def write(page, total):
    press(page, "Write")
    status(page, f"{total} tokens written")


def status(page, text):
    page.get_by_test_id("live-text-status").filter(has_text=text).wait_for(timeout=60_000)


def event(page, text):
    page.get_by_text(re.compile(rf"events: .*{text} \|")).wait_for()


def open_grid(page, wait_ready):
    page.get_by_role("link", name="Heads").click()
    page.get_by_test_id("head-grid-head").first.wait_for()
    wait_ready(page)


# The text


@pytest.mark.parametrize("width", [360, 1280])
def test_every_node_lives_from_the_first_token_to_the_last_and_nothing_on_the_page_moves(open_demo, width):
    page = open_demo("total=40&burst=2", width=width, height=600)
    press(page, "Write")
    status(page, "writing… ")
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 120)")
    page.wait_for_timeout(200)
    page.get_by_test_id("live-text").evaluate(TAG)
    tokens = page.get_by_test_id("live-text-token")
    before = tokens.evaluate_all(TOKENS_TAGGED)  # a count of all would include what has been written since

    def where():
        return page.get_by_test_id("live-text").evaluate(WHERE)

    places = {where()}
    while "writing" in page.get_by_test_id("live-text-status").inner_text():
        places.add(where())
        page.wait_for_timeout(50)
    status(page, "40 tokens written")
    assert page.evaluate(LOST) == 0
    assert tokens.count() == PROMPT_LENGTH + 40
    assert tokens.evaluate_all(TOKENS_TAGGED) == before
    assert PROMPT_LENGTH < before < PROMPT_LENGTH + 40
    assert len(places) == 1, places


def test_nodes_survive_full_runs_of_the_page(open_demo, wait_ready):
    page = open_demo("total=5")
    page.get_by_test_id("live-text").evaluate(TAG)
    write(page, 5)
    press(page, "Stop")
    wait_ready(page)
    assert page.evaluate(LOST) == 0


def test_markup_in_a_prompt_is_text(open_demo):
    page = open_demo()
    strip = page.get_by_test_id("live-text-strip")
    assert strip.inner_text().startswith("<script>alert(1)</script>")
    assert strip.locator("script").count() == 0


def test_clicks_keys_and_timeline_select_without_running_the_page(open_demo):
    page = open_demo("total=12&burst=6")
    write(page, 12)
    runs = re.search(r"page runs (\d+)", page.get_by_text("events:").inner_text())[1]
    tokens = page.get_by_test_id("live-text-token")
    first, last = PROMPT_LENGTH, PROMPT_LENGTH + 11
    tokens.nth(last - 2).click()
    event(page, f"select {last - 2}")
    page.keyboard.press("ArrowLeft")
    event(page, f"select {last - 3}")
    page.keyboard.press("End")
    event(page, f"select {last}")
    tokens.nth(last - 2).click()  # the same once more: it counts again
    event(page, f"select {last}; select {last - 2}")
    timeline = page.get_by_test_id("live-text-timeline")
    timeline.focus()
    page.keyboard.press("Home")
    event(page, f"select {first}")
    page.get_by_role("button", name="Next token").click()
    event(page, f"select {first + 1}")
    assert timeline.input_value() == "2"
    assert tokens.nth(first + 1).get_attribute("aria-selected") == "true"
    assert page.get_by_test_id("live-text-strip").locator("[aria-selected=true]").count() == 1
    assert f"page runs {runs} |" in page.get_by_text("events:").inner_text()


def test_a_prompt_token_can_be_reached_but_not_selected(open_demo):
    page = open_demo("total=3")
    write(page, 3)
    tokens = page.get_by_test_id("live-text-token")
    tokens.nth(PROMPT_LENGTH).click()
    event(page, f"select {PROMPT_LENGTH}")
    page.keyboard.press("Home")
    page.wait_for_timeout(300)
    assert tokens.first.evaluate("(span) => span.matches(':focus')")
    assert page.get_by_text("events:").inner_text().startswith(f"events: select {PROMPT_LENGTH} |")


def test_another_candidate_is_written_instead(open_demo):
    page = open_demo("total=12&burst=6")
    write(page, 12)
    at = PROMPT_LENGTH + 4
    page.get_by_test_id("live-text-token").nth(at).click()
    event(page, f"select {at}")
    candidates = page.get_by_test_id("live-text-candidates").get_by_role("button")
    assert candidates.count() == 10
    assert "✓" in candidates.first.inner_text()
    candidates.first.click()  # already written: nothing happens
    label = candidates.nth(2).locator(".label").inner_text()
    candidates.nth(2).dblclick()  # counts once
    page.get_by_text(re.compile(rf"select {at}; pick {at} \d+ \|")).wait_for()
    token = page.get_by_test_id("live-text-token").nth(at)
    assert page.get_by_test_id("live-text-token").count() == at + 1
    assert token.get_attribute("aria-label").startswith(label)
    assert "picked" in token.get_attribute("class")


def test_candidates_cannot_be_clicked_while_writing(open_demo):
    page = open_demo("total=500")
    press(page, "Write")
    status(page, "writing… ")
    candidates = page.get_by_test_id("live-text-candidates").get_by_role("button")
    assert all(candidates.nth(row).is_disabled() for row in range(10))
    press(page, "Stop")
    status(page, "tokens written")
    assert candidates.first.is_enabled()


def test_a_candidate_is_named_by_what_can_be_seen_on_it(open_demo):
    page = open_demo("total=3")
    write(page, 3)
    candidates = page.get_by_test_id("live-text-candidates").get_by_role("button")
    for row in (0, 1, 9):
        label, value = (candidates.nth(row).locator(part).inner_text() for part in (".label", ".value"))
        name = candidates.nth(row).aria_snapshot().removeprefix('- button "')
        assert name.startswith(f"{label} {value} from the model, ")
    assert "cut off by the sampling" in candidates.nth(9).aria_snapshot()
    assert ", written" in candidates.nth(0).aria_snapshot()


def test_the_timeline_and_the_candidates_keep_the_focus_they_are_used_with(open_demo):
    page = open_demo("total=4")
    write(page, 4)
    for name, end in (("Previous token", PROMPT_LENGTH), ("Next token", PROMPT_LENGTH + 3)):
        button = page.get_by_role("button", name=name)
        button.focus()
        for _ in range(4):
            page.keyboard.press("Enter")
        event(page, f"select {end}")
        assert button.get_attribute("aria-disabled") == "true"
        assert button.evaluate("(button) => button.matches(':focus')")
    candidate = page.get_by_test_id("live-text-candidates").get_by_role("button").nth(2)
    candidate.focus()
    page.keyboard.press("Enter")
    event(page, rf"pick {PROMPT_LENGTH + 3} \d+")
    assert candidate.evaluate("(button) => button.matches(':focus')")


def test_nothing_moves_by_itself_for_those_who_ask_for_that(open_demo):
    page = open_demo("total=500")
    page.emulate_media(reduced_motion="reduce")
    press(page, "Write")
    status(page, "writing… ")
    strip = page.get_by_test_id("live-text-strip")
    assert strip.evaluate("(strip) => getComputedStyle(strip, '::after').content") == '"▍"'
    assert strip.evaluate("(strip) => getComputedStyle(strip, '::after').animationName") == "none"
    press(page, "Stop")


def test_tokens_and_buttons_answer_to_a_finger(demo, chromium):
    with chromium.new_context(viewport={"width": 420, "height": 800}, has_touch=True) as context:
        page = context.new_page()
        page.goto(address(demo, "total=12&burst=6"))
        page.get_by_test_id("live-text-token").first.wait_for(timeout=60_000)
        write(page, 12)
        page.get_by_test_id("live-text-token").nth(PROMPT_LENGTH + 2).tap()
        event(page, f"select {PROMPT_LENGTH + 2}")
        page.get_by_role("button", name="Next token").tap()
        event(page, f"select {PROMPT_LENGTH + 3}")


def test_the_box_follows_the_end_unless_somebody_scrolled_up(open_demo):
    page = open_demo("total=100000&interval=0.2&burst=64")
    strip = page.get_by_test_id("live-text-strip")
    tokens = page.get_by_test_id("live-text-token")
    press(page, "Write")
    tokens.nth(500).wait_for(timeout=60_000)
    left = "(strip) => [strip.scrollHeight - strip.clientHeight, strip.scrollTop]"
    height, top = strip.evaluate(left)
    assert height > 50 and abs(height - top) < 2
    strip.evaluate("(strip) => { strip.scrollTop = 10; }")
    tokens.nth(tokens.count() + 20).wait_for(timeout=60_000)
    assert strip.evaluate(left)[1] == 10


def test_tooltip_for_pointer_and_keyboard_stays_inside_the_window(open_demo):
    page = open_demo("total=30&burst=10", width=360, height=640)
    write(page, 30)
    tip = page.get_by_role("tooltip")
    assert not tip.is_visible()
    tokens = page.get_by_test_id("live-text-token")
    for index in range(PROMPT_LENGTH, PROMPT_LENGTH + 30, 5):
        tokens.nth(index).hover()
        assert f"token {index} " in tip.inner_text()
        box = tip.bounding_box()
        assert box["x"] >= 0 and box["y"] >= 0
        assert box["x"] + box["width"] <= 360 and box["y"] + box["height"] <= 640
    for words in ("id ", "probability ", "rank ", "nats", "bits", "attention"):
        assert words in tip.inner_text()
    page.mouse.move(0, 0)
    page.get_by_role("button", name="Previous token").focus()
    page.keyboard.press("Shift+Tab")
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


@pytest.mark.parametrize("width", [360, 640, 1280])
def test_nothing_is_wider_than_the_window(open_demo, wait_ready, width):
    page = open_demo("total=80&burst=20", width=width)
    write(page, 80)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") == 0


def test_a_page_switch_and_back_shows_the_same_text(open_demo, wait_ready):
    page = open_demo("total=12&burst=6")
    write(page, 12)
    open_grid(page, wait_ready)
    page.get_by_role("link", name="Writing").click()
    status(page, "12 tokens written")
    wait_ready(page)
    assert page.get_by_test_id("live-text-token").count() == PROMPT_LENGTH + 12
    page.get_by_test_id("live-text-token").nth(PROMPT_LENGTH + 3).click()
    event(page, f"select {PROMPT_LENGTH + 3}")


def test_six_hundred_tokens_are_updated_quickly(open_demo):
    page = open_demo()
    # The view's own entry point, with layout forced after each update; the best of many, for a busy machine.
    milliseconds = page.evaluate("""() => {
      const box = globalThis.headsupBoxes.get("text");
      const kinds = box.data.kinds;
      const [before, times] = [box.data, []];
      for (let count = 570; count <= 600; count++) {
        const every = (make) => Array.from({ length: count }, (_, index) => make(index));
        const data = {
          ...box.data, kind: every((i) => i % kinds.id.length), flags: "w".repeat(count), live: true,
          probability: every((i) => (i % 97) / 97), rank: every((i) => i % 9), entropy: every((i) => (i % 31) / 10),
          weights: Array.from({ length: 256 }, (_, i) => ((i * count) % 101) / 5000), weights_start: count - 257,
          query: count - 2, selected: count - 1, status: `writing… ${count}`,
        };
        box.data = data;
        const started = performance.now();
        box.deliver();
        document.body.getBoundingClientRect();
        times.push(performance.now() - started);
      }
      box.data = before;
      box.deliver();
      return times.slice(1).sort((a, b) => a - b);
    }""")
    print(f"600 tokens: best {milliseconds[0]:.1f} ms, median {milliseconds[15]:.1f} ms")
    assert milliseconds[0] < 25  # about 5 on an idle laptop


# The grid of heads


def test_heads_are_picked_by_click_and_keys(open_demo, wait_ready):
    page = open_demo()
    open_grid(page, wait_ready)
    heads = page.get_by_test_id("head-grid-head")
    assert heads.count() == 24
    pressed = page.locator("[data-testid=head-grid-head][aria-pressed=true]")
    assert pressed.count() == 0
    page.get_by_role("button", name="Layer 2, head 4").click()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert pressed.get_attribute("aria-label") == "Layer 2, head 4"
    page.keyboard.press("Enter")
    assert pressed.get_attribute("aria-label") == "Layer 1, head 3"
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")  # other patterns
    wait_ready(page)
    assert pressed.get_attribute("aria-label") == "Layer 1, head 3"


def test_canvases_are_drawn_over_and_hidden_cells_are_empty(open_demo, wait_ready):
    page = open_demo()
    open_grid(page, wait_ready)
    canvas = page.get_by_test_id("head-grid-head").first.locator("canvas")
    pixel = "(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data]"
    canvas.evaluate("(canvas) => { canvas.tagged = true; }")
    assert canvas.evaluate("(canvas) => [canvas.width, canvas.height]") == [40, 40]
    assert canvas.evaluate(pixel, [39, 0])[3] == 0
    assert canvas.evaluate(pixel, [0, 0]) == [253, 231, 37, 255]  # the first token sees only itself: weight 1
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    wait_ready(page)
    assert canvas.evaluate("(canvas) => canvas.tagged")
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before


@pytest.mark.parametrize("settings", ["layers=12&heads=12&size=100", "layers=1&heads=12"])
def test_a_large_grid_scrolls_inside_itself(open_demo, wait_ready, settings):
    page = open_demo(settings, width=360)
    open_grid(page, wait_ready)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") == 0
    last = page.get_by_test_id("head-grid-head").last
    last.click()
    assert last.get_attribute("aria-pressed") == "true"


# Pictures to save


def saved_picture(page, tmp_path):
    """The PNG file of the button on screen, pressed with the keyboard: its width and height, and its bytes."""
    button = page.get_by_role("button", name="Save as PNG")
    button.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert file.suffix == ".png"
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24]), len(content)


def test_the_grid_is_saved_as_a_picture(open_demo, wait_ready, tmp_path):
    page = open_demo()
    open_grid(page, wait_ready)
    width, height, size = saved_picture(page, tmp_path)
    assert width > 6 * 160 and height > 4 * 160  # 6 heads in each of 4 layers
    assert size > 20_000


def test_the_losses_are_saved_as_a_picture(open_demo, wait_ready, tmp_path):
    page = open_demo()
    page.get_by_role("link", name="Losses").click()
    page.get_by_test_id("loss-chart").locator(".train").wait_for()
    wait_ready(page)
    width, height, size = saved_picture(page, tmp_path)
    chart = page.get_by_test_id("loss-chart").bounding_box()
    assert width > 2 * chart["width"] and height > 2 * chart["height"]
    assert size > 10_000
