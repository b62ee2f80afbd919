"""Tests that saves and readers at once never meet half a checkpoint."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BUSY = """
import json, os, sys, time
from pathlib import Path
import torch

torch.set_num_threads(1)
from tests.helpers import tiny_model
from transformer import ModelCard, Checkpoint, Tokenizer, list_checkpoints, load_checkpoint, save_checkpoint

folder = Path(sys.argv[1])
tokenizer = Tokenizer.of_characters("ab")


def save(number):
    model = tiny_model(n_layers=number)  # another shape each time, so that files of two versions don't fit
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)
    save_checkpoint(folder / "model", Checkpoint(model, tokenizer, ModelCard(title=str(number))))


def look():
    (entry,) = list_checkpoints(folder)
    assert entry.name == "model" and not entry.problem, entry.problem
    assert entry.card.title == str(entry.config.n_layers)


def load():
    found = load_checkpoint(folder / "model")
    assert {str(int(value)) for weight in found.model.parameters() for value in weight.unique()} == {found.card.title}


def process(work, done):
    child = os.fork()
    if child:
        return child
    count = 0
    try:
        while not done(count):
            work()
            count += 1
        os._exit(0)
    except BaseException as error:
        print(type(error).__name__, error, file=sys.stderr, flush=True)
        os._exit(1)


ended = folder.parent / "ended"
save(1)
readers = [process(look, lambda count: count >= 120), process(load, lambda count: count >= 15)]
savers = [process(lambda number=number: save(number), lambda count: ended.exists()) for number in (1, 2)]
statuses = [os.waitpid(reader, 0)[1] for reader in readers]
ended.touch()
statuses += [os.waitpid(saver, 0)[1] for saver in savers]
print(json.dumps(statuses))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
def test_saves_and_readers_at_once(tmp_path):
    """Two processes save again and again, others list and load: no save is lost, no reader sees half of one."""
    (tmp_path / "models").mkdir()
    command = [sys.executable, "-c", BUSY, str(tmp_path / "models")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=110, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 0, 0, 0]\n", "")
    assert [child.name for child in (tmp_path / "models").iterdir()] == ["model"]
