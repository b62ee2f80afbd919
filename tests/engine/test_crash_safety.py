"""Tests that a save killed at any moment leaves the old file or the new one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIES = 10

SCRIPT = """
import json, os, random, shutil, signal, sys, time
from pathlib import Path
import torch

torch.set_num_threads(1)
from tests.helpers import tiny_config, tiny_model
from transformer import ModelCard, Checkpoint, Tokenizer, TrainingConfig, TrainingRun, build_model
from transformer import list_checkpoints, load_checkpoint, save_checkpoint

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
    save_checkpoint(folder / "model", Checkpoint(model, tokenizer, ModelCard(title=str(number))))


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


def stop(child):
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)


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
        stop(child)
        while attempt % 2 and not unfinished():  # every other time in the middle of a save
            os.kill(child, signal.SIGCONT)
            time.sleep(random.random() * duration / 4)
            stop(child)
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

# Two processes save again and again, others list and load: no save is lost, no reader sees half of one.
folder = folder / "busy"


def save(number):
    model = tiny_model(n_layers=number)  # another shape each time, so that files of two versions don't fit
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)
    save_checkpoint(folder / "model", Checkpoint(model, Tokenizer.of_characters("ab"), ModelCard(title=str(number))))


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
readers = [process(look, lambda count: count >= 60), process(load, lambda count: count >= 10)]
savers = [process(lambda number=number: save(number), lambda count: ended.exists()) for number in (1, 2)]
statuses = [os.waitpid(reader, 0)[1] for reader in readers]
ended.touch()
statuses += [os.waitpid(saver, 0)[1] for saver in savers]
print(json.dumps({"checkpoint": checkpoint, "run": run_state, "busy": statuses, "left": os.listdir(folder)}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
def test_a_save_that_is_killed_and_saves_and_readers_at_once(tmp_path):
    command = [sys.executable, "-c", SCRIPT, tmp_path, str(TRIES)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=250, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    for what in ("checkpoint", "run"):
        report = found[what]
        assert len(report["found"]) == TRIES
        assert all(values in ([1.0], [2.0]) for values in report["found"]), (what, report["found"])
        assert report["cut_short"] >= 3, what  # else it would prove nothing
    assert found["busy"] == [0, 0, 0, 0] and found["left"] == ["model"]
