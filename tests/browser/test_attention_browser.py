"""Tests the page Attention in a browser: what is looked at, what is drawn of it, and what the address keeps."""

import csv
import io
import re
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch

from tests.browser.address_bar import address, come_to
from tests.browser.attention_page import (
    PROMPT,
    STAGES,
    WHOLE,
    all_equal,
    badges,
    compared,
    derive,
    drag,
    expect,
    fits,
    head,
    instrument,
    labels,
    open_menu,
    panel,
    parameters,
    part,
    place_of,
    queries,
    shown,
    state,
    turn_to,
    type_prompt,
    until,
    until_drawn,
    until_shown,
    visits,
)
from transformer import load_checkpoint
from transformer.inference.context_windows import window_start


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    yield from visits(tiny_server, new_page, wait_ready)


def test_looking_costs_no_run_of_the_page_and_the_address_follows(visit):
    page, traffic = visit()
    before = page.evaluate("history.length")
    traffic.forget()
    marks = panel(page, "weights").locator("canvas.marks")
    page.mouse.move(*place_of(page, "weights", 12, 6))
    page.mouse.move(*place_of(page, "weights", 12, 12))
    expect(part(page, "readout")).to_contain_text("key “t” at position 12")
    traffic.settle(0.4)
    assert traffic.page_runs == 0 and not traffic.questions

    head(page, 0, 1).click()
    assert shown(page)[:2] == (0, 1)
    head(page, 1, 1).click()
    expect(part(page, "where")).to_have_text("Layer 1, head 1")
    derive(page)
    page.mouse.click(*place_of(page, "scaled", 9, 5))
    assert shown(page) == (1, 1, 9, 5)
    marks.focus()
    for key in ("ArrowUp", "Home"):
        page.keyboard.press(key)
    assert shown(page) == (1, 1, 8, 0)
    for _ in range(2):
        part(page, "closer").click()
    expect(part(page, "note")).to_contain_text("Zoomed in: queries 7 to 10, keys 0 to 3.")
    page.get_by_label("Without ÷ √d_head").check()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_contain_text("The model didn't compute this")
    heads, sort = page.get_by_test_id("head-grid-head"), part(page, "sort")
    by_layer = heads.all_inner_texts()
    sort.select_option("spread")
    captions = [float(text.split("\n")[-1]) for text in heads.all_inner_texts()]
    assert captions == sorted(captions, reverse=True) and heads.all_inner_texts() != by_layer
    assert len({round(each.bounding_box()["y"]) for each in heads.all()}) == 1  # else a row for each layer
    expect(page.locator("[data-testid=head-grid-head][tabindex='0']")).to_have_count(1)
    part(page, "direction").select_option("to")
    expect(part(page, "overSentence")).to_contain_text("who looks at “T”: ")
    expected = {"layer": "1", "head": "1", "query": "8", "key": "0", "zoom": "7,11,0,4", "without": "mask,scale"}
    expected |= {"order": "spread", "direction": "to", "derivation": "open"}
    until(page, lambda: expected.items() <= parameters(page).items())
    traffic.settle()
    assert traffic.page_runs == 0 and page.evaluate("history.length") == before
    assert all("/api/tensors?" in url for url in traffic.questions)  # rows, to be compared with; nothing is asked anew
    until(page, lambda: len(badges(page)) == 7)
    part(page, "whole").click()
    for label in ("Without ÷ √d_head", "Without the mask"):
        page.get_by_label(label).uncheck()
    all_equal(page)
    until(page, lambda: not {"zoom", "without"} & parameters(page).keys())

    # What is chosen just before the page is left is there on the next, and when the visitor returns.
    head(page, 0, 1).click()
    marks.focus()
    page.keyboard.press("ArrowUp")
    chosen = shown(page)
    turn_to(page, "Generate")
    told = dict(zip(("layer", "head", "query", "key"), map(str, chosen), strict=True))
    until(page, lambda: told.items() <= parameters(page).items())
    expect(page.get_by_test_id("live-text-picture")).to_contain_text(f"layer {chosen[0]}, head {chosen[1]}")
    turn_to(page, "Attention")
    until_shown(page, chosen)

    # A click elsewhere in the moment of an event.
    page.get_by_test_id("head-grid-head").last.click()
    examples = page.get_by_role("combobox", name="Examples")
    text = examples.locator("option").nth(2).get_attribute("value")
    examples.select_option(text)
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(text)
    until(page, lambda: parameters(page)["prompt"] == text)


def test_back_forward_reload_and_a_link_show_the_same(visit, wait_ready):
    page, traffic = visit(
        "prompt=To be, or not&layer=1&head=0&query=9&key=4&stage=scaled&zoom=6,11,2,8&without=mask"
        "&order=itself&direction=to"
    )
    first = state(page)
    assert first["shown"] == "1.0.9.4" and first["stage"] == "scaled" and first["without"] == ["mask"]
    assert "queries 6 to 10, keys 2 to 7" in first["note"]
    assert first["selects"][:2] == ["to", "itself"]
    expect(page.locator("[data-step=stream]")).to_contain_text("attention would add")
    head(page, 0, 1).click()
    traffic.settle()
    chosen = state(page)
    assert chosen["shown"] == "0.1.9.4"
    turn_to(page, "Masks")
    page.go_back()
    until(page, lambda: page.locator(WHOLE).count() and state(page) == chosen)
    page.go_forward()
    page.get_by_role("heading", level=1, name="Masks").wait_for()
    wait_ready(page)
    page.go_back()
    page.locator(WHOLE).wait_for()
    page.reload()
    page.locator(WHOLE).wait_for()
    until(page, lambda: state(page) == chosen)
    other, _ = visit(urlsplit(address(page)).query, apart=True)
    until(other, lambda: state(other) == chosen)

    wait_ready(page)  # a tab that was opened by a link, which Streamlit tells each run of, whatever the bar holds since
    head(page, 1, 1).click()
    head(other, 1, 0).click()  # two visitors don't mix
    for each, number in ((page, "1"), (other, "0")):
        until(each, lambda each=each, number=number: parameters(each)["head"] == number)
        until(each, lambda each=each, number=number: shown(each)[:2] == (1, int(number)))
    type_prompt(page, "KING: I am")
    until(page, lambda: parameters(page)["prompt"] == "KING: I am")
    assert (parameters(page)["layer"], parameters(page)["head"]) == ("1", "1")
    link = open_menu(page, "Share").get_by_label("Link", exact=True)
    expect(link).to_have_value(re.compile("prompt=KING%3A.*layer=1&head=1"))
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def test_prompts_of_any_length_and_a_server_that_is_away_keep_the_instrument_alive(visit, new_window, browser_errors):
    page = new_window()
    page.clock.install()
    visit("model=far-reader&prompt=To be, or not&query=9&key=3&layer=2", page=page)
    instrument(page).evaluate("(root) => { window.first = root; }")
    long = "To be, or not to be, that is the question: " * 6
    for typed in ("a", long[:256], long):
        type_prompt(page, typed)
        last = len(typed) - window_start(len(typed), 256) - 1
        expect(queries(page)).to_have_count(last + 1)
        page.locator(WHOLE).wait_for()
        until(page, lambda last=last: shown(page)[0] == 2 and shown(page)[2] <= last)
        all_equal(page)
        assert ("64 × 64 cells for 256 × 256 weights" in part(page, "pooled").inner_text()) == (last == 255)
        if typed != long:  # which the page says is too long, and so draws itself anew
            assert instrument(page).evaluate("(root) => root === window.first")

    held = []  # the answer about one text, which comes after that about the next
    page.route("**/api/overview*", lambda route: held.append(route) if not held else route.continue_())
    type_prompt(page, "To be, or not to be, that is the question")
    until(page, lambda: held)
    type_prompt(page, "KING: I am")
    expect(queries(page)).to_have_count(10)
    held[0].continue_()
    page.wait_for_timeout(300)
    expect(queries(page)).to_have_count(10)
    page.unroute("**/api/overview*")

    head(page, 0, 1).click()
    type_prompt(page, "日本")  # which it can't read; what was asked for is under way
    expect(page.get_by_text("Shown below is the last prompt that could be read: “KING: I am”")).to_be_visible()
    expect(instrument(page)).to_have_count(1)
    type_prompt(page, "a")
    expect(page.get_by_role("alert").filter(visible=True)).to_have_count(0)
    expect(part(page, "hand").get_by_label("Key (column)").locator("option")).to_have_text(["0: a"])

    def meanwhile(is_so):
        """Let the pauses between two questions pass until something is so."""
        until(page, lambda: is_so() or page.clock.fast_forward(2_000), seconds=60)

    page.route("**/api/**", lambda route: route.abort())
    type_prompt(page, PROMPT)
    away = page.get_by_role("alert").filter(has_text="The server can't be reached just now")
    meanwhile(away.first.is_visible)
    expect(page.locator("[data-part=root][data-state=failed]")).to_be_visible()
    page.unroute("**/api/**")
    meanwhile(lambda: queries(page).count() == len(PROMPT))
    expect(away.filter(visible=True)).to_have_count(0)
    expect(page.locator("[data-part=root][data-state=shown]")).to_be_visible()
    refusal = {"error": "The server has too much to compute."}
    page.route("**/api/**", lambda route: route.fulfill(status=503, json=refusal))
    type_prompt(page, "KING: I am")
    meanwhile(page.get_by_role("alert").filter(has_text=refusal["error"]).first.is_visible)
    page.unroute("**/api/**")
    meanwhile(lambda: queries(page).count() == 10)
    browser_errors.clear()  # which were provoked


def test_every_cell_is_reached_by_key_and_read_out_no_label_runs_into_the_next_and_every_kind_is_equal(visit):
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
    for key in ("PageUp", "Home"):
        page.keyboard.press(key)
    for row in range(4):
        for column in range(4):
            assert shown(page)[2:] == (row, column)
            words = part(page, "readout").inner_text()
            query, key = f"“{'abcd'[row]}” at position {row}", f"“{'abcd'[column]}” at position {column}"
            assert words.startswith(f"Query {query}, key {key}:") and re.search(r"weight \d", words)
            assert ("hidden by the mask" in words) == (column > row)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
    expect(marks).to_be_focused()

    for key in ("+", "-", "0"):  # nothing to zoom into: four tokens are the least
        page.keyboard.press(key)
        assert part(page, "note").inner_text() == ""
    for name in ("closer", "whole"):
        part(page, name).focus()
        page.keyboard.press("Enter")
        expect(part(page, name)).to_be_focused()
    head(page, 1, 1).focus()
    for key in ("ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert shown(page)[:2] == (1, 0)
    expect(head(page, 1, 0)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    part(page, "sort").select_option("spread")
    expect(part(page, "sort")).to_be_focused()
    tokens = part(page, "texts").get_by_role("option")
    tokens.nth(shown(page)[2]).focus()
    for key in ("Home", "Enter"):
        page.keyboard.press(key)
    assert shown(page)[2:] == (0, 0)
    expect(tokens.first).to_be_focused()

    # What is selected has a label, and none runs into the next.
    typed = "To be, or not to be, that is the question now asked of us."
    type_prompt(page, typed)
    expect(queries(page)).to_have_count(len(typed))
    no_label_runs_into_the_next(page)
    marks.focus()
    page.keyboard.press("ArrowUp")
    row, column = shown(page)[2:]
    said = [label["text"] for label in marks.evaluate("(canvas) => canvas.written")]
    assert said == [typed[row].replace(" ", "␣"), typed[column].replace(" ", "␣")]

    # Of every kind of attention each step is recomputed, and equal.
    kinds = [(f"translator&attention={kind}", kind, 7) for kind in ("cross", "encoder", "decoder")]
    for model, kind, steps in (("average", "self", 2), ("bare", "self", 6), *kinds):
        prompt = "nine hundred and ninety-nine thousand" if kind != "self" else PROMPT
        come_to(page, f"/Attention?model={model}&prompt={prompt}")
        expect(instrument(page)).to_have_attribute("data-kind", kind)
        page.locator(WHOLE).wait_for()
        until(page, lambda steps=steps: all_equal(page) == steps)
        expect(page.get_by_label("Without the mask")).to_be_visible(visible=kind not in ("cross", "encoder"))
        if kind == "cross":
            no_label_runs_into_the_next(page)
            rows, _ = labels(page, "weights")
            assert rows[0]["text"].startswith("[start] → ") and len(rows[0]["text"]) > len("[start] → ")


def no_label_runs_into_the_next(page):
    for width in (1200, 420, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        until_drawn(page)
        for stage in ("weights", *STAGES.values()):
            if not panel(page, stage).locator("canvas.picture").is_visible():
                continue
            rows, columns = labels(page, stage)
            assert all(two["y"] - one["y"] >= 11 for one, two in pairwise(rows))
            for one, two in pairwise(columns):
                least = 11 if one["turned"] else (one["width"] + two["width"]) / 2
                assert two["x"] - one["x"] >= least
            assert all(label["x"] - label["width"] >= 0 for label in rows)
        left_out = len(labels(page, "weights")[0]) < queries(page).count()
        assert ("labelled" in part(page, "note").inner_text()) == left_out
        assert part(page, "measures").evaluate("(list) => list.scrollWidth <= list.clientWidth")
        assert fits(page)


def lines(page):
    return part(page, "texts").locator("svg path").count()


def test_what_is_drawn_over_the_text_without_a_rule_and_zoomed_into_are_the_model_s_numbers_and_are_saved(
    visit, tiny_folder, tmp_path
):
    page, _ = visit(f"prompt={PROMPT}&layer=1&head=1&query=9&key=2")
    checkpoint = load_checkpoint(tiny_folder / "shakespeare")
    with torch.no_grad():
        cache = checkpoint.model.run_with_cache(torch.tensor([checkpoint.tokenizer.encode(PROMPT)]))[1]
    weights = cache["pattern", 1][0, 1].numpy()
    tokens = part(page, "texts").get_by_role("option")
    for direction, asked, first, given in (("to", 2, 2, weights[2:, 2]), ("from", 9, 0, weights[9, :10])):
        part(page, "direction").select_option(direction)
        heaviest = PROMPT[first + int(given.argmax())].replace(" ", "␣")
        expect(part(page, "overSentence")).to_contain_text(f"“{heaviest}”")
        levels = tokens.evaluate_all("(all) => all.map((token) => token.style.getPropertyValue('--weight'))")
        tinted = [float(level) for level in levels if level]
        assert [bool(level) for level in levels] == [first <= at < first + len(given) for at in range(len(PROMPT))]
        assert np.allclose(tinted, given, atol=1e-4) and min(tinted) < max(tinted)
        assert lines(page) == sum(weight >= 0.01 for at, weight in enumerate(given, first) if at != asked)
    tokens.nth(4).hover()  # shows its own, and its row in the picture
    until(page, lambda: lines(page) == sum(weights[4, :4] >= 0.01))
    expect(part(page, "readout")).to_contain_text("at position 4, key")
    assert shown(page)[2:] == (9, 2)
    part(page, "where").hover()
    until(page, lambda: lines(page) == sum(weights[9, :9] >= 0.01))

    # What the switches redraw is said not to be the model's.
    page.mouse.click(*place_of(page, "weights", 5, 9))
    until_shown(page, (1, 1, 5, 9))
    assert "hidden by the mask, weight 0" in part(page, "readout").inner_text()
    page.get_by_label("Without the mask").check()
    expect(part(page, "warning")).to_be_visible()
    assert re.search(r"q · k .*, scaled .*, weight \d", part(page, "readout").inner_text())
    said = compared(page)
    assert panel(page, "masked").inner_text().endswith("Left out: every query sees every key, those after it too.")
    assert all(badge.startswith("recomputed, equal") for badge in said[:2])  # before the mask nothing has changed
    assert set(said[2:-1]) == {"not what the model computed"}
    page.get_by_label("Without ÷ √d_head").check()
    assert ", scaled" not in part(page, "readout").inner_text()

    # The files have the model's own numbers, whatever is left out on screen.
    saved = {}
    for name in ("png", "csv"):
        with page.expect_download() as download:
            part(page, name).click()
        assert download.value.suggested_filename == f"shakespeare-layer1-head1.{name}"
        saved[name] = download.value.path().read_bytes()
    assert saved["png"].startswith(b"\x89PNG\r\n\x1a\n") and len(saved["png"]) > 10_000
    table = list(csv.DictReader(io.StringIO(saved["csv"].decode("utf-8-sig"))))
    points = {"q·k": "raw_scores", "q·k/√d_head": "scaled_scores", "masked score": "attn_scores", "weight": "pattern"}
    for column, point in points.items():
        own = cache[f"blocks.1.attn.hook_{point}"][0, 1].numpy().ravel()
        found = np.array([float(row[column]) for row in table])
        assert np.allclose(found, own, rtol=0, atol=1e-5 * np.abs(own[np.isfinite(own)]).max())
    assert [row["key"] for row in table[: len(PROMPT)]] == list(PROMPT.replace(" ", "␣"))
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
    assert shown(page)[2:] == (3, 0) and "queries 2 to 6, keys 0 to 4" in part(page, "note").inner_text()
    page.keyboard.press("0")
    x, y = place_of(page, "weights", 8, 3)
    page.mouse.move(x - 4, y - 4)
    page.mouse.down()
    page.mouse.move(x + 4, y + 4, steps=3)  # an unsteady hand
    page.mouse.up()
    assert shown(page)[2:] == (8, 3) and part(page, "note").inner_text() == ""

    # On the first screen.
    part(page, "derive").click()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")
    until_drawn(page)
    weights_panel, heads = panel(page, "weights"), page.locator(".grid.table")
    seen = [weights_panel, weights_panel.locator(".legend"), heads]
    for each in (*seen, *(part(page, name) for name in ("texts", "derive", "measures"))):
        box = each.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 720, box
    assert page.get_by_test_id("head-grid-head").first.bounding_box()["width"] >= 44
    page.set_viewport_size({"width": 420, "height": 860})
    until_drawn(page)
    tops = [each.bounding_box()["y"] for each in (weights_panel, part(page, "readout"), part(page, "texts"), heads)]
    assert tops == sorted(tops)
