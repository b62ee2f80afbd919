"""Tests the view Activation patching: each effect is the patched model's own."""

import json

import numpy as np
import pytest

from pages.ui.models import activation_patching, library
from tests import app_driver as app
from tests.app_driver import checked, choose, go, ids, link_of, markdown_with, named, press, prompt, said, start, use
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Patch, list_checkpoints

pytestmark = pytest.mark.usefixtures("folder")

OWN, OTHER = "To be, or not", "To be, ox not"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_tiny(folder, "bigram", title="Bigram", group="Texts", n_layers=0)
    save_tiny(folder, "unconnected", group="Texts", residual=False, norm="none")
    save_translator(folder)
    save_encoder(folder)
    return folder


def logits(name, tokens, *changes):
    return app.logits(name, tokens, *changes)[-1].double().numpy()


def ask(own=OWN, other=OTHER, **link):
    link |= {} if other is None else {"other_prompt": other}
    return start("What if", question="traced", prompt=own, **link)


def pictures(at):
    return app.components(at, "headsup_effect_heatmaps")


def matrices(at, picture=0):
    return json.loads(pictures(at)[picture].json)["matrices"]


def click(at, matrix, row, column, picture=0):
    where = {"matrix": matrix, "row": row, "column": column}
    return app.tell_page(at, "headsup_effect_heatmaps", "chosen", where, which=picture)


def test_a_map_begins_before_the_place_where_the_prompts_differ():
    stream, _, _ = matrices(ask())
    assert stream["rows"] == ["layer 0", "layer 1"] and stream["columnLabels"][-1] == "t"
    assert stream["columnLabels"].count("r|x") == 1
    place = stream["columnLabels"].index("r|x")
    after = len(stream["columns"]) - place - 1
    assert np.allclose(stream["values"][0], [0] * place + [1] + [0] * after, atol=1e-4)


def test_a_click_puts_a_place_in_on_every_page_and_another_takes_it_out():
    at = ask()
    shares, labels = matrices(at)[0]["values"], matrices(at)[0]["columnLabels"]
    column, place = labels.index("r|x"), OTHER.index("x")
    click(at, 0, 1, column)
    change = Patch("blocks.1.hook_resid_pre", position=place, tokens=ids(OTHER))
    assert [each.intervention for each in at.session_state["visitor"].changes] == [change]
    assert matrices(at)[0]["marked"] == [[1, column]] and matrices(at)[0]["values"] == shares
    assert any("left out of this map" in caption.value for caption in at.caption)
    other = start("What if", **{**link_of(at), "question": "before"})
    assert str(change) in markdown_with(other, "Changed").replace("\\", "")
    click(at, 0, 1, column)
    assert "changes" not in link_of(at) and matrices(at)[0]["marked"] == []


def test_the_shares_can_be_saved():
    table = app.open_drawers(ask()).dataframe[0].value
    assert len(table) == 3 * 2 * len(OWN) and set(table["token"]) >= {"T", "r"}
    assert "x" in table["other token"].tolist()
    assert table[table["hook point"] == "blocks.0.hook_resid_pre"]["share"].max() == pytest.approx(1, abs=1e-3)


def test_the_other_prompt_is_suggested_follows_the_prompt_and_is_kept_when_typed():
    at = ask(other=None)
    suggested = named(at.main.text_area, "Another prompt").value
    assert len(suggested) == len(OWN) and suggested != OWN and pictures(at)
    assert "other_prompt" not in link_of(at)
    app.type_prompt(at, "KING:\nTo")
    assert named(at.main.text_area, "Another prompt").value != suggested and pictures(at)
    checked(named(at.main.text_area, "Another prompt").set_value("KING:\nTx").run())
    assert link_of(at)["other_prompt"] == "KING:\nTx"
    press(at, "Swap the prompts")
    assert prompt(at) == "KING:\nTx" and link_of(at)["other_prompt"] == "KING:\nTo"
    go(at, "Attention")
    go(at, "What if")
    assert named(at.main.text_area, "Another prompt").value == "KING:\nTo"
    press(at, "Suggest another prompt")
    assert "other_prompt" not in link_of(at)


UNTRACEABLE = [
    (
        OWN,
        "To be",
        "Your prompt has 13 tokens, the other one 5. Patching needs equal lengths. Add 8 to the other prompt",
    ),
    ("To", "To be", "Take 3 away from the other prompt"),
    (OWN, OWN, "Both prompts are the same."),
    (OWN, "é" + OWN[1:], "The other prompt: This model has never seen “é”"),
    (OWN, " ", "Add 12 to the other prompt"),
    ("To be, or not to be", OTHER, "this model's context holds 16. Shorten them until they fit."),
]


def test_prompts_that_can_t_be_traced_get_a_sentence_that_says_what_to_do():
    for own, other, sentence in UNTRACEABLE:
        at = ask(own, other)
        assert sentence in said(at).replace("`", "") and not pictures(at)
    at = ask()
    checked(named(at.main.text_area, "Another prompt").set_value("").run())
    assert "The other prompt is empty." in said(at) and not pictures(at)


def test_the_two_tokens_can_be_chosen_and_are_in_the_link():
    at = ask()
    one, two = ids("K")[0], ids("z")[0]
    choose(at, "Answer to your prompt", one)
    choose(at, "Answer to the other", two)
    assert link_of(at).items() >= {"own_token": str(one), "other_token": str(two)}.items()
    own, other = (logits("shakespeare", ids(text)) for text in (OWN, OTHER))
    (words,) = [caption.value for caption in at.caption if "Logit difference" in caption.value]
    assert f"{own[two] - own[one]:+.2f} after your prompt, {other[two] - other[one]:+.2f} after the other" in words
    choose(at, "Answer to the other", one)
    assert "no difference to trace" in said(at)
    at = ask(own_token=10**6)
    assert "This model has no token 1000000" in said(at) and pictures(at)


def test_a_translator_is_traced_in_its_encoder_and_its_decoder():
    at = ask("two hundred and five", "two hundred and six", model="translator")
    encoder, decoder = matrices(at, 0), matrices(at, 1)
    assert [np.shape(each["values"]) for each in encoder] == [(2, 4)] * 3
    assert np.shape(decoder[0]["values"])[0] == 1 and len(decoder) == 4
    assert np.allclose(encoder[0]["values"][0], [0, 0, 0, 1], atol=1e-4)
    assert abs(encoder[0]["values"][1][0]) > 1e-4, "the first word has seen the last one that differs"
    click(at, 0, 1, 3)
    start_token = library.model("translator").card.start_token_id
    (change,) = at.session_state["visitor"].changes
    assert change.intervention.source == ids("two hundred and six", "translator")
    assert change.intervention.tokens[0] == start_token and change.intervention.position == 3
    at = ask("two hundred and five", "five hundred two", model="translator")
    assert "written like this: five hundred and two." in said(at) and not pictures(at)


def test_an_encoder_is_traced_at_the_mask_that_both_prompts_have_at_one_position():
    texts = "To [mask]e, or", "To [mask]e, ox"
    at = ask(*texts, model="encoder")
    own, other = (app.logits("encoder", ids(text, "encoder"))[3].double().numpy() for text in texts)
    one, two = activation_patching.prompt_pair("encoder", *(ids(text, "encoder") for text in texts)).answers
    stream = matrices(at)[0]
    assert np.shape(stream["values"]) == (2, 9) and stream["columnLabels"][-1] == "r|x", "all of it, from its start"
    assert np.allclose(stream["values"][0], [0] * 8 + [1], atol=1e-4)
    assert abs(stream["values"][1][3]) > 1e-3, "and the mask has read it by then"
    patch = Patch("blocks.1.hook_resid_pre", position=3, tokens=ids(texts[1], "encoder"))
    found = app.logits("encoder", ids(texts[0], "encoder"), patch)[3].double().numpy()
    share = (found[two] - found[one] - own[two] + own[one]) / (other[two] - other[one] - own[two] + own[one])
    assert stream["values"][1][3] == pytest.approx(share, abs=2e-3)
    (words,) = [caption.value for caption in at.caption if "Logit difference" in caption.value]
    assert f"{own[two] - own[one]:+.2f} in your prompt".replace("-", "−") in words
    suggested = activation_patching.suggested_prompt("encoder", texts[0])
    assert suggested.count("[mask]") == 1 and suggested.index("[mask]") == 3
    assert "first masks of the prompts are at different positions" in said(
        ask(texts[0], "T[mask] be, or", model="encoder")
    )


def test_models_without_a_stream_or_without_layers():
    at = ask(model="unconnected")
    assert [matrix["title"] for matrix in matrices(at)] == ["What attention adds", "What the feed-forward layer adds"]
    at = ask(model="bigram")
    assert "This model has no layers" in said(at) and not pictures(at)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"changes": "scale~blocks.0.attn.hook_z~1~~0.0"},
        {"model": "translator", "own": "two hundred and five", "other": "two hundred and six"},
        {"model": "encoder", "own": "To [mask]e, or", "other": "To [mask]e, ox"},
    ],
    ids=["decoder-only", "changed", "encoder–decoder", "encoder-only"],
)
def test_the_lines_of_python_compute_the_same(link, folder, capsys):
    at = ask(**link)
    found = app.run_lines(at, folder)["patched"]
    for matrix, shares in zip(matrices(at), found.restored.numpy(), strict=True):
        columns = len(matrix["columns"])
        np.testing.assert_allclose(matrix["values"], shares[:, -columns:], atol=1e-3)
    assert "stream tensor" in capsys.readouterr().out


def test_what_comes_late_enough_is_traced_and_no_more(monkeypatch):
    monkeypatch.setattr(activation_patching, "MAX_TOKENS", 5)
    assert "From the first token that differs to the end there are 6 tokens" in said(ask(OWN, "To be, xr not"))
    at = ask(OWN, "To be, orxnot")
    assert pictures(at)
    assert [each for each in at.caption if "differ from position 9 on, and the map begins at 7" in each.value]


def test_every_shipped_model_with_attention_has_prompts_that_tell_something(monkeypatch):
    """Each pair is of one length, and what is likeliest after the one isn't after the other, or moves far at least."""
    use(monkeypatch, app.ROOT / "checkpoints")
    for entry in list_checkpoints(app.ROOT / "checkpoints"):
        pairs = activation_patching.suggested_pairs(entry.name)
        assert len(pairs) >= 2
        if not entry.config.n_layers:
            continue
        checkpoint, moved = library.model(entry.name), []
        start = (checkpoint.card.start_token_id,) if entry.config.architecture == "encoder-decoder" else ()
        for texts in pairs:
            one, other = (tuple(checkpoint.tokenizer.encode(text)) for text in texts)
            assert len(one) == len(other) <= entry.config.context_length and one != other
            pair = activation_patching.prompt_pair(entry.name, one, other, start)
            own, new = pair.answers
            moved.append(float((pair.logits[1] - pair.logits[0])[[own, new]] @ np.array([-1, 1])))
        assert min(moved) > 0.3 and max(moved) > 3, (entry.name, moved)


def test_in_the_shipped_shakespeare_a_word_is_carried_to_the_end_by_one_layer_s_attention(monkeypatch):
    """`thou ar` goes on with t, `they ar` with e: known from the word, until layer 4 brings it to the last letter."""
    use(monkeypatch, app.ROOT / "checkpoints")
    one, other = (ids(text) for text in activation_patching.PAIRS["shakespeare"][0])
    pair = activation_patching.prompt_pair("shakespeare", one, other)
    found = activation_patching.patching_effects("shakespeare", pair.tokens, pair.sources, pair.answers, "self")
    assert library.tokenizer("shakespeare").labels(pair.answers) == ["t", "e"]
    stream, attention = found.restored.numpy()[:2]
    assert (stream[:5, :-1].max(1) > 0.6).all() and (stream[:5, -1] < 0.2).all() and stream[5, -1] > 0.9
    assert attention[:, -1].argmax() == 4 and attention[4, -1] > 0.8
