"""Tests changed models as visitors see them: chips, undo, and every page."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.ui.frame import change_form
from pages.ui.models import activations, library
from pages.ui.number_format import percent
from tests import app_driver as app
from tests.app_driver import checked, choose, link_of, named, press, said, start, text_of, wish, write, writing
from transformer import MeanAblate, Sampling, Scale, SetAttention, Steer, Without, to_code, trace_pass
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


def changed_words(at):
    return [element.value.replace("\\", "") for element in at.markdown if "Changed" in element.value]


def engine(*interventions, text=PROMPT):
    """The model's own pass, changed, not by way of the app."""
    checkpoint = library.model("shakespeare")
    return trace_pass(checkpoint.model, checkpoint.tokenizer.encode(text), interventions=interventions)


def likeliest(*interventions):
    probabilities = engine(*interventions).tensors["probabilities"][-1]
    label = library.model("shakespeare").tokenizer.label(int(probabilities.argmax()))
    return f"“{label}” {percent(float(probabilities.max()))}"


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


class TestTheList:
    @app.every_page
    def test_it_is_on_every_page_and_says_so(self, page):
        at = start(page, prompt=PROMPT, changes=f"{code_of(HEAD)}!-{code_of(Without('mask'))}")
        assert chips(at) == {CHIP: True, "without the causal mask": False}
        changed, unchanged = (likeliest(*interventions) for interventions in ((HEAD,), ()))
        told = f":material/science: Changed: {CHIP}. After the prompt: {changed}; unchanged: {unchanged}."
        assert changed_words(at) == [told] and changed != unchanged
        assert not said(at)

    def test_a_chip_is_turned_off_and_on_taken_back_and_brought_back(self):
        at = start(prompt=PROMPT, changes=code_of(HEAD))
        checked(at.checkbox[0].uncheck().run())
        assert chips(at) == {CHIP: False} and not changed_words(at)
        assert link_of(at)["changes"] == f"-{code_of(HEAD)}"
        press(at, "Undo")
        assert chips(at) == {CHIP: True} and link_of(at)["changes"] == code_of(HEAD)
        press(at, "Remove this change")
        assert chips(at) == {} and "changes" not in link_of(at)
        press(at, "Undo")
        assert chips(at) == {CHIP: True}
        at = start(prompt=PROMPT, changes=code_of(*ALL))
        press(at, "Take all back")
        assert chips(at) == {}
        press(at, "Undo")
        assert list(chips(at)) == [str(each) for each in ALL]

    @pytest.mark.parametrize("change", MENU, ids=str)
    def test_a_chip_has_a_menu_of_what_fits_it(self, change):
        at = start(prompt=PROMPT, changes=f"-{code_of(change)}")
        for label, value, words in MENU[change]:
            at.session_state["change_menu_0"] = True
            checked(at.run())
            if value is None:
                press(at, label)
            else:
                widgets = [*at.number_input, *at.selectbox, *at.checkbox]
                (widget,) = [each for each in widgets if each.label == label]
                checked(widget.set_value(value).run())
            assert chips(at) == {words: False} and not said(at)  # one that is off stays off
            press(at, "Undo")
            assert chips(at) == {str(change): False}

    def test_a_menu_can_t_make_two_changes_of_the_same(self):
        at = start(prompt=PROMPT, changes=code_of(HEAD, replace(HEAD, head=1)))
        at.session_state["change_menu_1"] = True
        checked(at.run())
        choose(at, "Head", 0)
        assert "The change wasn't edited: another change in the list affects the same part." in said(at)
        assert list(chips(at)) == [CHIP, "layer 0, head 1 ablated"]

    def test_they_are_put_away_with_their_model_and_come_back_with_it(self):
        at = start(prompt=PROMPT, changes=code_of(HEAD))
        checked(at.checkbox[0].uncheck().run())
        choose(at, "Model", "martin-fierro")
        assert chips(at) == {} and "changes" not in link_of(at)
        choose(at, "Model", "shakespeare")
        assert chips(at) == {CHIP: False}
        press(at, "Undo")
        assert chips(at) == {CHIP: True}

    def test_a_position_that_the_text_doesn_t_have_is_said(self):
        change = Scale("blocks.0.hook_mlp_out", None, len(PROMPT))
        at = start(prompt=PROMPT, changes=code_of(HEAD, change))
        (sentence,) = [each.value.replace("\\", "") for each in at.caption if "No effect" in each.value]
        assert sentence == f"No effect on this text: {change}. The text is too short."
        at = app.step(at)
        assert not [each for each in at.caption if "No effect" in each.value]

    @pytest.mark.parametrize("page", ["Generate", "Attention", "Masks", "What if"])
    def test_numbers_too_large_to_be_computed_with_are_answered(self, page):
        model = library.model("shakespeare").model
        with torch.no_grad():  # as large as can be, while nothing is changed
            model.unembed.weight.mul_(3e37 / float(engine().tensors["logits"].abs().max()))
        at = start(page, prompt=PROMPT, changes=code_of(Scale("ln_final.hook_out", factor=20.0)))
        assert "numbers overflow" in said(at) and not changed_words(at)
        if page == "Generate":
            assert np.isfinite(writing(at).tensors["logits"]).all()

    def test_a_link_s_change_that_can_t_be_made_is_left_out_with_a_sentence(self):
        wrong = {
            "scale~blocks.9.attn.hook_z~0~~0.0": "this model computes no blocks.9.attn.hook_z",
            "scale~blocks.0.attn.hook_z~9~~0.0": "has no head 9",
            "scale~encoder.hook_embed~~3~0.0": "computes no encoder.hook_embed",
            "weigh~blocks.0.attn.hook_pattern~0~-3~0~0.5~1": "has no query -3",
            "from~hook_embed~~~999999~": "token 999999",
            "nonsense": "there is no change called 'nonsense'",
            "scale~a~b": "scale takes 4 values, and 2 are given",
        }
        for changes, sentence in wrong.items():
            at = start(prompt=PROMPT, changes=f"{changes}!{code_of(HEAD)}")
            assert sentence in said(at).replace("\\_", "_") and "left out" in said(at)
            assert chips(at) == {CHIP: True} and link_of(at)["changes"] == code_of(HEAD)
            press(at, "OK")
            assert not said(at)


class TestEveryPageShowsTheChangedModel:
    def test_generate_writes_with_it(self):
        at = start(prompt=PROMPT, changes=code_of(*ALL), tokens=24, seed=3)
        logits = engine(*ALL).tensors["logits"][-1].numpy()
        np.testing.assert_allclose(writing(at).tensors["logits"][-1], logits, atol=1e-4)
        at = write(at)
        steps = app.generated("shakespeare", app.ids(PROMPT), 24, interventions=ALL, temperature=0.8, seed=3)
        assert text_of(at) == app.decoded("shakespeare", steps)
        probabilities = writing(at).tensors["probability"][:24]
        np.testing.assert_allclose(probabilities, [each.probability for each in steps], atol=1e-4)
        at = app.step(start(prompt=PROMPT, changes=code_of(HEAD), temperature=0))
        best = int(engine(HEAD).tensors["logits"][-1].argmax())
        assert text_of(at) == library.tokenizer("shakespeare").decode([best])

    def test_a_text_goes_on_with_it_and_nothing_is_lost(self):
        at = write(start(prompt=PROMPT, tokens=6, temperature=0.5))
        first = text_of(at)
        before = writing(at).tensors["logits"]
        at.session_state["visitor"].changes = start(changes=code_of(HEAD)).session_state["visitor"].changes
        checked(at.run())
        assert text_of(at) == first  # as it was, but told by the changed model
        found = engine(HEAD, text=PROMPT + first).tensors["logits"].numpy()[len(PROMPT) - 1 :]
        np.testing.assert_allclose(writing(at).tensors["logits"], found, atol=1e-4)
        at = write(at)
        longer = text_of(at)
        assert longer.startswith(first) and len(longer) > len(first)
        checked(at.checkbox[0].uncheck().run())
        assert text_of(at) == longer  # until the tab says that it has a text of the unchanged model
        np.testing.assert_allclose(writing(at).tensors["logits"][: len(first)], before[:-1], atol=1e-4)

    @pytest.mark.parametrize("page", ["Attention", "Inside"])
    def test_an_instrument_asks_about_it(self, page):
        at = start(page, prompt=PROMPT, changes=code_of(*ALL))
        assert app.given(at)["request"]["changes"] == code_of(*ALL)
        about = (app.overview if page == "Attention" else app.outline)(at).metadata
        assert {place["words"] for place in about["changed"]} == set(map(str, ALL))
        assert [each["code"] for each in about["interventions"]] == list(map(to_code, ALL))

    def test_masks(self):
        plain, changed = (app.open_folds(start("Masks", prompt=PROMPT, changes=text)) for text in ("", code_of(HEAD)))
        losses = [named(at.metric, "Mean loss with the mask").value for at in (plain, changed)]
        tokens = library.tokenizer("shakespeare").encode(PROMPT)
        rows = engine(HEAD).tensors["logits"][:-1]
        loss = torch.nn.functional.cross_entropy(rows, torch.tensor(tokens[1:]))
        assert losses[1] == f"{float(loss):.4f} nats" != losses[0]
        open_ = app.open_folds(start("Masks", prompt=PROMPT, changes=code_of(Without("mask"))))
        assert "changed now: without the causal mask" in " ".join(each.value for each in open_.info)
        deltas = [named(at.metric, "Mean loss without it").delta for at in (plain, open_)]
        assert deltas[0] == deltas[1] != "+0.0000 nats"


def test_past_the_context_another_prompt_is_still_read_once(monkeypatch):
    read, recorded = [], interventions.recorded
    monkeypatch.setattr(interventions, "recorded", lambda *args: read.append(args) or recorded(*args))
    tokens = tuple(library.tokenizer("shakespeare").encode(2 * PROMPT))  # 20, of which the model reads 16
    found = scores(library.opened("shakespeare"), tokens, (), 1, Sampling(), (STEERED,)).tensors["logits"]
    assert len(read) == 2  # toward and against
    for end in (3, 16, 18, 19):
        last = activations.next_token("shakespeare", tokens[:end], (), (STEERED,))
        np.testing.assert_allclose(found[end - 1], last, atol=1e-5)


def open_form(at):
    """Open what adds a change, which closes once one is made."""
    at.session_state["popover_changes"] = True
    return checked(at.run())


class TestTheForm:
    @staticmethod
    def opened(**link):
        return open_form(start(**link))

    def test_it_opens_on_the_head_that_is_looked_at_until_another_is_chosen(self):
        def wanted(at):
            return [each.value.replace("\\", "") for each in at.caption if "ablated" in each.value]

        at = self.opened(prompt=PROMPT, layer=1, head=1)
        assert wanted(at) == ["The change: Layer 1, head 1 ablated."]
        choose(at, "Where", 0)
        assert wanted(at) == ["The change: Layer 0, head 1 ablated."]
        for what, shown in (("attention", "Attention of layer 1"), ("feed-forward", "Feed-forward of layer 1")):
            at.session_state["popover_changes"] = False
            checked(at.run())
            choose(open_form(at), "What", what)
            assert wanted(at) == [f"The change: {shown} ablated."]

    def test_everything_it_offers_can_be_done(self):
        at = self.opened(prompt=PROMPT)
        press(at, "Change this")
        assert chips(at) == {CHIP: True}
        press(at, "Undo")
        for what in ("attention", "feed-forward", "stream", "embedding", change_form.RULE, change_form.WEIGHT):
            choose(open_form(at), "What", what)
            press(at, "Change this")
        choose(open_form(at), "What", "head")
        for how in change_form.HOW:
            choose(open_form(at), "How", how)
            for box in at.text_area:
                if box.label == "Prompt":
                    continue
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
        for page in app.PAGES:
            app.go(at, page)

    def test_another_prompt_that_can_t_be_read_is_answered(self):
        at = self.opened(prompt=PROMPT)
        choose(at, "How", "replace")
        assert "Type a prompt" in said(at) + " ".join(each.value for each in at.info)
        for text, sentence in (("é", "has never seen"), ("a" * 17, "has 17 tokens, and this model reads at most 16")):
            checked(named(at.text_area, "The other prompt").set_value(text).run())
            assert sentence in said(at)
        checked(named(at.text_area, "The other prompt").set_value("KING").run())
        assert any("4 tokens, and yours 10" in each.value for each in at.caption)
        checked(named(at.text_area, "The other prompt").set_value("K").run())
        assert any("1 token, and yours 10" in each.value for each in at.caption)


class TestWhatABrowserAsksFor:
    @staticmethod
    def asked(at, change):
        return checked(wish(at, "change", change).run())

    def test_a_menu_s_change_is_made_and_taken_back(self):
        at = start("Attention", prompt=PROMPT)
        wish = {"model": "shakespeare", "add": [code_of(HEAD)], "remove": []}
        assert chips(self.asked(at, wish)) == {CHIP: True}
        assert chips(self.asked(at, wish)) == {CHIP: True}  # told twice
        assert chips(self.asked(at, {**wish, "model": "martin-fierro"})) == {CHIP: True}
        assert chips(self.asked(at, {**wish, "add": [], "remove": [code_of(HEAD)]})) == {}

    def test_no_wish_is_too_strange(self):
        at = start("Attention", prompt=PROMPT)
        leaves = st.none() | st.integers() | st.text(max_size=9) | st.just(code_of(Scale("x")))
        names = st.sampled_from(["model", "add"])

        @settings(max_examples=4)
        @given(st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner)))
        def tell(wish):
            for each in (wish, {"model": "shakespeare", "add": wish, "remove": wish}):
                assert chips(self.asked(at, each)) == {}

        tell()
