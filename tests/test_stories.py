"""Stories: what is told can happen, every answer follows from the story, and the word that answers is where it says."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer import TASKS
from transformer.data.stories import LONGEST, MEN, MOST_FACTS, WOMEN, Story, tell, written

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
    assert tokens[example.place] in (answer, pronoun)
    assert tokens[: example.place].count(".") == fact


@given(seeds, lengths)
def test_every_question_that_could_be_asked_is_one_the_story_answers(seed, facts):
    story, asked = tell(np.random.default_rng(seed), facts)
    reader = read(story.text)
    kinds = story.questions()
    assert all(kinds) and any(asked in kind for kind in kinds)
    for kind in kinds:
        for question in kind:
            answer, fact = reader.answer(written([*question.words, "?"]))
            assert (question.answer, story.words[: question.place].count(".")) == (answer, fact)


@given(seeds, lengths)
def test_it_is_as_long_as_it_should_be(seed, facts):
    story, question = tell(np.random.default_rng(seed), facts)
    assert story.words.count(".") == facts
    assert len(story.words) + len(question.words) + 1 <= LONGEST


def test_there_is_something_of_everything():
    """Several people, things and places, gifts passed on, pronouns, and facts that a later one overtakes."""
    random = np.random.default_rng(0)
    examples = [STORIES.draw(random) for _ in range(3000)]
    starts = ("Where is the ", "Where is ", "Who has", "What does", "Who gave", "Who did", "What did")
    asked = [re.search(r"[^.?]*\?", example.source)[0].strip() for example in examples]
    for start in starts:
        assert sum(question.startswith(start) for question in asked) > 100, start
    text = " ".join(example.source for example in examples)
    assert set(re.findall(r"\w+|[.?]", text)) == {
        label for label in STORIES.tokenizer.labels(range(STORIES.tokenizer.vocab_size)) if label[0] != "["
    }
    overtaken = sum(
        len({fact["place"] for fact in read(example.source).facts if fact["who"] == question[9:-1]} - {None}) > 1
        for example, question in zip(examples, asked, strict=True)
    )
    assert overtaken > 200
    gifts = [sum(bool(fact["given"]) for fact in read(example.source).facts) for example in examples]
    assert sum(count > 1 for count in gifts) > 300


class TestPronouns:
    def test_she_is_the_only_woman_of_the_sentence_before(self):
        story = Story()
        story.take("Mary", "took", "ball")
        assert story.pronoun_means("Mary") and not story.pronoun_means("Anna")
        story.give("Mary", "gave", "ball", "John")
        assert story.pronoun_means("Mary") and story.pronoun_means("John")
        story.go("John", "ran", "park", pronoun=True)
        assert not story.pronoun_means("Mary")
        story.give("John", "gave", "ball", "Tom")
        assert not story.pronoun_means("John") and not story.pronoun_means("Tom")
        assert story.text == "Mary took the ball. Mary gave the ball to John. He ran to the park. John gave the ball to Tom."


def test_what_is_learnt_from_at_once_has_equally_many_sentences_and_nothing_held_out():
    lengths = set()
    for seed in range(40):
        stories = [example.source.rpartition(".")[0] for example in STORIES.draw_batch(np.random.default_rng(seed), 8)]
        (facts,) = {story.count(".") + 1 for story in stories}
        lengths.add(facts)
        encode, labels = STORIES.tokenizer.encode, STORIES.tokenizer.labels
        assert not any(STORIES.is_held_out(labels(encode(f"{story}."))) for story in stories)
    assert lengths == {*range(1, MOST_FACTS + 1)}


class TestHeldOut:
    @given(seeds)
    def test_a_story_is_held_out_whatever_is_asked_about_it(self, seed):
        example = STORIES.draw(np.random.default_rng(seed), held_out=True)
        told = STORIES.tokenizer.labels(STORIES.tokenizer.encode(example.source.rpartition(".")[0] + "."))
        assert STORIES.is_held_out(told)

    def test_a_tenth_is(self):
        random = np.random.default_rng(0)
        share = np.mean([STORIES.is_held_out(tell(random, 4)[0].words) for _ in range(3000)])
        assert share == pytest.approx(0.1, abs=0.02)
