"""The models that ship with this project: data, configuration and hyperparameters of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from .loop import TrainingConfig


class Group(StrEnum):
    """Groups in a list of models."""

    TEXTS = "Texts"
    TASKS = "Tasks"
    LADDER = "Ladder"
    SINCE_2017 = "Since 2017"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One model to train: on a corpus, or on a task."""

    name: str
    title: str
    summary: str
    group: Group = Group.TEXTS
    corpus: str = ""
    vocab_size: int | None = None
    """How many tokens of byte-level BPE it reads a corpus in; None: it reads characters."""
    task: str = ""
    """The task, if there is no corpus."""
    shape: dict[str, Any]
    """Fields of ModelConfig, except those that the corpus or the task determines."""
    training: TrainingConfig
    batch: int
    """Windows, or examples, in a batch."""
    evaluate_every: int
    """Steps between validations; training keeps the best state."""
    examples: tuple[str, ...]
    begins_with: str = ""
    """The preset whose trained weights it starts from, instead of random weights."""


AS_IN_2017 = {"norm": "post", "tie_embeddings": True, "scale_embeddings": True}
"""The paper's settings, where `ModelConfig` has other defaults."""
_STORIES_SHAPE = {"n_layers": 5, "n_heads": 1, "d_model": 64, "d_ff": 128, "positions": "rotary"}
_STORIES_SHAPE |= {"attention_windows": (6, 12, 0, 0, 0)}

_WRITER_SHAPE = {
    "n_layers": 6,
    "n_heads": 6,
    "d_model": 192,
    "positions": "rotary",
    "activation": "gelu",
    "attention_bias": False,
    "mlp_bias": False,
}

_PRESETS = (
    Preset(
        name="shakespeare",
        title="Shakespeare",
        summary="Writes scenes in the manner of the plays, one character at a time.",
        corpus="tiny-shakespeare",
        shape=_WRITER_SHAPE | {"context_length": 256, "dropout": 0.15},
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
    Preset(
        name="austen",
        title="Austen",
        summary="Writes in the manner of Jane Austen's novels, in words and parts of words.",
        corpus="austen",
        vocab_size=4096,
        shape=_WRITER_SHAPE | {"context_length": 192, "tie_embeddings": True, "dropout": 0.2},
        training=TrainingConfig(
            steps=2200, learning_rate=4e-3, warmup_steps=100, optimizer="muon", average_decay=0.998, seed=1337
        ),
        batch=32,
        evaluate_every=200,
        examples=(
            "It is a truth universally acknowledged, that a single man",
            '"My dear Mr. Bennet," said his lady',
            "Elizabeth looked at her sister, and she",
            "Emma had no doubt of her being",
        ),
    ),
    Preset(
        name="next-vowel",
        title="Next vowel",
        summary="Reads three characters in alphabetical order and writes the vowel that comes next: abc gives e.",
        group=Group.TASKS,
        task="next-vowel",
        shape={"n_layers": 1, "n_heads": 1, "d_model": 16, **AS_IN_2017},
        training=TrainingConfig(steps=1500, learning_rate=1e-2, warmup_steps=100, weight_decay=0.0, seed=1337),
        batch=64,
        evaluate_every=250,
        examples=("abc", "-ko", "gnu", "mno", "xyz"),
    ),
    Preset(
        name="number-words-en-es",
        title="English numbers to Spanish",
        summary="Reads a number in English words and writes it in Spanish: the transformer of the paper, small.",
        group=Group.TASKS,
        task="number-words",
        shape={"n_layers": 2, "n_heads": 4, "d_model": 64, "dropout": 0.1, **AS_IN_2017},
        training=TrainingConfig(
            steps=3000, learning_rate=3e-3, optimizer="muon", weight_decay=0.01, average_decay=0.99, seed=1337
        ),
        batch=128,
        evaluate_every=500,
        examples=(
            "two hundred and five",
            "forty-two",
            "seven hundred and seventy-seven",
            "one thousand four hundred and ninety-two",
            "three hundred and sixty-five thousand two hundred and forty-eight",
        ),
    ),
    Preset(
        name="sort-letters",
        title="Sort letters",
        summary="Puts up to ten letters into alphabetical order: hello= is followed by ehllo.",
        group=Group.TASKS,
        task="sort-letters",
        shape={"n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary"},
        training=TrainingConfig(
            steps=6000, learning_rate=4e-3, optimizer="muon", weight_decay=0.01, average_decay=0.995, seed=1337
        ),
        batch=128,
        evaluate_every=500,
        examples=("hello=", "transform=", "zyxwvu=", "banana="),
    ),
    Preset(
        name="induction",
        title="Induction",
        summary="Attention alone, no feed-forward layer; it has learnt to continue whatever repeats.",
        group=Group.TASKS,
        task="induction",
        shape={"n_layers": 2, "n_heads": 4, "d_model": 64, "d_ff": 0, "positions": "rotary"},
        training=TrainingConfig(steps=2500, learning_rate=3e-3, optimizer="muon", weight_decay=0.01, seed=1337),
        batch=64,
        evaluate_every=500,
        examples=(
            "kR7wZq3xB kR7wZ",
            "Anna Karenina met Anna Kare",
            "the cat sat on the mat, the cat s",
            "3.14159 and 3.14",
        ),
    ),
    Preset(
        name="masked-stories",
        title="Stories, both ways",
        summary="Reads a short story, question and answer in both directions, and fills the words that are masked.",
        group=Group.TASKS,
        task="masked-stories",
        shape=_STORIES_SHAPE,
        training=TrainingConfig(
            steps=2000, learning_rate=1e-3, warmup_steps=50, weight_decay=0.01, average_decay=0.998, seed=1337
        ),
        batch=128,
        evaluate_every=100,
        begins_with="stories",
        examples=(
            "Mary took the ball. She went to the [mask]. Tom ran to the park. Where is the ball? garden",
            "Mary took the ball. She went to the garden. Tom ran to the park. Where is the ball? [mask]",
            "[mask] took the ball. She went to the garden. Tom ran to the park. Who has the ball? Mary",
            "Mary took the [mask]. Tom ran to the [mask]. Where is Tom? park What does Mary have? map",
        ),
    ),
    Preset(
        name="stories",
        title="Stories",
        summary="Reads a short story and answers a question: who has what, who is where, who gave what to whom.",
        group=Group.TASKS,
        task="stories",
        shape=_STORIES_SHAPE,
        training=TrainingConfig(
            steps=10000,
            learning_rate=4e-3,
            warmup_steps=100,
            optimizer="muon",
            momentum=0.9,
            weight_decay=0.01,
            average_decay=0.998,
            seed=1337,
        ),
        batch=128,
        evaluate_every=400,
        examples=(
            "Mary took the ball. She went to the garden. Tom ran to the park. Where is the ball?",
            "Anna found the key. She gave the key to Ben. Ben went to the school. Who has the key?",
            "John went to the park. Lucy walked to the library. He ran to the kitchen. Where is John?",
            "Emma took the map. Emma gave the map to Max. He handed the map to Lucy. Who gave the map to Lucy?",
            "Tom found the hat. Anna took the lamp. Tom gave the hat to Anna. What did Tom give to Anna?",
        ),
    ),
)

_RUNG = {"context_length": 8, "n_layers": 1, "n_heads": 1, "d_model": 32, "positions": "learned", "unembed_bias": True}
_BARE = {"norm": "none", "residual": False, "d_ff": 0}

_RUNGS = (
    (
        "bigram",
        "Bigram",
        "Knows the last character and nothing else.",
        {"n_layers": 0, "positions": "none", "norm": "none"},
    ),
    (
        "positions",
        "+ positions",
        "Also knows which of the eight positions that character is at.",
        {"n_layers": 0, "norm": "none"},
    ),
    (
        "average",
        "+ uniform average",
        "Sees all eight characters, but only as their plain average.",
        {**_BARE, "attention": "uniform"},
    ),
    ("attention", "+ single-head attention", "Chooses, by queries and keys, which of them to look at.", _BARE),
    (
        "feed-forward",
        "+ feed-forward and layer norm",
        "Adds a feed-forward layer that transforms each position by itself, and layer norm.",
        {"residual": False},
    ),
    (
        "heads",
        "+ four heads",
        "Looks at four things at once, with heads a quarter as wide.",
        {"n_heads": 4, "residual": False},
    ),
    ("residuals", "+ residual connections", "Adds to what it has instead of replacing it.", {"n_heads": 4}),
    ("blocks", "+ three blocks", "Does all of that three times: a transformer.", {"n_heads": 4, "n_layers": 3}),
)
"""Name, title, summary, and the fields in which the rung's shape differs from `_RUNG`."""

_LADDER = tuple(
    Preset(
        name=f"ladder-{number}-{name}",
        title=f"{number}. {title}",
        summary=f"{summary} Shakespeare, eight characters at a time.",
        group=Group.LADDER,
        corpus="tiny-shakespeare",
        shape={**_RUNG, **shape},
        training=TrainingConfig(
            steps=1500, learning_rate=1e-2, warmup_steps=50, optimizer="muon", weight_decay=0.0, seed=1337
        ),
        batch=64,
        evaluate_every=1500,
        examples=("ROMEO:", "To be, o", "the king", "What, "),
    )
    for number, (name, title, summary, shape) in enumerate(_RUNGS, start=1)
)

_PAPER = {"context_length": 64, "n_layers": 4, "n_heads": 4, "d_model": 64, **AS_IN_2017}
_PAPER_TRAINING = TrainingConfig(
    steps=1000, learning_rate=4e-3, warmup_steps=100, betas=(0.9, 0.98), weight_decay=0.0, seed=1337
)

_CHANGES = (
    (
        "paper",
        "The paper's decoder",
        "As it was in 2017: post-norm, sines and cosines, ReLU (Vaswani et al. 2017).",
        {},
        {},
    ),
    (
        "pre-norm",
        "+ pre-norm",
        "Norms read the stream and no longer stand in its way (Xiong et al. 2020).",
        {"norm": "pre"},
        {},
    ),
    (
        "learned",
        "+ learned positions",
        "Each position has a vector of its own, to be learnt (Radford et al. 2018).",
        {"positions": "learned"},
        {},
    ),
    (
        "rotary",
        "+ rotary positions",
        "Queries and keys are turned by their position, so that scores know distances (Su et al. 2021).",
        {"positions": "rotary"},
        {},
    ),
    (
        "rms",
        "+ RMSNorm",
        "Norms divide by the length alone; no mean is taken off (Zhang & Sennrich 2019).",
        {"norm_kind": "rms"},
        {},
    ),
    (
        "swiglu",
        "+ SwiGLU",
        "A gate decides what the feed-forward layer lets through (Shazeer 2020).",
        {"activation": "silu", "mlp_gate": True, "d_ff": 170},
        {},
    ),
    (
        "grouped",
        "+ grouped keys and values",
        "Two heads share one head's keys and values (Ainslie et al. 2023).",
        {"n_kv_heads": 2},
        {},
    ),
    (
        "muon",
        "+ Muon",
        "The same model; its matrices are trained by orthogonal steps (Jordan et al. 2024).",
        {},
        {"optimizer": "muon", "learning_rate": 2e-2},
    ),
)
"""Name, title, summary, and the fields in which shape and training differ from the rung below."""


def _since_2017() -> Iterator[Preset]:
    """The paper's decoder and what has changed since: each rung adds one change to those below."""
    shape, training = _PAPER, _PAPER_TRAINING
    for number, (name, title, summary, change, other_training) in enumerate(_CHANGES, start=1):
        shape, training = {**shape, **change}, replace(training, **other_training)
        yield Preset(
            name=f"since-{number}-{name}",
            title=f"{number}. {title}",
            summary=f"{summary} Shakespeare, 64 characters at a time.",
            group=Group.SINCE_2017,
            corpus="tiny-shakespeare",
            shape=shape,
            training=training,
            batch=16,
            evaluate_every=1000,
            examples=("ROMEO:\n", "To be, or not to be", "What, my lord", "First Citizen:\n"),
        )


PRESETS = {preset.name: preset for preset in (*_PRESETS, *_LADDER, *_since_2017())}

LADDERS = {"first": Group.LADDER, "since-2017": Group.SINCE_2017}
"""Groups in which each model adds or changes one part of the one before, in the order of their names."""
RUNGS = {name: [preset for preset in PRESETS.values() if preset.group == group] for name, group in LADDERS.items()}
