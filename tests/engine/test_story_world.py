"""Tests the generated stories: consistent, with answers that follow from them."""

import re
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.story_world import (
    LONGEST_FACT,
    LONGEST_QUESTION,
    MEN,
    MOST_FACTS,
    MOST_NEW,
    MOST_QUESTIONS,
    QUESTIONS,
    WOMEN,
    WORDS,
    Question,
    tell,
    written,
)

seeds, lengths = st.integers(0, 2**32), st.integers(1, MOST_FACTS)
THING = r"(?:(?:the|an?) )?(?P<{}>\S+?)"
FACTS = [
    rf"(?P<who>\S+) {fact}\."
    for fact in (
        r"(?:(?:went|walked|ran|moved|travelled|hurried|drove|came) (?:back )?to|is in|is at) (?:the )?(?P<place>\S+?)",
        rf"(?:took|found|got|grabbed|bought|stole|picked up|has) {THING.format('taken')}",
        rf"picked {THING.format('taken')} up",
        rf"(?:gave|handed|passed|sold|lent|sent) {THING.format('given')} to (?P<to>\S+?)",
        rf"(?:gave|handed|passed|sold|lent|sent) (?P<to>\S+) {THING.format('given')}",
        rf"(?:dropped|left|discarded|put down) {THING.format('dropped')}",
        rf"put {THING.format('dropped')} down",
    )
]


@dataclass
class Reader:
    """An oracle that reads a story sentence by sentence, and shares nothing with what tells it."""

    facts: list[dict[str, str | None]] = field(default_factory=list)

    def read(self, sentence: str) -> None:
        """Add a fact, unless it can't happen: then this fails."""
        found = next((match for pattern in FACTS if (match := re.fullmatch(pattern, sentence))), None)
        assert found, sentence
        fact = dict.fromkeys(("who", "place", "taken", "given", "to", "dropped")) | found.groupdict()
        last = self.facts[-1] if self.facts else {}
        if fact["who"] in ("She", "He"):
            fact["who"] = self.meant(fact["who"] == "She", {last["who"], last["to"]})
        if fact["to"] in ("her", "him"):
            fact["to"] = self.meant(fact["to"] == "her", {last["who"], last["to"]} - {fact["who"]})
        for name in ("taken", "given", "dropped"):
            if fact[name] == "it":
                fact[name] = last["taken"] or last["given"] or last["dropped"]
        if thing := fact["given"] or fact["dropped"]:
            assert (self.holder(thing) or (fact["who"],))[0] == fact["who"] != fact["to"], sentence
            assert self.holder(thing) or not self.last("dropped", dropped=thing), sentence
        if thing := fact["taken"]:
            lies = self.place_of(thing)
            assert self.holder(thing) is None, sentence
            assert not lies or (self.last("place", who=fact["who"]) or lies)[0] == lies[0], sentence
        if fact["place"]:
            assert (self.last("place", who=fact["who"]) or ("",))[0] != fact["place"], sentence
            if " back to " in sentence:
                assert any((each["who"], each["place"]) == (fact["who"], fact["place"]) for each in self.facts)
        self.facts.append(fact)

    def meant(self, is_woman: bool, people: set[str | None]) -> str:
        """Who a pronoun means: somebody whose name says neither may be meant, too."""
        (one,) = {person for person in people if person and person not in (MEN if is_woman else WOMEN)}
        return one

    def last(self, answer: str, **known: str) -> tuple[str, int] | None:
        """What the last fact with these parts says of another, and which fact that is."""
        for number, fact in reversed([*enumerate(self.facts)]):
            if fact[answer] and all(fact[part] == value for part, value in known.items()):
                return fact[answer], number
        return None

    def holder(self, thing: str) -> tuple[str, int] | None:
        """Who has a thing, and the fact that says so."""
        for number, fact in reversed([*enumerate(self.facts)]):
            if fact["dropped"] == thing:
                return None
            if thing in (fact["taken"], fact["given"]):
                return fact["to"] or fact["who"], number
        return None

    def held(self, person: str) -> tuple[str, int]:
        """The one thing that a person has: nobody is asked for one of several."""
        things = {fact[part] for fact in self.facts for part in ("taken", "given") if fact[part]}
        ((thing, number),) = [
            (thing, held[1]) for thing in things if (held := self.holder(thing)) and held[0] == person
        ]
        return thing, number

    def place_of(self, thing: str) -> tuple[str, int] | None:
        """Where a thing is: with who has it, or where it was dropped."""
        if held := self.holder(thing):
            return self.last("place", who=held[0])
        if dropped := self.last("who", dropped=thing):
            before = Reader(self.facts[: dropped[1]])
            return before.last("place", who=dropped[0])
        return None

    def before(self, person: str, place: str) -> tuple[str, int]:
        """Where a person was before they were somewhere, once."""
        visits = [
            (fact["place"], number) for number, fact in enumerate(self.facts) if fact["place"] and fact["who"] == person
        ]
        (at,) = [at for at, visit in enumerate(visits) if visit[0] == place]
        return visits[at - 1]

    def answer(self, question: str) -> tuple[str, int]:
        """The answer to a question, and the fact that it is in."""
        one, other = r"(?:the )?(\S+)", r"(?:the )?(\S+?)"
        people = {fact[part] for fact in self.facts for part in ("who", "to")}
        for form, answer in {
            rf"Where was {one} before {other}\?": self.before,
            rf"Where is {other}\?": lambda it: self.last("place", who=it) if it in people else self.place_of(it),
            rf"Who has {other}\?": self.holder,
            rf"What does {one} have\?": self.held,
            rf"Who gave {one} to {other}\?": lambda thing, to: self.last("who", given=thing, to=to),
            rf"Who gave (\S+) {other}\?": lambda to, thing: self.last("who", given=thing, to=to),
            rf"Who did {one} give {one} to\?": lambda who, thing: self.last("to", who=who, given=thing),
            rf"What did {one} give(?: to)? {other}\?": lambda who, to: self.last("given", who=who, to=to),
        }.items():
            if found := re.fullmatch(form, question):
                return answer(*found.groups())
        raise AssertionError(question)


def read(text: str) -> Reader:
    reader = Reader()
    for sentence in re.findall(r"[^.?]+\.", text):
        reader.read(sentence.strip())
    return reader


@given(seeds, lengths, st.none() | lengths)
def test_whatever_is_asked_in_the_course_of_a_story_or_could_be_is_answered_by_what_has_been_told(seed, facts, first):
    first = first and min(first, facts)
    story, asked = tell(np.random.default_rng(seed), facts, first)

    def follows(words_before: int, question: Question) -> None:
        answer, fact = read(written(story.words[:words_before])).answer(question.text)
        assert (question.answer, story.words[: question.position].count(".")) == (answer, fact)
        assert len(question.words) + 1 <= LONGEST_QUESTION

    assert story.words.count(".") == facts
    assert all(len(f"{sentence} .".split()) <= LONGEST_FACT for sentence in story.text.split(".")[:-1])
    for words_before, question in asked:
        follows(words_before, question)
    kinds = story.answers()
    possible = {question for kind in kinds for answer in kind for question in story.questions(answer)}
    assert all(kinds)
    for question in possible:
        follows(len(story.words), question)
    places = [each.words_before for each in asked]
    if first is None:
        assert places == [len(story.words)] and asked[0].question in possible
    assert 1 <= len(asked) <= MOST_QUESTIONS
    assert places == sorted(places) and places[-1] <= len(story.words)
    assert (first or facts) <= story.words[: places[0]].count(".") <= facts


@given(seeds, lengths)
def test_words_are_those_of_the_vocabulary_and_names_that_it_has_not(seed, facts):
    story, ((_, question),) = tell(np.random.default_rng(seed), facts)
    invented = {*story.words, *question.words} - WORDS
    assert len(invented) <= MOST_NEW and invented <= {*story.kinds}
    assert question.answer in story.kinds and question.kind in QUESTIONS


def test_all_kinds_of_questions_are_asked_and_all_words_are_used():
    random = np.random.default_rng(0)
    told = [tell(random, MOST_FACTS, asking_from=3) for _ in range(2500)]
    asked = [each.question for _, questions in told for each in questions]
    assert {question.kind for question in asked} == {*QUESTIONS}
    assert WORDS - {word for story, _ in told for word in story.words} <= {
        word for each in asked for word in each.words
    } | {"?"}
    assert np.mean([bool({*story.words} - WORDS) for story, _ in told]) > 0.3
