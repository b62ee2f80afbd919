"""Tests the generated stories: consistent, with answers that follow from them."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer import TASKS
from transformer.data.stories import (
    LONGEST_FACT,
    LONGEST_QUESTION,
    MEN,
    MOST_FACTS,
    MOST_QUESTIONS,
    WOMEN,
    Story,
    tell,
    written,
)
from transformer.data.tasks import Example

STORIES = TASKS["stories"]
seeds, lengths = st.integers(0, 2**32), st.integers(1, MOST_FACTS)
FACT = re.compile(
    r"(?P<who>\w+) (?:(?:went|walked|ran) to the (?P<place>\w+)|(?:took|found) the (?P<taken>\w+)"
    r"|(?:gave|handed) the (?P<given>\w+) to (?P<to>\w+))\."
)


@dataclass
class Reader:
    """An oracle that reads a story sentence by sentence, and shares nothing with what tells it."""

    facts: list[dict[str, str | None]] = field(default_factory=list)

    def read(self, sentence: str) -> None:
        found = FACT.fullmatch(sentence)
        assert found, sentence
        fact = found.groupdict()
        if fact["who"] in ("She", "He"):
            people = WOMEN if fact["who"] == "She" else MEN
            (fact["who"],) = {self.facts[-1]["who"], self.facts[-1]["to"]} & set(people)
        thing = fact["given"]
        if thing:
            assert self.holder(thing)[0] == fact["who"] != fact["to"], sentence
        if fact["taken"]:
            assert self.holder(fact["taken"]) is None, sentence
        if fact["place"]:
            assert (self.place(fact["who"]) or ("",))[0] != fact["place"], sentence
        self.facts.append(fact)

    def last(self, answer: str, **known: str) -> tuple[str, int] | None:
        """What the last fact with these parts says of another, and which fact that is."""
        for number, fact in reversed([*enumerate(self.facts)]):
            if fact[answer] and all(fact[part] == value for part, value in known.items()):
                return fact[answer], number
        return None

    def place(self, person: str) -> tuple[str, int] | None:
        return self.last("place", who=person)

    def holder(self, thing: str) -> tuple[str, int] | None:
        return self.last("to", given=thing) or self.last("who", taken=thing)

    def held(self, person: str) -> list[tuple[str, int]]:
        things = {fact["taken"] for fact in self.facts if fact["taken"]}
        holders = {thing: self.holder(thing) for thing in things}
        return [(thing, number) for thing, (holder, number) in holders.items() if holder == person]

    def answer(self, question: str) -> tuple[str, int]:
        """The answer to a question, and the fact that it is in."""
        if found := re.fullmatch(r"Where is the (\w+)\?", question):
            return self.place(self.holder(found[1])[0])
        if found := re.fullmatch(r"Where is (\w+)\?", question):
            return self.place(found[1])
        if found := re.fullmatch(r"Who has the (\w+)\?", question):
            return self.holder(found[1])
        if found := re.fullmatch(r"What does (\w+) have\?", question):
            (thing,) = self.held(found[1])  # nobody is asked for one of several
            return thing
        if found := re.fullmatch(r"Who gave the (\w+) to (\w+)\?", question):
            return self.last("who", given=found[1], to=found[2])
        if found := re.fullmatch(r"Who did (\w+) give the (\w+) to\?", question):
            return self.last("to", who=found[1], given=found[2])
        found = re.fullmatch(r"What did (\w+) give to (\w+)\?", question)
        return self.last("given", who=found[1], to=found[2])


def read(text: str) -> Reader:
    reader = Reader()
    for sentence in re.findall(r"[^.?]+\.", text):
        reader.read(sentence.strip())
    return reader


@given(seeds, st.booleans())
def test_the_answer_follows_from_the_story_and_its_word_is_where_it_is_said_to_be(seed, held_out):
    """All that is told can happen too: the oracle would not read it otherwise."""
    example = STORIES.draw(np.random.default_rng(seed), held_out=held_out)
    story, question = re.fullmatch(r"(.*\.) (.*\?)", example.source).groups()
    answer, fact = read(story).answer(question)
    assert example.target == answer
    tokens = STORIES.tokenizer.labels(STORIES.tokenizer.encode(example.source))
    pronoun = "She" if answer in WOMEN else "He" if answer in MEN else answer
    assert tokens[example.position] in (answer, pronoun)
    assert tokens[: example.position].count(".") == fact


@given(seeds, lengths, lengths)
def test_whatever_is_asked_in_the_course_of_a_story_is_answered_by_what_has_been_told(seed, facts, first):
    story, asked = tell(np.random.default_rng(seed), facts, min(first, facts))
    assert story.words.count(".") == facts
    assert 1 <= len(asked) <= MOST_QUESTIONS
    places = [each.words_before for each in asked]
    assert places == sorted(places) and places[-1] <= len(story.words)
    assert min(first, facts) <= story.words[: places[0]].count(".") <= facts
    assert len({story.fact(question) for _, question in asked}) == len(asked)  # none gives another away
    for told, question in asked:
        so_far = written(story.words[:told])
        answer, fact = read(so_far).answer(question.text)
        assert (question.answer, story.words[: question.position].count(".")) == (answer, fact)
        assert len(question.words) + 1 <= LONGEST_QUESTION
    assert all(len(f"{sentence} .".split()) <= LONGEST_FACT for sentence in story.text.split(".")[:-1])


@given(seeds, lengths)
def test_every_question_that_could_be_asked_is_one_that_the_story_answers(seed, facts):
    story, ((told, last),) = tell(np.random.default_rng(seed), facts)
    reader, kinds = read(story.text), story.questions()
    assert told == len(story.words) and all(kinds)
    assert {last, *(each for kind in story.questions(with_choice=True) for each in kind)} <= {
        question for kind in kinds for question in kind
    }
    for kind in kinds:
        for question in kind:
            answer, fact = reader.answer(question.text)
            assert (question.answer, story.words[: question.position].count(".")) == (answer, fact)


def test_there_is_something_of_everything():
    """Several people, things and places, gifts passed on, pronouns, and facts that a later one overtakes."""
    random = np.random.default_rng(0)
    examples = [STORIES.draw(random) for _ in range(1000)]
    starts = ("Where is the ", "Where is ", "Who has", "What does", "Who gave", "Who did", "What did")
    asked = [re.search(r"[^.?]*\?", example.source)[0].strip() for example in examples]
    for start in starts:
        assert sum(question.startswith(start) for question in asked) > 10, start
    text = " ".join(example.source for example in examples)
    assert set(re.findall(r"\w+|[.?]", text)) == {
        label for label in STORIES.tokenizer.labels(range(STORIES.tokenizer.vocab_size)) if label[0] != "["
    }
    overtaken = sum(
        len({fact["place"] for fact in read(example.source).facts if fact["who"] == question[9:-1]} - {None}) > 1
        for example, question in zip(examples, asked, strict=True)
    )
    assert overtaken > 60
    gifts = [sum(bool(fact["given"]) for fact in read(example.source).facts) for example in examples]
    assert sum(count > 1 for count in gifts) > 60


def test_the_last_place_of_a_story_is_no_answer_to_rely_on():
    """Where two people are said to be somewhere, the one who is told of last isn't asked for more often."""
    told_last = []
    for seed in range(120):
        for example in STORIES.draw_batch(np.random.default_rng(seed), 4, 1000):
            for story, part in zip(stories_of(example), (example, *example.further), strict=True):
                places = {fact["who"]: fact["place"] for fact in read(story).facts if fact["place"]}
                if part.source.rpartition(".")[2].strip().startswith("Where is") and len({*places.values()}) > 1:
                    told_last.append(part.target == [fact["place"] for fact in read(story).facts if fact["place"]][-1])
    assert len(told_last) > 200
    assert 0.2 < np.mean(told_last) < 0.7


def test_she_is_the_only_woman_of_the_sentence_before():
    story = Story()
    story.take("Mary", "took", "ball")
    assert story.pronoun_means("Mary") and not story.pronoun_means("Anna")
    story.give("Mary", "gave", "ball", "John")
    assert story.pronoun_means("Mary") and story.pronoun_means("John")
    story.go("John", "ran", "park", pronoun=True)
    assert not story.pronoun_means("Mary")
    story.give("John", "gave", "ball", "Tom")
    assert not story.pronoun_means("John") and not story.pronoun_means("Tom")
    expected = "Mary took the ball. Mary gave the ball to John. He ran to the park. John gave the ball to Tom."
    assert story.text == expected


def stories_of(example: Example) -> list[str]:
    """Each story that an example asks about: all that has been told when a question comes, questions left out."""
    told, found = "", []
    for part in (example, *example.further):
        told = f"{told} {part.source.rpartition('.')[0]}.".strip() if "." in part.source else told
        found.append(told)
    return found


def words_of(story: str) -> list[str]:
    return STORIES.tokenizer.labels(STORIES.tokenizer.encode(story))


def test_what_is_learnt_from_at_once_answers_all_its_questions_and_asks_nothing_held_out():
    lengths, questions = set(), set()
    for seed in range(30):
        batch = STORIES.draw_batch(np.random.default_rng(seed), 8, 1000)
        lengths.add(max(stories_of(example)[-1].count(".") for example in batch))  # some end with a question before
        for example in batch:
            parts = (example, *example.further)
            questions.add(len(parts))
            for story, part in zip(stories_of(example), parts, strict=True):
                assert not STORIES.is_held_out(words_of(story))
                assert read(story).answer(part.source.rpartition(".")[2].strip())[0] == part.target
            assert example.predicts_source == (example is batch[0]) == all(part.predicts_source for part in parts)
    assert (lengths, questions) == ({*range(1, MOST_FACTS + 1)}, {*range(1, MOST_QUESTIONS + 1)})


def test_a_story_is_held_out_whatever_is_asked_about_it_and_a_tenth_is():
    for seed in range(50):
        example = STORIES.draw(np.random.default_rng(seed), held_out=True)
        assert STORIES.is_held_out(words_of(*stories_of(example)))
    random = np.random.default_rng(0)
    share = np.mean([STORIES.is_held_out(tell(random, 4)[0].words) for _ in range(3000)])
    assert share == pytest.approx(0.1, abs=0.02)
