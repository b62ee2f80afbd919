"""The examples in docstrings hold, in every module of the engine that has any."""

import doctest
import importlib
import pkgutil

import pytest

import transformer

FOUND = [found.name for found in pkgutil.walk_packages(transformer.__path__, "transformer.")]
MODULES = [name for name in FOUND if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["masks", "positions", "attention", "registry"])
def test_there_are_examples_where_a_student_starts(name):
    module = importlib.import_module(f"transformer.model.{name}")
    assert any(found.examples for found in doctest.DocTestFinder().find(module))
