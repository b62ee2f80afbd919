"""Tests the instruments without Streamlit: overview of heads, attention, tooltip."""

import pytest

from tests.browser.inside_picture import IMPORT, bundled
from transformer.frontend import FOLDER

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
ORDER = [(7, 2, "0.9"), (4, 0, "0.4"), (7, 0, "0.1")]


@pytest.fixture
def load(new_page):
    """`load(name)`: a page with what a script of the instrument exports, in the window."""

    def open_page(name, **options):
        page = new_page(**options)
        page.set_content(PAGE)
        for sheet in FOLDER.glob("*.css"):
            page.add_style_tag(content=sheet.read_text(encoding="utf-8"))
        page.evaluate(IMPORT, bundled(FOLDER / name))
        return page

    return open_page


def arrange(page, order=ORDER):
    listed = [{"layer": layer, "head": head, "caption": caption} for layer, head, caption in order]
    page.evaluate("(order) => window.overview.arrange(order)", listed)


def labels(page):
    return page.get_by_test_id("head-grid-head").evaluate_all("(all) => all.map((one) => one.ariaLabel)")


def focused(page):
    return page.evaluate("document.activeElement.ariaLabel")


def readout(page):
    return page.get_by_test_id("head-grid-readout").inner_text()


TABLE = [f"Layer {layer}, head {head}" for layer in (7, 4) for head in range(3)]  # depth is height


def test_heads_are_shown_chosen_sorted_and_reached_by_key(load):
    grid = load("head_overview.js")
    grid.evaluate(GRID)
    assert labels(grid) == TABLE
    lit = """(canvases) => canvases.map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, 3, 2);
      return [0, 1, 2, 3, 4, 5].filter((cell) => data[4 * cell + 3] === 255);
    })"""
    assert grid.locator("canvas").evaluate_all(lit) == [[head] for head in (3, 4, 5, 0, 1, 2)]
    tops = {round(grid.get_by_test_id("head-grid-head").nth(place).bounding_box()["y"]) for place in range(6)}
    assert len(tops) == 2

    # A click selects, and is told.
    grid.get_by_role("button", name="Layer 7, head 1").click()
    assert grid.evaluate("window.events") == [[7, 1]]
    assert grid.locator("[aria-pressed=true]").evaluate_all("(all) => all.map((one) => one.ariaLabel)") == [
        "Layer 7, head 1"
    ]
    grid.evaluate("window.overview.select(4, 2)")
    grid.mouse.move(0, 0)
    assert grid.locator("[aria-pressed=true]").count() == 1
    assert grid.evaluate("window.events.length") == 1

    # In an order only its heads are shown, and keys follow it.
    grid.evaluate("window.events = []")
    arrange(grid)
    assert labels(grid) == ["Layer 7, head 2, 0.9", "Layer 4, head 0, 0.4", "Layer 7, head 0, 0.1"]
    cards = grid.get_by_test_id("head-grid-head")
    assert cards.first.inner_text().split("\n") == ["layer 7, head 2", "0.9"]
    assert len({round(cards.nth(place).bounding_box()["y"]) for place in range(3)}) == 1
    cards.first.focus()
    grid.keyboard.press("ArrowRight")
    assert focused(grid) == "Layer 4, head 0, 0.4"
    grid.keyboard.press("ArrowDown")
    assert focused(grid) == "Layer 4, head 0, 0.4"
    grid.keyboard.press("End")
    grid.keyboard.press("Enter")
    assert grid.evaluate("window.events") == [[7, 0]]
    assert readout(grid) == "Layer 7, head 0, 0.1, selected"

    # The focus stays with its head in another order.
    grid.evaluate("window.overview.arrange(null)")
    grid.get_by_role("button", name="Layer 4, head 0").focus()
    arrange(grid)
    assert focused(grid) == "Layer 4, head 0, 0.4"
    arrange(grid, ORDER[::-1])
    assert focused(grid) == "Layer 4, head 0, 0.4"
    grid.evaluate("window.overview.arrange(null)")
    assert labels(grid) == TABLE
    assert focused(grid) == "Layer 4, head 0"
    assert grid.locator("[data-testid=head-grid-head][tabindex='0']").count() == 1

    # One head can always be reached with the keyboard.
    grid.evaluate("window.overview.select(4, 1); document.activeElement.blur()")
    arrange(grid)  # without the one that is selected
    assert grid.locator("[data-testid=head-grid-head][tabindex='0']").count() == 1
    grid.keyboard.press("Tab")
    assert focused(grid) == "Layer 7, head 2, 0.9"

    # Other layers are laid out anew.
    shown = """window.overview.show({ layers: [4], heads: 2, queries: 1, keys: 1, cells: new Uint8Array(2) })"""
    for _ in range(2):
        grid.evaluate(shown)
    assert labels(grid) == ["Layer 4, head 0", "Layer 4, head 1"]


def test_a_tip_at_a_point_stays_in_the_window_and_leaves_the_point_free(load):
    page = load("tooltip.js", width=360, height=300)
    page.evaluate("() => { window.tip = new Tooltip(document.querySelector('.tip')); }")
    tip = page.get_by_role("tooltip")
    for x, y in ((0, 0), (359, 0), (0, 299), (359, 299), (180, 150)):
        lines = ["query 3 “a”", "weight 0.25, <b>scaled</b>", "x" * 60]
        page.evaluate("([x, y, lines]) => window.tip.showAt(x, y, lines)", [x, y, lines])
        assert "<b>scaled</b>" in tip.inner_text()
        box = tip.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360, (x, y)
        assert box["y"] >= 0 and box["y"] + box["height"] <= 300, (x, y)
        assert not (box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"]), (x, y)
        page.evaluate("window.tip.hide()")
        assert not tip.is_visible()


# Attention of 100 tokens, of which only the outline is there: two layers of two heads, and nothing measured but spread.
OUTLINE = """() => {
  const names = { q: "q", k: "k", v: "v", before: null, after: null, out: "out" };
  const measures = ["previous", "spread"].map((name) => ({ name, title: name, sentence: name }));
  window.wanted = [];
  window.chosen = [];
  const host = { select: (chosen) => window.chosen.push(chosen), want: (parts) => window.wanted.push(parts) };
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


def test_until_a_head_s_numbers_come_its_outline_is_drawn_and_then_nothing_moves(load):
    outline = load("attention/instrument.js", width=1000, height=1200)
    for sheet in ("type_scale.css", "attention/attention.css"):
        outline.add_style_tag(content=(FOLDER / sheet).read_text(encoding="utf-8"))
    outline.evaluate(OUTLINE)

    # Where a cell stands for several none is picked.
    marks = outline.locator("[data-panel=weights] canvas.marks")
    marks.click()
    marks.press("ArrowUp")
    assert [chosen for chosen in outline.evaluate("window.chosen") if chosen["query"] is not None] == []
    assert "at position 99" in outline.locator("[data-part=readout]").inner_text()

    # The blocks are those of `pool`: each cell has the largest of its block, and a hidden one stays hidden.
    assert outline.evaluate("""() => {
      const starts = Array.from({ length: 64 }, (_, block) => Math.floor((block * 100) / 64));
      const blockOf = (at) => starts.findLastIndex((start) => start <= at);
      const { pass } = window.instrument;
      pass.cells.data.set(Uint8Array.from({ length: 64 * 64 }, (_, at) => (at * 7) % 200));
      return [...pass.outline(0, 0)].every((value, at) => {
        const [query, key] = [Math.floor(at / 100), at % 100];
        const level = (64 * blockOf(query) + blockOf(key)) * 7 % 200;
        return key > query ? value === -Infinity : value === level / 254;
      });
    }""")

    boxes = (
        "Object.fromEntries(['[data-panel=raw]', '[data-panel=weights]', '[data-part=readout]'].map((part) => "
        "[part, JSON.stringify(document.querySelector(part).getBoundingClientRect())]))"
    )
    outline.locator("[data-part=derive]").click()
    outline.locator("[data-panel=raw]").wait_for()
    awaited = outline.evaluate(boxes)
    assert outline.locator("figure[aria-busy=true]").count() == 5
    assert "on their way" in outline.locator("[data-panel=raw] figcaption").inner_text()
    outline.evaluate("""() => {
      const { layer, head } = window.instrument.chosen;
      const data = Float32Array.from({ length: 200 }, (_, at) => Math.sin(at));
      const names = ["q", "k", "v"].map((name) => `${window.instrument.pass.names[layer][name]}[:, ${head}]`);
      window.instrument.add({ tensors: Object.fromEntries(names.map((name) => [name, { shape: [100, 2], data }])) });
    }""")
    assert outline.locator("figure[aria-busy=false]").count() == 5
    assert outline.evaluate(boxes) == awaited

    # Heads are sorted only by what was measured.
    assert outline.locator("[data-part=sort] option").all_inner_texts() == ["Layer and head", "spread"]
    assert outline.locator("[data-part=sort]").input_value() == ""
    outline.evaluate("""() => {
      Object.defineProperty(window.instrument.pass, "heads", { value: 1 });
      window.instrument.showControls();
    }""")
    assert outline.locator("[data-part=sort]").is_hidden(), "one head a layer needs no order"
