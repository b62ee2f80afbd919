"""Tests saving and loading checkpoints: a round trip, whole or not at all."""

import dataclasses
import json
import math
import os
import resource
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from tests.helpers import any_configs, some_inputs, tiny_config, tiny_model
from tests.saved_checkpoints import ALPHABET, CARD, FILES, checkpoint, refused
from transformer import (
    Checkpoint,
    CheckpointError,
    ModelCard,
    Tokenizer,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)


class TestRoundTrip:
    @given(config=any_configs(), dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_everything_comes_back(self, config, dtype, tmp_path):
        saved = Checkpoint(tiny_model(config), Tokenizer.of_characters(ALPHABET), CARD)
        save_checkpoint(tmp_path / "model", saved, dtype=dtype)
        stored = load_file(tmp_path / "model/model.safetensors")
        assert {tensor.dtype for tensor in stored.values()} == {dtype}
        tables = {"embed.weight", "unembed.weight", "encoder.embed.weight", "decoder.embed.weight"} & stored.keys()
        assert len(tables) == (1 if config.tie_embeddings else 2 if config.architecture == "decoder-only" else 3)
        loaded = load_checkpoint(tmp_path / "model")
        assert (loaded.model.config, loaded.card, loaded.model.training) == (config, CARD, False)
        assert loaded.tokenizer.encode("abc ") == saved.tokenizer.encode("abc ")
        assert not config.tie_embeddings or loaded.model.unembed.weight is loaded.model.embed.weight
        for name, tensor in loaded.model.state_dict().items():
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor, saved.model.state_dict()[name].to(dtype).float())
        saved.model.load_state_dict(loaded.model.state_dict())
        assert torch.equal(saved.model(*some_inputs(config)), loaded.model(*some_inputs(config)))
        assert sorted(child.name for child in tmp_path.iterdir()) == ["model"]
        assert sorted(child.name for child in (tmp_path / "model").iterdir()) == sorted(FILES)

    def test_the_card_of_a_later_version_is_read_and_one_without_an_end(self, copied):
        card = json.loads((copied / "card.json").read_text(encoding="utf-8"))
        (copied / "card.json").write_text(json.dumps({**card, "mood": "good"}))
        assert load_checkpoint(copied).card == CARD
        (copied / "card.json").write_text(json.dumps({**card, "end_token_id": None}))
        assert load_checkpoint(copied).card == dataclasses.replace(CARD, end_token_id=None)

    def test_no_pickle_is_written_and_none_is_read(self, good, tmp_path):
        assert {path.suffix for path in good.iterdir()} == {".safetensors", ".json"}

        class Boom:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "exploded"),)

        folder = Path(shutil.copytree(good, tmp_path / "damaged"))
        torch.save({"embed.weight": Boom()}, folder / "model.safetensors")
        refused(folder, "model.safetensors")
        assert not (tmp_path / "exploded").exists()


class TestTexts:
    @pytest.mark.parametrize("side", ["left", "right"])
    def test_a_checkpoint_reads_texts_of_any_length_together(self, side):
        reader = checkpoint()
        tokens, mask = reader.encode(["abc", "", "j"], padding_side=side)
        assert tokens.shape == mask.shape == (3, 3) and mask.sum(1).tolist() == [3, 0, 1]
        together = reader(["abc", "j"], padding_side=side)
        place = 0 if side == "right" else -1
        torch.testing.assert_close(together[0], reader.model(torch.tensor([reader.tokenizer.encode("abc")]))[0])
        torch.testing.assert_close(together[1, place], reader("j")[0, 0])

    def test_what_it_computes_is_recorded(self):
        reader = checkpoint()
        logits, cache = reader.run_with_cache("abc", names_filter="blocks.1.attn.hook_pattern")
        torch.testing.assert_close(logits, reader("abc"))
        assert cache["pattern", -1].shape == (1, 2, 3, 3)
        with pytest.raises(ValueError, match="There is no text"):
            reader("")
        with pytest.raises(TypeError, match=r"give the text to its checkpoint: checkpoint\(text\)"):
            reader.model("abc")

    def test_a_translator_reads_sources_and_what_is_written(self):
        reader = checkpoint(architecture="encoder-decoder")
        together = reader(["abc", "j"], ["a", "bc"])
        for row, texts in enumerate([("abc", "a"), ("j", "bc")]):
            source, written = map(reader.tokenizer.encode, texts)
            written = [CARD.start_token_id, *written]
            alone = reader.model(torch.tensor([source]), torch.tensor([written]))[0]
            torch.testing.assert_close(together[row, : len(written)], alone)
        assert reader("abc").shape[1] == 1  # the start token alone


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
        assert "model.safetensors and config.json and tokenizer.json and card.json is missing" in entries[3].problem

    def test_a_folder_that_does_not_exist_holds_none(self, tmp_path):
        assert list_checkpoints(tmp_path / "nothing") == []
        with pytest.raises(CheckpointError, match="no checkpoint folder 'nothing'"):
            load_checkpoint(tmp_path / "nothing")


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
        large = Checkpoint(
            tiny_model(**fields), Tokenizer.of_characters(alphabet), ModelCard(title="t", examples=examples)
        )
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
