"""A checkpoint comes back as it was saved, whole or not at all; a file that is damaged or lies does no harm."""

import dataclasses
import json
import math
import os
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

from tests.helpers import configs, tiny_config, tiny_model, unpadded
from transformer import (
    Card,
    Checkpoint,
    CheckpointError,
    Tokenizer,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)

FILES = ("model.safetensors", "config.json", "tokenizer.json", "card.json")
ALPHABET = "abcdefghij "
CARD = Card(
    title="A title",
    summary="ñandú 日 🙂",
    corpus={"name": "none", "sha256": "0" * 64},
    training={"betas": [0.9, 0.99]},
    parameters=12,
    validation_loss=1.25,
    examples=["ab", "c\n"],
    start_token_id=1,
)


def checkpoint(card: Card = CARD, **fields) -> Checkpoint:
    return Checkpoint(tiny_model(**fields), Tokenizer.of_characters(ALPHABET), card)


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A checkpoint that tests copy and never change."""
    path = tmp_path_factory.mktemp("good") / "good"
    save_checkpoint(path, checkpoint())
    return path


@pytest.fixture
def folder(good, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(good, tmp_path / "damaged"))


def refused(folder: Path, *words: str) -> None:
    """Loading says which folder and file are wrong; and the list, wherever it can tell, that something is."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    message = str(caught.value)
    for word in (folder.name, *words):
        assert word in message
    assert "Traceback" not in message
    (entry,) = (entry for entry in list_checkpoints(folder.parent) if entry.name == folder.name)
    # None where only loading can tell: numbers and vocabularies are not looked at before.
    assert entry.problem is None or entry.problem.startswith(f"{folder.name}: ")


@contextmanager
def cheaply() -> Iterator[None]:
    """Fails if what runs inside takes more than 10 seconds of processor time or 300 MB."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


class TestRoundTrip:
    @given(config=configs())
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_everything_comes_back(self, config, tmp_path):
        saved = Checkpoint(tiny_model(config), Tokenizer.of_characters(ALPHABET), CARD)
        save_checkpoint(tmp_path / "model", saved)
        loaded = load_checkpoint(tmp_path / "model")
        assert loaded.model.config == config
        assert loaded.card == CARD
        assert loaded.tokenizer.encode("abc ") == saved.tokenizer.encode("abc ")
        assert not loaded.model.training
        for name, tensor in saved.model.state_dict().items():
            assert torch.equal(tensor, loaded.model.state_dict()[name])
        assert torch.equal(saved.model(unpadded(config)), loaded.model(unpadded(config)))
        assert sorted(child.name for child in tmp_path.iterdir()) == ["model"]
        assert sorted(child.name for child in (tmp_path / "model").iterdir()) == sorted(FILES)

    def test_tied_embeddings_are_stored_once_and_tied_again(self, tmp_path):
        save_checkpoint(tmp_path / "model", checkpoint(tie_embeddings=True))
        assert "unembed.weight" not in load_file(tmp_path / "model/model.safetensors")
        model = load_checkpoint(tmp_path / "model").model
        assert model.unembed.weight is model.embed.weight

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_weights_may_be_stored_in_half_the_bytes(self, dtype, tmp_path):
        saved = checkpoint()
        save_checkpoint(tmp_path / "model", saved, dtype=dtype)
        assert {tensor.dtype for tensor in load_file(tmp_path / "model/model.safetensors").values()} == {
            dtype
        }
        for name, tensor in load_checkpoint(tmp_path / "model").model.state_dict().items():
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor, saved.model.state_dict()[name].to(dtype).float())

    def test_the_card_of_a_later_version_is_read(self, folder):
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        (folder / "card.json").write_text(json.dumps({**card, "mood": "good"}))
        assert load_checkpoint(folder).card == CARD

    def test_no_pickle_is_written_and_none_is_read(self, good, tmp_path):
        assert {path.suffix for path in good.iterdir()} == {".safetensors", ".json"}

        class Boom:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "exploded"),)

        folder = Path(shutil.copytree(good, tmp_path / "damaged"))
        torch.save({"embed.weight": Boom()}, folder / "model.safetensors")
        refused(folder, "model.safetensors")
        assert not (tmp_path / "exploded").exists()


class TestList:
    def test_a_damaged_folder_is_listed_with_its_problem_beside_good_ones(self, good, tmp_path):
        for name in ("b-good", "a-good", "damaged"):
            shutil.copytree(good, tmp_path / name)
        (tmp_path / "damaged/config.json").write_text("[")
        (tmp_path / "empty").mkdir()
        (tmp_path / ".hidden").mkdir()
        (tmp_path / "a-file").write_text("")
        entries = list_checkpoints(tmp_path)
        assert [entry.name for entry in entries] == ["a-good", "b-good", "damaged", "empty"]
        assert [bool(entry.problem) for entry in entries] == [False, False, True, True]
        assert entries[0].card == CARD
        assert entries[0].config == tiny_config()
        assert "config.json" in entries[2].problem
        assert (
            "model.safetensors and config.json and tokenizer.json and card.json is missing"
            in entries[3].problem
        )

    def test_a_folder_that_does_not_exist_holds_none(self, tmp_path):
        assert list_checkpoints(tmp_path / "nothing") == []
        with pytest.raises(CheckpointError, match="no checkpoint folder 'nothing'"):
            load_checkpoint(tmp_path / "nothing")


class TestDamage:
    @pytest.mark.parametrize("name", FILES)
    def test_a_missing_file_is_named(self, folder, name):
        (folder / name).unlink()
        refused(folder, f"{name} is missing")
        (folder / name).mkdir()
        refused(folder, f"{name} is missing")

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("kept", [0, 1, 7, 0.5, 0.99])
    def test_a_truncated_file_is_named(self, folder, name, kept):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])
        refused(folder, name)

    @pytest.mark.parametrize("name", ["config.json", "card.json", "tokenizer.json"])
    @pytest.mark.parametrize(
        "content",
        [
            "null",
            "[]",
            "3",
            '"x"',
            "{}",
            "[" * 100_000,
            '{"a":' * 100_000,
            "\ufeff{}",
            "1" * 5000,
            "NaN",
            "{\x00}",
        ],
        ids=lambda content: content[:8],
    )
    def test_json_of_another_kind_is_refused(self, folder, name, content):
        (folder / name).write_text(content, encoding="utf-8")
        with cheaply():
            refused(folder, name)

    @pytest.mark.parametrize("name", ["config.json", "card.json", "tokenizer.json"])
    def test_json_that_is_no_text_or_far_too_long_is_refused(self, folder, name):
        (folder / name).write_bytes(b'{"title": "\xff\xfe"}')
        refused(folder, name)
        with (folder / name).open("wb") as file:
            file.truncate(10**11)  # a sparse file: it claims 100 GB and takes none
        with cheaply():
            refused(folder, name, "larger")

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_weights_that_are_no_numbers_are_refused(self, folder, value):
        weights = load_file(folder / "model.safetensors")
        weights["blocks.1.mlp.up.bias"][3] = value
        save_file(weights, folder / "model.safetensors")
        refused(folder, "model.safetensors", "infinite or not numbers")

    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
    def test_weights_of_a_kind_that_no_model_has_are_refused(self, folder, dtype):
        weights = load_file(folder / "model.safetensors")
        weights["embed.weight"] = weights["embed.weight"].to(dtype)
        save_file(weights, folder / "model.safetensors")
        refused(folder, "model.safetensors", str(dtype))

    @pytest.mark.parametrize("change", ["missing", "extra", "shape"])
    def test_weights_that_do_not_fit_the_configuration_are_refused(self, folder, change):
        weights = load_file(folder / "model.safetensors")
        name = {"missing": "blocks.1.ln1.bias", "extra": "blocks.2.ln1.bias", "shape": "blocks.1.ln1.bias"}[
            change
        ]
        weights[name] = torch.zeros(9)
        if change == "missing":
            del weights[name]
        save_file(weights, folder / "model.safetensors")
        refused(folder, "model.safetensors", "config.json", name)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("title", 3), ("summary", None), ("corpus", []), ("training", "fast"), ("parameters", "many"),
            ("train_loss", "low"), ("accuracy", [1]), ("examples", "ab"), ("examples", [1]), ("start_token_id", 0.5),
        ],
    )  # fmt: skip
    def test_a_card_with_a_field_of_another_kind_is_refused(self, folder, field, value):
        (folder / "card.json").write_text(json.dumps({"title": "t", field: value}))
        refused(folder, "card.json", field if field != "title" else "title")


class TestLies:
    """Files that claim more than they hold take neither memory nor minutes."""

    @pytest.mark.parametrize(
        "claims",
        [
            {"d_model": 10**6}, {"n_layers": 10**9}, {"context_length": 10**12, "positions": "learned"},
            {"vocab_size": 10**12}, {"vocab_size": 2**62}, {"d_ff": 10**15}, {"d_model": 2 * 10**30},
            {"n_heads": 10**30}, {"n_layers": 10**30}, {"vocab_size": 10**4000}, {"d_model": 1}, {"n_layers": 1},
            {"n_layers": 3}, {"n_layers": 0}, {"vocab_size": 10}, {"norm": "none"}, {"dropout": math.nan},
            {"positions": {}}, {"architecture": "diffusion"}, {"surprise": 1},
        ],
        ids=lambda claims: " ".join(f"{key}={str(value)[:8]}" for key, value in claims.items()),
    )  # fmt: skip
    def test_a_configuration_that_claims_what_is_not_there(self, folder, claims):
        (folder / "config.json").write_text(json.dumps({**tiny_config().to_dict(), **claims}))
        with cheaply():
            refused(folder, "config.json")

    def test_a_context_without_end_costs_only_what_is_used(self, folder):
        claims = {"context_length": 10**12}
        (folder / "config.json").write_text(json.dumps({**tiny_config().to_dict(), **claims}))
        with cheaply():
            model = load_checkpoint(folder).model
            assert model(torch.zeros(1, 20, dtype=torch.long)).shape == (1, 20, 11)

    def test_a_hundred_thousand_layers_of_nothing(self, folder):
        header = {
            f"blocks.{layer}.x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
            for layer in range(100_000)
        }
        self.write(folder, json.dumps(header).encode())
        (folder / "config.json").write_text(json.dumps({**tiny_config().to_dict(), "n_layers": 100_000}))
        with cheaply():
            refused(folder, "claims 100000 layers")

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
    def test_a_header_that_lies(self, folder, entry):
        self.write(folder, json.dumps({"embed.weight": entry}).encode(), body=bytes(352))
        with cheaply():
            refused(folder, "model.safetensors")

    @pytest.mark.parametrize("length", [0, 2**20, 2**40, 2**63, 2**64 - 1])
    def test_a_header_that_lies_about_its_own_length(self, folder, length):
        content = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", length) + content[8:])
        with cheaply():
            refused(folder, "model.safetensors")

    def test_tensors_that_share_their_bytes(self, folder):
        entry = {"dtype": "F32", "shape": [11, 8], "data_offsets": [0, 352]}
        self.write(
            folder, json.dumps({"embed.weight": entry, "unembed.weight": entry}).encode(), body=bytes(352)
        )
        refused(folder, "model.safetensors")

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
            {
                "pre_tokenizer": {
                    "type": "Split",
                    "pattern": {"Regex": "("},
                    "behavior": "Isolated",
                    "invert": False,
                }
            },
            {"pre_tokenizer": {"type": "Nothing"}},
            {"decoder": {"type": "Nothing"}},
            {"added_tokens": 3},
            {"version": "9"},
        ],
        ids=lambda parts: json.dumps(parts)[:40],
    )
    def test_a_file_the_library_refuses_or_panics_at(self, folder, parts):
        self.change(folder, **parts)
        refused(folder, "tokenizer.json")

    @pytest.mark.parametrize("vocabulary", [{"a": 11}, {"a": 10**9}, {chr(97 + i): i for i in range(12)}])
    def test_a_vocabulary_that_the_model_does_not_have(self, folder, vocabulary):
        self.change(folder, model={"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"})
        refused(folder, "tokenizer.json", "but the model only 11")

    def test_a_file_that_would_cut_texts(self, folder):
        cut = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
        self.change(folder, truncation=cut)
        assert len(load_checkpoint(folder).tokenizer.encode("abc")) == 3


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


class TestCrashes:
    """A save that is cut short anywhere leaves a whole checkpoint, the old one or the new one."""

    NEW = dataclasses.replace(CARD, title="A newer title")

    def crash_at(self, monkeypatch, owner, name: str, number: int, error: BaseException, last: int = 0) -> None:
        """The `number`th call of a function raises instead, and those after it up to the `last`."""
        original, calls = getattr(owner, name), []

        def function(*args, **kwargs):
            calls.append(args)
            if number <= len(calls) <= max(number, last):
                raise error
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, function)

    @pytest.mark.parametrize("exists", [False, True])
    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
    @pytest.mark.parametrize(
        ("owner", "name", "number"),
        [(Path, "rename", 1), (Path, "rename", 2), (os, "fsync", 1), (os, "fsync", 4), (json, "dumps", 1)],
        ids=lambda value: str(getattr(value, "__name__", value)),
    )
    def test_an_error_on_the_way(self, tmp_path, monkeypatch, exists, error, owner, name, number):
        path = tmp_path / "model"
        if exists:
            save_checkpoint(path, checkpoint())
        with monkeypatch.context() as patch:
            self.crash_at(patch, owner, name, number, error)
            if exists or (name, number) != ("rename", 2):  # a first save renames once
                with pytest.raises(CheckpointError if isinstance(error, OSError) else KeyboardInterrupt):
                    save_checkpoint(path, checkpoint(self.NEW))
            else:
                save_checkpoint(path, checkpoint(self.NEW))
                assert load_checkpoint(path).card == self.NEW
        assert not list(tmp_path.glob(".*.tmp"))
        if exists:
            assert [entry.card for entry in list_checkpoints(tmp_path)] == [CARD]
            assert load_checkpoint(path).card == CARD
        save_checkpoint(path, checkpoint(self.NEW))
        assert load_checkpoint(path).card == self.NEW
        assert [child.name for child in tmp_path.iterdir()] == ["model"]

    @pytest.mark.parametrize("number", [1, 2])
    @pytest.mark.parametrize("first", ["load", "list", "save"])
    def test_a_machine_that_goes_down_between_two_steps(self, tmp_path, monkeypatch, number, first):
        """Then nothing tidies up, neither `finally` nor anything else; who reads finds the old version as it lies."""
        path = tmp_path / "model"
        save_checkpoint(path, checkpoint())
        with monkeypatch.context() as patch:
            self.crash_at(patch, Path, "rename", number, KeyboardInterrupt(), last=99)
            patch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)
            with pytest.raises(KeyboardInterrupt):
                save_checkpoint(path, checkpoint(self.NEW))
        left = sorted(child.name for child in tmp_path.iterdir())
        if first == "list":
            assert [(entry.name, entry.card) for entry in list_checkpoints(tmp_path)] == [("model", CARD)]
        if first != "save":
            assert load_checkpoint(path).card == CARD
        assert sorted(child.name for child in tmp_path.iterdir()) == left  # reading moves nothing
        save_checkpoint(path, checkpoint(self.NEW))
        assert load_checkpoint(path).card == self.NEW
        assert [entry.name for entry in list_checkpoints(tmp_path)] == ["model"]
        assert [child.name for child in tmp_path.iterdir()] == ["model"]  # and what was left is gone

    @pytest.mark.parametrize("exists", [False, True])
    def test_a_save_that_fails_puts_back_what_a_killed_one_left(self, tmp_path, monkeypatch, exists):
        path = tmp_path / "model"
        save_checkpoint(path, checkpoint())
        shutil.copytree(path, tmp_path / ".model.previous")
        (tmp_path / ".model.abcd_123.tmp").mkdir()
        (tmp_path / ".other.abcd_123.tmp").mkdir()
        if not exists:
            shutil.rmtree(path)
        with monkeypatch.context() as patch:
            self.crash_at(patch, os, "fsync", 2, OSError("disk full"))
            with pytest.raises(CheckpointError, match="model can't be saved: disk full"):
                save_checkpoint(path, checkpoint(self.NEW))
        assert load_checkpoint(path).card == CARD
        assert sorted(child.name for child in tmp_path.iterdir()) == [".other.abcd_123.tmp", "model"]

    @pytest.mark.parametrize(
        ("name", "fields", "alphabet", "examples"),
        [
            ("model.safetensors", {"d_model": 64}, "ab", []),
            ("tokenizer.json", {}, map(chr, range(256, 5_000)), []),
            ("card.json", {}, "ab", ["x" * 2_000] * 24),
        ],
    )
    def test_a_disk_that_is_full(self, tmp_path, name, fields, alphabet, examples):
        """Each of the libraries that write says so in its own way; none of them goes further than a sentence."""
        path, other = tmp_path / "model", tmp_path / "other"
        save_checkpoint(path, checkpoint())
        large = Checkpoint(tiny_model(**fields), Tokenizer.of_characters(alphabet), Card(title="t", examples=examples))
        save_checkpoint(other, large)
        assert max(other.iterdir(), key=lambda file: file.stat().st_size).name == name
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((other / name).stat().st_size - 1, before[1]))
        try:
            with pytest.raises(CheckpointError, match=r"^model can't be saved: .*[^.]\.$"):
                save_checkpoint(path, large)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert load_checkpoint(path).card == CARD
        assert sorted(child.name for child in tmp_path.iterdir()) == ["model", "other"]

    def test_a_card_that_could_not_be_read_again_is_not_written(self, tmp_path):
        path = tmp_path / "model"
        save_checkpoint(path, checkpoint())
        with pytest.raises(CheckpointError, match="model can't be saved: its validation_loss"):
            save_checkpoint(path, checkpoint(dataclasses.replace(CARD, validation_loss=math.nan)))
        assert load_checkpoint(path).card == CARD
