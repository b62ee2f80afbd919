"""Makes the plan of a training from the visitor's choices, and the losses to compare it with."""

import math
import re
from dataclasses import dataclass

import streamlit as st

from transformer import TASKS, Corpus, ModelConfig, TrainingConfig, load_corpus
from transformer.data.corpora import SOURCES
from transformer.data.tasks import MASK, START
from transformer.training.objectives import Objective, TaskObjective, TextObjective
from transformer.training.plan import TrainingPlan
from transformer.training.presets import PRESETS
from transformer.training.text_baselines import bigram_loss

LONGEST_EXAMPLE = 24
"""Characters of a suggested prompt, if the context holds as many."""
SNAPSHOTS = 40
PROBES = {
    "next-vowel": ("bcd", ""),
    "number-words": (
        "seven hundred and seventy-seven thousand one hundred and twelve",
        "setecientos setenta y siete mil ciento doce",
    ),
    "sort-letters": ("transform=", "afmnorrst"),
    "induction": ("kR7wZq3xB kR7wZ", "q3xB kR7wZq3xB"),
    "stories": ("Mary took the ball. She went to the garden. Tom ran to the park. Where is the ball?", "garden"),
    "masked-stories": (
        "Mary took the ball. She went to the [mask]. Tom ran to the park. Where is the ball? garden",
        "garden",
    ),
}
"""The probe of each task, whose attention is recorded during training: what is read, and the right answer."""


def probe_in_words(task: str) -> str:
    """A task's probe: what is read, and the right answer."""
    mask = f"\n{MASK}" if TASKS[task].architecture == "encoder-only" else ""
    return f"{mask} → ".join(PROBES[task])


@dataclass(frozen=True)
class Choice:
    """A model to train, and its data; `corpus` is None for a task, or for a text that isn't downloaded yet."""

    learn: str
    """A task's or a corpus's name; "own-text" for the visitor's own."""
    corpus: Corpus | None
    config: ModelConfig
    training: TrainingConfig
    batch: int

    @property
    def is_task(self) -> bool:
        return self.learn in TASKS

    @property
    def title(self) -> str:
        if self.is_task:
            return TASKS[self.learn].title
        return self.corpus.source.title if self.corpus else SOURCES[self.learn].title


def plan_of(choice: Choice) -> TrainingPlan:
    """The plan of a job. Raises: CorpusError if the text isn't available."""
    corpus = choice.corpus
    if corpus is None and not choice.is_task:
        bar = st.progress(0.0, "Downloading …")
        corpus = load_corpus(choice.learn, progress=lambda done, total: bar.progress(min(done / max(total, 1), 1.0)))
    seed, context = choice.training.seed, choice.config.context_length
    objective: Objective = (
        TextObjective(corpus, context, choice.batch, seed)
        if corpus
        else TaskObjective(TASKS[choice.learn], choice.batch, seed)
    )
    config = ModelConfig(**choice.config.to_dict() | objective.shape)
    tokens, source, prompt = _probe(choice, objective, config)
    return TrainingPlan(
        objective=objective,
        config=config,
        training=choice.training,
        title=f"{choice.title}, {choice.training.steps:,} steps",
        summary=f"Trained on {corpus.source.title}." if corpus else TASKS[choice.learn].summary,
        examples=examples(choice, corpus),
        probe_tokens=tokens,
        probe_source=source,
        sample_prompt=prompt,
        snapshots=SNAPSHOTS,
        evaluate_every=max(choice.training.steps // 10, 1),
    )


def references(plan: TrainingPlan) -> dict[str, float]:
    """Losses to compare with: a uniform guess, and for a text the best bigram table."""
    losses = uniform_guess(plan.config.vocab_size)
    if isinstance(text := plan.objective, TextObjective):
        _, losses["best bigram table"] = bigram_loss(text.train, text.validation, plan.config.vocab_size)
    return losses


def uniform_guess(vocabulary: int) -> dict[str, float]:
    """The loss of a uniform guess, by its name in a chart."""
    return {f"uniform guess, ln {vocabulary}": math.log(vocabulary)}


def _probe(choice: Choice, objective: Objective, config: ModelConfig) -> tuple[tuple[int, ...], ...]:
    """Tokens of the probe, of its source, and of the prompt that samples continue, or whose masks they fill."""
    encode = objective.tokenizer.encode
    if isinstance(objective, TextObjective):
        held_out = from_a_paragraph(objective.corpus.split()[1], config.context_length)
        words = held_out[:16].rsplit(maxsplit=1) or [held_out[:16]]  # the last word may be cut
        return tuple(encode(held_out[: min(config.context_length, 32)])), (), tuple(encode(words[0]))
    source, target = (tuple(encode(text)) for text in PROBES[choice.learn])
    if config.architecture == "decoder-only":
        return source + target, (), source
    if config.architecture == "encoder-only":
        return source, (), source
    start = (objective.tokenizer.special_id(START),)
    return start + target, source, start


def from_a_paragraph(text: str, least: int) -> str:
    """A text from its second paragraph on, or its second line, if that leaves `least` characters; else all of it."""
    for end in ("\n\n", "\n"):
        rest = text.partition(end)[2].lstrip()
        if len(rest) >= least:
            return rest
    return text


def excerpt(text: str, most: int) -> str:
    """At most `most` characters of a text, from the start of a paragraph to the end of a word."""
    piece = from_a_paragraph(text, most)
    if len(piece) <= most:
        return piece
    whole_words = re.match(rf".{{1,{most}}}(?!\S)", piece, re.DOTALL)
    return f"{(whole_words[0] if whole_words else piece[:most]).rstrip()} …"


def examples(choice: Choice, corpus: Corpus | None) -> list[str]:
    if corpus is not None:
        held_out, length = corpus.split()[1], min(LONGEST_EXAMPLE, choice.config.context_length)
        return [held_out[at : at + length] for at in range(0, min(len(held_out) - length, 4000), 1000)]
    return next(list(preset.examples) for preset in PRESETS.values() if preset.task == choice.learn)
