"""Tests that a training resumed from disk continues exactly."""

from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import nn

from tests.helpers import tiny_config
from tests.training_plans import batches, same, state
from transformer import TrainingConfig, TrainingRun, build_model, train
from transformer.training import loop


class TestResuming:
    @pytest.mark.parametrize("optimizer", ["adamw", "muon"])
    @pytest.mark.parametrize("average_decay", [0.0, 0.8])
    @pytest.mark.parametrize("tied", [False, True])
    def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(self, tmp_path, optimizer, average_decay, tied):
        config = TrainingConfig(steps=6, warmup_steps=2, optimizer=optimizer, average_decay=average_decay, seed=3)

        def fresh(seed: int = 0) -> nn.Module:
            return build_model(tiny_config(dropout=0.3, positions="learned", tie_embeddings=tied), seed=seed)

        losses = []
        whole = train(fresh(), batches(), config, lambda report: losses.append(report.loss))

        first = []
        run = train(fresh(), batches(), config, lambda report: first.append(report.loss) or len(first) < 3)
        run.save(tmp_path / "state.safetensors")
        torch.rand(7)  # whatever else draws random numbers in between
        model = fresh(seed=99)
        resumed = TrainingRun(model, config)
        resumed.resume(tmp_path / "state.safetensors")
        assert resumed.step == 3
        second = []
        train(model, batches(), config, lambda report: second.append(report.loss), run=resumed)

        assert first + second == losses
        assert same(state(resumed.model), state(whole.model))
        assert same(state(resumed.best_model), state(whole.best_model))
        assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]

    def test_a_run_has_random_numbers_of_its_own(self):
        """Nothing else that draws disturbs it, and it disturbs nothing else; without them it would go another way."""
        config, ends = TrainingConfig(steps=4), []
        for disturb in ("nothing", "global", "own"):
            model = build_model(tiny_config(dropout=0.3), seed=0)
            run = train(model, batches(), config, lambda report: report.step < 2)
            if disturb == "global":
                torch.rand(7)
            if disturb == "own":
                run.generator.manual_seed(7)
            before = torch.get_rng_state()
            ends.append(state(train(model, batches(), config, run=run).model))
            assert torch.equal(torch.get_rng_state(), before)
        assert same(ends[0], ends[1])
        assert not same(ends[0], ends[2])

    def test_what_a_caller_keeps_with_it_comes_back(self, tmp_path):
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=1))
        kept, notes = {"a.b": torch.arange(3), "embed": torch.ones(2, 2)}, {"losses": [0.1, 1 / 3], "best": None}
        run.save(tmp_path / "state", kept=kept, notes=notes)
        found, said = run.resume(tmp_path / "state")
        assert same(found, kept)
        assert said == notes

    @pytest.mark.parametrize(
        ("model", "config", "what"),
        [
            ({"d_model": 16}, {}, "model.blocks.0"),
            ({"n_layers": 1}, {}, "model.blocks.1"),
            ({}, {"average_decay": 0.5}, "average."),
            ({}, {"optimizer": "muon"}, "optimizer"),
        ],
    )
    def test_the_state_of_another_training_is_refused_before_anything_changes(self, tmp_path, model, config, what):
        train(build_model(tiny_config(), seed=0), batches(), TrainingConfig(steps=2)).save(tmp_path / "state")
        run = TrainingRun(build_model(tiny_config(**model), seed=1), TrainingConfig(steps=2, **config))
        before = state(run.model)
        with pytest.raises(ValueError, match=f"is the state of another training.*: its {what}.* doesn't fit"):
            run.resume(tmp_path / "state")
        assert same(state(run.model), before)
        assert run.step == 0

    def test_another_device_s_random_state_is_refused(self, tmp_path, monkeypatch):
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(tmp_path / "state")

        class OnAGraphicsCard:
            def get_state(self) -> torch.Tensor:
                return torch.zeros(16, dtype=torch.uint8)

        run.generator = OnAGraphicsCard()
        with pytest.raises(ValueError, match="of another device: its random_state doesn't fit"):
            run.resume(tmp_path / "state")

    def test_a_damaged_state_and_another_file_are_refused(self, tmp_path):
        path = tmp_path / "state"
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(path)
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], b"{}", b"", save({"embed.weight": torch.zeros(2)})):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="is no state of a training"):
                run.resume(path)

    def test_a_full_disk_leaves_the_state_before_whole(self, tmp_path, monkeypatch):
        path = tmp_path / "state"
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(path)
        before = path.read_bytes()

        def full(tensors, partial, metadata):
            Path(partial).write_bytes(b"half of it")
            raise SafetensorError("No space left on device")

        monkeypatch.setattr(loop, "save_file", full)
        with pytest.raises(OSError, match=r"can't be written to .*state: No space left on device"):
            run.save(path)
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        assert path.read_bytes() == before
