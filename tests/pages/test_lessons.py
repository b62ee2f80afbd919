"""Tests the course: every lesson passes the check, which measures its claims on the models that ship."""

import re

import pytest

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import PAGES, Lesson, read_lesson
from pages.ui.lessons.measure_registry import MEASURES
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.questions import Number
from pages.ui.views.learn.lesson_check import check
from transformer.training.presets import PRESETS

SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(lesson_files.FOLDER.glob("*.md"))}
COURSE = {name: read_lesson(name, source) for name, source in SOURCES.items()}
THINGS = r"(?:head|layer|position|model|seed|temperature|figure|table|footnote|paper of)s?"
NUMBER = re.compile(r"\d+(?:\.\d+)?")
every_lesson = pytest.mark.parametrize("name", COURSE)


def test_it_has_its_order_and_none_is_left_out():
    assert [name[:2] for name in COURSE] == [f"{number:02}" for number in range(1, 22)]
    assert all(isinstance(each, Lesson) for each in lesson_files.all_lessons()), lesson_files.all_lessons()
    steps = [step for lesson in COURSE.values() for step in lesson.steps]
    assert {step.view.page for step in steps if step.view} == set(PAGES)
    assert all(measure.__doc__ for measure in MEASURES.values())


@every_lesson
def test_a_lesson_has_what_a_teacher_needs_and_questions_that_are_explained_and_claim_something(name):
    lesson = COURSE[name]
    assert 3 <= len(lesson.steps) <= 7 and 8 <= lesson.minutes <= 15 and len(lesson.aims) >= 3
    assert all(f"**{each}.**" in lesson.teacher for each in ("Timing", "The surprise", "Wrong answers to expect"))
    assert len(lesson.questions) >= 3 and bool(lesson.needs) == bool(lesson.get)
    for step in lesson.steps:
        assert len(step.words.text.split()) <= 120  # before anything is asked
        # A model from elsewhere may have been tuned to answer, and would read the text in its chat template.
        link = step.view.parameters if step.view else {}
        assert link.get("model", "shakespeare") in PRESETS or link["reads"] == "plain"
        if "other_prompt" in link:
            assert Setup(link["model"], link["other_prompt"]).read
        if question := step.question:
            assert step.reveal and (not question.right or step.claims or "own_" in str(step.measures)), step.title
            if isinstance(question, Number):
                assert question.near <= (question.high - question.low) / 5, "a guess in the dark is mostly wrong"


@every_lesson
def test_every_view_opens_every_claim_holds_and_every_question_has_one_right_answer(name):
    """As the check finds it; a share of right answers is measured on 100 unseen examples, an induction on as many."""
    findings = [str(finding) for finding in check(SOURCES[name])]
    assert all("there is no model “smollm2” here" in finding for finding in findings), findings
    calls = [call for step in COURSE[name].steps for call in step.measures.values()]
    assert all(dict(call.arguments).get("examples") == 100 for call in calls if call.what == "accuracy")


@every_lesson
def test_no_finding_is_typed_in(name):
    """A digit stands in code, in a formula, in a source's year or section, or comes from a measure.

    A number in code is one that is given: to the models, by this step or one before, or as the name of a thing.
    """
    given = set()
    for step in COURSE[name].steps:
        question = step.question
        told = [step.words, step.reveal, step.to_try, *([question.text, *question.options] if question else [])]
        fields = vars(question) if question else {}
        asks = {name: fields[name] for name in fields.keys() - {"text", "options", "in_order"}}
        given |= {float(each) for each in NUMBER.findall(f"{step.view} {step.measures} {asks}")}
        for text in [step.title, *(words.text for words in told if words)]:
            assert not re.search(r"\d", without_given(text, given)), without_given(text, given)


def without_given(text, given):
    """A text without the digits that may stand in it."""

    def code(found):
        inside = found[0].strip("`")
        return found[0] if NUMBER.fullmatch(inside) and float(inside) not in given else ""

    text = re.sub(r"(?m)^    .*$|\{[^{}]*\}", "", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)
    text = re.sub(rf"\b{THINGS} `[\d.]+`", "", text, flags=re.IGNORECASE)
    text = re.sub(r"`[^`]+`", code, text)
    return re.sub(r"§\d+(?:\.\d+)*|\b(?:19|20)\d\d\b", "", text)


def test_a_finding_that_is_typed_in_is_found():
    fine = "{p:%} (Vaswani et al. 2017, §3.2.1), `kR7w`, `10`, head `1.0`, $e^{10}$"
    assert not re.search(r"\d", without_given(fine, {10.0}))
    for text in ("It has 36 heads.", "about `36` of them", "99 %", "a loss of 1.25"):
        assert re.search(r"\d", without_given(text, {10.0}))
