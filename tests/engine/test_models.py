"""Tests whole models of every configuration: what all keep, what they refuse, how they begin."""

import copy
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import (
    MODERN,
    RELATIVE,
    close,
    configs,
    encoder_configs,
    encoder_decoder_configs,
    modern_config,
    some_inputs,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import HookPoint, ModelConfig, build_model, direct_logit_attribution, hook_points, logit_lens
from transformer.inference.interventions import Without
from transformer.inference.pass_outline import array_of, outline, tensors_of
from transformer.inference.tracing import deviations, trace_pass
from transformer.model.equations import LOGITS, equations, unembedding_equation
from transformer.training.evaluation import token_loss

PAIRS = {
    **{kind: MODERN[kind] for kind in ("rms", "gated", "one for all")},
    "relative pair": {**RELATIVE, "share_embeddings": True, "attention_scale": False, "logit_cap": 0.5},
    "pair of wide heads": {"head_width": 6, "embed_norm": True, "unembed_bias": True, "tie_embeddings": True},
}
"""Encoder–decoders with what has changed since 2017."""
LATER = {
    **{kind: modern_config(kind) for kind in MODERN},
    **{f"pair, {kind}": tiny_config(architecture="encoder-decoder", n_heads=4, **PAIRS[kind]) for kind in PAIRS},
}


def check_what_all_keep(config: ModelConfig) -> None:
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    model, inputs = tiny_model(config), some_inputs(config)
    (*source, tokens), segments = inputs, ()
    if config.n_segments:
        segments = (torch.arange(tokens.shape[1]) > 3).long().expand_as(tokens)
        inputs = (tokens, segments)

    logits, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
    assert logits.shape == (*tokens.shape, config.vocab_size) and logits.isfinite().all()
    assert list(cache) == model.hook_names()
    assert {*cache} == {name for name, module in model.named_modules() if isinstance(module, HookPoint)}
    for name, info in model.hook_points().items():
        assert cache[name].shape == shape_of(name, info, config, inputs), name
        assert info.name == name and info.meaning.endswith(".") and info.formula
    patterns = [name for name in cache if name.endswith("hook_pattern")]
    close(model(*inputs), logits)  # by the fused way
    unchanged = [(name, lambda tensor, hook: tensor) for name in cache]
    close(model.run_with_hooks(*inputs, fwd_hooks=unchanged), logits)  # by the way that edited tensors take
    fewer, seen = model.run_with_cache(*inputs, names_filter=patterns)
    close(fewer, logits)
    for name in patterns:
        close(seen[name], cache[name])
    if source:
        padding = None if config.pad_token_id is None else (source[0] != config.pad_token_id)[:, None, None, :]
        close(model.decode(tokens, model.encode(*source), padding), logits)

    own = {"segments": segments[0]} if config.n_segments else {}
    found = trace_pass(model, tokens[0], *(each[0] for each in source), **own)
    for each in deviations(found):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each
    operands = [operand for equation in equations(config).values() for operand in equation.sources]
    assert all(len(operand.dims) == len(operand.cells) for operand in operands)
    read = {operand.name for operand in operands}
    assert {name for name, _ in model.named_parameters()} <= read | {"unembed.weight"}
    close(logit_lens(found).logits[-1], found.tensors[LOGITS].double())
    attributed = direct_logit_attribution(found, [1] * tokens.shape[1]).values.sum(0)
    close(attributed, found.tensors[unembedding_equation(config).name].double()[:, 1])
    for info in tensors_of(config, tokens.shape[1], *(each.shape[1] for each in source)).values():
        assert array_of(found, info).shape == info.sizes
    assert outline(found).metadata["config"] == config.to_dict()

    inputs = some_inputs(config, unpadded)
    logits = model(*inputs)
    if config.is_causal:
        later = [each.clone() for each in inputs]
        later[-1][:, 3] = later[-1][:, 3] % (config.vocab_size - 1) + 1
        for names in ((), patterns):
            changed, _ = model.run_with_cache(*later, names_filter=names)
            before, _ = model.run_with_cache(*inputs, names_filter=names)
            assert torch.equal(before[:, :3], changed[:, :3])
            assert not config.residual or not torch.equal(before[:, 3], changed[:, 3])
    token_loss(logits, inputs[-1].roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        if config.n_layers or not name.startswith("encoder."):  # which a decoder of no layers doesn't read
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name


def shape_of(name: str, info, config: ModelConfig, inputs) -> tuple[int, ...]:
    """A recorded tensor's shape by the dimensions that the register names."""
    source, target = inputs[0].shape[1], inputs[-1].shape[1]
    pos = source if name.startswith("encoder.") else target
    sizes = {"batch": 2, "1": 1, "head": config.n_heads, "kv_head": config.kv_heads, "vocab": config.vocab_size}
    sizes |= {each: getattr(config, each) for each in ("d_head", "d_model", "d_ff")}
    sizes |= {"pos": pos, "query": pos, "key": source if ".cross_attn." in name else pos}
    shape = tuple(sizes[dimension] for dimension in info.shape)
    return (2, 1, *shape) if name.endswith("hook_mask") and config.pad_token_id is not None else shape


@pytest.mark.parametrize(
    "shapes",
    [configs(), encoder_decoder_configs(), encoder_configs()],
    ids=["decoder-only", "encoder-decoder", "encoder-only"],
)
@given(st.data())
def test_every_model_keeps_what_all_keep(shapes, data):
    check_what_all_keep(data.draw(shapes))


@pytest.mark.parametrize("kind", LATER)
def test_those_with_what_has_changed_since_2017_keep_it_too(kind):
    check_what_all_keep(LATER[kind])


OF_ATTENTION = ("q", "k", "v", "raw_scores", "scaled_scores", "mask", "attn_scores", "pattern", "z", "result")
OF_A_BLOCK = (
    *(f"hook_{name}" for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")),
    *(f"{norm}.hook_{name}" for norm in ("ln1", "ln2") for name in ("scale", "out")),
    *("mlp.hook_pre", "mlp.hook_post", *(f"attn.hook_{name}" for name in OF_ATTENTION)),
)
OF_THE_MEMORY = (
    *("hook_cross_attn_out", "hook_resid_cross", "ln_cross.hook_scale", "ln_cross.hook_out"),
    *(f"cross_attn.hook_{name}" for name in OF_ATTENTION),
)


def test_hook_points_have_their_public_names():
    expected = {"hook_embed", "hook_pos_embed", "ln_final.hook_scale", "ln_final.hook_out"}
    expected |= {f"blocks.0.{name}" for name in OF_A_BLOCK}
    assert {*hook_points(tiny_config(n_layers=1))} == expected
    rotary = {*hook_points(tiny_config(n_layers=1, positions="rotary"))}
    assert rotary ^ expected == {"hook_pos_embed", "blocks.0.attn.hook_rot_q", "blocks.0.attn.hook_rot_k"}
    assert {*hook_points(tiny_config(n_layers=1, architecture="encoder-decoder"))} == {
        *(f"{side}.{name}" for name in expected for side in ("encoder", "decoder")),
        *(f"decoder.blocks.0.{name}" for name in OF_THE_MEMORY),
    }


@given(configs(residual=True) | st.sampled_from(["gated", "shared", "one for all", "llama"]).map(modern_config))
def test_weights_are_there_as_formulas_have_them(config):
    model, tokens = tiny_model(config), unpadded(config)
    _, cache = model.run_with_cache(tokens)
    group = torch.arange(config.n_heads) // (config.n_heads // config.kv_heads)
    for layer in range(config.n_layers):
        x = cache["out", layer, "ln1"] if config.norm == "pre" else cache["resid_pre", layer]
        for name in "qkv" if config.attention == "softmax" else "v":
            weight, bias = (getattr(model, f"{kind}_{name.upper()}")[layer] for kind in "Wb")
            recorded = cache[name, layer] if name == "q" else cache[name, layer][:, :, group]
            close(torch.einsum("bpd,hde->bphe", x, weight) + bias, recorded)
        out = torch.einsum("bphe,hed->bpd", cache["z", layer], model.W_O[layer]) + model.b_O[layer]
        close(out, cache["attn_out", layer])
        if config.d_ff:
            close(cache["mlp.hook_post", layer] @ model.W_out[layer] + model.b_out[layer], cache["mlp_out", layer])
            if config.norm == "pre":
                up = cache["out", layer, "ln2"] @ model.W_in[layer] + model.b_in[layer]
                close(up, cache["pre_linear" if config.mlp_gate else "pre", layer, "mlp"])
            if config.mlp_gate:
                assert torch.equal(model.W_gate[layer], model.blocks[layer].mlp.gate.weight.T)
    assert hasattr(model, "W_Q") == (config.attention == "softmax" and config.n_layers > 0)
    assert hasattr(model, "W_pos") == (config.positions in ("learned", "sinusoidal"))
    scale = config.d_model**0.5 if config.scale_embeddings else 1
    close(model.W_E[tokens] * scale, cache["embed"])
    close(model.stream(tokens) @ model.W_U + model.b_U, model(tokens))


def test_windows_alternate_by_layer():
    _, cache = tiny_model(modern_config("windows")).run_with_cache(unpadded(modern_config("windows")))
    queries, keys = torch.arange(8)[:, None], torch.arange(8)
    assert torch.equal(cache["mask", 0], keys <= queries)
    assert torch.equal(cache["mask", 1], (keys <= queries) & (keys > queries - 3))


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-only", "encoder-decoder"])
def test_a_seed_decides_every_weight_and_dropout_acts_in_training_only(architecture):
    config = tiny_config(architecture=architecture, dropout=0.5, n_segments=2 * (architecture == "encoder-only"))
    first = build_model(config, seed=3)
    assert first.config == config and type(first).__name__.lower() == architecture.replace("-", "")
    torch.manual_seed(99)
    second, other = (build_model(config, seed=seed).state_dict() for seed in (3, 4))
    assert all(torch.equal(weight, second[name]) for name, weight in first.state_dict().items())
    assert not all(torch.equal(other[name], second[name]) for name in other)
    inputs = some_inputs(config)
    assert not torch.equal(first(*inputs), first(*inputs))
    first.eval()
    assert torch.equal(first(*inputs), first(*inputs))


WIDE = {"vocab_size": 200, "d_model": 64, "n_heads": 4, "context_length": 100, "positions": "learned"}


@pytest.mark.parametrize("d_ff", [0, 256])
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_weights_are_drawn_with_the_spread_that_their_source_says(architecture, d_ff):
    """√(2 / 5 d_model), and what writes to the stream one over the root of the number of its writers less."""
    shape = {**WIDE, "architecture": architecture, "d_ff": d_ff, "n_layers": 3}
    sides = {} if architecture == "decoder-only" else {"n_encoder_layers": 2}
    model = build_model(tiny_config(**shape, **sides), seed=0)
    small, feed_forward = (2 / (5 * 64)) ** 0.5, d_ff > 0
    for name, weight in model.named_parameters():
        if weight.dim() != 2:
            assert (weight == (0 if name.endswith("bias") else 1)).all(), name
            continue
        writers = {"encoder": 2 * (1 + feed_forward), "decoder": 3 * (2 + feed_forward)}
        writers = writers.get(name.split(".")[0], 3 * (1 + feed_forward))
        writes = name.endswith(("attn.out.weight", "mlp.down.weight"))
        assert weight.std().item() == pytest.approx(small / (writers**0.5 if writes else 1), rel=0.06), name
        assert abs(weight.mean().item()) < 0.1 * small, name
    scaled = build_model(tiny_config(**shape, **sides, scale_embeddings=True, tie_embeddings=True), seed=0)
    assert scaled.embed.weight.std().item() * 8 == pytest.approx(1, rel=0.05)


def test_a_shared_token_table_is_one_table_in_a_copy_too_and_counts_once():
    counts = {}
    for tied in (True, False):
        model = tiny_encoder_decoder(tie_embeddings=tied, share_embeddings=True)
        counts[tied] = model.parameter_count()
        for one in (model, copy.deepcopy(model)):
            assert one.encoder.embed is one.decoder.embed is one.embed
            assert (one.unembed.weight is one.embed.weight) == tied
        assert copy.deepcopy(model).embed is not model.embed
        assert [name for name in model.state_dict() if "embed" in name] == ["embed.weight", "unembed.weight"]
    assert counts[False] - counts[True] == 11 * 8
    assert tiny_encoder_decoder().parameter_count() - counts[False] == 11 * 8
    of_attention, of_mlp, norm = 4 * 8 * 8 + 4 * 8, 2 * 8 * 12 + 12 + 8, 16
    decoder = tiny_model(tie_embeddings=True, d_ff=12, n_layers=1)
    assert decoder.parameter_count() == 11 * 8 + of_attention + of_mlp + 3 * norm


FEW, MANY = torch.ones(1, 3).long(), torch.ones(1, 9).long()
WRONG_TOKENS = [
    (FEW[0], r"shape \(batch, pos\), not torch.int64 \(3,\)"),
    (torch.tensor(1), r"shape \(batch, pos\), not torch.int64 \(\)"),
    (FEW.float(), r"whole numbers .* not torch.float32"),
    (FEW.bool(), r"whole numbers .* not torch.bool"),
    (MANY, "9 tokens are more than this model's context of 8; give it the last 8"),
    (11 * FEW, "between 0 and 10"),
    (-FEW, "between 0 and 10"),
]


def test_what_a_model_can_not_read_is_refused():
    decoder, translator = tiny_model(), tiny_encoder_decoder()
    for tokens, message in WRONG_TOKENS:
        for model, inputs in ((decoder, (tokens,)), (translator, (FEW, tokens)), (translator, (tokens, FEW))):
            with pytest.raises(ValueError, match=message):
                model(*inputs)
    with pytest.raises(ValueError, match="2 sources were given with 3 targets"):
        translator(FEW.expand(2, 3), FEW.expand(3, 3))
    for model, inputs in ((decoder, ["hello"]), (translator, ["hello", FEW])):
        with pytest.raises(TypeError, match=r"^A model reads token ids, a tensor \(batch, pos\), and not a str; of a"):
            model(*inputs)
        with pytest.raises(TypeError, match=r"give it tokenizer\.encode\('hello'\)"):
            trace_pass(model, "hello")
    with torch.inference_mode(), pytest.raises(RuntimeError, match=r"no gradients inside torch\.inference_mode\(\)"):
        decoder.run_with_gradients(FEW, of=lambda logits: logits.sum())
    with pytest.raises(ValueError, match="doesn't have ÷ √d_head"):
        Without("scale").fwd_hooks(tiny_model(modern_config("windows")))


@pytest.mark.parametrize(
    "shapes", [[(1, 0)], [(0, 3)], [(0, 0)], [(1, 0), (1, 2)], [(1, 2), (1, 0)], [(0, 3), (0, 2)], [(1, 0), (1, 0)]]
)
def test_no_tokens_and_no_texts_are_no_error(shapes):
    model = (tiny_model if len(shapes) == 1 else tiny_encoder_decoder)(pad_token_id=0)
    inputs = [torch.full(shape, at) for at, shape in enumerate(shapes)]
    for logits in (model(*inputs), model.run_with_cache(*inputs)[0]):
        assert logits.shape == (*shapes[-1], 11) and logits.isfinite().all()


def test_a_context_of_a_billion_costs_nothing_until_it_is_used():
    assert tiny_model(context_length=10**12)(torch.zeros(1, 30, dtype=torch.long)).shape == (1, 30, 11)
