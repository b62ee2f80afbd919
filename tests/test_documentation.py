"""The examples in docstrings hold, in every module of the engine that has any, and so do the README's."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import transformer

ROOT = Path(__file__).parents[1]

FOUND = [found.name for found in pkgutil.walk_packages(transformer.__path__, "transformer.")]
MODULES = [name for name in FOUND if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["masks", "positions", "attention", "registry"])
def test_there_are_examples_where_a_student_starts(name):
    module = importlib.import_module(f"transformer.model.{name}")
    assert any(found.examples for found in doctest.DocTestFinder().find(module))


def test_the_readme_s_python_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) >= 3
    names = {}
    for example in examples:
        exec(example, names)
    assert names["deviations"](names["found"])[0].largest < 1e-5
