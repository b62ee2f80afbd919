"""The page Masks: the masks are the engine's, the numbers the model's own, and nothing typed is lost."""

import base64
import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.ui.figures import masks as mask_figures
from pages.ui.models import activations, library, masking
from pages.ui.models.masking import Predicted
from pages.ui.views.masks import _last_token_in_words, _verdict_in_words
from tests.app_driver import (
    ROOT,
    checked,
    choose,
    drawn,
    figure,
    link_of,
    markdown_with,
    named,
    open_drawers,
    press,
    said,
    use,
)
from tests.tiny_models import EXAMPLES, save_tiny, save_translator
from transformer import causal_mask

pytestmark = pytest.mark.usefixtures("folder")

PAGE = "pages/Masks.py"
BATCH = "KING:\nTo be\nHath"
SHIPPED = ["shakespeare", "martin-fierro", "next-vowel", "number-words-en-es", "ladder-3-average"]
SUGGESTED = "KING:\nROMEO:\nBut, soft\nTo be, or not"
KINDS = {
    "shakespeare": {},
    "padded": {"pad_token_id": 0},
    "learned": {"positions": "learned", "n_layers": 1},
    "sinusoidal": {"positions": "sinusoidal", "norm": "post"},
    "blind": {"positions": "none", "n_layers": 3},
    "average": {"attention": "uniform", "n_heads": 1},
    "bigram": {"n_layers": 0},
}
THREE_MASKS, COSTS, CELLS, BATCH_MASKS, PREDICTIONS, CANDIDATES = range(6)
"""The tables, in the order of the page."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model of each kind, at random weights that are far enough from zero to tell one token from another."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for seed, (name, shape) in enumerate(KINDS.items()):
        save_tiny(folder, name, title=name.capitalize(), seed=seed, **shape)
    save_translator(folder)
    return folder


def visit(alone=False, **link):
    """A visitor who opens the page, perhaps by a link."""
    at = AppTest.from_file(str(ROOT / (PAGE if alone else "app.py")), default_timeout=120)
    if not alone:
        at.switch_page(PAGE)
    for name, value in link.items():
        at.query_params[name] = str(value)
    return checked(at.run())


def turn_to(at, page):
    at.switch_page(page)
    return checked(at.run())


def editor(at):
    return named(at.main.text_area, "Prompts, one a line")


def type_batch(at, text):
    return checked(editor(at).set_value(text).run())


def button(at, label):
    return named(at.main.button, label)


def side(at, value):
    return checked(named(at.get("button_group"), "Padding").set_value(value).run())


def visible(at, name):
    """A drawn mask, True where visible; every cell is drawn in one of the two colours."""
    found = {trace["name"] for trace in figure(at, f"masks_{name}")["data"]}
    shown = [np.isfinite(drawn(at, f"masks_{name}", kind)) for kind in ("visible", "hidden") if kind in found]
    mask = shown[0] if "visible" in found else ~shown[0]
    assert len(shown) == 1 or (shown[0] ^ shown[1]).all()
    return mask


def labels_of(at, name, axis="yaxis"):
    return list(figure(at, f"masks_{name}")["layout"][axis]["labelalias"].values())


def table(at, index):
    return open_drawers(at).dataframe[index].value


def line_of(at, name, line):
    """The y of a line in a figure."""
    (y,) = [trace["y"] for trace in figure(at, f"masks_{name}")["data"] if trace["name"] == line]
    return np.frombuffer(base64.b64decode(y["bdata"]), dtype=y["dtype"])


def metric(at, label):
    (found,) = [metric.value for metric in at.metric if metric.label == label]
    return float(found.removesuffix(" nats"))


def tokens_of(name, text):
    return library.tokenizer(name).encode(text)


def distributions(name, tokens, *, causal, source=None, padding=True):
    """The model's own probabilities, (pos, vocab), from a copy of it whose attention is causal or is not.

    padding: whether it knows its padding token.
    """
    model = copy.deepcopy(library.model(name).model)
    for block in (model.decoder if source else model).blocks:
        block.attn.causal = causal
    if not padding:
        model.encoder.config = replace(model.encoder.config, pad_token_id=None)
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad():
        return model(*inputs)[0].double().softmax(-1).numpy()


# The page itself


@pytest.mark.parametrize("alone", [False, True], ids=["through app.py", "alone"])
@pytest.mark.parametrize("model", [*KINDS, "translator"])
def test_the_page_opens_for_every_kind_of_model(model, alone):
    at = visit(alone, model=model)
    assert at.title[0].value == "Masks"
    assert len(at.get("plotly_chart")) == (7 if model == "bigram" else 11)
    assert len(at.dataframe) == 1
    assert len(open_drawers(at).dataframe) == (4 if model == "bigram" else 6)
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
    np.testing.assert_array_equal(visible(at, "prompt_0"), cache["mask", 0].numpy())
    np.testing.assert_array_equal(visible(at, "prompt_1"), [[True] * 5 + [False] * 2] * 7)
    assert visible(at, "prompt_2").all() and visible(at, "prompt_2").shape == (5, 5)
    assert labels_of(at, "prompt_0") == list("To␣be") and labels_of(at, "prompt_1", "xaxis") == list("To␣be∅∅")
    captions = [caption.value for caption in at.caption]
    for count in ("hides 10 of 25 cells", "hides 14 of 49 cells", "hides 0 of 25 cells"):
        assert sum(count in caption for caption in captions) == 1
    masks = table(at, THREE_MASKS)
    assert masks.groupby("mask")["visible"].agg(["size", "sum"]).to_dict("index") == {
        "Causal mask": {"size": 25, "sum": 15},
        "Padding mask": {"size": 49, "sum": 35},
        "No mask": {"size": 25, "sum": 25},
    }


def test_without_padding_tokens_the_padding_mask_hides_nothing():
    at = visit(prompt="To be", filler=2)
    checked(named(at.slider, "Padding tokens after the prompt").set_value(0).run())
    assert visible(at, "prompt_1").all()
    assert link_of(at)["filler"] == "0"


def test_a_translator_s_masks_are_those_of_its_decoder_and_its_encoder():
    at = visit(model="translator", prompt="two hundred and five")
    written = activations.answer("translator", (library.model("translator").card.start_token_id,),
                            tuple(tokens_of("translator", "two hundred and five")))  # fmt: skip
    rows = labels_of(at, "prompt_0")
    assert rows[0] == "[start]" and len(rows) in (len(written), len(written) + 1)
    np.testing.assert_array_equal(visible(at, "prompt_0"), np.tri(len(rows), dtype=bool))
    assert labels_of(at, "prompt_1") == ["two", "hundred", "and", "five", "∅", "∅", "∅"]
    assert labels_of(at, "prompt_2") == ["two", "hundred", "and", "five"]
    assert visible(at, "prompt_2").all()


def test_a_long_prompt_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    typed = "".join(chr(97 + i % 26) for i in range(90))
    at = visit(prompt=typed, filler=2)
    masks, positions = [slider for slider in at.slider if slider.label == "Tokens shown, from the end"]
    assert masks.value == positions.value == 32 and masks.max == positions.max == 80
    for count in (32, 80, 8):
        slider = next(slider for slider in at.slider if slider.label == "Tokens shown, from the end")
        checked(slider.set_value(count).run())
        np.testing.assert_array_equal(visible(at, "prompt_0"), np.tri(count, dtype=bool))
        assert labels_of(at, "prompt_0") == list(typed[-count:])
        assert labels_of(at, "prompt_1") == [*typed[-count:], "∅", "∅"]
        assert list(figure(at, "masks_prompt_0")["layout"]["xaxis"]["range"]) == [89.5 - count, 89.5]


# The batch


@pytest.mark.parametrize("where", ["right", "left"])
def test_the_batch_s_masks_are_those_the_model_uses(where):
    at = visit(model="padded", batch=BATCH, pad_side=where, batch_row=2)
    rows = [tokens_of("padded", line) for line in BATCH.split("\n")]
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
        cells = table(at, BATCH_MASKS)
        np.testing.assert_array_equal(cells["both"].to_numpy().reshape(5, 5), used[row, 0])
    padding = np.isfinite(drawn(at, "masks_batch", "padding"))
    np.testing.assert_array_equal(padding, np.array(tokens) == 0)
    listed = table(at, CELLS)
    assert listed["padding"].tolist() == padding.ravel().tolist()
    assert listed[~listed["padding"]].groupby("line")["token"].agg("".join).tolist() == ["KING:", "To␣be", "Hath"]


def test_what_is_wasted_is_counted():
    costs = table(visit(batch="abc\na\nab"), COSTS)
    assert costs["tokens"].tolist() == [3, 1, 2] and costs["padding"].tolist() == [0, 2, 1]
    assert costs["cells of use"].tolist() == [6, 1, 3]
    assert costs["wasted: padding"].tolist() == [0, 8, 5] and costs["wasted: future"].tolist() == [3, 0, 1]
    assert costs["wasted"].tolist() == ["33%", "89%", "67%"]
    costs = table(visit(model="translator", batch="two\nforty two"), COSTS)
    assert costs["cells of use"].tolist() == [1, 4] and costs["wasted: padding"].tolist() == [3, 0]
    assert costs["wasted"].tolist() == ["75%", "0%"] and "wasted: future" not in costs


def test_an_edited_batch_is_drawn_and_linked_and_can_be_taken_back():
    at = visit()
    assert button(at, "Take the examples again").disabled
    type_batch(at, "To be\nor")
    assert drawn(at, "masks_batch", "token").shape == (2, 5)
    assert link_of(at)["batch"] == "To be\nor"
    press(at, "Take the examples again")
    assert editor(at).value == SUGGESTED and "batch" not in link_of(at)
    type_batch(at, SUGGESTED)
    assert "batch" not in link_of(at)


@pytest.mark.parametrize(
    ("typed", "sentence", "rows"),
    [
        ("To be\nRomé", "Line 2 has `é` (character 4), which this model has never seen; it is left out.", 1),
        ("To be\n\nor", "Line 2 is empty, and a prompt has at least one token; it is left out.", 2),
        ("\n".join("abcdefghij"), "There are 10 lines, and a batch here has at most 8; the last 2 are left out.", 8),
        ("a" * 17 + "\nb", "Line 1 has 17 tokens, and this model's context holds 16; it is cut there.", 2),
        ("![x](http://a.b)\n*a*", "Line 1 has `[` (character 2), `]` (character 4)", 1),
        ("", "There is no prompt to draw.", 0),
        ("é\nè", "There is no prompt to draw.", 0),
    ],
)
def test_bad_lines_are_named_the_others_drawn_and_nothing_typed_is_lost(typed, sentence, rows):
    at = type_batch(visit(), typed)
    assert sentence in said(at)
    assert editor(at).value == typed and link_of(at).get("batch") == typed
    assert len(at.get("plotly_chart")) == (11 if rows else 7)
    if rows:
        assert len(table(at, COSTS)) == rows
    type_batch(at, "To be")
    assert not said(at)


def test_prompts_of_one_length_need_no_padding():
    at = visit(batch="abc\nabd")
    assert np.isfinite(drawn(at, "masks_batch", "token")).all()
    assert markdown_with(at, "This prompt has no padding.")


def test_a_shorter_batch_takes_the_choice_along():
    at = visit(batch="a\nab\nabc", batch_row=2)
    type_batch(at, "a\nab")
    assert "The batch has no prompt 3; the last one, 2, is shown." in said(at)
    assert named(at.selectbox, "Masks of").value == 1


def test_padding_on_the_right_is_nothing_to_a_causal_model_and_something_to_an_encoder():
    at = visit(batch="To be, or\nTo")
    choose(at, "Masks of", 1)
    words = markdown_with(at, "Padding on the right never matters")
    assert "the padding mask hides 0 cells that the causal mask leaves visible" in words
    assert "its real tokens would see 14 cells of padding" in words
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
        found = masking.padding_effect(model, prompt, 3, where, causal=causal, padding=False)
        assert found == pytest.approx(moved, abs=1e-6)
        assert (found > 1e-4) == (not causal or where == "left")


@pytest.mark.parametrize("causal", [True, False])
def test_the_padding_mask_undoes_padding_where_only_distances_count(causal):
    prompt = tuple(tokens_of("shakespeare", "To be"))
    for where in ("right", "left"):
        assert masking.padding_effect("shakespeare", prompt, 3, where, causal=causal, padding=True) < 1e-5


def test_a_translator_needs_its_padding_mask():
    prompt = tuple(tokens_of("translator", "two hundred"))
    masked, free = (masking.padding_effect("translator", prompt, 2, "right", causal=False, padding=padding)
                    for padding in (True, False))  # fmt: skip
    start = (library.model("translator").card.start_token_id,)
    text = start + activations.answer("translator", start, prompt)
    filled = prompt + (library.config("translator").pad_token_id,) * 2
    alone, blind = (distributions("translator", text[:12], causal=True, source=source, padding=padding)
                    for source, padding in ((prompt, True), (filled, False)))  # fmt: skip
    assert masked < 1e-6 < 1e-4 < free == pytest.approx(np.abs(blind - alone).max(), abs=1e-6)
    at = visit(model="translator", batch="two hundred and five\ntwo hundred", batch_row=1)
    assert f"change not at all with the padding mask, and by up to {100 * free:.3g} percentage points" in (
        markdown_with(at, "Tried on this model with 2 × `[pad]`")
    )


# Without the mask


@pytest.mark.parametrize("model", [name for name in KINDS if name != "bigram"])
def test_the_predictions_are_the_model_s_own_with_and_without_its_mask(model):
    typed = "To be, or not"
    at = visit(model=model, prompt=typed)
    tokens = tokens_of(model, typed)
    found, candidates = table(at, PREDICTIONS), table(at, CANDIDATES)
    assert "".join(found["token"]) == "To␣be,␣or␣not" and "".join(found["next token"]) == "o␣be,␣or␣not?"
    for name, words, causal in (("with the mask", "with the mask", True), ("without it", "without it", False)):
        odds = distributions(model, tokens, causal=causal)
        right = odds[np.arange(len(tokens) - 1), tokens[1:]]
        assert np.allclose(found[f"probability {name}"][:-1], right, atol=1e-6)
        assert np.isnan(found[f"probability {name}"].iloc[-1])
        assert np.allclose(found[f"loss {name} (nats)"][:-1], -np.log(right), atol=1e-5)
        assert np.allclose(found[f"entropy {name} (nats)"], -(odds * np.log(odds)).sum(-1), atol=1e-5)
        assert metric(at, f"Mean loss {words}") == pytest.approx(-np.log(right).mean(), abs=6e-5)
        best = np.argsort(-odds[-1])[:5]
        shown = candidates[candidates["mask"] == name]
        assert np.allclose(shown["probability"], odds[-1][best], atol=1e-6)
        assert shown["token"].tolist() == library.tokenizer(model).labels(best.tolist())
        assert np.allclose(line_of(at, "probability", name), right, atol=1e-6)
        assert np.allclose(line_of(at, "entropy", name), found[f"entropy {name} (nats)"])
    masked, free = (found[f"probability {name}"][:-1] for name in ("with the mask", "without it"))
    place = int((free - masked).abs().argmax())
    labels = library.tokenizer(model).labels(tokens)
    assert markdown_with(at, "The loss is −ln").endswith(
        f"The largest change is after `{labels[place]}` at position {place}: from {masked[place]:.1%} to "
        f"{free[place]:.1%} for `{labels[place + 1]}`."
    )
    one_layer = library.config(model).n_layers == 1
    assert (markdown_with(at, "comes after all others").endswith("no probability changes here.")) == one_layer


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


def test_what_was_written_can_be_read_without_the_mask_too():
    at = visit(prompt="To be", text=", or", scope="all")
    assert "".join(table(at, PREDICTIONS)["token"]) == "To␣be,␣or"
    checked(named(at.get("button_group"), "Text").set_value("prompt").run())
    assert "".join(table(at, PREDICTIONS)["token"]) == "To␣be"


def test_a_text_longer_than_the_context_is_read_from_its_end():
    typed = "abcdefghijklmnopqrstuvwxyz"
    at = visit(prompt=typed)
    found = table(at, PREDICTIONS)
    assert "".join(found["token"]) == typed[-16:] and found["position"].tolist() == list(range(10, 26))
    odds = distributions("shakespeare", tokens_of("shakespeare", typed[-16:]), causal=False)
    assert np.allclose(found["entropy without it (nats)"], -(odds * np.log(odds)).sum(-1), atol=1e-5)
    assert labels_of(at, "prompt_0") == list(typed[-16:])


@pytest.mark.parametrize("model", [*KINDS, "translator"])
def test_one_token_is_enough(model):
    token = "six" if model == "translator" else "a"
    at = visit(model=model, prompt=token, batch=token)
    assert visible(at, "prompt_2").shape == (1, 1)
    if model not in ("bigram", "translator"):
        assert "A single token has no future" in said(at)
        assert markdown_with(at, "The last token is the only one: no probability changes here.")


def prediction(*probabilities):
    return Predicted(np.array(probabilities), np.zeros(len(probabilities)), np.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("masked", "free", "words"),
    [
        ((0.9, 0.9), (0.1, 0.95), "**worse than with it**. … less probability at 1 place and more at 1 place."),
        ((0.1, 0.1), (0.9, 0.8), "**better than with it**. … less probability nowhere and more at 2 places."),
        ((0.5, 0.5), (0.5, 0.501), "**about as well as with it**. … less probability nowhere and more at 1 place."),
    ],
)
def test_the_verdict_follows_the_numbers(masked, free, words):
    assert words.replace("…", "The right token got") in _verdict_in_words(prediction(*masked), prediction(*free))


def test_the_last_token_s_change_is_said_in_numbers():
    same, other = prediction(0.5), Predicted(np.array([0.5]), np.zeros(1), np.array([0.625, 0.375]))
    assert _last_token_in_words(3, 9, same, other).endswith("a probability here is 12.5 percentage points.")
    assert _last_token_in_words(1, 9, same, same).endswith("no other layer: no probability changes here.")


# What belongs to the visitor


@pytest.mark.parametrize("alone", [False, True], ids=["through app.py", "alone"])
def test_a_link_opens_the_same_view(alone):
    link = {"model": "shakespeare", "prompt": "To be", "filler": "5", "batch": "To be\nor é\nnot", "batch_row": "1",
            "pad_side": "left", "layer": "0", "head": "1"}  # fmt: skip
    at = visit(alone, **link)
    assert link_of(at) == link
    assert editor(at).value == "To be\nor é\nnot"
    assert named(at.selectbox, "Masks of").value == 1
    assert named(at.get("button_group"), "Padding").value == "left"
    assert named(at.slider, "Padding tokens after the prompt").value == 5
    np.testing.assert_array_equal(visible(at, "batch_0"), [[False, False, True, True, True]] * 5)
    if not alone:
        turn_to(at, "pages/Positions.py")
        turn_to(at, PAGE)
        assert link_of(at) == link and editor(at).value == "To be\nor é\nnot"


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"filler": 9}, "the number of padding tokens must be a number from 0 to 8"),
        ({"batch_row": 8}, "the prompt of the batch must be a number from 0 to 7"),
        ({"batch_row": 7}, "The batch has no prompt 8; the last one, 4, is shown."),
        ({"pad_side": "up"}, "it can be right, left"),
        ({"batch": "é"}, "There is no prompt to draw."),
    ],
)
def test_a_link_that_asks_for_too_much_is_answered_with_a_sentence(link, sentence):
    assert sentence in said(visit(**link))


def test_what_was_typed_stays_with_another_model_and_its_own_examples_come_back():
    at = type_batch(visit(), "To be\nor")
    checked(named(at.get("button_group"), "Models").set_value("Tasks").run())
    assert editor(at).value == "To be\nor"
    assert "Line 1 has `To` (character 1), `be` (character 4), which this model has never seen" in said(at)
    press(at, "Take the examples again")
    assert editor(at).value == "two\nforty two\ntwo hundred and five"
    assert not said(at)


def test_a_prompt_that_can_t_be_read_ends_the_page_with_a_sentence():
    at = visit(prompt="é")
    assert "never seen" in said(at) and not at.get("plotly_chart")


def test_every_figure_s_numbers_can_be_saved():
    at = visit()
    assert [expander.label for expander in at.main.expander if expander.label != "?"] == [
        "These masks as a table",
        "This batch as a table",
        "These masks as a table",
        "These predictions as a table",
        "These candidates as a table",
    ]
    tables = [frame.value for frame in open_drawers(at).dataframe]
    assert len(tables) == 6
    assert all(isinstance(table, pd.DataFrame) and len(table) for table in tables)


def test_the_page_says_which_tokens_have_no_label(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=64)
    use(monkeypatch, tmp_path)
    note = "token is labelled; pointing at a"
    assert not [caption for caption in visit(prompt="To be").caption if note in caption.value]
    long = [caption.value for caption in visit(prompt="To be, or not to be, that is").caption]
    assert len([words for words in long if f"Every second {note} cell names both of its tokens." in words]) == 3
    assert len([words for words in long if f"Every second {note} line names its token." in words]) == 2


def test_a_batch_without_room_for_its_tokens_says_where_they_are(monkeypatch):
    words = "There is no room to write the tokens in their cells; pointing at a cell names its token."
    assert not [caption for caption in visit().caption if words in caption.value]
    monkeypatch.setattr(mask_figures, "WIDEST", 100)
    assert [caption for caption in visit().caption if words in caption.value]
