"""Tests the tasks: correct answers, a separate held-out set, sentences for unreadable prompts."""

import itertools
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from transformer import TASKS
from transformer.data.tasks import Example, Task, number_from_english

NAMES = ["next-vowel", "number-words", "sort-letters", "induction", "stories", "masked-stories"]
VOWEL, NUMBERS, SORT, INDUCTION, STORIES, MASKED_STORIES = (TASKS[name] for name in NAMES)
any_text = st.text(st.characters(exclude_categories=()), max_size=25)
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def drawn(task: Task, count: int = 400, *, held_out: bool = False, seed: int = 0) -> list[Example]:
    random = np.random.default_rng(seed)
    return [task.draw(random, held_out=held_out) for _ in range(count)]


def both_parts(task: Task, count: int = 400) -> list[Example]:
    return drawn(task, count) + drawn(task, count, held_out=True)


def test_these_are_the_tasks():
    assert list(TASKS) == NAMES
    for name, task in TASKS.items():
        assert task.name == name
        assert task.title
        assert task.summary.endswith(".")


class TestAnswers:
    """By oracles of a few lines, which share nothing with the tasks."""

    def test_the_next_vowel(self):
        found = {example.source: example.target for part in VOWEL.parts for example in part}
        assert found == VOWEL_CASES
        assert all(VOWEL_CASES[example.source] == example.target for example in both_parts(VOWEL))
        assert [VOWEL_CASES[source] for source in ("-ab", "abc", "acz", "stu", "xy#")] == ["e", "e", "#", "#", "#"]

    def test_number_words(self):
        for example in both_parts(NUMBERS, 150):
            number = number_from_english(example.source)
            assert example.source == num2words(number, lang="en").replace(",", "")
            assert example.target == num2words(number, lang="es")

    def test_sorted_letters(self):
        for example in both_parts(SORT):
            letters = example.source.removesuffix("=")
            assert example.source == letters + "="
            assert list(example.target) == sorted(letters)
            assert 1 <= len(letters) <= 10
            assert set(letters) <= set(string.ascii_lowercase)

    def test_repeated_characters(self):
        periods = set()
        for example in both_parts(INDUCTION):
            text = example.source + example.target
            assert (len(example.source), len(text)) == (1, 64)
            period = next(shift for shift in range(1, 64) if text[shift:] == text[:-shift])
            periods.add(period)
        assert periods == set(range(6, 33))
        for period in periods:
            example = INDUCTION.repeated(np.random.default_rng(period), period, held_out=period % 2 == 0)
            text = example.source + example.target
            assert len(text) == 64 and text[period:] == text[:-period]


class TestParts:
    """What is held out is never trained on. An example's content decides, in whatever form it comes."""

    def contents(self, task: Task, examples: list[Example]) -> set[str]:
        of_content = {
            "next-vowel": lambda example: example.source,
            "number-words": lambda example: str(number_from_english(example.source)),
            "sort-letters": lambda example: example.target,
            "induction": lambda example: example.source + example.target,
            "stories": lambda example: example.source.rpartition(".")[0],
            "masked-stories": lambda example: example.target.rpartition(".")[0],
        }
        return {of_content[task.name](example) for example in examples}

    @every_task
    def test_never_overlap(self, task):
        train = self.contents(task, drawn(task, 300))
        held_out = self.contents(task, drawn(task, 300, held_out=True))
        assert min(len(train), len(held_out)) > 150
        assert not train & held_out

    def test_the_cases_of_the_next_vowel_are_split_into_2293_and_983(self):
        train, held_out = VOWEL.parts
        assert (len(train), len(held_out)) == (2293, 983)
        assert {example.source for example in (*train, *held_out)} == VOWEL_CASES.keys()
        assert len(VOWEL_CASES) == 3276
        assert set(drawn(VOWEL, 20_000)) == set(train)
        assert set(drawn(VOWEL, 10_000, held_out=True)) == set(held_out)

    def test_a_tenth_of_the_numbers_is_held_out(self):
        assert sum(map(NUMBERS.is_held_out, range(10_000))) == pytest.approx(1000, abs=150)
        numbers = [number_from_english(example.source) for example in drawn(NUMBERS, 300, held_out=True)]
        assert all(map(NUMBERS.is_held_out, numbers))

    @every_task
    @pytest.mark.parametrize("held_out", [False, True])
    def test_a_seed_decides_what_is_drawn(self, task, held_out):
        first, second, other = (drawn(task, 20, held_out=held_out, seed=seed) for seed in (1, 1, 2))
        assert first == second != other

    @pytest.mark.parametrize(
        ("task", "seed", "first", "last"),
        [
            *((VOWEL, 0, "kqv", "gku"), (VOWEL, 1, "fmt", "hjq"), (SORT, 0, "spni=", "xksyr=")),
            (SORT, 1, "iludhdlzd=", "fz="),
            (NUMBERS, 0, "seven hundred and thirteen thousand", "four hundred and seventy-eight thousand"),
            (
                NUMBERS,
                1,
                "four hundred and thirty-three thousand four",
                "six hundred and eighteen thousand six hundred",
            ),
            (STORIES, 0, "Max took the ball. John walked to the cellar.", "Anna walked to the garden. Ben ran"),
            *((INDUCTION, 0, "J5D9cwnA'jlC6a41AcGW4kUM5X06" * 2, ""), (INDUCTION, 1, "0XPx.?VyIMfgHMosj." * 2, "")),
        ],
    )
    def test_they_are_those_that_the_shipped_cards_were_measured_on(self, task, seed, first, last):
        """What a card says can be compared only as long as a seed stands for the same examples in the same order."""
        examples = task.sample(200, seed)
        assert task.sample(40, seed) == examples[:40]  # a smaller sample is the beginning of a larger one
        ends = [examples[0].source + examples[0].target, examples[-1].source]
        assert ends[0].startswith(first) and ends[1].startswith(last)


class TestSamples:
    @every_task
    def test_they_are_distinct_held_out_and_the_same_for_the_same_seed(self, task):
        examples = task.sample(60)
        assert len(set(examples)) == len(examples) == 60
        assert task.sample(60) == examples != task.sample(60, seed=1)
        of_content = TestParts().contents
        assert not of_content(task, examples) & of_content(task, drawn(task, 200))
        if task is NUMBERS:
            assert all(task.is_held_out(number_from_english(example.source)) for example in examples)
        if task is VOWEL:
            assert set(task.sample(2000)) == set(task.parts[1])  # there are no more than there are

    def test_every_number_is_as_likely_as_any_other(self):
        """Most numbers below a million have six digits, which draws for training make up for."""
        numbers = [number_from_english(example.source) for example in NUMBERS.sample(400)]
        assert sum(number < 100_000 for number in numbers) == pytest.approx(40, abs=25)
        trained = [number_from_english(example.source) for example in drawn(NUMBERS, 400)]
        assert sum(number < 100_000 for number in trained) > 100


class TestTokens:
    @every_task
    def test_every_example_fits_into_the_longest_sequence(self, task):
        for example in both_parts(task, 100):
            assert task.problem(example.source) is None, example
            read, written = (len(task.tokenizer.encode(text)) for text in (example.source, example.target))
            if task.architecture == "encoder-decoder":
                assert read <= task.longest
                assert written + 1 <= task.longest  # [start] before it, or [end] after it
            elif task.architecture == "encoder-only":
                assert read == written <= task.longest
            else:
                assert read + written + task.ends <= task.longest
            assert task.tokenizer.decode(task.tokenizer.encode(example.target)) == example.target
        names = ("[pad]", "[start]", "[end]", *["[mask]"] * (task.architecture == "encoder-only"))
        ids = [task.tokenizer.special_id(token) for token in names]
        assert ids == list(range(task.tokenizer.vocab_size - len(names), task.tokenizer.vocab_size))

    def test_and_so_does_every_number_there_is(self):
        """All whole thousands and all that can follow them: a number is one of each, an `and` between them at most."""
        encode = NUMBERS.tokenizer.encode
        for language, extra in (("en", 1), ("es", 1)):  # `and`; `[end]`

            def length(number: int, language: str = language) -> int:
                return len(encode(num2words(number, lang=language).replace(",", "")))

            thousands = max(length(1000 * number) for number in range(1, 1000))
            assert thousands + max(map(length, range(1000))) + extra <= NUMBERS.longest


ENGLISH_WORDS = sorted(
    {*(num2words(number) for number in (*range(20), *range(20, 100, 10))), "hundred", "thousand", "and"}
)


def without_and(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").replace("-", " ").split() if word != "and")


BELOW_1000 = {without_and(num2words(number)): number for number in range(1000)}


def number_by_table(words: list[str]) -> int | None:
    """An oracle: what stands before `thousand`, and what after it, looked up among the numbers below a thousand."""
    said = tuple(word for word in words if word != "and")
    if "thousand" not in said:
        return BELOW_1000.get(said)
    at = said.index("thousand")
    thousands, rest = BELOW_1000.get(said[:at], 0), said[at + 1 :]
    below = BELOW_1000.get(rest, 0) if rest else 0
    return 1000 * thousands + below if thousands and (below or not rest) else None


class TestNumberFromEnglish:
    @given(st.integers(0, 999_999), st.sampled_from([str.lower, str.upper, str.title]), st.booleans(), st.booleans())
    def test_it_is_the_inverse_of_english(self, number, case, with_commas, with_hyphens):
        text = num2words(number, lang="en")
        text = text if with_commas else text.replace(",", "")
        text = text if with_hyphens else text.replace("-", " ")
        assert number_from_english(case(f" {text}\n")) == number
        assert number_from_english(" ".join(without_and(text))) == number

    @given(st.lists(st.sampled_from(ENGLISH_WORDS), max_size=7))
    def test_words_in_any_order_name_a_number_or_none(self, words):
        assert number_from_english(" ".join(words)) == number_by_table(words)


VOWEL_CASES = {
    "".join(three): next((vowel for vowel in "aeiou" if three[2] != "#" and vowel > three[2]), "#")
    for three in itertools.combinations("-abcdefghijklmnopqrstuvwxyz#", 3)
}


class TestProblems:
    @pytest.mark.parametrize(
        ("task", "text", "words"),
        [
            *(
                (VOWEL, text, "such as abc or mno")
                for text in ("", "a", "ab", "abcd", "cba", "aab", "abb", "a c", "ABC", "aéz", "abc ", "z-#", "123")
            ),
            *((SORT, text, "such as hello= ") for text in ("", "=", "hello", "abcdefghijk=", "ab==", "=ab", "a=b=")),
            *((NUMBERS, text, "from zero to 999,999 in English words") for text in ("", " ", "and", "five two")),
            *((NUMBERS, "205", "such as: two hundred and five."), (NUMBERS, "0", "such as: zero.")),
            (NUMBERS, "1,234", "such as: one thousand two hundred and thirty-four."),
            (NUMBERS, "999 999", "such as: nine hundred and ninety-nine thousand nine hundred and ninety-nine."),
            (NUMBERS, "two hundred five", "written like this: two hundred and five."),
            (NUMBERS, "one thousand and one hundred", "written like this: one thousand one hundred."),
            (NUMBERS, "zero and", "written like this: zero."),
        ],
    )
    def test_what_it_can_not_read_is_said_with_what_it_can(self, task, text, words):
        problem = task.problem(text)
        assert words in problem
        assert problem.startswith("This model reads ")
        assert problem.endswith(".")

    @given(st.sampled_from(list(TASKS.values())), any_text)
    def test_any_text_has_one_or_none(self, task, text):
        problem = task.problem(text)
        assert problem is None or problem.endswith(".")

    @given(st.text(st.sampled_from("-abcuz#e="), max_size=5))
    def test_the_next_vowel_reads_its_cases_and_nothing_else(self, text):
        assert (VOWEL.problem(text) is None) == (text in VOWEL_CASES)

    @given(st.lists(st.sampled_from(ENGLISH_WORDS), max_size=7), st.sampled_from([" ", "-", ", "]))
    def test_number_words_reads_numbers_as_it_learnt_to_write_them(self, words, between):
        text = between.join(words)
        number = number_by_table(words)
        written = None if number is None else num2words(number).replace(",", "").replace("-", " ").split()
        assert (NUMBERS.problem(text) is None) == (words == written)
        if words == written:
            assert NUMBERS.tokenizer.encode(text) == NUMBERS.tokenizer.encode(num2words(number))
            for typed in (text.upper(), f" {text.title()} ", text.replace(" ", ", ")):
                assert NUMBERS.problem(typed) is None
                assert NUMBERS.tokenizer.encode(typed) == NUMBERS.tokenizer.encode(text)

    @given(st.text(st.sampled_from("abz="), max_size=13))
    def test_sort_letters_reads_one_to_ten_letters_and_an_equals_sign(self, text):
        letters, equals, after = text.partition("=")
        can_read = 1 <= len(letters) <= 10 and equals and "=" not in after
        assert (SORT.problem(text) is None) == bool(can_read)


def test_masks_are_where_answers_are_and_the_words_that_give_them():
    """A masked word of a held-out story is told by the rest, in either direction."""
    task = MASKED_STORIES
    mask = task.tokenizer.special_id("[mask]")
    for question in drawn(task, 200, held_out=True):
        read, right = (task.tokenizer.encode(text) for text in (question.source, question.target))
        [place] = [at for at, token in enumerate(read) if token == mask]
        assert place == question.position and right[place] in right[:place] + right[place + 1 :]
        assert [token for at, token in enumerate(read) if at != place] == right[:place] + right[place + 1 :]
    for example in task.draw_batch(np.random.default_rng(0), 40, 1000):
        read, right = (task.tokenizer.encode(text) for text in (example.source, example.target))
        assert mask in read and all(a in (b, mask) for a, b in zip(read, right, strict=True))
