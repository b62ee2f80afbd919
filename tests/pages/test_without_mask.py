"""Tests the predictions without the causal mask on the page Masks."""

import numpy as np
import pytest

from pages.ui.models import activations, library
from pages.ui.models.masked_predictions import TextPredictions
from pages.ui.number_format import percent
from pages.ui.views.without_mask import last_token_in_words, verdict_in_words
from tests import masks_page as page
from tests.app_driver import checked, markdown_with, named, said
from tests.helpers import tiny_config
from tests.masks_page import KINDS, PREDICTIONS, distributions, line_of, masks_of, metric, table, tokens_of, visit

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def tiny(kinds):
    return kinds


@pytest.mark.parametrize("model", [name for name in KINDS if name != "bigram"])
def test_the_predictions_are_the_model_s_own_with_and_without_its_mask(model):
    typed = "To be, or not"
    at = visit(model=model, prompt=typed)
    tokens = tokens_of(model, typed)
    found, candidates = table(at, PREDICTIONS), table(at, page.CANDIDATES)
    assert "".join(found["token"]) == "To␣be,␣or␣not" and "".join(found["next token"]) == "o␣be,␣or␣not?"
    for name, words, causal in (("with the mask", "with the mask", True), ("without it", "without it", False)):
        odds = distributions(model, tokens, causal=causal)
        right = odds[np.arange(len(tokens) - 1), tokens[1:]]
        assert np.allclose(found[f"probability {name}"][:-1], right, atol=1e-6)
        assert np.isnan(found[f"probability {name}"].iloc[-1])
        assert np.allclose(found[f"loss {name} (nats)"][:-1], -np.log(right), atol=1e-5)
        assert np.allclose(found[f"entropy {name} (nats)"], -(odds * np.log(odds)).sum(-1), atol=1e-5)
        assert metric(at, f"Mean loss {words}") == pytest.approx(-np.log(right).mean(), abs=6e-5)
        best = np.argsort(-odds)[:, :5]
        shown = candidates[candidates["mask"] == name]
        assert np.allclose(shown["probability"], np.take_along_axis(odds, best, 1).ravel(), atol=1e-6)
        assert shown["next token"].tolist() == library.tokenizer(model).labels(best.ravel().tolist())
        assert np.allclose(line_of(at, "probability", name), right, atol=1e-6)
        assert np.allclose(line_of(at, "entropy", name), found[f"entropy {name} (nats)"])
    masked, free = (found[f"probability {name}"][:-1] for name in ("with the mask", "without it"))
    place = int((free - masked).abs().argmax())
    labels = library.tokenizer(model).labels(tokens)
    assert markdown_with(at, "The loss is −ln").endswith(
        f"The largest change is after `{labels[place]}` at position {place}: from {percent(masked[place])} to "
        f"{percent(free[place])} for `{labels[place + 1]}`."
    )
    one_layer = library.config(model).n_layers == 1
    drawn = masks_of(at, "causal")["predictions"]
    assert drawn["words"].endswith("no probability changes here.") == one_layer
    is_seen = abs(free[place] - masked[place]) >= 0.01
    assert drawn["row"] == (place if is_seen else (len(tokens) - 1) // 2)
    assert drawn["sees"][2].startswith("3 of 13 keys visible.")
    assert ["shown first" in sees for sees in drawn["sees"]] == [at == drawn["row"] for at in range(len(tokens))]
    assert ("(✓) loses most probability" in drawn["sees"][drawn["row"]]) == is_seen
    assert [[list(each) for each in row] for row in drawn["rows"][-1]] == [
        candidates[(candidates["mask"] == name) & (candidates["position"] == len(tokens) - 1)][
            ["next token", "probability"]
        ]
        .to_numpy()
        .tolist()
        for name in ("with the mask", "without it")
    ]


def test_taking_the_mask_away_changes_the_translator_s_decoder_alone():
    source = "two hundred and five"
    at = visit(model="translator", prompt=source)
    card = library.model("translator").card
    read = tuple(tokens_of("translator", source))
    text = (card.start_token_id, *activations.answer("translator", (card.start_token_id,), read))
    tokens = text[:-1] if text[-1] == card.end_token_id else text
    found = table(at, PREDICTIONS)
    assert len(found) == len(tokens)
    for name, causal in (("with the mask", True), ("without it", False)):
        odds = distributions("translator", tokens, causal=causal, source=read)
        right = odds[np.arange(len(text) - 1), text[1:]]
        assert np.allclose(found[f"probability {name}"][: len(right)], right, atol=1e-6)
    assert markdown_with(at, "The text is what the model would write")


@pytest.mark.parametrize("where", ["", "blocks.1."])
def test_a_mask_that_is_taken_away_already_is_there_in_what_is_compared_with(where):
    typed, head = "To be, or not", "scale~blocks.0.attn.hook_z~1~~0.0"
    names = [f"Mean loss {which}" for which in ("with the mask", "without it")]
    own = visit(prompt=typed, changes=head)
    assert "What else is changed in it is changed both times." in markdown_with(own, "nothing else differs.")
    at = visit(prompt=typed, changes=f"{head}!without~mask~{where}")
    assert [metric(at, name) for name in names] == [metric(own, name) for name in names]
    assert "Here the first reading has the whole mask all the same" in said(at)
    unchanged = visit(prompt=typed, changes=f"without~mask~{where}")
    odds = distributions("shakespeare", tokens_of("shakespeare", typed), causal=True)
    right = odds[np.arange(len(typed) - 1), tokens_of("shakespeare", typed)[1:]]
    assert metric(unchanged, names[0]) == pytest.approx(-np.log(right).mean(), abs=6e-5) != metric(unchanged, names[1])
    assert "is changed both times" not in markdown_with(unchanged, "nothing else differs.")


def test_what_was_written_can_be_read_without_the_mask_too():
    at = visit(prompt="To be", text=", or", scope="all")
    assert "".join(table(at, PREDICTIONS)["token"]) == "To␣be,␣or"
    checked(named(at.get("button_group"), "Text").set_value("prompt").run())
    assert "".join(table(at, PREDICTIONS)["token"]) == "To␣be"


def test_a_text_longer_than_the_context_is_read_from_its_window_on():
    typed = "abcdefghijklmnopqrstuvwxyz"
    at = visit(prompt=typed)
    found = table(at, PREDICTIONS)
    assert "".join(found["token"]) == typed[12:] and found["position"].tolist() == list(range(12, 26))
    odds = distributions("shakespeare", tokens_of("shakespeare", typed[12:]), causal=False)
    assert np.allclose(found["entropy without it (nats)"], -(odds * np.log(odds)).sum(-1), atol=1e-5)
    assert page.labels_of(at, "causal") == list(typed[12:])
    told = masks_of(at, "causal")["predictions"]
    for following, lists, places in zip([*typed[13:], None], told["rows"], told["right"], strict=True):
        for likeliest, place in zip(lists, places, strict=True):
            labels = [label for label, _ in likeliest]
            assert place == (labels.index(following) if following in labels else None)


@pytest.mark.parametrize("model", [*KINDS, "translator"])
def test_one_token_is_enough(model):
    token = "six" if model == "translator" else "a"
    at = visit(model=model, prompt=token, batch=token)
    assert page.visible(at, "prompt_1").shape == (1, 1)
    if model not in ("bigram", "translator"):
        assert "A single token has no future" in said(at)
        words = masks_of(at, "causal")["predictions"]["words"]
        assert words == "The last token is the only one: no probability changes here."


def prediction(*probabilities):
    return predicted(probabilities, np.array([0.5, 0.5]))


def predicted(probabilities, last):
    return TextPredictions(
        np.array(probabilities), np.zeros(len(probabilities)), last, np.empty((0, 5)), np.empty((0, 5))
    )


VERDICTS = [
    ((0.9, 0.9), (0.1, 0.95), "**worse than with it**. … less probability at 1 position and more at 1 position."),
    ((0.1, 0.1), (0.9, 0.8), "**better than with it**. … less probability nowhere and more at 2 positions."),
    ((0.5, 0.5), (0.5, 0.501), "**about as well as with it**. … less probability nowhere and more at 1 position."),
]


def test_the_verdict_follows_the_numbers():
    for masked, free, words in VERDICTS:
        assert words.replace("…", "The right token got") in verdict_in_words(prediction(*masked), prediction(*free))


def test_the_last_token_s_change_is_said_in_numbers():
    same, other = prediction(0.5), predicted([0.5], np.array([0.625, 0.375]))
    several, one = tiny_config(n_layers=3), tiny_config(n_layers=1)
    assert last_token_in_words(several, 9, same, other).endswith("a probability here is 12.5 percentage points.")
    assert last_token_in_words(one, 9, same, same).endswith("no other layer: no probability changes here.")
    windowed = tiny_config(attention_windows=(3, 0))
    assert "in layer 0 the mask leaves it only the last 3 tokens" in last_token_in_words(windowed, 9, same, other)
