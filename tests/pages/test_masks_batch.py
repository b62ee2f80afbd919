"""Tests batches on the page Masks: the cost of padding, and its effect on a model."""

import itertools

import numpy as np
import pytest
import torch

from pages.ui.models import activations, library, masked_predictions
from tests import app_driver as app
from tests import masks_page as page
from tests.app_driver import choose, link_of, markdown_with, named, press, said, use
from tests.masks_page import batch_of, distributions, masks_of, side, table, tokens_of, type_batch, visible, visit
from tests.tiny_models import save_tiny
from transformer import causal_mask

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


@pytest.mark.parametrize("where", ["right", "left"])
def test_the_batch_s_masks_are_those_the_model_uses(where):
    at = visit(model="padded", batch=page.BATCH, pad_side=where, batch_row=2)
    rows = [tokens_of("padded", line) for line in page.BATCH.split("\n")]
    fill = [[0] * (5 - len(row)) for row in rows]
    tokens = [f + r if where == "left" else r + f for f, r in zip(fill, rows, strict=True)]
    with torch.no_grad():
        _, cache = library.model("padded").model.run_with_cache(torch.tensor(tokens))
    used = cache["mask", 0].numpy()  # (batch, 1, query, key)
    for row in range(3):
        choose(at, "Masks of", row)
        np.testing.assert_array_equal(visible(at, "batch_2"), used[row, 0])
        np.testing.assert_array_equal(visible(at, "batch_1"), causal_mask(5, 5).numpy())
        np.testing.assert_array_equal(visible(at, "batch_0"), [[token != 0 for token in tokens[row]]] * 5)
        cells = table(at, page.BATCH_MASKS)
        np.testing.assert_array_equal(cells["both"].to_numpy().reshape(5, 5), used[row, 0])
    padding = np.array(batch_of(at)["padding"])
    np.testing.assert_array_equal(padding, np.array(tokens) == 0)
    assert (np.array(batch_of(at)["labels"])[padding] == "∅").all() and batch_of(at)["selected"] == 2
    listed = table(at, page.CELLS)
    assert listed["padding"].tolist() == padding.ravel().tolist()
    assert listed[~listed["padding"]].groupby("line")["token"].agg("".join).tolist() == ["KING:", "To␣be", "Hath"]


def test_what_is_wasted_is_counted():
    costs = table(visit(batch="abc\na\nab"), page.COSTS)
    assert costs["tokens"].tolist() == [3, 1, 2] and costs["padding"].tolist() == [0, 2, 1]
    assert costs["cells of use"].tolist() == [6, 1, 3]
    assert costs["wasted: padding"].tolist() == [0, 8, 5] and costs["wasted: future"].tolist() == [3, 0, 1]
    assert costs["wasted"].tolist() == ["33%", "89%", "67%"]
    costs = table(visit(model="translator", batch="two\nforty two"), page.COSTS)
    assert costs["cells of use"].tolist() == [1, 4] and costs["wasted: padding"].tolist() == [3, 0]
    assert costs["wasted"].tolist() == ["75%", "0%"] and "wasted: future" not in costs


LINES = [
    ("To be\nRomé", "Line 2 has `é` (character 4), which this model has never seen; it is left out.", 1),
    ("To be\n\nor", "Line 2 is empty, and a prompt has at least one token; it is left out.", 2),
    ("\n".join("abcdefghij"), "There are 10 lines, and a batch here has at most 8; the last 2 are left out.", 8),
    ("a" * 17 + "\nb", "Line 1 has 17 tokens, and this model's context holds 16; it is cut there.", 2),
    ("![x](http://a.b)\n*a*", "Line 1 has `[` (character 2), `]` (character 4)", 1),
    ("", "The batch is empty.", 0),
    ("é\nè", "The batch is empty.", 0),
]


def test_an_edited_batch_is_drawn_and_linked_and_can_be_taken_back():
    at = visit()
    assert page.button(at, "Restore the examples").disabled
    type_batch(at, "To be\nor")
    assert np.array(batch_of(at)["labels"]).shape == (2, 5) and link_of(at)["batch"] == "To be\nor"
    press(at, "Restore the examples")
    assert page.editor(at).value == page.SUGGESTED and "batch" not in link_of(at)
    type_batch(at, page.SUGGESTED)
    assert "batch" not in link_of(at)
    for typed, sentence, rows in LINES:  # those that are bad are named, the others drawn, and nothing typed is lost
        type_batch(at, typed)
        assert sentence in said(at)
        assert page.editor(at).value == typed == link_of(at).get("batch")
        tables = app.components(at, "headsup_batch_table")
        assert len(tables) == bool(rows)
        assert not rows or len(table(at, page.COSTS)) == rows
        type_batch(at, "To be")
        assert not said(at)


def test_prompts_of_one_length_need_no_padding():
    at = visit(batch="abc\nabd")
    assert not np.array(batch_of(at)["padding"]).any()
    assert "Add one of another length" in markdown_with(at, "This prompt has no padding.")
    type_batch(at, "abc\nab")
    assert "Pick a shorter one" in markdown_with(at, "This prompt has no padding.")
    assert [each for each in at.caption if "2 × 3 = 6 cells, of which 1 is padding." in each.value]
    choose(at, "Masks of", 1)
    assert "keeps padding from it**, in 2 cells here" in markdown_with(at, "Padding on the right never matters")
    type_batch(at, "ab")
    assert "Add one of another length" in markdown_with(at, "This prompt has no padding.")


def test_padding_on_the_right_is_nothing_to_a_causal_model_and_something_to_an_encoder():
    at = visit(batch="a\nTo be, or\nTo", batch_row=2)
    type_batch(at, "To be, or\nTo")
    assert "The batch has no prompt 3; the last one, 2, is shown." in said(at)
    assert named(at.selectbox, "Masks of").value == 1
    words = markdown_with(at, "Padding on the right never matters")
    assert "the padding mask hides no cells that the causal mask leaves visible" in words
    assert "keeps padding from it**, in 14 cells here" in words
    assert "change not at all under the causal mask alone, and by up to" in words
    side(at, "left")
    words = markdown_with(at, "Padding on the left stands before")
    assert "the padding mask hides 14 cells that the causal mask leaves visible" in words
    assert "change by up to" in words and "not at all under both masks" in words  # rotary: only distances count


@pytest.mark.parametrize("where", ["right", "left"])
@pytest.mark.parametrize("model", ["shakespeare", "learned", "average"])
def test_what_padding_does_is_what_the_model_does(model, where):
    prompt, fill = tuple(tokens_of(model, "To be")), (0, 0, 0)
    padded = fill + prompt if where == "left" else prompt + fill
    real = slice(3, None) if where == "left" else slice(5)
    for causal in (True, False):
        alone = distributions(model, prompt, causal=causal)
        moved = np.abs(distributions(model, padded, causal=causal)[real] - alone).max()
        found = masked_predictions.padding_effect(model, prompt, 3, where, causal=causal, padding=False)
        assert found == pytest.approx(moved, abs=1e-6)
        assert (found > 1e-4) == (not causal or where == "left")


def test_the_padding_mask_undoes_padding_where_only_distances_count():
    prompt = tuple(tokens_of("shakespeare", "To be"))
    for where, causal in itertools.product(("right", "left"), (True, False)):
        assert masked_predictions.padding_effect("shakespeare", prompt, 3, where, causal=causal, padding=True) < 1e-5


def test_a_translator_needs_its_padding_mask():
    prompt = tuple(tokens_of("translator", "two hundred"))
    masked, free = (
        masked_predictions.padding_effect("translator", prompt, 2, "right", causal=False, padding=padding)
        for padding in (True, False)
    )
    start = (library.model("translator").card.start_token_id,)
    text = start + activations.answer("translator", start, prompt)
    filled = prompt + (library.config("translator").pad_token_id,) * 2
    alone, blind = (
        distributions("translator", text[:12], causal=True, source=source, padding=padding)
        for source, padding in ((prompt, True), (filled, False))
    )
    assert masked < 1e-6 < 1e-4 < free == pytest.approx(np.abs(blind - alone).max(), abs=1e-6)
    at = visit(model="translator", batch="two hundred and five\ntwo hundred", batch_row=1)
    assert f"change not at all with the padding mask, and by up to {100 * free:.3g} percentage points" in (
        markdown_with(at, "Tried on this model with 2 × `[pad]`")
    )


def test_layers_that_hide_the_distant_past_hide_it_here_too(tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare", positions="rotary", attention_windows=(2, 0))
    use(monkeypatch, tmp_path)
    prompt = tuple(checkpoint.tokenizer.encode("To be, or"))
    with torch.no_grad():
        alone, filled = (
            checkpoint.model(torch.tensor([ids]))[0, -len(prompt) :].softmax(-1) for ids in (prompt, (0, 0, 0, *prompt))
        )
    sees = masks_of(visit(), "causal")["predictions"]["sees"]
    assert sees[1] == "2 of 16 keys visible." and sees[5] == "6 of 16 keys visible; in layer 0 the last 2."
    found = masked_predictions.padding_effect("shakespeare", prompt, 3, "left", causal=True, padding=False)
    assert found == pytest.approx(float((filled - alone).abs().max()), abs=1e-6)
