"""Tests saving and loading checkpoints: a round trip, whole or not at all."""

import dataclasses
import itertools
import json
import math
import os
import re
import resource
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file

from tests.helpers import any_configs, encoder_configs, some_inputs, tiny_config, tiny_model
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
from transformer.checkpoints.archive import unpack_checkpoint

NEW = dataclasses.replace(CARD, title="A newer title")


def names_in(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir())


@given(config=any_configs(), dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everything_comes_back(config, dtype, tmp_path):
    saved = Checkpoint(tiny_model(config), Tokenizer.of_characters(ALPHABET), CARD)
    save_checkpoint(tmp_path / "model", saved, dtype=dtype)
    assert names_in(tmp_path) == ["model"] and names_in(tmp_path / "model") == sorted(FILES)
    stored = load_file(tmp_path / "model/model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {dtype}
    assert sum(tensor.numel() for tensor in stored.values()) == saved.model.parameter_count()  # a tied table once
    loaded = load_checkpoint(tmp_path / "model")
    assert (loaded.model.config, loaded.card, loaded.model.training) == (config, CARD, False)
    assert loaded.model.parameter_count() == saved.model.parameter_count()
    assert loaded.tokenizer.encode("abc ") == saved.tokenizer.encode("abc ")
    for name, tensor in loaded.model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, saved.model.state_dict()[name].to(dtype).float())
    saved.model.load_state_dict(loaded.model.state_dict())
    assert torch.equal(saved.model(*some_inputs(config)), loaded.model(*some_inputs(config)))


def test_the_card_of_a_later_version_is_read_and_one_without_an_end(copied):
    card = json.loads((copied / "card.json").read_text(encoding="utf-8"))
    (copied / "card.json").write_text(json.dumps({**card, "mood": "good", "end_token_id": None}))
    assert load_checkpoint(copied).card == CARD


def test_files_that_begin_with_a_byte_order_mark_are_read(copied):
    for name in ("config.json", "card.json", "tokenizer.json"):
        (copied / name).write_text((copied / name).read_text(encoding="utf-8"), encoding="utf-8-sig")
    loaded = load_checkpoint(copied)
    assert loaded.card == CARD and loaded.tokenizer.encode("abc ") == checkpoint().tokenizer.encode("abc ")
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in FILES:
            archive.write(copied / name, name)
    assert unpack_checkpoint(packed.getvalue()).card.title == CARD.title


def test_no_pickle_is_written_and_none_is_read(copied, tmp_path):
    assert {path.suffix for path in copied.iterdir()} == {".safetensors", ".json"}

    class Boom:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    torch.save({"embed.weight": Boom()}, copied / "model.safetensors")
    refused(copied, "model.safetensors")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_texts_of_any_length_are_read_together_as_they_are_alone(architecture, side):
    reader = checkpoint(architecture=architecture)
    tokens, mask = reader.encode(["abc", "", "j"], padding_side=side)
    assert tokens.shape == mask.shape == (3, 3) and mask.sum(1).tolist() == [3, 0, 1]
    written = ["a", "bc"] if architecture == "encoder-decoder" else ""
    together = reader(["abc", "j"], written, padding_side=side)
    for row, text in enumerate(["abc", "j"]):
        inputs, of_text = [torch.tensor([reader.tokenizer.encode(text)])], mask[2 * row].bool()
        if written:  # after the start token
            inputs.append(torch.tensor([[CARD.start_token_id, *reader.tokenizer.encode(written[row])]]))
            of_text = slice(inputs[1].shape[1])
        torch.testing.assert_close(together[row, of_text], reader.model(*inputs)[0])
    assert reader("abc").shape[1] == (1 if written else 3)


def test_what_a_checkpoint_computes_of_a_text_is_recorded():
    reader = checkpoint()
    logits, cache = reader.run_with_cache("abc", names_filter="blocks.1.attn.hook_pattern")
    torch.testing.assert_close(logits, reader("abc"))
    assert cache["pattern", -1].shape == (1, 2, 3, 3)
    with pytest.raises(ValueError, match="There is no text"):
        reader("")
    with pytest.raises(TypeError, match=r"give the text to its checkpoint: checkpoint\(text\)"):
        reader.model("abc")


def test_a_damaged_folder_is_listed_with_its_problem_beside_good_ones(good, tmp_path):
    for name in ("b-good", "a-good", "damaged"):
        shutil.copytree(good, tmp_path / name)
    (tmp_path / "damaged/config.json").write_text("[")
    for name in ("empty", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "a-file").write_text("")
    entries = list_checkpoints(tmp_path)
    assert [entry.name for entry in entries] == ["a-good", "b-good", "damaged", "empty"]
    assert [bool(entry.problem) for entry in entries] == [False, False, True, True]
    assert (entries[0].card, entries[0].config) == (CARD, tiny_config())
    assert "config.json" in entries[2].problem
    assert "model.safetensors and config.json and tokenizer.json and card.json is missing" in entries[3].problem
    assert list_checkpoints(tmp_path / "nothing") == []
    with pytest.raises(CheckpointError, match="no checkpoint folder 'nothing'"):
        load_checkpoint(tmp_path / "nothing")


class TestCrashes:
    """A save that is cut short anywhere leaves a whole checkpoint, the old one or the new one."""

    def crash_at(self, patch, step: int, error: BaseException | None) -> None:
        """That step of a save raises instead; without an error the machine goes down there: nothing after it happens,
        neither what tidies up nor anything else."""
        steps = itertools.count(1)

        def cut_short(original):
            def call(*args, **kwargs):
                number = next(steps)
                if number == step or (error is None and number > step):
                    raise error or KeyboardInterrupt
                return original(*args, **kwargs)

            return call

        for owner, name in ((Path, "rename"), (os, "fsync"), (json, "dumps")):
            patch.setattr(owner, name, cut_short(getattr(owner, name)))
        if error is None:
            patch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)

    @pytest.mark.parametrize("exists", [False, True])
    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), None], ids=["error", "stop", "down"])
    def test_a_save_that_is_cut_short_at_any_of_its_steps(self, tmp_path, monkeypatch, exists, error):
        expected = CheckpointError if isinstance(error, OSError) else KeyboardInterrupt
        for step in range(1, 20):
            folder = tmp_path / str(step)
            (folder / ".other.abcd_123.tmp").mkdir(parents=True)  # another save's
            if exists:
                save_checkpoint(folder / "model", checkpoint())
            found = [CARD] if exists else []
            with monkeypatch.context() as patch:
                self.crash_at(patch, step, error)
                try:
                    save_checkpoint(folder / "model", checkpoint(NEW))
                    found = [NEW]  # it has fewer steps
                except expected as raised:
                    assert not isinstance(error, OSError) or str(raised).endswith("disk full.")
            if error:
                assert names_in(folder) == [".other.abcd_123.tmp", *["model"] * len(found)]
            left = names_in(folder)
            assert [(entry.name, entry.card) for entry in list_checkpoints(folder)] == [
                ("model", each) for each in found
            ]
            assert not found or load_checkpoint(folder / "model").card == found[0]
            assert names_in(folder) == left  # reading moves nothing
            with monkeypatch.context() as patch:  # a save that fails puts back what a killed one left
                self.crash_at(patch, 2, OSError("disk full"))
                with pytest.raises(CheckpointError, match="disk full"):
                    save_checkpoint(folder / "model", checkpoint(NEW))
            assert names_in(folder) == [".other.abcd_123.tmp", *["model"] * len(found)]
            assert [entry.card for entry in list_checkpoints(folder)] == found
            save_checkpoint(folder / "model", checkpoint(NEW))
            assert load_checkpoint(folder / "model").card == NEW
            assert names_in(folder) == [".other.abcd_123.tmp", "model"]
            if found == [NEW]:
                assert step > 7
                return

    def test_a_disk_that_is_full(self, tmp_path):
        """The library that writes weights says so in its own way, which goes no further than a sentence."""
        save_checkpoint(tmp_path / "model", checkpoint())
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        try:
            with pytest.raises(CheckpointError, match=r"^model can't be saved: .*[^.]\.$"):
                save_checkpoint(tmp_path / "model", checkpoint(d_model=64))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert load_checkpoint(tmp_path / "model").card == CARD and names_in(tmp_path) == ["model"]

    def test_what_could_not_be_read_again_is_not_written(self, tmp_path):
        save_checkpoint(tmp_path / "model", checkpoint())
        with pytest.raises(CheckpointError, match="its validation_loss won't do"):
            save_checkpoint(tmp_path / "model", checkpoint(dataclasses.replace(CARD, validation_loss=math.nan)))
        assert load_checkpoint(tmp_path / "model").card == CARD


TOKENS = st.none() | st.integers(0, 12)
CARDS = st.builds(
    ModelCard,
    title=st.sampled_from(["A title", "", " x ", "\ud800", "x" * 301]),
    examples=st.lists(st.sampled_from(["ab", "x" * 2001]), max_size=2),
    train_loss=st.sampled_from([None, 1.5, math.inf, "1"]),
    training=st.sampled_from([{}, {"a": [[[[1]]]]}, {"a": math.nan}, {"a": object()}]),
    **dict.fromkeys(("start_token_id", "end_token_id", "mask_token_id"), TOKENS),
    more_end_token_ids=st.lists(st.integers(-1, 12), max_size=2),
    chat=st.sampled_from([None, {"before": "a", "after": "b"}, {"before": "a"}]),
)
GOOD = st.just(CARD) | st.just(dataclasses.replace(CARD, mask_token_id=3))


def _wrong_weights(model: torch.nn.Module, what: str) -> None:
    """Give a model numbers that no file has, or weights that its configuration hasn't."""
    if what in ("inf", "1e300"):
        model.double().embed.weight.data[0, 0] = float(what)
    elif what == "whole":
        model.unembed.weight = torch.nn.Parameter(torch.ones(model.unembed.weight.shape, dtype=torch.int8), False)
    elif what == "others":
        model.unembed.weight = torch.nn.Parameter(model.unembed.weight + 1)
    elif what == "more":
        model.extra = torch.nn.Linear(2, 2)


@given(
    config=any_configs(n_layers=1) | encoder_configs(n_layers=1),
    card=GOOD | CARDS,
    alphabet=st.sampled_from([ALPHABET, "abc", ALPHABET + "k"]),
    wrong=st.sampled_from(["", "", "", "inf", "1e300", "whole", "others", "more"]),
    dtype=st.sampled_from([None, None, torch.float16, torch.int32]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_can_be_loaded_or_a_sentence_says_why_not(config, card, alphabet, wrong, dtype, tmp_path):
    model = tiny_model(config)
    if config.architecture != "encoder-decoder":
        _wrong_weights(model, wrong)
        config = dataclasses.replace(config, tie_embeddings=config.tie_embeddings and wrong != "others")
    shutil.rmtree(tmp_path / "model", ignore_errors=True)
    try:
        save_checkpoint(tmp_path / "model", Checkpoint(model, Tokenizer.of_characters(alphabet), card), dtype)
    except CheckpointError as error:
        assert re.fullmatch(r"model can't be saved: .{10,}\.", str(error))
        assert names_in(tmp_path) == []
        return
    loaded = load_checkpoint(tmp_path / "model")
    assert (loaded.card.start_tokens, loaded.model.config) == (card.start_tokens, config)
    if dtype is None:
        assert torch.equal(loaded.model.unembed.weight, model.unembed.weight)


VERSIONS = [checkpoint(dataclasses.replace(CARD, title=str(layers)), n_layers=layers) for layers in (1, 2)]
"""Files of two of them don't fit."""


def test_a_save_between_any_two_files_that_are_read_is_no_mixture(tmp_path, monkeypatch):
    for at in range(1, 9):
        save_checkpoint(tmp_path / "model", VERSIONS[0])
        for read in (list_checkpoints, lambda parent: [load_checkpoint(parent / "model")]):
            reads, saved = itertools.count(1), VERSIONS[0]

            def meanwhile(original, at=at, reads=reads):
                def call(*args, **kwargs):
                    nonlocal saved
                    if next(reads) == at:
                        saved = VERSIONS[1]
                        save_checkpoint(tmp_path / "model", saved)
                    return original(*args, **kwargs)

                return call

            with monkeypatch.context() as patch:
                patch.setattr(json, "loads", meanwhile(json.loads))
                patch.setattr("transformer.checkpoints.folder.safe_open", meanwhile(safe_open))
                (found,) = read(tmp_path)
            config = found.config if read is list_checkpoints else found.model.config
            assert found.card.title == str(config.n_layers) == saved.card.title, at
            save_checkpoint(tmp_path / "model", VERSIONS[0])
