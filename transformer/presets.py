"""The models this project ships: what each is trained on, its shape, and how it is trained."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from .checkpoints import Card, Checkpoint
from .config import ModelConfig
from .corpora import Corpus
from .models import DecoderOnly, build_model
from .tokenizers import Tokenizer
from .training import StepReport, TextBatches, TrainingConfig, TrainingRun, evaluate_loss, train


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One model to be trained on a corpus, character by character."""

    name: str
    title: str
    summary: str
    corpus: str
    shape: dict[str, Any]
    """Fields of ModelConfig, but for vocab_size, which the corpus decides."""
    training: TrainingConfig
    batch: int
    """Windows in a batch."""
    evaluate_every: int
    """Steps between validations; the best state is kept."""
    examples: tuple[str, ...]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="shakespeare",
            title="Shakespeare",
            summary="Writes scenes in the manner of the plays, one character at a time.",
            corpus="tiny-shakespeare",
            shape={
                "context_length": 256,
                "n_layers": 6,
                "n_heads": 6,
                "d_model": 192,
                "positions": "rotary",
                "activation": "gelu",
                "attention_bias": False,
                "mlp_bias": False,
                "dropout": 0.15,
            },
            training=TrainingConfig(
                steps=3000, learning_rate=3e-3, warmup_steps=100, optimizer="muon", average_decay=0.998, seed=1337
            ),
            batch=16,
            evaluate_every=100,
            examples=(
                "ROMEO:\nBut, soft! what light",
                "KING RICHARD III:\n",
                "To be, or not to be",
                "First Citizen:\nWe are accounted poor citizens, the",
            ),
        ),
        Preset(
            name="martin-fierro",
            title="Martín Fierro",
            summary="Writes Spanish verse in the manner of José Hernández's gaucho epic, one character at a time.",
            corpus="martin-fierro",
            shape={
                "context_length": 256,
                "n_layers": 4,
                "n_heads": 4,
                "d_model": 192,
                "positions": "sinusoidal",
                "scale_embeddings": True,
                "activation": "gelu",
                "attention_bias": False,
                "mlp_bias": False,
                "dropout": 0.2,
            },
            training=TrainingConfig(
                steps=3000, learning_rate=3e-3, warmup_steps=50, optimizer="muon", average_decay=0.995, seed=1337
            ),
            batch=8,
            evaluate_every=200,
            examples=(
                "Aquí me pongo a cantar",
                "Yo no tengo en el amor\n",
                "El gaucho más infeliz",
                "Los hermanos sean unidos",
            ),
        ),
    )
}


def train_preset(
    preset: Preset,
    corpus: Corpus,
    work_folder: str | Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    report: Callable[[StepReport, float | None], None] | None = None,
) -> Checkpoint:
    """Train a preset and return its best state as a checkpoint.

    work_folder: takes the state of the run and its best weights at each validation.
    resume: go on from what an earlier, interrupted call left there.
    report: called after each step with its report, and the validation loss (nats per token) where one was taken.
    """
    tokenizer = Tokenizer.of_characters(corpus.text)
    train_tokens, validation_tokens = (torch.tensor(tokenizer.encode(part)) for part in corpus.split())
    config = ModelConfig(vocab_size=tokenizer.vocab_size, **preset.shape)
    model = build_model(config, seed=preset.training.seed).to(device)
    batches = TextBatches(train_tokens, config.context_length, preset.batch, preset.training.seed, device)
    run = TrainingRun(model, preset.training)
    best = _Best(Path(work_folder), resume)
    state = Path(work_folder) / "state.safetensors"
    if resume and state.is_file():
        run.resume(state)
    started = time.monotonic() - best.seconds

    def after_step(step: StepReport) -> None:
        validation_loss = None
        if step.step % preset.evaluate_every == 0 or step.step == preset.training.steps:
            validation_loss = evaluate_loss(run.best_model, validation_tokens)
            best.offer(run.best_model, validation_loss, step.step, time.monotonic() - started)
            run.save(state)
        if report:
            report(step, validation_loss)

    train(model, batches, preset.training, after_step, run=run)
    model = build_model(config).eval()
    model.load_state_dict(best.weights())
    train_loss = evaluate_loss(model, train_tokens[: len(validation_tokens)])
    return Checkpoint(model, tokenizer, _card(preset, corpus, model, best, train_loss, device))


class _Best:
    """The best weights so far, kept in a file so that they outlive an interruption."""

    def __init__(self, folder: Path, resume: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "best.safetensors"
        self.loss, self.step, self.seconds = float("inf"), 0, 0.0
        if resume and self.path.is_file():
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata()
            self.loss, self.step = float(about["validation_loss"]), int(about["step"])
            self.seconds = float(about["seconds"])

    def offer(self, model: DecoderOnly, loss: float, step: int, seconds: float) -> None:
        self.seconds = seconds
        if loss >= self.loss:
            return
        self.loss, self.step = loss, step
        about = {"validation_loss": repr(loss), "step": str(step), "seconds": repr(seconds)}
        partial = self.path.with_suffix(".tmp")
        save_file({name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}, partial, about)
        partial.replace(self.path)

    def weights(self) -> dict[str, torch.Tensor]:
        return load_file(self.path)


def _cpu_in_words(threads: int) -> str:
    return "one CPU core" if threads == 1 else f"{threads} CPU cores"


def _card(
    preset: Preset, corpus: Corpus, model: DecoderOnly, best: _Best, train_loss: float, device: str
) -> Card:
    source = corpus.source
    machine = torch.cuda.get_device_name() if device.startswith("cuda") else _cpu_in_words(torch.get_num_threads())
    return Card(
        title=preset.title,
        summary=preset.summary,
        language=source.language,
        task="next character",
        corpus={
            "name": source.name,
            "title": source.title,
            "sha256": corpus.sha256,
            "licence": source.licence,
            "train_fraction": source.train_fraction,
        },
        training={
            "command": f"python -m transformer train {preset.name}",
            **asdict(preset.training),
            "batch": preset.batch,
            "best_step": best.step,
            "seconds": round(best.seconds),
            "machine": machine,
        },
        parameters=model.parameter_count(),
        train_loss=round(train_loss, 4),
        validation_loss=round(best.loss, 4),
        examples=list(preset.examples),
    )
