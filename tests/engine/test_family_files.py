"""Tests what files of pretrained models say: as people share them, in older spellings, and what can't be computed."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained_models import (
    ALPHABET,
    CONTEXT,
    END,
    NEAR,
    PAD,
    START,
    VOCABULARY,
    YARN,
    drawn,
    logits_of,
    save,
    theirs,
    transformers,
)
from tests.third_party_tokenizers import write
from transformer import CheckpointError
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained
from transformer.checkpoints.pretrained_model import config_of

SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4}
SMALL |= {"num_key_value_heads": 2, "intermediate_size": 20, "max_position_embeddings": 64, "use_cache": True}
OF_BERT = {name: value for name, value in SMALL.items() if name != "num_key_value_heads"} | {"pad_token_id": 0}
OF_T5 = {
    **{"vocab_size": VOCABULARY, "d_model": 48, "d_kv": 8, "d_ff": 20, "num_layers": 2, "num_heads": 4},
    **{"decoder_start_token_id": PAD, "eos_token_id": END, "pad_token_id": PAD, "initializer_factor": 0.3},
    **{"dropout_rate": 0.1, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "output_past": True},
}
OF_BART = {
    **{"vocab_size": VOCABULARY, "d_model": 48, "encoder_layers": 2, "decoder_layers": 1, "num_hidden_layers": 2},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20},
    **{"max_position_embeddings": CONTEXT, "is_encoder_decoder": True, "classif_dropout": 0.0, "init_std": 0.02},
    **{"decoder_start_token_id": END, "eos_token_id": END, "pad_token_id": PAD, "bos_token_id": START},
    "add_bias_logits": False,
}
OF_GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": CONTEXT}
OF_DISTILBERT = {"vocab_size": VOCABULARY, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 20, "pad_token_id": 0}
BARE = {name: value for name, value in SMALL.items() if "key" not in name and "intermediate" not in name}
SIZES = {
    **{family: {"encoder-only": OF_BERT}.get(each.shape, SMALL) for family, each in FAMILIES.items()},
    **{"distilbert": OF_DISTILBERT | {"max_position_embeddings": CONTEXT}, "t5": OF_T5, "mt5": OF_T5},
    **{"gpt_neox": BARE | {"intermediate_size": 20}, "opt": BARE | {"ffn_dim": 20}, "falcon": BARE},
    **dict.fromkeys(("gpt2", "gpt_bigcode"), OF_GPT2),
    "bloom": {"vocab_size": VOCABULARY, "n_layer": 2, "n_head": 4, "hidden_size": 32},
    **{"gptj": OF_GPT2 | {"rotary_dim": 4}, "gpt_neo": BARE | {"num_layers": 4, "num_heads": 4}},
    **{family: OF_BART for family in ("bart", "mbart", "marian", "pegasus")},
    **{family: SMALL | {"pad_token_id": 1} for family in ("smollm3", "phi3", "glm", "glm4")},
    "roberta": OF_BERT | {"pad_token_id": 1, "type_vocab_size": 1},
}
NOT_ALONE = ("gpt_neo", "ministral", "ministral3")
"""Families whose files must say more than sizes, and their padding's id."""
FLAN = {"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True, "num_decoder_layers": 1}
FLAN |= {"tie_word_embeddings": False, "relative_attention_max_distance": 128}
TASKS = {"summarization": {"early_stopping": True, "prefix": "summarize: "}, "other": {"max_length": 9}}
OLD_LLAMA = {"rope_scaling": None, "max_sequence_length": 2048, "pretraining_tp": 1, "pad_token_id": -1}
AS_SHARED = {
    "llama": [{"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 1e5}, OLD_LLAMA],
    "gpt_neox": [
        {"rotary_emb_base": 500, "rotary_pct": 0.25, "rope_theta": 500, "partial_rotary_factor": 0.25},
        {"rope_theta": 500, "partial_rotary_factor": 0.25, "rope_scaling": None, "hidden_dropout": 0.1},
    ],
    "qwen2": [
        {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2, "use_mrope": False},
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
        {"rope_scaling": {"type": "dynamic", "factor": 4.0}, "use_sliding_window": True, "sliding_window": None},
    ],
    "smollm3": [{"no_rope_layers": [1, 1, 1, 0], "max_window_layers": 28}],
    "gemma": [{"head_dim": 6, "hidden_act": "gelu", "hidden_activation": None}],
    "gemma3_text": [
        {"head_dim": 6, "sliding_window": 5, "rope_theta": 1e5, "rope_scaling": {"type": "linear", "factor": 8.0}}
    ],
    "cohere": [{"model_max_length": 131072}],
    "falcon": [{"ffn_hidden_size": 20}],
    "cohere2": [{"sliding_window_pattern": 2, "sliding_window": 5, "layer_switch": 4, "rotary_pct": 1.0}],
    "bert": [{"pooler_fc_size": 768, "pooler_type": "first_token_transform", "directionality": "bidi"}],
    "roberta": [{"layer_norm_eps": 1e-5, "eos_token_id": 2}],
    "modernbert": [{"local_attention": 6, "classifier_pooling": "mean", "reference_compile": True}],
    "t5": [{"n_positions": 24, "task_specific_params": TASKS}, FLAN],
    "bart": [
        {"forced_bos_token_id": START, "prefix": " ", "length_penalty": 2.0, "num_beams": 4, "min_length": 56},
        {"force_bos_token_to_be_generated": True, "extra_pos_embeddings": 2},
    ],
    "marian": [
        {
            **{"activation_function": "swish", "scale_embedding": True, "static_position_embeddings": True},
            **{"normalize_embedding": False, "decoder_start_token_id": PAD, "bad_words_ids": [[PAD]], "num_beams": 6},
        }
    ],
}
"""What files on the Hub say besides sizes and what the published ones below say: older spellings, and fields that
change nothing."""


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


PUBLISHED = json.loads((Path(__file__).parents[1] / "published_configs.json").read_text(encoding="utf-8"))
"""Of each family a config.json as it is published, and the name under which it is: from copies of it in public
repositories, which have other sizes here and there, and here shorter lists of tasks."""
NOT_FOUND = {"cohere2", "glm4", "ministral"}
"""Families of which no copy was found."""
SMALLER = {
    **dict.fromkeys(("vocab_size",), VOCABULARY),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim"), 240),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 6),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 6),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), 4),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 4),
    **dict.fromkeys(("intermediate_size", "n_inner", "hidden_dim", "d_ff", "ffn_dim"), 20),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 20),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), 64),
    **{"head_dim": 8, "d_kv": 8, "rotary_dim": 4, "query_pre_attn_scalar": 8, "max_window_layers": 3},
    **dict.fromkeys(("sliding_window", "window_size", "local_attention"), 6),
    **{"original_max_position_embeddings": 16, "sliding_window_pattern": 2},
}
"""Sizes by which a published model becomes a tiny one."""
CUT = {"no_rope_layers": 4, "layer_types": 4, "attention_layers": 4, "long_factor": 15, "short_factor": 15}
"""How many there are in a list of something for each layer, or for each pair that turns."""


def smaller(fields: dict) -> dict:
    """The same model with fewer heads, layers, tokens; what isn't a size stays as it is."""
    heads = next(
        fields[name] for name in ("num_attention_heads", "n_head", "n_heads", "num_heads", "d_model") if name in fields
    )

    def one(name: str, value):
        if name.endswith("token_id") or name == "bad_words_ids":
            return json.loads(re.sub(r"\d+", lambda found: str(int(found[0]) % VOCABULARY), json.dumps(value)))
        if name in ("num_key_value_heads", "num_kv_heads"):
            return 6 if value == heads else 1 if value == 1 else 2
        if name == "attention_types":
            return [[value[0][0], 2]]
        if name in ("rope_scaling", "rope_parameters") and value:
            return {name: one(name, each) for name, each in value.items()}
        return value[: CUT[name]] if name in CUT else value if value is None else SMALLER.get(name, value)

    return {name: one(name, value) for name, value in fields.items() if name != "task_specific_params"}


FILES = [(family, SIZES[family]) for family in FAMILIES if family not in NOT_ALONE]
FILES += [(family, SIZES[family] | said) for family, files in AS_SHARED.items() for said in files]
FILES += [(family, smaller(of["fields"])) for family, of in PUBLISHED.items()]


@pytest.mark.parametrize("family, said", FILES)
@torch.no_grad()
def test_a_file_is_read_as_transformers_reads_it(family, said, tmp_path):
    shape, kind = FAMILIES[family].shape, getattr(transformers, FAMILIES[family].architecture)
    about = {**said, "model_type": family, "architectures": [kind.__name__]}
    write(tmp_path, "config.json", about)
    torch.manual_seed(3)
    config = kind.config_class.from_pretrained(tmp_path)
    model = kind._from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.05)
    save(tmp_path, model, ["<mask>"] if shape == "encoder-only" else None)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    if shape == "encoder-decoder":  # a Marian's positions as they're read
        model = kind.from_pretrained(tmp_path)
    write(tmp_path, "config.json", about)
    tokens, target = torch.arange(5, 19)[None], torch.arange(9, 18)[None]
    inputs = [tokens, target] if shape == "encoder-decoder" else [tokens]
    found = load_pretrained(tmp_path)
    logits, expected = found.model.double()(*inputs), logits_of(model.double(), inputs).logits
    for (token,) in said.get("bad_words_ids", []):
        logits[..., token] += 100
        assert f"forbid it to write {found.tokenizer.label(token)}, so the logit of that is 100" in found.card.summary
    close(logits, expected)
    if shape == "encoder-only":
        assert found.card.mask_token_id == len(ALPHABET) and found.card.stop_tokens == ()
        assert found.card.examples[0] == "The capital of France is <mask>."
    if "decoder_start_token_id" in said:
        forced = said.get("forced_bos_token_id", START if said.get("force_bos_token_to_be_generated") else None)
        assert found.card.start_tokens == (said["decoder_start_token_id"], *([] if forced is None else [forced]))
        assert ("ignored here: num_beams" in found.card.summary) == ("num_beams" in said)
        prefix = "summarize: " if "task_specific_params" in said else ""
        assert found.card.examples[0] == f"{prefix}The house is wonderful."


def test_published_configurations_are_read_at_their_own_size():
    assert {*PUBLISHED} | NOT_FOUND == {*FAMILIES}
    for family, published in PUBLISHED.items():
        config_of(FAMILIES[family], published["fields"])


SLIDING, FULL = ["sliding_attention"] * 4, ["full_attention"] * 4
REFUSED = [
    ("llama", {"layer_types": SLIDING}, "sliding_attention, which no Llama has"),
    ("gpt2", {"add_cross_attention": True}, "a decoder beside an encoder"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "the stream itself is normalised"),
    ("falcon", {"new_decoder_architecture": True, "parallel_attn": False}, "doesn't go with its norms"),
    ("falcon", {"num_ln_in_parallel_attn": 2}, "doesn't go with its norms"),
    ("gemma", {"use_bidirectional_attention": True}, "tokens see what follows them"),
    ("gemma3_text", {"attn_logit_softcapping": 5.0}, "which models of this type don't compute"),
    ("gemma3_text", {"rope_parameters": {"sliding_attention": YARN}}, "in its sliding_attention layers"),
    ("olmo3", {"rope_parameters": {"sliding_attention": YARN}}, "in its sliding_attention layers"),
    ("gpt_neo", {"attention_types": [[["global", "local"], 1]]}, 'name "global" or "local" for each layer'),
    ("gptj", {"rotary_dim": 64}, "at most d_head, which is 8"),
    ("gptj", {"rotary": False}, "rotary is False; known is True"),
    ("starcoder2", {"norm_type": "rms_norm"}, "norm_type is 'rms_norm'; known is 'layer_norm'"),
    ("starcoder2", {"mlp_type": "gated"}, "mlp_type is 'gated'; known is 'default'"),
    ("mistral", {"layer_types": FULL}, "have windows in all layers"),
    ("ministral3", {"rope_parameters": None}, "lacks rope_parameters"),
    ("opt", {"_remove_final_layer_norm": True}, "leaves the last norm out"),
    ("qwen2", {"use_sliding_window": False, "layer_types": SLIDING}, "use_sliding_window turns off"),
    (
        "qwen2",
        {"use_sliding_window": True, "max_window_layers": "two"},
        "max_window_layers is 'two', where a whole number",
    ),
    ("smollm3", {"no_rope_layers": [1, 2, 0, 1]}, "don't say 0 or 1 for each layer"),
    ("smollm3", {"layer_types": SLIDING, "sliding_window": 5}, "use_sliding_window turns off"),
    ("bert", {"is_decoder": True}, "is_decoder, by which tokens see none that follow"),
    ("bert", {"add_cross_attention": True}, "a decoder beside an encoder"),
    ("bert", {"position_embedding_type": "relative_key"}, "is 'relative_key'; known is 'absolute'"),
    ("bert", {"is_causal": True}, "else than false: its tokens don't see what follows"),
    ("bert", {"type_vocab_size": 0}, "type_vocab_size is 0"),
    ("bert", {"embedding_size": 9}, "embedding_size"),
    ("bert", {"hidden_act": "tanh"}, "known are relu"),
    ("distilbert", {"activation": "mish"}, "known are relu"),
    ("roberta", {"hidden_act": "relu"}, "its head has gelu, whatever hidden_act says"),
    ("roberta", {"pad_token_id": -1}, "pad_token_id is -1, where a token's id should be"),
    ("roberta", {"max_position_embeddings": 2}, "its 2 max_position_embeddings leave none"),
    ("modernbert", {"classifier_activation": "relu"}, "classifier_activation isn't its hidden_activation"),
    ("modernbert", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "layers with a window, too"),
    ("modernbert", {"rope_theta": 5.0}, "which models of this type don't read"),
    *(("modernbert", {"rope_parameters": said}, "don't name the kinds of layers") for said in (7, {"factor": 2.0})),
    ("modernbert", {"rope_parameters": {"sliding_attention": YARN}}, "in its sliding_attention layers"),
    (
        "modernbert",
        {"rope_parameters": {"full_attention": {**NEAR, "partial_rotary_factor": 0.5}}},
        "a part of each head",
    ),
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
]


@pytest.mark.parametrize("family, fields, words", REFUSED, ids=str)
def test_what_can_t_be_computed_is_refused(family, fields, words):
    with pytest.raises(CheckpointError, match=words):
        config_of(FAMILIES[family], {**SIZES[family], **fields})


TABLES = {
    **{"llama": ("model.embed_tokens.weight",), "gpt2": ("transformer.wte.weight",)},
    **{"gpt_neox": ("gpt_neox.embed_in.weight",), "t5": ("shared.weight", "encoder.embed_tokens.weight")},
    "bart": ("model.shared.weight", "model.encoder.embed_tokens.weight"),
    "marian": ("model.shared.weight", "model.encoder.embed_tokens.weight"),
}


@pytest.mark.parametrize("family", TABLES)
@torch.no_grad()
def test_which_tables_are_one_is_for_the_files_to_say(family, tmp_path):
    """Whatever the configuration says; so it is with a Marian's fixed positions, and with the bias of its logits."""
    fields = SIZES[family] if family in ("t5", "bart", "marian") else drawn(family, 0) | {"tie_word_embeddings": True}
    save(tmp_path, theirs(family, dict(fields), 5))
    path, (name, *encoder) = tmp_path / "model.safetensors", TABLES[family]
    weights = load_file(path)
    table, head = weights.pop(name), "embed_out.weight" if family == "gpt_neox" else "lm_head.weight"
    own, (other, third) = {name: table}, torch.randn(2, *table.shape)
    cases = [(own, True), (own | {head: table.clone()}, True), (own | {head: other}, False)]
    for place in encoder:
        decoder = place.replace("encoder", "decoder")
        cases += [(own | {place: table.clone(), head: table.clone()}, True), ({place: table}, True)]
        cases += [(own | {decoder: other}, None), ({place: table, decoder: other, head: third}, None)]
    if family == "marian":
        sides = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
        assert weights.pop("final_logits_bias") is not None and not {*sides} & {*weights}
        cases += [(own | dict(zip(sides, torch.randn(2, CONTEXT, 48), strict=True)), True)]
        cases += [(own | {"final_logits_bias": torch.randn(1, VOCABULARY)}, True)]
    for tables, tied in cases:
        save_file({**weights, **tables}, path, {"format": "pt"})
        expected = getattr(transformers, FAMILIES[family].architecture).from_pretrained(tmp_path)
        found = load_pretrained(tmp_path).model
        assert found.config.tie_embeddings == bool(tied)
        assert not encoder or found.config.has_one_table == (tied is not None)
        inputs = [torch.arange(9)[None], *([torch.arange(9, 18)[None]] if encoder else [])]
        close(found(*inputs), logits_of(expected, inputs).logits)
