"""Tests the command line: it does what its help says, and reports errors in a sentence."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.distributed_training import CORPUS, PRESET
from tests.helpers import tiny_model
from transformer import (
    Checkpoint,
    ModelCard,
    Sampling,
    Tokenizer,
    commands,
    evaluate_loss,
    generate,
    load_checkpoint,
    save_checkpoint,
)
from transformer import __main__ as command_line
from transformer.output_pipe import CLOSED
from transformer.training.loop import TrainingRun


@pytest.fixture
def folder(tmp_path) -> Path:
    """Checkpoints: one that is good, one that is damaged."""
    path = tmp_path / "checkpoints"
    card = ModelCard(title="Good", summary="Writes.", parameters=1_500_000, validation_loss=2.5)
    tokenizer = Tokenizer.of_characters("abcdefg \n", special=["<x>"])
    save_checkpoint(path / "good", Checkpoint(tiny_model(vocab_size=tokenizer.vocab_size), tokenizer, card))
    (path / "damaged").mkdir()
    return path


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    """Runs a command in an empty folder; gives its exit status, and what it wrote to stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "PRESETS", {"tiny": PRESET})
    monkeypatch.setattr(commands, "load_corpus", lambda name, folder=None: {"small": CORPUS}[name])

    def call(*arguments: str) -> tuple[int, str, str]:
        status = command_line.main(["--checkpoints", str(folder), *arguments])
        written = capsys.readouterr()
        return status, written.out, written.err

    return call


def test_it_lists_checkpoints_good_and_bad_and_what_can_be_trained(run):
    status, out, err = run("list")
    bad, good, presets = out.splitlines()
    assert (status, err) == (0, "") and presets.endswith(": tiny")
    assert bad.startswith("damaged") and "can't be used: damaged: model.safetensors" in bad
    assert " ".join(good.split()) == "good 1,500,000 parameters validation loss 2.5 Writes."


@pytest.mark.parametrize(("prompt", "options"), [("abc", []), ("a<x>b", ["--special-tokens"])])
def test_it_goes_on_from_the_prompt(run, folder, prompt, options):
    how = ["--tokens", "12", "--seed", "3", "--top-k", "5", "--top-p", "0.9"]
    checkpoint = load_checkpoint(folder / "good")
    tokens, decode = checkpoint.tokenizer.encode(prompt, split_special_tokens=False), checkpoint.tokenizer.decode
    assert len(tokens) == 3
    steps = generate(checkpoint.model, tokens, max_new_tokens=12, sampling=Sampling(0.8, 5, 0.9, 3))
    written = decode([*tokens, *(step.token_id for step in steps)]).removeprefix(decode(tokens))
    assert run("generate", "good", prompt, *how, *options) == (0, f"{prompt}{written}\n", "")


@pytest.mark.parametrize("vocab_size", [None, 270])
def test_a_preset_is_trained_saved_and_measured(run, folder, tmp_path, monkeypatch, vocab_size):
    monkeypatch.setattr(commands, "PRESETS", {"tiny": dataclasses.replace(PRESET, vocab_size=vocab_size)})
    status, out, err = run("train", "tiny", "--threads", "1")
    assert (status, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[:3]] == [["step", "4"], ["step", "8"], ["step", "10"]]
    checkpoint = load_checkpoint(folder / "tiny")
    card = checkpoint.card
    assert f"validation loss {card.validation_loss} nats" in out
    asked = {"command": "python -m transformer train tiny", "seed": 7, "steps": 10, "batch": 5}
    assert asked.items() <= card.training.items()
    assert (card.title, card.corpus["sha256"]) == ("Tiny", CORPUS.sha256)
    validation = checkpoint.tokenizer.encode(CORPUS.split()[1])
    measured = evaluate_loss(checkpoint.model, validation)
    assert measured == pytest.approx(card.validation_loss, abs=5e-3)  # the weights are stored in half the bytes
    assert {tensor.dtype for tensor in load_file(folder / "tiny/model.safetensors").values()} == {torch.float16}
    assert [path.name for path in (tmp_path / "runs/tiny").iterdir()] == ["state.safetensors"]
    status, out, err = run("evaluate", "tiny")
    assert (status, err) == (0, "")
    text = CORPUS.split()[1]
    bits = measured * (len(validation) - 1) / math.log(2) / len(text.encode())
    each = "token" if vocab_size else "character"
    what = f"{measured:.4f} nats per {each}, {bits:.4f} bits per byte, over {len(text):,} characters of A small text"
    assert card.training["bits_per_byte"]["model"] == pytest.approx(bits, abs=5e-3)
    assert f"bigram table takes {card.training['bits_per_byte']['bigram']:.4f} bits per byte" in out
    assert ("a token looks at the one before it: block 0, head " in out) == bool(vocab_size)
    assert out.startswith(f"tiny: {what}") and (len(validation) < len(text)) == (card.task == "next token") == bool(
        vocab_size
    )


def test_an_interrupted_training_goes_on(run, folder, monkeypatch):
    status, out, _ = run("train", "tiny", "--resume")  # without a state there is nothing to go on from: it begins
    assert (status, out.split()[:2]) == (0, ["step", "4"])
    take_step = TrainingRun.take_step

    def interrupted(self, batch):
        if self.step == 6:
            raise KeyboardInterrupt
        return take_step(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "take_step", interrupted)
        assert run("train", "tiny", "--work-dir", "elsewhere")[::2] == (130, "Stopped.\n")
    status, _, err = run("train", "tiny", "--work-dir", "elsewhere")  # would begin anew, over what there is
    assert status == 1 and "go on from it with --resume" in err
    with monkeypatch.context() as patch:
        patch.setitem(commands.PRESETS, "tiny", dataclasses.replace(PRESET, shape=PRESET.shape | {"n_layers": 2}))
        status, _, err = run("train", "tiny", "--work-dir", "elsewhere", "--resume")
        assert status == 1 and err.startswith("Error: elsewhere/state.safetensors is the state of another training")
    status, out, _ = run("train", "tiny", "--work-dir", "elsewhere", "--resume")
    assert (status, out.split()[:2]) == (0, ["step", "8"])  # the state was that of step 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "good", "abXc"), "This model has never seen: 'X' at 3."),
        (("generate", "good", "a<x>b"), "never seen: '<' at 2"),
        (("generate", "good", "a\udcff"), "This model has never seen: 'U+DCFF' at 2."),
        (("generate", "good", ""), "at least one token"),
        (("generate", "good", "a", "--temperature", "-1"), "temperature is -1.0; it must be"),
        (("generate", "good", "a", "--top-k", "0"), "top_k is 0; it must be"),
        (("generate", "good", "a", "--tokens", "0"), "--tokens is 0; it must be 1 or more."),
        (("generate", "absent", "a"), "There is no checkpoint folder 'absent'."),
        (("generate", "damaged", "a"), "damaged: model.safetensors and config.json"),
        (("evaluate", "absent"), "no checkpoint folder 'absent'"),
        (("evaluate", "good"), "names no text that good was trained on"),
        (("train", "huge"), "There is no preset 'huge'; there are tiny."),
        (("train", "tiny", "--threads", "0"), "--threads is 0"),
        (("train", "tiny", "--work-dir", "checkpoints/good/card.json"), "card.json"),
        (("--checkpoints", "checkpoints/good/card.json", "train", "tiny"), "card.json can't be written to"),
        (("train", "tiny", "--device", "mps"), "PyTorch finds no MPS device here; train with --device cpu."),
        (("import", "anywhere", "--name", ""), "--name is empty"),
    ],
)
def test_what_goes_wrong_is_one_sentence_on_stderr(run, arguments, message):
    status, out, err = run(*arguments)
    assert status == 1 and (out == "" or arguments[0] != "generate")
    assert err.startswith("Error: ") and message in err and err.count("\n") == 1


@pytest.mark.parametrize("module", ["transformer", "pages.ui", "tests.benchmarks"])
def test_a_process_that_nobody_reads_any_more_says_nothing(module):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": ""}}
    with subprocess.Popen([sys.executable, "-m", module, "-h"], **pipes) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", CLOSED)


def test_help_doesn_t_wait_for_pytorch():
    asked = "import sys\nfrom transformer.__main__ import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n"
    checked = "    assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", asked + checked], check=True, capture_output=True)
