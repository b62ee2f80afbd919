"""Tests that any lesson file is a lesson, or a sentence for each mistake with its line."""

import logging
import re
import runpy
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.lessons import lesson_files, measure_reference
from pages.ui.lessons.lesson import BLOCKS, Lesson, LessonError, read_lesson
from pages.ui.lessons.lesson_files import Unreadable
from pages.ui.lessons.measure_registry import MEASURES, MeasureCall
from pages.ui.lessons.questions import KINDS
from pages.ui.views.learn.lesson_check import check
from pages.ui.views.learn.teachers_page import FORMAT
from tests.learn_page import SAMPLES

EVERY_KIND = (SAMPLES / "01-every-kind.md").read_text(encoding="utf-8")
WRITTEN = FORMAT.read_text(encoding="utf-8")
(SAMPLE,) = re.findall(r"^````markdown\n(.*?)^````$", WRITTEN, re.DOTALL | re.MULTILINE)
TOKEN = 'kind = "token"\ntext = "Which word gets the largest weight from the question mark?"\nright = "read_from"'
HEADER = '+++\ntitle = "A lesson"\n+++\n'
STEP = HEADER + "## A\n"
MISTAKES = [
    ("minutes = 5", 'minutes = 5\nneeds = "storys"', "there is no model “storys” here"),
    ("minutes = 5", "minuts = 5", "“minuts” isn't known here; write “minutes”"),
    ("model=stories", "model=storys", "there is no model “storys” here; write “stories”"),
    ("Mary+took+the+ball", "Mary+took+the+bal", "stories doesn't know “bal”; write “ball”"),
    ("&prompt=", "&promt=", "a link has no “promt”; write “prompt”"),
    ("stories&", "stories&stage=first&", "The link has stage = “first”, but"),
    ("stories&", "stories&other_model=storys&", "there is no model “storys” here; write “stories”"),
    ("stories&", "stories&layer=9&head=0&", "stories has no layer 9; write 0 to 4"),
    ("stories&", "stories&query=99&", "is no position of the prompt; write one from 0 to"),
    ("stories&", "stories&changes=scale~blocks.9.attn.hook_z~0~~0.0&", "a change doesn't fit stories"),
    ('"opening_key"', '"opening_key"\nqery = 3', "opening_key has no qery; write “query”"),
    ('"opening_key"', '"heaviest_key"\nlayer = 1\nhead = 4', "stories has no head 4; write 0"),
    (
        '"opening_key"',
        '"vector_length"\ntensor = "hook_embd"',
        "has no tensor hook_embd; the page Inside shows the names",
    ),
    ('"opening_key"', '"vector_length"\ntensor = "hook_embd"', "those it has; write “hook_embed”"),
    ('"likeliest"', '"probability"\ntoken = "gardens"', "“gardens” is no token of stories; write “garden”"),
    ('"opening_key"', '"opening_key"\nmodel = "induktion"', "no model “induktion” here; write “induction”"),
    ("```reveal", "```reveel", "no block of a lesson and would be shown as code; write “reveal”"),
    ("p > 0.9\n", "p < 0.5\n", "this isn't what the models do: p < 0.5 (p = 0.9"),
    ("high = 1\n", "high = 0.5\n", "right comes to 0.99"),
    ("near = 0.1", "near = 0.5", "the slider starts where it is already right"),
    (TOKEN, 'kind = "order"\ntext = "?"\noptions = ["a", "b"]\nright = ["a", "b"]', "in the correct order already"),
    (TOKEN, 'kind = "token"\ntext = "?"', "a question needs right"),
    ('right = "read_from"', 'right = "readfrom"', "nothing is measured under the name readfrom; write “read_from”"),
    ('right = "read_from"', 'right = "p.real"', "“p.real” can't be used here"),
    (TOKEN, 'kind = "number"\ntext = "?"\nright = "0.5"\nnear = 0.1', "what is right is computed"),
    (TOKEN, 'kind = "number"\ntext = "?"\nright = "p"', "a number needs near"),
    ('kind = "token"', 'kind = "guess"', "a question's kind is one of choose, number"),
    (TOKEN, 'kind = "choose"\ntext = "?"\noptions = ["a"]\nright = ["p > 1"]', "2 to 10 options"),
    (TOKEN, 'kind = "order"\ntext = "?"\noptions = ["a", "b"]\nright = ["a", "c"]', "the same texts"),
    ('right = "read_from"', 'right = "read_from + 90"', "which the prompt of the view doesn't have"),
    ('kind = "token"', 'kind = "cell"', "no answer to a question of the kind cell; measured: read_from = 9"),
    ("{answer}", "{answer:.2f}{p / 0}", "it divides by zero"),
]


LINES = [
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
    (STEP + "```reveal\nSo.\n```", 6, "needs a question"),
]


def test_the_lesson_of_the_documentation_is_fine_and_has_every_block():
    assert list(check(SAMPLE)) == []
    assert all(f"```{block}" in SAMPLE and f"| `{block}` |" in WRITTEN for block in BLOCKS if block != "question")
    assert all(f"| `{kind}` |" in WRITTEN for kind in KINDS)


@pytest.mark.parametrize(("right", "wrong", "sentence"), MISTAKES)
def test_each_kind_of_mistake_has_its_line_and_says_what_to_write_instead(right, wrong, sentence):
    assert right in SAMPLE
    broken = SAMPLE.replace(right, wrong, 1)
    found = [finding for finding in check(broken) if sentence in finding.what]
    assert len(found) == 1, list(map(str, check(broken)))
    changed = [number for number, line in enumerate(broken.split("\n"), 1) if line not in SAMPLE.split("\n")]
    assert min(abs(found[0].line - line) for line in changed) <= 6 and found[0].what.endswith(".")


@pytest.mark.parametrize(("text", "line", "words"), LINES)
def test_what_is_no_lesson_says_in_which_line(text, line, words):
    (found,) = check(text)
    assert found.line == line and words in found.what and found.is_fatal


def test_several_mistakes_are_found_at_once_and_one_only_once_until_time_is_up():
    broken = SAMPLE.replace('"likeliest_probability"', '"likliest_probability"').replace("minutes = 5", "minuts = 5")
    one, other = check(broken)  # and nothing of {p}, which has no value
    assert "minutes" in one.what and "likliest" in other.what
    (found,) = check(SAMPLE, seconds=-1)
    assert "the models need more than" in found.what and found.is_fatal


def test_every_measure_is_listed_with_an_example_that_can_be_read():
    table = measure_reference.measures()
    examples = re.findall(r"^\| `(\w+)` \| .+ \| `(x = \{.+\})` \|$", table, re.MULTILINE)
    assert [name for name, _ in examples] == sorted(MEASURES)
    for name, text in examples:
        assert MeasureCall.read(tomllib.loads(text)["x"], {}).what == name


def test_the_command_line_says_what_is_wrong_and_whether_anything_is(tmp_path, monkeypatch, capsys):
    (tmp_path / "fine.md").write_text(SAMPLE, encoding="utf-8-sig")  # as Notepad saves it
    (tmp_path / "broken.md").write_text(SAMPLE.replace("model=stories", "model=storys"), encoding="utf-8")
    for name, status, words in (("fine", 0, "no problems found"), ("broken", 1, "write “stories”"), ("none", 1, "")):
        monkeypatch.setattr(sys, "argv", ["", "lesson", "check", str(tmp_path / f"{name}.md")])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("pages.ui", run_name="__main__")
        logging.disable(logging.NOTSET)
        printed = capsys.readouterr()
        assert ended.value.code == status and words in printed.out, printed
        assert "Traceback" not in printed.err and "WARNING" not in printed.err


def read(text):
    return read_lesson("03-mine", text)


def test_a_lesson_has_what_its_file_says():
    lesson = read(EVERY_KIND)
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


def test_a_view_that_would_tell_the_answer_opens_after_it_unless_the_file_says_otherwise():
    after, before = 'opened = "after"\n', 'opened = "before"\n'
    of_another_prompt = SAMPLE.replace('"opening_key"', '"opening_key"\nprompt = "Where is Tom?"')
    for text, opened in (
        (SAMPLE.replace(after, ""), "after"),
        (SAMPLE.replace(after, before), "before"),
        (of_another_prompt.replace(after, ""), "before"),
        (of_another_prompt, "after"),
    ):
        assert read(text).steps[0].view.opened == opened


@st.composite
def changed_samples(draw):
    """A lesson of which one line is another."""
    lines = EVERY_KIND.split("\n")
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
        (tmp_path / f"{name}.{'txt' if name == 'notes' else 'md'}").write_text(content, encoding="utf-8-sig")
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
