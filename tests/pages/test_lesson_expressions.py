"""Tests the arithmetic of lessons, and that it can do nothing else."""

import ast
import contextlib
import itertools
import math
import operator
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.lessons.expressions import Expression, ExpressionError, Words, in_words
from pages.ui.lessons.questions import fits, read_question, verdict

NAMES = {"p": 0.9, "without": 0.1, "losses": [3.0, 2.0, 1.0], "token": "q", "place": 4}
numbers = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


def value(text, names=NAMES):
    return Expression.read(text).value(names)


def test_what_can_be_said():
    found = {
        "without < 0.2 * p": True,
        "p - without": 0.8,
        "-p / 2": -0.45,
        "0 < without < p <= 1": True,
        "not (p > 1) and without != p": True,
        "p > 1 or token == 'q'": True,
        "losses[0] - losses[-1]": 2.0,
        "max(abs(-3), min(losses), len(losses))": 3,
    }
    assert {text: value(text) for text in found} == pytest.approx(found)
    assert value("[place, 3]") == [4, 3]


WRONG = r"""p + | p.real | p.__class__ | p) }}{% for x in losses %}{{ (p | p }}{{ p | losses is defined | token ~ token
| range(9) | p('x') | __import__('os') | open('x') | (lambda: 1)() | p ** 9 | p // 2 | 1 << 99 | [x for x in losses]
| losses[place] | losses[0:1] | {1: 2} | f'{p}' | p if p else 1 | (p := 3) | p; p | abs | abs(*losses)
| max(losses, key=abs) | True | None | b'a' | 1j | ~place | p in losses | abs() | …""".replace("\n", " ").split(" | ")


@pytest.mark.parametrize("text", ["", "p | upper", "(" * 250, "-" * 250 + "1", "9" * 301, *WRONG])
def test_what_cant(text):
    with pytest.raises(ExpressionError):
        Expression.read(text)


UNCOMPUTABLE = "gone|p / 0|token + 1|token * 99|losses * 3|losses[9]|p < token|max(p)|1e308 * 1e308 * gone|-token"


@pytest.mark.parametrize("text", UNCOMPUTABLE.split("|"))
def test_what_cant_be_computed_is_said_in_a_sentence(text):
    with pytest.raises(ExpressionError, match=r"\w"):
        value(text)


@given(
    st.recursive(
        st.sampled_from(["p", "without", "place"]) | numbers.filter(lambda n: n >= 0).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda three: f"({' '.join(three)})"),
        max_leaves=8,
    )
)
def test_it_computes_as_python_does(text):
    try:
        expected = eval(text, {}, NAMES)  # of text that this test has made
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            value(text)
    else:
        assert value(text) == expected


@given(st.text(max_size=60) | st.text("pwx[](){}.,+-*/<>=!'\"0123456789 _:;lambda", max_size=60))
def test_whatever_is_written_only_names_come_from_outside(text):
    try:
        read = Expression.read(text)
    except ExpressionError:
        return
    with contextlib.suppress(
        ValueError, SyntaxError
    ):  # Jinja's texts may hold escapes and line ends that Python's don't
        tree = ast.parse(text.strip(), mode="eval")
        # Python reads º as the o that it stands for, Jinja doesn't.
        names = {unicodedata.normalize("NFKC", name) for name in read.names}
        assert names <= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not any(isinstance(node, ast.Attribute | ast.Lambda | ast.comprehension) for node in ast.walk(tree))
    with contextlib.suppress(ExpressionError):
        read.value(NAMES)


class TestWords:
    def filled(self, text):
        return Words.read(text).filled(NAMES, lambda token: f"`{token}`")

    def test_what_was_measured_stands_where_it_is_named(self):
        assert self.filled("{p:%} and {p}, {token}, {losses[0]:.2f}, {p - without:.1%}, {losses}") == (
            "90% and 0.9, `q`, 3.00, 80.0%, 3, 2, 1"
        )

    def test_code_and_maths_keep_their_braces(self):
        said = self.filled(r"`{p}` $\frac{p}{q} = {p:.2f}$ $$\sqrt{d}$$ {p}")
        assert said == r"`{p}` $\frac{p}{q} = 0.90$ $$\sqrt{d}$$ 0.9"
        assert Words.read(r"`{p}` $\frac{p}{q}$").names == frozenset()

    def test_a_placeholder_that_isnt_one_is_refused(self):
        for text in ("{p:x}", "{p!r}", "{p.real}", "{}{p:__class__}", "{0.9:.99999f}"):
            with pytest.raises(ExpressionError):
                Words.read(text)

    @given(st.floats() | st.integers() | st.text(max_size=5), st.sampled_from(["", "%", ".2f", ",", "+.1%"]))
    def test_every_value_can_be_written(self, found, form):
        try:
            assert isinstance(in_words(found, form, str), str)
        except ExpressionError:
            assert form


ASKED = {
    "choose": dict(options=["a", "b"], right=["p > 1", "p <= 1"]),
    "number": dict(right="p", near=0.1),
    "token": dict(right="place"),
    "cell": dict(right="[place, 0]"),
    "order": dict(options=["a", "b", "c"], right="losses"),
}
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
anything |= st.lists(st.integers(-1, 3) | st.none() | st.floats(), max_size=4)


class TestQuestions:
    def ask(self, **fields):
        return read_question({"text": "?", **fields})

    def test_of_options_the_one_that_is_true_is_right(self):
        question = self.ask(kind="choose", options=["a", "b"], right=["p > without", "p <= without"])
        assert [verdict(question, NAMES, answer).right for answer in (0, 1)] == [True, False]
        with pytest.raises(ExpressionError, match="exactly one of the options should be right, and 2 are"):
            verdict(self.ask(kind="choose", options=["a", "b"], right=["p > 0", "p > 0.1"]), NAMES, 0)

    @given(st.floats(0, 1))
    def test_a_number_is_right_as_far_as_it_is_near(self, answer):
        question = self.ask(kind="number", right="p", near=0.1)
        found = verdict(question, NAMES, answer)
        assert found.correct == 0.9
        assert found.right == (abs(answer - 0.9) <= 0.1 * (1 + 1e-9))

    def test_of_several_places_each_is_right_and_a_cell_is_a_query_and_a_key(self):
        question = self.ask(kind="token", right="[place, 7]")
        assert [verdict(question, NAMES, place).right for place in (4, 7, 5)] == [True, True, False]
        assert verdict(question, NAMES, 5).correct == 4
        question = self.ask(kind="cell", right="[6, place]")
        assert verdict(question, NAMES, [6, 4]).right and not verdict(question, NAMES, [4, 6]).right

    @given(st.permutations(range(4)), st.booleans())
    def test_an_order_is_by_what_was_measured_and_equal_things_go_either_way(self, order, descending):
        question = self.ask(kind="order", options=list("abcd"), right="[p, without, p, 0]", descending=descending)
        values = [0.9, 0.1, 0.9, 0]
        ordered = operator.ge if descending else operator.le
        rightly = all(ordered(values[one], values[other]) for one, other in itertools.pairwise(order))
        found = verdict(question, NAMES, list(order))
        assert found.right == rightly
        assert sorted(found.correct) == [0, 1, 2, 3]

    def test_an_order_that_is_a_fact_is_asked_for_out_of_order(self):
        parts = ["q · k", "÷ √d_head", "mask", "softmax"]
        question = self.ask(kind="order", right=parts)
        assert question.is_fact and [option.text for option in question.options] != parts
        found = verdict(question, {}, [0, 1, 2, 3])
        assert not found.right
        assert [question.options[number].text for number in found.correct] == parts

    @given(st.sampled_from([*ASKED]), anything)
    def test_whatever_a_browser_sends_is_an_answer_or_isnt(self, kind, answer):
        question = self.ask(kind=kind, **ASKED[kind])
        if fits(question, answer):
            assert not isinstance(answer, bool) and not (isinstance(answer, float) and math.isnan(answer))
            assert isinstance(verdict(question, NAMES, answer).right, bool)
