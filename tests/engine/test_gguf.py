"""Tests reading GGUF files, valid and false ones."""

import struct

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

gguf = pytest.importorskip("gguf", reason="requirements.txt installs the package that dequantises")

from tests.helpers import MODERN, tiny_model  # noqa: E402
from transformer import CheckpointError, load_pretrained  # noqa: E402
from transformer.checkpoints import gguf_file, weight_numbers  # noqa: E402
from transformer.checkpoints.gguf_tokenizer import tokenizer_of  # noqa: E402

LETTERS = [*map(chr, [*range(33, 127), *range(161, 173), *range(174, 256)]), *(chr(256 + place) for place in range(68))]
"""How byte-level BPE writes each byte."""
MERGES = ["Ġ t", "h e", "Ġt he", "c a"]
TOKENS = [*LETTERS, "Ġt", "he", "Ġthe", "ca", "<|end|>"]
SHAPE = MODERN["llama"] | {
    **{"vocab_size": len(TOKENS), "context_length": 16, "n_heads": 4, "d_model": 32, "d_ff": 64},
    **{"rotary_base": 500.0, "layer_norm_eps": 1e-5, "tie_embeddings": False},
}
TYPES = {
    float: gguf.GGUFValueType.FLOAT32,
    int: gguf.GGUFValueType.UINT32,
    str: gguf.GGUFValueType.STRING,
    bool: gguf.GGUFValueType.BOOL,
}
KINDS = {"llama": {}, "qwen2": {"attention_bias": True, "attention_out_bias": False, "tie_embeddings": True}}


def written(path, architecture: str, model, stored: gguf.GGMLQuantizationType | None = None, **told) -> None:
    """The model as llama.cpp's converter writes it. stored: what linear maps are quantised to."""
    config, weights = model.config, model.state_dict()
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.n_layers)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(config.layer_norm_eps)
    writer.add_rope_freq_base(config.rotary_base)
    writer.add_tokenizer_model(told.get("tokenizer", "gpt2"))
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * (len(TOKENS) - 1) + [3])
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(len(TOKENS) - 1)
    for name, value in told.get("fields", {}).items():
        writer.add_key_value(name, value, TYPES[type(value)])
    names = {"embed": "token_embd", "ln_final": "output_norm", "unembed": "output"}
    tensors = {
        f"{names[name.partition('.')[0]]}.weight": weight
        for name, weight in weights.items()
        if "blocks" not in name and not (name == "unembed.weight" and config.tie_embeddings)
    }
    widths = [heads * config.d_head for heads in (config.n_heads, config.kv_heads, config.kv_heads)]
    for layer in range(config.n_layers):
        own, theirs = f"blocks.{layer}.", f"blk.{layer}."
        for kind in ("weight", "bias"):
            if f"{own}attn.qkv.{kind}" in weights:
                q, k, v = weights[f"{own}attn.qkv.{kind}"].split(widths)
                if architecture == "llama":
                    q, k = turned(q, config.n_heads), turned(k, config.kv_heads)
                tensors |= {f"{theirs}attn_{name}.{kind}": each for name, each in zip("qkv", (q, k, v), strict=True)}
        for name, other in (
            *(("ln1", "attn_norm"), ("ln2", "ffn_norm"), ("attn.out", "attn_output")),
            *((f"mlp.{name}", f"ffn_{name}") for name in ("gate", "up", "down")),
        ):
            tensors[f"{theirs}{other}.weight"] = weights[f"{own}{name}.weight"]
    for name, tensor in tensors.items():
        data = tensor.float().contiguous().numpy()
        if stored is not None and tensor.dim() == 2:
            writer.add_tensor(name, gguf.quants.quantize(data, stored), raw_dtype=stored)
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def turned(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Halves as neighbours, as llama.cpp's converter does it for Llama."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


@pytest.fixture(scope="module", params=KINDS)
def small(request, tmp_path_factory):
    """(the file, the model in it)."""
    model = tiny_model(**{**SHAPE, **KINDS[request.param]})
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    written(path, request.param, model)
    return path, model


@torch.no_grad()
def test_its_model_computes_what_it_computed(small):
    path, model = small
    found = load_pretrained(path)
    tokens = torch.randint(len(TOKENS), (2, 12), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(found.model(tokens), model(tokens), atol=1e-4, rtol=0)
    assert (found.card.title, found.card.end_token_id) == ("small", len(TOKENS) - 1)
    assert found.model.config.layer_norm_eps == 1e-5 and found.model.config.rotary_base == 500.0


def test_a_folder_of_one_such_file_will_do_and_so_will_capitals(small, tmp_path):
    (tmp_path / "M.GGUF").write_bytes(small[0].read_bytes())
    assert load_pretrained(tmp_path / "M.GGUF").card.title == load_pretrained(tmp_path).card.title == "M"
    (tmp_path / "other.gguf").write_bytes(small[0].read_bytes())
    with pytest.raises(CheckpointError, match=r"It has 2 \.gguf files; name one of them, such as M\.GGUF"):
        load_pretrained(tmp_path)


def test_its_tokenizer_joins_bytes_as_the_file_says(small):
    tokenizer = load_pretrained(small[0]).tokenizer
    ids = tokenizer.encode("the cat the ñ 12")
    assert [TOKENS[each] for each in ids] == ["t", "he", "Ġ", "ca", "t", "Ġthe", "Ġ", "Ã", "±", "Ġ", "1", "2"]
    assert tokenizer.decode(ids) == "the cat the ñ 12"
    assert tokenizer.special_id("<|end|>") == len(TOKENS) - 1
    assert len(tokenizer.encode("<|end|>")) > 1  # in a text it is letters


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("stored, dtype", [("Q8_0", torch.bfloat16), ("F16", torch.float16), ("BF16", torch.bfloat16)])
def test_quantised_weights_are_near_those_that_were_stored(stored, dtype, large, tmp_path, monkeypatch):
    monkeypatch.setattr(weight_numbers, "LARGE", 0 if large else 10**9)
    monkeypatch.setattr(gguf_file, "NUMBERS_AT_ONCE", 100)
    model = tiny_model(**SHAPE)
    written(tmp_path / "small.gguf", "llama", model, gguf.GGMLQuantizationType[stored])
    found = load_pretrained(tmp_path / "small.gguf").model.state_dict()
    assert {each.dtype for each in found.values()} == {dtype if large else torch.float32}
    for name, weight in model.state_dict().items():
        if ".qkv." not in name:  # whose rows have changed places
            assert (found[name] - weight).abs().max() <= weight.abs().max() / 100, name


@pytest.mark.parametrize(
    "architecture, told, words",
    [
        ("mamba", {}, "GGUF files of 'mamba' can't be read: layers carry a state from token to token"),
        ("parrot", {}, "GGUF files of 'parrot' can't be read; those of llama, qwen2, .*bloom can"),
        ("llama", {"fields": {"llama.expert_count": 8}}, "It can't be read: a router picks a few"),
        ("llama", {"tokenizer": "bert"}, "Its tokenizer, of the kind 'bert', can't be built; those of SentencePiece"),
        ("llama", {"tokenizer": "llama"}, "lacks tokens or scores"),
        ("llama", {"fields": {"llama.rope.scaling.type": "spiral"}}, "scaled in a way that isn't known, 'spiral'"),
        ("llama", {"fields": {"llama.rope.scaling.attn_factor": 4.0}}, "scaled in a way that isn't known"),
        ("llama", {"fields": {"llama.rope.dimension_count": 4}}, "turns a part of each head, where all of it is known"),
        ("llama", {"fields": {"llama.attention.head_count": 0}}, "head_count is '0', where a whole number"),
        ("llama", {"fields": {"llama.attention.value_length": 4}}, "value_length is 4, where each head has 8"),
        ("llama", {"fields": {"llama.logit_scale": 0.5}}, "says logit_scale, which isn't known, and may change"),
        ("llama", {"fields": {"split.count": 3}}, "one of 3 parts of a model; llama-gguf-split --merge"),
        ("qwen2", {}, "weights of blk.0.attn_q.bias are missing"),
    ],
)
def test_what_isn_t_known_is_said(architecture, told, words, tmp_path):
    written(tmp_path / "small.gguf", architecture, tiny_model(**SHAPE), **told)
    with pytest.raises(CheckpointError, match=f"small.gguf: .*{words}"):
        load_pretrained(tmp_path / "small.gguf")


def test_fields_that_change_nothing_are_read_over(tmp_path):
    told = {"rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.dimension_count": 8, "expert_count": 0}
    fields = {**{f"llama.{name}": value for name, value in told.items()}, "tokenizer.ggml.eot_token_id": 3}
    written(tmp_path / "small.gguf", "llama", tiny_model(**SHAPE), fields=fields)
    assert load_pretrained(tmp_path / "small.gguf").card.stop_tokens == (len(TOKENS) - 1, 3)


def test_a_damaged_file_is_refused_in_a_sentence(small, tmp_path):
    """Cut off anywhere, with counts or a list that claim more than there is, or for other machines."""
    content, name = small[0].read_bytes(), b"tokenizer.ggml.tokens"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(name)) + name
    big_endian = content[:4] + content[4:8][::-1] + content[8:]
    counts = [(at, struct.pack("<Q", count)) for at in (8, 16) for count in (2**63, 2**40, 10**6)]
    for damaged in (
        *(content[:length] for length in (*range(0, 400, 7), len(content) // 2, len(content) - 200)),
        *(content[:at] + count + content[at + 8 :] for at, count in counts),
        *(head + struct.pack("<IIQ", 9, of, 2**61) for of in (8, 4, 9)),
        big_endian,
    ):
        (tmp_path / "small.gguf").write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"^small.gguf: \S.*\.$") as caught:
            load_pretrained(tmp_path / "small.gguf")
        assert damaged is not big_endian or "big-endian" in str(caught.value)


@given(changes=st.dictionaries(st.integers(0, 3_000), st.integers(0, 255), min_size=1, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_changed_in_it_it_is_read_or_refused_in_a_sentence(small, tmp_path, changes):
    content = bytearray(small[0].read_bytes())
    for place, byte in changes.items():
        content[place] = byte
    path = tmp_path / "small.gguf"
    path.write_bytes(bytes(content))
    try:
        load_pretrained(path)
    except CheckpointError as error:
        assert str(error).startswith("small.gguf: ") and "\n" not in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": ["a", "a"], "token_type": [1, 1]},
        {"tokens": ["a"], "merges": ["a b"]},
        {"tokens": "a"},
        {"tokens": ["a"], "token_type": [1, 1]},
    ],
)
def test_a_tokenizer_that_doesn_t_hold_together_is_refused(fields):
    told = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a"], "merges": [], **fields}
    with pytest.raises(CheckpointError, match="Its tokenizer"):
        tokenizer_of({f"tokenizer.ggml.{name}": value for name, value in told.items()})
