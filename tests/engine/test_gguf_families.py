"""Tests every family that GGUF has names for, written as llama.cpp's converter does it, against transformers."""

import numpy as np
import pytest
import torch

gguf = pytest.importorskip("gguf", reason="requirements.txt installs the package that dequantises")
transformers = pytest.importorskip("transformers", reason="requirements-dev.txt installs what models are compared with")

from transformer import load_pretrained  # noqa: E402
from transformer.checkpoints import gguf_file, weight_numbers  # noqa: E402
from transformer.checkpoints.families import FAMILIES  # noqa: E402
from transformer.checkpoints.gguf_families import KINDS  # noqa: E402

LETTERS = [*map(chr, [*range(33, 127), *range(161, 173), *range(174, 256)]), *(chr(256 + place) for place in range(68))]
"""How byte-level BPE writes each byte."""
MERGES = ["Ġ t", "h e", "Ġt he", "c a"]
TOKENS = [*LETTERS, "Ġt", "he", "Ġthe", "ca", "<|end|>"]
TYPES = {
    float: gguf.GGUFValueType.FLOAT32,
    int: gguf.GGUFValueType.UINT32,
    str: gguf.GGUFValueType.STRING,
    bool: gguf.GGUFValueType.BOOL,
}
ARCHITECTURES = {name: architecture for architecture, name in gguf.MODEL_ARCH_NAMES.items()}
CONTEXT, HEADS, WIDTH, LAYERS = 24, 4, 64, 3
DEEP = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 96, "hidden_size": WIDTH}
DEEP |= {"max_position_embeddings": CONTEXT, "num_key_value_heads": 2}
GPT2 = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": CONTEXT}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500.0}
LLAMA3 |= {"original_max_position_embeddings": 12}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "rope_theta": 500.0}
SCALING = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 12}
PLAIN = {"rope_type": "default", "rope_theta": 500.0}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0}
SHORT, LONG = [1.0 + pair / 2 for pair in range(8)], [2.0] * 8
LONGROPE = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "rope_theta": 500.0, "factor": 2.0}
LONGROPE |= {"original_max_position_embeddings": CONTEXT, "attention_factor": 1.25}
GEMMA = {"head_dim": 32, "rope_parameters": PLAIN, "sliding_window": 3}
GEMMA3 = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0}}
GEMMA3 |= {"sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0}}
FALCON = {name: DEEP[name] for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")}
HALF = {**PLAIN, "partial_rotary_factor": 0.5}
CASES = {
    "llama": ("llama", {**DEEP, "rope_parameters": PLAIN, "attention_bias": True, "mlp_bias": True}, {}),
    "llama, rope_freqs": ("llama", {**DEEP, "rope_parameters": LLAMA3}, {}),
    **{
        f"llama, {', '.join(said)}": ("llama", {**DEEP, "rope_parameters": LINEAR}, said)
        for said in (
            {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0},
            {"rope.scaling.factor": 3.0},  # of which llama.cpp takes it for linear, too
            {"rope.scale_linear": 3.0},
        )
    },
    "qwen2": ("qwen2", {**DEEP, "rope_parameters": YARN, "tie_word_embeddings": True}, SCALING),
    "qwen3": ("qwen3", {**DEEP, "rope_parameters": PLAIN, "head_dim": 32}, {}),
    "smollm3": ("smollm3", {**DEEP, "rope_parameters": PLAIN, "num_hidden_layers": 4, "pad_token_id": 0}, {}),
    "granite": (
        "granite",
        {
            **{**DEEP, "rope_parameters": PLAIN, "attention_multiplier": 0.2, "embedding_multiplier": 3.0},
            **{"residual_multiplier": 0.4, "logits_scaling": 2.5},
        },
        {"attention.scale": 0.2, "embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 2.5},
    ),
    "gemma": ("gemma", {**DEEP, **GEMMA, "head_dim": 32}, {}),
    "gemma2": (
        "gemma2",
        {**DEEP, **GEMMA, "query_pre_attn_scalar": 32, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.7},
        {"attention.sliding_window": 3, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.7},
    ),
    "gemma3": (
        "gemma3",
        {**DEEP, **GEMMA, "rope_parameters": GEMMA3, "query_pre_attn_scalar": 32, "num_hidden_layers": 7},
        {"attention.sliding_window": 3, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    ),
    "phi3": (
        "phi3",
        {**DEEP, "rope_parameters": PLAIN, "sliding_window": 3, "pad_token_id": 0},
        {"attention.sliding_window": 3},
    ),
    "phi3, longrope": (
        "phi3",
        {**DEEP, "rope_parameters": LONGROPE, "pad_token_id": 0, "original_max_position_embeddings": CONTEXT},
        {"rope.scaling.attn_factor": 1.25, "rope.scaling.original_context_length": CONTEXT},
    ),
    "olmo": ("olmo", {**DEEP, "rope_parameters": PLAIN, "clip_qkv": 0.3}, {"attention.clamp_kqv": 0.3}),
    "olmo2": ("olmo2", {**DEEP, "rope_parameters": PLAIN}, {}),
    "phi2": ("phi2", {**DEEP, "rope_parameters": HALF}, {"rope.dimension_count": 8}),
    "stablelm": (
        "stablelm",
        {**DEEP, "rope_parameters": HALF, "use_qkv_bias": True},
        {"rope.dimension_count": 8, "use_parallel_residual": True},
    ),
    "stablelm, parallel": (
        "stablelm",
        {**DEEP, "rope_parameters": HALF, "qk_layernorm": True, "use_parallel_residual": True},
        {"rope.dimension_count": 8, "use_parallel_residual": True},
    ),
    "starcoder2": ("starcoder2", {**DEEP, "rope_parameters": PLAIN}, {}),
    "gptneox": (
        "gptneox",
        {**{name: value for name, value in DEEP.items() if "key" not in name}, "rope_parameters": HALF},
        {"rope.dimension_count": 8, "use_parallel_residual": True},
    ),
    "falcon": ("falcon", {**FALCON, "max_position_embeddings": CONTEXT, "rope_parameters": PLAIN}, {}),
    "falcon, groups": (
        "falcon",
        {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "rope_parameters": PLAIN, "bias": True},
        {},
    ),
    "gpt2": ("gpt2", GPT2, {}),
    "starcoder": ("starcoder", GPT2, {}),
    "bloom": ("bloom", {"n_layer": LAYERS, "n_head": HEADS, "hidden_size": WIDTH}, {}),
}
"""Of each: the architecture, what transformers calls its options, and what the converter says of them."""


def of_transformers(architecture: str, fields: dict) -> torch.nn.Module:
    """A model of transformers' own, in which no bias is 0 and no gain is 1."""
    kind = getattr(transformers, FAMILIES[KINDS[architecture].model_type].architecture)
    torch.manual_seed(0)
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id"))
    model = kind(kind.config_class(**{"vocab_size": len(TOKENS), **tokens, **fields})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def turned(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Halves as neighbours, as llama.cpp's converter does it for Llama."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def as_converted(architecture: str, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Tensors as llama.cpp's converter stores them, by GGUF's names."""
    config, found = model.config, {}
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    if architecture == "falcon":
        kv_heads = config.num_kv_heads if config.new_decoder_architecture else 1
    names = gguf.get_tensor_name_map(ARCHITECTURES[architecture], config.num_hidden_layers)
    of_heads: dict[str, list[torch.Tensor]] = {}
    for name, tensor in model.state_dict().items():
        if ".norms." in name:
            of_heads.setdefault(name.partition(".norms.")[0] + ".weight", []).append(tensor)
            continue
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        if architecture == "bloom":
            name = name.removeprefix("transformer.")
        if "query_key_value" in name:
            groups = tensor.unflatten(0, (kv_heads, heads // kv_heads + 2, -1))
            tensor = torch.cat([part.flatten(0, 2) for part in (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])])
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            tensor = tensor + 1
        if architecture in ("llama", "granite", "smollm3", "olmo"):
            if ".q_proj." in name:
                tensor = turned(tensor, heads)
            if ".k_proj." in name:
                tensor = turned(tensor, kv_heads)
        found[names.get_name(name, (".weight", ".bias"))] = tensor
    found |= {names.get_name(name, (".weight",)): torch.stack(each) for name, each in of_heads.items()}
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        plain = 1 / rope["rope_theta"] ** (torch.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS))
        found["rope_freqs.weight"] = plain / model.model.rotary_emb.inv_freq
    if rope.get("rope_type") == "longrope":
        found |= {f"rope_factors_{each}.weight": torch.tensor(rope[f"{each}_factor"]) for each in ("short", "long")}
    return found


def write(path, architecture: str, model: torch.nn.Module, said: dict, blocks=None, kind=None) -> None:
    """The model as llama.cpp's converter writes it. blocks: what is quantised, by transformers' names, as `kind`.

    said: fields of the architecture; and "called", another name for it, and "tokenizer", another kind of it.
    """
    said = {"called": architecture, "tokenizer": "gpt2", **said}
    called, tokenizer = said.pop("called"), said.pop("tokenizer")
    config, writer = model.config, gguf.GGUFWriter(path, called)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(getattr(config, "max_position_embeddings", CONTEXT))
    writer.add_embedding_length(config.hidden_size)
    inner = getattr(config, "intermediate_size", None) or getattr(config, "ffn_hidden_size", None)
    writer.add_feed_forward_length(inner or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "falcon":
        writer.add_head_count_kv(config.num_kv_heads if config.new_decoder_architecture else 1)
    elif architecture not in ("gpt2", "gptneox"):
        writer.add_head_count_kv(getattr(config, "num_key_value_heads", config.num_attention_heads))
    if own := config.to_dict().get("head_dim"):
        writer.add_key_length(own)
        writer.add_value_length(own)
    for name in ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"):
        if (eps := getattr(config, name, None)) is not None and architecture != "olmo":
            (writer.add_layer_norm_rms_eps if name.startswith("rms") else writer.add_layer_norm_eps)(eps)
    if architecture == "olmo":
        writer.add_layer_norm_eps(1e-5)
    if rope := getattr(config, "rope_parameters", None):
        writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    for name, value in said.items():
        prefix = "" if name.startswith(("split.", "tokenizer.")) else f"{called}."
        writer.add_key_value(f"{prefix}{name}", value, TYPES[type(value)])
    writer.add_tokenizer_model(tokenizer)
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * (len(TOKENS) - 1) + [3])
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(len(TOKENS) - 1)
    names = gguf.get_tensor_name_map(ARCHITECTURES[architecture], config.num_hidden_layers)
    quantised = {names.get_name(name, (".weight",)): data for name, data in (blocks or {}).items()}
    for name, tensor in as_converted(architecture, model).items():
        if name in quantised:
            writer.add_tensor(name, quantised[name], raw_dtype=kind)
        else:
            writer.add_tensor(name, tensor.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_every_architecture_is_here():
    assert {architecture for architecture, _, _ in CASES.values()} == {*KINDS}


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_logits_are_those_of_transformers(case, tmp_path):
    architecture, fields, said = CASES[case]
    model = of_transformers(architecture, fields)
    write(tmp_path / "small.gguf", architecture, model, said)
    tokens = torch.randint(len(TOKENS), (2, 14), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        load_pretrained(tmp_path / "small.gguf").model(tokens), model(tokens).logits, atol=1e-4, rtol=0
    )


def stored(tensor: torch.Tensor, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """A matrix in blocks of a kind; where the package can't quantise, blocks of any bytes with small scales."""
    if not kind.name.endswith("_K"):
        return gguf.quants.quantize(tensor.contiguous().numpy(), kind)
    width, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(0).integers(0, 256, (tensor.numel() // width, size), dtype=np.uint8)
    scale = np.frombuffer(np.float16(1e-3).tobytes(), np.uint8)
    for start in [size - 2] if kind.name == "Q6_K" else [0, 2]:
        blocks[:, start : start + 2] = scale
    return blocks.reshape(len(tensor), -1)


SMALL_KINDS = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in SMALL_KINDS),
        *(("F16", torch.float16), ("BF16", torch.bfloat16), ("Q8_0", torch.bfloat16)),
    ],
)
@torch.no_grad()
def test_logits_are_those_of_the_dequantised_weights_in_transformers(name, dtype, tmp_path, monkeypatch):
    """A large model keeps half the precision."""
    monkeypatch.setattr(weight_numbers, "LARGE", 10**9 if dtype == torch.float32 else 0)
    monkeypatch.setattr(gguf_file, "NUMBERS_AT_ONCE", 1000)
    kind = gguf.GGMLQuantizationType[name]
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    model = of_transformers("qwen2", {**DEEP, **sizes, "rope_parameters": PLAIN})
    blocks = {}
    for theirs, parameter in model.named_parameters():
        if parameter.dim() == 2:
            blocks[theirs] = stored(parameter.data, kind)
            parameter.copy_(torch.from_numpy(gguf.quants.dequantize(blocks[theirs], kind)).reshape(parameter.shape))
    write(tmp_path / "small.gguf", "qwen2", model, {}, blocks, kind)
    tokens = torch.arange(14)[None]
    found = load_pretrained(tmp_path / "small.gguf").model
    assert {each.dtype for each in found.parameters()} == {dtype}
    largest = float(model(tokens).logits.abs().max())
    apart = 1e-4 if dtype == torch.float32 else 0.03 * largest
    torch.testing.assert_close(found(tokens).float(), model(tokens).logits, atol=apart, rtol=0)
