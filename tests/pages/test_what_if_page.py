"""Tests the page What if: its numbers are the changed model's, and parts are ablated and restored."""

import json
import re

import numpy as np
import pytest
import torch

from pages.ui.markdown import nats
from pages.ui.models import activations, library
from pages.ui.number_format import percent
from tests import app_driver as app
from tests.app_driver import checked, component, figure, ids, link_of, markdown_with, named, numbers, said, start, step
from tests.app_driver import logits as run
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Scale, fill_masks

pytestmark = pytest.mark.usefixtures("folder")

SILENCED = Scale("blocks.0.attn.hook_z", head=1)
CODE = "scale~blocks.0.attn.hook_z~1~~0.0"
PROMPT = "To be, or not"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_tiny(folder, "bigram", title="Bigram", group="The ladder", n_layers=0)
    save_tiny(folder, "rung", title="Rung", group="The ladder", d_ff=0)
    save_translator(folder)
    save_encoder(folder)
    return folder


def loss(logits, text):
    return float(torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(text[1:])))


def shown(at):
    """What the picture of effects is sent."""
    return json.loads(component(at, "headsup_effect_heatmaps").json)


def click(at, matrix, row, column):
    return app.tell(at, "headsup_effect_heatmaps", "chosen", {"matrix": matrix, "row": row, "column": column})


def likeliest_shown(at):
    """The label of the token that the unchanged model gives most."""
    return figure(at, "what_if_next")["layout"]["yaxis"]["ticktext"][0]


def texts(at):
    return json.loads(component(at, "headsup_text_comparison").json)["versions"]


# What it says and writes, unchanged and changed


def test_with_nothing_changed_what_moves_the_next_token_most_is_offered_and_one_press_sets_it():
    at = start("What if", prompt=PROMPT)
    plain = run("shakespeare", ids(PROMPT))[-1].double().log_softmax(-1)
    offered = [button.label for button in at.main.button if button.label.startswith("Ablate ")]
    assert len(offered) == 3

    def moved(part):
        without = run("shakespeare", ids(PROMPT), part)[-1].double().log_softmax(-1)
        return float((plain.exp() * (plain - without)).sum())

    parts = activations.ablation("shakespeare", tuple(ids(PROMPT))).parts
    order = sorted(parts, key=moved, reverse=True)
    assert offered == [f"Ablate {str(part).removesuffix(' ablated')}" for part in order[:3]]
    app.press(at, offered[0])
    assert at.session_state["visitor"].changes[0].intervention == order[0]
    assert str(order[0]) in markdown_with(at, "Changed").replace("\\", "")
    assert component(at, "headsup_text_comparison") and not said(at)


def test_both_distributions_are_the_models_own():
    at = start("What if", prompt=PROMPT, changes=CODE)
    before, after = (
        run("shakespeare", ids(PROMPT), *each)[-1].double().softmax(-1).numpy() for each in ((), (SILENCED,))
    )
    tokenizer = library.tokenizer("shakespeare")
    spec = figure(at, "what_if_next")
    labels = spec["layout"]["yaxis"]["ticktext"]
    for trace, odds in zip(spec["data"], (before, after), strict=True):
        np.testing.assert_allclose(np.sort(numbers(trace["x"]))[-5:], np.sort(odds)[-5:], rtol=1e-4)
        assert trace["text"] == [percent(value) for value in numbers(trace["x"])]
    assert len(labels) == len(spec["data"][0]["text"]) >= 5
    lost = float((before * np.log(before / after)).sum())
    assert lost > 0 and any(f"**KL divergence** {nats(lost)}:" in caption.value for caption in at.caption)
    most = tokenizer.label(int((after - before).argmax()))
    assert f"`{most}`" in markdown_with(at, "What changed most").split("Likelier")[1]
    app.open_drawers(at)
    table = at.dataframe[0].value.sort_values("token id")
    np.testing.assert_allclose(table["probability unchanged"], before, atol=1e-7)
    np.testing.assert_allclose(table["probability changed"], after, atol=1e-7)


def test_both_texts_are_written_with_one_seed_and_their_first_difference_is_marked():
    at = start("What if", prompt=PROMPT, changes=CODE, seed=7, temperature=1.2)
    how = {"temperature": 1.2, "seed": 7}
    written = [
        app.decoded("shakespeare", app.generated("shakespeare", ids(PROMPT), 60, interventions=each, **how))
        for each in ((), (SILENCED,))
    ]
    both = texts(at)
    assert [each["same"] + each["differs"] + each["rest"] for each in both] == written
    assert both[0]["same"] == both[1]["same"] and both[0]["differs"] != both[1]["differs"]
    assert {each["before"] for each in both} == {PROMPT}


@pytest.mark.parametrize("question", [{}, *({"question": each} for each in ("before", "needed", "ablation"))], ids=str)
def test_a_link_of_any_age_opens_the_map_with_what_the_changed_model_says_beside_it(question):
    at = start("What if", prompt=PROMPT, changes=CODE, **question)
    assert shown(at)["matrices"][0]["marked"] == [[0, 1]] and len(figure(at, "what_if_next")["data"]) == 2
    assert "question" not in link_of(at) and not said(at)
    click(at, 0, 0, 1)
    assert len(figure(at, "what_if_next")["data"]) == 1  # beside the map, at once


def test_a_divergence_is_written_without_powers_of_ten():
    told = {7.497e-8: "0 nats, below 0.000001", -3e-9: "0 nats, below 0.000001", 0.0: "0 nats, below 0.000001"}
    told |= {1.2345e-5: "0.00001234 nats", 0.32514: "0.3251 nats", 2.3456: "2.346 nats", 12345.6: "12346 nats"}
    assert {value: nats(value) for value in told} == told


def test_a_change_that_changes_nothing_says_so():
    at = start("What if", prompt=PROMPT, changes="scale~blocks.0.attn.hook_z~1~~1.0")
    assert "move no probability" in markdown_with(at, "move no probability")
    assert any("Both write the same." in caption.value for caption in at.caption)
    assert all(each["differs"] == "" for each in texts(at))


def test_any_token_of_an_answer_can_be_looked_at():
    link = {"model": "translator", "prompt": "forty-two", "changes": "scale~decoder.blocks.0.hook_mlp_out~~~0.0"}
    at = start("What if", **link)
    checkpoint, source = library.model("translator"), tuple(ids("forty-two", "translator"))
    begin = (checkpoint.card.start_token_id,)
    answer = app.generated("translator", begin, 11, source=source, temperature=0)
    text = (*begin, *(step.token_id for step in answer))[:4]
    first = run("translator", begin, source=source)[-1]
    assert likeliest_shown(at) == checkpoint.tokenizer.label(int(first.argmax()))
    assert [each["before"] for each in texts(at)] == ["", ""] and not said(at)
    checked(named(at.select_slider, "What comes after").set_value(3).run())
    assert link_of(at)["place"] == "3"
    likeliest = int(run("translator", text, source=source)[-1].argmax())
    assert likeliest_shown(at) == checkpoint.tokenizer.label(likeliest)
    assert texts(at)[0]["before"] == checkpoint.tokenizer.decode(text)
    at = start("What if", **link_of(at) | {"question": "needed", "effect": "logit"})
    part = Scale("decoder.blocks.0.cross_attn.hook_z", 1)
    changed_already = Scale("decoder.blocks.0.hook_mlp_out")
    with_it = run("translator", text, changed_already, source=source)[-1]
    without = run("translator", text, changed_already, part, source=source)[-1]
    token = likeliest  # of the unchanged model
    assert shown(at)["matrices"][2]["values"][0][1] == pytest.approx(float((without - with_it)[token]), abs=2e-5)


# Which parts matter


def answer_of(logits):
    """How likely the unchanged model's answer is, in per cent."""
    return 100 * float(logits[-1].softmax(-1)[int(run("shakespeare", ids(PROMPT))[-1].argmax())])


@pytest.mark.parametrize(
    ("link", "measure"), [({}, answer_of), ({"effect": "loss"}, lambda logits: loss(logits, ids(PROMPT)))]
)
def test_each_number_is_what_it_is_without_that_part_less_what_it_is_with_it(link, measure):
    at = start("What if", prompt=PROMPT, **link)
    (matrix,) = shown(at)["matrices"]
    assert matrix["rows"] == ["layer 0", "layer 1"] and matrix["columns"] == ["head 0", "head 1", "feed-forward"]
    base = measure(run("shakespeare", ids(PROMPT)))
    for row in range(2):
        for column in range(3):
            part = Scale(f"blocks.{row}.hook_mlp_out") if column == 2 else Scale(f"blocks.{row}.attn.hook_z", column)
            rise = measure(run("shakespeare", ids(PROMPT), part)) - base
            assert matrix["values"][row][column] == pytest.approx(rise, abs=2e-5)
    app.open_drawers(at)
    table = at.dataframe[1].value
    if link:
        np.testing.assert_allclose(table["rise of the loss (nats)"].max(), np.max(matrix["values"]), atol=1e-5)


def test_the_logit_is_that_of_the_likeliest_token_or_of_the_one_that_is_chosen():
    at = start("What if", prompt=PROMPT, question="needed", effect="logit")
    plain = run("shakespeare", ids(PROMPT))[-1]
    without = run("shakespeare", ids(PROMPT), SILENCED)[-1]
    for token in (int(plain.argmax()), ids("K")[0]):
        (matrix,) = shown(at)["matrices"]
        assert matrix["values"][0][1] == pytest.approx(float(without[token] - plain[token]), abs=2e-5)
        at = app.choose(at, "Token", ids("K")[0])
    assert link_of(at)["token"] == str(ids("K")[0])
    app.choose(at, "Model", "shakespeare")
    assert "token" in link_of(start("What if", **link_of(at)))


def test_a_click_ablates_a_part_and_another_brings_it_back():
    at = start("What if", prompt=PROMPT, effect="loss")
    rise = shown(at)["matrices"][0]["values"][0][1]
    click(at, 0, 0, 1)
    assert link_of(at)["changes"] == CODE
    (matrix,) = shown(at)["matrices"]
    assert matrix["marked"] == [[0, 1]]
    assert matrix["values"][0][1] == pytest.approx(rise, abs=2e-5)  # as before: with it and without it
    other = loss(run("shakespeare", ids(PROMPT), SILENCED, Scale("blocks.1.hook_mlp_out")), ids(PROMPT))
    base = loss(run("shakespeare", ids(PROMPT), SILENCED), ids(PROMPT))
    assert matrix["values"][1][2] == pytest.approx(other - base, abs=2e-5)  # the others, beside what is changed
    click(at, 0, 0, 1)
    assert "changes" not in link_of(at) and shown(at)["matrices"][0]["marked"] == []
    for cell in ((1, 0, 0), (0, 2, 0), (0, 0, 3), (0, -1, 0), (0, "0", 0), (0, True, 0)):
        assert "changes" not in link_of(click(at, *cell)), "a cell that is not there changes nothing"


def test_an_encoder_decoder_has_a_picture_for_each_of_its_attentions():
    at = start("What if", model="translator", prompt="forty-two", question="needed")
    matrices = shown(at)["matrices"]
    assert [matrix["title"] for matrix in matrices] == ["Encoder", "Decoder", "Cross-attention"]
    assert [np.shape(matrix["values"]) for matrix in matrices] == [(2, 3), (1, 3), (1, 2)]
    click(at, 2, 0, 1)
    assert link_of(at)["changes"] == "scale~decoder.blocks.0.cross_attn.hook_z~1~~0.0"


def test_an_encoder_is_asked_about_its_first_mask_and_fills_all_of_them():
    typed, silenced = "To [mask]e, or [mask]", Scale("blocks.1.hook_mlp_out")
    link = {"model": "encoder", "prompt": typed, "changes": "scale~blocks.1.hook_mlp_out~~~0.0"}
    at = start("What if", **link, effect="loss")  # which it has none of
    assert named(at.get("button_group"), "Effect on").options == ["Probability", "Logit"] and not said(at)
    assert any(caption.value.startswith("At `[mask]`, position 3.") for caption in at.caption)
    tokenizer, mask = library.tokenizer("encoder"), library.model("encoder").card.mask_token_id
    tokens = ids(typed, "encoder")
    odds = [100 * run("encoder", tokens, silenced, *more)[3].softmax(-1) for more in ((), (SILENCED,))]
    answer = int(run("encoder", tokens)[3].argmax())
    rise = float((odds[1] - odds[0])[answer])
    assert shown(at)["matrices"][0]["values"][0][1] == pytest.approx(rise, abs=2e-4)
    assert likeliest_shown(at) == tokenizer.label(answer)
    for each, changes in zip(texts(at), ((), (silenced,)), strict=True):
        model = library.model("encoder").model
        filled = {step.position: step.token_id for step in fill_masks(model, tokens, mask, interventions=changes)}
        whole = tokenizer.decode([filled.get(place, token) for place, token in enumerate(tokens)])
        assert each["before"] + each["same"] + each["differs"] + each["rest"] == whole
    at = start("What if", **link | {"prompt": "To be"})
    assert any("writes no text" in caption.value for caption in at.caption)


def test_a_single_token_has_no_loss_but_a_logit():
    at = start("What if", prompt="T", effect="loss")
    assert "A single token has no loss" in said(at)
    checked(named(at.get("button_group"), "Effect on").set_value("logit").run())
    assert not said(at) and shown(at)["matrices"]


def test_the_text_that_was_written_can_be_asked_about():
    at = step(start(prompt="To"))
    whole = "To" + app.text_of(at)
    app.go(at, "What if")
    at.session_state["visitor"].effect = "loss"
    checked(at.run())
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    rise = loss(run("shakespeare", ids(whole), SILENCED), ids(whole)) - loss(run("shakespeare", ids(whole)), ids(whole))
    assert shown(at)["matrices"][0]["values"][0][1] == pytest.approx(rise, abs=2e-5)


def test_of_a_long_text_the_last_tokens_are_read_and_places_of_changes_count_from_its_start():
    long = "To be, or not to be, that is"
    at = start("What if", prompt=long, changes="scale~blocks.0.hook_mlp_out~~20~0.0", effect="loss")
    read = ids(long)[-16:]
    silenced_there = Scale("blocks.0.hook_mlp_out", position=20 - (len(long) - 16))
    rise = loss(run("shakespeare", read, silenced_there, SILENCED), read)
    rise -= loss(run("shakespeare", read, silenced_there), read)
    assert shown(at)["matrices"][0]["values"][0][1] == pytest.approx(rise, abs=2e-5)


# The lines of Python


@pytest.mark.parametrize(
    "link",
    [
        {"prompt": PROMPT, "changes": f"{CODE}!without~scale~", "top_k": 9},
        {
            "model": "translator",
            "prompt": "forty-two",
            "changes": "scale~decoder.blocks.0.hook_mlp_out~~~0.0",
            "place": 1,
        },
        {"model": "encoder", "prompt": "To [mask]e", "changes": "scale~blocks.0.hook_mlp_out~~~0.0"},
    ],
    ids=["decoder-only", "encoder–decoder", "encoder-only"],
)
def test_the_lines_of_before_and_after_write_what_is_shown(link, folder, capsys):
    at = start("What if", **link)
    is_encoder = link.get("model") == "encoder"
    app.run_lines(at, folder, "fill_masks(" if is_encoder else "generate(")
    printed = capsys.readouterr().out
    for each in texts(at):
        written = (each["same"] + each["differs"] + each["rest"]).strip()
        assert (repr(written[0]) if is_encoder else written) in printed
    for trace in figure(at, "what_if_next")["data"]:
        assert str(max(numbers(trace["x"])))[:6] in printed


@pytest.mark.parametrize("effect", ["probability", "loss", "logit"])
@pytest.mark.parametrize("changes", ["", "scale~blocks.0.hook_mlp_out~~20~0.0!scale~blocks.1.hook_mlp_out~~~0.0"])
def test_the_lines_of_the_map_print_what_is_shown(effect, changes, folder, capsys):
    at = start("What if", prompt="To be, or not to be, that is", question="needed", effect=effect, changes=changes)
    app.run_lines(at, folder, "ablation(")
    printed = {
        line.partition(" ablated ")[0]: float(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()
    }
    (matrix,) = shown(at)["matrices"]
    for row, layer in enumerate(matrix["values"]):
        assert printed[f"layer {row}, head 1"] == pytest.approx(layer[1], rel=1e-4, abs=1e-5)
    assert printed["feed-forward of layer 1"] == pytest.approx(0 if changes else matrix["values"][1][2], rel=1e-4)


# Whatever the model, the link, the change


def test_a_model_without_attention_leads_on_to_one_that_has_it():
    at = start("What if", model="bigram")
    assert "This model has no layers" in said(at)
    app.press(at, "Go on to Rung")
    assert link_of(at)["model"] == "rung" and not said(at) and app.prompt(at)


WITHOUT = (
    "without~norm~ without~mask~ without~positions~ mean~blocks.0.hook_attn_out~~ scale~blocks.1.hook_mlp_out~~~-20"
)


@pytest.mark.parametrize("change", re.findall(r"\S+", WITHOUT))
def test_no_change_shows_what_is_no_number(change):
    at = start("What if", prompt=PROMPT, changes=change)
    words = " ".join([*(e.value for e in at.markdown), *(e.value for e in at.metric)]).lower().split()
    assert "nan" not in words and "inf" not in words and not said(at)


def test_numbers_that_are_too_large_are_a_sentence(monkeypatch):
    def overflow(self, tensor, first, last, begin, other):
        return tensor[:, first - begin : last - begin] * float("inf")

    monkeypatch.setattr(Scale, "_values", overflow)
    later = {"model": "translator", "prompt": "forty-two", "changes": "scale~decoder.blocks.0.hook_mlp_out~~1~0.0"}
    assert "overflow" in said(start("What if", prompt=PROMPT, changes=CODE))
    assert "overflow" in said(start("What if", place=1, **later))


def test_what_a_link_asks_is_in_the_link_again_and_what_there_is_not_is_said():
    at = start("What if", question="ladder", effect="logit", token=5)
    assert link_of(at).items() >= {"question": "ladder", "effect": "logit", "token": "5"}.items()
    at = start("What if", question="why", effect="all", token=-1)
    assert "question = “why”, but it can be ablation, traced" in said(at) and "the token must be a number" in said(at)
    at = start("What if", question="needed", effect="logit", token=10**6)
    assert shown(at) and "token" not in link_of(at)


def test_the_shipped_induction_needs_two_heads_together(monkeypatch):
    """What looking alone doesn't show: with the one gone or the other, what repeats isn't continued."""
    app.use(monkeypatch, app.ROOT / "checkpoints")
    at = start("What if", model="induction", prompt="kR7wZq3xB kR7wZ")
    offered = [button.label for button in at.main.button if button.label.startswith("Ablate ")]
    assert offered[:2] == ["Ablate layer 0, head 0", "Ablate layer 1, head 1"]
    app.press(at, offered[0])
    assert "`q` 99.95% → 6.4%" in markdown_with(at, "What changed most")
