"""ModernBERT (Warner et al. 2024): pre-norm, rotary positions with a base for windows, gated feed-forward layers.

Its first layer has no norm before attention, for its embeddings have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, norm, unembedding, write_sizes
from .llama import written_windows
from .rope_scaling import kind_of, notes_on_rotation, rotary_fields, rotary_parameters, written_by_kind

WINDOWED = "sliding_attention"
WITHOUT_EFFECT = (
    # of training, other tasks, and ways of computing
    *("initializer_cutoff_factor", "classifier_pooling", "sparse_prediction", "sparse_pred_ignore_index"),
    *("deterministic_flash_attn", "reference_compile", "repad_logits_with_grad"),
    # in the first files, besides norm_eps and rotary positions
    *("layer_norm_eps", "position_embedding_type"),
)


def read_config(fields: Fields) -> ModelConfig:
    for name in WITHOUT_EFFECT:
        fields.get(name)
    layers, heads = fields.layers("num_hidden_layers"), fields.whole("num_attention_heads")
    width = fields.whole("hidden_size")
    activation = fields.activation("hidden_activation", "gelu")
    if fields.activation("classifier_activation", "gelu") != activation:
        raise UnsupportedError("its classifier_activation isn't its hidden_activation, and here both are one")
    for name in ("norm_bias", "classifier_bias"):
        fields.flag(name, False)
    has_bias = fields.flag("attention_bias", False)
    windows, rotation, local = _windows(fields, layers), _rotation(fields, width // heads), _base_of_windows(fields)
    is_same = local == rotation["rotary_base"] and not rotation["rotary_factors"] and rotation["rotary_scale"] == 1
    return ModelConfig(
        architecture="encoder-only",
        vocab_size=fields.whole("vocab_size"),
        n_layers=layers,
        n_heads=heads,
        d_model=width,
        d_ff=fields.whole("intermediate_size"),
        norm_first_input=False,
        embed_norm=True,
        masked_word_head=True,
        mlp_gate=True,
        activation=activation,
        attention_bias=has_bias,
        mlp_bias=fields.flag("mlp_bias", False),
        unembed_bias=fields.flag("decoder_bias", True),
        tie_embeddings=fields.flag("tie_word_embeddings", True),
        layer_norm_eps=fields.number("norm_eps", 1e-5),
        attention_windows=windows,
        **{"context_length": fields.whole("max_position_embeddings", 8192), **rotation},
        window_rotary_base=None if is_same or not windows else local,
    )


def _windows(fields: Fields, layers: int) -> tuple[int, ...]:
    """Each layer's window: half of local_attention on either side, and the token itself."""
    every = fields.whole("global_attn_every_n_layers", 3)
    kinds = fields.layer_kinds(layers)
    near = [kind == WINDOWED for kind in kinds] if kinds else [bool(layer % every) for layer in range(layers)]
    width = fields.whole("local_attention", 128) // 2 + 1
    return tuple(width if each else 0 for each in near) if any(near) else ()


def _rotation(fields: Fields, head_width: int) -> dict[str, Any]:
    """The rotary positions of layers without a window."""
    fields.refuse("rope_theta", "which models of this type don't read")
    fields.refuse("rope_scaling", "which scales rotary positions in layers with a window, too")
    said = fields.get("rope_parameters") or {}
    if said and not (isinstance(said, Mapping) and {"full_attention", WINDOWED} & {*said}):
        raise UnsupportedError("its rope_parameters don't name the kinds of layers that they are for")
    found = rotary_fields(fields, head_width, bases=("rope_theta", "global_rope_theta"), base=160_000.0)
    if found["rotary_dims"]:
        raise UnsupportedError("it turns a part of each head, where all of it is known")
    return {**found, "rotary_pairs": "halves"}


def _base_of_windows(fields: Fields) -> float:
    near = rotary_parameters(fields, WINDOWED)
    if kind_of(near) != "default":
        raise UnsupportedError(f"it scales rotary positions in its {WINDOWED} layers")
    local = near.get("rope_theta", fields.get("local_rope_theta"))
    return Fields({"rope_theta": local}).number("rope_theta", 10_000.0)


def write_config(config: ModelConfig) -> dict[str, Any]:
    """config.json from our configuration: norms and the head get all biases, even zeros."""
    if config.norm != "pre" or config.norm_first_input:
        raise UnsupportedError("it has a norm before each sublayer but the first")
    near = written_windows(config)
    return {
        **write_sizes(config),
        "hidden_activation": THEIR_ACTIVATIONS[config.activation],
        "classifier_activation": THEIR_ACTIVATIONS[config.activation],
        "norm_eps": config.layer_norm_eps,
        "norm_bias": True,
        "classifier_bias": True,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "decoder_bias": config.unembed_bias,
        "tie_word_embeddings": config.tie_embeddings,
        "layer_types": near["layer_types"],
        "local_attention": max(2 * ((near["sliding_window"] or 1) - 1), 1),
        "rope_parameters": written_by_kind(config),
        **dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")),
        "pad_token_id": config.pad_token_id,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    shifted = fields.flag("norm_bias", False)
    found = [Weight("embed.weight", ("embeddings.tok_embeddings.weight",))]
    found += norm(config, "ln_embed", "embeddings.norm", bias=shifted)
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"layers.{layer}."
        if layer:
            found += norm(config, f"{ours}ln1", f"{theirs}attn_norm", bias=shifted)
        found += linear(f"{ours}attn.qkv", f"{theirs}attn.Wqkv", bias=config.attention_bias)
        found += linear(f"{ours}attn.out", f"{theirs}attn.Wo", bias=config.has_out_bias)
        found += norm(config, f"{ours}ln2", f"{theirs}mlp_norm", bias=shifted)
        found += linear(f"{ours}mlp.gate", f"{theirs}mlp.Wi", bias=config.mlp_bias, layout="first half")
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.Wi", bias=config.mlp_bias, layout="second half")
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.Wo", bias=config.mlp_bias)
    found += norm(config, "ln_final", "final_norm", bias=shifted)
    has_bias = fields.flag("classifier_bias", False)
    found += [
        Weight("head.dense.weight", ("head.dense.weight",)),
        Weight("head.dense.bias", ("head.dense.bias",) if has_bias else ()),
    ]
    found += norm(config, "head.ln", "head.norm", bias=shifted)
    return [*found, *unembedding(config, "decoder", bias=True)]


MODERNBERT = Family(
    name="ModernBERT",
    model_type="modernbert",
    architecture="ModernBertForMaskedLM",
    prefix="model.",
    ignored="",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes_on_rotation,
    shape="encoder-only",
    head=("head.", "decoder."),
)
