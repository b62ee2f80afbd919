"""Makes tiny models of transformers' own, of every family, at configurations in which every option occurs."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from transformer import Tokenizer
from transformer.checkpoints.families import FAMILIES

transformers = pytest.importorskip("transformers", reason="requirements-dev.txt installs what models are compared with")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

VOCABULARY, CONTEXT = 31, 24
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = {"decoder-only": (), "encoder-only": ("[MASK]",), "encoder-decoder": ("<s>", "</s>", "<pad>")}
"""The tokens of each kind of model that come after the alphabet."""
START, END, PAD = 26, 27, 28

ACTIVATIONS, EPSILONS, EITHER = ["gelu_new", "gelu", "relu", "silu"], [1e-5, 1e-3], [True, False]
KINDS = [["sliding_attention", "full_attention", "sliding_attention"], None, ["full_attention"] * 3]
NEAR = {"rope_type": "default", "rope_theta": 100.0}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "rope_theta": 500.0}
OF_GPT2 = {"n_inner": [None, 20], "activation_function": ACTIVATIONS, "layer_norm_epsilon": EPSILONS}
PLAIN = {"intermediate_size": [20, 48], "rope_parameters": ["default"]}
GROUPED = {**PLAIN, "num_key_value_heads": [1, 2]}
WINDOWED = {**GROUPED, "sliding_window": [None, 3]}
BY_LAYER = {**GROUPED, "sliding_window": [3], "layer_types": KINDS, "attention_bias": EITHER}
OF_GEMMA2 = {**BY_LAYER, "head_dim": [6, 10], "query_pre_attn_scalar": [6, 50], "final_logit_softcapping": [None, 0.7]}
OF_BERT = {
    **{"hidden_act": ACTIVATIONS, "layer_norm_eps": [1e-12, 1e-3], "type_vocab_size": [1, 2, 3]},
    **{"pad_token_id": [None, 0], "intermediate_size": [20, 48]},
}
OF_T5 = {
    **{"feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu"], "d_kv": [6, 10], "d_ff": [20, 48]},
    **{"num_decoder_layers": [None, 1, 2], "layer_norm_epsilon": [1e-6, 1e-3], "own_head": EITHER},
    **{"relative_attention_num_buckets": [8, 16], "relative_attention_max_distance": [20, 128]},
    **{"n_positions": [CONTEXT], "initializer_factor": [0.3]},
}
OF_BART = {
    **{"decoder_layers": [2], "activation_function": ACTIVATIONS, "scale_embedding": EITHER, "ffn_dim": [20, 48]},
    **{"forced_bos_token_id": [None, 5], "forced_eos_token_id": [None], "max_position_embeddings": [CONTEXT]},
}
OPTIONS = {
    "gpt2": {**OF_GPT2, "scale_attn_weights": EITHER, "scale_attn_by_inverse_layer_idx": EITHER},
    "gpt_bigcode": {**OF_GPT2, "scale_attn_weights": EITHER, "multi_query": EITHER},
    "gptj": {"n_inner": [None, 20], "rotary_dim": [2, 4], "layer_norm_epsilon": EPSILONS},
    "bloom": {"num_attention_heads": [2, 3, 4], "layer_norm_epsilon": EPSILONS, "slow_but_exact": EITHER},
    "opt": {
        **{"do_layer_norm_before": EITHER, "word_embed_proj_dim": [None, 6], "enable_bias": EITHER},
        **{"layer_norm_elementwise_affine": EITHER, "activation_function": ["relu", "gelu"], "pad_token_id": [0]},
        "ffn_dim": [20, 48, 20, 48],
    },
    "falcon": {
        "kind": [
            {"multi_query": True, "parallel_attn": True},
            {"new_decoder_architecture": True, "num_kv_heads": 2},
            {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
            {"alibi": True, "parallel_attn": False, "multi_query": False},
        ],
        **{"bias": EITHER, "ffn_hidden_size": [None, 20], "rope_parameters": ["default"]},
    },
    "phi": {
        **{**GROUPED, "qk_layernorm": EITHER, "partial_rotary_factor": [0.5, 1.0]},
        **{"hidden_act": ["gelu_new", "relu"], "width of a head": [8]},
    },
    "stablelm": {
        **{**GROUPED, "qk_layernorm": EITHER, "partial_rotary_factor": [0.5, 1.0], "width of a head": [8]},
        **{"use_qkv_bias": EITHER, "use_parallel_residual": 2 * EITHER},
    },
    "starcoder2": {**WINDOWED, "use_bias": EITHER},
    "gpt_neo": {
        **{"kinds": [["global"], ["local"], ["global", "local"]], "intermediate_size": [None, 20]},
        **{"window_size": [3, 5, 40], "activation_function": ["gelu_new", "relu"], "layer_norm_epsilon": EPSILONS},
    },
    "gpt_neox": {
        **{**PLAIN, "partial_rotary_factor": [0.5, 1.0, 0.75], "use_parallel_residual": EITHER},
        **{"attention_bias": EITHER, "hidden_act": ["gelu", "relu"], "layer_norm_eps": EPSILONS},
    },
    "llama": {
        **{**PLAIN, "num_key_value_heads": [1, 2, "all"], "head_dim": ["own", 10], "hidden_act": ["silu", "gelu"]},
        **{"attention_bias": EITHER, "mlp_bias": EITHER, "rms_norm_eps": [1e-6, 1e-3]},
        "rope_parameters": ["llama3", "yarn", "linear", "longrope"],
    },
    "mistral": {**WINDOWED, "head_dim": ["own", 10]},
    "ministral": {**GROUPED, "sliding_window": [3, 5], "layer_types": KINDS, "head_dim": [6, 10]},
    "ministral3": {**WINDOWED, "head_dim": [6, 10], "rope_parameters": ["further on", "no further"]},
    "qwen2": {
        **{**PLAIN, "num_key_value_heads": [1, 2, "all"], "use_sliding_window": EITHER, "sliding_window": [3, 40]},
        **{"max_window_layers": [1], "rms_norm_eps": [1e-6, 1e-3], "rope_parameters": ["default", "yarn"]},
    },
    "qwen3": {
        **{**PLAIN, "num_key_value_heads": [1, 2, "all"], "use_sliding_window": EITHER, "sliding_window": [3]},
        **{"max_window_layers": [1], "head_dim": [6, 10], "attention_bias": EITHER},
    },
    "smollm3": {
        **{**GROUPED, "no_rope_layers": [None, [0, 1, 0]], "no_rope_layer_interval": [2, 3], "sliding_window": [3]},
        **{"use_sliding_window": EITHER, "attention_bias": EITHER, "mlp_bias": EITHER, "pad_token_id": [0]},
    },
    "phi3": {
        **{**WINDOWED, "partial_rotary_factor": [0.5, 1.0], "rope_parameters": ["default", "longrope"]},
        **{"original_max_position_embeddings": [CONTEXT], "width of a head": [4, 8]},
    },
    "gemma": GROUPED | {"head_dim": [6, 10], "hidden_act": ["gelu", "gelu_pytorch_tanh"], "attention_bias": EITHER},
    "gemma2": {**OF_GEMMA2, "attn_logit_softcapping": [None, 0.5]},
    "gemma3_text": {**OF_GEMMA2, "rope_parameters": ["by layer", "default by layer"]},
    "olmo": {**GROUPED, "clip_qkv": [None, 0.3], "attention_bias": EITHER},
    "olmo2": {**GROUPED, "rms_norm_eps": [1e-5, 1e-3], "attention_bias": EITHER},
    "olmo3": {**BY_LAYER, "rope_parameters": ["by layer", "default by layer"]},
    "granite": {
        **{**PLAIN, "embedding_multiplier": [1.0, 3.0], "residual_multiplier": [1.0, 0.4], "mlp_bias": EITHER},
        **{"attention_multiplier": [1.0, 0.2], "attention_bias": EITHER, "logits_scaling": [1.0, 2.5]},
    },
    "cohere": {**GROUPED, "logit_scale": [0.5, 2.0], "use_qk_norm": EITHER, "attention_bias": EITHER},
    "cohere2": {**BY_LAYER, "logit_scale": [0.5, 2.0]},
    "glm": {**GROUPED, "head_dim": [8, 12], "attention_bias": EITHER},
    "glm4": {**GROUPED, "head_dim": [8, 12], "attention_bias": EITHER},
    "bert": OF_BERT,
    "roberta": {**OF_BERT, "hidden_act": ["gelu"], "pad_token_id": [0, 1, 4]},
    "distilbert": {
        **{"activation": ACTIVATIONS, "sinusoidal_pos_embds": EITHER, "pad_token_id": [None, 0]},
        "hidden_dim": [20, 48],
    },
    "modernbert": {
        **{"hidden_activation": ACTIVATIONS, "norm_eps": EPSILONS, "norm_bias": EITHER, "pad_token_id": [None, 3]},
        **{"classifier_bias": EITHER, "decoder_bias": EITHER, "attention_bias": EITHER, "mlp_bias": EITHER},
        **{"local_attention": [1, 4, 5, 40], "global_attn_every_n_layers": [2, 3], "layer_types": KINDS},
        **{"cls_token_id": [None], "sep_token_id": [None], "intermediate_size": [20, 48]},
        "rope_parameters": [
            *(None, {"full_attention": YARN, "sliding_attention": NEAR}),
            *({"full_attention": NEAR}, {"full_attention": NEAR, "sliding_attention": NEAR}),
        ],
    },
    **dict.fromkeys(("t5", "mt5"), OF_T5),
    **dict.fromkeys(("bart", "mbart", "pegasus"), OF_BART),
    "marian": OF_BART | {"share_encoder_decoder_embeddings": EITHER},
}
"""What tells models of a family apart, sizes left out."""
SCALED = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 3.0},
    "llama3": {
        **{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 12,
    },
    "yarn": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12},
    "further on": {
        **{"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": CONTEXT},
        "llama_4_scaling_beta": 0.1,
    },
    "no further": {
        **{"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "mscale": 1.0},
        **{"mscale_all_dim": 0.5, "llama_4_scaling_beta": 0.0},
    },
}


def scaled(kind: str, base: float, pairs: int) -> dict:
    """What rope_parameters say of a kind of scaling."""
    if kind.endswith("by layer"):
        full = SCALED["yarn" if kind == "by layer" else "default"]
        near = {"rope_type": "default", "rope_theta": base / 10}
        return {"full_attention": {**full, "rope_theta": base}, "sliding_attention": near}
    if kind == "longrope":
        factors = [1.0 + at / 2 for at in range(pairs)]
        said = {"short_factor": factors, "long_factor": [2.0] * pairs, "original_max_position_embeddings": CONTEXT}
        return {"rope_type": "longrope", "factor": 2.0, "rope_theta": base, **said}
    return {**SCALED[kind], "rope_theta": base}


def seeds(family: str) -> range:
    """As many as the longest list of options: together they choose every one. Families of an encoder with a decoder,
    whose options are the same, share them."""
    pairs = [name for name, each in FAMILIES.items() if each.shape == "encoder-decoder"]
    first, step = (pairs.index(family) % 2, 2) if family in pairs else (0, 1)
    return range(first, max(map(len, OPTIONS[family].values())), step)


def drawn(family: str, seed: int) -> dict:
    """A random configuration of a family, every flag of it varied, as its config.json has it."""
    count = max(map(len, OPTIONS[family].values()))
    shared = "bart" if "scale_embedding" in OPTIONS[family] else "t5" if family == "mt5" else family

    def pick(name: str, options: list):
        order = [options[at % len(options)] for at in range(count)]
        random.Random(f"{shared} {name}").shuffle(order)
        return order[seed]

    own = {name: pick(name, options) for name, options in OPTIONS[family].items()}
    heads = own.pop("num_attention_heads", None) or pick("heads", [2, 4])
    of_head = own.pop("width of a head", None) or pick("width", [4, 6, 8])
    own |= {name: {"all": heads, "own": of_head}[value] for name, value in own.items() if value in ("all", "own")}
    fields = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    fields |= {"vocab_size": VOCABULARY, "tie_word_embeddings": pick("tied", EITHER)}
    layers = 3 if {"layer_types", "no_rope_layers"} & {*own} else pick("layers", [2, 1, 3])
    fields |= {"hidden_size": heads * of_head, "num_hidden_layers": layers, "num_attention_heads": heads}
    if FAMILIES[family].shape == "encoder-decoder":
        fields |= {"eos_token_id": END, "pad_token_id": PAD, "decoder_start_token_id": START}
        if width := own.pop("ffn_dim", None):
            own |= {"decoder_attention_heads": heads, "encoder_ffn_dim": width, "decoder_ffn_dim": width}
        return fields | own
    if family == "gpt_neo":
        kinds = own.pop("kinds")
        del fields["num_hidden_layers"]
        own |= {"num_layers": 2 * len(kinds), "attention_types": [[kinds, 2]]}
    if family == "modernbert":
        own["classifier_activation"] = own["hidden_activation"]
    if family != "bloom":
        fields["max_position_embeddings"] = CONTEXT
    own |= own.pop("kind", {})
    fraction = own.pop("partial_rotary_factor", 0.5 if family in ("glm", "glm4") else None)
    if isinstance(kind := own.get("rope_parameters"), str):
        pairs = int((own.get("head_dim") or of_head) * (fraction or 1)) // 2
        own["rope_parameters"] = scaled(kind, pick("base", [10000.0, 500.0]), pairs)
        own["rope_parameters"] |= {"partial_rotary_factor": fraction} if fraction else {}
    return fields | {name: value for name, value in own.items() if value is not None or name != "layer_types"}


def theirs(family: str, fields: dict, seed: int) -> torch.nn.Module:
    """A model of transformers' own, in which no bias is 0 and no gain is 1, and perhaps with an unembedding of its own
    ("own_head") whatever the other fields say."""
    own_head, kind = fields.pop("own_head", False), getattr(transformers, FAMILIES[family].architecture)
    torch.manual_seed(seed)
    # Where ALiBi is added step by step, transformers adds a Falcon's twice.
    config = kind.config_class(**fields, attn_implementation="sdpa" if fields.get("alibi") else "eager")
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
        if own_head:
            model.lm_head.weight = torch.nn.Parameter(torch.randn(model.lm_head.weight.shape) / 3)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model


def save(folder: Path, model: torch.nn.Module, special: Sequence[str] | None = None) -> None:
    """As people share it: transformers writes the model, and the tokenizer lies beside it."""
    model.save_pretrained(folder)
    tokens = SPECIAL[FAMILIES[model.config.model_type].shape] if special is None else special
    Tokenizer.of_characters(ALPHABET, tokens).save(folder / "tokenizer.json")


def logits_of(model: torch.nn.Module, inputs: list[torch.Tensor], **more):
    """What transformers' model gives: inputs are tokens, tokens and their segments, or a source and a target."""
    if model.config.is_encoder_decoder:
        return model(input_ids=inputs[0], decoder_input_ids=inputs[1], **more)
    return model(inputs[0], **({"token_type_ids": inputs[1]} if len(inputs) > 1 else {}), **more)
