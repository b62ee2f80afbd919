"""Tests the picture of a whole pass: selection, zoom, play."""

import pytest

from tests.browser.attention_page import until, until_drawn
from tests.browser.inside_picture import opened, readout, shows, trail
from tests.tiny_models import save_encoder

expect = pytest.importorskip("playwright.sync_api").expect

NAMES_IN_THE_WAY = """async (groups) => {
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const found = [];
  for (const group of groups) {
    window.instrument.open(group);
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    const names = [...document.querySelectorAll(".names .name, .names .chip, .names .title")].map((one) => {
      const box = one.getBoundingClientRect();
      const isCut = one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1;
      return { name: one.textContent, box, isCut, isOut: box.right > innerWidth || box.left < 0 };
    });
    found.push(
      ...names.filter(({ isCut, isOut }) => isCut || isOut).map(({ name }) => `${group}: ${name} is cut or out`),
      ...names.flatMap((a, at) => names.slice(at + 1).filter((b) => over(a.box, b.box)).map((b) => a.name + b.name)),
    );
  }
  return found;
}"""
FOCUSED = """() => {
  const { part = null, open = null } = document.activeElement.dataset;
  return [part, open, document.querySelectorAll(".names [data-open][tabindex='0']").length];
}"""
"""Where the focus is: a part, or a name; and how many names the Tab key stops at."""
LIT = """(name) => {
  const groups = window.instrument.layout.stacks.flatMap((stack) => stack.groups);
  const row = groups.flatMap(({ parts }) => parts.flatMap(({ rows }) => rows)).find((each) => each.name === name);
  const canvas = document.querySelector(".stage > .marks");
  const [top, high] = [row.top * devicePixelRatio, (row.bottom - row.top) * devicePixelRatio];
  const { data } = canvas.getContext("2d").getImageData(0, top, canvas.width, high);
  return data.some((value, at) => at % 4 === 3 && value);
}"""
"""Whether anything is drawn over a row of the picture."""


@pytest.fixture
def show(new_page):
    return shows(new_page)


def test_tokens_blocks_and_cells_are_chosen_by_click_key_and_wheel(show):
    page = show("shakespeare", "ROMEO:")
    assert readout(page).startswith("Token 5 “:”: predicted next “↵” ")  # the newest token of the whole model
    assert page.locator(".token[aria-pressed=true]").get_attribute("aria-label") == "Token 5: :"
    assert page.evaluate("[window.wanted, window.chosen]") == [[], []]  # what is seen first came with the outline

    page.locator("[data-part=stage]").focus()
    for key, token in (("ArrowLeft", "4 “O”"), ("Home", "0 “R”"), ("End", "5 “:”")):
        page.keyboard.press(key)
        assert readout(page).startswith(f"Token {token}")
    assert page.evaluate("window.instrument.chosen.token") is None  # the newest, also when the text grows
    for key in ("ArrowUp", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    assert opened(page) == "blocks.0"
    for _ in range(2):
        page.keyboard.press("Escape")

    marks = page.locator(".stage > .marks")
    marks.hover(position={"x": 300, "y": 300})
    page.mouse.wheel(0, -100)
    assert opened(page) == ""  # the page scrolls
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_function("window.instrument.chosen.open.startsWith('blocks.')")
    page.wait_for_timeout(400)  # longer than one turn of the wheel counts
    page.mouse.wheel(0, 100)
    page.wait_for_function("window.instrument.chosen.open === ''")
    page.keyboard.up("Control")
    left, y = page.evaluate("""() => {
      const [{ left, groups }] = window.instrument.layout.stacks;
      const { top, bottom } = groups.find(({ id }) => id === "blocks.3");
      return [left, (top + bottom) / 2];
    }""")
    marks.click(position={"x": left + 10, "y": y})
    assert opened(page) == "blocks.3"
    page.keyboard.press("Escape")

    page.locator("summary", has_text="How to read this picture").click()
    word = page.locator(".word", has_text="layer 2")
    page.get_by_role("button", name="layer 2", exact=True).first.hover()
    expect(word).to_have_attribute("data-lit", "true")
    page.mouse.move(0, 0)
    expect(word).to_have_attribute("data-lit", "false")

    # A click zooms in step by step, and Escape out. The keys stay with a name that stays, or go to the picture.
    page.get_by_role("button", name="layer 1", exact=True).first.click()  # which becomes a heading
    assert page.evaluate(FOCUSED) == ["stage", None, 1]
    page.get_by_role("button", name="layer 1 · attention").click()
    mean = page.get_by_label("Attention shown")
    expect(mean).to_be_visible()
    page.locator(".name.row", has_text="weighted values").first.click()
    assert page.evaluate(FOCUSED) == [None, "blocks.1.attn.hook_z", 1]
    expect(mean).to_be_hidden()  # the map has one head, and a choice of them
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    assert trail(page)[:-1] == ["model", "layer 1", "attention", "weighted values"]
    assert page.evaluate("window.instrument.chosen.token") is None  # of another row, but no other token
    expect(page.locator(".by-hand[data-state=shown] .badge")).to_contain_text("recomputed, equal")
    assert 0 < page.evaluate("window.instrument.tensor.selectedTop") < page.viewport_size["height"]
    assert readout(page).startswith("Layer 1 attention: weighted values, ")
    for left_open in ("blocks.1.attn.hook_z", "blocks.1.attn", "blocks.1", "", ""):
        page.keyboard.press("Escape")
        assert opened(page) == left_open
    page.evaluate("window.instrument.open('blocks.1.attn')")
    page.locator(".name.row", has_text="weighted values").first.click()
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUSED) == [None, "blocks.1.attn.hook_result", 1]

    for chosen in (  # what another pass had, and this one lacks
        {"open": "nothing"},
        {"token": 99},
        {"head": 17, "source": 3},
        {"open": "blocks.0.attn.hook_q", "cell": [0, 0]},
        {"open": "blocks.0.attn.hook_q", "cell": [0, 0, 4000]},
    ):
        show("shakespeare", "ROMEO:", 0, chosen, page=page)
        assert page.locator("[data-part=cell]").is_hidden() and readout(page), chosen
    page.evaluate("window.instrument.openCell('blocks.1.attn.hook_pattern', [2, 4, 1])")
    lit = [True, True, False]  # what the cell is made of
    names = [f"blocks.1.attn.{name}" for name in ("hook_pattern", "hook_attn_scores", "hook_q")]
    until(page, lambda: [page.evaluate(LIT, name) for name in names] == lit)

    # Of a translator, parameters stand beside the sublayer that reads them.
    show("number-words-en-es", "two hundred and five", 2, {"open": "decoder.blocks.1"}, page=page)
    page.get_by_role("button", name="W_K, W_V", exact=True).click()
    assert trail(page) == ["model", "decoder layer 1", "cross-attention", "W_K, W_V"]
    assert page.locator(".nexts .row-title b").all_inner_texts() == ["encoder", "decoder"]


def test_of_an_encoder_the_mask_is_looked_at_first(show, tmp_path):
    save_encoder(tmp_path)
    page = show(str(tmp_path / "encoder"), "To [mask]e [mask]", 0, {"folds": ["lens", "who"]})
    assert readout(page).startswith("Token 3 “[mask]”: predicted here “")
    assert page.locator(".row-title").all_inner_texts() == ["prompt", "predicted token"]
    page.locator(".total[data-state=equal]").wait_for()
    assert page.locator(".candidates").inner_text().endswith("at token 3, “[mask]”")
    ranks = page.locator(".below tbody tr").first.locator("small").all_inner_texts()
    assert [at for at, rank in enumerate(ranks) if not rank] == [3, 6]
    assert "next" not in page.locator(".inside").inner_text()
    page.locator(".stage").press("End")
    assert page.evaluate("window.instrument.chosen.token") == 6
    page.get_by_role("button", name="Token 3: [mask]").first.click()
    assert page.evaluate("window.instrument.chosen.token") is None  # of another text, its own mask


def test_on_a_phone_rows_and_signs_are_named_the_prompt_is_in_sight_and_the_picture_is_saved_with_its_names(show):
    page = show("shakespeare", "ROMEO: But, soft! wh", width=420, height=400)
    assert page.locator(".row-title").all_inner_texts() == ["prompt", "predicted next token"]
    assert "" not in page.locator(".token").all_inner_texts()
    legend = page.locator("[data-part=legend]").inner_text()
    assert "each stripe the largest of 4 numbers" in legend and "attention: thickness is weight" in legend
    stage, token = page.locator(".stage").bounding_box(), page.get_by_label("Token 0: R").bounding_box()
    assert stage["y"] + stage["height"] > 400 >= token["y"] + token["height"]

    show("ladder-4-attention", "ROM", page=page)
    page.evaluate("""() => {
      const write = CanvasRenderingContext2D.prototype.fillText;
      window.written = [];
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.written.push(text);
        return write.call(this, text, ...place);
      };
    }""")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as PNG").click()
    assert saved.value.suggested_filename == "ladder-4-attention-inside.png"
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"
    on_page = page.locator(".names :is(button, b, small, span, .next, .lens-title)").all_inner_texts()
    written = page.evaluate("window.written")
    assert set(filter(str.strip, on_page)) <= set(written) and "“ROM”" in written


def test_no_name_is_cut_or_lies_on_another(show):
    page = None
    models = {"ladder-4-attention": "ROM", "next-vowel": "abc", "number-words-en-es": "forty-two", "shakespeare": "ROM"}
    for name, prompt in models.items():
        page = show(name, prompt, page=page)
        page.emulate_media(reduced_motion="reduce")  # where they will stand, not on their way there
        groups = page.evaluate("""window.instrument.structure.stacks.flatMap(({ groups }) =>
          groups.filter((_, at) => at < 2 || at > groups.length - 3).map(({ target }) => target))""")
        for width, size in ((420, 16), (1100, 16), (1100, 27)):  # as large as the type of a page that is presented
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("(size) => { document.documentElement.style.fontSize = `${size}px`; }", size)
            page.wait_for_function("(size) => window.instrument.page.type === `${size}px`", arg=size)
            assert page.evaluate(NAMES_IN_THE_WAY, ["", *groups]) == [], f"{name} at {width} px, {size} px high"


def veiled(page):
    """How much of the picture Play hides, from 0 to 1."""
    return page.evaluate("""() => {
      const canvas = document.querySelector(".stage > .marks");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let hidden = 0;
      for (let at = 3; at < data.length; at += 4) hidden += data[at] > 200;
      return hidden / (data.length / 4);
    }""")


@pytest.fixture
def stopped(new_window):
    """A page on which time passes as it is told to."""
    page = new_window(height=260)
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    return page


def test_play_says_each_chapter_to_the_end_and_is_paused_stepped_and_left(show, stopped):
    page = show("ladder-4-attention", "ROMEO", page=stopped)
    said, playing = page.locator("[data-part=chapter]"), "window.instrument.play"
    stage = page.locator("[data-part=stage]")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(50)
    told = []
    while page.evaluate(f"{playing}.isRunning"):
        words = said.inner_text()
        if words not in told:
            told.append(words)
            if len(told) == 1:  # what is played comes into sight
                expect(page.locator(".names").get_by_role("button", name="embedding", exact=True)).to_be_in_viewport()
        page.clock.fast_forward(200)
    assert len(told) == page.evaluate("window.instrument.chapters.length")
    expect(page.locator(".names").get_by_role("button", name="unembedding", exact=True)).to_be_in_viewport()
    assert told[0].startswith("Embedding. ") and told[-1].startswith("Token 4 “O”: predicted next “")
    assert told[2].startswith("Layer 0, head 0: “O” looks most at “") and "What “O” gathered" in told[3]
    assert veiled(page) < 0.01 and page.evaluate("window.chosen.length") == 1  # the page is told once, at the end
    page.get_by_role("button", name="Play or pause").click()
    page.clock.run_for(200)
    assert page.evaluate(f"{playing}.isRunning && {playing}.moment < 1")  # anew

    # It is paused, stepped through and left by keys.
    stage.focus()
    while page.evaluate(f"!({playing}.moment >= 0.999)"):
        page.clock.run_for(20)
    page.keyboard.press("Space")
    assert not page.evaluate(f"{playing}.isRunning")
    assert said.inner_text().startswith("Embedding. ")
    first, before = veiled(page), page.evaluate("window.chosen.length")
    assert first > 0.2
    page.keyboard.press("ArrowRight")
    assert page.evaluate("window.chosen.length") == before + 1
    assert said.inner_text() == told[1] and veiled(page) < first
    page.get_by_label("Where in the pass").fill("99")
    assert veiled(page) < 0.01
    page.keyboard.press("Escape")
    assert page.evaluate("window.instrument.chosen.moment") is None and opened(page) == ""

    # A link leads to a moment, and nothing moves for those who ask for less motion.
    show("ladder-4-attention", "ROMEO", 0, {"moment": 1.5}, page=page)
    page.clock.run_for(100)
    assert veiled(page) > 0.2 and page.get_by_label("Where in the pass").input_value() == "1.5"
    show("ladder-4-attention", "ROMEO", page=page)
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    assert not page.evaluate(f"{playing}.isRunning") and page.evaluate("window.instrument.chosen.moment") > 0.99


PICTURE = "document.querySelector('.stage > .picture').toDataURL()"
MOVING = "document.querySelector('.stage').dataset.moving === 'true'"


def test_a_block_opens_in_less_than_a_third_of_a_second_and_stands_where_it_belongs(show, stopped):
    page = show("shakespeare", "ROMEO:", page=stopped)

    def at_rest():
        """What is drawn once the numbers have come: what is drawn at once."""
        page.clock.run_for(100)
        before = page.evaluate(PICTURE)
        page.evaluate("window.instrument.draw()")
        return page.evaluate(PICTURE) == before and page.evaluate(f"!({MOVING})")

    page.evaluate("window.instrument.open('blocks.2')")
    first = page.evaluate(PICTURE)
    page.clock.run_for(150)
    assert page.evaluate(MOVING)
    during = page.evaluate(PICTURE)
    page.clock.run_for(180)
    assert not page.evaluate(MOVING)
    until(page, at_rest)
    assert len({first, during, page.evaluate(PICTURE)}) == 3
    # Of two that are opened in one breath the second is drawn.
    page.evaluate("['blocks.2', 'blocks.4'].forEach((open) => window.instrument.open(open))")
    page.clock.run_for(330)
    until(page, at_rest)
    assert opened(page) == "blocks.4"
    page.emulate_media(reduced_motion="reduce")
    page.evaluate("window.instrument.open('blocks.3')")
    assert not page.evaluate(MOVING)


def test_what_is_opened_stands_beside_the_picture_where_there_is_room_else_below(show):
    page = show("shakespeare", "ROMEO:", width=1280, height=700)
    stage, tensor = page.locator(".stage"), page.locator(".numbers.tensor[data-state=shown]")
    whole = stage.bounding_box()["width"]
    assert whole == page.get_by_test_id("inside").bounding_box()["width"]  # all of it is the picture's
    page.evaluate("window.instrument.open('blocks.1.mlp.hook_post')")
    tensor.wait_for()
    until_drawn(page)
    picture, box = stage.bounding_box(), tensor.bounding_box()
    assert picture["x"] + picture["width"] <= box["x"] and abs(box["y"] - picture["y"]) < 40
    tensor.locator("canvas.marks").first.click()
    page.locator(".by-hand[data-state=shown]").wait_for()
    page.mouse.wheel(0, 2000)
    page.wait_for_function("scrollY > 200")
    assert 0 <= page.get_by_role("navigation").bounding_box()["y"] < 60  # and the picture is in sight still
    assert page.evaluate("window.instrument.parts.stage.getBoundingClientRect().bottom > 200")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 700, "height": 700})
    page.wait_for_function("!window.instrument.isBeside")
    until_drawn(page)
    assert stage.bounding_box()["y"] + stage.bounding_box()["height"] <= tensor.bounding_box()["y"]
    page.evaluate("window.instrument.open('')")
    page.set_viewport_size({"width": 1280, "height": 700})
    page.wait_for_function("(width) => window.instrument.page.width === width", arg=whole)
