"""Tests that damaged or false checkpoints are refused with a sentence."""

import json
import math
import resource
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.saved_checkpoints import FILES, checkpoint, refused
from transformer import CheckpointError, load_checkpoint, save_checkpoint


@contextmanager
def cheaply() -> Iterator[None]:
    """Fails if what runs inside takes more than 10 seconds of processor time or 300 MB."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.fixture
def of_both_sides(tmp_path) -> Path:
    """An encoder–decoder's checkpoint, to be damaged: three blocks in the encoder, one in the decoder."""
    shape = {"architecture": "encoder-decoder", "n_encoder_layers": 3, "n_layers": 1, "pad_token_id": 8}
    save_checkpoint(tmp_path / "damaged-sides", checkpoint(**shape))
    return tmp_path / "damaged-sides"


class TestDamage:
    @pytest.mark.parametrize("name", FILES)
    def test_a_missing_file_is_named(self, copied, name):
        (copied / name).unlink()
        refused(copied, f"{name} is missing")
        (copied / name).mkdir()
        refused(copied, f"{name} is missing")

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("kept", [0, 7, 0.99])
    def test_a_truncated_file_is_named(self, copied, name, kept):
        content = (copied / name).read_bytes()
        (copied / name).write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])
        refused(copied, name)

    @pytest.mark.parametrize("name", FILES[1:])
    def test_json_of_another_kind_is_refused(self, copied, name):
        for content in (
            *(b"null", b"[]", b"3", b'"x"', b"{}", b"[" * 100_000, b'{"a":' * 100_000, "\ufeff{}".encode()),
            *(b"1" * 5000, b"NaN", b"{\x00}", b'{"title": "\xff\xfe"}'),
        ):
            (copied / name).write_bytes(content)
            with cheaply():
                refused(copied, name)
        with (copied / name).open("wb") as file:
            file.truncate(10**11)  # a sparse file: it claims 100 GB and takes none
        with cheaply():
            refused(copied, name, "larger")

    @pytest.mark.parametrize(
        ("change", "word"),
        [
            *((lambda weight, value=value: weight.double() * value, "") for value in (math.nan, math.inf, 1e300)),
            (lambda weight: weight * -math.inf, "infinite or not numbers"),
            *(
                (lambda weight, dtype=dtype: weight.to(dtype), str(dtype))
                for dtype in (torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn)
            ),
        ],
        ids=range(8),
    )
    def test_weights_that_are_no_numbers_of_a_model_are_refused(self, copied, change, word):
        weights = load_file(copied / "model.safetensors")
        weights["blocks.1.mlp.up.bias"] = change(weights["blocks.1.mlp.up.bias"])
        save_file(weights, copied / "model.safetensors")
        refused(copied, "model.safetensors", word)

    @pytest.mark.parametrize(
        ("folder", "name", "shape"),
        [
            ("copied", "blocks.1.ln1.bias", None),
            ("copied", "blocks.2.ln1.bias", (9,)),
            ("copied", "blocks.1.ln1.bias", (9,)),
            ("of_both_sides", "decoder.blocks.0.cross_attn.q.weight", (8, 9)),
            ("of_both_sides", "decoder.blocks.0.cross_attn.kv.weight", (24, 8)),
            ("of_both_sides", "decoder.blocks.0.cross_attn.out.bias", (1, 8)),
            ("of_both_sides", "encoder.ln_final.weight", (1,)),
            ("of_both_sides", "encoder.embed.weight", (12, 8)),
            ("of_both_sides", "decoder.blocks.0.cross_attn.kv.bias", None),
            ("of_both_sides", "decoder.embed.weight", None),
            ("of_both_sides", "encoder.blocks.0.cross_attn.q.weight", (8, 8)),
            ("of_both_sides", "encoder.blocks.3.ln1.bias", (8,)),
            ("of_both_sides", "embed.weight", (11, 8)),
        ],
    )
    def test_weights_that_do_not_fit_the_configuration_are_refused(self, request, folder, name, shape):
        """shape: None where the weight is missing; one that has no place is named too."""
        folder = request.getfixturevalue(folder)
        weights = load_file(folder / "model.safetensors")
        is_there = name in weights
        weights[name] = torch.zeros(shape or 1)
        if shape is None:
            del weights[name]
        save_file(weights, folder / "model.safetensors")
        words = [f"{name} is absent"] if shape is None else [" × ".join(map(str, shape))] if is_there else []
        refused(folder, "model.safetensors", "config.json", name, *words)

    def test_a_card_with_a_field_of_another_kind_is_refused(self, copied, of_both_sides):
        for field, *values in (
            *(("title", 3), ("summary", None), ("corpus", []), ("training", "fast"), ("parameters", "many")),
            *(("train_loss", "low"), ("accuracy", [1]), ("examples", "ab", [1]), ("start_token_id", 0.5, 11, -1)),
            *(("end_token_id", 10**9, -1), ("mask_token_id", 11, "[MASK]")),
        ):
            for value in values:
                (copied / "card.json").write_text(json.dumps({"title": "t", field: value}))
                refused(copied, "card.json", field)
        (of_both_sides / "card.json").write_text(json.dumps({"title": "t", "start_token_id": None}))
        refused(of_both_sides, "card.json", "start_token_id")  # a decoder can't do without


class TestLies:
    """Files that claim more than they hold take neither memory nor minutes."""

    @pytest.mark.parametrize(
        ("folder", "claims"),
        [
            *(("copied", {"d_model": width}) for width in (1, 10**6, 2 * 10**30)),
            *(("copied", {"n_layers": layers}) for layers in (0, 1, 3, 10**9, 10**30)),
            *(("copied", {"vocab_size": size}) for size in (10, 10**12, 2**62, 10**4000)),
            ("copied", {"context_length": 10**12, "positions": "learned"}),
            *(("copied", {"d_ff": 10**15}), ("copied", {"n_heads": 10**30}), ("copied", {"norm": "none"})),
            *(("copied", {"dropout": math.nan}), ("copied", {"positions": {}}), ("copied", {"surprise": 1})),
            ("copied", {"architecture": "diffusion"}),
            *(("of_both_sides", {"n_encoder_layers": layers}) for layers in (0, 2, 4, 10**9, 10**30)),
            *(("of_both_sides", {"n_layers": layers}) for layers in (0, 2, 10**9)),
            ("of_both_sides", {"n_encoder_layers": 1, "n_layers": 3}),
            *(("of_both_sides", {"d_model": width}) for width in (16, 10**6)),
            *(("of_both_sides", {"d_ff": width}) for width in (0, 31)),
            *(("of_both_sides", {name: True}) for name in ("tie_embeddings", "unembed_bias")),
            *(("of_both_sides", {"attention": "uniform"}), ("of_both_sides", {"positions": "learned"})),
            *(("of_both_sides", {"norm": "none"}), ("of_both_sides", {"attention_bias": False})),
            *(("of_both_sides", {"vocab_size": 12}), ("of_both_sides", {"architecture": "decoder-only"})),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_a_configuration_that_claims_what_is_not_there(self, request, folder, claims):
        folder = request.getfixturevalue(folder)
        told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**told, **claims}))
        with cheaply():
            refused(folder, "config.json")

    def test_layers_that_are_not_there_are_refused_before_anything_is_built(self, copied, of_both_sides, monkeypatch):
        monkeypatch.setattr("transformer.checkpoints.folder.with_weights", lambda *args, **kwargs: pytest.fail("built"))
        nothing = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        self.write(copied, json.dumps({f"blocks.{layer}.x": nothing for layer in range(20_000)}).encode())
        for folder, field, layers in ((copied, "n_layers", 20_000), (of_both_sides, "n_encoder_layers", 50)):
            told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            (folder / "config.json").write_text(json.dumps({**told, field: layers}))
            with cheaply():
                refused(folder, f"claims {layers} layers")

    @pytest.mark.parametrize(
        "entry",
        [
            {"dtype": "F32", "shape": [11, 8], "data_offsets": [0, 10**12]},
            {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 352]},
            {"dtype": "F32", "shape": [2**63, 2**63], "data_offsets": [0, 352]},
            {"dtype": "F32", "shape": [11, 8], "data_offsets": [352, 0]},
            {"dtype": "F32", "shape": [11, 8], "data_offsets": [-1, 351]},
            {"dtype": "F99", "shape": [11, 8], "data_offsets": [0, 352]},
            {"dtype": "F32", "shape": "large", "data_offsets": [0, 352]},
            [],
        ],
        ids=str,
    )
    def test_a_header_that_lies(self, copied, entry):
        self.write(copied, json.dumps({"embed.weight": entry}).encode(), body=bytes(352))
        with cheaply():
            refused(copied, "model.safetensors")

    @pytest.mark.parametrize("length", [0, 2**20, 2**40, 2**63, 2**64 - 1])
    def test_a_header_that_lies_about_its_own_length(self, copied, length):
        content = (copied / "model.safetensors").read_bytes()
        (copied / "model.safetensors").write_bytes(struct.pack("<Q", length) + content[8:])
        with cheaply():
            refused(copied, "model.safetensors")

    def test_tensors_that_share_their_bytes(self, copied):
        entry = {"dtype": "F32", "shape": [11, 8], "data_offsets": [0, 352]}
        self.write(copied, json.dumps({"embed.weight": entry, "unembed.weight": entry}).encode(), body=bytes(352))
        refused(copied, "model.safetensors")

    @staticmethod
    def write(folder: Path, header: bytes, body: bytes = b"") -> None:
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + body)


class TestTokenizers:
    """The library that reads tokenizers panics on some files, which must not go further than ours."""

    def change(self, folder: Path, **parts) -> None:
        content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        (folder / "tokenizer.json").write_text(json.dumps({**content, **parts}), encoding="utf-8")

    @pytest.mark.parametrize(
        "parts",
        [
            {"model": None},
            {"model": {"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}},
            {"model": {"type": "WordLevel", "vocab": [], "unk_token": "a"}},
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}},
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}},
            {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}},
            {"model": {"type": "Unknown"}},
            {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
            {"pre_tokenizer": {"type": "Nothing"}},
            {"decoder": {"type": "Nothing"}},
            {"added_tokens": 3},
            {"version": "9"},
        ],
        ids=lambda parts: json.dumps(parts)[:40],
    )
    def test_a_file_the_library_refuses_or_panics_at(self, copied, parts):
        self.change(copied, **parts)
        refused(copied, "tokenizer.json")

    @pytest.mark.parametrize("vocabulary", [{"a": 11}, {"a": 10**9}, {chr(97 + i): i for i in range(12)}])
    def test_a_vocabulary_that_the_model_does_not_have(self, copied, vocabulary):
        self.change(copied, model={"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"})
        refused(copied, "tokenizer.json", "but the model only 11")


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_with_bytes_changed_or_lost_is_refused_or_read(good, tmp_path, name, data):
    content = bytearray((good / name).read_bytes())
    places = st.integers(0, len(content) - 1)
    if name == "model.safetensors":  # most of it is numbers, in which any byte will do
        places |= st.integers(0, 8 + struct.unpack("<Q", content[:8])[0])
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        content[place] = value
    content = content[: data.draw(st.just(len(content)) | places)]
    folder = Path(shutil.copytree(good, tmp_path / "damaged", dirs_exist_ok=True))
    (folder / name).write_bytes(content)
    try:
        loaded = load_checkpoint(folder)
    except CheckpointError as error:
        assert "damaged: " in str(error)
        return
    assert loaded.model(torch.zeros(1, 3, dtype=torch.long)).shape[0] == 1
    assert isinstance(loaded.card.title, str)
    assert loaded.tokenizer.vocab_size <= loaded.model.config.vocab_size
