"""Presets small enough to train while you watch: the suggestions on the page Train."""

from __future__ import annotations

from dataclasses import replace

from .loop import TrainingConfig
from .presets import AS_IN_2017, Group, Preset

# A training of a few hundred steps bears a learning rate several times that of a long one, and Muon with less momentum,
# since gradients soon go out of date. Two blocks, 64 wide, with a context of 32 or 64 characters learned more in the
# same seconds than the deeper and wider ones tried. There is no time to overfit, so there is no dropout.
_TEXT_SHAPE = {"context_length": 32, "n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary"}
_TEXT_TRAINING = TrainingConfig(
    steps=500, learning_rate=2e-2, warmup_steps=20, optimizer="muon", momentum=0.9, weight_decay=0.0, seed=1337
)
_STORIES_SHAPE = {"n_layers": 4, "n_heads": 2, "d_model": 64, "d_ff": 128, "positions": "rotary"}
_STORIES_SHAPE |= {"attention_windows": (6, 12, 0, 0)}

_QUICK = (
    Preset(
        name="quick-induction",
        title="Induction",
        summary="Attention alone; somewhere on the way it finds out how to continue what repeats.",
        group=Group.TASKS,
        task="induction",
        shape={"n_layers": 2, "n_heads": 2, "d_model": 64, "d_ff": 0, "positions": "rotary"},
        training=TrainingConfig(
            steps=600, learning_rate=2e-2, warmup_steps=30, optimizer="muon", weight_decay=0.01, seed=1
        ),
        batch=16,
        evaluate_every=30,
        examples=("kR7wZq3xB kR7wZ", "Anna Karenina met Anna Kare"),
    ),
    Preset(
        name="quick-next-vowel",
        title="Next vowel",
        summary="The smallest encoder–decoder there is.",
        group=Group.TASKS,
        task="next-vowel",
        shape={"n_layers": 1, "n_heads": 1, "d_model": 16, **AS_IN_2017},
        training=TrainingConfig(steps=500, learning_rate=1e-2, warmup_steps=50, weight_decay=0.0, seed=1),
        batch=64,
        evaluate_every=25,
        examples=("abc", "gnu"),
    ),
    Preset(
        name="quick-number-words",
        title="English numbers to Spanish",
        summary="The transformer of the paper, small.",
        group=Group.TASKS,
        task="number-words",
        shape={"n_layers": 2, "n_heads": 4, "d_model": 64, **AS_IN_2017},
        training=TrainingConfig(
            steps=600, learning_rate=5e-3, warmup_steps=50, optimizer="muon", weight_decay=0.01, seed=1
        ),
        batch=64,
        evaluate_every=30,
        examples=("two hundred and five", "forty-two"),
    ),
    Preset(
        name="quick-sort-letters",
        title="Sort letters",
        summary="Puts letters into alphabetical order.",
        group=Group.TASKS,
        task="sort-letters",
        shape={"n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary"},
        training=TrainingConfig(
            steps=1000, learning_rate=4e-3, warmup_steps=50, optimizer="muon", weight_decay=0.01, seed=1
        ),
        batch=64,
        evaluate_every=50,
        examples=("hello=", "transform="),
    ),
    Preset(
        name="quick-stories",
        title="Stories",
        summary="Reads who has what, who is where, and who gave what to whom.",
        group=Group.TASKS,
        task="stories",
        shape=_STORIES_SHAPE,
        training=TrainingConfig(
            steps=700, learning_rate=5e-3, warmup_steps=50, optimizer="muon", momentum=0.9, weight_decay=0.01, seed=1337
        ),
        batch=128,
        evaluate_every=50,
        examples=("Mary took the ball. She went to the garden. Tom ran to the park. Where is the ball?",),
    ),
    Preset(
        name="quick-masked-stories",
        title="Stories, both ways",
        summary="An encoder: it reads a story in both directions, and fills in what is masked.",
        group=Group.TASKS,
        task="masked-stories",
        shape=_STORIES_SHAPE,
        training=TrainingConfig(
            steps=700, learning_rate=3e-3, warmup_steps=50, optimizer="muon", momentum=0.9, weight_decay=0.01, seed=1337
        ),
        batch=128,
        evaluate_every=50,
        examples=("Mary took the ball. She went to the [mask]. Tom ran to the park. Where is the ball? garden",),
    ),
    Preset(
        name="quick-shakespeare",
        title="Shakespeare",
        summary="Letters turn into syllables, words, and the form of a play.",
        corpus="tiny-shakespeare",
        shape=_TEXT_SHAPE,
        training=_TEXT_TRAINING,
        batch=32,
        evaluate_every=100,
        examples=("ROMEO:", "To be, or not"),
    ),
    Preset(
        name="quick-martin-fierro",
        title="Martín Fierro",
        summary="Letters turn into syllables, words, and lines of verse.",
        corpus="martin-fierro",
        shape=_TEXT_SHAPE | {"context_length": 64},
        training=replace(_TEXT_TRAINING, steps=700, weight_decay=0.2),  # ten epochs of the short poem
        batch=32,
        evaluate_every=100,
        examples=("Aquí me pongo a cantar", "El gaucho"),
    ),
    Preset(
        name="quick-python-manual",
        title="The manual of Python",
        summary="Letters turn into words, and those into the wording of a manual.",
        corpus="python-manual",
        shape=_TEXT_SHAPE,
        training=_TEXT_TRAINING,
        batch=32,
        evaluate_every=100,
        examples=("The statement", "An expression"),
    ),
    Preset(
        name="quick-own-text",
        title="Your own text",
        summary="Letters turn into words, and those into the manner of your text.",
        corpus="own-text",
        shape=_TEXT_SHAPE,
        training=replace(_TEXT_TRAINING, weight_decay=0.1),
        batch=32,
        evaluate_every=100,
        examples=(),
    ),
)

QUICK = {preset.name: preset for preset in _QUICK}
