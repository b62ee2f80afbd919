"""Tests GGUF files, written as llama.cpp's converter does it: every family against transformers, and false files."""

import os
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

gguf = pytest.importorskip("gguf", reason="requirements.txt installs the package that dequantises")

from tests.pretrained_models import CONTEXT, theirs  # noqa: E402
from transformer import CheckpointError, load_pretrained  # noqa: E402
from transformer.checkpoints import gguf_file, weight_numbers  # noqa: E402
from transformer.checkpoints.gguf_families import KINDS  # noqa: E402
from transformer.checkpoints.gguf_tokenizer import tokenizer_of  # noqa: E402
from transformer.data.tokenizers import BYTE_LETTERS  # noqa: E402

TOKENS = [*BYTE_LETTERS, "Ġt", "he", "Ġthe", "ca", "<|end|>"]
MERGES = ["Ġ t", "h e", "Ġt he", "c a"]
TYPES = {
    float: gguf.GGUFValueType.FLOAT32,
    int: gguf.GGUFValueType.UINT32,
    str: gguf.GGUFValueType.STRING,
    bool: gguf.GGUFValueType.BOOL,
}
ARCHITECTURES = {name: architecture for architecture, name in gguf.MODEL_ARCH_NAMES.items()}
HEADS, WIDTH, LAYERS = 4, 64, 3
PLAIN = {"rope_type": "default", "rope_theta": 500.0}
FALCON = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH, "rope_parameters": PLAIN}
FALCON["max_position_embeddings"] = CONTEXT
NEOX = {**FALCON, "intermediate_size": 96}
DEEP = {**NEOX, "num_key_value_heads": 2}
GPT2 = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": CONTEXT}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500.0}
LLAMA3 |= {"original_max_position_embeddings": 12}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "rope_theta": 500.0}
SCALING = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 12}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0 + pair / 2 for pair in range(8)], "long_factor": [2.0] * 8}
LONGROPE |= {"rope_theta": 500.0, "factor": 2.0, "original_max_position_embeddings": CONTEXT, "attention_factor": 1.25}
GEMMA = {**DEEP, "head_dim": 32, "sliding_window": 3}
GEMMA2 = {**GEMMA, "query_pre_attn_scalar": 32, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.7}
GEMMA3 = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0}}
GEMMA3 |= {"sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0}}
PHI3 = {**DEEP, "pad_token_id": 0}
HALF, WINDOW = {"rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5}}, {"attention.sliding_window": 3}
OF_HALF = {"rope.dimension_count": 8, "use_parallel_residual": True}
GRANITE = {"attention_multiplier": 0.2, "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "logits_scaling": 2.5}
OF_GRANITE = {"attention.scale": 0.2, "embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 2.5}
CASES = [
    ("llama", {**DEEP, "attention_bias": True, "mlp_bias": True}, {}),
    ("llama", {**DEEP, "rope_parameters": LLAMA3}, {}),
    ("llama", {**DEEP, "rope_parameters": LINEAR}, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0}),
    ("llama", {**DEEP, "rope_parameters": LINEAR}, {"rope.scaling.factor": 3.0}),  # llama.cpp takes it for linear, too
    ("llama", {**DEEP, "rope_parameters": LINEAR}, {"rope.scale_linear": 3.0}),
    ("qwen2", {**DEEP, "rope_parameters": YARN, "tie_word_embeddings": True}, SCALING),
    ("qwen3", {**DEEP, "head_dim": 32}, {}),
    ("smollm3", {**DEEP, "num_hidden_layers": 4, "pad_token_id": 0}, {}),
    ("granite", {**DEEP, **GRANITE}, OF_GRANITE),
    ("gemma", GEMMA, {}),
    ("gemma2", GEMMA2, {**WINDOW, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.7}),
    (
        "gemma3",
        {**GEMMA, "rope_parameters": GEMMA3, "query_pre_attn_scalar": 32, "num_hidden_layers": 7},
        {**WINDOW, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    ),
    ("phi3", {**PHI3, "sliding_window": 3}, WINDOW),
    (
        "phi3",
        {**PHI3, "rope_parameters": LONGROPE, "original_max_position_embeddings": CONTEXT},
        {"rope.scaling.attn_factor": 1.25, "rope.scaling.original_context_length": CONTEXT},
    ),
    ("olmo", {**DEEP, "clip_qkv": 0.3}, {"attention.clamp_kqv": 0.3}),
    ("olmo2", DEEP, {}),
    ("phi2", {**DEEP, **HALF}, {"rope.dimension_count": 8}),
    ("stablelm", {**DEEP, **HALF, "use_qkv_bias": True}, OF_HALF),
    ("stablelm", {**DEEP, **HALF, "qk_layernorm": True, "use_parallel_residual": True}, OF_HALF),
    ("starcoder2", DEEP, {}),
    ("gptneox", {**NEOX, **HALF}, OF_HALF),
    ("falcon", FALCON, {}),
    ("falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}, {}),
    ("gpt2", GPT2, {}),
    ("starcoder", {**GPT2, "n_head": 1}, {}),
    ("bloom", {"n_layer": LAYERS, "n_head": HEADS, "hidden_size": WIDTH}, {}),
]
"""Of each: the architecture, what transformers calls its options, and what the converter says of them."""


def of_transformers(architecture: str, fields: dict) -> torch.nn.Module:
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id"))
    return theirs(KINDS[architecture].model_type, {"vocab_size": len(TOKENS), **tokens, **fields}, 0)


def turned(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Halves as neighbours, as llama.cpp's converter does it for Llama."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def kv_heads_of(architecture: str, config) -> int:
    if architecture == "falcon":
        return config.num_kv_heads if config.new_decoder_architecture else 1
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def as_converted(architecture: str, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Tensors as llama.cpp's converter stores them, by GGUF's names."""
    config, found, of_heads = model.config, {}, {}
    heads, kv_heads = config.num_attention_heads, kv_heads_of(architecture, config)
    names = gguf.get_tensor_name_map(ARCHITECTURES[architecture], config.num_hidden_layers)
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
        if architecture in ("llama", "granite", "smollm3", "olmo") and (".q_proj." in name or ".k_proj." in name):
            tensor = turned(tensor, heads if ".q_proj." in name else kv_heads)
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
    if architecture not in ("gpt2", "gptneox"):
        writer.add_head_count_kv(kv_heads_of(architecture, config))
    if own := config.to_dict().get("head_dim"):
        writer.add_key_length(own)
        writer.add_value_length(own)
    names = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
    name, eps = next(((name, getattr(config, name)) for name in names if hasattr(config, name)), ("", 1e-5))
    (writer.add_layer_norm_rms_eps if name.startswith("rms") else writer.add_layer_norm_eps)(eps)
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


@pytest.mark.parametrize("architecture, fields, said", CASES, ids=str)
@torch.no_grad()
def test_logits_are_those_of_transformers(architecture, fields, said, tmp_path):
    assert {architecture for architecture, _, _ in CASES} == {*KINDS}
    model = of_transformers(architecture, fields)
    write(tmp_path / "small.gguf", architecture, model, said)
    tokens = torch.randint(len(TOKENS), (2, 14), generator=torch.Generator().manual_seed(0))
    found = load_pretrained(tmp_path / "small.gguf").model(tokens)
    torch.testing.assert_close(found, model(tokens).logits, atol=1e-4, rtol=0)


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


SINGLE = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]
HALVES = [("F16", torch.float16), ("BF16", torch.bfloat16), ("Q8_0", torch.bfloat16)]


@pytest.mark.parametrize("name, dtype", [*((name, torch.float32) for name in SINGLE), *HALVES])
@torch.no_grad()
def test_logits_are_those_of_the_dequantised_weights_in_transformers(name, dtype, tmp_path, monkeypatch):
    """A large model keeps half the precision."""
    monkeypatch.setattr(weight_numbers, "LARGE", 10**9 if dtype == torch.float32 else 0)
    monkeypatch.setattr(gguf_file, "NUMBERS_AT_ONCE", 1000)
    kind = gguf.GGMLQuantizationType[name]
    model = of_transformers("qwen2", {**DEEP, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1})
    blocks = {}
    for of_theirs, parameter in model.named_parameters():
        if parameter.dim() == 2:
            blocks[of_theirs] = stored(parameter.data, kind)
            parameter.copy_(torch.from_numpy(gguf.quants.dequantize(blocks[of_theirs], kind)).reshape(parameter.shape))
    write(tmp_path / "small.gguf", "qwen2", model, {}, blocks, kind)
    tokens = torch.arange(14)[None]
    found, expected = load_pretrained(tmp_path / "small.gguf").model, model(tokens).logits
    assert {each.dtype for each in found.parameters()} == {dtype}
    apart = 1e-4 if dtype == torch.float32 else 0.03 * float(expected.abs().max())
    torch.testing.assert_close(found(tokens).float(), expected, atol=apart, rtol=0)


@pytest.fixture(scope="module")
def llama():
    return of_transformers("llama", {**DEEP, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2})


@pytest.fixture(scope="module")
def small(llama, tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write(path, "llama", llama, {})
    return path


def test_a_folder_of_one_such_file_will_do_and_so_will_capitals(small, tmp_path):
    (tmp_path / "M.GGUF").write_bytes(small.read_bytes())
    assert load_pretrained(tmp_path / "M.GGUF").card.title == load_pretrained(tmp_path).card.title == "M"
    (tmp_path / "other.gguf").write_bytes(small.read_bytes())
    with pytest.raises(CheckpointError, match=r"It has 2 \.gguf files; name one of them, such as M\.GGUF"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize(
    "said, words",
    [
        ({"called": "mamba"}, "GGUF files of 'mamba' can't be read: layers carry a state from token to token"),
        ({"called": "parrot"}, "GGUF files of 'parrot' can't be read; those of llama, qwen2, .*bloom can"),
        ({"called": "qwen2"}, "weights of blk.0.attn_q.bias are missing"),
        ({"tokenizer": "bert"}, "Its tokenizer, of the kind 'bert', can't be built; those of SentencePiece"),
        ({"tokenizer": "llama"}, "lacks tokens or scores"),
        ({"expert_count": 8}, "It can't be read: a router picks a few"),
        ({"rope.scaling.type": "spiral"}, "scaled in a way that isn't known, 'spiral'"),
        ({"rope.scaling.attn_factor": 4.0}, "scaled in a way that isn't known"),
        ({"rope.dimension_count": 4}, "turns a part of each head, where all of it is known"),
        ({"attention.head_count": 0}, "head_count is '0', where a whole number"),
        ({"attention.value_length": 4}, "value_length is 4, where each head has 8"),
        ({"logit_scale": 0.5}, "says logit_scale, which isn't known, and may change"),
        ({"split.count": 3}, "one of 3 parts of a model; llama-gguf-split --merge"),
    ],
)
def test_what_isn_t_known_is_said(llama, said, words, tmp_path):
    write(tmp_path / "small.gguf", "llama", llama, said)
    with pytest.raises(CheckpointError, match=f"small.gguf: .*{words}"):
        load_pretrained(tmp_path / "small.gguf")


def test_fields_that_change_nothing_are_read_over(llama, tmp_path):
    said = {"rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.dimension_count": 8, "expert_count": 0}
    said["tokenizer.ggml.eot_token_id"] = 3
    write(tmp_path / "small.gguf", "llama", llama, said)
    assert load_pretrained(tmp_path / "small.gguf").card.stop_tokens == (len(TOKENS) - 1, 3)


def test_fields_of_every_type_are_read(tmp_path):
    kinds = {name: kind for name, kind in gguf.GGUFValueType.__members__.items() if name != "ARRAY"}
    values = {name: {"STRING": "ñ", "BOOL": True}.get(name, 0.5 if "FLOAT" in name else 7) for name in kinds}
    writer = gguf.GGUFWriter(tmp_path / "f.gguf", "llama")
    for name, kind in kinds.items():
        writer.add_key_value(name, values[name], kind)
        writer.add_key_value(f"list of {name}", [values[name]] * 3, gguf.GGUFValueType.ARRAY, kind)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()
    lists = {f"list of {name}": [value] * 3 for name, value in values.items()}
    assert gguf_file.GgufFile(tmp_path / "f.gguf").fields == {"general.architecture": "llama"} | values | lists


def test_a_damaged_file_is_refused_in_a_sentence(small, tmp_path):
    """Cut off anywhere, with counts or a list that claim more than there is or can be, or for other machines."""
    content, name = small.read_bytes(), b"tokenizer.ggml.tokens"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(name)) + name
    big_endian = content[:4] + content[4:8][::-1] + content[8:]
    counts = [(at, struct.pack("<Q", count)) for at in (8, 16) for count in (2**63, 2**40, 10**6)]
    for damaged in (
        *(content[:length] for length in (*range(0, 400, 31), len(content) // 2, len(content) - 200)),
        *(content[:at] + count + content[at + 8 :] for at, count in counts),
        *(head + struct.pack("<IIQ", 9, of, 2**61) for of in (8, 4, 9)),
        *(head + struct.pack("<IIQ", 9, of, 10**7) for of in (8, 0)),  # with room for ten million empty texts
        big_endian,
    ):
        (tmp_path / "small.gguf").write_bytes(damaged)
        if damaged.endswith(struct.pack("<Q", 10**7)):
            os.truncate(tmp_path / "small.gguf", 10**8)
        with pytest.raises(CheckpointError, match=r"^small.gguf: \S.*\.$") as caught:
            load_pretrained(tmp_path / "small.gguf")
        assert damaged is not big_endian or "big-endian" in str(caught.value)
        assert not damaged.endswith(struct.pack("<Q", 10**7)) or "lists of 10,000,000 items" in str(caught.value)


@given(changes=st.dictionaries(st.integers(0, 3_000), st.integers(0, 255), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_is_changed_in_it_it_is_read_or_refused_in_a_sentence(small, tmp_path, changes):
    content = bytearray(small.read_bytes())
    for place, byte in changes.items():
        content[place] = byte
    (tmp_path / "small.gguf").write_bytes(bytes(content))
    try:
        load_pretrained(tmp_path / "small.gguf")
    except CheckpointError as error:
        assert str(error).startswith("small.gguf: ") and "\n" not in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": ["a", "a"], "token_type": [1, 1]},
        {"merges": ["a b"]},
        {"tokens": "a"},
        {"token_type": [1, 1]},
        {"model": "llama", "scores": [1.0, 2.0]},
        {"model": "llama", "tokens": ["a" * 2_000], "scores": [1.0]},
    ],
    ids=str,
)
def test_a_tokenizer_that_doesn_t_hold_together_is_refused(fields):
    told = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a"], "merges": [], **fields}
    with pytest.raises(CheckpointError, match="Its tokenizer"):
        tokenizer_of({f"tokenizer.ggml.{name}": value for name, value in told.items()})
