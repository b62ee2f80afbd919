"""Tests that any lesson file is a lesson, or a sentence that says which line is wrong."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, LessonError, read_lesson
from pages.ui.lessons.lesson_files import Unreadable

SAMPLES = Path(__file__).parents[1] / "lessons"
SAMPLE = (SAMPLES / "01-every-kind.md").read_text(encoding="utf-8")
HEADER = '+++\ntitle = "A lesson"\n+++\n'
STEP = HEADER + "## A\n"
ASKED = """## Step
```measure
[p]
what = "probability"
token = "a"
[other]
what = "probability"
token = "b"
prompt = "else"
```
```view
page = "Attention"
link = "model=shakespeare&prompt=KING"
{view}
```
```question
{question}
```
"""
CHOICE = 'kind = "choose"\ntext = "?"\noptions = ["one", "two"]\nright = ["{0} > 0.5", "{0} <= 0.5"]'


def read(text):
    return read_lesson("03-mine", text)


def asked(question, view=""):
    return HEADER + ASKED.format(question=question, view=view)


def test_a_lesson_has_what_its_file_says():
    lesson = read(SAMPLE)
    assert (lesson.name, lesson.title, lesson.minutes) == ("03-mine", "Every kind of question", 5)
    assert [step.title for step in lesson.steps] == ["Only words", "Choose", "Number", "Token", "Cell", "Order"]
    kinds = [step.question.kind for step in lesson.steps if step.question]
    assert kinds == ["choose", "number", "token", "cell", "order"]
    choose = lesson.steps[1]
    assert choose.view.page == "Attention" and choose.view.parameters["prompt"] == "kR7wZq3xB kR7wZ"
    assert choose.measures["p"].setup.changes == "" != choose.measures["without"].setup.changes
    assert choose.words.names == {"p"} and choose.reveal.names == {"without"}
    assert "p" in lesson.steps[-1].measures  # steps see what was measured before them
    shown = "Look:\n```python\nprint('## no step')\n```\nSo it is."
    assert read(f"{HEADER}## One\n{shown}").steps[0].words.text == shown, "code that a step only shows"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "begins with a header"),
        ("+++\ntitle = 3\n+++\n## A", 2, "title is a text in quotes"),
        ("+++\nminutes = 5\n+++\n## A", 2, "needs a title"),
        ('+++\ntitle = "A"\nminutes = five\nneeds = ""\n+++\n## A', 3, "isn't TOML"),
        ('+++\ntitle = "A"\nlength = 3\n+++\n## A', 3, "“length” isn't known here"),
        (HEADER, 3, "1 to 40 steps"),
        (HEADER + "Hello\n## A", 4, "before the first step"),
        (STEP + "```view\npage = 'Attention'", 5, "isn't closed"),
        (STEP + "```view\npage = 'Home'\n```", 6, "a view's page is one of Generate"),
        (STEP + "```view\npage = 'Masks'\n```\n```view\npage = 'Masks'\n```", 8, "one view at most"),
        (STEP + "It is {p}.", 4, "nothing is measured under the name p"),
        (STEP + "```measure\n[p]\nwhat = 'guess'\n```", 6, "'guess' is no measure; there are ablation"),
        (STEP + "```measure\n[p]\nwhat = 'probability'\n```", 6, "probability needs token"),
        (STEP + "```measure\n[p]\nwhat = 'probability'\ntoken = 3\n```", 6, "token of probability is a text"),
        (STEP + "```measure\n[p]\nwhat = 'loss'\nlayer = 3\n```", 6, "loss has no layer; it takes first"),
        (STEP + "```measure\n[not]\nwhat = 'loss'\n```", 6, "can't be called “not”"),
        (STEP + "```measure\np = 3\n```", 6, "p needs a table"),
        (HEADER + "## A\n```measure\n[p]\nwhat = 'loss'\n```\n" * 2, 11, "an earlier step measures"),
        (asked('kind = "token"\ntext = "?"'), 20, "a question needs right"),
        (STEP + "```reveal\nSo.\n```", 6, "needs a question"),
        (asked('kind = "guess"\ntext = "?"'), 20, "a question's kind is one of choose, number"),
        (asked(CHOICE.format("q")), 20, "nothing is measured under the name q"),
        (asked('kind = "number"\ntext = "?"\nright = "0.5"\nnear = 0.1'), 20, "what is right is computed"),
        (asked('kind = "number"\ntext = "?"\nright = "p"'), 20, "a number needs near"),
        (asked('kind = "token"\ntext = "?"\nright = "p.real"'), 20, "“p.real” can't be used here"),
        (asked('kind = "choose"\ntext = "?"\noptions = ["a"]\nright = ["p > 1"]'), 20, "2 to 10 options"),
        (asked('kind = "order"\ntext = "?"\noptions = ["a", "b"]\nright = ["a", "c"]'), 20, "the same texts"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, line, words):
    with pytest.raises(LessonError) as found:
        read(text)
    assert str(found.value).startswith(f"03-mine.md, line {line}: ") and str(found.value).endswith(".")
    assert words in str(found.value)


def test_a_view_that_would_tell_the_answer_opens_after_it_unless_the_file_says_otherwise():
    for name, view, opened in (("p", "", "after"), ("other", "", "before"), ("p", 'opened = "before"', "before")):
        assert read(asked(CHOICE.format(name), view)).steps[0].view.opened == opened


@st.composite
def changed_samples(draw):
    """A lesson of which one line is another."""
    lines = SAMPLE.split("\n")
    number = draw(st.integers(0, len(lines) - 1))
    others = st.sampled_from(["", "```", "+++", "## New", "right = 3", "{x}", "[p]", lines[number][::-1], lines[0]])
    lines[number] = draw(others | st.text(max_size=40))
    return "\n".join(lines)


begun = st.sampled_from(["{}", HEADER + "{}", STEP + "{}", STEP + "```question\n{}\n```"])


@given(changed_samples() | st.builds(str.format, begun, st.text(max_size=300)))
def test_any_text_is_a_lesson_or_a_sentence(text):
    try:
        assert read(text).steps
    except LessonError as error:
        assert re.fullmatch(r"03-mine\.md, line \d+: .+\.", str(error), re.DOTALL)


def test_the_lessons_are_in_order_with_what_is_wrong_and_without_steps_whose_model_is_not_here(tmp_path, monkeypatch):
    view = "## {0}\n```view\npage = 'Masks'\nneeds = '{0}'\n```\n"
    contents = {"02-b": f"{HEADER}## B\n{view.format('induction')}{view.format('nowhere')}", "01-a": f"{HEADER}## A"}
    for name, content in {**contents, "03-c": "nothing", "notes": ""}.items():
        (tmp_path / f"{name}.{'txt' if name == 'notes' else 'md'}").write_text(content, encoding="utf-8")
    (tmp_path / "04-d.md").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path)
    found = lesson_files.all_lessons()
    assert [each.name for each in found] == ["01-a", "02-b", "03-c", "04-d"]
    assert [type(each) for each in found] == [Lesson, Lesson, Unreadable, Unreadable]
    assert [step.title for step in found[1].steps] == ["B", "induction"]
    assert "begins with a header" in found[2].problem and "UTF-8" in found[3].problem
    (tmp_path / "03-c.md").write_text(f"{HEADER}## C, mended", encoding="utf-8")
    assert lesson_files.lesson("03-c").steps[0].title == "C, mended"
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path / "gone")
    assert lesson_files.all_lessons() == []
