"""Generates short stories of people who move, take, find and give things, with questions the story answers.

A story is told by rolling dice over a small world: nobody gives what they haven't got, takes what another has, or goes
where they are. Where two facts answer a question, the later one counts: *Mary went to the park. Mary went to the
school. Where is Mary?* gives *school*. A pronoun means the only woman, or the only man, of the sentence before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

WOMEN, MEN = ("Anna", "Emma", "Lucy", "Mary"), ("Ben", "John", "Max", "Tom")
PRONOUNS = {**dict.fromkeys(WOMEN, "She"), **dict.fromkeys(MEN, "He")}
PLACES = ("attic", "bedroom", "cellar", "garden", "kitchen", "library", "park", "school")
THINGS = ("apple", "ball", "book", "hat", "key", "lamp", "letter", "map")
WENT, TOOK, GAVE = ("went", "walked", "ran"), ("took", "found"), ("gave", "handed")
ASKING = ("Where", "Who", "What", "is", "has", "does", "have", "did", "give", "gave")
NAMES = (*WOMEN, *MEN)
WORDS = frozenset((*NAMES, "She", "He", *PLACES, *THINGS, *WENT, *TOOK, *GAVE, *ASKING, "to", "the", ".", "?"))
MOST_FACTS = 5
"""Sentences of a story, its question aside."""
TOLD_LENGTHS = (1, 2, 3, 3, 4, 4, 5, 5, 5, 5)
"""Sentences of the stories to learn from, each number as often as it is here: short ones have little to teach."""
AT_FIRST = {400: (2,), 700: (2, 3)}
"""The same for the batches before one of these numbers. Who is where, of two, can be told from one sentence; from five,
a reader learns to guess sooner than to look up, and stays with it for thousands of batches (Bengio et al. 2009, §3)."""
HOW_MANY = (1, 2, 3, 3, 3, 4, 4, 4)
"""People in a story, each number as often as it is here. Those of one person teach that the later fact counts."""
MOST_QUESTIONS = MOST_FACTS
"""About one story: one about each sentence."""
LONGEST_FACT, LONGEST_QUESTION = 7, 8
"""Words and signs of *Mary gave the ball to John.* and of *Who did Mary give the ball to?*"""
ALIKE = {word: group for group in (NAMES, PLACES, THINGS) for word in group}
EASY = 0.1
"""Of all questions, how many may have an answer that is the only word of its kind."""
TELLING = 0.6
"""How often, where there is such a kind, a question is asked of a kind whose questions have different answers in this
story: only these must be read to the end. Of those, no answer can be guessed from its position: neither the last word
of its kind nor an earlier one is the likelier.
"""
ROLLS = 200
"""Random numbers for one story: more than the longest takes."""

Choice = TypeVar("Choice")


class Question(NamedTuple):
    """A question, its answer, and the word of the story that gives it, counted from 0 in words and full stops."""

    words: tuple[str, ...]
    answer: str
    position: int

    @property
    def text(self) -> str:
        """The question as it is written."""
        return written([*self.words, "?"])


@dataclass
class Story:
    """A world as far as it has been told. Places in the story count words and full stops from 0."""

    words: list[str] = field(default_factory=list)
    mentioned: tuple[str, ...] = ()
    """The people of the last sentence."""
    whereabouts: dict[str, int] = field(default_factory=dict)
    """Of each person: where the story last says the place that they went to."""
    holders: dict[str, str] = field(default_factory=dict)
    """Of each thing that has been taken."""
    received: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each thing: where the story says who got it last, and where it names it there."""
    gifts: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    """By giver, thing and receiver, in the order of the last time: where the story says each of the three."""

    @property
    def text(self) -> str:
        """The story as it is written."""
        return written(self.words)

    def place_of(self, person: str) -> str | None:
        """Where a person is; None if the story doesn't say."""
        return self.words[self.whereabouts[person]] if person in self.whereabouts else None

    def go(self, person: str, verb: str, place: str, *, pronoun: bool = False) -> None:
        """*Mary went to the park.*"""
        self._tell(person, pronoun, verb, "to", "the", place)
        self.whereabouts[person] = len(self.words) - 2

    def take(self, person: str, verb: str, thing: str, *, pronoun: bool = False) -> None:
        """*Mary took the ball.*"""
        at = self._tell(person, pronoun, verb, "the", thing)
        self.holders[thing], self.received[thing] = person, (at, at + 3)

    def give(self, person: str, verb: str, thing: str, receiver: str, *, pronoun: bool = False) -> None:
        """*Mary gave the ball to John.*"""
        at = self._tell(person, pronoun, verb, "the", thing, "to", receiver)
        self.mentioned += (receiver,)
        self.holders[thing], self.received[thing] = receiver, (at + 5, at + 3)
        self.gifts.pop((person, thing, receiver), None)
        self.gifts[person, thing, receiver] = at, at + 3, at + 5

    def fact(self, question: Question) -> int:
        """The sentence that answers a question, counted from 0."""
        return self.words[: question.position].count(".")

    def pronoun_means(self, person: str) -> bool:
        """Whether *she* or *he* would now mean this person and nobody else."""
        alike = {other for other in self.mentioned if PRONOUNS[other] == PRONOUNS[person]}
        return alike == {person}

    def questions(self, *, with_choice: bool = False) -> list[list[Question]]:
        """All that can be asked, kind by kind; only kinds of which there are any.

        with_choice: only questions to which another word of the story could be the answer.
        """
        held: dict[str, list[str]] = {}
        for thing, person in self.holders.items():
            held.setdefault(person, []).append(thing)
        by_receiver, by_thing, by_pair = {}, {}, {}
        for (giver, thing, receiver), (subject, object, last) in self.gifts.items():  # a later one takes its place
            by_receiver[thing, receiver] = Question(("Who", "gave", "the", thing, "to", receiver), giver, subject)
            by_thing[giver, thing] = Question(("Who", "did", giver, "give", "the", thing, "to"), receiver, last)
            by_pair[giver, receiver] = Question(("What", "did", giver, "give", "to", receiver), thing, object)
        kinds = [
            [Question(("Where", "is", person), self.words[at], at) for person, at in self.whereabouts.items()],
            [
                Question(("Where", "is", "the", thing), place, self.whereabouts[person])
                for thing, person in self.holders.items()
                if (place := self.place_of(person))
            ],
            [
                Question(("Who", "has", "the", thing), person, self.received[thing][0])
                for thing, person in self.holders.items()
            ],
            [
                Question(("What", "does", person, "have"), things[0], self.received[things[0]][1])
                for person, things in held.items()
                if len(things) == 1
            ],
            [*by_receiver.values()],
            [*by_thing.values()],
            [*by_pair.values()],
        ]
        if with_choice:
            named = Counter(ALIKE[word] for word in {*self.words} & ALIKE.keys())
            kinds = [[question for question in kind if named[ALIKE[question.answer]] > 1] for kind in kinds]
        return [kind for kind in kinds if kind]

    def _tell(self, person: str, pronoun: bool, *rest: str) -> int:
        """Add a sentence; returns where it begins."""
        at = len(self.words)
        self.words += [PRONOUNS[person] if pronoun else person, *rest, "."]
        self.mentioned = (person,)
        return at


class Dice:
    """Random choices, from numbers drawn all at once: one by one, they would take longer than the story."""

    def __init__(self, random: np.random.Generator, rolls: int) -> None:
        self._rolls = iter(random.random(rolls).tolist())

    def below(self, chance: float) -> bool:
        """True with this probability."""
        return next(self._rolls) < chance

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return least + int(next(self._rolls) * (most + 1 - least))

    def one(self, of: Sequence[Choice]) -> Choice:
        """One of several."""
        return of[int(next(self._rolls) * len(of))]

    def some(self, of: Sequence[Choice], count: int) -> list[Choice]:
        """Several different ones."""
        left = list(of)
        return [left.pop(int(next(self._rolls) * len(left))) for _ in range(count)]


def lengths_told(batch: int) -> tuple[int, ...]:
    """How many sentences the stories of a batch may have, counted from 0, each number as often as it is there."""
    return next((lengths for end, lengths in AT_FIRST.items() if batch < end), TOLD_LENGTHS)


class StoryQuestion(NamedTuple):
    """A question in the course of a story."""

    words_before: int
    """How many words and signs of the story stand before it, all in all."""
    question: Question


def tell(random: np.random.Generator, facts: int, asking_from: int | None = None) -> tuple[Story, list[StoryQuestion]]:
    """A story of so many sentences, 1 to `MOST_FACTS`, and questions that it answers.

    There is one, at the end, and each kind of question is as likely; or else there are several: one after each sentence
    from `asking_from` on, and the rest at the end. Each sentence is asked for once: *Who has the ball? Mary* would give
    away what Mary has, and a reader would learn to read answers instead of the story.
    """
    while True:
        dice = Dice(random, ROLLS)
        story, questions = Story(), []
        people = dice.some(NAMES, dice.one(HOW_MANY))
        things = dice.some(THINGS, dice.number(2, 4))
        places = dice.some(PLACES, dice.number(3, 5))
        for number in range(1, facts + 1):
            _go_on(story, dice, people, things, places)
            is_asked = asking_from and asking_from <= number < facts and story.questions(with_choice=True)
            if is_asked and _ask(story, dice, questions):
                story.mentioned = ()  # a pronoun would mean somebody of the question
        if story.questions(with_choice=True) or facts == 1:
            break
    while _ask(story, dice, questions) and asking_from:
        pass
    return story, questions


def written(words: Sequence[str]) -> str:
    """Words and signs as a text: no space before a full stop or a question mark."""
    return " ".join(words).replace(" .", ".").replace(" ?", "?")


def _ask(story: Story, dice: Dice, questions: list[StoryQuestion]) -> bool:
    """Ask for a sentence that hasn't been asked for yet; False if there is none."""
    known = {story.fact(question.question) for question in questions}
    kinds = None if dice.below(EASY) else story.questions(with_choice=True)
    kinds = kinds or story.questions()
    if dice.below(TELLING):
        kinds = [kind for kind in kinds if _is_telling(kind)] or kinds
    left = [[question for question in kind if story.fact(question) not in known] for kind in kinds]
    left = [kind for kind in left if kind]
    if left:
        questions.append(StoryQuestion(len(story.words), dice.one(dice.one(left))))
    return bool(left)


def _is_telling(kind: list[Question]) -> bool:
    """Whether the kind of question doesn't give the answer yet."""
    return len({question.answer for question in kind}) > 1


def _go_on(story: Story, dice: Dice, people: Sequence[str], things: Sequence[str], places: Sequence[str]) -> None:
    """One more sentence: somebody gives something, takes something, or goes somewhere."""
    if story.holders and len(people) > 1 and dice.below(0.35):
        thing = dice.one([*story.holders])
        person = story.holders[thing]
        receiver = dice.one([other for other in people if other != person])
        story.give(person, dice.one(GAVE), thing, receiver, pronoun=_with_pronoun(story, dice, person))
        return
    person = dice.one(people)
    pronoun = _with_pronoun(story, dice, person)
    free = [thing for thing in things if thing not in story.holders]
    if free and dice.below(0.5):
        story.take(person, dice.one(TOOK), dice.one(free), pronoun=pronoun)
    else:
        elsewhere = [place for place in places if place != story.place_of(person)]
        story.go(person, dice.one(WENT), dice.one(elsewhere), pronoun=pronoun)


def _with_pronoun(story: Story, dice: Dice, person: str) -> bool:
    return dice.below(0.5) and story.pronoun_means(person)
