"""Tests what the page Inside shows below and beside its picture: tensors, arithmetic, search, and analyses."""

import re

import pytest

from tests.browser.attention_page import until
from tests.browser.inside_picture import passes, readout, shows
from tests.helpers import MODERN
from tests.tiny_models import save_tiny
from transformer import ov_circuit, qk_circuit
from transformer.model.equations import OPERATIONS, equations

expect = pytest.importorskip("playwright.sync_api").expect

MODEL, PROMPT = "sort-letters", "hello="
LINE_OF_WORDS = {"distance"}
PICTURED = {"rotate", "activate", "position", "divide", "see", "hide", "gate", "cap"}
BARS = set(OPERATIONS) - PICTURED - LINE_OF_WORDS
OF_MODERN = {"length", "shorten", "gate", "clip", "cap", "distance", "bucket"}
EVERY = {
    MODEL: set(OPERATIONS) - {"position", "average", *OF_MODERN},
    "next-vowel": {"position"},
    "ladder-3-average": {"average"},
    "llama": {"length", "shorten", "gate"},
    "slopes": {"clip", "distance"},
    "relative": {"bucket", "cap"},
    "norms of all heads": {"length", "shorten"},
}
"""Small models that have, between them, every operation."""


@pytest.fixture
def show(new_page):
    return shows(new_page)


def hand(page):
    return page.get_by_role("region", name="By hand")


def tensor(page):
    return page.get_by_role("region", name="Tensor")


def circuits(page):
    return page.get_by_role("region", name="Circuits")


def unfold(page, title):
    page.locator("summary", has_text=title).click()


def open_cell(page, name, cell):
    """Open a cell, and wait for its arithmetic."""
    page.evaluate("([name, cell]) => window.instrument.openCell(name, cell)", [name, cell])
    expect(hand(page).locator(".badge")).to_have_attribute("data-state", "equal")


def chosen(page):
    return page.evaluate("[window.instrument.chosen.open, window.instrument.chosen.cell]")


def value(page):
    """What was recorded in the cell that is open."""
    return page.evaluate("window.instrument.pass.value(window.instrument.chosen.open, window.instrument.chosen.cell)")


def ink(canvas):
    """How many different colours a canvas has: an empty one has one."""
    return canvas.evaluate("""(canvas) => {
      const { width, height } = canvas;
      return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer)).size;
    }""")


def test_every_operation_is_drawn_on_a_phone_and_ends_in_the_number_that_was_recorded(show, tmp_path):
    page = None
    for model, operations in EVERY.items():
        if model in MODERN:
            save_tiny(tmp_path, model, **{"n_heads": 4, **MODERN[model]})
        name = str(tmp_path / model) if model in MODERN else model
        page = show(name, "abc", page=page, width=420)
        config = passes(name, "abc", 0).found.config
        last = {equation.operation: each for each, equation in equations(config).items()}
        for operation in operations:
            sizes = page.evaluate("(name) => window.instrument.pass.describe(name).sizes", last[operation])
            open_cell(page, last[operation], [size // 3 for size in sizes])
            for kind, has_it in (("bars", BARS), ("small", PICTURED)):
                drawn = hand(page).locator(f".{kind} canvas")
                assert drawn.is_visible() == (operation in has_it), (model, operation)
                assert not drawn.is_visible() or ink(drawn) > 2, (model, operation)
            assert ink(tensor(page).locator("canvas.picture").first) > 1, (model, operation)
            assert hand(page).locator("ol li").count() >= 1, (model, operation)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (model, operation)


def test_a_cell_is_chosen_and_leads_to_what_it_is_made_of(show):
    page = show(MODEL, PROMPT)
    page.evaluate("() => { window.held = new Promise((resolve) => { window.release = resolve; }); }")
    page.evaluate("window.instrument.openCell('blocks.0.attn.hook_q', [4, 2, 7])")
    expect(tensor(page)).to_have_attribute("aria-busy", "true")
    assert "being loaded" in hand(page).inner_text()
    assert tensor(page).locator("dl").inner_text().split()[0] == "mean"  # of the whole, from the outline
    page.evaluate("window.release()")
    expect(hand(page).locator(".badge")).to_have_attribute("data-state", "equal")
    expect(tensor(page)).to_have_attribute("aria-busy", "false")

    # By keys, to a weight and back.
    page.evaluate("window.instrument.open('blocks.1.mlp.hook_pre')")
    marks = tensor(page).locator("canvas.marks")
    marks.press("ArrowUp")
    name, (row, column) = chosen(page)
    marks.press("ArrowRight")
    assert chosen(page) == [name, [row, column + 1]]
    assert "neuron 1: " in tensor(page).locator(".readout").inner_text()
    hand(page).get_by_role("button", name="W_up").click()
    assert chosen(page)[0] == "blocks.1.mlp.up.weight" and chosen(page)[1][0] == 1
    tensor(page).get_by_role("button", name=name).click()
    assert chosen(page) == [name, None]

    # Another bar of what it is made of.
    open_cell(page, name, [4, 7])
    term, bars = hand(page).locator(".term"), hand(page).locator(".bars canvas")
    assert term.inner_text().startswith("The strongest term: dimension")
    for key in ("Home", "Enter"):
        bars.press(key)
    assert "dimension 0. x" in term.inner_text()
    expect(hand(page).get_by_role("tooltip")).to_be_visible()
    bars.press("Escape")
    expect(hand(page).get_by_role("tooltip")).to_be_hidden()
    assert chosen(page) == [name, [4, 7]]  # it did nothing else
    hand(page).locator(".links button").first.click()
    assert chosen(page) == ["blocks.1.ln2.hook_out", [4, 0]]

    # What it reads is outlined in the tensors that it is in.
    open_cell(page, "blocks.1.attn.hook_z", [4, 2, 7])
    read = tensor(page).get_by_role("group", name="What the chosen cell reads")
    assert read.get_by_role("button").all_inner_texts() == ["attention weights, head 2", "values, head 2"]
    heat = read.locator("canvas").first
    drawn = heat.evaluate("(canvas) => canvas.toDataURL()")
    assert ink(heat) > 2
    open_cell(page, "blocks.1.attn.hook_z", [5, 2, 7])
    assert heat.evaluate("(canvas) => canvas.toDataURL()") != drawn  # another query's row
    read.get_by_role("button").last.click()
    assert chosen(page) == ["blocks.1.attn.hook_v", None]
    expect(read).to_be_hidden()

    # What heads add is listed, and leads to each.
    open_cell(page, "blocks.1.hook_attn_out", [4, 7])
    shares = hand(page).locator(".shares li").all_inner_texts()
    numbers = [float(text.split("\n")[-1].replace("−", "-")) for text in shares]
    assert len(numbers) == 4 + 1  # and the bias
    assert sum(numbers) == pytest.approx(value(page), abs=1e-4)
    hand(page).get_by_role("button", name="head 3").click()
    assert chosen(page) == ["blocks.1.attn.hook_result", [4, 3, 7]]
    expect(tensor(page).get_by_role("combobox", name="Head", exact=True)).to_have_value("3")
    took = page.evaluate("""() => {
      const times = Array.from({ length: 40 }, (_, at) => {
        const start = performance.now();
        window.instrument.chosen.cell = [at % 6, 3, at];
        window.instrument.showNumbers();
        return performance.now() - start;
      });
      return times.sort((one, other) => one - other)[4]; // the machine may have been busy for the others
    }""")
    assert took <= 50  # milliseconds to draw another choice


def test_heads_are_picked_a_part_is_zoomed_into_and_what_is_seen_is_saved_and_found_by_name(show):
    page = show(MODEL, PROMPT)
    page.evaluate("window.instrument.open('blocks.0.attn.qkv.weight')")
    for name, option in (("Part", "v"), ("Head", "3")):
        tensor(page).get_by_role("combobox", name=name, exact=True).select_option(option)
    tensor(page).get_by_role("button", name="largest").click()
    values = "window.instrument.pass.tensor('blocks.0.attn.qkv.weight', 3).data.slice(2 * 16 * 64)"
    assert chosen(page)[1][:2] == [2, 3] and value(page) == page.evaluate(f"Math.max(...{values})")

    open_cell(page, "blocks.0.mlp.hook_post", [4, 200])
    marks = tensor(page).locator("canvas.marks")
    height = marks.bounding_box()["height"]
    marks.press("+")
    window = page.evaluate("window.instrument.tensor.window")
    assert window["top"] <= 4 < window["bottom"] and window["left"] <= 200 < window["right"]
    assert window["right"] - window["left"] == 128
    assert abs(marks.bounding_box()["height"] - height) < 30
    marks.press("0")
    assert page.evaluate("window.instrument.tensor.window") is None

    open_cell(page, "blocks.0.attn.hook_pattern", [2, 5, 3])
    with page.expect_download() as saved:
        tensor(page).get_by_role("button", name="table").click()
    assert saved.value.suggested_filename == "sort-letters-blocks.0.attn.hook_pattern-head2.csv"
    header, *lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert header == "head,query,key,query token,key token,value" and len(lines) == 6 * 6
    row = lines[5 * 6 + 3].split(",")
    assert row[:3] == ["2", "5", "3"] and float(row[-1]) == value(page)
    with page.expect_download() as saved:
        tensor(page).get_by_role("button", name="picture").click()
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"

    # With the keyboard alone.
    box, options = page.get_by_role("combobox", name="Find a tensor"), page.get_by_role("listbox", name="Tensors")
    box.press_sequentially("1 queries")
    names = options.locator("li small")
    expect(names).to_have_text(["blocks.1.attn.hook_q", "blocks.1.attn.hook_rot_q"])
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    assert chosen(page) == ["blocks.1.attn.hook_q", None]
    expect(options).to_be_hidden()
    for key in ("ArrowDown", "ArrowUp"):
        box.press(key)
    assert box.get_attribute("aria-activedescendant") == options.locator("li").last.get_attribute("id")
    box.press_sequentially("zzz")
    expect(page.locator(".numbers.search")).to_contain_text("No tensor has such a name.")
    box.press("Escape")
    expect(box).to_have_value("")


def test_lens_and_circuits_say_what_the_engine_computes(show):
    page = show("shakespeare", "ROMEO:")
    unfold(page, "Logit lens")
    rows = page.locator(".below tbody tr")
    expect(rows).to_have_count(7)
    above = page.locator(".names :is(.next, .answer b)").all_inner_texts()
    assert rows.first.locator("td b").all_inner_texts() == above, "the lens ends in the prediction"
    page.get_by_role("button", name="Token 2: M").last.click()
    assert readout(page).startswith("Token 2 “M”")
    unfold(page, "Logit lens")

    # The circuit of the head that is looked at; its queries turn in the browser.
    found = passes("shakespeare", "ROMEO:", 0).found
    page.evaluate("window.instrument.choose({ open: 'blocks.1.attn', head: 2 })")
    unfold(page, "Circuits")
    told = circuits(page).locator(".readout")

    def until_said(expected):
        """Wait until the cell of the first pair has a number, and choose it."""

        def is_said():
            circuits(page).locator(".pairs button").first.click()
            number = re.search(r"(?:by|:) (−?[\d.]+)", told.inner_text())
            return number and float(number[1].replace("−", "-")) == pytest.approx(expected, abs=1e-3)

        until(page, is_said)

    full = ov_circuit(found, "blocks.1.attn", 2).full()
    until_said(float(full.max()))
    expect(told).to_contain_text("more than any other token.")
    row, column = divmod(int(full.argmax()), len(full))
    circuits(page).locator("canvas.marks").press("ArrowRight")
    assert page.evaluate("window.instrument.below.circuits.chosen.cell") == [row, column + 1]
    circuits(page).get_by_label("Circuit", exact=True).select_option("qk")
    until_said(float(qk_circuit(found, "blocks.1.attn", 2, 0).full().max()))
    circuits(page).get_by_role("slider").fill("5")
    until_said(float(qk_circuit(found, "blocks.1.attn", 2, 5).full().max()))
    assert "5 tokens before the query" in circuits(page).inner_text()
    asked = page.evaluate("window.wanted.filter(([kind]) => kind === 'circuit')")
    assert asked == [["circuit", kind, "blocks.1.attn", 2] for kind in ("ov", "qk")]  # what is there isn't asked again
    before, link = told.inner_text(), page.evaluate("window.instrument.chosen")
    show("shakespeare", "ROMEO:", 0, link, page=page)
    expect(told).to_have_text(before)


def test_a_model_s_attribution_sums_to_the_logit_and_it_has_the_circuits_it_can_have(show):
    page = show("next-vowel", "abc", 1, width=420)
    unfold(page, "Direct logit attribution")
    total = page.locator(".total[data-state=equal]")
    total.wait_for()
    page.locator(".candidates button").nth(1).click()
    page.locator(".candidates button[aria-pressed=true]", has_text="#").wait_for()
    total.wait_for()
    wide = "(all) => all.map(({ style }) => Number(style.getPropertyValue('--wide')))"
    widths = page.locator(".shares i").evaluate_all(wide)
    assert widths == sorted(widths, reverse=True) and widths[0] == 50
    page.get_by_role("button", name="Decoder layer 0 feed-forward: output", exact=True).click()
    assert chosen(page)[0] == "decoder.blocks.0.hook_mlp_out"

    for name, attention, kinds in (
        ("ladder-1-bigram", "", []),
        ("ladder-3-average", "blocks.0.attn", ["ov"]),
        ("next-vowel", "encoder.blocks.0.attn", ["qk"]),
        ("next-vowel", "decoder.blocks.0.cross_attn", ["ov", "qk"]),
    ):
        show(name, "abc", 1 if name == "next-vowel" else 0, {"open": attention}, page=page)
        assert page.locator("summary", has_text="Circuits").is_visible() == bool(kinds), name
        if kinds:
            unfold(page, "Circuits")
            circuits(page).locator(".pairs button").first.wait_for()
            offered = circuits(page).get_by_label("Circuit", exact=True).locator("option")
            assert offered.evaluate_all("(all) => all.map(({ value }) => value)") == kinds, attention
            expect(circuits(page).get_by_role("slider")).to_be_hidden()  # positions don't rotate here
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    with page.expect_download() as saved:
        circuits(page).get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename == "next-vowel-ov-decoder.blocks.0.cross_attn-head0.csv"
    lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "read,predicted,value" and len(lines) == 1 + 31 * 31
