"""Tests that every feature in .github/features.md is listed with the tests that prove it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FEATURES = TESTS / "features.toml"
PAGES = tomllib.loads(FEATURES.read_text(encoding="utf-8"))
"""By page: what is promised, and the tests of it."""
PROMISES = (TESTS.parent / ".github" / "features.md").read_text(encoding="utf-8")


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def promised() -> dict[str, str]:
    """What there is to see: the rows of the table by page, and what follows it under "every page"."""
    section = PROMISES.partition("# What there is to see\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", section, re.MULTILINE))
    return rows | {"every page": in_one_line("\n".join(x for x in section.splitlines() if not x.startswith("|")))}


def named_in(file: Path) -> set[str]:
    """The names of a file's tests, each after the file's own."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".mjs":
        return {f"{file.stem}::{title}" for _, title in re.findall(r'^\s*test\((["`])(.+?)\1,', text, re.MULTILINE)}
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {f"{file.stem}::{each.name}" for each in functions if each.name.startswith("test_")}


@pytest.mark.parametrize("page", promised())
def test_each_word_that_is_promised_of_a_page_is_in_the_list(page):
    assert " ".join(PAGES.get(page, [])) == promised()[page]


def test_whatever_is_in_the_list_is_promised():
    assert [words for features in PAGES.values() for words in features if words not in in_one_line(PROMISES)] == []


def test_every_test_of_the_list_exists():
    there_are = set().union(*(named_in(file) for file in TESTS.rglob("*test*") if file.suffix in (".py", ".mjs")))
    named = [tests for features in PAGES.values() for tests in features.values()]
    assert all(named) and {test for tests in named for test in tests} - there_are == set()
