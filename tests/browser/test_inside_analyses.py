"""Tests the analyses below the picture of the page Inside: logit lens, attribution, circuits, checks."""

import re

import pytest

from tests.browser.inside_picture import opened, passes, readout, shows
from transformer import ov_circuit, qk_circuit


@pytest.fixture
def show(new_page):
    return shows(new_page)


def test_direct_logit_attribution_sums_to_the_logit(show):
    page = show("next-vowel", "abc", 1)
    page.locator("summary", has_text="Direct logit attribution").click()
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


def test_the_logit_lens_ends_in_the_prediction(show):
    page = show("shakespeare", "ROMEO:")
    page.locator("summary", has_text="Logit lens").click()
    rows = page.locator(".below tbody tr")
    rows.first.wait_for()
    assert rows.count() == 7
    above = page.locator(".names :is(.next, .answer b)").all_inner_texts()
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


def test_the_circuits_of_the_head_that_is_looked_at_open_below(show):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.1.attn", "head": 2})
    page.locator("summary", has_text="Circuits").click()
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


def test_queries_turn_in_the_browser_as_in_the_model(show):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.0.attn", "head": 0})
    page.locator("summary", has_text="Circuits").click()
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


def test_what_is_chosen_in_a_drawer_before_the_browser_tells_that_it_is_open_leaves_it_open(show):
    page = show("shakespeare", "ROMEO:", 0, {"open": "blocks.0.attn", "head": 0})
    page.locator("summary", has_text="Circuits").evaluate("""(button) => {
      button.click();
      const kind = document.querySelector(".circuits select[aria-label=Circuit]");
      kind.value = "qk";
      kind.dispatchEvent(new Event("change"));
    }""")
    circuits(page).locator(".pairs button").first.wait_for()
    assert page.evaluate("window.instrument.chosen.folds") == ["circuits"]


@pytest.mark.parametrize(
    ("name", "attention", "kinds"),
    [
        ("ladder-1-bigram", None, []),
        ("ladder-3-average", "blocks.0.attn", ["ov"]),
        ("next-vowel", "encoder.blocks.0.attn", ["qk"]),
        ("next-vowel", "decoder.blocks.0.cross_attn", ["ov", "qk"]),
    ],
)
def test_a_model_has_the_circuits_it_can_have(show, name, attention, kinds):
    page = show(name, "abc", 1 if name == "next-vowel" else 0, {"open": attention or ""}, width=420)
    button = page.locator("summary", has_text="Circuits")
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
    page.locator("summary", has_text="Circuits").click()
    circuits(page).locator(".pairs button").first.wait_for()
    with page.expect_download() as saved:
        circuits(page).get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename == "next-vowel-ov-decoder.blocks.0.attn-head0.csv"
    lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "read,predicted,value" and len(lines) == 1 + 31 * 31


def test_every_equation_is_checked(show):
    page = show("ladder-4-attention", "ROMEO:")
    page.locator("summary", has_text="Checks").click()
    page.locator(".below tbody tr").first.wait_for()
    assert page.locator(".below tbody tr").count() == page.evaluate("window.instrument.pass.equations.size")
