"""Generates short stories of people who move, take, give and drop things, with questions the story answers.

A story is told by rolling dice over a small world: nobody gives what they haven't got, takes what another has, or goes
where they are. Where two facts answer a question, the later one counts: *Mary went to the park. Mary went to the
school. Where is Mary?* gives *school*. *She*, *he*, *her* and *him* mean the only woman, or the only man, of the
sentence before, *it* the thing of that sentence.

Some people, places and things have invented names. A model reads each as one of a few new words, and whether such a
name is a woman's or a man's only pronouns tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

import numpy as np

Kind = Literal["person", "place", "thing"]
Choice = TypeVar("Choice")

WOMEN = (
    *("Alice", "Amy", "Anna", "Clara", "Diana", "Ella", "Emily", "Emma", "Eva", "Fiona", "Helen", "Ida", "Jane"),
    *("Julia", "Kate", "Laura", "Lily", "Lucy", "Maria", "Mary", "Nina", "Nora", "Olivia", "Rosa", "Ruth", "Sara"),
    *("Sofia", "Susan", "Vera", "Zoe"),
)
MEN = (
    *("Adam", "Alex", "Ben", "Bob", "Carl", "Daniel", "David", "Eric", "Felix", "George", "Henry", "Hugo", "Ivan"),
    *("Jack", "James", "John", "Leo", "Luke", "Max", "Oliver", "Oscar", "Paul", "Peter", "Robert", "Sam", "Simon"),
    *("Theo", "Tom", "Victor", "William"),
)
PLACES = (
    *("airport", "attic", "bakery", "balcony", "bank", "barn", "basement", "bathroom", "beach", "bedroom"),
    *("bridge", "cafe", "castle", "cave", "cellar", "church", "cinema", "city", "classroom", "desert", "farm"),
    *("field", "forest", "garage", "garden", "gym", "hall", "harbour", "hill", "hospital", "hotel", "house"),
    *("island", "kitchen", "lake", "library", "market", "meadow", "museum", "office", "palace", "park"),
    *("playground", "pool", "prison", "restaurant", "river", "roof", "school", "shop", "stable", "stadium"),
    *("station", "street", "studio", "theatre", "tower", "tunnel", "village", "zoo"),
)
THINGS = (
    *("apple", "axe", "bag", "ball", "balloon", "banana", "basket", "bell", "blanket", "book", "bottle", "bowl"),
    *("box", "bread", "brush", "bucket", "cake", "camera", "candle", "carrot", "cat", "chair", "cheese", "clock"),
    *("coat", "coin", "compass", "crown", "cup", "diamond", "dog", "doll", "drum", "egg", "fan", "feather", "flag"),
    *("flower", "flute", "fork", "glass", "guitar", "hammer", "hat", "helmet", "kettle", "key", "kite", "knife"),
    *("ladder", "lamp", "lantern", "lemon", "letter", "magazine", "map", "mask", "medal", "milk", "mirror", "mug"),
    *("needle", "newspaper", "orange", "paper", "parcel", "pen", "pencil", "phone", "photo", "piano", "pillow"),
    *("plate", "potato", "radio", "ring", "rope", "rose", "sandwich", "saw", "scarf", "shell", "shirt", "shoe"),
    *("shovel", "spoon", "stamp", "stone", "suitcase", "sword", "teapot", "tent", "ticket", "torch", "towel"),
    *("toy", "trumpet", "umbrella", "vase", "violin", "wallet", "watch", "whistle"),
)
VERBS = {
    "went": ("went", "walked", "ran", "moved", "travelled", "hurried", "drove", "came"),
    "took": ("took", "found", "got", "grabbed", "bought", "stole"),
    "gave": ("gave", "handed", "passed", "sold", "lent", "sent"),
    "dropped": ("dropped", "left", "discarded"),
}
"""Each verb of a pattern, and those that may stand there instead."""
FACTS = {
    "go": ("WHO went to PLACE",) * 6 + ("WHO went back to PLACE", "WHO is in PLACE", "WHO is at PLACE"),
    "take": ("WHO took THING",) * 3 + ("WHO picked up THING", "WHO picked THING up", "WHO has THING"),
    "give": ("WHO gave THING to WHOM",) * 2 + ("WHO gave WHOM THING",),
    "drop": ("WHO dropped THING",) * 4 + ("WHO put down THING", "WHO put THING down"),
}
"""Patterns of sentences, repeated by frequency."""
QUESTIONS = {
    "where is a person": ("Where is WHO",),
    "where is a thing": ("Where is THING",),
    "who has": ("Who has THING",),
    "what does a person have": ("What does WHO have",),
    "who gave": ("Who gave THING to WHOM", "Who gave WHOM THING"),
    "gave to whom": ("Who did WHO give THING to",),
    "gave what": ("What did WHO give to WHOM", "What did WHO give WHOM"),
    "where before": ("Where was WHO before PLACE",),
}
"""The same of questions, by their kind."""
NOT_IT = ("WHOM THING", "up THING", "down THING")
"""Where *it* doesn't stand for a thing: *gave Mary it*, *picked up it*."""
SIGNS = (".", "?")
SHE, HE = ("She", "her"), ("He", "him")
PRONOUNS = {**dict.fromkeys(WOMEN, SHE), **dict.fromkeys(MEN, HE)}
ARTICLES = ("the", "a", "an")
_FIXED = {word for of in (FACTS, QUESTIONS) for patterns in of.values() for line in patterns for word in line.split()}
WORDS = frozenset(
    (
        *(*WOMEN, *MEN, *PLACES, *THINGS, *SHE, *HE, *ARTICLES, *SIGNS, "it"),
        *(word for verbs in VERBS.values() for verb in verbs for word in verb.split()),
        *(word for word in _FIXED if not word.isupper()),
    )
)
MOST_NEW = 8
"""The most new words of a story."""
MOST_FACTS = 6
"""The most sentences of a story, without its question."""
TOLD_LENGTHS = (1, 2, 3, 3, 4, 4, 5, 5, 6, 6)
"""Numbers of sentences of training stories, repeated by frequency: short stories teach little."""
AT_FIRST = {300: (2, 3), 1000: (2, 3, 4)}
"""A curriculum: the same for the first batches, by the batch that ends it. A model that starts with six sentences
learns to guess before it learns to look up, and guesses for thousands of batches (Bengio et al. 2009, §3)."""
HOW_MANY = (1, 2, 3, 3, 3, 4, 4, 4)
"""Numbers of people in a story, repeated by frequency. Stories with one person teach that the later fact counts."""
LAST_QUESTIONS = 4
MOST_QUESTIONS = MOST_FACTS - 1 + LAST_QUESTIONS
"""The most questions at the end of a story, and in all."""
LONGEST_FACT, LONGEST_QUESTION = 7, 8
"""Tokens of *Mary gave the ball to John.* and of *Who did Mary give the ball to?*"""
INVENTED = (0, 0, 0.3, 1)
"""The chances of an invented name for each person, place and thing of a story, repeated by frequency."""
PROPER = 0.3
"""How often an invented name of a place or a thing has no article: *went to Ozuk*."""
HANDED_ON, DROPPED, AT_ONCE = 0.4, 0.25, 0.15
"""How often something is given or dropped; how often it is dropped then; how often it is a thing that the story hasn't
named yet."""
EASY = 0.1
"""The share of questions whose answer may be the only word of its kind."""
UNTELLING = 0.25
"""The share of stories that need no question with several answers in this story. Only such questions need the whole
story: where one person has something, a model answers *Who has the ball?* without a look at the ball."""
TELLING = 0.8
"""How often to ask such a question if there is one. Its answer can't be guessed by position: the last word of a kind is
no likelier than an earlier one."""
ROLLS = 600
"""Random numbers drawn for one story: more than the longest needs."""
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


class Dice:
    """Random choices from numbers drawn all at once: drawing them one by one would take longer than the story."""

    def __init__(self, random: np.random.Generator, rolls: int) -> None:
        self._rolls = iter(random.random(rolls).tolist())

    def below(self, chance: float) -> bool:
        """True with this probability."""
        return next(self._rolls) < chance

    def number(self, least: int, most: int) -> int:
        """A random integer, both ends included."""
        return least + int(next(self._rolls) * (most + 1 - least))

    def one(self, of: Sequence[Choice]) -> Choice:
        """A random item."""
        return of[int(next(self._rolls) * len(of))]

    def some(self, of: Sequence[Choice], count: int) -> list[Choice]:
        """Several distinct random items."""
        left = list(of)
        return [left.pop(int(next(self._rolls) * len(left))) for _ in range(count)]


class Answer(NamedTuple):
    """An answer, and what is asked for it."""

    kind: str
    """Of the question."""
    about: dict[str, str]
    """What takes the slots of the question's pattern."""
    word: str
    position: int
    """The index of the answering word in the story; full stops count as words."""


class Question(NamedTuple):
    """A question, its answer, and the index of the answering word in the story."""

    kind: str
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

    people: frozenset[str]
    """Whom it is about."""
    men: frozenset[str]
    """Those of them who are men; the others are women."""
    proper: frozenset[str]
    """The places and things without an article."""
    words: list[str] = field(default_factory=list)
    mentioned: tuple[str, ...] = ()
    """People named in the last sentence."""
    thing: str | None = None
    """The thing that the last sentence is about."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Of each person, place and thing that has been named."""
    visits: dict[str, list[int]] = field(default_factory=dict)
    """By person: the indices of the places where they were, the last one last."""
    holders: dict[str, str] = field(default_factory=dict)
    """Of each thing that somebody has."""
    dropped: dict[str, int | None] = field(default_factory=dict)
    """By thing that nobody has any more: the index of the place where it lies; None if the story doesn't say."""
    received: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By thing: the index of its last receiver, and of the thing's own name there."""
    gifts: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    """By giver, thing and receiver, the latest gift last: the indices of all three."""

    @property
    def text(self) -> str:
        """The story as it is written."""
        return written(self.words)

    @property
    def invented(self) -> list[str]:
        """The names that no vocabulary has, in the order in which they are told."""
        return [name for name in self.kinds if name not in WORDS]

    def place_of(self, person: str) -> str | None:
        """Where a person is; None if the story doesn't say."""
        return self.words[self.visits[person][-1]] if person in self.visits else None

    def go(self, person: str, place: str, dice: Dice) -> None:
        """*Mary went to the park.*"""
        visited = place in (self.words[at] for at in self.visits.get(person, ()))
        patterns = [line for line in FACTS["go"] if visited or "back" not in line]
        at = self._tell(dice, dice.one(patterns), WHO=person, PLACE=place)
        self.visits.setdefault(person, []).append(at["PLACE"])

    def take(self, person: str, thing: str, dice: Dice) -> None:
        """*Mary took the ball.*"""
        at = self._tell(dice, dice.one(FACTS["take"]), WHO=person, THING=thing)
        self.holders[thing], self.received[thing] = person, (at["WHO"], at["THING"])
        self.dropped.pop(thing, None)

    def give(self, person: str, thing: str, receiver: str, dice: Dice) -> None:
        """*Mary gave the ball to John.*"""
        at = self._tell(dice, dice.one(FACTS["give"]), WHO=person, THING=thing, WHOM=receiver)
        self.holders[thing], self.received[thing] = receiver, (at["WHOM"], at["THING"])
        self.gifts.pop((person, thing, receiver), None)
        self.gifts[person, thing, receiver] = at["WHO"], at["THING"], at["WHOM"]

    def drop(self, person: str, thing: str, dice: Dice) -> None:
        """*Mary dropped the ball.*"""
        self._tell(dice, dice.one(FACTS["drop"]), WHO=person, THING=thing)
        self.holders.pop(thing, None)
        self.dropped[thing] = self.visits[person][-1] if person in self.visits else None

    def fact(self, position: int) -> int:
        """The index of the sentence that the word at `position` is in."""
        return self.words[:position].count(".")

    def pronoun_means(self, person: str, others: Sequence[str] = ()) -> bool:
        """Whether *she* or *he* could now mean this person only. others: who can't be meant."""
        alike = {one for one in self.mentioned if one not in others and self._could_be(one, person)}
        return alike == {person}

    def answers(self) -> list[list[Answer]]:
        """All possible answers by their kind of question, without empty kinds."""
        found: dict[str, list[Answer]] = {kind: [] for kind in QUESTIONS}
        for answer in self._answers():
            found[answer.kind].append(answer)
        return [answers for answers in found.values() if answers]

    def has_choice(self, answers: list[Answer]) -> bool:
        """Whether several words of the story could be the answer to a kind of question."""
        kind = self.kinds[answers[0].word]
        return [*self.kinds.values()].count(kind) > 1

    def questions(self, answer: Answer) -> list[Question]:
        """Every question with this answer."""
        phrases = {slot: self._named(word) for slot, word in answer.about.items()}
        asked = [_filled(pattern, phrases)[0] for pattern in QUESTIONS[answer.kind]]
        return [Question(answer.kind, tuple(words), answer.word, answer.position) for words in asked]

    def _answers(self) -> Iterator[Answer]:
        held: dict[str, list[str]] = {}
        for thing, person in self.holders.items():
            held.setdefault(person, []).append(thing)
            yield Answer("who has", {"THING": thing}, person, self.received[thing][0])
            if person in self.visits:
                at = self.visits[person][-1]
                yield Answer("where is a thing", {"THING": thing}, self.words[at], at)
        for person, things in held.items():
            if len(things) == 1:
                yield Answer("what does a person have", {"WHO": person}, things[0], self.received[things[0]][1])
        for thing, at in self.dropped.items():
            if at is not None:
                yield Answer("where is a thing", {"THING": thing}, self.words[at], at)
        for person, visits in self.visits.items():
            yield Answer("where is a person", {"WHO": person}, self.words[visits[-1]], visits[-1])
            places = [self.words[at] for at in visits]
            for place, before in zip(places[1:], visits, strict=False):
                if places.count(place) == 1:
                    yield Answer("where before", {"WHO": person, "PLACE": place}, self.words[before], before)
        givers, receivers, things = {}, {}, {}
        for (giver, thing, receiver), (who, what, whom) in self.gifts.items():  # the later one replaces it
            givers[thing, receiver] = Answer("who gave", {"THING": thing, "WHOM": receiver}, giver, who)
            receivers[giver, thing] = Answer("gave to whom", {"WHO": giver, "THING": thing}, receiver, whom)
            things[giver, receiver] = Answer("gave what", {"WHO": giver, "WHOM": receiver}, thing, what)
        yield from (*givers.values(), *receivers.values(), *things.values())

    def _tell(self, dice: Dice, pattern: str, **slots: str) -> dict[str, int]:
        """Add a sentence; returns the index of each slot's word."""
        person, thing, receiver = slots["WHO"], slots.get("THING"), slots.get("WHOM")
        phrases = {slot: self._named(word) for slot, word in slots.items()}
        if dice.below(0.5) and self.pronoun_means(person):
            phrases["WHO"] = [self._pronouns(person)[0]]
        if receiver and dice.below(0.4) and self.pronoun_means(receiver, [person]):
            phrases["WHOM"] = [self._pronouns(receiver)[1]]
        if thing and thing == self.thing and not pattern.endswith(NOT_IT) and dice.below(0.5):
            phrases["THING"] = ["it"]
        elif thing and thing not in self.kinds and thing not in self.proper and dice.below(0.4):
            phrases["THING"] = ["an" if thing[0].lower() in VOWELS else "a", thing]
        words, at = _filled(pattern, phrases, dice)
        begin = len(self.words)
        self.words += [*words, "."]
        self.mentioned, self.thing = (person, *filter(None, [receiver])), thing
        kinds: dict[str, Kind] = {"WHO": "person", "WHOM": "person", "PLACE": "place", "THING": "thing"}
        self.kinds |= {word: kinds[slot] for slot, word in slots.items()}
        return {slot: begin + place for slot, place in at.items()}

    def _named(self, word: str) -> list[str]:
        """A person, place or thing as a text names it."""
        return [word] if word in self.people or word in self.proper else ["the", word]

    def _pronouns(self, person: str) -> tuple[str, str]:
        return HE if person in self.men else SHE

    def _could_be(self, one: str, person: str) -> bool:
        """Whether a reader could take the pronoun of a person for another's."""
        return PRONOUNS.get(one, self._pronouns(person)) == self._pronouns(person)


def _filled(pattern: str, phrases: dict[str, list[str]], dice: Dice | None = None) -> tuple[list[str], dict[str, int]]:
    """The words of a pattern, and the index of each slot's last word. dice: chooses between verbs."""
    words, at = [], {}
    for word in pattern.split():
        if word in phrases:
            words += phrases[word]
            at[word] = len(words) - 1
        else:
            words += dice.one(VERBS[word]).split() if dice and word in VERBS else [word]
    return words, at


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

    By default one question, at the end, each kind equally likely; with `asking_from`, also after sentences from that
    one on, and `LAST_QUESTIONS` at the end. Each is drawn by itself, and may come twice: were no sentence asked
    about again, a model would learn to rule out what has been answered instead of reading the story.
    """
    while True:
        dice = Dice(random, ROLLS)
        questions: list[StoryQuestion] = []
        cast = _cast(dice)
        story = Story(frozenset(cast.people), cast.men, cast.proper)
        for number in range(1, facts + 1):
            _go_on(story, dice, cast)
            is_asked = asking_from and asking_from <= number < facts
            if is_asked and _ask(story, dice, questions, only_with_choice=True):
                story.mentioned, story.thing = (), None  # a pronoun could refer to somebody in the question
        is_wanted = _is_telling if facts > 1 and not dice.below(UNTELLING) else bool
        if any(is_wanted(kind) for kind in story.answers() if facts == 1 or story.has_choice(kind)):
            break
    for _ in range(LAST_QUESTIONS if asking_from else 1):
        _ask(story, dice, questions)
    return story, questions


def written(words: Sequence[str]) -> str:
    """Join tokens into a text, without a space before a full stop or a question mark."""
    return " ".join(words).replace(" .", ".").replace(" ?", "?")


class Cast(NamedTuple):
    """Whom and what a story can be about."""

    people: list[str]
    places: list[str]
    things: list[str]
    men: frozenset[str]
    proper: frozenset[str]


def _cast(dice: Dice) -> Cast:
    people = dice.some((*WOMEN, *MEN), dice.one(HOW_MANY))
    places, things = dice.some(PLACES, dice.number(3, 5)), dice.some(THINGS, dice.number(2, 4))
    men, proper, left = set(MEN), set(), MOST_NEW
    chance = dice.one(INVENTED)
    for of in (people, places, things):
        for number in range(len(of)):
            if left and dice.below(chance):
                name = invented_name(dice)
                left -= 1
                if of is people:
                    name = name.capitalize()
                    men |= {name} if dice.below(0.5) else set()
                elif dice.below(PROPER):
                    proper.add(name)
                of[number] = name
    return Cast(people, places, things, frozenset(men), frozenset(proper))


def invented_name(dice: Dice) -> str:
    """A name that no vocabulary has."""
    syllables = [dice.one(CONSONANTS) + dice.one(VOWELS) for _ in range(3)]
    return "".join(syllables) + dice.one(CONSONANTS)


def _ask(story: Story, dice: Dice, questions: list[StoryQuestion], *, only_with_choice: bool = False) -> bool:
    """Ask what the story can answer; False if that is nothing."""
    kinds = story.answers()
    with_choice = [kind for kind in kinds if story.has_choice(kind)]
    if only_with_choice or not dice.below(EASY):
        kinds = with_choice if with_choice or only_with_choice else kinds
    if dice.below(TELLING):
        kinds = [kind for kind in kinds if _is_telling(kind)] or kinds
    if kinds:
        question = dice.one(story.questions(dice.one(dice.one(kinds))))
        questions.append(StoryQuestion(len(story.words), question))
    return bool(kinds)


def _is_telling(kind: list[Answer]) -> bool:
    """Whether there are several answers."""
    return len({answer.word for answer in kind}) > 1


def _go_on(story: Story, dice: Dice, cast: Cast) -> None:
    """Tell one more fact: somebody gives, drops or takes something, or goes somewhere."""
    unseen = [thing for thing in cast.things if thing not in story.kinds]
    things = unseen if unseen and dice.below(AT_ONCE) else [*story.holders]
    if things and dice.below(HANDED_ON):
        thing = dice.one(things)
        person = story.holders.get(thing) or dice.one(cast.people)
        if len(cast.people) > 1 and not dice.below(DROPPED):
            story.give(person, thing, dice.one([other for other in cast.people if other != person]), dice)
        else:
            story.drop(person, thing, dice)
        return
    person = dice.one(cast.people)
    free = [thing for thing in cast.things if thing not in story.holders and _is_near(story, person, thing)]
    if free and dice.below(0.5):
        story.take(person, dice.one(free), dice)
    else:
        elsewhere = [place for place in cast.places if place != story.place_of(person)]
        story.go(person, dice.one(elsewhere), dice)


def _is_near(story: Story, person: str, thing: str) -> bool:
    """Whether a person can take a thing: unless it was dropped elsewhere."""
    at, place = story.dropped.get(thing), story.place_of(person)
    return at is None or place is None or story.words[at] == place
