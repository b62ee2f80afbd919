"""Tests batches of prompts: reading, padding, masking, counting, suggesting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.views import prompt_batch as batches
from pages.ui.views.prompt_batch import LONGEST_LINE, LONGEST_TYPED, MAX_LINES, Cells, PromptBatch
from tests.tiny_models import ALPHABET, EXAMPLES
from transformer import TASKS, Tokenizer

LETTERS = Tokenizer.of_characters(ALPHABET)
WORDS = TASKS["number-words"].tokenizer
PAD = LETTERS.vocab_size


def read(text: str, context: int = 16, tokenizer: Tokenizer = LETTERS) -> PromptBatch:
    return batches.read_batch(text, tokenizer, context)


def test_lines_share_their_new_words():
    tokenizer = Tokenizer.of_sentences(["took", "the", "."], new_words=2)
    found = read("Aliya took the 🏀.\nThe 🏀 took ALIYA\nBo took the 🏀", tokenizer=tokenizer.with_new_words(["Aliya"]))
    assert [found.tokenizer.labels(tokens) for tokens in found.prompts] == [
        ["Aliya", "took", "the", "🏀", "."],
        ["the", "🏀", "took", "Aliya"],
    ]
    (problem,) = found.problems
    assert problem.startswith("Line 3 has `Bo` (character 1), which this model has never seen; it is left out.")
    assert problem.endswith(" A text can have up to 2 new words.")
    examples = ["Aliya took the 🏀.", "The cup took Bo."]
    assert batches.suggest_batch(examples, tokenizer, 16).split("\n")[-1] == "Aliya took the 🏀."


def test_each_line_is_a_prompt():
    found = read("To be\n or \nnot")
    assert found.lines == (1, 2, 3) and not found.problems
    assert found.texts == ("To␣be", "␣or␣", "not")
    assert [LETTERS.decode(tokens) for tokens in found.prompts] == ["To be", " or ", "not"]
    for text in ("a\nb\n", "a\r\nb", "a\r\nb\r\n"):  # a line end at the end is no line, and Windows' will do
        assert read(text).texts == ("a", "b") and not read(text).problems


EMPTY = "Line {} is empty, and a prompt has at least one token; it is left out."
UNKNOWN = (
    "Line 2 has `é` (character 4), `😀` (character 6), `€` (character 7) and 1 more, which this model has never seen"
)
LONG = "Line 1 has 17 tokens, and this model's context holds 16; it is cut there."
HIGH = "Line 1 has 65 tokens; it is cut after 64, so that its masks can still be read."
MANY = "There are {} lines, and a batch here has at most 8; {}."
EIGHT = tuple(range(1, 9))
PROBLEMS = [
    ("", LETTERS, 16, (), EMPTY.format(1)),
    ("two\n , -\nsix", WORDS, 16, (1, 3), EMPTY.format(2)),
    ("To be\nRomé 😀€ §\nnot", LETTERS, 16, (1, 3), f"{UNKNOWN}; it is left out."),
    ("a" * 17 + "\n" + "b" * 16, LETTERS, 16, (1, 2), LONG),
    ("a" * 65 + "\n" + "b" * 64, LETTERS, 256, (1, 2), HIGH),
    ("\n".join("abcdefghi"), LETTERS, 16, EIGHT, MANY.format(9, "the last one is left out")),
    ("\n".join("abcdefghijklmnopqrst"), LETTERS, 16, EIGHT, MANY.format(20, "the last 12 are left out")),
    ("a" * (LONGEST_TYPED + 1) + "\nb", LETTERS, 16, (2,), "Line 1 has 2,001 characters."),
    ("![x](http://a.b/c.png)", LETTERS, 16, (), "Line 1 has `[` (character 2), `]` (character 4)"),
    ("x" * 500, WORDS, 16, (), f"`{'x' * 39}…` (character 1)"),
]


@pytest.mark.parametrize(("text", "tokenizer", "context", "lines", "problem"), PROBLEMS)
def test_what_is_wrong_with_a_line_is_said_and_the_others_stay(text, tokenizer, context, lines, problem):
    found = read(text, context, tokenizer)
    assert found.lines == lines and len(found.problems) == 1 and problem in found.problems[0]
    assert "](" not in found.problems[0], "it is Markdown"
    if problem in (LONG, HIGH):
        assert [len(each) for each in found.prompts] == [min(context, LONGEST_LINE)] * 2


@given(st.text(max_size=200), st.sampled_from([LETTERS, WORDS]), st.integers(1, 100))
def test_no_text_is_too_strange(text, tokenizer, context):
    found = read(text, context, tokenizer)
    assert len(found.lines) == len(found.texts) == len(found.prompts) <= MAX_LINES
    assert all(1 <= len(tokens) <= min(context, LONGEST_LINE) for tokens in found.prompts)
    assert found.prompts or found.problems


@given(
    st.lists(st.lists(st.integers(0, PAD - 1), min_size=1, max_size=9), min_size=1, max_size=MAX_LINES),
    st.sampled_from(["left", "right"]),
    st.booleans(),
)
def test_a_batch_is_a_rectangle_whose_cells_are_each_counted_once(rows, side, causal):
    tokens = batches.rectangle(rows, PAD, side)
    width = max(map(len, rows))
    hides_future = batches.hides_future(width)
    assert hides_future.tolist() == np.tri(width, dtype=bool).tolist()
    for row, mask, prompt in zip(tokens, batches.hides_padding(tokens, PAD), rows, strict=True):
        fill = [PAD] * (width - len(prompt))
        assert row.tolist() == (fill + prompt if side == "left" else prompt + fill)
        assert mask.tolist() == [(row != PAD).tolist()] * width
        real = mask & mask.T  # neither query nor key is padding
        future = int((real & ~hides_future).sum()) if causal else 0
        expected = Cells(used=int(real.sum()) - future, future=future, wasted=int((~real).sum()))
        assert batches.count_cells(mask, causal=causal) == expected


@pytest.mark.parametrize(
    ("examples", "tokenizer", "context", "expected"),
    [
        (EXAMPLES, LETTERS, 16, ["KING:", "ROMEO:", "But, soft", "To be, or not"]),
        (["ROMEO:", "To be, o", "the king", "What, "], LETTERS, 8, ["What,", "ROMEO:", "the kin", "To be, o"]),
        (["abcdef"], LETTERS, 16, ["ab", "abcd", "abcdef"]),
        (["é", "\n", "  "], LETTERS, 16, [""]),
        ([], LETTERS, 16, [""]),
        (
            ["two hundred and five", "forty-two", "one hundred and ten"],
            *(WORDS, 12, ["forty two", "one hundred and", "two hundred and five"]),
        ),
    ],
)
def test_short_pieces_of_the_examples_are_suggested_the_shortest_first(examples, tokenizer, context, expected):
    assert batches.suggest_batch(examples, tokenizer, context).split("\n") == expected


@given(st.lists(st.text(ALPHABET, max_size=30), max_size=6), st.integers(1, 40))
def test_what_is_suggested_can_be_read_without_a_problem(examples, context):
    suggested = batches.suggest_batch(examples, LETTERS, context)
    found = read(suggested, context)
    lengths = [len(tokens) for tokens in found.prompts]
    assert lengths == sorted(set(lengths))
    assert not found.problems or suggested == ""
