"""Tests the views Comparison and Ladder: each side is what its model computes alone."""

import numpy as np
import pytest
import torch

from pages.ui.components import matrix
from pages.ui.figures.bars import loss_bars
from pages.ui.figures.lines import Line, lens_lines
from pages.ui.markdown import nats
from pages.ui.models import library
from pages.ui.models.comparison import unique_labels
from tests import app_driver as app
from tests.app_driver import checked, choose, figure, ids, link_of, markdown_with, named, numbers, prompt, said, start
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Recording, Sampling, Scale, generate, logit_lens, trace_pass
from transformer.inference.context_windows import window_start

pytestmark = pytest.mark.usefixtures("folder")

OWN, OTHER = "To be, or not", "To be, ox not"
SILENCED = Scale("blocks.0.attn.hook_z", head=1)
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
    return start("What if", question="beside", beside=beside, prompt=own, **link)


def odds(name, text, *interventions):
    return app.logits(name, ids(text, name), *interventions)[-1].double().softmax(-1).numpy()


def table(at, index):
    return app.open_drawers(at).dataframe[index].value


def heads(at):
    """The matrices of attention, as the browser gets them."""
    return [Recording.from_bytes(proto.bytes).tensors["values"] for proto in app.components(at, "headsup_matrix")]


def assert_distributions(at, first, second):
    found = table(at, 0)
    one, other = (found[column].to_numpy() for column in found.columns if column.startswith("probability"))
    np.testing.assert_allclose(one, first, atol=1e-6)
    np.testing.assert_allclose(other, second, atol=1e-6)
    np.testing.assert_allclose(found["difference"], second - first, atol=1e-6)
    kl = float((first * np.log(first / second)).sum())
    assert f": {nats(kl)}." in markdown_with(at, "percentage points")


# Two prompts, two models, with and without


def test_two_prompts_are_each_read_by_the_model():
    at = ask(other_prompt=OTHER, layer=1, head=1)
    assert_distributions(at, odds("shakespeare", OWN), odds("shakespeare", OTHER))
    patterns = []
    for number, text in enumerate((OWN, OTHER)):
        _, cache = library.model("shakespeare").model.run_with_cache(torch.tensor([ids(text)]))
        pattern = cache["pattern", 1][0, 1].detach().numpy()
        visible = np.tril(np.ones_like(pattern, bool))
        shown = heads(at)[number]
        np.testing.assert_allclose(shown[visible], pattern[visible], atol=1e-6)
        assert np.isneginf(shown[~visible]).all()
        patterns.append(pattern)
    lines = figure(at, "what_if_beside_lens")["data"]
    best = [int(odds("shakespeare", text).argmax()) for text in (OWN, OTHER)]
    assert len(lines) == (2 if best[0] == best[1] else 4)
    for line, text, token in zip(lines, (OWN, OTHER), best, strict=False):
        lens = logit_lens(trace_pass(library.model("shakespeare").model, ids(text))).logits[:, -1].softmax(-1)
        np.testing.assert_allclose(numbers(line["y"]), lens[:, token].numpy(), atol=1e-6)
        assert line["name"].endswith(library.tokenizer("shakespeare").label(token))
    shown = heads(at)[2]
    np.testing.assert_allclose(shown[visible], (patterns[1] - patterns[0])[visible], atol=1e-6)


def test_an_encoder_is_compared_at_its_masks_and_with_other_encoders_alone():
    own, other = "To [mask]e, or", "T[mask] be, or"
    at = ask(own, other_prompt=other, model="encoder")
    first, second = (
        app.logits("encoder", ids(text, "encoder"))[place].double().softmax(-1).numpy()
        for text, place in ((own, 3), (other, 1))
    )
    assert_distributions(at, first, second)
    assert "at `[mask]` it predicts" in markdown_with(at, "**Your prompt:**")
    hidden = np.isneginf(heads(at)[0])
    assert (hidden == (np.abs(np.subtract.outer(np.arange(9), np.arange(9))) >= 3)).all()
    assert "There is no other encoder here." in said(ask(own, beside="models", model="encoder"))
    assert "Encoder" not in named(ask(beside="models").selectbox, "Other model").options
    at = start("What if", question="ladder", model="encoder", prompt=own)
    assert "fills what is masked" in said(at)
    app.press(at, "Go on to 3\\. \\$x\\$ \\<b\\>, and its own prompt")
    assert link_of(at)["model"] == "ladder-3" and at.get("plotly_chart")


def test_with_and_without_the_changes():
    at = ask(beside="changes", changes=CODE)
    assert_distributions(at, odds("shakespeare", OWN), odds("shakespeare", OWN, SILENCED))
    at = ask(beside="changes")
    assert "This model has no changes." in said(at)
    app.press(at, "Go to Ablation")
    assert "question" not in link_of(at) and named(at.get("button_group"), "Question").value == "ablation"


def test_tokens_that_look_alike_are_told_apart_by_their_ids():
    assert unique_labels(["a", "�", "b", "�"]) == ("a", "� [1]", "b", "� [3]")


def test_two_models_that_share_their_tokens_and_two_that_do_not():
    at = ask(beside="models", own="To be, o")
    assert named(at.selectbox, "Other model").value == "accents" and "other_model" not in link_of(at)
    choose(at, "Other model", "ladder-3")
    assert_distributions(at, odds("shakespeare", "To be, o"), odds("ladder-3", "To be, o"))
    assert link_of(at)["other_model"] == "ladder-3"
    choose(at, "Other model", "accents")
    found = table(at, 0)
    assert "difference" not in found and "é" in found["token"].tolist()
    of_other = found.set_index("token")["probability: Accents"]
    own = dict(zip(library.tokenizer("accents").labels(range(11)), odds("accents", "To be, o"), strict=True))
    assert np.isnan(of_other["K"]) and of_other["é"] == pytest.approx(own["é"], abs=1e-6)
    assert not [line for line in at.markdown if "percentage points" in line.value]
    assert any("Tokens that a model doesn't know have no bar." in caption.value for caption in at.caption)


@pytest.mark.parametrize(
    "link",
    [
        {"beside": "changes", "changes": CODE},
        {"other_prompt": "T" * 20, "changes": CODE},
        {"beside": "models", "other_model": "ladder-3"},
    ],
    ids=str,
)
def test_the_lines_of_python_say_the_same(link, folder, capsys):
    at = ask(**link)
    app.run_lines(at, folder)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[(")]
    found = table(at, 0)
    for line, column in zip(printed, [name for name in found if name.startswith("probability")], strict=True):
        assert f"{found[column].max():.5f}"[:-1] in line


BESIDE = [
    ({"beside": "models", "other_model": "hal"}, "There is no model “hal” to compare with; another is shown."),
    ({"beside": "models", "other_model": "accents", "own": "KING"}, "To Accents, your prompt: This model"),
    ({"beside": "models", "other_model": "translator"}, "To Translator, your prompt: This model has never seen"),
    ({"beside": "prompts", "other_prompt": "é"}, "The other prompt: This model has never seen “`é`”"),
    ({"beside": "models", "model": "ladder-1", "other_model": "shakespeare"}, "1. Bigram: this model has no"),
    ({"beside": "walls"}, "beside = “walls”, but it can be prompts, models, changes."),
]


def test_what_can_t_be_put_beside_is_said():
    for link, sentence in BESIDE:
        assert sentence in said(ask(**link))


def test_prompts_may_have_any_length_and_models_any_depth():
    at = ask(other_prompt="To be, or not to be, that is")  # longer than the context
    assert not said(at) and len(heads(at)) == 2
    at = ask(beside="models", other_model="accents", layer=1)
    assert len(heads(at)) == 3
    assert [len(numbers(line["x"])) for line in figure(at, "what_if_beside_lens")["data"]] == [3, 4]


def test_translations_are_compared_where_they_part():
    at = start("What if", question="beside", model="translator", prompt="forty-two", other_prompt="forty-three")
    assert not said(at) and len(heads(at)) >= 2
    assert "after `[start]` comes" in markdown_with(at, "**Your prompt:**") or "after" in markdown_with(at, "comes")
    for kind in ("encoder", "decoder"):
        choose(at, "Attention", kind)
        assert not said(at)
    without = "scale~decoder.blocks.0.hook_mlp_out~~~0.0"
    changed = ask("forty-two", "changes", model="translator", changes=without)
    assert not said(changed) and len(heads(changed)) == 3


# The ladder


def test_each_rung_reads_the_prompt_by_itself_and_writes_with_one_seed():
    at = start("What if", question="ladder", model="ladder-2", prompt=OWN, seed=9)
    found = table(at, 0)
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
        assert row["writes"] == library.tokenizer(name).decode([step.token_id for step in steps])
        assert row["probability"] == pytest.approx(float(steps[0].logits.softmax(-1).max()), abs=1e-5)
        assert row["next token"] == library.tokenizer(name).label(int(steps[0].logits.argmax()))
    bars = figure(at, "what_if_ladder")["data"][0]
    np.testing.assert_allclose(numbers(bars["x"]), found["loss (nats)"], atol=1e-6)
    change = found["loss (nats)"][1] - found["loss (nats)"][0]
    told = f"{abs(change):.3f} {'more' if change > 0 else 'less'} than the rung before it"  # which is drawn above it
    assert any(told in line.value for line in at.markdown)


def test_a_rung_is_chosen_from_there_and_keeps_the_prompt():
    at = start("What if", question="ladder", model="ladder-1", prompt=OWN)
    choices = [button for button in at.main.button if button.label == "Choose this rung"]
    assert len(choices) == 2
    checked(choices[0].click().run())
    assert link_of(at)["model"] == "ladder-2" and prompt(at) == OWN and link_of(at)["question"] == "ladder"
    app.press(at, "Go on to 3\\. \\$x\\$ \\<b\\>")
    assert link_of(at)["model"] == "ladder-3" and prompt(at) == OWN
    assert not [button for button in at.main.button if button.label.startswith("Go on")]


def test_the_other_ladder_reads_the_same_prompt_and_is_in_the_link():
    at = start("What if", question="ladder", prompt=OWN)
    first = table(at, 0)
    checked(named(at.main.segmented_control, "Ladder").set_value("since-2017").run())
    assert link_of(at)["ladder"] == "since-2017" and prompt(at) == OWN
    found = table(at, 0)
    assert found["rung"].tolist() == ["1. Paper", "2. + RMSNorm"] and len(first) == 3
    tokens = ids(OWN)
    for name, loss in zip(("since-1", "since-2"), found["loss (nats)"], strict=True):
        expected = (
            -app.logits(name, tokens[:-1])
            .log_softmax(-1)[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])]
            .mean()
        )
        assert loss == pytest.approx(float(expected), abs=1e-4)
    again = start("What if", **link_of(at))
    assert table(again, 0)["rung"].tolist() == found["rung"].tolist()


def test_a_prompt_that_the_ladder_can_t_read_leads_to_its_own():
    at = start("What if", question="ladder", model="accents", prompt="é")
    assert "On the ladder, your prompt: This model has never seen" in said(at)
    (button,) = [button for button in at.main.button if button.label.startswith("Go on")]
    checked(button.click().run())
    assert link_of(at)["model"] == "ladder-3" and figure(at, "what_if_ladder")


def test_a_prompt_of_one_token_has_no_loss_but_a_next_token():
    at = start("What if", question="ladder", prompt="T")
    assert table(at, 0)["loss (nats)"].isna().all() and table(at, 0)["probability"].notna().all()
    assert any("A single token has no loss" in caption.value for caption in at.caption)


# Figures


def test_figures_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="2 labels were given for 1 and 2 numbers"):
        loss_bars(["a", "b"], np.ones(1), np.ones(2), None)
    with pytest.raises(ValueError, match="1 and 2 labels were given for values of"):
        matrix.build_payload(np.ones((2, 2)), {"labels": (["a"], ["a", "b"])})


def test_what_models_are_called_is_no_markup_in_a_figure():
    title = "%{x} <b>$y$"
    made = loss_bars([title], np.ones(1), np.full(1, np.nan), 0)
    assert made.layout.yaxis.ticktext == ("&#37;{x} &lt;b&gt;&#36;y&#36;",)
    made = lens_lines({title: Line(np.array([0.5, 1.0]), ["a", "b"])})
    assert made.data[0].name == "&#37;{x} &lt;b&gt;&#36;y&#36;" and made.layout.xaxis.ticktext[-1] == "0"
