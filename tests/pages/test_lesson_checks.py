"""Tests the check of lessons: every kind of mistake gets a sentence with its line."""

import logging
import re
import runpy
import sys
import tomllib

import pytest

from pages.ui.lessons import measure_reference
from pages.ui.lessons.lesson import BLOCKS
from pages.ui.lessons.measure_registry import MEASURES, MeasureCall
from pages.ui.lessons.questions import KINDS
from pages.ui.views.learn.lesson_check import check
from pages.ui.views.learn.teachers_page import FORMAT

WRITTEN = FORMAT.read_text(encoding="utf-8")
(SAMPLE,) = re.findall(r"^````markdown\n(.*?)^````$", WRITTEN, re.DOTALL | re.MULTILINE)
TOKEN = 'kind = "token"\ntext = "Which word gets the largest weight from the question mark?"\nright = "read_from"'
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
    ('right = "read_from"', 'right = "read_from + 90"', "which the prompt of the view doesn't have"),
    ('kind = "token"', 'kind = "cell"', "no answer to a question of the kind cell; measured: read_from = 9"),
    ("{answer}", "{answer:.2f}{p / 0}", "it divides by zero"),
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
    (tmp_path / "fine.md").write_text(SAMPLE, encoding="utf-8")
    (tmp_path / "broken.md").write_text(SAMPLE.replace("model=stories", "model=storys"), encoding="utf-8")
    for name, status, words in (("fine", 0, "no problems found"), ("broken", 1, "write “stories”"), ("none", 1, "")):
        monkeypatch.setattr(sys, "argv", ["", "lesson", "check", str(tmp_path / f"{name}.md")])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("pages.ui", run_name="__main__")
        logging.disable(logging.NOTSET)
        printed = capsys.readouterr()
        assert ended.value.code == status and words in printed.out, printed
        assert "Traceback" not in printed.err and "WARNING" not in printed.err
