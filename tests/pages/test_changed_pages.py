"""Tests changed models as visitors see them: chips, undo, and every page."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pages.ui.computations import activations
from pages.ui.frame import change_form
from pages.ui.models import library
from pages.ui.number_format import percent
from tests import app_driver as app
from tests.app_driver import checked, choose, link_of, named, press, said, start, text_of, write, writing
from transformer import MeanAblate, Sampling, Scale, SetAttention, Steer, Without, to_code
from transformer.api.generated_texts import scores
from transformer.inference import interventions

pytestmark = pytest.mark.usefixtures("folder")
PROMPT = "ROMEO:\nAye"
HEAD = Scale("blocks.0.attn.hook_z", 0)
ALL = (HEAD, Without("mask"), SetAttention("blocks.1.attn.hook_pattern", 1, 5, 2, 0.75))
STEERED = Steer("blocks.1.hook_resid_pre", tokens=(1, 2), against=(3, 4), factor=2.0)
WEIGHED = SetAttention("blocks.0.attn.hook_pattern", 1, 3, 2, 0.25)
CHIP = "layer 0, head 0 ablated"


def code_of(*interventions):
    return "!".join(map(to_code, interventions))


def chips(at):
    found = {box.label.replace("\\", ""): box.value for box in at.checkbox}
    of_the_form = ("At one position only", "The other keys share the rest")
    return {label: on for label, on in found.items() if label not in of_the_form}


def captions(at):
    return " ".join(each.value.replace("\\", "") for each in at.caption)


def logits(*interventions, text=PROMPT):
    """The model's own, changed, not by way of the app."""
    return app.logits("shakespeare", app.ids(text), *interventions)


def likeliest(*interventions):
    probabilities = logits(*interventions)[-1].softmax(-1)
    label = library.model("shakespeare").tokenizer.label(int(probabilities.argmax()))
    return f"“{label}” {percent(float(probabilities.max()))}"


@app.every_page
def test_every_page_says_what_is_changed_and_shows_the_changed_model(page):
    off = Without("norm")
    at = start(page, prompt=PROMPT, changes=f"{code_of(*ALL)}!-{code_of(off)}")
    assert chips(at) == {**{str(each): True for each in ALL}, str(off): False}
    told = f"Changed: {'; '.join(map(str, ALL))}. After the prompt: {likeliest(*ALL)}; unchanged: {likeliest()}."
    (words,) = [element.value.replace("\\", "") for element in at.markdown if "Changed" in element.value]
    assert words == f":material/science: {told}" and likeliest() != likeliest(*ALL)
    assert not at.warning and not at.error
    if page == "Generate":
        np.testing.assert_allclose(writing(at).tensors["logits"][-1], logits(*ALL)[-1], atol=1e-4)
        steps = app.generated("shakespeare", app.ids(PROMPT), 24, interventions=ALL, temperature=0.8, seed=3)
        app.turn(at, tokens=24, seed=3)
        assert text_of(write(at)) == app.decoded("shakespeare", steps)
    if page in ("Attention", "Inside"):
        assert app.given(at)["request"]["changes"] == code_of(*ALL)
        about = (app.overview if page == "Attention" else app.outline)(at).metadata
        assert [each["code"] for each in about["interventions"]] == list(map(to_code, ALL))
        assert {place["words"] for place in about["changed"]} == set(map(str, ALL))
    if page == "Masks":
        with_mask = (ALL[0], ALL[2])  # what is taken away anyway is there in what is compared with
        loss = torch.nn.functional.cross_entropy(logits(*with_mask)[:-1], torch.tensor(app.ids(PROMPT)[1:]))
        assert "changed now: without the causal mask" in said(at)
        assert named(app.open_folds(at).metric, "Mean loss with the mask").value == f"{float(loss):.4f} nats"


def test_a_chip_is_turned_off_and_on_taken_back_and_put_away_with_its_model():
    at = start(prompt=PROMPT, changes=code_of(HEAD))
    checked(at.checkbox[0].uncheck().run())
    assert chips(at) == {CHIP: False} and link_of(at)["changes"] == f"-{code_of(HEAD)}"
    choose(at, "Model", "martin-fierro")
    assert chips(at) == {} and "changes" not in link_of(at)
    choose(at, "Model", "shakespeare")
    assert chips(at) == {CHIP: False}
    press(at, "Undo")
    assert chips(at) == {CHIP: True} and link_of(at)["changes"] == code_of(HEAD)
    press(at, "Remove this change")
    assert chips(at) == {} and "changes" not in link_of(at)
    press(at, "Undo")
    assert chips(at) == {CHIP: True}
    at = start(prompt=PROMPT, changes=code_of(*ALL[:2]))
    press(at, "Take all back")
    assert chips(at) == {}
    press(at, "Undo")
    assert list(chips(at)) == [str(each) for each in ALL[:2]]


MENU = {
    HEAD: [
        ("Factor", 2.0, "layer 0, head 0 × 2"),
        ("Head", 1, "layer 0, head 1 ablated"),
        ("Where", "blocks.1.attn.hook_z", "layer 1, head 0 ablated"),
        ("Its opposite", None, "layer 0, head 0 × -1"),
        ("Its mean over the text", None, "layer 0, head 0 replaced by its mean"),
        ("At one position only", True, "layer 0, head 0 at position 0 ablated"),
    ],
    Scale("blocks.0.hook_mlp_out", None, 2): [
        ("Position", 4, "feed-forward of layer 0 at position 4 ablated"),
        ("At one position only", False, "feed-forward of layer 0 ablated"),
    ],
    MeanAblate("blocks.0.hook_mlp_out"): [("Ablate it", None, "feed-forward of layer 0 ablated")],
    STEERED: [("Its opposite", None, "the stream before layer 1 + -2 × the difference of two prompts")],
    WEIGHED: [
        ("Key: its position", 1, "layer 0, head 1: query 3 gives key 1 the weight 0.25"),
        ("Its opposite", None, "layer 0, head 1: query 3 gives key 2 the weight 0.75"),
    ],
    Without("scale"): [("Where", "blocks.1.", "without ÷ √d_head in layer 1")],
}
"""What the menu of a chip offers, the choice, and what the chip then says."""


def pick(at, number, label, value):
    """Open the menu of the change of this number; press, or choose, one thing that it offers."""
    at.session_state[f"change_menu_{number}"] = True
    checked(at.run())
    if value is None:
        return press(at, label)
    return checked(named([*at.number_input, *at.selectbox, *at.checkbox], label).set_value(value).run())


@pytest.mark.parametrize("change", MENU, ids=str)
def test_a_chip_has_a_menu_of_what_fits_it(change):
    at = start(prompt=PROMPT, changes=f"-{code_of(change)}")
    for label, value, words in MENU[change]:
        pick(at, 0, label, value)
        assert chips(at) == {words: False} and not said(at)  # one that is off stays off
        press(at, "Undo")
        assert chips(at) == {str(change): False}


def test_a_menu_can_t_make_two_changes_of_the_same():
    at = pick(start(prompt=PROMPT, changes=code_of(HEAD, replace(HEAD, head=1))), 1, "Head", 0)
    assert "The change wasn't edited: another change in the list affects the same part." in said(at)
    assert list(chips(at)) == [CHIP, "layer 0, head 1 ablated"]


def test_a_link_s_change_that_can_t_be_made_or_has_no_effect_is_told_of():
    late = Scale("blocks.0.hook_mlp_out", None, len(PROMPT))
    at = start(prompt=PROMPT, changes=f"scale~blocks.0.attn.hook_z~9~~0.0!{code_of(HEAD, late)}!nonsense!scale~a~b")
    for sentence in ("has no head 9", "“nonsense”, is left out: there is no change called", "1 more are left out"):
        assert sentence in said(at)
    assert chips(at) == {CHIP: True, str(late): True} and link_of(at)["changes"] == code_of(HEAD, late)
    assert f"No effect on this text: {late}. The text is too short." in captions(at)
    assert "No effect" not in captions(app.step(at))
    press(at, "OK")
    assert not said(at)


@pytest.mark.parametrize("page", ["Generate", "Attention", "Masks", "What if"])
def test_numbers_too_large_to_be_computed_with_are_answered(page):
    model = library.model("shakespeare").model
    with torch.no_grad():  # as large as can be, while nothing is changed
        model.unembed.weight.mul_(3e37 / float(logits().abs().max()))
    at = start(page, prompt=PROMPT, changes=code_of(Scale("ln_final.hook_out", factor=20.0)))
    assert "numbers overflow" in said(at)
    if page == "Generate":
        assert np.isfinite(writing(at).tensors["logits"]).all()


def test_a_text_goes_on_with_the_changed_model_and_nothing_is_lost():
    at = write(start(prompt=PROMPT, tokens=6, temperature=0.5))
    first = text_of(at)
    before = writing(at).tensors["logits"]
    at.session_state["visitor"].changes = start(changes=code_of(HEAD)).session_state["visitor"].changes
    checked(at.run())
    assert text_of(at) == first  # as it was, but told by the changed model
    changed = logits(HEAD, text=PROMPT + first)[len(PROMPT) - 1 :]
    np.testing.assert_allclose(writing(at).tensors["logits"], changed, atol=1e-4)
    longer = text_of(write(at))
    assert longer.startswith(first) and len(longer) > len(first)
    checked(at.checkbox[0].uncheck().run())
    assert text_of(at) == longer  # until the tab says that it has a text of the unchanged model
    np.testing.assert_allclose(writing(at).tensors["logits"][: len(first)], before[:-1], atol=1e-4)


def test_past_the_context_another_prompt_is_still_read_once(monkeypatch):
    read, recorded = [], interventions.recorded
    monkeypatch.setattr(interventions, "recorded", lambda *args: read.append(args) or recorded(*args))
    tokens = tuple(app.ids(2 * PROMPT))  # 20, of which the model reads 16
    found = scores(library.opened("shakespeare"), tokens, (), 1, Sampling(), (STEERED,)).tensors["logits"]
    assert len(read) == 2  # toward and against
    for end in (3, 16, 18, 19):
        last = activations.next_token("shakespeare", tokens[:end], (), (STEERED,))
        np.testing.assert_allclose(found[end - 1], last, atol=1e-5)


def open_form(at):
    """Open what adds a change, which closes once one is made."""
    at.session_state["popover_changes"] = False
    checked(at.run())
    at.session_state["popover_changes"] = True
    return checked(at.run())


def test_the_form_opens_on_the_head_that_is_looked_at_until_another_is_chosen():
    at = open_form(start(prompt=PROMPT, layer=1, head=1))
    assert "The change: Layer 1, head 1 ablated." in captions(at)
    choose(at, "Where", 0)
    assert "The change: Layer 0, head 1 ablated." in captions(at)
    for what, shown in (("attention", "Attention of layer 1"), ("feed-forward", "Feed-forward of layer 1")):
        choose(open_form(at), "What", what)
        assert f"The change: {shown} ablated." in captions(at)


def test_everything_that_the_form_offers_can_be_done():
    at = start(prompt=PROMPT)
    for what in ("attention", "feed-forward", "stream", "embedding", change_form.RULE, change_form.WEIGHT):
        choose(open_form(at), "What", what)
        press(at, "Change this")
    choose(open_form(at), "What", "head")
    for how in change_form.HOW:
        choose(open_form(at), "How", how)
        for box in at.text_area:
            if box.label != "Prompt":
                box.set_value("KING" if box.label != "Away from" else "ROME")
        checked(at.run())
        press(at, "Change this")
    assert list(chips(at)) == [
        "attention of layer 0 ablated",
        "feed-forward of layer 0 ablated",
        "the stream before layer 0 ablated",
        "the embedding ablated",
        "without the causal mask",
        "layer 0, head 0: query 0 gives key 0 the weight 1",
        "layer 0, head 0 × 1",
        "layer 0, head 0 replaced by its mean",
        "layer 0, head 0 as on another prompt",
        "layer 0, head 0 + 1 × the difference of two prompts",
    ]


def test_what_the_form_can_t_read_as_another_prompt_is_answered():
    at = choose(open_form(start(prompt=PROMPT)), "How", "replace")
    for text, sentence in (
        ("", "Type a prompt into “The other prompt”."),
        ("é", "has never seen"),
        ("a" * 17, "has 17 tokens, and this model reads at most 16"),
        ("K", "1 token, and yours 10"),
        ("KING", "4 tokens, and yours 10"),
    ):
        checked(named(at.text_area, "The other prompt").set_value(text).run())
        assert sentence in said(at) + captions(at)
        assert (sentence in captions(at)) == ("Change this" in [button.label for button in at.button])


def test_an_instrument_s_change_is_made_once_for_its_model_and_taken_back():
    at = start("Attention", prompt=PROMPT)
    wish = {"model": "shakespeare", "add": [code_of(HEAD)], "remove": []}
    for asked, there in (
        ({**wish, "model": "martin-fierro"}, {}),
        ({**wish, "add": [code_of(Scale("x")), "", 3, None]}, {}),
        (wish, {CHIP: True}),
        (wish, {CHIP: True}),  # told twice
        ({**wish, "add": [], "remove": wish["add"]}, {}),
    ):
        assert chips(app.wish(at, "change", asked)) == there
