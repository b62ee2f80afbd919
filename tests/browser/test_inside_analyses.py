"""Tests the analyses below the picture of the page Inside: logit lens, attribution, circuits, checks."""

import re

import pytest

from tests.browser.inside_picture import opened, passes, readout, shows
from transformer import ov_circuit, qk_circuit


@pytest.fixture
def show(new_page):
    return shows(new_page)


def unfold(page, title):
    page.locator("summary", has_text=title).click()


def circuits(page):
    return page.get_by_role("region", name="Circuits")


def until_multiplied(page):
    circuits(page).locator(".pairs button").first.wait_for()


def kind(page):
    return circuits(page).get_by_label("Circuit", exact=True)


def named(page):
    """What the chosen or pointed cell is said to be, and its number."""
    said = circuits(page).locator(".readout").inner_text()
    return said, float(re.search(r"(?:by|:) (−?[\d.]+)", said)[1].replace("−", "-"))


def test_lens_checks_and_circuits_say_what_the_engine_computes(show):
    page = show("shakespeare", "ROMEO:")
    unfold(page, "Logit lens")
    rows = page.locator(".below tbody tr")
    rows.first.wait_for()
    assert rows.count() == 7
    above = page.locator(".names :is(.next, .answer b)").all_inner_texts()
    assert rows.first.locator("td b").all_inner_texts() == above, "the lens ends in the prediction"
    page.get_by_role("button", name="Token 2: M").last.click()
    assert readout(page).startswith("Token 2 “M”")
    unfold(page, "Logit lens")
    unfold(page, "Checks")
    checks = page.locator("details", has=page.locator("summary", has_text="Checks")).locator("tbody tr")
    checks.first.wait_for()
    assert checks.count() == page.evaluate("window.instrument.pass.equations.size")

    # The circuit of the head that is looked at.
    show("shakespeare", "ROMEO:", 0, {"open": "blocks.1.attn", "head": 2}, page=page)
    unfold(page, "Circuits")
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

    # What is chosen in a drawer before the browser tells that it is open leaves it open; queries turn in the browser.
    show("shakespeare", "ROMEO:", 0, {"open": "blocks.0.attn", "head": 0}, page=page)
    page.locator("summary", has_text="Circuits").evaluate("""(button) => {
      button.click();
      const kind = document.querySelector(".circuits select[aria-label=Circuit]");
      kind.value = "qk";
      kind.dispatchEvent(new Event("change"));
    }""")
    until_multiplied(page)
    assert page.evaluate("window.instrument.chosen.folds") == ["circuits"]
    wanted = page.evaluate("window.wanted.length")
    circuits(page).get_by_role("slider").fill("5")
    circuits(page).locator(".pairs button").first.click()
    full = qk_circuit(found, "blocks.0.attn", 0, 5).full()
    assert named(page)[1] == pytest.approx(float(full.max()), abs=1e-3)
    assert "5 tokens before the query" in circuits(page).inner_text()
    assert page.evaluate("window.wanted.length") == wanted, "what is there is asked for again"
    before, chosen = named(page), page.evaluate("window.instrument.chosen")
    show("shakespeare", "ROMEO:", 0, chosen, page=page)  # as a link would
    until_multiplied(page)
    assert named(page) == before and "5 tokens before the query" in circuits(page).inner_text()
    assert page.evaluate("window.instrument.chosen.folds") == ["circuits"]


def test_a_model_s_attribution_sums_to_the_logit_and_it_has_the_circuits_it_can_have(show):
    page = show("next-vowel", "abc", 1, width=420)
    unfold(page, "Direct logit attribution")
    page.locator(".total[data-state=equal]").wait_for()
    page.locator(".candidates button").nth(1).click()
    page.locator(".candidates button[aria-pressed=true]", has_text="#").wait_for()
    page.locator(".total[data-state=equal]").wait_for()
    widths = page.locator(".shares i").evaluate_all(
        "(bars) => bars.map((bar) => Number(bar.style.getPropertyValue('--wide')))"
    )
    assert widths == sorted(widths, reverse=True) and widths[0] == 50
    page.get_by_role("button", name="Decoder layer 0 feed-forward: output", exact=True).click()
    assert opened(page) == "decoder.blocks.0.hook_mlp_out"

    for name, attention, kinds in (
        ("ladder-1-bigram", "", []),
        ("ladder-3-average", "blocks.0.attn", ["ov"]),
        ("next-vowel", "encoder.blocks.0.attn", ["qk"]),
        ("next-vowel", "decoder.blocks.0.cross_attn", ["ov", "qk"]),
    ):
        show(name, "abc", 1 if name == "next-vowel" else 0, {"open": attention}, page=page)
        assert page.locator("summary", has_text="Circuits").is_visible() == bool(kinds), name
        if not kinds:
            continue
        unfold(page, "Circuits")
        until_multiplied(page)
        offered = kind(page).locator("option")
        assert [option.get_attribute("value") for option in offered.all()] == kinds, attention
        assert not circuits(page).get_by_role("slider").is_visible()  # positions don't rotate here
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name

    with page.expect_download() as saved:
        circuits(page).get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename == "next-vowel-ov-decoder.blocks.0.cross_attn-head0.csv"
    lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "read,predicted,value" and len(lines) == 1 + 31 * 31
