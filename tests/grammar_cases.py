"""Writes texts that tasks have, for the test of the grammars that the browser reads them by."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from transformer.checkpoints.folder import list_checkpoints
from transformer.data.grammars import of_number_words, of_stories
from transformer.data.number_words import english
from transformer.data.story_world import MOST_FACTS, tell, written

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
STORIES, NUMBERS = 30, 100


def write_grammar_cases(file: Path) -> None:
    """The grammars; stories with their questions and answers, numbers, and the shipped examples that are stories."""
    random = np.random.default_rng(0)
    stories = [_story(random, number % MOST_FACTS + 1) for number in range(STORIES)]
    numbers = [*range(121), *(int(random.integers(10 ** (number % 6 + 1))) for number in range(NUMBERS))]
    cards = [entry.card for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None]
    examples = [text for card in cards if card.task in ("stories", "masked-stories") for text in card.examples]
    cases = {
        "stories": {"grammar": asdict(of_stories()), "texts": stories, "examples": examples},
        "numbers": {"grammar": asdict(of_number_words()), "texts": [english(number) for number in numbers]},
    }
    file.write_text(json.dumps(cases), encoding="utf-8")


def _story(random: np.random.Generator, facts: int) -> str:
    story, questions = tell(random, facts, asking_from=int(random.integers(1, facts + 1)))
    parts, begin = [], 0
    for words_before, question in questions:
        parts += [written(story.words[begin:words_before]), question.text, question.answer]
        begin = words_before
    return " ".join(filter(None, parts))
