"""Tests the tasks: correct answers, a separate held-out set, sentences for unreadable prompts."""

import itertools
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from transformer import TASKS
from transformer.data.grammars import NEW, Grammar
from transformer.data.story_world import WORDS
from transformer.data.tasks import Example, Task, number_from_english

VOWEL, NUMBERS, SORT, INDUCTION, STORIES, MASKED_STORIES = TASKS.values()
VOWEL_CASES = {
    "".join(three): next((vowel for vowel in "aeiou" if three[2] != "#" and vowel > three[2]), "#")
    for three in itertools.combinations("-abcdefghijklmnopqrstuvwxyz#", 3)
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def drawn(task: Task, count: int = 300, *, held_out: bool = False, seed: int = 0) -> list[Example]:
    random = np.random.default_rng(seed)
    return [task.draw(random, held_out=held_out) for _ in range(count)]


def contents(task: Task, examples: list[Example]) -> set[str]:
    """What decides whether an example is held out, in whatever form it comes."""
    of_content = {
        "number-words": lambda example: str(number_from_english(example.source)),
        "sort-letters": lambda example: example.target,
        "induction": lambda example: example.source + example.target,
        "stories": lambda example: example.source.rpartition(".")[0],
        "masked-stories": lambda example: example.target.rpartition(".")[0],
    }.get(task.name, lambda example: example.source)
    return {of_content(example) for example in examples}


@every_task
def test_what_is_drawn_fits_is_decided_by_a_seed_and_never_trained_on_if_it_is_held_out(task):
    train, held_out, sample = drawn(task), drawn(task, held_out=True), task.sample(60)
    for part in (False, True):
        first, again, other = (drawn(task, 20, held_out=part, seed=seed) for seed in (1, 1, 2))
        assert first == again != other
    assert task.sample(60) == sample != task.sample(60, seed=1) and len(set(sample)) == 60
    trained = contents(task, train)
    assert not trained & contents(task, held_out) and not trained & contents(task, sample)
    assert min(len(trained), len(contents(task, held_out))) > 150
    encode = task.tokenizer.encode
    for example in train + held_out + sample:
        assert task.problem(example.source) is None, example
        read, written = len(encode(example.source)), len(encode(example.target))
        if task.architecture == "encoder-decoder":
            assert read <= task.longest and written + 1 <= task.longest  # [start] before it, or [end] after it
        elif task.architecture == "encoder-only":
            assert read == written <= task.longest
        else:
            assert read + written + task.ends <= task.longest
        assert task.tokenizer.decode(encode(example.target)) == example.target
    names = ("[pad]", "[start]", "[end]", *["[mask]"] * (task.architecture == "encoder-only"))
    ids = [task.tokenizer.special_id(token) for token in names]
    assert ids == list(range(task.tokenizer.vocab_size - len(names), task.tokenizer.vocab_size))


class TestAnswers:
    """By oracles of a few lines, which share nothing with the tasks."""

    def test_the_next_vowel(self):
        train, held_out = VOWEL.parts
        assert {example.source: example.target for example in (*train, *held_out)} == VOWEL_CASES
        assert (len(train), len(held_out), len(VOWEL_CASES)) == (2293, 983, 3276)
        assert set(drawn(VOWEL, 20_000)) == set(train)
        assert set(drawn(VOWEL, 10_000, held_out=True)) == set(held_out) == set(VOWEL.sample(2000))  # all there are
        assert [VOWEL_CASES[source] for source in ("-ab", "abc", "acz", "stu", "xy#")] == ["e", "e", "#", "#", "#"]

    def test_number_words_of_which_a_tenth_is_held_out(self):
        train, held_out, sample = drawn(NUMBERS), drawn(NUMBERS, held_out=True), NUMBERS.sample(400)
        for example in train + held_out + sample:
            number = number_from_english(example.source)
            assert example.source == num2words(number, lang="en").replace(",", "")
            assert example.target == num2words(number, lang="es")
        assert all(NUMBERS.is_held_out(number_from_english(example.source)) for example in held_out + sample)
        assert sum(map(NUMBERS.is_held_out, range(10_000))) == pytest.approx(1000, abs=150)
        # Most numbers below a million have six digits, which draws for training make up for.
        assert sum(number_from_english(example.source) < 100_000 for example in sample) == pytest.approx(40, abs=25)
        assert sum(number_from_english(example.source) < 100_000 for example in train) > 75

    def test_every_number_fits(self):
        """All whole thousands and all that can follow them: a number is one of each, an `and` between them at most."""
        encode = NUMBERS.tokenizer.encode
        for language in ("en", "es"):
            lengths = [len(encode(num2words(number, lang=language).replace(",", ""))) for number in range(1000)]
            thousands = [
                len(encode(num2words(1000 * number, lang=language).replace(",", ""))) for number in range(1, 1000)
            ]
            assert max(thousands) + max(lengths) + 1 <= NUMBERS.longest  # `and`; `[end]`

    def test_sorted_letters(self):
        for example in drawn(SORT) + drawn(SORT, held_out=True):
            letters = example.source.removesuffix("=")
            assert example.source == letters + "=" and list(example.target) == sorted(letters)
            assert 1 <= len(letters) <= 10 and set(letters) <= set(string.ascii_lowercase)

    def test_repeated_characters(self):
        periods = set()
        for example in drawn(INDUCTION) + drawn(INDUCTION, held_out=True):
            text = example.source + example.target
            assert (len(example.source), len(text)) == (1, 64)
            periods.add(next(shift for shift in range(1, 64) if text[shift:] == text[:-shift]))
        assert periods == set(range(6, 33))
        example = INDUCTION.repeated(np.random.default_rng(0), 21)
        assert (example.source + example.target)[21:] == (example.source + example.target)[:-21]

    def test_masks_are_where_answers_are_and_the_words_that_give_them(self):
        """A masked word of a held-out story is told by the rest, in either direction."""
        mask, encode = MASKED_STORIES.tokenizer.special_id("[mask]"), MASKED_STORIES.tokenizer.encode
        for question in drawn(MASKED_STORIES, 200, held_out=True):
            read, right = encode(question.source), encode(question.target)
            at = question.position
            assert right[at] in right[:at] + right[at + 1 :]
            assert read == [*right[:at], mask, *right[at + 1 :]]
        for example in MASKED_STORIES.draw_batch(np.random.default_rng(0), 40, 1000):
            read, right = encode(example.source), encode(example.target)
            assert mask in read and all(a in (b, mask) for a, b in zip(read, right, strict=True))


@pytest.mark.parametrize(
    ("task", "seed", "first", "last"),
    [
        *((VOWEL, 0, "kqv", "gku"), (VOWEL, 1, "fmt", "hjq"), (SORT, 0, "spni=", "xksyr=")),
        (SORT, 1, "iludhdlzd=", "fz="),
        (NUMBERS, 0, "seven hundred and thirteen thousand", "four hundred and seventy-eight thousand"),
        (NUMBERS, 1, "four hundred and thirty-three thousand", "six hundred and eighteen thousand six hundred"),
        (STORIES, 0, "Max took the ball. John walked to the cellar.", "Anna walked to the garden. Ben ran"),
        *((INDUCTION, 0, "J5D9cwnA'jlC6a41AcGW4kUM5X06" * 2, ""), (INDUCTION, 1, "0XPx.?VyIMfgHMosj." * 2, "")),
    ],
)
def test_samples_are_those_that_the_shipped_cards_were_measured_on(task, seed, first, last):
    """What a card says can be compared only as long as a seed stands for the same examples in the same order."""
    examples = task.sample(200, seed)
    assert task.sample(40, seed) == examples[:40]  # a smaller sample is the beginning of a larger one
    assert (examples[0].source + examples[0].target).startswith(first) and examples[-1].source.startswith(last)


def without_and(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").replace("-", " ").split() if word != "and")


@given(st.integers(0, 999_999), st.sampled_from([str.lower, str.upper, str.title]), st.booleans(), st.booleans())
def test_number_from_english_is_the_inverse_of_english(number, case, with_commas, with_hyphens):
    text = num2words(number, lang="en")
    text = text if with_commas else text.replace(",", "")
    text = text if with_hyphens else text.replace("-", " ")
    assert number_from_english(case(f" {text}\n")) == number
    assert number_from_english(" ".join(without_and(text))) == number


@pytest.mark.parametrize(
    ("task", "text", "words"),
    [
        *((VOWEL, text, "such as abc or mno") for text in ("", "a c", "ABC", "aéz", "abc ", "123")),
        *((SORT, text, "such as hello= ") for text in ("", "hello", "abcdefghijk=", "a=b=")),
        *((NUMBERS, text, "from zero to 999,999 in English words") for text in ("", " ", "and", "five two")),
        *((NUMBERS, "205", "such as: two hundred and five."), (NUMBERS, "0", "such as: zero.")),
        (NUMBERS, "1,234", "such as: one thousand two hundred and thirty-four."),
        (NUMBERS, "999 999", "such as: nine hundred and ninety-nine thousand nine hundred and ninety-nine."),
        (NUMBERS, "two hundred five", "written like this: two hundred and five."),
        *((NUMBERS, "1" * 7, "such as: two hundred and five."), (NUMBERS, "zero and", "written like this: zero.")),
    ],
)
def test_what_it_can_not_read_is_said_with_what_it_can(task, text, words):
    problem = task.problem(text)
    assert words in problem and problem.startswith("This model reads ") and problem.endswith(".")


@given(st.sampled_from(list(TASKS.values())), st.text(st.characters(exclude_categories=()), max_size=25))
def test_any_text_has_a_problem_or_none(task, text):
    problem = task.problem(text)
    assert problem is None or problem.endswith(".")


@given(st.text(st.sampled_from("-abcuz#="), max_size=5), st.text(st.sampled_from("abz="), max_size=13))
def test_the_next_vowel_and_sort_letters_read_their_cases_and_nothing_else(three, text):
    assert (VOWEL.problem(three) is None) == (three in VOWEL_CASES)
    letters, equals, after = text.partition("=")
    can_read = 1 <= len(letters) <= 10 and equals and "=" not in after
    assert (SORT.problem(text) is None) == bool(can_read)


@pytest.mark.parametrize("count", [0, 20, 100, 200])
def test_the_grammar_of_stories_has_all_their_words_or_those_of_a_smaller_vocabulary(count):
    grammar, words = STORIES.grammar, set(np.random.default_rng(0).permutation(sorted(WORDS))[:count].tolist())
    assert words_in(grammar) == WORDS | {NEW}
    assert grammar.within([*WORDS, NEW]) == grammar
    fewer = grammar.within(words)
    assert words_in(fewer) <= words and fewer.within(words) == fewer
    for (
        symbol,
        sides,
    ) in fewer.rules.items():  # what is left out needs a word, or a symbol without sides, that is missing
        for side in set(grammar.rules[symbol]) - set(sides):
            assert any(part not in words and not fewer.rules.get(part) for part in side.split())


def words_in(grammar: Grammar) -> set[str]:
    return {part for sides in grammar.rules.values() for side in sides for part in side.split()} - {*grammar.rules}
