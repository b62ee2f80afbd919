"""Tests batches on the page Masks: the cost of padding, and its effect on a model."""

import json

import numpy as np
import pytest

from pages.ui.computations import activations
from pages.ui.computations.masked_predictions import padding_effect
from pages.ui.models import library
from tests import app_driver as app
from tests import masks_page as page
from tests.app_driver import checked, choose, link_of, markdown_with, named, press, said
from transformer import causal_mask

pytestmark = pytest.mark.usefixtures("folder")

LINES = ["KING:", "To be", "Hath"]


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


def batch_of(at):
    """What the browser gets of the batch."""
    return json.loads(app.component(at, "headsup_batch_table").json)


@pytest.mark.parametrize("where", ["right", "left"])
def test_the_batch_s_masks_are_those_the_model_uses(where):
    at = page.visit(model="padded", batch="\n".join(LINES), pad_side=where, batch_row=2)
    rows = [page.tokens_of("padded", line) for line in LINES]
    fill = [[0] * (5 - len(row)) for row in rows]
    tokens = [f + r if where == "left" else r + f for f, r in zip(fill, rows, strict=True)]
    padding = np.array(batch_of(at)["padding"])
    np.testing.assert_array_equal(padding, np.array(tokens) == 0)
    assert (np.array(batch_of(at)["labels"])[padding] == "∅").all() and batch_of(at)["selected"] == 2
    cells = page.table(at, page.CELLS)
    assert cells["padding"].tolist() == padding.ravel().tolist()
    assert cells[~cells["padding"]].groupby("line")["token"].agg("".join).tolist() == ["KING:", "To␣be", "Hath"]
    used = page.masks_used("padded", tokens)[0]  # (batch, 1, query, key)
    for row in range(3):
        choose(at, "Masks of", row)
        np.testing.assert_array_equal(page.cells(page.masks_of(at)[2]), used[row, 0])
        np.testing.assert_array_equal(page.cells(page.masks_of(at)[1]), causal_mask(5, 5).numpy())
        np.testing.assert_array_equal(page.cells(page.masks_of(at)[0]), [[token != 0 for token in tokens[row]]] * 5)
        shown = page.table(at, page.BATCH_MASKS)
        np.testing.assert_array_equal(shown["both"].to_numpy().reshape(5, 5), used[row, 0])


def test_what_is_wasted_is_counted():
    costs = page.table(page.visit(batch="abc\na\nab"), page.COSTS)
    assert costs["tokens"].tolist() == [3, 1, 2] and costs["padding"].tolist() == [0, 2, 1]
    assert costs["cells of use"].tolist() == [6, 1, 3]
    assert costs["wasted: padding"].tolist() == [0, 8, 5] and costs["wasted: future"].tolist() == [3, 0, 1]
    assert costs["wasted"].tolist() == ["33%", "89%", "67%"]
    costs = page.table(page.visit(model="translator", batch="two\nforty two"), page.COSTS)
    assert costs["cells of use"].tolist() == [1, 4] and costs["wasted: padding"].tolist() == [3, 0]
    assert costs["wasted"].tolist() == ["75%", "0%"] and "wasted: future" not in costs


def test_an_edited_batch_is_drawn_and_linked_and_can_be_taken_back():
    at = page.visit()
    assert named(at.main.button, "Restore the examples").disabled
    page.type_batch(at, "To be\nor")
    assert np.array(batch_of(at)["labels"]).shape == (2, 5) and link_of(at)["batch"] == "To be\nor"
    press(at, "Restore the examples")
    assert page.editor(at).value == page.SUGGESTED and "batch" not in link_of(at)
    page.type_batch(at, page.SUGGESTED)
    assert "batch" not in link_of(at)
    page.type_batch(at, "To be\nRomé")  # a bad line is named, the others are drawn, and nothing typed is lost
    assert "Line 2 has `é` (character 4), which this model has never seen; it is left out." in said(at)
    assert page.editor(at).value == "To be\nRomé" and len(batch_of(at)["labels"]) == 1
    page.type_batch(at, "")
    assert "The batch is empty." in said(at) and not app.components(at, "headsup_batch_table")
    page.type_batch(at, "To be")
    assert not said(at)


def test_prompts_of_one_length_need_no_padding():
    at = page.visit(batch="abc\nabd")
    assert not np.array(batch_of(at)["padding"]).any()
    assert "Add one of another length" in markdown_with(at, "This prompt has no padding.")
    page.type_batch(at, "abc\nab")
    assert "Pick a shorter one" in markdown_with(at, "This prompt has no padding.")
    assert [each for each in at.caption if "2 × 3 = 6 cells, of which 1 is padding." in each.value]
    choose(at, "Masks of", 1)
    assert "keeps padding from it**, in 2 cells here" in markdown_with(at, "Padding on the right never matters")


def test_padding_on_the_right_is_nothing_to_a_causal_model_and_something_to_an_encoder():
    at = page.visit(batch="To be, or\nTo", batch_row=2)
    words = markdown_with(at, "Padding on the right never matters")
    assert "the padding mask hides no cells that the causal mask leaves visible" in words
    assert "keeps padding from it**, in 14 cells here" in words
    assert "change not at all under the causal mask alone, and by up to" in words
    checked(named(at.get("button_group"), "Padding").set_value("left").run())
    words = markdown_with(at, "Padding on the left stands before")
    assert "the padding mask hides 14 cells that the causal mask leaves visible" in words
    assert "change by up to" in words and "not at all under both masks" in words  # rotary: only distances count
    at = page.visit(model="encoder", prompt="To [mask]e", batch="To be\nT", batch_row=1)
    assert [panel["title"] for panel in page.masks_of(at)] == ["Its padding mask"]
    words = markdown_with(at, "only the padding mask keeps padding from its tokens")
    assert "change not at all with the padding mask, and by up to" in words


@pytest.mark.parametrize("where", ["right", "left"])
@pytest.mark.parametrize("model", ["shakespeare", "learned", "average"])
def test_what_padding_does_is_what_the_model_does(model, where):
    prompt, fill = tuple(page.tokens_of(model, "To be")), (0, 0, 0)
    padded = fill + prompt if where == "left" else prompt + fill
    real = slice(3, None) if where == "left" else slice(5)
    for causal in (True, False):
        alone = page.distributions(model, prompt, causal=causal)
        moved = np.abs(page.distributions(model, padded, causal=causal)[real] - alone).max()
        found = padding_effect(model, prompt, 3, where, causal=causal, padding=False)
        assert found == pytest.approx(moved, abs=1e-6)
        assert (found > 1e-4) == (not causal or where == "left")
        if model == "shakespeare":  # whose positions are rotary: only distances count, and its mask undoes padding
            assert padding_effect(model, prompt, 3, where, causal=causal, padding=True) < 1e-5


def test_a_translator_needs_its_padding_mask():
    prompt = tuple(page.tokens_of("translator", "two hundred"))
    masked, free = (
        padding_effect("translator", prompt, 2, "right", causal=False, padding=padding) for padding in (True, False)
    )
    start = (library.model("translator").card.start_token_id,)
    text = start + activations.answer("translator", start, prompt)
    filled = prompt + (library.config("translator").pad_token_id,) * 2
    alone, blind = (
        page.distributions("translator", text[:12], causal=True, source=source, padding=padding)
        for source, padding in ((prompt, True), (filled, False))
    )
    assert masked < 1e-6 < 1e-4 < free == pytest.approx(np.abs(blind - alone).max(), abs=1e-6)
    at = page.visit(model="translator", batch="two hundred and five\ntwo hundred", batch_row=1)
    assert f"change not at all with the padding mask, and by up to {100 * free:.3g} percentage points" in (
        markdown_with(at, "Tried on this model with 2 × `[pad]`")
    )
