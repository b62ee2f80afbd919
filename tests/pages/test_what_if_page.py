"""Tests the page What if: its numbers are the changed model's, and parts are ablated and restored."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pages.ui.components.effect_heatmaps import Cell, Matrix, build_payload
from pages.ui.components.events import parsed
from pages.ui.computations import activations
from pages.ui.markdown import nats
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.views.what_if.ablation_map import colour_limit, matrices_of
from tests import app_driver as app
from tests.app_driver import checked, component, figure, ids, link_of, markdown_with, named, numbers, said, start, step
from tests.app_driver import logits as run
from tests.helpers import any_configs, tiny_model
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Scale, ablation, fill_masks, from_code

pytestmark = pytest.mark.usefixtures("folder")

PROMPT = "To be, or not"
CODE = "scale~blocks.0.attn.hook_z~1~~0.0"
TRANSLATOR = {"model": "translator", "prompt": "forty-two", "changes": "scale~decoder.blocks.0.hook_mlp_out~~~0.0"}
ENCODER = {"model": "encoder", "prompt": "To [mask]e, or [mask]", "changes": "scale~blocks.1.hook_mlp_out~~~0.0"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_tiny(folder, "bigram", title="Bigram", group="The ladder", n_layers=0)
    save_tiny(folder, "rung", title="Rung", group="The ladder", d_ff=0)
    save_translator(folder)
    save_encoder(folder)
    return folder


def shown(at):
    """What the picture of effects is sent."""
    return json.loads(component(at, "headsup_effect_heatmaps").json)["matrices"]


def click(at, matrix, row, column):
    return app.tell(at, "headsup_effect_heatmaps", "chosen", {"matrix": matrix, "row": row, "column": column})


def texts(at):
    return json.loads(component(at, "headsup_text_comparison").json)["versions"]


def said_below(at):
    return " ".join(caption.value for caption in at.caption)


# What it says and writes, unchanged and changed


def test_with_nothing_changed_what_moves_the_next_token_most_is_offered_and_one_press_sets_it():
    at = start("What if", prompt=PROMPT)
    plain = run("shakespeare", ids(PROMPT))[-1].double().log_softmax(-1)

    def moved(part):
        without = run("shakespeare", ids(PROMPT), part)[-1].double().log_softmax(-1)
        return float((plain.exp() * (plain - without)).sum())

    parts = activations.ablation("shakespeare", tuple(ids(PROMPT))).parts
    order = sorted(parts, key=moved, reverse=True)[:3]
    offered = [button.label for button in at.main.button if button.label.startswith("Ablate ")]
    assert offered == [f"Ablate {str(part).removesuffix(' ablated')}" for part in order]
    app.press(at, offered[0])
    assert at.session_state["visitor"].changes[0].intervention == order[0]
    assert str(order[0]) in app.shown(at)["effect"] and not said(at)


SAYS = {
    "decoder-only": {"prompt": PROMPT, "changes": f"{CODE}!without~scale~", "top_k": 9, "seed": 7, "temperature": 1.2},
    "encoder–decoder": {**TRANSLATOR, "place": 3, "temperature": 0},
    "encoder-only": ENCODER,
}


def whole_text(name, tokens, changes, link, **source):
    """A text with what the engine writes after it, or fills in, as many tokens as the page has it write."""
    checkpoint = library.model(name)
    sampling = {each: link[each] for each in ("top_k", "seed", "temperature") if each in link}
    if name == "encoder":
        steps = fill_masks(checkpoint.model, tokens, checkpoint.card.mask_token_id, interventions=changes)
        filled = {step.position: step.token_id for step in steps}
        return checkpoint.tokenizer.decode([filled.get(place, token) for place, token in enumerate(tokens)])
    count = checkpoint.model.config.context_length - len(tokens) if source else 60
    steps = app.generated(name, tokens, count, interventions=changes, **sampling, **source)
    return checkpoint.tokenizer.decode([*tokens, *(step.token_id for step in steps)])


@pytest.mark.parametrize("link", SAYS.values(), ids=SAYS)
def test_both_predictions_and_both_texts_are_the_models_own_and_lines_of_python_print_them(link, folder, capsys):
    at, name = start("What if", **link), link.get("model", "shakespeare")
    tokens, source, place = tuple(ids(link["prompt"], name)), {}, 3 if name == "encoder" else -1
    if name == "translator":
        begin, source = (library.model(name).card.start_token_id,), {"source": tokens}
        answer = app.generated(name, begin, 11, **source, temperature=0)
        tokens = (*begin, *(step.token_id for step in answer))[: link["place"] + 1]
    assert ("At `[mask]`, position 3." in said_below(at)) == (name == "encoder") and not said(at)
    changed = [from_code(code) for code in link["changes"].split("!")]
    before, after = (run(name, tokens, *each, **source)[place].double().softmax(-1).numpy() for each in ((), changed))
    bars, tokenizer = figure(at, "what_if_next"), library.tokenizer(name)
    assert bars["layout"]["yaxis"]["ticktext"][0] == tokenizer.label(int(before.argmax()))
    for trace, odds in zip(bars["data"], (before, after), strict=True):
        np.testing.assert_allclose(np.sort(numbers(trace["x"]))[-5:], np.sort(odds)[-5:], rtol=1e-4)
        assert trace["text"] == [percent(value) for value in numbers(trace["x"])]
    assert f"**KL divergence** {nats(float((before * np.log(before / after)).sum()))}:" in said_below(at)
    most = tokenizer.label(int((after - before).argmax()))
    assert f"`{most}`" in markdown_with(at, "What changed most").split("Likelier")[1]
    both, words = texts(at), "fill_masks(" if name == "encoder" else "generate("
    assert both[0]["same"] == both[1]["same"] and both[0]["before"] == both[1]["before"]
    app.run_lines(at, folder, words)
    printed = capsys.readouterr().out
    for each, changes, odds in zip(both, ((), changed), (before, after), strict=True):
        written = each["same"] + each["differs"] + each["rest"]
        assert each["before"] + written == whole_text(name, tokens, changes, link, **source)
        assert f"{odds.max():.6f}"[:-1] in printed
        assert name == "encoder" or written.strip() in printed
        assert name != "translator" or written.strip() in printed.splitlines(), "and no more"
    table = app.open_drawers(at).dataframe[0].value.sort_values("token id")
    np.testing.assert_allclose(table[["probability unchanged", "probability changed"]].T, [before, after], atol=1e-7)


def test_a_divergence_is_written_without_powers_of_ten():
    told = {7.497e-8: "0 nats, below 0.000001", -3e-9: "0 nats, below 0.000001", 0.0: "0 nats, below 0.000001"}
    told |= {1.2345e-5: "0.00001234 nats", 0.32514: "0.3251 nats", 2.3456: "2.346 nats", 12345.6: "12346 nats"}
    assert {value: nats(value) for value in told} == told


def test_a_change_that_changes_nothing_says_so():
    at = start("What if", prompt=PROMPT, changes="scale~blocks.0.attn.hook_z~1~~1.0")
    assert markdown_with(at, "move no probability") and "Both write the same." in said_below(at)
    assert all(each["differs"] == "" for each in texts(at))


# Which parts matter


LATE = "scale~blocks.0.hook_mlp_out~~20~0.0!scale~blocks.1.hook_mlp_out~~~0.0"
LONG = {"prompt": "To be, or not to be, that is", "changes": LATE}
MAPS = [
    *({"prompt": PROMPT, "effect": effect} for effect in ("probability", "loss", "logit")),
    *({**LONG, "effect": effect} for effect in ("probability", "loss", "logit")),
    {"prompt": PROMPT, "effect": "logit", "token": 40},
    {**TRANSLATOR, "place": 3, "effect": "logit"},
    {**TRANSLATOR, "effect": "loss"},
    {**ENCODER, "effect": "probability"},
]


@pytest.mark.parametrize("link", MAPS, ids=str)
def test_the_lines_of_the_map_print_what_is_shown(link, folder, capsys):
    at = start("What if", **link)
    app.run_lines(at, folder, "ablation(")
    lines = [line.rpartition(" ") for line in capsys.readouterr().out.splitlines()]
    ablated = [str(from_code(each)) for each in link.get("changes", "").split("!") if each]
    printed = [float(effect) for part, _, effect in lines if part not in ablated]
    matrices = shown(at)
    cells = [
        effect
        for matrix in matrices
        for row, effects in enumerate(matrix["values"])
        for column, effect in enumerate(effects)
        if effect is not None and [row, column] not in matrix["marked"]
    ]
    np.testing.assert_allclose(sorted(cells), sorted(printed), rtol=1e-4, atol=1e-5)
    assert len(lines) - len(printed) == bool(link.get("changes"))
    assert link_of(at).get("token") == (str(link["token"]) if "token" in link else None)
    told = "The text is what the unchanged model would write" in said_below(at)
    assert told == (link.get("model") == "translator" and link["effect"] == "loss")
    titles = ["Encoder", "Decoder", "Cross-attention"] if link.get("model") == "translator" else [""]
    assert [matrix["title"] for matrix in matrices] == titles
    assert matrices[0]["columns"] == ["head 0", "head 1", "feed-forward"]


def test_a_click_ablates_a_part_and_another_brings_it_back():
    at = start("What if", prompt=PROMPT, effect="loss")
    assert len(figure(at, "what_if_next")["data"]) == 1
    rise = shown(at)[0]["values"][0][1]
    click(at, 0, 0, 1)
    assert link_of(at)["changes"] == CODE and len(figure(at, "what_if_next")["data"]) == 2  # beside the map, at once
    assert shown(at)[0]["marked"] == [[0, 1]]
    assert shown(at)[0]["values"][0][1] == pytest.approx(rise, abs=2e-5)  # as before: with it and without it

    def loss(*changes):
        logits = run("shakespeare", ids(PROMPT), from_code(CODE), *changes).double().log_softmax(-1)
        return -float(logits[:-1].gather(1, logits.new_tensor(ids(PROMPT)[1:]).long()[:, None]).mean())

    other = loss(Scale("blocks.1.hook_mlp_out")) - loss()
    assert shown(at)[0]["values"][1][2] == pytest.approx(other, abs=2e-5)  # the others, beside what is changed
    click(at, 0, 0, 1)
    assert "changes" not in link_of(at) and shown(at)[0]["marked"] == []


def test_an_encoder_has_no_loss_and_writes_no_text_and_a_single_token_has_no_loss_but_a_logit():
    at = start("What if", **ENCODER | {"prompt": "To be"}, effect="loss")
    assert named(at.get("button_group"), "Effect on").options == ["Probability", "Logit"] and not said(at)
    assert "writes no text" in said_below(at)
    at = start("What if", prompt="T", effect="loss")
    assert "A single token has no loss" in said(at)
    checked(named(at.get("button_group"), "Effect on").set_value("logit").run())
    assert not said(at) and shown(at)


def test_the_text_that_was_written_can_be_asked_about():
    at = step(start(prompt="To"))
    whole = "To" + app.text_of(at)
    app.go(at, "What if")
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    likeliest = int(run("shakespeare", ids(whole))[-1].argmax())
    assert figure(at, "what_if_next")["layout"]["yaxis"]["ticktext"][0] == library.tokenizer("shakespeare").label(
        likeliest
    )


# The picture


numbers_or_none = st.floats(-1e6, 1e6) | st.just(float("nan"))
grids = arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers_or_none)
anything = st.none() | st.booleans() | st.integers(-3, 7) | st.floats() | st.text(max_size=2) | st.lists(st.integers())


def matrix_of(values, **more):
    rows, columns = values.shape
    return Matrix("", values, [f"layer {row}" for row in range(rows)], [f"head {at}" for at in range(columns)], **more)


def payload_of(matrix):
    words = {"name": "AblationEffects", "sentences": ("{cell}: {value}", "{cell}: −{value}"), "actions": ("do", "undo")}
    return build_payload([matrix], **words, limit=1.0)


@given(grids)
def test_numbers_arrive_with_five_digits_and_what_is_none_as_null(values):
    payload = json.loads(json.dumps(payload_of(matrix_of(values)), allow_nan=False))
    arrived = np.array([[np.nan if cell is None else cell for cell in row] for row in payload["matrices"][0]["values"]])
    np.testing.assert_allclose(arrived, values, rtol=1e-4)
    with pytest.raises(ValueError, match="names"):
        payload_of(matrix_of(values, row_labels=["0"] * (len(values) + 1)))


@given(st.dictionaries(st.sampled_from(["matrix", "row", "column", "x"]), anything) | anything)
def test_only_a_cell_that_is_there_is_chosen(value):
    values = np.zeros((2, 3))
    values[1, 1] = np.nan
    found = parsed(Cell, value)
    if found is not None and found.is_in([matrix_of(values)]):
        assert vars(found) == {name: value[name] for name in ("matrix", "row", "column")}
        assert found.matrix == 0 and np.isfinite(values[found.row, found.column])
    for (matrix, row, column), is_there in (
        ((0, 1, 2), True),
        ((0, 1, 1), False),
        ((0, 1, 3), False),
        ((1, 0, 0), False),
    ):
        cell = parsed(Cell, {"matrix": matrix, "row": row, "column": column})
        assert cell.is_in([matrix_of(values)]) == is_there


@given(any_configs())
def test_every_part_of_a_model_has_a_cell_of_its_own(config):
    model = tiny_model(config).eval()
    parts = ablation(model, (1, 2), (1, 2) if config.architecture == "encoder-decoder" else ()).parts
    values = np.arange(1.0, len(parts) + 1)
    placed = matrices_of(parts, values, parts[:1]) if parts else []
    found = {part: float(each.matrix.values[cell]) for each in placed for cell, part in each.parts.items()}
    assert found == dict(zip(parts, values, strict=True))
    for each in placed:
        assert np.isfinite(each.matrix.values).sum() == len(each.parts)
        assert {each.parts[cell] for cell in each.matrix.marked} == set(parts[:1]) & set(each.parts.values())
        for (row, column), part in each.parts.items():
            assert str(part.point.split("blocks.")[1][0]) in each.matrix.rows[row]
            assert each.matrix.columns[column] == ("feed-forward" if part.head is None else f"head {part.head}")


@given(arrays.arrays(np.float64, st.integers(0, 30), elements=st.floats(-100, 100)))
def test_colours_end_within_the_effects_and_never_at_zero(values):
    limit, largest = colour_limit(values), np.abs(values).max(initial=0)
    assert 0 < limit <= max(largest, 1.0) and (limit >= largest / 51 or limit == 1)


# Whatever the model, the link, the change


def test_a_model_without_attention_leads_on_to_one_that_has_it():
    at = start("What if", model="bigram")
    assert "This model has no layers" in said(at)
    app.press(at, "Go on to Rung")
    assert link_of(at)["model"] == "rung" and not said(at) and app.prompt(at)


@pytest.mark.parametrize(
    "change",
    ["without~norm~", "without~mask~", "without~positions~", "mean~blocks.0.hook_attn_out~~", f"{CODE[:-3]}-20"],
)
def test_no_change_shows_what_is_no_number(change):
    at = start("What if", prompt=PROMPT, changes=change)
    words = " ".join(element.value for element in [*at.markdown, *at.caption, *at.metric]).lower()
    assert not re.search(r"\b(nan|inf)\b", words) and not said(at)


def test_numbers_that_are_too_large_later_in_an_answer_are_a_sentence(monkeypatch):
    def overflow(self, tensor, first, last, begin, other):
        return tensor[:, first - begin : last - begin] * float("inf")

    monkeypatch.setattr(Scale, "_values", overflow)
    link = TRANSLATOR | {"changes": "scale~decoder.blocks.0.hook_mlp_out~~1~0.0", "place": 1}
    assert "overflow" in said(start("What if", **link))


def test_what_a_link_asks_is_in_the_link_again_and_what_there_is_not_is_said():
    at = start("What if", question="ladder", effect="logit", token=5)
    assert link_of(at).items() >= {"question": "ladder", "effect": "logit", "token": "5"}.items()
    at = start("What if", prompt=PROMPT, question="ablation", effect="logit", token=10**6)
    assert shown(at) and not said(at) and "token" not in link_of(checked(at.run()))
    assert link_of(start("What if", question="traced"))["question"] == "patching", "by its former name"
    at = start("What if", question="why", effect="all", token=-1)
    assert "question = “why”, but it can be ablation, patching" in said(at) and "the token must be a number" in said(at)
