"""A save that is killed at any moment leaves the file that was there before, or the new one, and always a whole one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIES = 20

SCRIPT = """
import json, os, random, shutil, signal, sys, time
from pathlib import Path
import torch

torch.set_num_threads(1)
from tests.helpers import tiny_config
from transformer import Card, Checkpoint, Tokenizer, TrainingConfig, TrainingRun, build_model
from transformer import load_checkpoint, save_checkpoint

folder = Path(sys.argv[1])
config = tiny_config(d_model=64)  # large enough that writing takes its time
model = build_model(config, seed=0)


def fill(number):
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)


def values(*models):
    return {value for model in models for weight in model.parameters() for value in weight.unique().tolist()}


def save_folder(number):
    fill(number)
    tokenizer = Tokenizer.of_characters("ab")
    save_checkpoint(folder / "model", Checkpoint(model, tokenizer, Card(title=str(number))))


def load_folder():
    found = load_checkpoint(folder / "model")
    return {float(found.card.title)} | values(found.model)


run = TrainingRun(model, TrainingConfig(steps=10, average_decay=0.5))


def save_run(number):
    fill(number)
    run.average.module.load_state_dict(model.state_dict())
    run.step = number
    run.save(folder / "state.safetensors")


def load_run():
    loaded = TrainingRun(build_model(config, seed=1), run.config)
    loaded.resume(folder / "state.safetensors")
    return {float(loaded.step)} | values(loaded.model, loaded.best_model)


def unfinished():
    return [*folder.glob("*.tmp"), *folder.glob(".*")]


def kill_again_and_again(save, load):
    started = time.perf_counter()
    save(1)
    save(2)
    duration = (time.perf_counter() - started) / 2
    found, cut_short = [], 0
    for attempt in range(int(sys.argv[2])):
        begun = folder / "begun"
        begun.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            number = 1
            begun.touch()
            while True:
                save(number)
                number = 3 - number
        while not begun.exists():
            time.sleep(0.001)
        time.sleep(random.Random(attempt).uniform(0, 4 * duration))
        while attempt % 2 and not unfinished():
            pass  # every other time in the middle of a save
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = unfinished()
        cut_short += bool(left)
        found.append(sorted(load()))
        for path in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        save(2)
    return {"found": found, "cut_short": cut_short}


checkpoint, run_state = kill_again_and_again(save_folder, load_folder), kill_again_and_again(save_run, load_run)
print(json.dumps({"checkpoint": checkpoint, "run": run_state}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
def test_a_save_that_is_killed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(TRIES)],
        cwd=Path(__file__).parents[1], capture_output=True, timeout=110, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for what, report in json.loads(done.stdout).items():
        assert len(report["found"]) == TRIES
        assert all(values in ([1.0], [2.0]) for values in report["found"]), (what, report["found"])
        assert report["cut_short"] >= 3, what  # else it would prove nothing
