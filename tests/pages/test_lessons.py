"""Tests the course: every lesson opens, and its claims are true of the shipped models."""

import re
from functools import cache

import pytest

from pages.ui.frame.url_parameters import PARSERS, from_query
from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import PAGES, Lesson, read_lesson
from pages.ui.lessons.measure_registry import MEASURES
from pages.ui.lessons.measure_setup import NotMeasurableYet, Setup
from pages.ui.lessons.measured_values import failed_claims
from pages.ui.lessons.questions import KINDS, verdict
from pages.ui.models import library
from pages.ui.models.attention_kinds import shown_kind
from pages.ui.models.changes import in_force
from pages.ui.models.lesson_answers import StepId
from pages.ui.views.learn import lesson_check
from tests import app_driver
from transformer import attention_modules
from transformer.training.presets import PRESETS

FILES = sorted(lesson_files.FOLDER.glob("*.md"))
COURSE = 21
THINGS = r"(?:head|layer|position|model|seed|temperature|figure|table|footnote|paper of)s?"
NUMBER = re.compile(r"\d+(?:\.\d+)?")
every_lesson = pytest.mark.parametrize("name", [path.stem for path in FILES])


@cache
def source(name):
    return (lesson_files.FOLDER / f"{name}.md").read_text(encoding="utf-8")


@cache
def lesson(name):
    return read_lesson(name, source(name))


@cache
def check_of(name):
    """What the check finds in a lesson, and each step's values: what it has measured isn't measured again."""
    measured = []

    class Kept(lesson_check._TimedValues):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            measured.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson_check, "_TimedValues", Kept)
        return [str(finding) for finding in lesson_check.check(source(name))], measured


def values(name, number):
    return check_of(name)[1][number]


def steps_here(name):
    """The steps that can be taken with the models that ship, with their numbers."""
    if lesson(name).needs and lesson(name).needs not in library.usable():
        pytest.skip(f"{lesson(name).needs} isn't here")
    return [
        (number, step)
        for number, step in enumerate(lesson(name).steps)
        if not (step.view and step.view.needs and step.view.needs not in library.usable())
    ]


def source_of(name, number):
    return re.split(r"(?m)^## ", source(name))[number + 1]


class TestFiles:
    def test_they_are_the_course_in_its_order_and_none_is_left_out(self):
        assert [path.stem[:2] for path in FILES] == [f"{number:02}" for number in range(1, COURSE + 1)]
        assert all(isinstance(each, Lesson) for each in lesson_files.all_lessons()), lesson_files.all_lessons()

    @every_lesson
    def test_each_has_what_a_teacher_needs_and_several_questions(self, name):
        found = lesson(name)
        assert 3 <= len(found.steps) <= 7 and 8 <= found.minutes <= 15 and len(found.aims) >= 3
        for heading in ("Timing", "The surprise", "Wrong answers to expect"):
            assert f"**{heading}.**" in found.teacher
        asked = [step for step in found.steps if step.question]
        assert len(asked) >= 3 and all(step.reveal for step in asked)
        assert bool(found.needs) == bool(found.get)
        for step in found.steps:
            assert len(step.words.text.split()) <= 120  # before anything is asked
            # A model from elsewhere may have been tuned to answer, and would read the text in its chat template.
            link = step.view.parameters if step.view else {}
            assert link.get("model", "shakespeare") in PRESETS or link["reads"] == "plain"

    def test_every_kind_of_page_and_several_kinds_of_question_are_used(self):
        steps = [step for path in FILES for step in lesson(path.stem).steps]
        assert {step.view.page for step in steps if step.view} == set(PAGES)
        assert {step.question.kind for step in steps if step.question} == set(KINDS)
        assert all(measure.__doc__ for measure in MEASURES.values())


@every_lesson
def test_every_view_opens_at_a_model_a_prompt_and_a_place_that_are_there(name):
    for _, step in steps_here(name):
        if step.view is None:
            continue
        visitor = from_query(step.view.parameters)
        assert visitor.notices == []
        assert step.view.parameters.keys() <= PARSERS.keys()  # what is misspelt would be passed over
        setup = Setup.of(step.view.parameters, {})
        shape = library.config(setup.name)
        assert setup.read and setup.window == setup.tokens
        for each in in_force(visitor.changes):
            each.check(shape)
        if visitor.other_prompt is not None:
            assert Setup(model=visitor.model, prompt=visitor.other_prompt).read
        if step.view.page == "Attention":
            modules = attention_modules(shape)[shown_kind(shape, visitor.attention)]
            assert (visitor.layer or 0) < len(modules) and (visitor.head or 0) < shape.n_heads
            assert max(visitor.query or 0, visitor.key or 0) < len(setup.source or setup.tokens)


@pytest.mark.parametrize("page", PAGES)
def test_a_view_of_each_page_opens_as_it_does_by_itself(page, quick_app_test):
    """The last one that the course has, by its link."""
    views = [step.view for path in FILES for step in lesson(path.stem).steps if step.view and step.view.page == page]
    shown = [view for view in views if view.parameters.get("model") in library.usable()][-1]
    at = app_driver.start(page, **shown.parameters)
    assert not at.warning and not at.error


@every_lesson
def test_the_course_passes_its_own_check(name):
    findings, _ = check_of(name)
    assert all("there is no model “smollm2” here" in finding for finding in findings), findings


@every_lesson
def test_every_claim_is_what_the_models_do(name):
    for number, step in steps_here(name):
        assert failed_claims(step, values(name, number)) == []
        if step.question and not step.question.is_fact:
            assert step.claims or "own_" in str(step.measures), f"{step.title} claims nothing"


@every_lesson
def test_every_question_has_one_right_answer_among_those_that_can_be_given(name):
    for number, step in steps_here(name):
        question = step.question
        if question is None:
            continue
        found = values(name, number)
        some = list(range(len(question.options))) if question.kind == "order" else 0
        try:
            correct = verdict(question, found, some).correct  # of several options that are right it raises
        except NotMeasurableYet:
            assert name == "16-induction"
            continue
        if question.kind == "number":
            assert question.low <= correct <= question.high
            assert question.near <= (question.high - question.low) / 5  # a guess in the dark is mostly wrong
        elif question.kind == "token":
            assert 0 <= correct < len(Setup.of(step.view.parameters, {}).read)
        assert verdict(question, found, correct).right
        if question.kind in ("number", "order"):  # which stand otherwise at first than is right
            first = (question.low + question.high) / 2 if question.kind == "number" else some
            assert not verdict(question, found, first).right, step.title
        for words in (step.words, step.reveal, step.to_try, question.text, *question.options):
            assert words is None or words.filled(found, str)


@every_lesson
def test_no_finding_is_typed_in(name):
    """A digit stands in code, in a formula, in a source's year or section, or comes from a measure.

    A number in code is one that is given: to the models, by this step or one before, or as the name of a thing.
    """
    found = lesson(name)
    given = set()
    for number, step in enumerate(found.steps):
        blocks = re.findall(r"```(?:measure|view|question)\n(.*?)```", source_of(name, number), re.DOTALL)
        blocks = [
            re.sub(r"^(?:text|options) = .*?$|^  \".*?\",$", "", block, flags=re.M)
            if "right =" not in block
            else block[block.index("right =") :]
            for block in blocks
        ]
        given |= {float(each) for block in blocks for each in NUMBER.findall(block)}
        question = step.question
        told = [step.words, step.reveal, step.to_try, *([question.text, *question.options] if question else [])]
        for text in [step.title, *(words.text for words in told if words)]:
            assert not re.search(r"\d", without_given(text, given)), without_given(text, given)


def without_given(text, given):
    """A text without the digits that may stand in it."""

    def code(found):
        inside = found[0].strip("`")
        return found[0] if NUMBER.fullmatch(inside) and float(inside) not in given else ""

    text = re.sub(r"(?m)^    .*$", "", text)
    text = re.sub(r"\{[^{}]*\}", "", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)
    text = re.sub(rf"\b{THINGS} `[\d.]+`", "", text, flags=re.IGNORECASE)
    text = re.sub(r"`[^`]+`", code, text)
    return re.sub(r"§\d+(?:\.\d+)*|\b(?:19|20)\d\d\b", "", text)


def test_a_finding_that_is_typed_in_is_found():
    fine = "{p:%} (Vaswani et al. 2017, §3.2.1), `kR7w`, `10`, head `1.0`, $e^{10}$"
    assert not re.search(r"\d", without_given(fine, {10.0}))
    for text in ("It has 36 heads.", "about `36` of them", "99 %", "a loss of 1.25"):
        assert re.search(r"\d", without_given(text, {10.0}))


def test_a_step_that_has_moved_is_found_by_its_old_name():
    assert lesson_files.current_step(StepId("06-the-mask", 3)) == StepId("09-the-mask", 3)
    assert lesson_files.current_step(StepId("99-the-end", 3)) == StepId("99-the-end", 3)
    for name, steps in lesson_files.MOVED_STEPS.items():
        for step in range(len(steps) + 1):
            found = lesson_files.current_step(StepId(name, step))
            assert found.step < len(lesson(found.lesson).steps), (name, step)


WAITING = """+++
title = "Waiting"
+++
## Here
Words.
## Elsewhere
```view
page = "Attention"
needs = "{}"
```
"""


@pytest.mark.parametrize(("needs", "titles"), [("induction", ["Here", "Elsewhere"]), ("nowhere", ["Here"])])
def test_a_step_whose_model_is_not_here_is_left_out(tmp_path, monkeypatch, needs, titles):
    (tmp_path / "01-waiting.md").write_text(WAITING.format(needs))
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path)
    (found,) = lesson_files.all_lessons()
    assert [step.title for step in found.steps] == titles
