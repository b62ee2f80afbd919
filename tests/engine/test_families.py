"""Tests pretrained families at tiny sizes against transformers."""

import dataclasses
from pathlib import Path

import pytest
import torch

from tests import pretrained_models as tiny
from tests.helpers import MODERN, tiny_model
from tests.pretrained_models import transformers
from tests.tiny_models import save_chatty
from transformer import (
    Checkpoint,
    CheckpointError,
    ModelCard,
    Sampling,
    Tokenizer,
    generate,
    load_checkpoint,
    save_checkpoint,
)
from transformer.checkpoints import weight_numbers
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained

SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints"
GREEDY = Sampling(temperature=0)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def some_inputs(model, seed: int = 0) -> list[torch.Tensor]:
    """What the model reads: tokens, tokens and segments, or a source and a target."""
    config, generator = model.config, torch.Generator().manual_seed(seed)
    tokens, target = (torch.randint(tiny.VOCABULARY, (2, pos), generator=generator) for pos in (14, 9))
    if config.architecture == "encoder-decoder":
        return [tokens, target]
    if not config.is_causal and config.pad_token_id is not None:  # whose positions don't count padding
        tokens[tokens == config.pad_token_id] = 9
    return [tokens, *([torch.randint(config.n_segments, (2, 14), generator=generator)] if config.n_segments else [])]


ALL = [(family, seed) for family in FAMILIES for seed in tiny.seeds(family)]


@pytest.fixture(scope="module", params=ALL, ids=str)
def both(request, tmp_path_factory):
    """(theirs, ours, inputs)."""
    family, seed = request.param
    folder = tmp_path_factory.mktemp(family)
    model = tiny.theirs(family, tiny.drawn(family, seed), seed)
    tiny.save(folder, model)
    if FAMILIES[family].shape == "encoder-decoder":  # a Marian's positions as they're read
        model = type(model).from_pretrained(folder, attn_implementation="eager")
    ours = load_pretrained(folder)
    return model, ours, some_inputs(ours.model, seed)


@torch.no_grad()
def test_logits_and_patterns_are_those_of_transformers(both):
    model, ours, inputs = both
    has_patterns = not getattr(model.config, "alibi", False)  # of which it gives out others than it uses
    expected = tiny.logits_of(model, inputs, output_attentions=has_patterns)
    logits, cache = ours.model.run_with_cache(*inputs, names_filter=lambda name: name.endswith("hook_pattern"))
    for found in (logits, ours.model(*inputs)):  # step by step, and in one call
        close(found, expected.logits)
    if not has_patterns:
        return
    kinds = {"encoder.": "encoder_attentions", "cross_attn": "cross_attentions", "": "decoder_attentions"}
    kinds = kinds if len(inputs) > 1 and ours.model.config.is_causal else {"": "attentions"}
    patterns = {kind: list(expected[name]) for kind, name in kinds.items()}
    for name, pattern in cache.items():
        of_theirs = patterns[next(kind for kind in kinds if kind in name)].pop(0)
        torch.testing.assert_close(pattern, of_theirs, atol=1e-5, rtol=0)
    assert not any(patterns.values())


@pytest.mark.parametrize(
    "both", [each for each in ALL if FAMILIES[each[0]].shape != "decoder-only"], indirect=True, ids=str
)
@torch.no_grad()
def test_an_attention_mask_hides_padding_as_in_transformers(both):
    """After a source; before or after the tokens of an encoder."""
    model, ours, (tokens, *rest) = both
    config, places = ours.model.config, torch.arange(14).repeat(2, 1)
    if config.architecture == "encoder-decoder":
        mask = (places < 9) | (torch.arange(2)[:, None] == 0)
        expected = tiny.logits_of(model, [tokens, *rest], attention_mask=mask.long()).logits
        close(ours.model(tokens, *rest, attention_mask=mask.long()), expected)
        return
    for mask in (places < 9, places >= 5):
        padded, own = tokens.where(mask, config.pad_token_id or 0), {}
        if config.pad_token_id is None:  # its padding would tell it
            own = {"position_ids": (places - (~mask).sum(-1, keepdim=True) * ~mask[:, :1]).clamp(min=0)}
        expected = tiny.logits_of(model, [padded, *rest], attention_mask=mask.long(), **own).logits
        close(ours.model(padded, *rest, attention_mask=mask.long())[mask], expected[mask])


@torch.no_grad()
def test_written_again_all_open_it_with_equal_logits(both, tmp_path):
    _, ours, inputs = both
    expected = ours.model(*inputs)
    family = export_pretrained(tmp_path / "out", ours)
    again = getattr(transformers, family.architecture).from_pretrained(tmp_path / "out")
    assert again.config.model_type == family.model_type
    close(tiny.logits_of(again, inputs).logits, expected)
    back = load_pretrained(tmp_path / "out")
    torch.testing.assert_close(back.model(*inputs), expected, atol=1e-5, rtol=0)
    for name in ("start_tokens", "stop_tokens", "mask_token_id", "parameters"):
        assert getattr(back.card, name) == getattr(ours.card, name), name


@pytest.mark.parametrize("both", [(name, tiny.seeds(name)[0]) for name in FAMILIES], indirect=True, ids=str)
@torch.no_grad()
def test_kept_as_a_checkpoint_it_is_the_same(both, tmp_path):
    _, ours, inputs = both
    save_checkpoint(tmp_path / "kept", ours)
    kept = load_checkpoint(tmp_path / "kept")
    assert kept.card == ours.card and torch.equal(kept.model(*inputs), ours.model(*inputs))


def written(ours: Checkpoint, source, count: int) -> list[int]:
    """What an encoder–decoder writes greedily, what it begins with included."""
    asked = {"max_new_tokens": count, "sampling": GREEDY, "stop_tokens": ours.card.stop_tokens}
    steps = generate(ours.model, ours.card.start_tokens, source=source, **asked)
    return [*ours.card.start_tokens, *(step.token_id for step in steps)]


WRITING = [(name, tiny.seeds(name)[0]) for name, family in FAMILIES.items() if family.shape != "encoder-only"]


@pytest.mark.parametrize("both", WRITING, indirect=True, ids=str)
@torch.no_grad()
def test_what_is_written_with_a_cache_is_what_transformers_writes(both):
    model, ours, (first, *_) = both
    asked = {"max_new_tokens": 8, "do_sample": False, "num_beams": 1}
    (expected,) = model.generate(first[:1], attention_mask=torch.ones(1, 14), **asked).tolist()
    if ours.model.config.architecture == "decoder-only":
        steps = generate(ours.model, first[:1], max_new_tokens=8, sampling=GREEDY)
        assert [step.token_id for step in steps] == expected[14:]
        return
    starts = ours.card.start_tokens
    assert starts == ((tiny.START,) if model.generation_config.forced_bos_token_id is None else (tiny.START, 5))
    assert written(ours, first[0], 9 - len(starts)) == expected


AS_BERT = {"architecture": "encoder-only", "norm": "post", "embed_norm": True, "masked_word_head": True}
AS_MODERN = {**AS_BERT, "norm": "pre", "norm_first_input": False, "mlp_gate": True, "positions": "rotary"}


def of_ours(**fields) -> Checkpoint:
    """A model of ours; its last token, where it is an encoder, stands for a masked word."""
    card = ModelCard(title="x", mask_token_id=10 if fields.get("architecture") == "encoder-only" else None)
    return Checkpoint(tiny_model(**fields), Tokenizer.of_characters("abcdefghij", ["[mask]"]), card)


@pytest.mark.parametrize(
    "fields, family",
    [
        ({"positions": "learned"}, "gpt2"),
        ({"positions": "rotary", "tie_embeddings": True}, "gpt_neox"),  # neighbours are turned: rows change places
        ({"positions": "rotary", "rotary_dims": 2, "parallel_residual": True}, "gpt_neox"),
        ({**MODERN["llama"], "n_kv_heads": 1, "rotary_pairs": "neighbours", "tie_embeddings": False}, "llama"),
        ({**AS_BERT, "positions": "learned", "n_segments": 2}, "bert"),
        ({**AS_BERT, "positions": "sinusoidal", "tie_embeddings": True, "attention_bias": False}, "bert"),
        ({**AS_MODERN, "attention_windows": (0, 3), "tie_embeddings": True}, "modernbert"),
        ({**AS_MODERN, "rotary_pairs": "halves", "mlp_bias": False, "unembed_bias": True}, "modernbert"),
    ],
)
@torch.no_grad()
def test_a_model_of_ours_goes_out_to_the_family_that_can_express_it(fields, family, tmp_path):
    ours, tokens = of_ours(**fields), torch.randint(11, (2, 8))
    assert export_pretrained(tmp_path / "out", ours).model_type == family
    again = getattr(transformers, FAMILIES[family].architecture).from_pretrained(tmp_path / "out")
    close(again(tokens).logits, ours.model(tokens))
    back = load_pretrained(tmp_path / "out")
    torch.testing.assert_close(back.model(tokens), ours.model(tokens), atol=1e-5, rtol=0)
    assert back.card.mask_token_id == ours.card.mask_token_id


@pytest.mark.parametrize(
    "name, family",
    [
        *(("martin-fierro", "opt"), ("shakespeare", "starcoder2")),
        *(("number-words-en-es", "marian"), ("next-vowel", "marian")),
    ],
)
@torch.no_grad()
def test_shipped_models_go_out_too(name, family, tmp_path):
    """Biases that they haven't are zeros there, a sinusoidal table is a learned one, neighbours are halves."""
    shipped = load_checkpoint(SHIPPED / name)
    assert export_pretrained(tmp_path / "out", shipped).model_type == family
    again = getattr(transformers, FAMILIES[family].architecture).from_pretrained(tmp_path / "out")
    prompt, words = shipped.card.examples[0], transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids, end = shipped.tokenizer.encode(prompt), shipped.card.end_token_id
    if family != "marian":
        assert words(prompt)["input_ids"] == ids
        close(again(torch.tensor([ids])).logits, shipped.model(torch.tensor([ids])))
        return
    batch = words([prompt], return_tensors="pt")
    assert batch["input_ids"][0].tolist() in (ids, [*ids, end])
    close(again(**batch, decoder_input_ids=torch.tensor([[shipped.card.start_token_id]])).logits, shipped([prompt]))
    found, (expected,) = load_pretrained(tmp_path / "out"), again.generate(**batch, do_sample=False, max_new_tokens=8)
    assert written(found, found.tokenizer.encode(prompt), 8) == expected.tolist()


@pytest.mark.parametrize(
    "fields, known",
    [
        *(({"norm": "none"}, ""), ({"positions": "none"}, ""), ({"residual": False}, "")),
        ({"architecture": "encoder-decoder", "positions": "rotary"}, ""),
        ({**AS_BERT, "norm": "pre"}, r"BERT \(its norms come after each sublayer, on the stream\), .*ModernBERT"),
        ({**AS_BERT, "masked_word_head": False}, r"BERT \(it has a norm on its embeddings, and a head"),
    ],
)
def test_what_no_family_can_express_is_said_and_nothing_is_written(fields, known, tmp_path):
    with pytest.raises(CheckpointError, match=f"No family that is known has models of this shape; known are {known}"):
        export_pretrained(tmp_path / "out", of_ours(**fields))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("strip", [False, True])
def test_an_exported_chat_model_is_asked_as_before(strip, tmp_path):
    chatty = save_chatty(tmp_path)
    parts = {**chatty.card.chat, "before": 'A "quote" \\ {{ x }}\n' + chatty.card.chat["before"]}
    parts |= {"strip": True} if strip else {}
    export_pretrained(tmp_path / "out", dataclasses.replace(chatty, card=dataclasses.replace(chatty.card, chat=parts)))
    again, theirs = load_pretrained(tmp_path / "out"), transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert again.card.chat == parts and again.card.stop_tokens == chatty.card.stop_tokens
    assert theirs.eos_token_id == chatty.card.end_token_id
    asked = {"tokenize": False, "add_generation_prompt": True}
    text = theirs.apply_chat_template([{"role": "user", "content": " Hi "}], **asked)
    assert text == f"{parts['before']}{'Hi' if strip else ' Hi '}{parts['after']}"
    with pytest.raises(Exception, match="for one message"):
        theirs.apply_chat_template([{"role": "user", "content": "Hi"}] * 2, **asked)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3_text", "falcon", "bloom", "olmo2", "t5", "marian"])
@torch.no_grad()
def test_a_large_model_of_16_bits_computes_in_them_as_transformers_does(family, tmp_path, monkeypatch):
    dtype, apart = (torch.float16, 0.02) if family in ("llama", "falcon") else (torch.bfloat16, 0.1)
    monkeypatch.setattr(weight_numbers, "LARGE", 0)
    model = tiny.theirs(family, tiny.drawn(family, tiny.seeds(family)[0]), 1).to(dtype)
    tiny.save(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    model = type(model).from_pretrained(tmp_path, dtype=dtype)
    ours = load_pretrained(tmp_path)
    inputs = [each[:1, :9] for each in some_inputs(ours.model)]
    assert {each.dtype for each in (*ours.model.parameters(), ours.model(*inputs))} == {dtype}
    torch.testing.assert_close(ours.model(*inputs), tiny.logits_of(model, inputs).logits, atol=apart, rtol=0)
