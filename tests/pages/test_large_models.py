"""Tests what the app does differently for large models, with a tiny one that counts as large."""

import numpy as np
import pytest
import torch

from pages.ui.computations import activations
from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import PAGES, outline, said, start, step, text_of, use
from tests.tiny_models import save_chatty
from transformer import Scale, save_checkpoint
from transformer.api import ablation_and_patching, exports, generated_texts, open_models, outlines, tensors
from transformer.api import cache as api_cache
from transformer.api import prompt_pairs as suggestions
from transformer.api.pass_inputs import PassInputs
from transformer.checkpoints import weight_numbers

PROMPT = "the cat and the hat"


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=str)
def folder(request, tmp_path, monkeypatch):
    """Of a model that computes with these numbers."""
    use(monkeypatch, tmp_path)
    monkeypatch.setattr(weight_numbers, "LARGE", 0)
    save_checkpoint(tmp_path / "chatty", save_chatty(tmp_path), dtype=request.param)
    for module in (ablation_and_patching, outlines):
        monkeypatch.setattr(module, "LARGEST_VOCABULARY", 100)
    monkeypatch.setattr(generated_texts, "SMALL_VOCABULARY", 100)
    monkeypatch.setattr(tensors, "BY_ROW", 1000)
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    monkeypatch.setattr(outlines, "READ", 20)
    monkeypatch.setattr(open_models, "MANY_PARAMETERS", 0)
    return tmp_path


def test_every_page_opens(folder):
    for page in PAGES:
        at = start(page, model="chatty", prompt=PROMPT)
        assert not said(at)
        if page == "Generate":
            assert len(text_of(step(at))) >= 1
        if page == "Inside":
            lens = outline(at).tensors["lens"]
            assert (lens[:, :-5] == -1).all() and (lens[:, -5:] >= 0).all()


def test_a_row_is_what_the_whole_tensor_has_there(folder):
    model, tokens = library.opened("chatty"), (5, 9, 33, 7, 70)
    there = tensors.infos_of(model.checkpoint.model.config, len(tokens), 0)
    for name, place in (("logits", 2), ("probabilities", 4), ("embed.weight", 33)):
        assert tensors.is_by_row(there[name])
        part = tensors.part_of(f"{name}[{place}]", there)
        found = tensors.tensors(model, tokens, (), [part], ())[f"{name}[{place}]"]
        whole = exports.file_of(PassInputs(model, tokens), name).tensors[name]
        rounding = torch.finfo(model.checkpoint.model.unembed.weight.dtype).eps
        np.testing.assert_allclose(found, whole[place], atol=10 * rounding)


def test_what_parts_are_needed_for_is_kept_of_the_likeliest_tokens_and_measured_over_all(folder, monkeypatch):
    """Of 49,152 tokens, all logits without each of 300 parts are more than is remembered of all models together."""
    monkeypatch.setattr(ablation_and_patching, "CHOOSABLE", 40)
    model, tokens, also = library.opened("chatty"), (5, 9, 33, 7, 70), Scale("blocks.1.attn.hook_z", 2)
    few = activations.ablation(model, tokens, (), -1, 0, (also,))
    monkeypatch.setattr(ablation_and_patching, "LARGEST_VOCABULARY", 10**6)
    api_cache.clear()
    all_of_it = activations.ablation(model, tokens, (), -1, 0, (also,))
    assert len(few.tokens) == 40 < len(all_of_it.tokens) == model.checkpoint.model.config.vocab_size
    assert few.tokens.tolist() == np.argsort(-all_of_it.kept[0], kind="stable")[:40].tolist()
    for name in ("logits", "kept", "log_probabilities"):
        np.testing.assert_array_equal(getattr(few, name), getattr(all_of_it, name)[..., few.tokens])
    for name in ("loss", "totals", "moved"):
        np.testing.assert_array_equal(getattr(few, name), getattr(all_of_it, name))
    with_it, without = np.exp(all_of_it.log_probabilities)
    np.testing.assert_allclose([with_it.sum(1), without.sum(1)], 1, atol=1e-12)
    np.testing.assert_allclose(all_of_it.moved, (with_it * np.log(with_it / without)).sum(1), atol=1e-12)
    assert few.kept[few.parts.index(also), 0] != few.kept[0, 0]  # compared to the model that has it back


def test_another_prompt_is_suggested_without_reading_any(folder, monkeypatch):
    """One of equally many tokens; where no word has one of its kind, the page says what to do."""
    monkeypatch.setattr(suggestions, "_after", lambda *texts: pytest.fail("texts are tried on a large model"))
    encode = library.tokenizer("chatty").encode
    for prompt, expected in (("the dog and the hat", "the cat and the hat"), ("It was here.", None), ("Oh", None)):
        other = app.shown(start("What if", model="chatty", prompt=prompt, reads="plain", question="patching"))["about"]
        assert other["other"]["text"] == (expected or prompt) and other["other"]["suggested"] == expected
        assert ("Change a word" in (other["other"]["problem"] or "")) == (expected is None)
    pairs = other["other"]["pairs"]
    assert pairs and all(each["continues"] for each in pairs), "they are gone on with, not answered"
    assert all(len(set(map(len, map(encode, each["prompts"])))) == 1 for each in pairs)
    assert app.api().get("/models/chatty").json()["is_large"]
