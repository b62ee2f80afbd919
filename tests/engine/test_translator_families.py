"""Tests encoder–decoders of other people at tiny sizes against transformers."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.engine.test_families import (
    ACTIVATIONS,
    CONTEXT,
    ROOT,
    TRUE_OR_FALSE,
    VOCABULARY,
    Spread,
    save,
    seeds,
    theirs,
    transformers,
)
from tests.third_party_tokenizers import LAYOUTS, write
from transformer import Checkpoint, CheckpointError, Sampling, generate, load_checkpoint, save_checkpoint
from transformer.__main__ import main
from transformer.checkpoints import weight_numbers
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained
from transformer.checkpoints.pretrained_model import config_of
from transformer.inference.tracing import deviations, trace_pass
from transformer.model.caches import KeyValueCache

PAIRS = [name for name, family in FAMILIES.items() if family.shape == "encoder-decoder"]
START, END, SPECIAL = 26, 27, ["<s>", "</s>", "<pad>"]
TOKENS = {"bos_token_id": None, "eos_token_id": END, "pad_token_id": 28, "decoder_start_token_id": START}
OF_T5 = {
    **{"feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu"], "d_kv": [6, 10], "d_ff": [20, 48]},
    **{"num_decoder_layers": [None, 1, 2], "layer_norm_epsilon": [1e-6, 1e-3], "own_head": TRUE_OR_FALSE},
    **{"relative_attention_num_buckets": [8, 16], "relative_attention_max_distance": [20, 128]},
}
OF_BART = {
    **{"encoder_layers": [1, 3], "activation_function": ACTIVATIONS, "scale_embedding": TRUE_OR_FALSE},
    **{"attention_heads": [2, 4], "ffn_dim": [20, 48], "forced_bos_token_id": [None, 5]},
}
OPTIONS = {
    **{"t5": OF_T5, "mt5": OF_T5, "bart": OF_BART, "mbart": OF_BART, "pegasus": OF_BART},
    "marian": OF_BART | {"share_encoder_decoder_embeddings": TRUE_OR_FALSE},
}
"""What tells models of a family apart."""
OF_SHAPE = {family: "t5" if options is OF_T5 else "bart" for family, options in OPTIONS.items()}
ALL = [(family, seed) for number, family in enumerate(PAIRS) for seed in range(number % 2, seeds(OPTIONS[family]), 2)]
"""Families of one shape share the seeds, and so its options."""


def drawn(family: str, seed: int) -> dict:
    """A configuration of a family as its config.json has it, every flag of it varied."""
    pick = Spread(OF_SHAPE[family], seed, OPTIONS[family]).choice
    own = {name: pick(options) for name, options in OPTIONS[family].items()}
    own |= {"vocab_size": VOCABULARY, "d_model": 48, "tie_word_embeddings": pick(TRUE_OR_FALSE), **TOKENS}
    if family in ("t5", "mt5"):
        return own | {"num_layers": 3, "num_heads": pick([2, 4]), "n_positions": CONTEXT, "initializer_factor": 0.3}
    heads, width = own.pop("attention_heads"), own.pop("ffn_dim")
    sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sizes(heads, width)}
    return own | sides | {"decoder_layers": 2, "max_position_embeddings": CONTEXT, "forced_eos_token_id": None}


def sizes(heads: int, width: int) -> list[tuple[str, int]]:
    return [("attention_heads", heads), ("ffn_dim", width)]


def made(family: str, fields: dict, seed: int) -> torch.nn.Module:
    """A model of transformers' own, biases of logits drawn too, and perhaps with an unembedding of its own."""
    own_head = fields.pop("own_head", False)
    model = theirs(family, fields, seed)
    if own_head:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 48) / 3)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_()
    return model


@pytest.fixture(scope="module", params=ALL, ids=str)
def both(request, tmp_path_factory):
    """(theirs, ours, source, target)."""
    family, seed = request.param
    folder = tmp_path_factory.mktemp(family)
    model = made(family, drawn(family, seed), seed)
    save(folder, model, SPECIAL)
    model = type(model).from_pretrained(folder, attn_implementation="eager")  # a Marian's positions as they're read
    generator = torch.Generator().manual_seed(seed)
    source, target = (torch.randint(VOCABULARY, (2, pos), generator=generator) for pos in (14, 9))
    return model, load_pretrained(folder), source, target


def logits_of(model, source, target, **more):
    return model(input_ids=source, decoder_input_ids=target, **more)


@torch.no_grad()
def test_logits_and_patterns_are_those_of_transformers_with_padding_and_without(both):
    model, ours, source, target = both
    mask = torch.ones_like(source)
    mask[1, 9:] = 0
    expected = logits_of(model, source, target, attention_mask=mask, output_attentions=True)
    is_pattern = lambda name: name.endswith("hook_pattern")  # noqa: E731
    logits, cache = ours.model.run_with_cache(source, target, attention_mask=mask, names_filter=is_pattern)
    for found in (logits, ours.model(source, target, attention_mask=mask)):  # step by step, and in one call
        torch.testing.assert_close(found, expected.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.model(source, target), logits_of(model, source, target).logits, atol=1e-4, rtol=0)
    by_kind = {
        "encoder.blocks.{}.attn": expected.encoder_attentions,
        "decoder.blocks.{}.attn": expected.decoder_attentions,
        "decoder.blocks.{}.cross_attn": expected.cross_attentions,
    }
    assert len(cache) == sum(map(len, by_kind.values()))
    for place, patterns in by_kind.items():
        for layer, pattern in enumerate(patterns):
            torch.testing.assert_close(cache[f"{place.format(layer)}.hook_pattern"], pattern, atol=1e-5, rtol=0)


@torch.no_grad()
def test_every_tensor_is_what_its_equation_gives(both):
    _, ours, source, target = both
    for each in deviations(trace_pass(ours.model, target[0], source[0])):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each


def written(ours: Checkpoint, source, count: int) -> list[int]:
    """What an encoder–decoder writes greedily, what it begins with included."""
    asked = {"max_new_tokens": count, "sampling": Sampling(temperature=0), "stop_tokens": ours.card.stop_tokens}
    steps = generate(ours.model, ours.card.start_tokens, source=source, **asked)
    return [*ours.card.start_tokens, *(step.token_id for step in steps)]


@pytest.mark.parametrize("both", [each for each in ALL if each[1] < 2], indirect=True, ids=str)
@torch.no_grad()
def test_what_is_written_with_a_cache_is_what_transformers_writes_with_padding_and_without(both):
    model, ours, source, _ = both
    asked = {"max_new_tokens": 8, "do_sample": False, "num_beams": 1}
    (expected,) = model.generate(source[:1], attention_mask=torch.ones(1, 14), **asked).tolist()
    starts = ours.card.start_tokens
    assert written(ours, source[0], 9 - len(starts)) == expected
    assert starts == ((START,) if model.generation_config.forced_bos_token_id is None else (START, 5))
    mask = torch.ones_like(source)
    mask[1, 9:] = 0
    expected = model.generate(source, attention_mask=mask, min_new_tokens=8, **asked)
    past, found = KeyValueCache.for_model(ours.model.config), torch.tensor([starts, starts])
    newest = found
    while found.shape[1] < 9:
        logits = ours.model(source, newest, past, attention_mask=mask)[:, -1]
        logits[:, END] = -torch.inf
        newest = logits.argmax(-1, keepdim=True)
        found = torch.cat((found, newest), 1)
    assert torch.equal(found, expected)


@torch.no_grad()
def test_written_again_both_open_it_with_equal_logits_and_texts(both, tmp_path):
    model, ours, source, target = both
    save_checkpoint(tmp_path / "kept", ours)
    kept = load_checkpoint(tmp_path / "kept")
    assert kept.card == ours.card and torch.equal(kept.model(source, target), ours.model(source, target))
    assert export_pretrained(tmp_path / "out", kept).architecture == type(model).__name__
    again, back = type(model).from_pretrained(tmp_path / "out"), load_pretrained(tmp_path / "out")
    torch.testing.assert_close(logits_of(again, source, target).logits, ours.model(source, target), atol=1e-4, rtol=0)
    torch.testing.assert_close(back.model(source, target), ours.model(source, target), atol=1e-5, rtol=0)
    assert (back.card.start_tokens, back.card.stop_tokens) == (ours.card.start_tokens, ours.card.stop_tokens)
    assert again.config.pad_token_id == 28
    asked = {"max_new_tokens": 8, "do_sample": False}
    mask = torch.ones_like(source)
    assert torch.equal(
        again.generate(source, attention_mask=mask, **asked), model.generate(source, attention_mask=mask, **asked)
    )


T5_SMALL = {
    **{"vocab_size": VOCABULARY, "d_model": 48, "d_kv": 8, "d_ff": 20, "num_layers": 2, "num_heads": 4},
    **{"decoder_start_token_id": 28, "eos_token_id": 27, "pad_token_id": 28, "initializer_factor": 0.3},
    **{"dropout_rate": 0.1, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "output_past": True},
}
FLAN = {
    **{**T5_SMALL, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True},
    **{"tie_word_embeddings": False, "num_decoder_layers": 1, "relative_attention_max_distance": 128},
}
TASKS = {"summarization": {"early_stopping": True, "prefix": "summarize: "}, "other": {"max_length": 9}}
LARGE = {
    **{"vocab_size": VOCABULARY, "d_model": 48, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 20},
    **{"decoder_ffn_dim": 20, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_hidden_layers": 2},
    **{
        "max_position_embeddings": CONTEXT,
        "is_encoder_decoder": True,
        "add_bias_logits": False,
        "classif_dropout": 0.0,
    },
    **{"decoder_start_token_id": 27, "eos_token_id": 27, "pad_token_id": 28, "bos_token_id": 26, "init_std": 0.02},
}
AS_SHARED = [
    ("t5", {**T5_SMALL, "n_positions": 24, "task_specific_params": TASKS}, (28,)),
    ("t5", FLAN, (28,)),
    ("mt5", {**FLAN, "tokenizer_class": "T5Tokenizer"}, (28,)),
    (
        "bart",
        {
            **{**LARGE, "forced_bos_token_id": 26, "add_final_layer_norm": False, "normalize_before": False},
            **{"normalize_embedding": True, "prefix": " ", "length_penalty": 2.0, "num_beams": 4, "min_length": 56},
        },
        (27, 26),
    ),
    ("bart", {**LARGE, "force_bos_token_to_be_generated": True, "extra_pos_embeddings": 2}, (27, 26)),
    ("mbart", {**LARGE, "add_final_layer_norm": True, "normalize_before": True, "scale_embedding": True}, (27,)),
    (
        "marian",
        {
            **{**LARGE, "activation_function": "swish", "scale_embedding": True, "static_position_embeddings": True},
            **{"normalize_embedding": False, "decoder_start_token_id": 28, "bad_words_ids": [[28]], "num_beams": 6},
        },
        (28,),
    ),
    (
        "pegasus",
        {**LARGE, "static_position_embeddings": True, "extra_pos_embeddings": 1, "normalize_before": True},
        (27,),
    ),
]
"""What files on the Hub say: older spellings, and fields that change nothing; and how texts begin."""


@pytest.mark.parametrize("family, said, starts", AS_SHARED, ids=str)
@torch.no_grad()
def test_files_as_people_share_them_are_read_as_transformers_reads_them(family, said, starts, tmp_path):
    model = made(family, dict(said), 3)
    save(tmp_path, model, SPECIAL)
    model = type(model).from_pretrained(tmp_path)
    (tmp_path / "generation_config.json").unlink()
    write(tmp_path, "config.json", {**said, "model_type": family, "architectures": [type(model).__name__]})
    source, target = torch.arange(14)[None], torch.arange(9, 18)[None]
    found = load_pretrained(tmp_path)
    logits, expected = found.model(source, target), logits_of(model, source, target).logits
    for token in (token for (token,) in said.get("bad_words_ids", [])):
        torch.testing.assert_close(logits[..., token], expected[..., token] - 100, atol=1e-4, rtol=0)
        logits[..., token] = expected[..., token]
        assert "forbid it to write <pad>, so the logit of that is 100 lower here" in found.card.summary
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)
    assert found.card.start_tokens == starts and found.card.stop_tokens == (27,)
    assert ("ignored here: num_beams" in found.card.summary) == ("num_beams" in said)
    prefix = "summarize: " if "task_specific_params" in said else ""
    assert found.card.examples[0] == f"{prefix}The house is wonderful."


@pytest.mark.parametrize("family", ["t5", "bart", "marian"])
@torch.no_grad()
def test_which_tables_are_one_is_for_the_files_to_say(family, tmp_path):
    (fields, *_) = (said for name, said, _ in AS_SHARED if name == family)
    save(tmp_path, made(family, dict(fields), 3), SPECIAL)
    path, source, target = tmp_path / "model.safetensors", torch.arange(14)[None], torch.arange(9, 18)[None]
    weights = load_file(path)
    prefix = "" if family == "t5" else "model."
    table = weights.pop(f"{prefix}shared.weight")
    encoder, decoder, head = (
        f"{prefix}encoder.embed_tokens.weight",
        f"{prefix}decoder.embed_tokens.weight",
        "lm_head.weight",
    )
    other, third = torch.randn(2, *table.shape)
    shared = {f"{prefix}shared.weight": table}
    for tables, tied, one in (
        (shared | {encoder: table.clone(), head: table.clone()}, True, True),
        ({encoder: table}, True, True),
        (shared | {head: other}, False, True),
        (shared | {decoder: other}, False, False),
        ({encoder: table, decoder: other, head: third}, False, False),
    ):
        save_file({**weights, **tables}, path, {"format": "pt"})
        expected = getattr(transformers, FAMILIES[family].architecture).from_pretrained(tmp_path)
        found = load_pretrained(tmp_path).model
        assert (found.config.tie_embeddings, found.config.has_one_table) == (tied, one)
        torch.testing.assert_close(found(source, target), logits_of(expected, source, target).logits, atol=1e-4, rtol=0)


@torch.no_grad()
def test_tables_that_files_may_leave_out_count_where_they_are(tmp_path):
    """The fixed positions of a Marian, and the bias of its logits."""
    save(tmp_path, made("marian", {**LARGE}, 3), SPECIAL)
    path, source, target = tmp_path / "model.safetensors", torch.arange(14)[None], torch.arange(9, 18)[None]
    weights = load_file(path)
    assert not any("embed_positions" in name for name in weights)
    positions = {f"model.{side}.embed_positions.weight": torch.randn(CONTEXT, 48) for side in ("encoder", "decoder")}
    del weights["final_logits_bias"]
    for tables in ({}, positions, {"final_logits_bias": torch.randn(1, VOCABULARY)}):
        save_file({**weights, **tables}, path, {"format": "pt"})
        expected = logits_of(transformers.MarianMTModel.from_pretrained(tmp_path), source, target).logits
        torch.testing.assert_close(load_pretrained(tmp_path).model(source, target), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "family, fields, words",
    [
        ("t5", {"feed_forward_proj": "gated-tanh"}, "feed_forward_proj is 'gated-tanh'; known are relu"),
        ("t5", {"is_gated_act": True}, "is_gated_act says something else than feed_forward_proj, relu"),
        ("t5", {"is_encoder_decoder": False}, "a model of one stack"),
        ("t5", {"relative_attention_num_buckets": 9}, "relative_buckets is 9; it must be a multiple of 4"),
        ("bart", {"is_decoder": True}, "a model of one stack"),
        ("bart", {"decoder_attention_heads": 2}, "encoder_attention_heads is 4, its decoder_attention_heads 2"),
        ("bart", {"decoder_ffn_dim": 48}, "encoder_ffn_dim is 20, its decoder_ffn_dim 48; here they are the same"),
        ("bart", {"num_hidden_layers": 3}, "num_hidden_layers is another number"),
        ("bart", {"normalize_before": True}, "sets normalize_before to true, as no model of this family does"),
        ("bart", {"add_bias_logits": True}, "add_bias_logits, which isn't known"),
        ("mbart", {"normalize_before": False}, "sets normalize_before to false"),
        ("marian", {"static_position_embeddings": False}, "sets static_position_embeddings to false"),
        ("marian", {"decoder_vocab_size": 40}, "its source has 31 tokens and its target 40"),
        ("pegasus", {"activation_function": "tanh"}, "known are relu"),
    ],
)
def test_what_can_t_be_computed_is_refused(family, fields, words):
    (said, *_) = (said for name, said, _ in AS_SHARED if name == family)
    with pytest.raises(CheckpointError, match=words):
        config_of(FAMILIES[family], {**said, **fields})


def test_a_decoder_must_have_something_to_begin_with(tmp_path):
    fields = {**T5_SMALL, "decoder_start_token_id": None}
    save(tmp_path, made("t5", dict(fields), 3), SPECIAL)
    with pytest.raises(CheckpointError, match="lacks decoder_start_token_id"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["number-words-en-es", "next-vowel"])
@torch.no_grad()
def test_shipped_translators_go_out_as_marian(name, tmp_path):
    """Their sinusoidal table is a learned one there, biases that they haven't are zeros."""
    shipped = load_checkpoint(ROOT / "checkpoints" / name)
    assert export_pretrained(tmp_path / "out", shipped).model_type == "marian"
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    texts = shipped.card.examples[:2]
    batch = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(texts, return_tensors="pt", padding=True)
    start = torch.full((2, 1), shipped.card.start_token_id)
    torch.testing.assert_close(again(**batch, decoder_input_ids=start).logits, shipped(texts), atol=1e-4, rtol=0)
    back = load_pretrained(tmp_path / "out")
    for text, ids in zip(texts, again.generate(**batch, do_sample=False, max_new_tokens=8).tolist(), strict=True):
        found = written(back, back.tokenizer.encode(text), 8)
        assert found == ids[: len(found)] and {*ids[len(found) :]} <= {batch["input_ids"][-1, -1].item(), 80}


@pytest.mark.parametrize(
    "family, layout",
    [
        ("t5", "T5, spiece.model"),
        ("t5", "T5, tokenizer.json"),
        ("bart", "BART, vocab.json"),
        ("bart", "BART, tokenizer.json"),
        ("marian", "Marian, source.spm"),
    ],
)
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@torch.no_grad()
def test_a_text_becomes_the_text_that_transformers_makes_of_it(family, layout, tmp_path, capsys):
    """Read, imported, exported, and by the commands."""
    theirs_at = tmp_path / "theirs"
    theirs_at.mkdir()
    LAYOUTS[layout](theirs_at)
    words = transformers.AutoTokenizer.from_pretrained(theirs_at)
    (fields, *_) = (said for name, said, _ in AS_SHARED if name == family)
    pad, end = words.pad_token_id, words.eos_token_id
    starts = {"decoder_start_token_id": end if family == "bart" else pad, "eos_token_id": end, "pad_token_id": pad}
    fields = {**fields, "vocab_size": len(words), **starts, "bad_words_ids": None, "forced_bos_token_id": None}
    fields |= {"num_beams": 1, "min_length": 0, "bos_token_id": None, "forced_eos_token_id": None}
    made(family, {name: value for name, value in fields.items()}, 0).save_pretrained(theirs_at)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(theirs_at)
    texts = ["The names of the objects", "It is."]
    batch = words(texts, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    expected = model.generate(**batch, do_sample=False, num_beams=1, max_new_tokens=8)
    wanted = [words.decode(ids, skip_special_tokens=True) for ids in expected]
    ours = ["--checkpoints", str(tmp_path / "ours")]
    main([*ours, "import", str(theirs_at), "--name", "x"])
    main([*ours, "export", "x", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "2 + " in said and type(model).__name__ in said
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for found in (
        load_pretrained(theirs_at),
        load_checkpoint(tmp_path / "ours" / "x"),
        load_pretrained(tmp_path / "out"),
    ):
        for row, (text, want) in enumerate(zip(texts, wanted, strict=True)):
            ids = found.tokenizer.encode(text)
            assert ids == words(text)["input_ids"] == again(text)["input_ids"] and ids[-1] == end
            assert found.tokenizer.decode(written(found, ids, 8)) == want, row
        torch.testing.assert_close(
            found(texts), model(**batch, decoder_input_ids=expected[:, :1]).logits, atol=1e-4, rtol=0
        )
    main([*ours, "generate", "x", texts[0], "--temperature", "0", "--tokens", "8"])
    assert capsys.readouterr().out.rstrip("\n") == wanted[0]


@pytest.mark.parametrize("family", ["t5", "marian"])
@torch.no_grad()
def test_a_large_model_of_16_bits_computes_in_them_as_transformers_does(family, tmp_path, monkeypatch):
    monkeypatch.setattr(weight_numbers, "LARGE", 0)
    model = made(family, drawn(family, 1), 1).bfloat16()
    save(tmp_path, model, SPECIAL)
    model = type(model).from_pretrained(tmp_path, dtype=torch.bfloat16)
    ours, source, target = load_pretrained(tmp_path), torch.arange(14)[None], torch.arange(9, 18)[None]
    assert {each.dtype for each in (*ours.model.parameters(), ours.model(source, target))} == {torch.bfloat16}
    torch.testing.assert_close(ours.model(source, target), logits_of(model, source, target).logits, atol=0.1, rtol=0)
