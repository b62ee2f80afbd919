"""Trains a tiny preset in two processes, as `torchrun` does; the first time, that of rank 1 is killed in the middle."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from transformer import Corpus, StepReport, TrainingConfig, commands
from transformer import __main__ as command_line
from transformer.data.corpora import CorpusSource
from transformer.training import trainer
from transformer.training.presets import Preset

CORPUS = Corpus(CorpusSource("small", "A small text", "English", "public domain", 0.75), "abcdefg fedcb. " * 60)
PRESET = Preset(
    name="tiny",
    title="Tiny",
    summary="Goes up and down.",
    corpus="small",
    shape={"context_length": 8, "n_layers": 1, "n_heads": 2, "d_model": 8, "tie_embeddings": True},
    training=TrainingConfig(steps=10, warmup_steps=2, optimizer="muon", average_decay=0.5, seed=7),
    batch=5,
    evaluate_every=4,
    examples=("abc",),
)
KILLED_AT = 6
"""The state before is that of step 4."""


def work(arguments: list[str]) -> int:
    """Train as the command line would, in one of the processes."""
    commands.PRESETS, commands.load_corpus = {"tiny": PRESET}, lambda name, folder=None: CORPUS
    train = trainer.train

    def killed(model, batches, config, on_step: Callable[[StepReport], bool], **more):
        def step(report: StepReport) -> bool:
            if (report.step, os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]) == (KILLED_AT, "1", "0"):
                Path("killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return on_step(report)

        return train(model, batches, config, step, **more)

    trainer.train = killed
    return command_line.main(arguments)


if __name__ == "__main__":
    # Forked, so that PyTorch is imported once, with what its optimizers import when they are made.
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
    launch = LaunchConfig(
        1, 1, 2, run_id="test", rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", max_restarts=1, start_method="fork"
    )
    sys.exit(max(elastic_launch(launch, work)(sys.argv[1:]).values()))
