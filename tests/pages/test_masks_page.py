"""Tests the page Masks: its masks and its predictions without them are the engine's, and every number can be saved."""

import re
from string import ascii_lowercase

import numpy as np
import pandas as pd
import pytest

from pages.ui.computations import activations
from pages.ui.computations.masked_predictions import TextPredictions, padding_effect
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.views.without_mask import verdict_in_words
from tests import app_driver as app
from tests import masks_page as page
from tests.app_driver import choose, figure, go, link_of, markdown_with, named, numbers, said, start, use
from tests.tiny_models import save_tiny, written

pytestmark = pytest.mark.usefixtures("folder")

READINGS = {"with the mask": True, "without it": False}
"""What they are called, and whether attention is causal."""


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


def test_python_draws_what_is_unfolded_and_is_told_of_no_other_prompt_until_then():
    at = start("Masks")
    assert not at.get("plotly_chart") and not at.main.dataframe and not at.main.slider
    assert not app.told_of(at)["drawn"]
    at = app.open_folds(at)
    assert app.told_of(at)["drawn"].keys() >= {"model", "prompt", "changes", "written"}
    assert link_of(at) == {"model": "shakespeare"}
    assert page.editor(at).value == page.SUGGESTED
    drawers = [expander.label for expander in at.main.expander if "table" in expander.label]
    assert drawers == ["These predictions as a table", "This batch as a table", "These masks as a table"]
    assert app.told_of(start("Masks", pad_side="left"))["drawn"], "a link opens what it names"


# Predictions with and without the mask


SOURCE = "two hundred and five"
SHIPPED = "number-words-en-es"
"""Whose answers end."""
TYPED = [
    *((model, "To be, or not") for model in page.KINDS),
    ("shakespeare", ascii_lowercase),
    ("translator", SOURCE),
    (SHIPPED, SOURCE),
]


def text_of(model, typed):
    """What is read and shown of a text, by the decoder of a translator what it writes: tokens, those that came after
    each, and the position of the first."""
    checkpoint, tokens = library.model(model), tuple(page.tokens_of(model, typed))
    if checkpoint.card.start_tokens:
        begin = checkpoint.card.start_tokens
        answer = activations.answer(model, begin, tokens)
        return begin + answer[: -1 if answer[-1] == checkpoint.card.end_token_id else None], answer, 0
    read = library.window(model, tokens)
    return read, tokens[len(tokens) - len(read) + 1 :], len(tokens) - len(read)


@pytest.mark.parametrize(("model", "typed"), TYPED)
def test_the_predictions_are_the_model_s_own_with_and_without_its_mask(model, typed, monkeypatch):
    if model == SHIPPED:
        use(monkeypatch, app.ROOT / "checkpoints")
    config, tokenizer, shown = library.config(model), library.tokenizer(model), page.shown(model=model, prompt=typed)
    at = page.visit(model=model, prompt=typed)
    if not config.n_layers:
        assert "no mask to take away" in " ".join(shown["notes"]) and shown["predictions"] is None
        assert not at.get("plotly_chart")
        return
    tokens, following, offset = text_of(model, typed)
    found, drawn, last, known = page.table(at, page.PREDICTIONS), shown["predictions"], [], len(following)
    candidates = pd.DataFrame(shown["candidates"]["rows"], columns=shown["candidates"]["columns"])
    labels, after = tokenizer.labels(tokens), tokenizer.labels(following)
    assert found["token"].tolist() == labels and found["next token"].tolist() == [*after, "?"][: len(tokens)]
    assert found["position"].tolist() == list(range(offset, offset + len(tokens)))
    for number, (name, causal) in enumerate(READINGS.items()):
        source = page.tokens_of(model, typed) if typed == SOURCE else None
        odds = page.distributions(model, tokens, causal=causal, source=source)
        last.append(odds[-1])
        right, entropy = odds[np.arange(known), following], -(odds * np.log(odds)).sum(-1)
        assert np.allclose(found[f"probability {name}"][:known], right, atol=1e-6)
        assert found[f"probability {name}"][known:].isna().all()
        assert np.allclose(found[f"loss {name} (nats)"][:known], -np.log(right), atol=1e-5)
        assert np.allclose(found[f"entropy {name} (nats)"], entropy, atol=1e-5)
        assert page.loss(at, name) == pytest.approx(-np.log(right).mean(), abs=6e-5)
        for what, values in (("probability", right), ("entropy", entropy)):
            (line,) = [line["y"] for line in figure(at, f"masks_{what}")["data"] if line["name"] == name]
            assert np.allclose(numbers(line), values, atol=1e-5)
        best, rows = np.argsort(-odds)[:, :5], candidates[candidates["mask"] == name]
        assert np.allclose(rows["probability"], np.take_along_axis(odds, best, 1).ravel(), atol=1e-6)
        assert rows["next token"].tolist() == tokenizer.labels(best.ravel().tolist())
        for row, places, likeliest, follows in zip(drawn["rows"], drawn["right"], best, [*following, -1], strict=False):
            assert [label for label, _ in row[number]] == tokenizer.labels(likeliest.tolist())
            assert places[number] == (likeliest.tolist().index(follows) if follows in likeliest else None)
    masked, free = (found[f"probability {name}"][:known] for name in READINGS)
    place = int((free - masked).abs().argmax())
    assert markdown_with(at, "The loss is −ln").endswith(
        f"The largest change is after `{labels[place]}` at position {offset + place}: from {percent(masked[place])} to "
        f"{percent(free[place])} for `{after[place]}`."
    )
    moved = float(np.abs(last[0] - last[1]).max())
    change = re.search(r"a probability here is ([\d.e-]+) percentage points\.$", drawn["words"])
    assert float(change[1]) == pytest.approx(100 * moved, rel=0.01) if moved > 2e-5 else not change
    assert moved > 1e-5 or config.n_layers == 1 or model == SHIPPED
    lost = (masked - free)[: len(tokens) - 1]
    is_seen = lost.max() >= 0.01
    assert drawn["row"] == (lost.argmax() if is_seen else len(lost) // 2)
    assert drawn["sees"][2].startswith(f"3 of {len(tokens)} keys visible.")
    assert ["shown first" in sees for sees in drawn["sees"]] == [at == drawn["row"] for at in range(len(tokens))]
    assert ("(✓) loses most probability" in drawn["sees"][drawn["row"]]) == is_seen
    assert typed != SOURCE or markdown_with(at, "The text is what the model would write")


@pytest.mark.parametrize("where", ["", "blocks.1."])
def test_a_mask_that_is_taken_away_already_is_there_in_what_is_compared_with(where):
    typed, head = "To be, or not", "scale~blocks.0.attn.hook_z~1~~0.0"
    own = page.visit(prompt=typed, changes=head)
    assert "What else is changed in it is changed both times." in markdown_with(own, "nothing else differs.")
    at = page.visit(prompt=typed, changes=f"{head}!without~mask~{where}")
    assert [page.loss(at, name) for name in READINGS] == [page.loss(own, name) for name in READINGS]
    assert "Here the first reading has the whole mask all the same" in said(at)
    one, other = (page.shown(prompt=typed, changes=codes) for codes in (head, f"{head}!without~mask~{where}"))
    assert one["predictions"] == other["predictions"]
    plain, unchanged = page.visit(prompt=typed), page.visit(prompt=typed, changes=f"without~mask~{where}")
    assert page.loss(plain, "with the mask") == page.loss(unchanged, "with the mask") != page.loss(own, "with the mask")
    assert "is changed both times" not in markdown_with(unchanged, "nothing else differs.")


def test_what_was_written_can_be_read_without_the_mask_too_and_one_token_is_enough():
    link = {"prompt": "To be", "written": written(", or")}
    for scope, text in (("all", "To␣be,␣or"), ("prompt", "To␣be")):
        assert "".join(page.table(page.visit(scope=scope, **link), page.PREDICTIONS)["token"]) == text
        assert "".join(page.shown(scope=scope, **link)["panels"][0]["labels"]) == text
    assert "A single token has no future" in said(page.visit(prompt="a", batch="a"))
    shown = page.shown(prompt="a")
    assert page.cells(shown["panels"][0]).shape == (1, 1)
    assert shown["predictions"]["words"] == "The last token is the only one: no probability changes here."


@pytest.mark.parametrize(
    ("masked", "free", "words"),
    [
        ((0.9, 0.9), (0.1, 0.95), "worse than with it**. … less probability at 1 position and more at 1 position."),
        ((0.1, 0.1), (0.9, 0.8), "better than with it**. … less probability nowhere and more at 2 positions."),
        ((0.5, 0.5), (0.5, 0.501), "about as well as with it**. … less probability nowhere and more at 1 position."),
    ],
)
def test_the_verdict_follows_the_numbers(masked, free, words):
    own, other = (TextPredictions(np.array(each), np.empty(0)) for each in (masked, free))
    assert words.replace("…", "The right token got") in verdict_in_words(own, other)


# The three masks


@pytest.mark.parametrize(("model", "typed"), [("shakespeare", "To be"), ("padded", "To be"), ("translator", SOURCE)])
def test_the_three_masks_are_the_engine_s(model, typed):
    shown, tokenizer = page.shown(model=model, prompt=typed, filler=2), library.tokenizer(model)
    read, prompt = text_of(model, typed)[0], tokenizer.labels(page.tokens_of(model, typed))
    size, causal = len(prompt), np.tri(len(read), dtype=bool)
    if model != "translator":
        np.testing.assert_array_equal(causal, page.masks_used(model, list(read))[0])
    expected = [
        ("Causal mask", tokenizer.labels(read), causal),
        ("Padding mask", [*prompt, "∅", "∅"], np.array([[True] * size + [False] * 2] * (size + 2))),
        ("No mask", prompt, np.ones((size, size), dtype=bool)),
    ]
    table = pd.DataFrame(shown["table"]["rows"], columns=shown["table"]["columns"])
    for found, (title, labels, mask) in zip([*shown["panels"], *shown["others"]], expected, strict=True):
        assert (found["title"], found["labels"]) == (title, labels)
        np.testing.assert_array_equal(page.cells(found), mask)
        assert f"Of {mask.size} cells here, {(~mask).sum()} are hidden." in found["words"]
        assert table[table["mask"] == title]["visible"].tolist() == [str(cell) for cell in mask.ravel()]
    assert page.cells(page.shown(model=model, prompt=typed, filler=0)["others"][0]).all()


def test_a_long_prompt_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    typed = "".join(chr(97 + i % 26) for i in range(90))
    assert named(page.visit(prompt=typed).slider, "Tokens shown, from the end").max == 70
    for asked, count in ((None, 32), (70, 70), (99, 70), (8, 8)):
        found = page.shown(prompt=typed, filler=2, **({"masks_shown": asked} if asked else {}))
        (causal,), padded = found["panels"], found["others"][0]
        assert found["about"]["most"] == 70
        np.testing.assert_array_equal(page.cells(causal), np.tri(count, dtype=bool))
        assert (causal["labels"], causal["offset"]) == (list(typed[-count:]), 90 - count)
        assert (padded["labels"], padded["offset"]) == ([*typed[-count:], "∅", "∅"], 90 - count)


def test_sliding_windows_and_tokens_outside_the_context_are_drawn(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", attention_windows=(2, 0), context_length=8)
    use(monkeypatch, tmp_path)
    shown = page.shown(prompt="To be, or not")
    (found,), tokens = shown["panels"], tuple(page.tokens_of("shakespeare", "To be, or not")[6:])
    assert found["mask"] == "".join(map(str, sum(page.masks_used("shakespeare", tokens)).ravel()))
    assert found["levels"] == ["visible in layer 1", "visible in every layer"]
    assert (found["before"], found["labels"], found["offset"]) == (list("To␣be,"), list("␣or␣not"), 6)
    assert "in layer 0 the last 2 tokens are visible" in found["words"] and "before position 6" in found["words"]
    assert shown["predictions"]["sees"][-1] == "7 of 7 keys visible; in layer 0 the last 2."
    assert "in layer 0 the mask leaves it only the last 2 tokens" in shown["predictions"]["words"]
    alone = page.distributions("shakespeare", tokens[:5], causal=True)
    padded = page.distributions("shakespeare", (0, 0, 0, *tokens[:5]), causal=True)[3:]
    moved = padding_effect("shakespeare", tokens[:5], 3, "left", causal=True, padding=False)
    assert moved == pytest.approx(np.abs(padded - alone).max(), abs=1e-6)


def test_an_encoder_s_mask_is_shown_beside_a_causal_one_with_what_it_predicts_under_either():
    typed = "To [mask]e, or [mask]"
    at, found = page.visit(model="encoder", prompt=typed), page.shown(model="encoder", prompt=typed)
    assert "no causal mask" in found["notes"][0] and found["others"][0]["title"] == "Padding mask"
    checkpoint, tokens = library.model("encoder"), page.tokens_of("encoder", typed)
    own = page.masks_used("encoder", tokens)
    panels, shown = found["panels"], found["predictions"]
    for panel, layers in zip(panels, (own, [mask * np.tri(len(tokens), dtype=int) for mask in own]), strict=True):
        assert panel["mask"] == "".join(map(str, sum(layers).ravel()))
        assert panel["levels"] == ["visible in layer 1", "visible in every layer"]
    assert "in layer 0 than 2 tokens" in panels[0]["words"]
    mask = checkpoint.card.mask_token_id
    assert shown["row"] == tokens.index(mask) == 3 and shown["heading"] == "Predicted at"
    assert "4 of them under a causal mask" in shown["sees"][3] and "because it is the first mask" in shown["sees"][3]
    every = page.table(at, page.PREDICTIONS)
    candidates = pd.DataFrame(found["candidates"]["rows"], columns=found["candidates"]["columns"])
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
        assert page.loss(at, name) == pytest.approx(every[f"loss {name} (nats)"].mean(), abs=6e-5)


# What belongs to the visitor


def test_a_link_opens_the_same_view_and_leaves_open_what_it_names():
    link = {"model": "shakespeare", "prompt": "To be", "filler": "5", "layer": "0", "head": "1"}
    link |= {"batch": "To be\nor é\nnot", "batch_row": "1", "pad_side": "left"}
    at = app.open_folds(start("Masks", **link))
    np.testing.assert_array_equal(page.cells(page.masks_of(at)[0]), [[False, False, True, True, True]] * 5)
    for _ in range(2):
        assert link_of(at) == link and page.editor(at).value == "To be\nor é\nnot"
        assert named(at.selectbox, "Masks of").value == 1
        assert named(at.get("button_group"), "Padding").value == "left"
        go(at, "Positions")
        go(at, "Masks")
    for part in ("batch", "pad_side"):
        assert page.editor(start("Masks", **{part: link[part]}))


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"filler": 9}, "the number of padding tokens must be a number from 0 to 8"),
        ({"batch_row": 8}, "the prompt of the batch must be a number from 0 to 7"),
        ({"batch_row": 7}, "The batch has no prompt 8; the last one, 4, is shown."),
        ({"pad_side": "up"}, "it can be right, left"),
        ({"batch": "é"}, "The batch is empty."),
        ({"prompt": "é"}, "never seen"),
    ],
)
def test_a_link_that_asks_for_too_much_is_answered_with_a_sentence(link, sentence):
    assert sentence in said(start("Masks", **link))


def test_what_was_typed_stays_with_another_model_and_its_own_examples_come_back():
    at = page.type_batch(page.visit(), "To be\nor")
    choose(at, "Model", "translator")
    assert page.editor(at).value == "To be\nor"
    assert "Line 1 has `To` (character 1), `be` (character 4), which this model has never seen" in said(at)
    app.press(at, "Restore the examples")
    assert page.editor(at).value == "two\nforty two\ntwo hundred and five"
    assert not said(at)
