"""Tests the arithmetic of lessons, and that it can do nothing else; and that what is right is computed by it."""

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
from pages.ui.lessons.questions import read_question

NAMES = {"p": 0.9, "without": 0.1, "losses": [3.0, 2.0, 1.0], "token": "q", "place": 4}


def value(text):
    return Expression.read(text).value(NAMES)


WRONG = r"""p + | p.real | p.__class__ | p) }}{% for x in losses %}{{ (p | p }}{{ p | losses is defined | token ~ token
| range(9) | p('x') | __import__('os') | open('x') | (lambda: 1)() | p ** 9 | p // 2 | 1 << 99 | [x for x in losses]
| losses[place] | losses[0:1] | {1: 2} | f'{p}' | p if p else 1 | (p := 3) | p; p | abs | abs(*losses)
| max(losses, key=abs) | True | None | b'a' | 1j | ~place | p in losses | abs() | …""".replace("\n", " ").split(" | ")


@pytest.mark.parametrize("text", ["", "p | upper", "(" * 250, "-" * 250 + "1", "9" * 301, *WRONG])
def test_what_cant_be_said(text):
    with pytest.raises(ExpressionError):
        Expression.read(text)


UNCOMPUTABLE = "gone|p / 0|token + 1|token * 99|losses * 3|losses[9]|p < token|max(p)|1e308 * 1e308 * gone|-token"


@pytest.mark.parametrize("text", UNCOMPUTABLE.split("|"))
def test_what_cant_be_computed_is_said_in_a_sentence(text):
    with pytest.raises(ExpressionError, match=r"\w"):
        value(text)


forms = st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "({} / {})", "max({}, {})", "-min(abs({}), {})"])
leaves = st.sampled_from(["p", "place", "losses[0]", "losses[-1]", "len(losses)", "0.5", "0", "3"])
arithmetic = st.recursive(
    leaves, lambda inner: st.builds(lambda form, one, other: form.format(one, other), forms, inner, inner), max_leaves=8
)


@given(arithmetic, arithmetic, st.sampled_from(["{}", "not ({} < {}) and p > 0.5", "0 <= {} != {} or token == 'q'"]))
def test_it_computes_as_python_does(one, other, form):
    text = form.format(one, other)
    try:
        expected = eval(text, {}, NAMES)  # of text that this test has made
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            value(text)
    else:
        assert value(text) == expected
    assert value("[place, 3]") == [4, 3]


@given(st.text(max_size=60) | st.text("pwx[](){}.,+-*/<>=!'\"0123456789 _:;lambda", max_size=60))
def test_whatever_is_written_only_names_come_from_outside(text):
    try:
        read = Expression.read(text)
    except ExpressionError:
        return
    with contextlib.suppress(ValueError, SyntaxError):  # Jinja's texts may hold escapes and line ends, Python's don't
        tree = ast.parse(text.strip(), mode="eval")
        # Python reads º as the o that it stands for, Jinja doesn't.
        names = {unicodedata.normalize("NFKC", name) for name in read.names}
        assert names <= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not any(isinstance(node, ast.Attribute | ast.Lambda | ast.comprehension) for node in ast.walk(tree))
    with contextlib.suppress(ExpressionError):
        read.value(NAMES)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "{p:%} and {p}, {token}, {losses[0]:.2f}, {p - without:.1%}, {losses}",
            "90% and 0.9, `q`, 3.00, 80.0%, 3, 2, 1",
        ),
        (r"`{p}` $\frac{p}{q} = {p:.2f}$ $$\sqrt{d}$$ {p}", r"`{p}` $\frac{p}{q} = 0.90$ $$\sqrt{d}$$ 0.9"),
    ],
)
def test_what_was_measured_stands_where_it_is_named_and_code_and_maths_keep_their_braces(text, shown):
    assert Words.read(text).filled(NAMES, lambda token: f"`{token}`") == shown


def test_a_placeholder_that_isnt_one_is_refused_and_so_is_too_much():
    for text in ("{p:x}", "{p!r}", "{p.real}", "{}{p:__class__}", "{0.9:.99999f}", "{p}" * 201):
        with pytest.raises(ExpressionError):
            Words.read(text)
    with pytest.raises(ExpressionError, match="more than 50,000 characters"):
        Words.read("{token}" * 190).filled({"token": "a" * 1_000}, str)


@given(st.floats() | st.integers() | st.text(max_size=5), st.sampled_from(["", "%", ".2f", ",", "+.1%"]))
def test_every_value_can_be_written(found, form):
    try:
        assert isinstance(in_words(found, form, str), str)
    except ExpressionError:
        assert form


def ask(**fields):
    return read_question({"text": "?", **fields})


ASKED = {
    "choose": ask(kind="choose", options=["a", "b"], right=["p > 1", "p <= 1"]),
    "number": ask(kind="number", right="p", near=0.1),
    "token": ask(kind="token", right="[place, 7]"),
    "cell": ask(kind="cell", right="[6, place]", layer=0, head=0),
    "order": ask(kind="order", options=["a", "b", "c"], right="losses"),
}
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
anything |= st.lists(st.integers(-1, 3) | st.none() | st.floats(), max_size=4)


class TestQuestions:
    @pytest.mark.parametrize(
        ("kind", "right", "answer"),
        [("choose", 1, 1), ("number", 0.9, 0.9), ("token", [4, 7], 4), ("cell", [6, 4], [6, 4])],
    )
    def test_what_is_right_is_measured(self, kind, right, answer):
        assert ASKED[kind].right_of(NAMES) == right and ASKED[kind].an_answer(right) == answer

    @given(st.permutations(range(4)), st.booleans())
    def test_an_order_is_by_what_was_measured_and_equal_things_go_either_way(self, order, descending):
        question = ask(kind="order", options=list("abcd"), right="[p, without, p, 0]", descending=descending)
        values = [0.9, 0.1, 0.9, 0]
        ordered = operator.ge if descending else operator.le
        right = question.right_of(NAMES)
        expected = all(ordered(values[one], values[other]) for one, other in itertools.pairwise(order))
        assert question.is_right(right, list(order)) == expected
        assert question.is_right(right, question.an_answer(right))

    def test_an_order_that_is_a_fact_is_asked_for_out_of_order_and_of_options_exactly_one_is_true(self):
        parts = ["q · k", "÷ √d_head", "mask", "softmax"]
        question = ask(kind="order", right=parts)
        assert question.in_order and [option.text for option in question.options] != parts
        right = question.right_of({})
        assert not question.is_right(right, [0, 1, 2, 3])
        assert [question.options[number].text for number in question.an_answer(right)] == parts
        with pytest.raises(ExpressionError, match="exactly one of the options should be right, and 2 are"):
            ask(kind="choose", options=["a", "b"], right=["p > 0", "p > 0.1"]).right_of(NAMES)

    @given(st.sampled_from([*ASKED]), anything)
    def test_whatever_a_browser_sends_is_an_answer_or_isnt(self, kind, answer):
        question = ASKED[kind]
        if question.fits(answer):
            assert not isinstance(answer, bool) and not (isinstance(answer, float) and math.isnan(answer))
            assert isinstance(question.is_right(question.right_of(NAMES), answer), bool)
