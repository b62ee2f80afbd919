"""Tests the instruments without Streamlit: overview of heads, attention, tooltip."""

import pytest

from tests.browser.inside_picture import IMPORT, bundled
from transformer.frontend import FOLDER

expect = pytest.importorskip("playwright.sync_api").expect

PAGE = """<!doctype html><body style="margin: 0; --ink: #222; --paper: #fff; --line: #ccc; --accent: blue;
  --radius: 4px; --font: sans-serif"><main></main><p class="tip" role="tooltip" popover="manual"></p></body>"""
# Two layers, called 4 and 7, of three heads: the only weight of each is where its number says.
GRID = """() => {
  const cells = new Uint8Array(6 * 2 * 3).fill(255);
  for (let head = 0; head < 6; head++) cells[head * 6 + head] = 254;
  window.events = [];
  const onSelect = (layer, head) => window.events.push([layer, head]);
  window.overview = new HeadOverview(document.querySelector("main"), onSelect);
  window.overview.show({ layers: [4, 7], heads: 3, queries: 2, keys: 3, cells });
}"""
LIT = """(canvases) => canvases.map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, 3, 2);
  return [0, 1, 2, 3, 4, 5].filter((cell) => data[4 * cell + 3] === 255);
})"""
TABLE = [f"Layer {layer}, head {head}" for layer in (7, 4) for head in range(3)]  # depth is height
ORDER = [{"layer": layer, "head": head, "caption": "0.5"} for layer, head in ((7, 2), (4, 0), (7, 0))]


@pytest.fixture
def load(new_page):
    """`load(name)`: a page with what a script of the instrument exports, in the window."""

    def open_page(name, **options):
        page = new_page(**options)
        page.set_content(PAGE)
        for sheet in [*FOLDER.glob("*.css"), FOLDER / "attention" / "attention.css"]:
            page.add_style_tag(content=sheet.read_text(encoding="utf-8"))
        page.evaluate(IMPORT, bundled(FOLDER / name))
        return page

    return open_page


def test_heads_are_drawn_each_in_its_place_and_keep_the_focus_in_another_order(load):
    grid = load("head_overview.js")
    grid.evaluate(GRID)
    heads = grid.get_by_test_id("head-grid-head")
    assert heads.evaluate_all("(all) => all.map((one) => one.ariaLabel)") == TABLE
    assert grid.locator("canvas").evaluate_all(LIT) == [[head] for head in (3, 4, 5, 0, 1, 2)]
    heads.nth(1).click()
    grid.evaluate("window.overview.select(4, 0)")  # as another decides, who isn't told
    assert grid.evaluate("window.events") == [[7, 1]]
    expect(grid.locator("[aria-pressed=true]")).to_have_attribute("aria-label", TABLE[3])
    heads.nth(3).focus()
    for order in (ORDER, ORDER[::-1], None):
        grid.evaluate("(order) => window.overview.arrange(order)", order)
        expect(heads).to_have_count(len(order or TABLE))
        assert grid.evaluate("document.activeElement.ariaLabel").startswith(TABLE[3])
    grid.evaluate("window.overview.show({ layers: [4], heads: 2, queries: 1, keys: 1, cells: new Uint8Array(2) })")
    expect(heads).to_have_count(2)  # other layers are laid out anew


def test_a_tip_at_a_point_stays_in_the_window_and_leaves_the_point_free(load):
    page = load("tooltip.js", width=360, height=300)
    page.evaluate("() => { window.tip = new Tooltip(document.querySelector('.tip')); }")
    tip = page.get_by_role("tooltip")
    for x, y in ((0, 0), (359, 0), (0, 299), (359, 299), (180, 150)):
        lines = ["query 3 “a”", "weight 0.25, <b>scaled</b>", "x" * 60]
        page.evaluate("([x, y, lines]) => window.tip.showAt(x, y, lines)", [x, y, lines])
        assert "<b>scaled</b>" in tip.inner_text()
        box = tip.bounding_box()
        right, bottom = box["x"] + box["width"], box["y"] + box["height"]
        assert box["x"] >= 0 and right <= 360 and box["y"] >= 0 and bottom <= 300, (x, y)
        assert not (box["x"] < x < right and box["y"] < y < bottom), (x, y)
        page.evaluate("window.tip.hide()")
        assert not tip.is_visible()


# Attention of 100 tokens, of which only the outline is there: two layers of two heads, and nothing measured but spread.
OUTLINE = """() => {
  const names = { q: "q", k: "k", v: "v", before: null, after: null, out: "out" };
  const measures = ["previous", "spread"].map((name) => ({ name, title: name, sentence: name }));
  window.chosen = [];
  const host = { select: (chosen) => window.chosen.push(chosen), want() {} };
  window.instrument = new AttentionInstrument(document.querySelector("main"), host);
  window.instrument.begin({
    metadata: {
      config: { n_heads: 2, d_model: 4 }, labels: { text: Array(100).fill("a"), source: [] }, kind: "self",
      modules: ["0", "1"], names: [names, names], causal: true, uniform: false, measures,
      queries: 100, keys: 100, predicted_position: 99,
      offsets: { queries: 0, keys: 0 }, next: null, title: "made-up",
    },
    tensors: {
      overview: { shape: [2, 2, 64, 64], data: new Uint8Array(4 * 64 * 64).fill(10) },
      measures: { shape: [2, 2, 2], data: Float32Array.from({ length: 8 }, (_, at) => (at % 2 ? 0.5 : NaN)) },
    },
  }, { order: "previous" });
}"""
BOXES = """() => ["[data-panel=raw]", "[data-panel=weights]", "[data-part=readout]"]
  .map((part) => JSON.stringify(document.querySelector(part).getBoundingClientRect()))"""


def test_until_a_head_s_numbers_come_its_outline_is_drawn_and_then_nothing_moves(load):
    outline = load("attention/instrument.js", width=1000, height=1200)
    outline.evaluate(OUTLINE)

    # Where a cell stands for several none is picked.
    marks = outline.locator("[data-panel=weights] canvas.marks")
    marks.click()
    marks.press("ArrowUp")
    assert [chosen for chosen in outline.evaluate("window.chosen") if chosen["query"] is not None] == []
    assert "at position 99" in outline.locator("[data-part=readout]").inner_text()

    outline.locator("[data-part=derive]").click()
    outline.locator("[data-panel=raw]").wait_for()
    awaited = outline.evaluate(BOXES)
    expect(outline.locator("figure[aria-busy=true]")).to_have_count(5)
    assert "on their way" in outline.locator("[data-panel=raw] figcaption").inner_text()
    outline.evaluate("""() => {
      const { layer, head } = window.instrument.chosen;
      const data = Float32Array.from({ length: 200 }, (_, at) => Math.sin(at));
      const names = ["q", "k", "v"].map((name) => `${window.instrument.pass.names[layer][name]}[:, ${head}]`);
      window.instrument.add({ tensors: Object.fromEntries(names.map((name) => [name, { shape: [100, 2], data }])) });
    }""")
    expect(outline.locator("figure[aria-busy=false]")).to_have_count(5)
    assert outline.evaluate(BOXES) == awaited

    # Heads are sorted only by what was measured.
    assert outline.locator("[data-part=sort] option").all_inner_texts() == ["Layer and head", "spread"]
    assert outline.locator("[data-part=sort]").input_value() == ""
    outline.evaluate("""() => {
      Object.defineProperty(window.instrument.pass, "heads", { value: 1 });
      window.instrument.showControls();
    }""")
    assert outline.locator("[data-part=sort]").is_hidden(), "one head a layer needs no order"
