"""Benchmarks training: steps per second against a textbook's loop, and seconds until a loss.

Throughput is measured at nanoGPT's setting for a CPU: 4 layers, 4 heads, 128 wide, context 64, batch 12, no dropout,
AdamW. The peer has the same parameters and does the same sums, the way textbooks write them down: queries, keys and
values by a projection of each head's own, scores masked by filling in, softmax, everything in float32, PyTorch's
AdamW as it comes. Both take a step in turns, each on batches of its own, on every core.

The time to a loss counts all there is to do with a text in hand: splitting it into tokens, drawing the weights, the
steps, and each validation, on *everything* held out, up to the one that first shows the loss. It is measured twice:
with every core, and with one, which is what a training on the page Train has. Both presets are the page's own.

Texts come from shared/data beside the project, from the folder that HEADSUP_CORPORA names, or from the cache. Nothing
is downloaded: the figure of a text that isn't there is null.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer import (
    Corpus,
    ModelConfig,
    StepReport,
    TextBatches,
    TrainingConfig,
    TrainingRun,
    build_model,
    evaluate_loss,
    load_corpus,
    train,
)
from transformer.data.corpora import is_at_hand
from transformer.training.objectives import TextObjective
from transformer.training.presets import Preset
from transformer.training.quick_presets import QUICK

from .measuring import alternate, keep_freed_memory, machine, print_table, ratio

CONFIG = ModelConfig(
    vocab_size=65,
    context_length=64,
    n_layers=4,
    n_heads=4,
    d_model=128,
    positions="learned",
    activation="gelu",
    attention_bias=False,
    mlp_bias=False,
)
BATCH = 12
TRAINING = TrainingConfig(steps=1_000_000, learning_rate=1e-3, optimizer="adamw")
THROUGHPUT_TARGET = 1.3
BESIDE = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Goal:
    """A validation loss, in nats per character, that a preset should reach within so many seconds on two cores."""

    figure: str
    preset: str
    loss: float
    seconds: float


GOALS = (
    Goal("seconds_to_shakespeare_1_88", "quick-shakespeare", 1.88, 25.0),
    Goal("seconds_to_martin_fierro_1_5955", "quick-martin-fierro", 1.5955, 120.0),
)


def run(quick: bool = False) -> dict:
    """Measure, print the tables, and return every figure. quick: fewer steps, and no training on one core."""
    cores = os.cpu_count() or 1
    torch.set_num_threads(cores)
    keep_freed_memory()
    figures = _throughput(100 if quick else 400)
    rows = []
    for goal in GOALS:
        for threads in (cores,) if quick else (cores, 1):
            torch.set_num_threads(threads)
            figure = goal.figure if threads == cores else f"{goal.figure}_on_one_core"
            reached = seconds_to(goal.loss, QUICK[goal.preset])
            figures[figure] = round(reached.seconds, 1) if reached and reached.loss <= goal.loss else None
            rows.append((goal.preset, str(threads), f"{goal.loss:.4f}", *_told(reached), f"{goal.seconds:.0f} s"))
        figures[f"{goal.figure}_target"] = goal.seconds
    print()
    print_table(("preset", "threads", "goal", "loss", "after", "steps", "aim on two cores"), rows)
    torch.set_num_threads(cores)
    return {**figures, **machine()}


# Throughput.


def _throughput(rounds: int) -> dict:
    text = torch.randint(CONFIG.vocab_size, (100_000,), generator=torch.Generator().manual_seed(0))
    ours, textbook = _engine_steps(text), _textbook_steps(text)
    timings = alternate({"ours": ours, "textbook": textbook}, rounds)
    found = ratio(timings["textbook"], to=timings["ours"])
    tokens = BATCH * CONFIG.context_length
    print_table(
        ("training step", "median ms", "tokens a second"),
        [(name, f"{1000 * t.median:.2f}", f"{tokens / t.median:,.0f}") for name, t in timings.items()],
    )
    print(
        f"\nours is {found['median']:.2f} times as fast ({found['low']:.2f} – {found['high']:.2f}); "
        f"at least {THROUGHPUT_TARGET} are promised"
    )
    return {
        "throughput_ratio": found["median"],
        "throughput_ratio_quartiles": [found["low"], found["high"]],
        "throughput_ratio_target": THROUGHPUT_TARGET,
        **{f"{name}_tokens_per_second": round(tokens / t.median) for name, t in timings.items()},
    }


def _engine_steps(text: Tensor) -> Callable[[], float]:
    """A function that trains the engine's model by one step."""
    batches = TextBatches(text, CONFIG.context_length, BATCH)
    training = TrainingRun(build_model(CONFIG, seed=0), TRAINING)
    return lambda: training.take_step(batches(training.step))


def _textbook_steps(text: Tensor) -> Callable[[], float]:
    """A function that trains the textbook's model by one step."""
    torch.manual_seed(0)
    model = TextbookModel(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=TRAINING.learning_rate)

    def step() -> float:
        starts = torch.randint(len(text) - CONFIG.context_length, (BATCH,))
        inputs = torch.stack([text[at : at + CONFIG.context_length] for at in starts])
        targets = torch.stack([text[at + 1 : at + 1 + CONFIG.context_length] for at in starts])
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), TRAINING.gradient_clip)
        optimizer.step()
        return loss.item()

    return step


class TextbookHead(nn.Module):
    """One head of causal self-attention, with projections of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.d_model, config.d_head, bias=False)
        self.key = nn.Linear(config.d_model, config.d_head, bias=False)
        self.value = nn.Linear(config.d_model, config.d_head, bias=False)
        self.register_buffer("seen", torch.ones(config.context_length, config.context_length).tril())

    def forward(self, x: Tensor) -> Tensor:
        pos = x.shape[1]
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.seen[:pos, :pos] == 0, -math.inf)
        return scores.softmax(-1) @ v


class TextbookBlock(nn.Module):
    """A pre-norm block."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.heads = nn.ModuleList(TextbookHead(config) for _ in range(config.n_heads))
        self.out = nn.Linear(config.d_model, config.d_model, bias=False)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        normalised = self.ln1(x)
        x = x + self.out(torch.cat([head(normalised) for head in self.heads], dim=-1))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class TextbookModel(nn.Module):
    """A decoder-only model with learned positions, of the same shape as the engine's at `CONFIG`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_embed = nn.Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(TextbookBlock(config) for _ in range(config.n_layers))
        self.ln_final = nn.LayerNorm(config.d_model)
        self.unembed = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.pos_embed(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.ln_final(x))


# Time to a loss.


@dataclass(frozen=True)
class Reached:
    """How far a training came until it showed a loss, or until its last step."""

    seconds: float
    step: int
    loss: float
    """What the last validation showed."""


def seconds_to(loss: float, preset: Preset) -> Reached | None:
    """Train a preset from its first step until a validation shows the loss; None if its text isn't at hand."""
    if not is_at_hand(preset.corpus, BESIDE):
        return None
    return train_until(loss, preset, load_corpus(preset.corpus, BESIDE))


def train_until(loss: float, preset: Preset, corpus: Corpus) -> Reached:
    """Train on a text until a validation, of which each `preset.evaluate_every`th step has one, shows the loss."""
    started = time.perf_counter()
    training = preset.training
    objective = TextObjective(corpus, preset.shape["context_length"], preset.batch, training.seed)
    trained = TrainingRun(build_model(ModelConfig(**preset.shape | objective.shape), training.seed), training)
    shown = math.inf

    def after_step(report: StepReport) -> bool:
        nonlocal shown
        if report.step % preset.evaluate_every == 0 or report.step == training.steps:
            shown = evaluate_loss(trained.best_model, objective.validation)
        return shown > loss

    train(trained.model, objective.batches, training, after_step, run=trained)
    return Reached(time.perf_counter() - started, trained.step, shown)


def _told(reached: Reached | None) -> tuple[str, str, str]:
    if reached is None:
        return "the text isn't here", "", ""
    return f"{reached.loss:.4f}", f"{reached.seconds:.1f} s", f"{reached.step:,}"
