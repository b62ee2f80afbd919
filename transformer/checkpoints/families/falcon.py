"""Falcon (Almazrouei et al. 2023): one head of keys for all or for groups, sublayers side by side; or, as RW, ALiBi."""

from __future__ import annotations

import math
from typing import Any

from ...config import ModelConfig, alibi_slopes
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, norm, unembedding, write_sizes
from .rope_scaling import notes_on_rotation, rotary_fields, written_rotation


def read_config(fields: Fields) -> ModelConfig:
    width = fields.whole("n_embed", fields.whole("hidden_size"))
    heads, is_new = fields.whole("num_attention_heads"), fields.flag("new_decoder_architecture", False)
    is_parallel, has_bias = fields.flag("parallel_attn", True), fields.flag("bias", False)
    kv_heads, is_shared = fields.whole("num_kv_heads", heads), fields.flag("multi_query", True)
    if not is_new:
        kv_heads = 1 if is_shared else heads
    if (is_new and not is_parallel) or (norms_of(fields) == 2 and not is_new):
        raise UnsupportedError("its new_decoder_architecture doesn't go with its norms or its parallel_attn")
    of_head = max(width // heads, 1)
    if fields.flag("alibi", False):
        for name in ("rope_parameters", "rope_theta", "rope_scaling"):
            fields.get(name)  # which is for the others
        positions = {"positions": "alibi", "alibi_slopes": slopes(heads, of_head)}
    else:
        positions = {**rotary_fields(fields, of_head), "rotary_pairs": "halves"}
    return ModelConfig(
        vocab_size=fields.whole("vocab_size"),
        n_layers=fields.layers("num_hidden_layers"),
        n_heads=heads,
        d_model=width,
        n_kv_heads=kv_heads,
        d_ff=fields.whole("ffn_hidden_size", 4 * width),
        activation=fields.activation("activation", "gelu"),
        layer_norm_eps=fields.number("layer_norm_epsilon", 1e-5),
        attention_bias=has_bias,
        mlp_bias=has_bias,
        parallel_residual=is_parallel,
        tie_embeddings=fields.flag("tie_word_embeddings", True),
        **{"context_length": fields.whole("max_position_embeddings", 2048), **positions},
    )


def slopes(heads: int, of_head: int) -> tuple[float, ...]:
    """ALiBi's slopes, divided by √d_head like the scores."""
    return tuple(slope / math.sqrt(of_head) for slope in alibi_slopes(heads))


def norms_of(fields: Fields) -> int:
    """The number of norms of a layer with parallel sublayers."""
    return fields.whole("num_ln_in_parallel_attn", 2 if fields.flag("new_decoder_architecture", False) else 1)


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.attention_bias != config.mlp_bias:
        raise UnsupportedError("it has all biases or none")
    is_alibi = config.positions == "alibi"
    if is_alibi and config.alibi_slopes != slopes(config.n_heads, config.d_head):
        raise UnsupportedError("its slopes are the paper's, divided by √d_head")
    said: dict[str, Any] = {
        **write_sizes(config, "ffn_hidden_size"),
        "alibi": is_alibi,
        "bias": config.mlp_bias,
        "activation": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.layer_norm_eps,
        "parallel_attn": config.parallel_residual,
        "new_decoder_architecture": config.parallel_residual,
        "multi_query": False,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if config.parallel_residual:
        said |= {"num_kv_heads": config.kv_heads, "num_ln_in_parallel_attn": 2}
    elif config.kv_heads == 1:
        said["multi_query"] = True
    return said if is_alibi else {**said, "rope_parameters": written_rotation(config)}


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    names = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}
    if config.parallel_residual:
        one = dict.fromkeys(names, "input_layernorm")
        names = {"ln1": "ln_attn", "ln2": "ln_mlp"} if norms_of(fields) == 2 else one
    is_one = not fields.flag("new_decoder_architecture", False) and config.kv_heads == 1
    found = [Weight("embed.weight", ("word_embeddings.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"h.{layer}."
        for own, other in names.items():
            found += norm(config, ours + own, theirs + other, bias=True)
        qkv = f"{theirs}self_attention.query_key_value"
        layout = "as it is" if is_one else "by group"
        found += linear(f"{ours}attn.qkv", qkv, bias=config.attention_bias, layout=layout)
        found += linear(f"{ours}attn.out", f"{theirs}self_attention.dense", bias=config.has_out_bias)
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.dense_h_to_4h", bias=config.mlp_bias)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.dense_4h_to_h", bias=config.mlp_bias)
    return [*found, *norm(config, "ln_final", "ln_f", bias=True), *unembedding(config)]


def notes(fields: Fields) -> list[str]:
    if fields.flag("alibi", False):
        return ["transformers rounds what ALiBi adds to scores to eight binary digits; here it isn't rounded."]
    return notes_on_rotation(fields)


FALCON = Family(
    name="Falcon",
    model_type="falcon",
    architecture="FalconForCausalLM",
    prefix="transformer.",
    ignored="",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes,
)
