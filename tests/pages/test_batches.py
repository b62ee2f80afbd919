"""Tests batches of prompts: reading, padding, masking, counting, suggesting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.views import prompt_batch as batches
from pages.ui.views.prompt_batch import LONGEST_LINE, LONGEST_TYPED, MAX_LINES, PADDING, Cells, PromptBatch
from tests.tiny_models import ALPHABET
from transformer import TASKS, ModelConfig, Tokenizer

LETTERS = Tokenizer.of_characters(ALPHABET)
WORDS = TASKS["number-words"].tokenizer
PAD = LETTERS.vocab_size
SIDES = st.sampled_from(["left", "right"])

prompts = st.lists(st.lists(st.integers(0, PAD - 1), min_size=1, max_size=9), min_size=1, max_size=MAX_LINES)


def read(text: str, context: int = 16, tokenizer: Tokenizer = LETTERS) -> PromptBatch:
    return batches.read_batch(text, tokenizer, context)


EMPTY = "Line {} is empty, and a prompt has at least one token; it is left out."
UNKNOWN = (
    "Line 2 has `é` (character 4), `😀` (character 6), `€` (character 7) and 1 more, which this model has never seen"
)
LONG = "Line 1 has 17 tokens, and this model's context holds 16; it is cut there."
HIGH = "Line 1 has 65 tokens; it is cut after 64, so that its masks can still be read."
MANY = "There are {} lines, and a batch here has at most 8; {}."
EIGHT = tuple(range(1, 9))
PROBLEMS = [
    ("two\n , -\nsix", WORDS, 16, (1, 3), EMPTY.format(2)),
    ("To be\nRomé 😀€ §\nnot", LETTERS, 16, (1, 3), f"{UNKNOWN}; it is left out."),
    ("a" * 17 + "\n" + "b" * 16, LETTERS, 16, (1, 2), LONG),
    ("a" * 65 + "\n" + "b" * 64, LETTERS, 256, (1, 2), HIGH),
    ("\n".join("abcdefghi"), LETTERS, 16, EIGHT, MANY.format(9, "the last one is left out")),
    ("\n".join("abcdefghijklmnopqrst"), LETTERS, 16, EIGHT, MANY.format(20, "the last 12 are left out")),
]


class TestReading:
    def test_each_line_is_a_prompt(self):
        found = read("To be\n or \nnot")
        assert found.lines == (1, 2, 3) and not found.problems
        assert found.texts == ("To␣be", "␣or␣", "not")
        assert [LETTERS.decode(tokens) for tokens in found.prompts] == ["To be", " or ", "not"]
        for text in ("a\nb\n", "a\r\nb", "a\r\nb\r\n"):  # a line end at the end is no line, and Windows' will do
            assert read(text).texts == ("a", "b") and not read(text).problems
        for text in ("", "\n", "\n\n"):
            assert not read(text).prompts and read(text).problems[0] == EMPTY.format(1)

    @pytest.mark.parametrize(("text", "tokenizer", "context", "lines", "problem"), PROBLEMS)
    def test_what_is_wrong_with_a_line_is_said_and_the_others_stay(self, text, tokenizer, context, lines, problem):
        found = read(text, context, tokenizer)
        assert found.lines == lines and found.problems == (problem,)
        assert (
            problem.endswith("left out.") or [len(each) for each in found.prompts] == [min(context, LONGEST_LINE)] * 2
        )

    def test_what_was_typed_is_never_markdown_and_is_cut_short(self):
        for typed, shown in (("![x](http://a.b/c.png)", "`[`"), ("`]", "`]`")):
            (problem,) = read(typed).problems
            assert shown in problem and "](" not in problem
        (problem,) = read("x" * 500, tokenizer=WORDS).problems
        assert f"`{'x' * 39}…` (character 1)" in problem
        found = read("a" * (LONGEST_TYPED + 1) + "\nb")
        assert found.lines == (2,) and "Line 1 has 2,001 characters." in found.problems[0]

    @given(st.text(max_size=200), st.sampled_from([LETTERS, WORDS]), st.integers(1, 100))
    def test_no_text_is_too_strange(self, text, tokenizer, context):
        found = read(text, context, tokenizer)
        assert len(found.lines) == len(found.texts) == len(found.prompts) <= MAX_LINES
        assert all(1 <= len(tokens) <= min(context, LONGEST_LINE) for tokens in found.prompts)
        assert found.prompts or found.problems


class TestTheRectangle:
    @given(prompts, SIDES)
    def test_every_row_is_its_prompt_and_padding_on_one_side(self, rows, side):
        tokens = batches.rectangle(rows, PAD, side)
        width = max(map(len, rows))
        assert tokens.shape == (len(rows), width)
        for row, prompt in zip(tokens.tolist(), rows, strict=True):
            fill = [PAD] * (width - len(prompt))
            assert row == (fill + prompt if side == "left" else prompt + fill)

    @given(prompts, SIDES)
    def test_the_masks_are_those_of_the_rules(self, rows, side):
        tokens = batches.rectangle(rows, PAD, side)
        padding, causal = batches.hides_padding(tokens, PAD), batches.hides_future(tokens.shape[1])
        assert padding.dtype == causal.dtype == bool
        for query in range(tokens.shape[1]):
            assert (padding[:, query] == (tokens != PAD)).all()
            assert causal[query].tolist() == [key <= query for key in range(tokens.shape[1])]

    @given(prompts)
    def test_on_the_right_padding_hides_nothing_more_from_real_queries_than_the_causal_mask(self, rows):
        tokens = batches.rectangle(rows, PAD, "right")
        padding, causal = batches.hides_padding(tokens, PAD), batches.hides_future(tokens.shape[1])
        for row, mask in zip(tokens, padding, strict=True):
            assert ((causal & mask)[row != PAD] == causal[row != PAD]).all()

    @given(prompts, SIDES, st.booleans())
    def test_every_cell_is_counted_once(self, rows, side, causal):
        tokens = batches.rectangle(rows, PAD, side)
        for prompt, mask in zip(rows, batches.hides_padding(tokens, PAD), strict=True):
            length, width = len(prompt), tokens.shape[1]
            future = length * (length - 1) // 2 if causal else 0
            expected = Cells(used=length**2 - future, future=future, wasted=width**2 - length**2)
            assert batches.count_cells(mask, causal=causal) == expected

    def test_padding_is_the_model_s_own_token_or_none_of_its_vocabulary(self):
        shape = dict(vocab_size=7, context_length=4, n_layers=1, n_heads=1, d_model=4)
        assert batches.padding_id(ModelConfig(**shape)) == 7
        assert batches.padding_id(ModelConfig(**shape, pad_token_id=0)) == 0

    def test_padding_has_a_label_of_its_own(self):
        tokens = np.array([*LETTERS.encode("a \n"), PAD])
        assert batches.token_labels(tokens, LETTERS, PAD) == ["a", "␣", "↵", PADDING]


class TestTheSuggestion:
    @pytest.mark.parametrize(
        ("examples", "context", "expected"),
        [
            (["ROMEO:\nBut, soft", "To be, or not", "KING:\n"], 16, ["KING:", "ROMEO:", "But, soft", "To be, or not"]),
            (["ROMEO:", "To be, o", "the king", "What, "], 8, ["What,", "ROMEO:", "the kin", "To be, o"]),
            (["abcdef"], 16, ["ab", "abcd", "abcdef"]),
            (["a"], 16, ["a"]),
            (["a b", "a b"], 16, ["a", "a b"]),
            (["é", "\n", "  "], 16, [""]),
            ([], 16, [""]),
        ],
    )
    def test_it_is_short_pieces_of_the_examples_the_shortest_first(self, examples, context, expected):
        assert batches.suggest_batch(examples, LETTERS, context).split("\n") == expected

    def test_words_are_cut_between_words(self):
        suggested = batches.suggest_batch(["two hundred and five", "forty-two", "one hundred and ten"], WORDS, 12)
        assert suggested == "forty two\none hundred and\ntwo hundred and five"

    @given(st.lists(st.text(ALPHABET, max_size=30), max_size=6), st.integers(1, 40))
    def test_it_can_be_read_without_a_problem(self, examples, context):
        suggested = batches.suggest_batch(examples, LETTERS, context)
        found = read(suggested, context)
        lengths = [len(tokens) for tokens in found.prompts]
        assert lengths == sorted(set(lengths))
        assert not found.problems or suggested == ""
