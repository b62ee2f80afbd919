"""Tests changed models as visitors see them: what is said, and every page's numbers."""

import numpy as np
import pytest
import torch

from pages.ui.computations import activations
from pages.ui.models import library
from pages.ui.number_format import percent
from tests import app_driver as app
from tests.app_driver import named, said, start, text_of, write, writing
from transformer import Sampling, Scale, SetAttention, Steer, Without, to_code
from transformer.api.generated_texts import scores
from transformer.inference import interventions

pytestmark = pytest.mark.usefixtures("folder")
PROMPT = "ROMEO:\nAye"
HEAD = Scale("blocks.0.attn.hook_z", 0)
ALL = (HEAD, Without("mask"), SetAttention("blocks.1.attn.hook_pattern", 1, 5, 2, 0.75))
STEERED = Steer("blocks.1.hook_resid_pre", tokens=(1, 2), against=(3, 4), factor=2.0)


def code_of(*interventions):
    return "!".join(map(to_code, interventions))


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
    told = f"Changed: {'; '.join(map(str, ALL))}. After the prompt: {likeliest(*ALL)}; unchanged: {likeliest()}."
    assert app.shown(at)["effect"] == told and likeliest() != likeliest(*ALL)
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


def test_a_link_s_change_that_can_t_be_made_or_has_no_effect_is_told_of():
    late = Scale("blocks.0.hook_mlp_out", None, len(PROMPT))
    at = start(prompt=PROMPT, changes=f"scale~blocks.0.attn.hook_z~9~~0.0!{code_of(HEAD, late)}!nonsense!scale~a~b")
    for sentence in ("layer 0, head 9 ablated. Reason: blocks.0.attn.hook_z has no head 9.", "2 more are left out"):
        assert sentence in said(at)
    assert f"No effect on this text: {late}. The text is too short." in said(at)
    assert "No effect" not in said(app.step(at))


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
    app.look_at(at, changes=code_of(HEAD))
    assert text_of(at) == first  # as it was, but told by the changed model
    changed = logits(HEAD, text=PROMPT + first)[len(PROMPT) - 1 :]
    np.testing.assert_allclose(writing(at).tensors["logits"], changed, atol=1e-4)
    longer = text_of(write(at))
    assert longer.startswith(first) and len(longer) > len(first)
    app.look_at(at, changes=f"-{code_of(HEAD)}")
    assert text_of(at) == longer
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
