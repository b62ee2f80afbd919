"""Tests what the page Attention draws: by mouse, touch and keyboard, with the model's numbers."""

import csv
import io
import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.browser.address_bar import come_to
from tests.browser.attention_page import (
    PROMPT,
    STAGES,
    WHOLE,
    all_equal,
    badges_shown,
    compared,
    derive,
    drag,
    expect,
    head,
    instrument,
    labels,
    panel,
    parameters,
    part,
    pick,
    place_of,
    queries,
    shown,
    type_prompt,
    until,
    until_drawn,
    until_shown,
    visits,
)
from transformer import load_checkpoint


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


# Keyboard and touch


def test_every_cell_can_be_reached_with_the_keyboard_and_is_read_out_and_no_label_runs_into_the_next(visit):
    page, _ = visit("prompt=abcd&layer=1&head=1")
    marks = panel(page, "weights").locator("canvas.marks")
    derive(page)
    panel(page, "raw").locator("canvas.marks").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(panel(page, "softmax").locator("canvas.marks")).to_be_focused()
    part(page, "closer").focus()
    page.keyboard.press("Shift+Tab")
    expect(marks).to_be_focused()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    reached = {}
    readout = part(page, "readout")
    for _row in range(4):
        for _column in range(4):
            reached[shown(page)[2:]] = readout.inner_text()
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        expect(marks).to_be_focused()
    assert set(reached) == {(row, column) for row in range(4) for column in range(4)}
    for (row, column), words in reached.items():
        query, key = f"“{'abcd'[row]}” at position {row}", f"“{'abcd'[column]}” at position {column}"
        assert words.startswith(f"Query {query}, key {key}:")
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

    # No label runs into the next, and what is selected has one.
    typed = "To be, or not to be, that is the question now asked of us."
    type_prompt(page, typed)
    expect(queries(page)).to_have_count(len(typed))
    no_label_runs_into_the_next(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    until_drawn(page)
    marks.focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
        row, column = shown(page)[2:]
        assert len(labels(page, "weights")[0]) < len(typed)
        said = [label["text"] for label in marks.evaluate("(canvas) => canvas.written")]
        assert said == [typed[row].replace(" ", "␣"), typed[column].replace(" ", "␣")]
    come_to(page, "/Attention?model=translator&prompt=nine hundred and ninety-nine thousand")
    expect(instrument(page)).to_have_attribute("data-kind", "cross")
    page.locator(WHOLE).wait_for()
    derive(page)
    no_label_runs_into_the_next(page)


def no_label_runs_into_the_next(page):
    for width in (1280, 1200, 420):
        page.set_viewport_size({"width": width, "height": 900})
        until_drawn(page)
        for stage in ("weights", *STAGES.values()):
            if not panel(page, stage).locator("canvas.picture").is_visible():
                continue
            rows, columns = labels(page, stage)
            for one, two in pairwise(rows):
                assert two["y"] - one["y"] >= 11
            for one, two in pairwise(columns):
                least = 11 if one["turned"] else (one["width"] + two["width"]) / 2
                assert two["x"] - one["x"] >= least
            assert all(label["x"] - label["width"] >= 0 for label in rows)
        left_out = len(labels(page, "weights")[0]) < queries(page).count()
        assert ("labelled" in part(page, "note").inner_text()) == left_out
        assert part(page, "measures").evaluate("(list) => list.scrollWidth <= list.clientWidth")
        assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")


def test_a_finger_selects_and_the_steps_are_behind_tabs_on_a_phone(visit, new_window):
    page, traffic = visit(page=new_window(width=420, has_touch=True))
    traffic.forget()
    derive(page)
    visible = page.locator(".panels [data-panel]:visible")
    for stage, drawn in STAGES.items():
        page.locator(f"[data-stage={stage}]").and_(page.get_by_role("button")).tap()
        expect(visible).to_have_attribute("data-panel", drawn)
    page.touchscreen.tap(*place_of(page, "weights", 9, 4))
    until(page, lambda: shown(page)[2:] == (9, 4))
    head(page, 1, 0).tap()
    until_shown(page, (1, 0, 9, 4))
    part(page, "texts").get_by_role("option").nth(5).tap()
    until(page, lambda: shown(page)[2] == 5)
    until(page, lambda: parameters(page).get("query") == "5")
    assert traffic.page_runs == 0
    expect(page.locator(".grid.table")).to_have_css("overflow-y", "visible")  # nothing of it is out of sight
    assert page.get_by_test_id("stMain").evaluate("(main) => main.scrollWidth <= main.clientWidth")


# What is drawn


def test_each_step_is_recomputed_and_equal_for_every_kind_of_attention(visit, wait_ready):
    page, _ = visit()
    formula = panel(page, "weights").locator(".title")
    for title, steps in (("Shakespeare", 7), ("Average", 2), ("Bare", 6)):
        if title != "Shakespeare":
            pick(page, "Model", title)
            expect(page.get_by_role("combobox", name="Model")).to_have_value(title)
            wait_ready(page)
        expect(badges_shown(page)).to_have_count(steps)
        expect(formula).to_have_text("uniform average" if title == "Average" else "softmax(QKᵀ/√d_head + mask)")
        all_equal(page)
        page.get_by_test_id("head-grid-head").last.click()
        all_equal(page)
    pick(page, "Model", "Translator")
    wait_ready(page)
    for kind, mask in (
        ("Cross: the text attends to the source", ""),
        ("Encoder: the source attends to itself", ""),
        ("Decoder: the text attends to itself", " + mask"),
    ):
        if not kind.startswith("Cross"):
            pick(page, "Attention", kind)
            wait_ready(page)
        expect(instrument(page)).to_have_attribute("data-kind", kind.split(":")[0].lower())
        expect(formula).to_have_text(f"softmax(QKᵀ/√d_head{mask})")
        assert panel(page, "weights").locator(".legend .hidden-key").is_visible() == bool(mask)
        all_equal(page)
        expect(page.get_by_label("Without the mask")).to_be_visible(visible=mask)
        assert ("No mask here" in panel(page, "masked").inner_text()) != bool(mask)
        if kind.startswith("Cross"):
            rows, _ = labels(page, "weights")
            assert rows[0]["text"].startswith("[start] → ") and len(rows[0]["text"]) > len("[start] → ")


def test_over_the_text_tokens_are_tinted_and_lines_drawn_by_what_one_of_them_gives_or_gets(
    visit, wait_ready, tiny_folder, tmp_path
):
    page, _ = visit(f"prompt={PROMPT}&layer=1&head=1&query=9&key=2")
    checkpoint = load_checkpoint(tiny_folder / "shakespeare")
    with torch.no_grad():
        cache = checkpoint.model.run_with_cache(torch.tensor([checkpoint.tokenizer.encode(PROMPT)]))[1]
    weights = cache["pattern", 1][0, 1].numpy()
    for direction, given in (("from", weights[9, :10]), ("to", weights[2:, 2])):
        part(page, "direction").select_option(direction)
        first = 0 if direction == "from" else 2
        heaviest = first + int(given.argmax())
        expect(part(page, "overSentence")).to_contain_text(f"“{PROMPT[heaviest].replace(' ', '␣')}”")
        tokens = part(page, "texts").get_by_role("option")
        levels = tokens.evaluate_all("(all) => all.map((token) => token.style.getPropertyValue('--weight'))")
        levels = [float(level) if level else None for level in levels]
        tinted = levels[first : first + len(given)]
        assert levels[:first] + levels[first + len(given) :] == [None] * (len(PROMPT) - len(given))
        assert np.allclose(tinted, given, atol=1e-4) and min(tinted) < max(tinted)
        asked = 9 if direction == "from" else 2
        assert lines(page) == sum(weight >= 0.01 for at, weight in enumerate(given, first) if at != asked)
    part(page, "direction").select_option("from")
    tokens.nth(4).hover()  # shows its own, and its row in the picture
    until(page, lambda: lines(page) == sum(weights[4, :4] >= 0.01))
    expect(part(page, "readout")).to_contain_text("at position 4, key")
    assert shown(page)[2:] == (9, 2)
    part(page, "where").hover()
    until(page, lambda: lines(page) == sum(weights[9, :9] >= 0.01))
    page.mouse.click(*place_of(page, "weights", 5, 9))

    # What the switches redraw is said not to be the model's.
    until_shown(page, (1, 1, 5, 9))
    assert "hidden by the mask, weight 0" in part(page, "readout").inner_text()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_be_visible()
    assert re.search(r"q · k .*, scaled .*, weight \d", part(page, "readout").inner_text())
    assert panel(page, "masked").inner_text().endswith("Left out: every query sees every key, those after it too.")
    assert "not what the model computed" in panel(page, "weights").inner_text()
    said = compared(page)
    assert all(badge.startswith("recomputed, equal") for badge in said[:2])  # before the mask nothing has changed
    assert set(said[2:-1]) == {"not what the model computed"}
    assert "would add" in page.locator("[data-step=stream] .text").inner_text()
    page.get_by_label("Without ÷ √d_head").check()
    assert ", scaled" not in part(page, "readout").inner_text()
    for label in ("Without the mask", "Without ÷ √d_head"):
        page.get_by_label(label).uncheck()

    # What was dragged over is zoomed into.
    drag(page, "weights", (2, 1), (6, 5))
    expect(part(page, "note")).to_contain_text("queries 2 to 6, keys 1 to 5")
    until_drawn(page)
    assert [label["text"] for label in labels(page, "weights")[0]] == list(PROMPT[2:7].replace(" ", "␣"))
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

    # On the first screen.
    part(page, "derive").click()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")
    until_drawn(page)
    scale, measures, heads = (
        panel(page, "weights").locator(".legend"),
        part(page, "measures"),
        page.locator(".grid.table"),
    )
    for each in (panel(page, "weights"), scale, part(page, "texts"), part(page, "derive"), measures, heads):
        box = each.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 720, box
    assert page.get_by_test_id("head-grid-head").first.bounding_box()["width"] >= 44
    page.set_viewport_size({"width": 420, "height": 860})
    until_drawn(page)
    order = (panel(page, "weights"), part(page, "readout"), part(page, "texts"), heads)
    tops = [each.bounding_box()["y"] for each in order]
    assert tops == sorted(tops)
    page.set_viewport_size({"width": 1280, "height": 900})

    # The files have what is on screen.
    derive(page)
    for label in ("Without the mask", "Without ÷ √d_head"):
        page.get_by_label(label).check()
    saved = {}
    for name in ("png", "csv"):
        with page.expect_download() as download:
            part(page, name).click()
        assert download.value.suggested_filename == f"shakespeare-layer1-head1.{name}"
        download.value.save_as(tmp_path / name)
        saved[name] = (tmp_path / name).read_bytes()
    assert saved["png"].startswith(b"\x89PNG\r\n\x1a\n") and len(saved["png"]) > 10_000
    table = list(csv.DictReader(io.StringIO(saved["csv"].decode("utf-8-sig"))))
    for column, point in (
        ("q·k", "raw_scores"),
        ("q·k/√d_head", "scaled_scores"),
        ("masked score", "attn_scores"),
        ("weight", "pattern"),
    ):
        own = cache[f"blocks.1.attn.hook_{point}"][0, 1].numpy().ravel()
        found = np.array([float(row[column]) for row in table])
        assert np.allclose(found, own, rtol=0, atol=1e-5 * np.abs(own[np.isfinite(own)]).max())
    assert [row["key"] for row in table[: len(PROMPT)]] == list(PROMPT.replace(" ", "␣"))
    page.get_by_text("Export these numbers").click()
    wait_ready(page)  # each run of the page makes the button another file
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a page").click()
    download.value.save_as(tmp_path / "view.html")
    page.goto((tmp_path / "view.html").as_uri())
    expect(page.locator(WHOLE)).to_be_visible()
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def lines(page):
    return part(page, "texts").locator("svg path").count()
