"""Tests the view Activation patching: each effect is the patched model's own."""

import json

import numpy as np
import pytest

from pages.ui.computations import prompt_pairs
from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, choose, go, ids, link_of, named, press, prompt, said, start, use
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Patch, list_checkpoints

pytestmark = pytest.mark.usefixtures("folder")

OWN, OTHER = "To be, or not", "To be, ox not"
MASKED = {"model": "encoder", "own": "To [mask]e, or", "other": "To [mask]e, ox"}
SUMS = {"model": "translator", "own": "two hundred and five", "other": "two hundred and six"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_tiny(folder, "bigram", title="Bigram", group="Texts", n_layers=0)
    save_tiny(folder, "unconnected", group="Texts", residual=False, norm="none")
    save_translator(folder)
    save_encoder(folder)
    return folder


def ask(own=OWN, other=OTHER, **link):
    link |= {} if other is None else {"other_prompt": other}
    return start("What if", question="patching", prompt=own, **link)


def pictures(at):
    return app.components(at, "headsup_effect_heatmaps")


def matrices(at, picture=0):
    return json.loads(pictures(at)[picture].json)["matrices"]


def click(at, matrix, row, column, picture=0):
    where = {"matrix": matrix, "row": row, "column": column}
    return app.tell_page(at, "headsup_effect_heatmaps", "chosen", where, which=picture)


def captions(at):
    return " ".join(each.value for each in at.caption)


def other_prompt(at):
    return named(at.main.text_area, "Another prompt")


@pytest.mark.parametrize(
    ("link", "columns"),
    [
        ({}, ["␣", "o", "r|x", "␣", "n", "o", "t"]),
        ({"changes": "scale~blocks.0.attn.hook_z~1~~0.0"}, ["␣", "o", "r|x", "␣", "n", "o", "t"]),
        (SUMS, ["two", "hundred", "and", "five|six"]),
        (MASKED, [*"To␣", "[mask]", *"e,␣o", "r|x"]),
    ],
    ids=["decoder-only", "changed", "encoder–decoder", "encoder-only"],
)
def test_the_lines_of_python_compute_what_is_shown_from_before_the_place_that_differs(link, columns, folder, capsys):
    at = ask(**link)
    found = app.run_lines(at, folder)["patched"]
    for matrix, shares in zip(matrices(at), found.restored.numpy(), strict=True):
        assert matrix["columnLabels"][-len(columns) :] == columns
        np.testing.assert_allclose(matrix["values"], shares[:, -len(matrix["columns"]) :], atol=1e-3)
    stream = matrices(at)[0]
    assert stream["rows"][0].endswith("layer 0") and len(stream["columns"]) == len(columns)
    differs = [float("|" in label) for label in columns]
    assert np.allclose(stream["values"][0], differs, atol=1e-4), "all of the difference enters where it is"
    assert "stream tensor" in capsys.readouterr().out
    table = app.open_drawers(at).dataframe[0].value
    own = table[table["hook point"] == table["hook point"].iloc[0]]
    np.testing.assert_allclose(own["share"][-len(columns) :], stream["values"][0], atol=1e-3)
    assert own["token"].tolist()[-len(columns) :] == [label.partition("|")[0] for label in columns]
    assert own["other token"].tolist()[-len(columns) :] == [label.rpartition("|")[2] for label in columns]


@pytest.mark.parametrize(("link", "row", "column"), [({}, 1, 2), (SUMS, 1, 3)], ids=["decoder-only", "encoder–decoder"])
def test_a_click_puts_a_place_in_on_every_page_and_another_takes_it_out(link, row, column):
    at = ask(**link)
    before, other = matrices(at)[0], link.get("other", OTHER)
    click(at, 0, row, column)
    (change,) = [each.intervention for each in at.session_state["visitor"].changes]
    if link:
        begin = library.model("translator").card.start_token_id
        assert (change.point, change.position) == ("encoder.blocks.1.hook_resid_pre", 3)
        assert change.source == ids(other, "translator") and change.tokens[0] == begin
        assert [np.shape(each["values"]) for each in matrices(at)] == [(2, 4)] * 3 and len(matrices(at, 1)) == 4
    else:
        assert change == Patch("blocks.1.hook_resid_pre", position=OTHER.index("x"), tokens=ids(OTHER))
        assert str(change) in app.shown(at)["effect"]
    assert matrices(at)[0] == before | {"marked": [[row, column]]} and "left out of this map" in captions(at)
    click(at, 0, row, column)
    assert "changes" not in link_of(at) and matrices(at)[0] == before


def test_the_other_prompt_is_suggested_follows_the_prompt_and_is_kept_when_typed():
    at = ask(other=None)
    suggested = other_prompt(at).value
    assert len(suggested) == len(OWN) and suggested != OWN and pictures(at)
    assert "other_prompt" not in link_of(at)
    app.type_prompt(at, "KING:\nTo")
    assert other_prompt(at).value != suggested and pictures(at)
    checked(other_prompt(at).set_value("KING:\nTx").run())
    assert link_of(at)["other_prompt"] == "KING:\nTx"
    press(at, "Swap the prompts")
    assert prompt(at) == "KING:\nTx" and link_of(at)["other_prompt"] == "KING:\nTo"
    go(at, "Attention")
    go(at, "What if")
    assert other_prompt(at).value == "KING:\nTo"
    press(at, "Suggest another prompt")
    assert "other_prompt" not in link_of(at)
    suggested = prompt_pairs.suggested_prompt("encoder", MASKED["own"])
    assert suggested.count("[mask]") == 1 and suggested.index("[mask]") == 3


UNTRACEABLE = [
    (
        {"other": "To be"},
        "Your prompt has 13 tokens, the other one 5. Patching needs equal lengths. Add 8 to the other prompt",
    ),
    ({"own": "To", "other": "To be"}, "Take 3 away from the other prompt"),
    ({"other": OWN}, "Both prompts are the same."),
    ({"other": "é" + OWN[1:]}, "The other prompt: This model has never seen “é”"),
    ({"other": " "}, "Add 12 to the other prompt"),
    ({"other": ""}, "The other prompt is empty."),
    ({"own": "To be, or not to be"}, "this model's context holds 16. Shorten them until they fit."),
    (SUMS | {"other": "five hundred two"}, "written like this: five hundred and two."),
    (MASKED | {"other": "T[mask] be, or"}, "first masks of the prompts are at different positions"),
    ({"model": "bigram"}, "This model has no layers"),
]


@pytest.mark.parametrize(("link", "sentence"), UNTRACEABLE)
def test_what_can_t_be_traced_gets_a_sentence_that_says_what_to_do(link, sentence):
    at = ask(**link)
    assert sentence in said(at).replace("`", "") and not pictures(at)


def test_the_two_tokens_can_be_chosen_and_are_in_the_link():
    at = ask()
    one, two = ids("K")[0], ids("z")[0]
    choose(at, "Answer to your prompt", one)
    choose(at, "Answer to the other", two)
    assert link_of(at).items() >= {"own_token": str(one), "other_token": str(two)}.items()
    own, other = (app.logits("shakespeare", ids(text))[-1].numpy() for text in (OWN, OTHER))
    told = f"{own[two] - own[one]:+.2f} after your prompt, {other[two] - other[one]:+.2f} after the other"
    assert told.replace("-", "−") in captions(at).replace("-", "−")
    assert ("lead to the same likeliest token" in captions(at)) == (own.argmax() == other.argmax())
    choose(at, "Answer to the other", one)
    assert "no difference to trace" in said(at)
    at = ask(own_token=10**6)
    assert "This model has no token 1000000" in said(at) and pictures(at)


def test_what_comes_late_enough_is_traced_and_no_more_and_where_there_is_a_stream_that(monkeypatch):
    monkeypatch.setattr(prompt_pairs, "MAX_TOKENS", 5)
    assert "From the first token that differs to the end there are 6 tokens" in said(ask(OWN, "To be, xr not"))
    at = ask(OWN, "To be, orxnot")
    assert pictures(at) and "differ from position 9 on, and the map begins at 7" in captions(at)
    assert "The prompts have 9 tokens; at most 5 can be traced." in said(ask(**MASKED))
    titles = [matrix["title"] for matrix in matrices(ask(OWN, "To be, orxnot", model="unconnected"))]
    assert titles == ["What attention adds", "What the feed-forward layer adds"]


def test_every_shipped_model_with_attention_has_prompts_that_tell_something(monkeypatch):
    """Each pair is of one length, and what is likeliest after the one isn't after the other, or moves far at least."""
    use(monkeypatch, app.ROOT / "checkpoints")
    for entry in list_checkpoints(app.ROOT / "checkpoints"):
        pairs = prompt_pairs.suggested_pairs(entry.name)
        assert len(pairs) >= 2
        if not entry.config.n_layers:
            continue
        checkpoint, moved = library.model(entry.name), []
        start = (checkpoint.card.start_token_id,) if entry.config.architecture == "encoder-decoder" else ()
        for texts in pairs:
            one, other = (tuple(checkpoint.tokenizer.encode(text)) for text in texts)
            assert len(one) == len(other) <= entry.config.context_length and one != other
            pair = prompt_pairs.prompt_pair(entry.name, one, other, start)
            own, new = pair.answers
            moved.append(float((pair.logits[1] - pair.logits[0])[[own, new]] @ np.array([-1, 1])))
        assert min(moved) > 0.3 and max(moved) > 3, (entry.name, moved)
