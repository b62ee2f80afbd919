"""GPT-Neo (Black et al. 2021; for example TinyStories): no ÷ √d_head, and layers with sliding-window attention."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, unembedding


def read_config(fields: Fields) -> ModelConfig:
    width, layers = fields.whole("hidden_size"), fields.layers("num_layers")
    return ModelConfig(
        vocab_size=fields.whole("vocab_size"),
        context_length=fields.whole("max_position_embeddings"),
        n_layers=layers,
        n_heads=fields.whole("num_heads"),
        d_model=width,
        d_ff=fields.whole("intermediate_size", 4 * width),
        positions="learned",
        activation=fields.activation("activation_function", "gelu_new"),
        layer_norm_eps=fields.number("layer_norm_epsilon", 1e-5),
        attention_scale=False,
        attention_bias=False,
        attention_out_bias=True,
        attention_windows=windows(fields, layers),
        tie_embeddings=fields.flag("tie_word_embeddings", True),
    )


def windows(fields: Fields, layers: int) -> tuple[int, ...]:
    """Each layer's window. attention_types: [[["global", "local"], 6]], the kinds in turn, six times."""
    window = fields.whole("window_size", 256)
    kinds: list[str] = []
    try:
        for names, times in fields.get("attention_types", [[["global", "local"], 12]]):
            if len(names) * times > layers:
                raise ValueError
            kinds += list(names) * times
    except (TypeError, ValueError):
        kinds = []
    if len(kinds) != layers or not {*kinds} <= {"global", "local"}:
        raise UnsupportedError('its attention_types don\'t name "global" or "local" for each layer')
    return tuple(window if kind == "local" else 0 for kind in kinds) if "local" in kinds else ()


def write_config(config: ModelConfig) -> dict[str, Any]:
    near = [config.window(layer) for layer in range(config.n_layers)]
    kinds = ["local" if window else "global" for window in near]
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "num_layers": config.n_layers,
        "num_heads": config.n_heads,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.layer_norm_eps,
        "window_size": max([*near, 1]),
        "attention_types": [[kinds, 1]],
        "attention_layers": kinds,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    found = [Weight("embed.weight", ("wte.weight",)), Weight("pos_embed.weight", ("wpe.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"h.{layer}."
        attention = f"{theirs}attn.attention."
        found += linear(f"{ours}ln1", f"{theirs}ln_1", bias=True)
        found += linear(f"{ours}ln2", f"{theirs}ln_2", bias=True)
        found += linear(f"{ours}attn.qkv", *(f"{attention}{part}_proj" for part in "qkv"), bias=False)
        found += linear(f"{ours}attn.out", f"{attention}out_proj", bias=True)
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.c_fc", bias=True)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.c_proj", bias=True)
    return [*found, *linear("ln_final", "ln_f", bias=True), *unembedding(config)]


GPT_NEO = Family(
    name="GPT-Neo",
    model_type="gpt_neo",
    architecture="GPTNeoForCausalLM",
    prefix="transformer.",
    ignored=r"h\.\d+\.attn\.attention\.(masked_)?bias",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
