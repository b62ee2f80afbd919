"""Writes stories, for the test of the grammar that the browser reads them by."""

import json
from pathlib import Path

import numpy as np

from transformer.checkpoints.folder import list_checkpoints
from transformer.data.story_grammar import story_rules
from transformer.data.story_world import MOST_FACTS, tell, written
from transformer.data.tasks import TASKS

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
STORIES = 60


def write_grammar_cases(file: Path) -> None:
    """The rules, stories with their questions and answers, and the shipped examples."""
    random = np.random.default_rng(0)
    texts = [_text(random, number % MOST_FACTS + 1) for number in range(STORIES)]
    cards = [entry.card for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None]
    examples = [text for card in cards if card.task in TASKS and TASKS[card.task].grammar for text in card.examples]
    file.write_text(json.dumps({"rules": story_rules(), "texts": texts, "examples": examples}), encoding="utf-8")


def _text(random: np.random.Generator, facts: int) -> str:
    story, questions = tell(random, facts, asking_from=int(random.integers(1, facts + 1)))
    parts, begin = [], 0
    for words_before, question in questions:
        parts += [written(story.words[begin:words_before]), question.text, question.answer]
        begin = words_before
    return " ".join(filter(None, parts))
