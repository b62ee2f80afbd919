"""The picture of a whole pass in a page of its own, without Streamlit: looked at, zoomed into, and played."""

import base64
import re

import pytest

from tests.inside_answers import Inside
from transformer import ov_circuit, qk_circuit
from transformer.instrument import FOLDER, bundle

PAGE = """<!doctype html><body style="margin: 8px; --ink: #222; --paper: #fff; --line: #ccc; --accent: #0072b2;
  --radius: 4px; --font: sans-serif"><main></main></body>"""
IMPORT = """async (source) => {
  Object.assign(window, await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))));
}"""
BEGIN = """async ([bytes, chosen]) => {
  const read = (text) => readRecording(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)));
  Object.assign(window, { wanted: [], chosen: [] });
  const want = async (parts) => {
    window.wanted.push(...parts);
    window.instrument.add(read(await answer(parts)));
  };
  const select = (one) => window.chosen.push(one);
  window.instrument = new InsideInstrument(document.querySelector("main"), { select, want });
  window.instrument.begin(read(bytes), chosen);
}"""


NAMES_IN_THE_WAY = """() => {
  const boxes = [...document.querySelectorAll(".names .name, .names .chip, .names .title")].map((one) => {
    return { name: one.textContent, box: one.getBoundingClientRect(), isCut: one.scrollWidth > one.clientWidth + 1 };
  });
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return {
    cut: boxes.filter(({ isCut }) => isCut).map(({ name }) => name),
    out: boxes.filter(({ box }) => box.right > innerWidth || box.left < 0).map(({ name }) => name),
    over: boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) => over(a.box, b.box)).map((b) => a.name + b.name)),
  };
}"""


@pytest.fixture(scope="module")
def passes():
    """`passes(name, prompt, written)`: each is made once."""
    made = {}

    def find(*which):
        if which not in made:
            made[which] = Inside(*which)
        return made[which]

    return find


@pytest.fixture(scope="module")
def answering():
    """The pass that each tab's page asks about; a tab keeps its way of asking from one test to the next."""
    return {}


@pytest.fixture
def show(new_page, passes, answering):
    """`show(name, prompt, written=0, chosen={}, **options)`: a page with the picture of this pass."""

    def open_page(name, prompt, written=0, chosen=None, **options):
        page = new_page(**{"width": 1100, "height": 900, **options})
        if page not in answering:
            page.expose_function("answer", lambda parts: _text(answering[page].parts(parts)))
        found = answering[page] = passes(name, prompt, written)
        page.set_content(PAGE)
        for sheet in [*FOLDER.glob("*.css"), *(FOLDER / "inside").glob("*.css")]:
            page.add_style_tag(content=sheet.read_text(encoding="utf-8"))
        for script in ("recording.js", "inside/instrument.js"):
            page.evaluate(IMPORT, bundle(FOLDER / script))
        page.evaluate(BEGIN, [_text(found.outline), chosen or {}])
        return page

    return open_page


def _text(recording):
    return base64.b64encode(recording.to_bytes()).decode()


def opened(page):
    return page.evaluate("window.instrument.chosen.open")


def trail(page):
    return page.get_by_role("navigation").get_by_role("button").all_inner_texts()


def readout(page):
    return page.locator("[data-part=readout]").inner_text()


def test_at_first_the_newest_token_of_the_whole_model_is_looked_at(show):
    page = show("shakespeare", "ROMEO:")
    assert trail(page) == ["model"]
    assert readout(page).startswith("Token 5 “:”: next comes “↵” ")
    assert page.locator(".token[aria-pressed=true]").get_attribute("aria-label") == "Token 5: :"
    assert page.evaluate("window.wanted") == []  # what the first sight shows came with the outline
    assert page.evaluate("window.chosen") == []


def test_a_click_zooms_in_step_by_step_and_escape_out(show):
    page = show("shakespeare", "ROMEO:")
    page.get_by_role("button", name="block 1", exact=True).first.click()
    page.get_by_role("button", name="block 1 · attention").click()
    page.locator(".name.row", has_text="z").first.click()
    assert trail(page) == ["model", "block 1", "attention", "z"]
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    assert len(trail(page)) == 5
    page.locator(".by-hand[data-state=shown]").wait_for()
    assert "recomputed, equal" in page.locator(".by-hand .badge").inner_text()
    assert readout(page).startswith("blocks.1.attn.hook_z, ")
    seen = []
    for _ in range(5):
        page.keyboard.press("Escape")
        seen.append(opened(page))
    assert seen == ["blocks.1.attn.hook_z", "blocks.1.attn", "blocks.1", "", ""]


def test_parameters_stand_beside_the_sublayer_that_reads_them(show):
    page = show("number-words-en-es", "two hundred and five", 2, {"open": "decoder.blocks.1"})
    page.get_by_role("button", name="kv.weight", exact=True).click()
    assert opened(page) == "decoder.blocks.1.cross_attn.kv.weight"
    assert trail(page) == ["model", "decoder block 1", "cross-attention", "kv.weight"]


def test_a_place_in_the_picture_is_clicked(show):
    page = show("shakespeare", "ROMEO:")
    box = page.evaluate("""() => {
      const group = window.instrument.layout.stacks[0].groups.find(({ id }) => id === "blocks.3");
      return [window.instrument.layout.stacks[0].left + 10, (group.top + group.bottom) / 2];
    }""")
    marks = page.locator(".stage > .marks")
    marks.click(position={"x": box[0], "y": box[1]})
    assert opened(page) == "blocks.3"


def test_keys_choose_a_token_and_a_block(show):
    page = show("shakespeare", "ROMEO:")
    page.locator("[data-part=stage]").focus()
    page.keyboard.press("ArrowLeft")
    assert readout(page).startswith("Token 4 “O”")
    page.keyboard.press("Home")
    assert readout(page).startswith("Token 0 “R”")
    page.keyboard.press("End")
    assert page.evaluate("window.instrument.chosen.token") is None  # the newest, also when the text grows
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert opened(page) == "blocks.0"


def test_the_wheel_with_control_zooms_in_and_out(show):
    page = show("shakespeare", "ROMEO:")
    marks = page.locator(".stage > .marks")
    marks.hover(position={"x": 300, "y": 300})
    page.mouse.wheel(0, -100)
    assert opened(page) == ""  # the page scrolls
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_function("window.instrument.chosen.open.startsWith('blocks.')")
    page.wait_for_timeout(400)
    page.mouse.wheel(0, 100)
    page.wait_for_function("window.instrument.chosen.open === ''")
    page.keyboard.up("Control")


def test_a_block_and_its_word_light_each_other(show):
    page = show("shakespeare", "ROMEO:")
    word = page.locator(".word", has_text="block 2")
    page.get_by_role("button", name="block 2", exact=True).first.hover()
    assert word.get_attribute("data-lit") == "true"
    page.mouse.move(0, 0)
    assert word.get_attribute("data-lit") == "false"


@pytest.mark.parametrize("chosen", [
    {"open": "nothing"}, {"token": 99}, {"head": 17, "source": 3}, {"open": "blocks.0.attn.hook_q", "cell": [0, 0]},
    {"open": "blocks.0.attn.hook_q", "cell": [0, 0, 4000]},
])  # fmt: skip
def test_what_another_pass_had_and_this_one_lacks_is_let_go(show, chosen):
    page = show("shakespeare", "ROMEO:", 0, chosen)
    assert page.locator("[data-part=cell]").is_hidden()
    assert readout(page)


@pytest.mark.parametrize("name", ["ladder-1-bigram", "ladder-4-attention", "next-vowel"])
@pytest.mark.parametrize("width", [420, 1100])
def test_no_name_is_cut_or_lies_on_another(show, name, width):
    page = show(name, "abc" if name == "next-vowel" else "ROMEO", width=width)
    page.emulate_media(reduced_motion="reduce")  # where they will stand, not on their way there
    groups = "window.instrument.structure.stacks.flatMap(({ groups }) => groups.map(({ target }) => target))"
    for group in page.evaluate(groups):
        page.evaluate("(open) => window.instrument.open(open)", group)
        found = page.evaluate(NAMES_IN_THE_WAY)
        assert found == {"cut": [], "out": [], "over": []}, group


def veiled(page):
    """How much of the picture Play hides, from 0 to 1."""
    return page.evaluate("""() => {
      const canvas = document.querySelector(".stage > .marks");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let hidden = 0;
      for (let at = 3; at < data.length; at += 4) hidden += data[at] > 200;
      return hidden / (data.length / 4);
    }""")


def test_play_runs_a_chapter_and_waits_for_the_next_key(show):
    page = show("shakespeare", "ROMEO:")
    page.locator("[data-part=stage]").focus()
    page.keyboard.press("Space")
    page.wait_for_function("!window.instrument.play.isRunning")
    assert page.locator("[data-part=chapter]").inner_text().startswith("hook_embed: ")
    first = veiled(page)
    assert first > 0.3
    told = page.evaluate("window.chosen.length")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("window.chosen.length") == told + 1
    assert "looks most at" in page.locator("[data-part=chapter]").inner_text()
    assert veiled(page) < first
    page.get_by_label("Where in the pass").fill("99")
    assert veiled(page) < 0.01
    page.keyboard.press("Escape")
    assert page.evaluate("window.instrument.chosen.moment") is None
    assert opened(page) == ""


def test_nothing_moves_for_those_who_ask_for_less_motion(show):
    page = show("shakespeare", "ROMEO:")
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    assert not page.evaluate("window.instrument.play.isRunning")
    assert page.evaluate("window.instrument.chosen.moment") > 0.99


PICTURE = "document.querySelector('.stage > .picture').toDataURL()"
MOVING = "document.querySelector('.stage').dataset.moving === 'true'"


def test_a_block_opens_in_less_than_a_third_of_a_second_and_stands_where_it_belongs(show):
    page = show("shakespeare", "ROMEO:")
    began, first, during = page.evaluate(f"""() => {{
      const {{ instrument }} = window;
      instrument.open("blocks.2");
      const started = performance.now();
      const during = [];
      const first = {PICTURE};
      return new Promise((resolve) => {{
        const look = () => {{
          if ({MOVING}) during.push({PICTURE});
          if ({MOVING} && performance.now() - started < 3000) requestAnimationFrame(look);
          else resolve([instrument.picture.move?.began ?? null, first, during]);
        }};
        requestAnimationFrame(look);
      }});
    }}""")
    assert began is None  # it has come to rest
    page.wait_for_timeout(300)  # until its numbers have come
    last = page.evaluate(PICTURE)
    page.evaluate("window.instrument.draw()")
    assert page.evaluate(PICTURE) == last  # what is drawn at once
    assert first != last and {*during} - {first, last}
    page.emulate_media(reduced_motion="reduce")
    page.evaluate("window.instrument.open('blocks.3')")
    assert not page.evaluate(MOVING)


def test_a_link_leads_to_a_moment(show):
    page = show("shakespeare", "ROMEO:", 0, {"moment": 3.5})
    assert veiled(page) > 0.2
    assert page.get_by_label("Where in the pass").input_value() == "3.5"


def test_who_said_it_sums_to_the_logit(show):
    page = show("next-vowel", "abc", 1)
    page.get_by_text("Who said it").click()
    page.locator(".total[data-state=equal]").wait_for()
    page.locator(".candidates button").nth(1).click()
    page.locator(".candidates button[aria-pressed=true]", has_text="#").wait_for()
    page.locator(".total[data-state=equal]").wait_for()
    page.locator(".shares button", has_text="mlp_out").click()
    assert opened(page) == "decoder.blocks.0.hook_mlp_out"


def test_what_each_height_would_say_ends_in_what_the_model_says(show):
    page = show("shakespeare", "ROMEO:")
    page.get_by_text("What each height would say").click()
    rows = page.locator(".below tbody tr")
    rows.first.wait_for()
    assert rows.count() == 7
    above = page.locator(".names .next b").all_inner_texts()
    assert rows.first.locator("td b").all_inner_texts() == above
    page.get_by_role("button", name="Token 2: M").last.click()
    assert readout(page).startswith("Token 2 “M”")


# Circuits


def circuits(page):
    return page.get_by_role("region", name="Circuits")


def named(page):
    """What the chosen or pointed cell is said to be, and its number."""
    said = circuits(page).locator(".readout").inner_text()
    return said, float(re.search(r"(?:by|:) (−?[\d.]+)", said)[1].replace("−", "-"))


def test_the_circuits_of_the_head_that_is_looked_at_open_below(show, passes):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.1.attn", "head": 2})
    page.get_by_role("button", name="Circuits").click()
    circuits(page).locator(".pairs button").first.click()
    asked = page.evaluate("window.wanted.filter(([kind]) => kind === 'circuit')")
    assert asked == [["circuit", "ov", "blocks.1.attn", 2]]
    found = passes("shakespeare", "ROMEO:", 0).found
    full = ov_circuit(found, "blocks.1.attn", 2).full()
    said, value = named(page)
    assert said.endswith("more than any other token.") and value == pytest.approx(float(full.max()), abs=1e-3)
    circuits(page).locator("canvas.marks").press("ArrowRight")
    row, column = divmod(int(full.argmax()), len(full))
    assert page.evaluate("window.instrument.below.circuits.chosen.cell") == [row, column + 1]
    assert abs(named(page)[1]) == pytest.approx(abs(float(full[row, column + 1])), abs=1e-3)


def test_queries_turn_in_the_browser_as_in_the_model(show, passes):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.0.attn", "head": 0})
    page.get_by_role("button", name="Circuits").click()
    circuits(page).get_by_label("Circuit", exact=True).select_option("qk")
    circuits(page).locator(".pairs button").first.wait_for()
    asked = page.evaluate("window.wanted.length")
    circuits(page).get_by_role("slider").fill("5")
    circuits(page).locator(".pairs button").first.click()
    full = qk_circuit(passes("shakespeare", "ROMEO:", 0).found, "blocks.0.attn", 0, 5).full()
    assert named(page)[1] == pytest.approx(float(full.max()), abs=1e-3)
    assert "5 tokens before the query" in circuits(page).inner_text()
    assert page.evaluate("window.wanted.length") == asked
    again = show("shakespeare", "ROMEO:", 0, page.evaluate("window.instrument.chosen"))  # as a link would
    circuits(again).locator(".pairs button").first.wait_for()
    assert named(again) == named(page) and "5 tokens before the query" in circuits(again).inner_text()
    assert again.evaluate("window.instrument.chosen.folds") == ["circuits"]


@pytest.mark.parametrize(("name", "attention", "kinds"), [
    ("ladder-1-bigram", None, []), ("ladder-3-average", "blocks.0.attn", ["ov"]),
    ("next-vowel", "encoder.blocks.0.attn", ["qk"]), ("next-vowel", "decoder.blocks.0.cross_attn", ["ov", "qk"]),
])  # fmt: skip
def test_a_model_has_the_circuits_it_can_have(show, name, attention, kinds):
    page = show(name, "abc", 1 if name == "next-vowel" else 0, {"open": attention or ""}, width=420)
    button = page.get_by_role("button", name="Circuits")
    assert button.is_visible() == bool(kinds)
    if not kinds:
        return
    button.click()
    circuits(page).locator(".pairs button").first.wait_for()
    offered = circuits(page).get_by_label("Circuit", exact=True).locator("option")
    assert [option.get_attribute("value") for option in offered.all()] == kinds
    assert not circuits(page).get_by_role("slider").is_visible()  # positions don't rotate here
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_circuit_s_numbers_are_saved(show):
    page = show("next-vowel", "abc", 1, {"open": "decoder.blocks.0.attn"})
    page.get_by_role("button", name="Circuits").click()
    circuits(page).locator(".pairs button").first.wait_for()
    with page.expect_download() as saved:
        circuits(page).get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename == "next-vowel-ov-decoder.blocks.0.attn-head0.csv"
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == "read,next,value" and len(lines) == 1 + 31 * 31


def test_the_picture_is_saved_with_its_names(show):
    page = show("shakespeare", "ROMEO:")
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
    assert saved.value.suggested_filename == "shakespeare-inside.png"
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"
    on_page = page.locator(".names :is(button, b, small, .lens-title)").all_inner_texts()
    written = page.evaluate("window.written")
    assert set(filter(str.strip, on_page)) <= set(written) and "“ROMEO:”" in written


def test_what_holds_is_listed(show):
    page = show("ladder-4-attention", "ROMEO:")
    page.get_by_text("What holds").click()
    page.locator(".below tbody tr").first.wait_for()
    assert page.locator(".below tbody tr").count() == page.evaluate("window.instrument.pass.equations.size")


def test_a_chosen_cell_lights_what_it_is_made_of(show):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.1.attn.hook_pattern", "cell": [2, 4, 1]})
    lit = """(name) => {
      const groups = window.instrument.layout.stacks.flatMap((stack) => stack.groups);
      const row = groups.flatMap(({ parts }) => parts.flatMap(({ rows }) => rows)).find((each) => each.name === name);
      const ratio = devicePixelRatio;
      const canvas = document.querySelector(".stage > .marks");
      const [top, high] = [row.top * ratio, (row.bottom - row.top) * ratio];
      const { data } = canvas.getContext("2d").getImageData(0, top, canvas.width, high);
      return data.some((value, at) => at % 4 === 3 && value);
    }"""
    for name, isLit in (("hook_pattern", True), ("hook_attn_scores", True), ("hook_q", False)):
        assert page.evaluate(lit, f"blocks.1.attn.{name}") == isLit, name


def test_where_one_is_stays_in_sight_beside_a_large_tensor(show):
    page = show("shakespeare", "ROMEO:", height=700)
    page.evaluate("window.instrument.open('blocks.1.mlp.hook_post')")
    page.locator(".numbers.tensor[data-state=shown]").wait_for()
    box = page.locator(".numbers.tensor").bounding_box()
    assert 100 < box["y"] < 500  # there is something of both
    page.mouse.wheel(0, 2000)
    page.wait_for_function("scrollY > 300")
    assert 0 <= page.get_by_role("navigation").bounding_box()["y"] < 60
