"""Tests the views Comparison and Ladder: each side is what its model computes alone."""

import numpy as np
import pytest
import torch

from pages.ui.computations.comparable_models import unique_labels
from pages.ui.markdown import nats
from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, choose, figure, ids, link_of, markdown_with, named, numbers, prompt, said, start
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Recording, Sampling, from_code, generate, logit_lens, trace_pass
from transformer.inference.context_windows import window_start

pytestmark = pytest.mark.usefixtures("folder")

OWN, OTHER = "To be, or not", "To be, ox not"
CODE = "scale~blocks.0.attn.hook_z~1~~0.0"
RUNGS = ("ladder-1", "ladder-2", "ladder-3")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_tiny(folder, "accents", title="Accents", group="Others", seed=2, alphabet="Tobe, rntxé", n_layers=3)
    save_tiny(folder, "ladder-1", title="1. Bigram", group="Ladder", n_layers=0, seed=3)
    save_tiny(folder, "ladder-2", title="2. Average", group="Ladder", attention="uniform", n_layers=1, seed=4)
    save_tiny(folder, "ladder-3", title="3. $x$ <b>", group="Ladder", n_heads=1, context_length=8, seed=5)
    save_tiny(folder, "since-1", title="1. Paper", group="Since 2017", n_layers=1, norm="post", seed=6)
    save_tiny(folder, "since-2", title="2. + RMSNorm", group="Since 2017", n_layers=1, norm_kind="rms", seed=7)
    save_translator(folder)
    save_encoder(folder, attention_windows=(3, 0))
    return folder


def ask(own=OWN, beside="prompts", **link):
    return start("What if", **{"question": "comparison", "beside": beside, "prompt": own, **link})


def climb(own=OWN, **link):
    return start("What if", question="ladder", prompt=own, **link)


def table(at, index=0):
    return app.open_drawers(at).dataframe[index].value


def heads(at):
    """The matrices of attention, as the browser gets them."""
    return [Recording.from_bytes(proto.bytes).tensors["values"] for proto in app.components(at, "headsup_matrix")]


# Two prompts, two models, with and without

MASKED, MASKED_OTHER = "To [mask]e, or", "T[mask] be, or"
SIDES = [
    ({"other_prompt": OTHER}, [("shakespeare", OWN, "", -1), ("shakespeare", OTHER, "", -1)]),
    ({"beside": "changes", "changes": CODE}, [("shakespeare", OWN, "", -1), ("shakespeare", OWN, CODE, -1)]),
    (
        {"other_prompt": "T" * 16, "changes": CODE},
        [("shakespeare", OWN, CODE, -1), ("shakespeare", "T" * 16, CODE, -1)],
    ),
    (
        {"beside": "models", "own": "To be, o", "other_model": "ladder-3"},
        [("shakespeare", "To be, o", "", -1), ("ladder-3", "To be, o", "", -1)],
    ),
    (
        {"model": "encoder", "own": MASKED, "other_prompt": MASKED_OTHER},
        [("encoder", MASKED, "", 3), ("encoder", MASKED_OTHER, "", 1)],
    ),
]
"""Links, and model, text, change and position of either side."""


@pytest.mark.parametrize(("link", "sides"), SIDES, ids=str)
def test_each_side_is_what_its_model_computes_alone_and_the_lines_of_python_say_the_same(link, sides, folder, capsys):
    at = ask(**link)
    drawn, lens = heads(at), figure(at, "what_if_comparison_lens")["data"]
    odds, weights, best, hidden = [], [], [], []
    for name, text, code, place in sides:
        changes = [from_code(code)] if code else []
        traced = trace_pass(library.model(name).model, ids(text, name), interventions=changes)
        by_layer = logit_lens(traced).logits[:, place].double().softmax(-1).numpy()
        odds.append(by_layer[-1])
        best.append(int(by_layer[-1].argmax()))
        weights.append(traced.tensors["blocks.0.attn.hook_pattern"][0].numpy())
        hidden.append(~traced.tensors["blocks.0.attn.hook_mask"].numpy().reshape(-1, *weights[-1].shape)[0])
        line = lens[len(best) - 1]
        np.testing.assert_allclose(numbers(line["y"]), by_layer[:, best[-1]], atol=1e-6)
        assert line["name"].endswith(library.tokenizer(name).label(best[-1]))
    assert len(lens) == (2 if best[0] == best[1] else 4)
    for shown, pattern, unseen in zip(drawn, weights, hidden, strict=False):
        np.testing.assert_allclose(shown, np.where(unseen, -np.inf, pattern), atol=1e-6)
    assert len(drawn) == 2 + (weights[0].shape == weights[1].shape)
    if len(drawn) == 3:
        difference = np.where(hidden[0] & hidden[1], -np.inf, weights[1] - weights[0])
        np.testing.assert_allclose(drawn[2], difference, atol=1e-6)
    found, (first, second) = table(at), odds
    columns = [name for name in found if name.startswith("probability")]
    np.testing.assert_allclose(found[columns].to_numpy().T, odds, atol=1e-6)
    np.testing.assert_allclose(found["difference"], second - first, atol=1e-6)
    assert f": {nats(float((first * np.log(first / second)).sum()))}." in markdown_with(at, "percentage points")
    app.run_lines(at, folder)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[(")]
    for line, side in zip(printed, odds, strict=True):
        assert f"{side.max():.5f}"[:-1] in line


def test_models_that_do_not_share_their_tokens_are_compared_all_the_same():
    at = ask(beside="models", own="To be, o", layer=1)
    assert named(at.selectbox, "Other model").value == "accents" and "other_model" not in link_of(at)
    assert "Encoder" not in named(at.selectbox, "Other model").options
    found = table(at)
    assert "difference" not in found and "é" in found["token"].tolist()
    of_other = found.set_index("token")["probability: Accents"]
    tokenizer, logits = library.tokenizer("accents"), app.logits("accents", ids("To be, o", "accents"))
    own = dict(zip(tokenizer.labels(range(11)), logits[-1].double().softmax(-1).tolist(), strict=True))
    assert np.isnan(of_other["K"]) and of_other["é"] == pytest.approx(own["é"], abs=1e-6)
    assert not [line for line in at.markdown if "percentage points" in line.value]
    assert any("Tokens that a model doesn't know have no bar." in caption.value for caption in at.caption)
    assert [len(numbers(line["x"])) for line in figure(at, "what_if_comparison_lens")["data"]] == [3, 4]
    choose(at, "Other model", "ladder-3")
    assert link_of(at)["other_model"] == "ladder-3"


def test_tokens_that_look_alike_are_told_apart_by_their_ids():
    assert unique_labels(["a", "�", "b", "�"]) == ("a", "� [1]", "b", "� [3]")


BESIDE = [
    ({"beside": "models", "other_model": "hal"}, "There is no model “hal” to compare with; another is shown."),
    ({"beside": "models", "other_model": "accents", "own": "KING"}, "To Accents, your prompt: This model"),
    ({"beside": "models", "other_model": "translator"}, "To Translator, your prompt: This model has never seen"),
    ({"beside": "models", "model": "encoder", "own": MASKED}, "There is no other encoder here."),
    ({"beside": "prompts", "other_prompt": "é"}, "The other prompt: This model has never seen “é”"),
    ({"beside": "models", "model": "ladder-1", "other_model": "shakespeare"}, "1. Bigram: this model has no"),
    ({"beside": "walls"}, "beside = “walls”, but it can be prompts, models, changes."),
]


@pytest.mark.parametrize(("link", "sentence"), BESIDE, ids=str)
def test_what_can_t_be_put_beside_is_said(link, sentence):
    assert sentence in said(ask(**link))


def test_a_prompt_may_be_longer_than_the_context_and_translations_are_compared_where_they_part():
    at = ask(other_prompt="To be, or not to be, that is")
    assert not said(at) and [shown.shape for shown in heads(at)] == [(13, 13), (16, 16)]
    at = ask("forty-two", model="translator", other_prompt="forty-three")
    begin, ends = [library.model("translator").card.start_token_id], []
    for text in ("forty-two", "forty-three"):
        steps = app.generated("translator", begin, 11, source=ids(text, "translator"), temperature=0)
        ends.append([*begin, *(step.token_id for step in steps)])
    parted = next(at for at, (one, other) in enumerate(zip(*ends, strict=False)) if one != other)
    last, *following = library.tokenizer("translator").labels([ends[0][parted - 1], *(end[parted] for end in ends)])
    for comes in following:
        assert markdown_with(at, f"after `{last}` comes `{comes}`")
    shapes = []
    for kind in ("encoder", "decoder", "cross"):
        choose(at, "Attention", kind)
        assert not said(at)
        shapes.append(heads(at)[0].shape)
    read = len(ends[0]) - (ends[0][-1] == library.model("translator").card.end_token_id)
    assert shapes == [(2, 2), (read, read), (read, 2)]
    without = "scale~decoder.blocks.0.hook_mlp_out~~~0.0"
    changed = ask("forty-two", "changes", model="translator", changes=without)
    assert not said(changed) and len(heads(changed)) == 3


LADDER = {"question": "ladder"}
LAST_RUNG = "Go on to 3\\. \\$x\\$ \\<b\\>, and its own prompt"


@pytest.mark.parametrize(
    ("link", "sentence", "button", "link_then"),
    [
        ({"beside": "changes"}, "This model has no changes.", "Go to Ablation", {"model": "shakespeare"}),
        (
            {**LADDER, "model": "accents", "own": "é"},
            *("On the ladder, your prompt: This model has never seen", LAST_RUNG, {"model": "ladder-3", **LADDER}),
        ),
        (
            {**LADDER, "model": "encoder", "own": MASKED},
            *("fills what is masked", LAST_RUNG, {"model": "ladder-3", **LADDER}),
        ),
    ],
)
def test_where_nothing_can_be_shown_the_way_on_is_offered(link, sentence, button, link_then):
    at = ask(**link)
    assert sentence in said(at) and not at.get("plotly_chart")
    app.press(at, button)
    assert link_then.items() <= link_of(at).items() and at.get("plotly_chart")
    assert link_of(at).get("question") == link_then.get("question")


# The ladder


def test_each_rung_reads_the_prompt_by_itself_and_writes_with_one_seed():
    at = climb(model="ladder-2", seed=9)
    found = table(at)
    assert found["rung"].tolist() == ["1. Bigram", "2. Average", "3. $x$ <b>"]
    for (_, row), name in zip(found.iterrows(), RUNGS, strict=True):
        model, tokens = library.model(name).model, ids(OWN)
        context = model.config.context_length
        losses = [
            -float(app.logits(name, tokens[window_start(end, context) : end])[-1].log_softmax(-1)[tokens[end]])
            for end in range(1, len(tokens))
        ]
        assert row["loss (nats)"] == pytest.approx(np.mean(losses), abs=1e-4)
        steps = list(generate(model, tokens, max_new_tokens=60, sampling=Sampling(temperature=0.8, seed=9)))
        assert row["writes"] == app.decoded(name, steps)
        assert row["probability"] == pytest.approx(float(steps[0].logits.softmax(-1).max()), abs=1e-5)
        assert row["next token"] == library.tokenizer(name).label(int(steps[0].logits.argmax()))
    bars = figure(at, "what_if_ladder")["data"][0]
    np.testing.assert_allclose(numbers(bars["x"]), found["loss (nats)"], atol=1e-6)
    change = found["loss (nats)"][1] - found["loss (nats)"][0]
    assert markdown_with(at, f"{abs(change):.3f} {'more' if change > 0 else 'less'} than the rung before it")


def test_a_rung_and_the_other_ladder_are_chosen_from_there_and_keep_the_prompt():
    at = climb(model="ladder-1")
    choices = [button for button in at.main.button if button.label == "Choose this rung"]
    assert len(choices) == 2
    checked(choices[0].click().run())
    assert link_of(at)["model"] == "ladder-2" and prompt(at) == OWN and link_of(at)["question"] == "ladder"
    app.press(at, "Go on to 3\\. \\$x\\$ \\<b\\>")
    assert link_of(at)["model"] == "ladder-3" and prompt(at) == OWN
    assert not [button for button in at.main.button if button.label.startswith("Go on")]
    checked(named(at.main.segmented_control, "Ladder").set_value("since-2017").run())
    assert link_of(at)["ladder"] == "since-2017" and prompt(at) == OWN
    found, tokens = table(at), torch.tensor(ids(OWN))
    assert found["rung"].tolist() == ["1. Paper", "2. + RMSNorm"]
    for name, loss in zip(("since-1", "since-2"), found["loss (nats)"], strict=True):
        expected = torch.nn.functional.cross_entropy(app.logits(name, tokens[:-1].tolist()), tokens[1:])
        assert loss == pytest.approx(float(expected), abs=1e-4)
    assert table(start("What if", **link_of(at)))["rung"].tolist() == found["rung"].tolist()


def test_a_prompt_of_one_token_has_no_loss_but_a_next_token():
    at = climb("T")
    assert table(at)["loss (nats)"].isna().all() and table(at)["probability"].notna().all()
    assert any("A single token has no loss" in caption.value for caption in at.caption)
