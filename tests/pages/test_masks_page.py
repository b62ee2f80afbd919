"""Tests the page Masks: its masks are the engine's, and every number can be saved."""

import numpy as np
import pandas as pd
import pytest
import torch

from pages.ui.models import activations, library
from tests import app_driver as app
from tests import masks_page as page
from tests.app_driver import ROOT, checked, choose, go, link_of, named, open_drawers, open_folds, said, start, use
from tests.masks_page import editor, labels_of, masks_of, metric, panel, tokens_of, type_batch, visible, visit
from tests.tiny_models import EXAMPLES, save_tiny

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


# The page itself


@pytest.mark.parametrize("model", [*page.KINDS, "translator"])
def test_the_page_opens_for_every_kind_of_model_and_every_number_can_be_saved(model):
    at = visit(model=model)
    assert at.title[0].value == "Masks"
    assert len(at.get("plotly_chart")) == (0 if model == "bigram" else 2)
    assert len(at.dataframe) == 1
    if model == "bigram":
        assert "no mask to take away" in said(at)
    drawers = [expander.label for expander in at.main.expander if "table" in expander.label]
    if model == "shakespeare":
        mask, predictions = "These masks as a table", "These predictions as a table"
        assert drawers == ["This mask as a table", predictions, predictions, mask, "This batch as a table", mask]
    tables = [frame.value for frame in open_drawers(at).dataframe]
    assert len(tables) == (5 if model == "bigram" else 7)
    assert all(isinstance(table, pd.DataFrame) and len(table) for table in tables)
    assert not at.warning and not at.error


@pytest.mark.parametrize("model", page.SHIPPED)
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
    assert len(app.components(at, "headsup_masks")) == 1
    at = open_folds(at)
    assert link_of(at) == {"model": "shakespeare", "prompt": EXAMPLES[0], "layer": "0", "head": "0"}
    assert editor(at).value == page.SUGGESTED


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
        assert label in [each.label for kind in ("slider", "text_area") for each in getattr(at.main, kind)]
        go(at, "Positions")
        go(at, "Masks")


# The three masks


@pytest.mark.parametrize("model", ["shakespeare", "padded", "average"])
def test_the_three_masks_are_the_engine_s(model):
    at = visit(model=model, prompt="To be", filler=2)
    checkpoint = library.model(model)
    with torch.no_grad():
        _, cache = checkpoint.model.run_with_cache(torch.tensor([tokens_of(model, "To be")]))
    np.testing.assert_array_equal(visible(at, "causal"), cache["mask", 0].numpy())
    np.testing.assert_array_equal(visible(at, "prompt_0"), [[True] * 5 + [False] * 2] * 7)
    np.testing.assert_array_equal(visible(at, "prompt_1"), np.ones((5, 5), bool))
    assert labels_of(at, "causal") == list("To␣be") and labels_of(at, "prompt_0") == list("To␣be∅∅")
    for name, (cells, hidden) in {"causal": (25, 10), "prompt_0": (49, 14), "prompt_1": (25, 0)}.items():
        assert f"Of {cells} cells here, {hidden} are hidden." in panel(at, name)["words"]
    masks = pd.concat([page.table(at, page.CAUSAL_MASK), page.table(at, page.OTHER_MASKS)])
    assert masks.groupby("mask")["visible"].agg(["size", "sum"]).to_dict("index") == {
        "Causal mask": {"size": 25, "sum": 15},
        "Padding mask": {"size": 49, "sum": 35},
        "No mask": {"size": 25, "sum": 25},
    }
    checked(named(at.slider, "Padding tokens after the prompt").set_value(0).run())
    assert visible(at, "prompt_0").all() and link_of(at)["filler"] == "0"


def test_a_translator_s_masks_are_those_of_its_decoder_and_its_encoder():
    at = visit(model="translator", prompt="two hundred and five")
    source, begin = tokens_of("translator", "two hundred and five"), library.model("translator").card.start_token_id
    written = activations.answer("translator", (begin,), tuple(source))
    rows = labels_of(at, "causal")
    assert rows[0] == "[start]" and len(rows) in (len(written), len(written) + 1)
    np.testing.assert_array_equal(visible(at, "causal"), np.tri(len(rows), dtype=bool))
    assert labels_of(at, "prompt_0") == ["two", "hundred", "and", "five", "∅", "∅", "∅"]
    assert labels_of(at, "prompt_1") == ["two", "hundred", "and", "five"]
    assert visible(at, "prompt_1").all()


def test_a_long_prompt_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)

    def without_labels(at):
        return [caption.value for caption in at.caption if "token is labelled; point at or tap a" in caption.value]

    assert not without_labels(visit(prompt="To be"))
    found = without_labels(visit(prompt="To be, or not to be, that is"))
    assert len([words for words in found if "Every second" in words and "see its token." in words]) == 2
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


def test_sliding_windows_and_tokens_outside_the_context_are_drawn(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", attention_windows=(2, 0), context_length=8)
    use(monkeypatch, tmp_path)
    typed = "To be, or not"
    at = start("Masks", prompt=typed)
    found, tokens = panel(at, "causal"), tokens_of("shakespeare", typed)[6:]
    with torch.no_grad():
        _, cache = library.model("shakespeare").model.run_with_cache(torch.tensor([tokens]))
    layers = [cache["mask", layer].numpy().astype(int) for layer in (0, 1)]
    assert found["mask"] == "".join(map(str, sum(layers).ravel()))
    assert found["levels"] == ["visible in layer 1", "visible in every layer"]
    assert (found["before"], found["labels"], found["offset"]) == (list("To␣be,"), list("␣or␣not"), 6)
    assert "in layer 0 the last 2 tokens are visible" in found["words"] and "before position 6" in found["words"]
    assert masks_of(at, "causal")["predictions"]["sees"][-1] == "7 of 7 keys visible; in layer 0 the last 2."


# An encoder


def test_an_encoder_s_mask_is_shown_beside_a_causal_one_with_what_it_predicts_under_either():
    typed = "To [mask]e, or [mask]"
    at = visit(model="encoder", prompt=typed)
    assert "no causal mask" in app.markdown_with(at, "An encoder reads") and not said(at)
    checkpoint, tokens = library.model("encoder"), tokens_of("encoder", typed)
    with torch.no_grad():
        _, cache = checkpoint.model.run_with_cache(torch.tensor([tokens]))
    own = [cache["mask", layer].numpy().astype(int) for layer in (0, 1)]
    panels, shown = masks_of(at, "causal")["panels"], masks_of(at, "causal")["predictions"]
    for found, layers in zip(panels, (own, [mask * np.tri(len(tokens), dtype=int) for mask in own]), strict=True):
        assert found["mask"] == "".join(map(str, sum(layers).ravel()))
        assert found["levels"] == ["visible in layer 1", "visible in every layer"]
    assert "in layer 0 than 2 tokens" in panels[0]["words"]
    mask = checkpoint.card.mask_token_id
    assert shown["row"] == tokens.index(mask) == 3 and shown["heading"] == "Predicted at"
    assert "4 of them under a causal mask" in shown["sees"][3] and "because it is the first mask" in shown["sees"][3]
    tables = open_drawers(at).dataframe
    every, candidates = tables[2].value, tables[1].value
    for name, is_causal in (("with its own mask", False), ("with a causal mask", True)):
        for place, token in enumerate(tokens):
            text = [*tokens[:place], mask, *tokens[place + 1 :]]
            odds = page.distributions("encoder", text, causal=is_causal)[place]
            right = every[f"probability {name}"][place]
            assert np.isnan(right) if token == mask else right == pytest.approx(odds[token], abs=1e-6)
            rows = candidates[(candidates["mask"] == name) & (candidates["position"] == place)]
            assert np.allclose(rows["probability"], np.sort(odds)[::-1][:5], atol=1e-6)
            best = [label for label, _ in shown["rows"][place][is_causal]]
            assert best == checkpoint.tokenizer.labels(np.argsort(-odds)[:5].tolist())
    losses = [metric(at, f"Mean loss {name}") for name in ("with its own mask", "with a causal mask")]
    assert losses == pytest.approx(
        [every[f"loss {name} (nats)"].mean() for name in ("with its own mask", "with a causal mask")], abs=6e-5
    )


def test_padding_is_kept_from_an_encoder_by_the_padding_mask_alone():
    at = visit(model="encoder", prompt="To [mask]e", batch="To be\nT", batch_row=1)
    assert [panel["title"] for panel in masks_of(at, "prompt")["panels"]] == ["Padding mask"]
    assert [panel["title"] for panel in masks_of(at, "batch")["panels"]] == ["Its padding mask"]
    words = app.markdown_with(at, "only the padding mask keeps padding from its tokens")
    assert "change not at all with the padding mask, and by up to" in words


# What belongs to the visitor


def test_a_link_opens_the_same_view():
    link = {"model": "shakespeare", "prompt": "To be", "filler": "5", "layer": "0", "head": "1"}
    link |= {"batch": "To be\nor é\nnot", "batch_row": "1", "pad_side": "left"}
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


def test_a_prompt_that_can_t_be_read_ends_the_page_with_a_sentence():
    at = visit(prompt="é")
    assert "never seen" in said(at) and not at.get("plotly_chart")


def test_what_was_typed_stays_with_another_model_and_its_own_examples_come_back():
    at = type_batch(visit(), "To be\nor")
    choose(at, "Model", "translator")
    assert editor(at).value == "To be\nor"
    assert "Line 1 has `To` (character 1), `be` (character 4), which this model has never seen" in said(at)
    app.press(at, "Restore the examples")
    assert editor(at).value == "two\nforty two\ntwo hundred and five"
    assert not said(at)
