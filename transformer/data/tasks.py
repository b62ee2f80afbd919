"""Tasks with generated examples: an input, and the one right output.

Each task has a training part and a held-out part. An example's content alone decides its part, so that training never
meets a held-out example, however long it lasts.
"""

from __future__ import annotations

import itertools
import string
import zlib
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..config import Architecture
from .grammars import Grammar, of_number_words, of_stories
from .number_words import english, number_from_english, spanish, words_of
from .stories import (
    LONGEST_FACT,
    LONGEST_QUESTION,
    MOST_FACTS,
    MOST_QUESTIONS,
    WORDS,
    Story,
    StoryQuestion,
    lengths_told,
    tell,
    written,
)
from .tokenizers import Tokenizer

PAD, START, END, MASK = "[pad]", "[start]", "[end]", "[mask]"
SIGNS = (".", "?")
MASKED_ANSWERS, MASKED_SOURCES = 0.85, 0.1
"""The shares of questions in which the answer is masked, and in which the answering word of the story is: that is
easier."""


@dataclass(frozen=True)
class Example:
    """An input, and the output that should follow it."""

    source: str
    target: str
    further: tuple[Example, ...] = ()
    """Further inputs and outputs, if a model learns several answers from one example."""
    predicts_source: bool = False
    """Whether a decoder-only model learns to write the source as well, from any beginning of it."""


@dataclass(frozen=True, kw_only=True)
class Question(Example):
    """An example whose answer is a word of the source, at token `position`."""

    position: int


class Task(ABC):
    """A source of examples, endless or enumerable, with the vocabulary and the length that a model for it needs.

    An encoder–decoder reads `source` and writes `target`; a decoder-only model continues `source` with `target`; an
    encoder reads `source`, in which words are masked, and `target` is the same text without masks.
    """

    name: str
    title: str
    summary: str
    language = ""
    architecture: Architecture
    ends = True
    """Whether the model ends its answer with `[end]`."""
    takes_any_text = False
    """Whether `problem` never finds anything: unknown pieces of a text are named elsewhere."""
    longest: int
    """The longest sequence in tokens, special ones included."""

    @cached_property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The task's vocabulary, with `[pad]`, `[start]` and `[end]`."""

    @property
    def grammar(self) -> Grammar | None:
        """What its texts are made of, if they are words."""
        return None

    @abstractmethod
    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Example:
        """A random example of the training part, or of the part held out."""

    def draw_batch(self, random: np.random.Generator, count: int, batch: int) -> list[Example]:
        """A batch of random training examples. batch: its number, counted from 0."""
        return [self.draw(random) for _ in range(count)]

    def problem(self, text: str) -> str | None:
        """Why the model can't read this text, and what it could read; None if it can."""
        return None

    def sample(self, count: int, seed: int = 0) -> list[Example]:
        """Distinct held-out examples, the same ones for the same seed; fewer if there are fewer."""
        random = np.random.default_rng(seed)
        drawn: dict[str, Example] = {}
        for _ in range(20 * count):
            example = self.draw(random, held_out=True)
            drawn.setdefault(example.source + example.target, example)
            if len(drawn) == count:
                break
        return list(drawn.values())


class NextVowel(Task):
    """Three characters in ascending order from `-a…z#`; the answer is the vowel that comes next in the alphabet.

    After `u` there is none, and the answer is `#`. All 3,276 cases are listed, 70 % of them to train on.
    """

    name = "next-vowel"
    title = "Next vowel"
    summary = "Reads three characters in alphabetical order and writes the vowel that comes next: abc gives e."
    architecture = "encoder-decoder"
    longest = 3
    alphabet = f"-{string.ascii_lowercase}#"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.of_characters(self.alphabet, (PAD, START, END))

    @cached_property
    def parts(self) -> tuple[list[Example], list[Example]]:
        """The cases to train on, and those held out."""
        cases = [Example("".join(three), self.answer(three[2])) for three in itertools.combinations(self.alphabet, 3)]
        order = np.random.default_rng(0).permutation(len(cases))
        at = len(cases) * 7 // 10
        return [cases[i] for i in order[:at]], [cases[i] for i in order[at:]]

    def answer(self, last: str) -> str:
        """The vowel after a character."""
        later = self.alphabet[self.alphabet.index(last) + 1 :]
        return next((character for character in later if character in "aeiou"), "#")

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Example:
        part = self.parts[held_out]
        return part[random.integers(len(part))]

    def problem(self, text: str) -> str | None:
        letters = [self.alphabet.find(character) for character in text]
        if len(text) == 3 and -1 not in letters and letters == sorted(set(letters)):
            return None
        return (
            "This model reads three different characters in the order of the alphabet, such as abc or mno; "
            "it also knows -, which comes before a, and #, which comes after z."
        )


class NumberWords(Task):
    """English number words translated into Spanish: 0 to 999,999, a tenth of them held out."""

    name = "number-words"
    title = "Number words"
    summary = "Translates English number words into Spanish: two hundred and five gives doscientos cinco."
    language = "English, Spanish"
    architecture = "encoder-decoder"
    longest = 12
    largest = 999_999

    @cached_property
    def tokenizer(self) -> Tokenizer:
        numbers = [*range(100), *range(100, 1000, 100), 101, 1000]
        texts = [write(number) for write in (english, spanish) for number in numbers]
        words = {word for text in texts for word in text.replace("-", " ").split()}
        return Tokenizer.of_words(words, (PAD, START, END))

    @property
    def grammar(self) -> Grammar:
        return of_number_words()

    def is_held_out(self, number: int) -> bool:
        """True for the numbers that training never meets."""
        return _in_tenth(f"number {number}")

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Example:
        while True:
            digits = random.integers(3, 7) if random.random() < 0.5 else 6  # or else short numbers would be too rare
            number = int(random.integers(10**digits))
            if self.is_held_out(number) == held_out:
                return Example(english(number), spanish(number))

    def sample(self, count: int, seed: int = 0) -> list[Example]:
        """Distinct held-out numbers, each as likely as any other."""
        numbers = np.random.default_rng(seed).permutation(self.largest + 1)
        chosen = itertools.islice((int(number) for number in numbers if self.is_held_out(int(number))), count)
        return [Example(english(number), spanish(number)) for number in chosen]

    def problem(self, text: str) -> str | None:
        can_read = "This model reads numbers from zero to 999,999 in English words"
        digits = text.replace(",", "").replace(" ", "")
        if digits.isdecimal() and digits.isascii():
            example = english(int(digits)) if len(digits) <= 6 else "two hundred and five"
            return f"{can_read}, such as: {example}."
        if self.tokenizer.unknown_pieces(text):
            return None  # unknown words are reported one by one elsewhere
        number = number_from_english(text)
        if number is None:
            return f"{can_read}, such as: two hundred and five. What is typed isn't one."
        if words_of(text) != words_of(english(number)):
            return f"{can_read}, written like this: {english(number)}."
        return None


class SortLetters(Task):
    """Up to ten letters and `=`, to be followed by the same letters in alphabetical order.

    A tenth of all multisets of letters is held out, in every order.
    """

    name = "sort-letters"
    title = "Sort letters"
    summary = "Puts letters into alphabetical order: hello= is followed by ehllo."
    architecture = "decoder-only"
    most = 10
    longest = 2 * most + 2

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.of_characters(f"={string.ascii_lowercase}", (PAD, START, END))

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Example:
        while True:
            letters = [string.ascii_lowercase[i] for i in random.integers(26, size=random.integers(1, self.most + 1))]
            answer = "".join(sorted(letters))
            if _in_tenth(f"letters {answer}") == held_out:
                return Example("".join(letters) + "=", answer)

    def problem(self, text: str) -> str | None:
        letters = text.partition("=")[0]
        if "=" in text and 1 <= len(letters) <= self.most and text.count("=") == 1:
            return None
        return (
            f"This model reads one to {self.most} small letters and then an equals sign, such as hello= ; "
            "it then writes them in order."
        )


class Induction(Task):
    """Random characters, repeated: the next one can be predicted from what followed the same characters before.

    Source: Olsson et al. 2022, "In-context learning and induction heads".
    """

    name = "induction"
    title = "Induction"
    summary = "Random characters, then the same ones again: what repeats continues as it did before."
    architecture = "decoder-only"
    ends = False
    takes_any_text = True
    longest = 64
    shortest_period = 6
    alphabet = f"{string.ascii_letters}{string.digits} .,'!?-"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.of_characters(self.alphabet, (PAD, START, END))

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Example:
        period = int(random.integers(self.shortest_period, self.longest // 2 + 1))
        return self.repeated(random, period, held_out=held_out)

    def repeated(self, random: np.random.Generator, period: int, *, held_out: bool = True) -> Example:
        """`period` random characters, repeated up to the longest sequence."""
        while True:
            stretch = "".join(self.alphabet[i] for i in random.integers(len(self.alphabet), size=period))
            if _in_tenth(f"stretch {stretch}") == held_out:
                text = (stretch * self.longest)[: self.longest]
                return Example(text[0], text[1:])


class Stories(Task):
    """A short story and a question, to be followed by the one word of the story that answers it.

    A tenth of all stories is held out with all their questions. A story's own words are random and far more numerous
    than the answers, so learning all of them alike would drown the answers: one story of a batch is learned word by
    word, of the others only the answers are.
    """

    name = "stories"
    title = "Stories"
    summary = "Reads a short story and answers a question: who has what, who is where, who gave what to whom."
    language = "English"
    architecture = "decoder-only"
    takes_any_text = True
    longest = MOST_FACTS * LONGEST_FACT + MOST_QUESTIONS * (LONGEST_QUESTION + 1) + 1

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.of_sentences(WORDS, (PAD, START, END))

    @property
    def grammar(self) -> Grammar:
        return of_stories()

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Question:
        while True:
            story, ((_, question),) = tell(random, int(random.integers(1, MOST_FACTS + 1)))
            if self.is_held_out(story.words) == held_out:
                return Question(f"{story.text} {question.text}", question.answer, position=question.position)

    def draw_batch(self, random: np.random.Generator, count: int, batch: int) -> list[Example]:
        """Stories with equally many sentences, so that there is little padding, and with questions in between."""
        facts = int(random.choice(lengths_told(batch)))
        return [self._with_questions(random, facts, predicts_source=number == 0) for number in range(count)]

    def _with_questions(self, random: np.random.Generator, facts: int, *, predicts_source: bool) -> Example:
        story, questions = self._interrupted(random, facts)
        parts, begin = [], 0
        for words_before, question in questions:
            parts.append((f"{written(story.words[begin:words_before])} {question.text}".strip(), question.answer))
            begin = words_before
        first, *more = (Example(*part, predicts_source=predicts_source) for part in parts)
        return replace(first, further=tuple(more))

    def _interrupted(self, random: np.random.Generator, facts: int) -> tuple[Story, list[StoryQuestion]]:
        """A story of so many sentences with questions in between, from some sentence on, or all at the end."""
        while True:
            story, questions = tell(random, facts, asking_from=int(random.integers(1, facts + 1)))
            if not any(
                self.is_held_out(story.words[:words_before])
                for words_before in {question.words_before for question in questions}
            ):
                return story, questions

    def is_held_out(self, story: Sequence[str]) -> bool:
        """True for the stories that training never asks anything about."""
        return _in_tenth(f"story {' '.join(story)}")


class MaskedStories(Stories):
    """The same stories, questions and answers with masked words, which can be inferred from both sides.

    In a held-out story one word is masked: either the answer, which the story before it gives, or the same word in the
    story, which the answer after it gives (unless the story has a pronoun there). Training masks these two kinds for
    each question, and in one story of a batch any words, most of which are random.
    """

    name = "masked-stories"
    title = "Stories, both ways"
    summary = "Reads a short story, question and answer in both directions, and fills the words that are masked."
    architecture = "encoder-only"
    ends = False

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.of_sentences(WORDS, (PAD, START, END, MASK)).with_names()

    def draw(self, random: np.random.Generator, *, held_out: bool = False) -> Question:
        question = super().draw(random, held_out=held_out)
        words = f"{question.source} {question.target}".replace(".", " .").replace("?", " ?").split()
        is_told = words[question.position] == question.target
        at = question.position if is_told and random.random() < 0.5 else len(words) - 1
        return Question(_masked(words, {at}), written(words), position=at)

    def draw_batch(self, random: np.random.Generator, count: int, batch: int) -> list[Example]:
        facts = int(random.choice(lengths_told(batch)))
        return [self._with_masks(random, facts, any_words=number == 0) for number in range(count)]

    def _with_masks(self, random: np.random.Generator, facts: int, *, any_words: bool) -> Example:
        story, questions = self._interrupted(random, facts)
        words: list[str] = []
        places: list[int] = []  # the index of each word of the story
        hidden: set[int] = set()
        for words_before, question in questions:
            new = story.words[len(places) : words_before]
            places += range(len(words), len(words) + len(new))
            words += [*new, *question.words, "?", question.answer]
            dice, source = random.random(), places[question.position]
            if dice < MASKED_ANSWERS:
                hidden.add(len(words) - 1)
            elif dice < MASKED_ANSWERS + MASKED_SOURCES and words[source] == question.answer:
                hidden.add(source)
        if any_words:
            free = [place for place, word in enumerate(words) if word not in SIGNS]
            hidden = set(random.choice(free, int(random.integers(1, 1 + len(free) // 3)), replace=False).tolist())
        return Example(_masked(words, hidden or {len(words) - 1}), written(words))


def _masked(words: Sequence[str], places: Container[int]) -> str:
    return written([MASK if place in places else word for place, word in enumerate(words)])


TASKS: dict[str, Task] = {
    task.name: task for task in (NextVowel(), NumberWords(), SortLetters(), Induction(), Stories(), MaskedStories())
}


def _in_tenth(content: str) -> bool:
    """True for a tenth of all contents, by their hash."""
    return zlib.crc32(content.encode()) % 10 == 0
