"""Generates short stories of people who move, take, find and give things, with questions the story answers.

A story is told by rolling dice over a small world: nobody gives what they haven't got, takes what another has, or goes
where they are. Where two facts answer a question, the later one counts: *Mary went to the park. Mary went to the
school. Where is Mary?* gives *school*. A pronoun means the only woman, or the only man, of the sentence before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .story_world import HOW_MANY, Dice, written

WOMEN, MEN = ("Anna", "Emma", "Lucy", "Mary"), ("Ben", "John", "Max", "Tom")
PRONOUNS = {**dict.fromkeys(WOMEN, "She"), **dict.fromkeys(MEN, "He")}
PLACES = ("attic", "bedroom", "cellar", "garden", "kitchen", "library", "park", "school")
THINGS = ("apple", "ball", "book", "hat", "key", "lamp", "letter", "map")
WENT, TOOK, GAVE = ("went", "walked", "ran"), ("took", "found"), ("gave", "handed")
ASKING = ("Where", "Who", "What", "is", "has", "does", "have", "did", "give", "gave")
NAMES = (*WOMEN, *MEN)
WORDS = frozenset((*NAMES, "She", "He", *PLACES, *THINGS, *WENT, *TOOK, *GAVE, *ASKING, "to", "the", ".", "?"))
MOST_FACTS = 5
"""The most sentences of a story, without its question."""
TOLD_LENGTHS = (1, 2, 3, 3, 4, 4, 5, 5, 5, 5)
"""Numbers of sentences of training stories, repeated by frequency: short stories teach little."""
AT_FIRST = {400: (2,), 700: (2, 3)}
"""A curriculum: the same for the first batches, by the batch that ends it. A model that starts with five sentences
learns to guess before it learns to look up, and guesses for thousands of batches (Bengio et al. 2009, §3)."""
MOST_QUESTIONS = MOST_FACTS
"""The most questions about one story: one for each sentence."""
LONGEST_FACT, LONGEST_QUESTION = 7, 8
"""Tokens of *Mary gave the ball to John.* and of *Who did Mary give the ball to?*"""
ALIKE = {word: group for group in (NAMES, PLACES, THINGS) for word in group}
EASY = 0.1
"""The share of questions whose answer may be the only word of its kind."""
TELLING = 0.6
"""How often to ask a kind of question that has several answers in this story, if there is one: only such questions need
the whole story. Their answers can't be guessed by position: the last word of a kind is no likelier than an earlier one.
"""
ROLLS = 200
"""Random numbers drawn for one story: more than the longest needs."""


class Question(NamedTuple):
    """A question, its answer, and the index of the answering word in the story; full stops count as words."""

    words: tuple[str, ...]
    answer: str
    position: int

    @property
    def text(self) -> str:
        """The question as it is written."""
        return written([*self.words, "?"])


@dataclass
class Story:
    """The facts told so far. Indices into the story count words and full stops from 0."""

    words: list[str] = field(default_factory=list)
    mentioned: tuple[str, ...] = ()
    """People named in the last sentence."""
    whereabouts: dict[str, int] = field(default_factory=dict)
    """By person: the index of the last place that they went to."""
    holders: dict[str, str] = field(default_factory=dict)
    """Of each thing that has been taken."""
    received: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By thing: the index of its last receiver, and of the thing's own name there."""
    gifts: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    """By giver, thing and receiver, the latest gift last: the indices of all three."""

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
        """The index of the sentence that answers a question."""
        return self.words[: question.position].count(".")

    def pronoun_means(self, person: str) -> bool:
        """Whether *she* or *he* could now mean this person only."""
        alike = {other for other in self.mentioned if PRONOUNS[other] == PRONOUNS[person]}
        return alike == {person}

    def questions(self, *, with_choice: bool = False) -> list[list[Question]]:
        """All possible questions by kind, without empty kinds.

        with_choice: only questions to which several words of the story could be the answer.
        """
        held: dict[str, list[str]] = {}
        for thing, person in self.holders.items():
            held.setdefault(person, []).append(thing)
        by_receiver, by_thing, by_pair = {}, {}, {}
        for (giver, thing, receiver), (subject, object, last) in self.gifts.items():  # the later one replaces it
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


def lengths_told(batch: int) -> tuple[int, ...]:
    """The numbers of sentences for a batch, batches counted from 0; repeated by frequency."""
    return next((lengths for end, lengths in AT_FIRST.items() if batch < end), TOLD_LENGTHS)


class StoryQuestion(NamedTuple):
    """A question asked during a story."""

    words_before: int
    """How many of the story's tokens come before it."""
    question: Question


def tell(random: np.random.Generator, facts: int, asking_from: int | None = None) -> tuple[Story, list[StoryQuestion]]:
    """A story of so many sentences, 1 to `MOST_FACTS`, and questions that it answers.

    By default one question, at the end, each kind equally likely; with `asking_from`, one after each sentence from that
    one on, and the rest at the end. No sentence answers two questions: *Who has the ball? Mary* would give away what
    Mary has, and the model would learn to read answers instead of the story.
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
                story.mentioned = ()  # a pronoun could refer to somebody in the question
        if story.questions(with_choice=True) or facts == 1:
            break
    while _ask(story, dice, questions) and asking_from:
        pass
    return story, questions


def _ask(story: Story, dice: Dice, questions: list[StoryQuestion]) -> bool:
    """Ask about a sentence that answers no question yet; False if there is none."""
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
    """Whether several words of the story could be the answer."""
    return len({question.answer for question in kind}) > 1


def _go_on(story: Story, dice: Dice, people: Sequence[str], things: Sequence[str], places: Sequence[str]) -> None:
    """Tell one more fact: somebody gives something, takes something, or goes somewhere."""
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
