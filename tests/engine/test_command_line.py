"""Tests the command line: it does what its help says, and reports errors in a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers import tiny_model
from transformer import (
    Checkpoint,
    Corpus,
    ModelCard,
    Sampling,
    Tokenizer,
    TrainingConfig,
    commands,
    evaluate_loss,
    generate,
    load_checkpoint,
    save_checkpoint,
)
from transformer import __main__ as command_line
from transformer.data.corpora import SOURCES, CorpusSource
from transformer.data.tasks import TASKS
from transformer.training.loop import TrainingRun
from transformer.training.presets import PRESETS, Preset

ROOT = Path(__file__).resolve().parents[2]
TEXT = "abcdefg fedcb" * 60
CORPUS = Corpus(CorpusSource("small", "A small text", "none", "public domain", 0.75), TEXT)
PRESET = Preset(
    name="tiny",
    title="Tiny",
    summary="Goes up and down.",
    corpus="small",
    shape={"context_length": 8, "n_layers": 1, "n_heads": 2, "d_model": 8, "dropout": 0.1, "tie_embeddings": True},
    training=TrainingConfig(steps=10, warmup_steps=2, optimizer="muon", average_decay=0.5, seed=7),
    batch=4,
    evaluate_every=4,
    examples=("abc",),
)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Checkpoints: one that is good, one that is damaged."""
    path = tmp_path / "checkpoints"
    card = ModelCard(
        title="Good", summary="Writes.", corpus={"name": "small"}, parameters=1_500_000, validation_loss=2.5
    )
    save_checkpoint(path / "good", Checkpoint(tiny_model(), Tokenizer.of_characters("abcdefg \n"), card))
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


class TestList:
    def test_it_lists_checkpoints_good_and_bad_and_what_can_be_trained(self, run):
        status, out, err = run("list")
        assert (status, err) == (0, "")
        bad, good, presets = out.splitlines()
        assert bad.startswith("damaged") and "can't be used: damaged: model.safetensors" in bad
        assert " ".join(good.split()) == "good 1,500,000 parameters validation loss 2.5 Writes."
        assert presets.endswith(": tiny")

    def test_every_shipped_preset_is_complete(self):
        for name, preset in PRESETS.items():
            assert preset.name == name
            assert preset.examples
            assert bool(preset.corpus) != bool(preset.task)
            assert preset.corpus in SOURCES if preset.corpus else preset.task in TASKS
            assert preset.group


def test_it_goes_on_from_the_prompt(run, folder):
    status, out, err = run("generate", "good", "abc", "--tokens", "12", "--seed", "3", "--top-k", "5")
    assert (status, err) == (0, "")
    checkpoint, sampling = load_checkpoint(folder / "good"), Sampling(0.8, 5, None, 3)
    steps = generate(checkpoint.model, checkpoint.tokenizer.encode("abc"), max_new_tokens=12, sampling=sampling)
    assert out == "abc" + checkpoint.tokenizer.decode([step.token_id for step in steps]) + "\n"


def test_special_tokens_can_be_typed_where_that_is_asked_for(run, folder):
    tokenizer = Tokenizer.of_characters("abcdefg \n", special=["<x>"])
    save_checkpoint(folder / "special", Checkpoint(tiny_model(), tokenizer, ModelCard(title="Special", summary="")))
    assert tokenizer.encode("a<x>b", split_special_tokens=False) == [*tokenizer.encode("a"), 9, *tokenizer.encode("b")]
    assert run("generate", "special", "a<x>b", "--tokens", "1", "--special-tokens")[::2] == (0, "")
    assert "never seen: '<' at 2" in run("generate", "special", "a<x>b", "--tokens", "1")[2]


class TestTrainAndEvaluate:
    def test_a_preset_is_trained_saved_and_measured(self, run, folder, tmp_path):
        status, out, err = run("train", "tiny", "--threads", "1")
        assert (status, err) == (0, "")
        assert [line.split()[:2] for line in out.splitlines()[:3]] == [["step", "4"], ["step", "8"], ["step", "10"]]
        checkpoint = load_checkpoint(folder / "tiny")
        card = checkpoint.card
        assert f"validation loss {card.validation_loss} nats" in out
        assert card.training["command"] == "python -m transformer train tiny"
        assert (card.training["seed"], card.training["steps"], card.training["batch"]) == (7, 10, 4)
        assert card.corpus["sha256"] == CORPUS.sha256
        assert card.parameters == checkpoint.model.parameter_count()
        validation = checkpoint.tokenizer.encode(CORPUS.split()[1])
        measured = evaluate_loss(checkpoint.model, validation)
        assert measured == pytest.approx(card.validation_loss, abs=5e-3)  # the weights are stored in half the bytes
        assert json.loads((folder / "tiny/card.json").read_text(encoding="utf-8"))["title"] == "Tiny"
        assert {tensor.dtype for tensor in load_file(folder / "tiny/model.safetensors").values()} == {torch.float16}
        assert [path.name for path in (tmp_path / "runs/tiny").iterdir()] == ["state.safetensors"]

        status, out, err = run("evaluate", "tiny")
        assert (status, err) == (0, "")
        assert out.startswith(f"tiny: {measured:.4f} nats per character over {len(validation):,} characters")

    @pytest.mark.parametrize("state", ["damaged", "another"])
    def test_a_state_that_can_not_be_gone_on_from_is_a_sentence(self, run, tmp_path, state):
        path = tmp_path / "runs/tiny/state.safetensors"
        path.parent.mkdir(parents=True)
        if state == "damaged":
            path.write_bytes(b"nothing of the kind")
        else:
            TrainingRun(tiny_model(), TrainingConfig(steps=1)).save(path)
        status, _, err = run("train", "tiny", "--resume")
        assert status == 1
        assert err.startswith("Error: runs/tiny/state.safetensors is ")
        assert err.count("\n") == 1

    def test_an_interrupted_training_goes_on_to_the_same_end(self, run, folder, monkeypatch):
        status, out, _ = run("train", "tiny", "--resume")  # without a state there is nothing to go on from: it begins
        assert (status, out.split()[:2]) == (0, ["step", "4"])
        whole = load_checkpoint(folder / "tiny").model.state_dict()
        original = TrainingRun.take_step

        def interrupted(self, batch):
            if self.step == 6:
                raise KeyboardInterrupt
            return original(self, batch)

        monkeypatch.setattr(TrainingRun, "take_step", interrupted)
        status, _, err = run("train", "tiny", "--work-dir", "elsewhere")
        assert (status, err) == (130, "Stopped.\n")
        monkeypatch.setattr(TrainingRun, "take_step", original)
        torch.manual_seed(1234)
        status, _, err = run("train", "tiny", "--work-dir", "elsewhere")  # would begin anew, over what there is
        assert status == 1 and "go on from it with --resume" in err
        status, out, _ = run("train", "tiny", "--work-dir", "elsewhere", "--resume")
        assert status == 0
        assert out.split()[:2] == ["step", "8"]  # the state was that of step 4
        resumed = load_checkpoint(folder / "tiny").model.state_dict()
        assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "good", "abXc"), "This model has never seen: 'X' at 3."),
        (("generate", "good", "a\udcff"), "This model has never seen: 'U+DCFF' at 2."),
        (("generate", "good", ""), "at least one token"),
        (("generate", "good", "a", "--temperature", "-1"), "temperature is -1.0; it must be"),
        (("generate", "good", "a", "--top-k", "0"), "top_k is 0; it must be"),
        (("generate", "good", "a", "--tokens", "-3"), "--tokens is -3; it must be 1 or more."),
        (("generate", "absent", "a"), "There is no checkpoint folder 'absent'."),
        (("generate", "damaged", "a"), "damaged: model.safetensors and config.json"),
        (("evaluate", "absent"), "no checkpoint folder 'absent'"),
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


def test_help_doesn_t_wait_for_pytorch():
    asked = "import sys\nfrom transformer.__main__ import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n"
    checked = "    assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", asked + checked], check=True, capture_output=True)
