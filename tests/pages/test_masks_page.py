"""Tests the page Masks: its masks are the engine's, and every number can be saved."""

import numpy as np
import pandas as pd
import pytest
import torch

from pages.ui.models import activations, library
from tests.app_driver import (
    ROOT,
    checked,
    choose,
    go,
    link_of,
    named,
    open_drawers,
    open_folds,
    press,
    said,
    start,
    use,
)
from tests.masks_page import (
    CAUSAL_MASK,
    KINDS,
    OTHER_MASKS,
    SHIPPED,
    SUGGESTED,
    editor,
    labels_of,
    masks_of,
    metric,
    panel,
    table,
    tokens_of,
    type_batch,
    visible,
    visit,
)
from tests.tiny_models import EXAMPLES, save_tiny

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


# The page itself


@pytest.mark.parametrize("model", [*KINDS, "translator"])
def test_the_page_opens_for_every_kind_of_model(model):
    at = visit(model=model)
    assert at.title[0].value == "Masks"
    assert len(at.get("plotly_chart")) == (0 if model == "bigram" else 2)
    assert len(at.dataframe) == 1
    assert len(open_drawers(at).dataframe) == (5 if model == "bigram" else 7)
    assert not at.warning and not at.error
    if model == "bigram":
        assert "no mask to take away" in said(at)


@pytest.mark.parametrize("model", SHIPPED)
def test_the_shipped_models_work(model, monkeypatch):
    use(monkeypatch, ROOT / "checkpoints")
    at = visit(model=model)
    assert not said(at)
    assert 3 <= len(editor(at).value.split("\n")) <= 4
    assert metric(at, "Mean loss with the mask") < metric(at, "Mean loss without it")


def test_at_first_one_picture_is_there_and_the_rest_is_made_when_it_is_opened():
    at = start("Masks")
    assert not at.get("plotly_chart") and not at.main.dataframe and not at.main.slider
    assert [panel["title"] for panel in masks_of(at, "causal")["panels"]] == ["Causal mask"]
    assert len([c for c in at.get("bidi_component") if c.proto.component_name == "headsup_masks"]) == 1


@pytest.mark.parametrize(
    ("link", "label"),
    [
        ({"batch": "To be\nor"}, "Prompts, one per line"),
        ({"pad_side": "left"}, "Prompts, one per line"),
        ({"filler": 5}, "Padding tokens after the prompt"),
    ],
)
def test_what_a_link_names_is_open_when_the_page_opens_and_after_a_look_elsewhere(link, label):
    at = start("Masks", **link)
    for _ in range(2):
        widgets = [each.label for kind in ("slider", "text_area") for each in getattr(at.main, kind)]
        assert label in widgets
        go(at, "Positions")
        go(at, "Masks")


def test_the_first_look_leaves_the_link_short():
    at = visit()
    assert link_of(at) == {"model": "shakespeare", "prompt": EXAMPLES[0], "layer": "0", "head": "0"}
    assert editor(at).value == SUGGESTED


# The three masks


@pytest.mark.parametrize("model", ["shakespeare", "padded", "average"])
def test_the_three_masks_are_the_engine_s(model):
    at = visit(model=model, prompt="To be", filler=2)
    checkpoint = library.model(model)
    with torch.no_grad():
        _, cache = checkpoint.model.run_with_cache(torch.tensor([tokens_of(model, "To be")]))
    np.testing.assert_array_equal(visible(at, "causal"), cache["mask", 0].numpy())
    np.testing.assert_array_equal(visible(at, "prompt_0"), [[True] * 5 + [False] * 2] * 7)
    assert visible(at, "prompt_1").all() and visible(at, "prompt_1").shape == (5, 5)
    assert labels_of(at, "causal") == list("To␣be") and labels_of(at, "prompt_0") == list("To␣be∅∅")
    hidden = {"causal": "hides 10 of 25 cells", "prompt_0": "hides 14 of 49 cells", "prompt_1": "hides 0 of 25 cells"}
    for name, count in hidden.items():
        assert count in panel(at, name)["words"]
    masks = pd.concat([table(at, CAUSAL_MASK), table(at, OTHER_MASKS)])
    assert masks.groupby("mask")["visible"].agg(["size", "sum"]).to_dict("index") == {
        "Causal mask": {"size": 25, "sum": 15},
        "Padding mask": {"size": 49, "sum": 35},
        "No mask": {"size": 25, "sum": 25},
    }


def test_without_padding_tokens_the_padding_mask_hides_nothing():
    at = visit(prompt="To be", filler=2)
    checked(named(at.slider, "Padding tokens after the prompt").set_value(0).run())
    assert visible(at, "prompt_0").all()
    assert link_of(at)["filler"] == "0"


def test_a_translator_s_masks_are_those_of_its_decoder_and_its_encoder():
    at = visit(model="translator", prompt="two hundred and five")
    written = activations.answer(
        "translator",
        (library.model("translator").card.start_token_id,),
        tuple(tokens_of("translator", "two hundred and five")),
    )
    rows = labels_of(at, "causal")
    assert rows[0] == "[start]" and len(rows) in (len(written), len(written) + 1)
    np.testing.assert_array_equal(visible(at, "causal"), np.tri(len(rows), dtype=bool))
    assert labels_of(at, "prompt_0") == ["two", "hundred", "and", "five", "∅", "∅", "∅"]
    assert labels_of(at, "prompt_1") == ["two", "hundred", "and", "five"]
    assert visible(at, "prompt_1").all()


def test_a_long_prompt_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    typed = "".join(chr(97 + i % 26) for i in range(90))
    at = visit(prompt=typed, filler=2)
    masks, positions = [slider for slider in at.slider if slider.label == "Tokens shown, from the end"]
    assert masks.value == positions.value == 32 and masks.max == positions.max == 70
    for count in (32, 70, 8):
        slider = next(slider for slider in at.slider if slider.label == "Tokens shown, from the end")
        checked(slider.set_value(count).run())
        np.testing.assert_array_equal(visible(at, "causal"), np.tri(count, dtype=bool))
        assert labels_of(at, "causal") == list(typed[-count:])
        assert labels_of(at, "prompt_0") == [*typed[-count:], "∅", "∅"]
        assert panel(at, "causal")["offset"] == 90 - count


# What belongs to the visitor


def test_a_link_opens_the_same_view():
    link = {
        "model": "shakespeare",
        "prompt": "To be",
        "filler": "5",
        "batch": "To be\nor é\nnot",
        "batch_row": "1",
        "pad_side": "left",
        "layer": "0",
        "head": "1",
    }
    at = visit(**link)
    assert link_of(at) == link
    assert editor(at).value == "To be\nor é\nnot"
    assert named(at.selectbox, "Masks of").value == 1
    assert named(at.get("button_group"), "Padding").value == "left"
    assert named(at.slider, "Padding tokens after the prompt").value == 5
    np.testing.assert_array_equal(visible(at, "batch_0"), [[False, False, True, True, True]] * 5)
    go(at, "Positions")
    open_folds(go(at, "Masks"))
    assert link_of(at) == link and editor(at).value == "To be\nor é\nnot"


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"filler": 9}, "the number of padding tokens must be a number from 0 to 8"),
        ({"batch_row": 8}, "the prompt of the batch must be a number from 0 to 7"),
        ({"batch_row": 7}, "The batch has no prompt 8; the last one, 4, is shown."),
        ({"pad_side": "up"}, "it can be right, left"),
        ({"batch": "é"}, "The batch is empty."),
    ],
)
def test_a_link_that_asks_for_too_much_is_answered_with_a_sentence(link, sentence):
    assert sentence in said(start("Masks", **link))


def test_what_was_typed_stays_with_another_model_and_its_own_examples_come_back():
    at = type_batch(visit(), "To be\nor")
    choose(at, "Model", "translator")
    assert editor(at).value == "To be\nor"
    assert "Line 1 has `To` (character 1), `be` (character 4), which this model has never seen" in said(at)
    press(at, "Restore the examples")
    assert editor(at).value == "two\nforty two\ntwo hundred and five"
    assert not said(at)


def test_a_prompt_that_can_t_be_read_ends_the_page_with_a_sentence():
    at = visit(prompt="é")
    assert "never seen" in said(at) and not at.get("plotly_chart")


def test_every_figure_s_numbers_can_be_saved():
    at = visit()
    assert [expander.label for expander in at.main.expander if "table" in expander.label] == [
        "This mask as a table",
        "These predictions as a table",
        "These predictions as a table",
        "These masks as a table",
        "This batch as a table",
        "These masks as a table",
    ]
    tables = [frame.value for frame in open_drawers(at).dataframe]
    assert len(tables) == 7
    assert all(isinstance(table, pd.DataFrame) and len(table) for table in tables)


def test_the_page_says_which_tokens_have_no_label(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=64)
    use(monkeypatch, tmp_path)
    note = "token is labelled; pointing at a"
    assert not [caption for caption in visit(prompt="To be").caption if note in caption.value]
    long = [caption.value for caption in visit(prompt="To be, or not to be, that is").caption]
    assert len([words for words in long if f"Every second {note} line names its token." in words]) == 2
