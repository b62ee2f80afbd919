"""Builds tiny models of every configuration, and tokens for them."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer import EncoderDecoder, Intervention, ModelConfig, build_model
from transformer.inference.interventions import hooks_of
from transformer.inference.tracing import Trace, trace_pass
from transformer.model.models import Model

TINY = {"vocab_size": 11, "context_length": 8, "n_layers": 2, "n_heads": 2, "d_model": 8}


def tiny_config(**fields) -> ModelConfig:
    """A decoder of two narrow blocks; any field can be given."""
    return ModelConfig(**{**TINY, **fields})


def tiny_model(config: ModelConfig | None = None, *, seed: int = 0, **fields) -> Model:
    """A model in evaluation mode whose every parameter matters: no gain is 1, no bias 0."""
    model = build_model(config or tiny_config(**fields), seed=seed).eval()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model


def tiny_encoder_decoder(*, seed: int = 0, **fields) -> EncoderDecoder:
    """The same, of two narrow blocks on either side, or what the fields say."""
    return tiny_model(seed=seed, architecture="encoder-decoder", **fields)


def some_tokens(config: ModelConfig, batch: int = 2, pos: int | None = None, seed: int = 0) -> Tensor:
    """Random ids (batch, pos); where the configuration pads, the first row is padded on the left, the next on
    the right, so that some queries see nothing at all."""
    pos = config.context_length if pos is None else pos
    tokens = torch.randint(config.vocab_size, (batch, pos), generator=torch.Generator().manual_seed(seed))
    pad = config.pad_token_id
    if pad is not None:
        tokens[tokens == pad] = (pad + 1) % config.vocab_size
        tokens[0, : pos // 3] = pad
        tokens[-1, pos - pos // 3 :] = pad
    return tokens


def unpadded(config: ModelConfig, batch: int = 2, pos: int | None = None, seed: int = 0) -> Tensor:
    """Random ids (batch, pos), none of them padding."""
    pos = config.context_length if pos is None else pos
    tokens = torch.randint(config.vocab_size, (batch, pos), generator=torch.Generator().manual_seed(seed))
    return tokens if config.pad_token_id is None else tokens.where(tokens != config.pad_token_id, 1)


def some_inputs(config: ModelConfig, make=some_tokens) -> tuple[Tensor, ...]:
    """What a model takes: tokens, or a source as long as the context and a target two tokens shorter."""
    if config.architecture != "encoder-decoder":
        return (make(config),)
    return make(config), make(config, pos=config.context_length - 2, seed=1)


def some_text(config: ModelConfig, make=some_tokens) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A text and its source, which is empty where no encoder reads one."""
    *source, tokens = (tuple(each[0].tolist()) for each in some_inputs(config, make))
    return tokens, source[0] if source else ()


def some_pass(config: ModelConfig, dtype: torch.dtype = torch.float32) -> Trace:
    """The whole pass of a model over such a text."""
    return trace_pass(tiny_model(config).to(dtype), *some_text(config))


def changed_logits(model: Model, tokens: Sequence[int], source: Sequence[int] = (), *interventions: Intervention):
    """(pos, vocab): those of a model in which something is changed."""
    inputs = [torch.tensor([each]) for each in (source, tokens) if each]
    with torch.no_grad():
        return model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, model))[0]


def close(actual: Tensor, expected: Tensor) -> None:
    """Equal to 1e-5 of the largest number there is: in a model without norms, numbers grow."""
    finite = expected[expected.isfinite()].detach().abs()
    largest = max(float(finite.max()), 1.0) if finite.numel() else 1.0
    torch.testing.assert_close(actual, expected, atol=1e-5 * largest, rtol=1e-5)


def random_weights(module: nn.Module) -> nn.Module:
    """Every weight and bias drawn, so that none is 0 or 1 and hides a mistake."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            spread = parameter.shape[-1] ** -0.5 if parameter.dim() == 2 else 0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    return module.eval()


RELATIVE = {"positions": "relative", "relative_buckets": 8, "relative_distance": 16}


@st.composite
def configs(draw, **fixed) -> ModelConfig:
    """Any configuration of a decoder, at a tiny size; fields in `fixed` are not drawn."""
    fields = {
        "positions": st.sampled_from(["sinusoidal", "learned", "rotary", "none"]),
        "attention": st.sampled_from(["softmax", "uniform"]),
        "norm": st.sampled_from(["pre", "post", "none"]),
        "residual": st.booleans(),
        "activation": st.sampled_from(["relu", "gelu", "gelu_tanh"]),
        "d_ff": st.sampled_from([None, 0, 5]),
        "n_layers": st.integers(0, 2),
        "n_heads": st.sampled_from([1, 2]),
        "tie_embeddings": st.booleans(),
        "scale_embeddings": st.booleans(),
        "attention_bias": st.booleans(),
        "mlp_bias": st.booleans(),
        "unembed_bias": st.booleans(),
        "pad_token_id": st.sampled_from([None, 0]),
    }
    drawn = {name: draw(strategy) for name, strategy in fields.items() if name not in fixed}
    return ModelConfig.from_dict({**TINY, "context_length": 6, **drawn, **fixed})  # without what has no effect


SHARED = {"norm_kind": "rms", "mlp_gate": True, "activation": "silu", "n_kv_heads": 2, "positions": "rotary"}
SHARED |= {"rotary_pairs": "halves"}
"""What most language models since 2023 have."""
MODERN = {
    "rms": {"norm_kind": "rms"},
    "gated": {"mlp_gate": True, "activation": "silu"},
    "shared": {"n_kv_heads": 2, "positions": "rotary", "rotary_pairs": "halves"},
    "one for all": {"n_kv_heads": 1, "attention_bias": False, "attention_out_bias": True},
    "wide heads": {"head_width": 6, "positions": "rotary", "rotary_dims": 4, "rotary_base": 100.0},
    "parallel": {"parallel_residual": True, "positions": "rotary", "rotary_dims": 2, "rotary_pairs": "halves"},
    "windows": {"attention_windows": (0, 3), "positions": "learned", "attention_scale": False},
    "llama": {**SHARED, "attention_bias": False, "mlp_bias": False, "tie_embeddings": True},
    "norms of queries": {"qk_norm": "head", "positions": "rotary", "n_kv_heads": 2},
    "norms of all heads": {"qk_norm": "all", "norm_kind": "rms", "norm": "res-post", "n_kv_heads": 2},
    "sandwich": {"norm": "sandwich", "norm_kind": "rms", "score_cap": 0.5, "logit_cap": 0.3},
    "sandwich of layer norms": {"norm": "sandwich", "unembed_bias": True, "mlp_bias": False, "embed_norm": True},
    "alibi": {"positions": "alibi", "embed_norm": True, "n_kv_heads": 1},
    "slopes": {"positions": "alibi", "alibi_slopes": (0.5, 0.1, 0.2, 0.3), "qkv_clip": 0.1},
    "relative": {**RELATIVE, "score_cap": 2.0},
    "scaled rotary": {
        "head_width": 4,
        "positions": "rotary",
        "rotary_factors": (1.0, 3.5),
        "rotary_scale": 1.2,
        "attention_windows": (3, 0),
        "window_rotary_base": 50.0,
    },
    "layers without positions": {"positions": "rotary", "unrotated_layers": (1,), "qk_norm": "head"},
    "all at once": {
        **{**SHARED, "rotary_dims": 2, "rotary_base": 500.0, "parallel_residual": True, "head_width": 4},
        **{"attention_windows": (2, 0, 5), "attention_scale": False, "attention_out_bias": False, "pad_token_id": 0},
    },
}
"""Decoders with what has changed since 2017, by what they show; each has four heads, and two blocks or three."""


def modern_config(kind: str, **fields) -> ModelConfig:
    """One of `MODERN`, at a tiny size."""
    return tiny_config(**{"n_heads": 4, "n_layers": 3 if kind == "all at once" else 2, **MODERN[kind], **fields})


@st.composite
def encoder_decoder_configs(draw, **fixed) -> ModelConfig:
    """Any configuration of an encoder–decoder, its two sides of any depth."""
    sides = {"architecture": "encoder-decoder", "n_encoder_layers": draw(st.integers(0, 2))}
    return draw(configs(**{**sides, **fixed}))


@st.composite
def encoder_configs(draw, **fixed) -> ModelConfig:
    """Any configuration of an encoder: with a head for masked words or without, windows, segments."""
    fields = {
        "positions": st.sampled_from(["learned", "sinusoidal", "rotary", "relative", "alibi"]),
        "norm": st.sampled_from(["pre", "post", "sandwich", "res-post"]),
        "norm_kind": st.sampled_from(["layer", "rms"]),
        "norm_first_input": st.booleans(),
        "qk_norm": st.sampled_from(["none", "head", "all"]),
        "embed_norm": st.booleans(),
        "masked_word_head": st.booleans(),
        "attention_windows": st.sampled_from([(), (3, 0)]),
        "n_segments": st.sampled_from([0, 2]),
    }
    drawn = {name: draw(values) for name, values in fields.items() if name not in fixed}
    if drawn.get("norm") in ("post", "res-post"):
        drawn["norm_first_input"] = True
    if drawn.get("norm") in ("sandwich", "res-post"):
        drawn["residual"] = True
    return draw(configs(**{"architecture": "encoder-only", "attention": "softmax", **RELATIVE, **drawn, **fixed}))


def any_configs(**fixed) -> st.SearchStrategy[ModelConfig]:
    """Any configuration of either architecture."""
    return configs(**fixed) | encoder_decoder_configs(**fixed)


def viewed_shape(dims, shape, config):
    """The shape of a tensor in the dimensions of its equation: with heads in groups, or dimensions in pairs."""
    if "member" in dims:
        at = dims.index("kv_head")
        return (*shape[:at], config.kv_heads, config.n_heads // config.kv_heads, *shape[at + 1 :])
    if "pair" in dims:
        sizes = {"pair": shape[-1] // 2, "side": 2}
        return (*shape[:-1], *(sizes[dim] for dim in dims[-2:]))
    return shape
