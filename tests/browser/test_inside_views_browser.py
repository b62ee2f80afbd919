"""Tests the views of tensors and operations on the page Inside, and its search.

The passes are those of shipped models; the views are the shipped scripts, in Chromium, without Streamlit.
"""

import base64

import pytest

from tests.browser.attention_page import until_drawn
from tests.browser.inside_picture import IMPORT
from tests.browser.servers import ROOT
from tests.helpers import MODERN
from tests.inside_outlines import labelled_outline, parts_of, pass_of
from tests.tiny_models import save_tiny
from transformer import load_checkpoint
from transformer.frontend import FOLDER, bundle
from transformer.model.equations import OPERATIONS, equations

ENTRY = """
import { InsidePass } from "%(folder)s/inside/pass.js";
import { CellView } from "%(folder)s/inside/cell_view.js";
import { plainName } from "%(folder)s/inside/plain_names.js";
import { Search } from "%(folder)s/inside/search.js";
import { TensorView } from "%(folder)s/inside/tensor_view.js";
import { readRecording } from "%(folder)s/recording.js";

const read = (text) => readRecording(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)));

export function start(outline, sent) {
  const parts = sent ? read(sent) : { metadata: {}, tensors: {} };
  const place = document.querySelector("main");
  place.replaceChildren();
  const nothing = { name: null, head: null, cell: null, token: null, opened: [] };
  const state = (window.state = { pass: new InsidePass(read(outline)), parts, ...nothing });
  // What a host does: it remembers what is looked at, and brings what is asked for.
  const show = (window.show = (change = {}) => {
    Object.assign(state, change);
    const { pass, name, head, cell, token } = state;
    tensor.show(pass, name, { head, cell, token });
    hand.show(pass, name, cell);
  });
  window.fetchAll = () => {
    state.pass.add(state.parts);
    show();
  };
  const open = (name, cell = null) => {
    state.opened.push([name, cell]);
    show({ name, cell, head: null });
  };
  const search = (window.search = new Search(place, open));
  search.offer(state.pass.names, (name) => plainName(name));
  const events = { cell: (cell) => show({ cell }), slice: (head) => show({ head, cell: null }), open };
  const tensor = (window.tensor = new TensorView(place, events));
  const hand = (window.hand = new CellView(place, { open }));
}
"""
PAGE = """<!doctype html><body style="margin: 12px; background: var(--paper); --ink: #222; --paper: #fff;
  --line: #8888; --accent: #0072b2; --radius: 6px; --font: sans-serif"><main></main></body>"""
DARK = """document.body.style.setProperty("--ink", "#eee");
document.body.style.setProperty("--paper", "#0e1117");"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    entry = folder / "entry.js"
    entry.write_text(ENTRY % {"folder": "./" + "../" * len(folder.parts[1:]) + str(FOLDER)[1:]}, encoding="utf-8")
    return bundle(entry)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """`recorded(name)`: a pass over an example, its outline and its parts as the browser gets them.

    name: of a shipped model, or of one of `MODERN`, which has random weights.
    """
    kept, folder = {}, tmp_path_factory.mktemp("modern")

    def record(name):
        if name not in kept:
            shipped = ROOT / "checkpoints" / name
            checkpoint = (
                load_checkpoint(shipped)
                if shipped.exists()
                else save_tiny(folder, name, **{"n_heads": 4, **MODERN[name]})
            )
            found = pass_of(checkpoint, max(checkpoint.card.examples, key=len))
            messages = (labelled_outline(found, checkpoint, name), parts_of(found))
            kept[name] = (found, *(base64.b64encode(each.to_bytes()).decode() for each in messages))
        return kept[name]

    return record


@pytest.fixture
def page(new_page, script):
    """A page that `start` can be called on."""
    page = new_page()
    page.set_content(PAGE)
    for sheet in ("tooltip.css", "inside/tensors.css"):
        page.add_style_tag(content=(FOLDER / sheet).read_text(encoding="utf-8"))
    page.evaluate(IMPORT, script)
    return page


@pytest.fixture
def views(page, recorded):
    """`views(model)`: the views of a model's pass on the page, all of which has come unless `fetched` is false."""

    def begin(model, fetched=True):
        _, *messages = recorded(model)
        page.evaluate("([outline, parts]) => start(outline, parts)", messages)
        if fetched:
            page.evaluate("state.pass.add(state.parts)")

    return begin


def hand(page):
    return page.get_by_role("region", name="By hand")


def tensor(page):
    return page.get_by_role("region", name="Tensor")


def picker(page, name):
    return tensor(page).get_by_role("combobox", name=name, exact=True)


def show(page, name, cell=None, **change):
    page.evaluate("(change) => show(change)", {"name": name, "cell": cell, **change})


def ink(canvas):
    """How many different colours a canvas has: an empty one has one."""
    return canvas.evaluate("""(canvas) => {
      const { width, height } = canvas;
      return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer)).size;
    }""")


MODERNS = {"length", "shorten", "gate", "clip", "cap", "distance", "bucket"}
# Small models that have, between them, every operation; no shipped one has those of the last four.
MODEL = "sort-letters"
EVERY = {
    MODEL: set(OPERATIONS) - {"position", "average", *MODERNS},
    "next-vowel": {"position"},
    "ladder-3-average": {"average"},
    "llama": {"length", "shorten", "gate"},
    "slopes": {"clip", "distance"},
    "relative": {"bucket", "cap"},
    "norms of all heads": {"length", "shorten"},
}
DRAWN = {
    "look up",
    "add",
    "spread",
    "normalise",
    "multiply",
    "softmax",
    "average",
    "length",
    "shorten",
    "clip",
    "bucket",
}  # with bars
PICTURED = {"rotate", "activate", "position", "divide", "see", "hide", "gate", "cap"}  # "distance" is a line of words


def test_every_operation_is_drawn_and_ends_in_the_number_that_was_recorded(page, views, recorded):
    assert set(OPERATIONS) == DRAWN | PICTURED | {"distance"}
    for model, operations in EVERY.items():
        views(model)
        last = {equation.operation: name for name, equation in equations(recorded(model)[0].config).items()}
        assert operations <= last.keys(), model
        for operation in operations:
            name, told = last[operation], f"{operation} of {model}"
            place = page.evaluate("(name) => state.pass.describe(name).sizes.map((size) => Math.floor(size / 3))", name)
            show(page, name, place)
            assert hand(page).locator(".badge").get_attribute("data-state") == "equal", told
            assert hand(page).locator("ol li").count() >= 1, told
            bars, small = hand(page).locator(".bars canvas"), hand(page).locator(".small canvas")
            assert bars.is_visible() == (operation in DRAWN), told
            assert small.is_visible() == (operation in PICTURED), told
            for canvas in (bars, small):
                assert not canvas.is_visible() or ink(canvas) > 2, told
            assert ink(tensor(page).locator("canvas.picture").first) > 1, told


def test_a_cell_is_chosen_and_leads_to_what_it_is_made_of(page, views):
    views(MODEL, fetched=False)
    show(page, "blocks.0.attn.hook_q", [4, 2, 7])
    assert tensor(page).get_attribute("aria-busy") == "true"
    assert "being loaded" in hand(page).inner_text()
    assert tensor(page).locator("dl").inner_text().split()[0] == "mean"  # of the whole, from the outline
    page.evaluate("fetchAll()")
    assert tensor(page).get_attribute("aria-busy") == "false"
    assert hand(page).locator(".badge").get_attribute("data-state") == "equal"

    # By click and by keys.
    show(page, "blocks.1.mlp.hook_pre")
    assert hand(page).inner_text().endswith("Click a cell to see what it is made of.")
    marks = tensor(page).locator("canvas.marks")
    marks.focus()
    marks.press("ArrowUp")
    first = page.evaluate("state.cell")
    marks.press("ArrowRight")
    assert page.evaluate("state.cell") == [first[0], first[1] + 1]
    assert "neuron 1: " in tensor(page).locator(".readout").inner_text()
    hand(page).get_by_role("button", name="W_up").click()
    name, place = page.evaluate("state.opened.at(-1)")
    assert (name, place[0]) == ("blocks.1.mlp.up.weight", 1)
    assert "Learned in training" in hand(page).inner_text()
    assert hand(page).get_attribute("data-state") == "learned"
    tensor(page).get_by_role("button", name="blocks.1.mlp.hook_pre").click()
    assert page.evaluate("[state.name, state.cell]") == ["blocks.1.mlp.hook_pre", None]

    # Another bar of what it is made of.
    show(page, "blocks.1.mlp.hook_pre", [4, 7])
    assert "The strongest term: dimension" in hand(page).inner_text()
    bars = hand(page).locator(".bars canvas")
    bars.click(position={"x": 94, "y": 20})
    term, links = hand(page).locator(".term"), hand(page).locator(".links button")
    assert "dimension 0. x" in term.inner_text()
    assert links.first.inner_text().endswith("[4, 0]")
    bars.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        bars.press(key)
    assert "dimension 2. x" in term.inner_text()
    assert hand(page).get_by_role("tooltip").is_visible()
    page.evaluate("() => { document.onkeydown = ({ key }) => (window.heard = key); }")
    bars.press("Escape")
    assert not hand(page).get_by_role("tooltip").is_visible()
    assert page.evaluate("window.heard ?? null") is None  # it did nothing else
    bars.press("Escape")
    assert page.evaluate("window.heard") == "Escape"
    links.first.click()
    assert page.evaluate("state.opened.at(-1)") == ["blocks.1.ln2.hook_out", [4, 2]]

    # What it reads is outlined in the tensors that it is in.
    views(MODEL, fetched=False)
    show(page, "blocks.1.attn.hook_z", [4, 2, 7])
    read = tensor(page).get_by_role("group", name="What the chosen cell reads")
    assert read.get_by_role("button").all_inner_texts() == ["attention weights, head 2", "values, head 2"]
    heat = read.locator("canvas").first
    before = ink(heat)
    page.evaluate("fetchAll()")
    assert ink(heat) > before  # its numbers have come
    drawn = heat.evaluate("(canvas) => canvas.toDataURL()")
    show(page, "blocks.1.attn.hook_z", [5, 2, 7])
    assert heat.evaluate("(canvas) => canvas.toDataURL()") != drawn  # another query's row
    read.get_by_role("button").last.click()
    assert page.evaluate("state.opened") == [["blocks.1.attn.hook_v", None]]
    assert not read.is_visible()

    # What heads add is listed, and leads to each.
    show(page, "blocks.1.hook_attn_out", [4, 7])
    shares = hand(page).locator(".shares li")
    assert shares.count() == 4 + 1  # and the bias
    numbers = [float(text.split("\n")[-1].replace("−", "-")) for text in shares.all_inner_texts()]
    assert sum(numbers) == pytest.approx(page.evaluate("state.pass.value('blocks.1.hook_attn_out', [4, 7])"), abs=1e-4)
    hand(page).get_by_role("button", name="head 3").click()
    assert page.evaluate("state.opened.at(-1)") == ["blocks.1.attn.hook_result", [4, 3, 7]]
    assert picker(page, "Head").input_value() == "3"


def test_heads_are_picked_a_part_is_zoomed_into_and_what_is_seen_is_saved_and_found_by_name(page, views):
    views(MODEL)
    show(page, "blocks.0.attn.qkv.weight")
    picker(page, "Part").select_option("v")
    picker(page, "Head").select_option("3")
    assert page.evaluate("[tensor.fixed.part, state.head]") == [2, 3]
    tensor(page).get_by_role("button", name="largest").click()
    place = page.evaluate("state.cell")
    assert place[:2] == [2, 3]
    values = "state.pass.tensor('blocks.0.attn.qkv.weight', 3).data.slice(2 * 16 * 64)"
    largest = page.evaluate(f"Math.max(...{values})")
    assert page.evaluate("state.pass.value(state.name, state.cell)") == largest
    assert picker(page, "Part").input_value() == "2"

    show(page, "blocks.0.mlp.hook_post", [8, 200])
    marks = tensor(page).locator("canvas.marks")
    height = marks.bounding_box()["height"]
    marks.focus()
    marks.press("+")
    window = page.evaluate("tensor.window")
    assert window["top"] <= 8 < window["bottom"] and window["left"] <= 200 < window["right"]
    assert window["right"] - window["left"] == 128
    assert abs(marks.bounding_box()["height"] - height) < 30
    marks.press("0")
    assert page.evaluate("tensor.window") is None

    show(page, "blocks.0.attn.hook_pattern", [2, 5, 3])
    with page.expect_download() as saved:
        tensor(page).get_by_role("button", name="table").click()
    assert saved.value.suggested_filename == "sort-letters-blocks.0.attn.hook_pattern-head2.csv"
    lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "head,query,key,query token,key token,value"
    assert len(lines) == 1 + 10 * 10
    row = lines[1 + 5 * 10 + 3].split(",")
    assert row[:3] == ["2", "5", "3"]
    assert float(row[-1]) == page.evaluate("state.pass.value(state.name, [2, 5, 3])")
    with page.expect_download() as saved:
        tensor(page).get_by_role("button", name="picture").click()
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"

    # With the keyboard alone.
    views(MODEL)
    box = page.get_by_role("combobox", name="Find a tensor")
    box.focus()
    page.keyboard.type("1 queries")
    options = page.get_by_role("listbox", name="Tensors").locator("li")
    assert options.locator("small").all_inner_texts() == ["blocks.1.attn.hook_q", "blocks.1.attn.hook_rot_q"]
    assert box.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert page.evaluate("state.opened") == [["blocks.1.attn.hook_q", None]]
    assert not options.first.is_visible() and box.input_value() == ""
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    active = box.get_attribute("aria-activedescendant")
    assert active == options.last.get_attribute("id")
    page.keyboard.type("zzz")
    assert "No tensor has such a name." in page.locator(".search").inner_text()
    page.keyboard.press("Escape")
    assert box.input_value() == ""


def test_a_choice_is_drawn_within_fifty_milliseconds_and_nothing_is_wider_than_the_page(page, views):
    views(MODEL)
    show(page, "blocks.0.hook_attn_out", [3, 3])
    took = page.evaluate("""() => {
      const times = [];
      for (let at = 0; at < 40; at++) {
        const start = performance.now();
        show({ cell: [at % 10, at] });
        times.push(performance.now() - start);
      }
      return times.sort((one, other) => one - other)[4]; // the machine may have been busy for the others
    }""")
    assert took <= 50

    for width in (1280, 420):
        page.set_viewport_size({"width": width, "height": 900})
        for name in ("blocks.0.attn.hook_pattern", "blocks.0.mlp.hook_post", "blocks.0.hook_attn_out", "embed.weight"):
            place = page.evaluate("(name) => state.pass.describe(name).sizes.map(() => 1)", name)
            show(page, name, place)
            until_drawn(page)  # in the window's new size
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.evaluate(DARK)
