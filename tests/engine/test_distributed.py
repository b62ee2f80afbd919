"""Tests training on several processes, and on other devices: the same steps as one process takes on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.distributed_training import CORPUS, KILLED_AT, PRESET
from tests.helpers import tiny_config
from tests.training_plans import batches, same, state
from transformer import Batch, TrainingConfig, TrainingRun, build_model, commands, load_checkpoint, train
from transformer import __main__ as command_line
from transformer.data.batches import IGNORED
from transformer.training.evaluation import token_loss
from transformer.training.execution import Execution

ROOT = Path(__file__).resolve().parents[2]
SMALL = TrainingConfig(steps=3, warmup_steps=1)


@given(rows=st.integers(1, 40), world_size=st.integers(1, 9), seed=st.integers(0, 1000))
def test_every_row_of_a_batch_goes_to_one_process_and_the_mean_over_them_is_its_loss(rows, world_size, seed):
    """However it is padded."""
    random = torch.Generator().manual_seed(seed)
    logits, targets = torch.randn(rows, 6, 7, generator=random), torch.randint(7, (rows, 6), generator=random)
    targets[torch.rand(rows, 6, generator=random) < 0.6] = IGNORED
    targets[0, 0] = 3
    batch = Batch((torch.arange(rows), logits), targets)
    processes = [Execution(rank=rank, world_size=world_size) for rank in range(world_size)]
    if rows < world_size:
        with pytest.raises(ValueError, match=f"A batch of {rows} can't be shared among {world_size} processes"):
            processes[0].shard(batch)
        return
    shards = [each.shard(batch) for each in processes]
    sizes = [len(shard.targets) for shard in shards]
    assert sorted(torch.cat([shard.inputs[0] for shard in shards]).tolist()) == [*range(rows)]
    assert max(sizes) - min(sizes) <= 1
    parts = []
    for execution, (numbers, found), right in ((each, *shard) for each, shard in zip(processes, shards, strict=True)):
        assert torch.equal(found, logits[numbers]) and torch.equal(right, targets[numbers])
        parts.append(execution.loss(found, right, batch).item())
    assert np.mean(parts) == pytest.approx(token_loss(logits, targets).item(), abs=1e-6)


def test_processes_draw_dropout_of_their_own_which_depends_on_the_step_alone():
    def drawn(rank: int, step: int) -> float:
        generator = torch.Generator()
        Execution(rank=rank, world_size=2).seed_dropout(generator, 7, step)
        return torch.rand((), generator=generator).item()

    assert len({drawn(rank, step) for rank in (0, 1) for step in range(4)}) == 8
    assert drawn(1, 3) == drawn(1, 3)


def test_two_processes_one_of_which_is_killed_train_what_one_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "PRESETS", {"tiny": PRESET})
    monkeypatch.setattr(commands, "load_corpus", lambda name, folder=None: CORPUS)
    assert command_line.main(["--checkpoints", "alone", "train", "tiny", "--work-dir", "one"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    script = [sys.executable, str(ROOT / "tests/distributed_training.py"), "--checkpoints", "together", "train", "tiny"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*script, "--work-dir", "two"], env=environment, capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr
    assert Path("killed").exists() and 4 < KILLED_AT < 8

    told = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in told] == [["step", "4"], ["step", "8"], ["step", "10"], ["Saved", "together/tiny:"]]
    for one, two in zip(lines[:3], told[:3], strict=True):
        assert [float(two[at]) for at in (4, 7)] == pytest.approx([float(one[at]) for at in (4, 7)], abs=1e-4)
    one, two = load_checkpoint("alone/tiny").card, load_checkpoint("together/tiny").card
    assert two.validation_loss == pytest.approx(one.validation_loss, abs=1e-5)
    assert two.training["last_batches_loss"] == pytest.approx(one.training["last_batches_loss"], abs=1e-5)
    assert two.training["machine"] == "2 processes, each on one CPU core"


@pytest.mark.parametrize("device", ["cuda", "mps"])
@pytest.mark.parametrize("compiled", [False, True])
def test_another_device_trains_as_the_cpu_does(tmp_path, device, compiled):
    if not {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}[device]:
        pytest.skip(f"PyTorch finds no {device.upper()} device here.")
    ends = []
    for execution in (Execution(), Execution(device=device, dtype="float32", is_compiled=compiled)):
        losses = []
        model = build_model(tiny_config(), seed=0).to(execution.device)
        run = TrainingRun(model, SMALL, execution)
        train(model, batches(), SMALL, lambda report, losses=losses: losses.append(report.loss), run=run)
        run.save(tmp_path / "state")
        before = state(run.model)
        run.resume(tmp_path / "state")
        assert same(state(run.model), before)
        ends.append(losses)
    assert ends[1] == pytest.approx(ends[0], abs=1e-4)


def test_compiling_is_asked_of_pytorch(monkeypatch):
    """What it makes of a model takes it minutes on a CPU; `test_another_device…` tries it on a GPU."""
    asked = []
    monkeypatch.setattr(torch, "compile", lambda model: asked.append(model) or model)
    model = build_model(tiny_config(), seed=0)
    train(model, batches(), SMALL, run=TrainingRun(model, SMALL, Execution(is_compiled=True)))
    TrainingRun(model, SMALL)
    assert asked == [model]
