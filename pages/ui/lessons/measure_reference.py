"""Lists the measures for authors of lessons, as a table with examples."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.measure_registry import MEASURES
from pages.ui.lessons.measure_setup import FIELDS, Setup

EXAMPLE_ARGUMENTS: dict[Any, Any] = {str: "…", int: 1, float: 0.5, list[int]: [0, 1]}
"""Arguments of a measure that no lesson of the course uses."""


def measures() -> str:
    """The table, as Markdown."""
    used = dict(_used())
    rows = [
        f"| `{name}` | {_first_sentence(measure)} | `x = {example(name, used)}` |"
        for name, measure in sorted(MEASURES.items())
    ]
    return "\n".join(["| measure | what it is | example |", "| --- | --- | --- |", *rows])


def example(name: str, used: dict[str, dict[str, Any]]) -> str:
    """A measure as the course has it, or with stand-ins for its arguments: a table on one line, in TOML."""
    given = {"what": name} | (used[name] if name in used else _example_arguments(name))
    return "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items()) + " }"


def _first_sentence(measure: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(measure) or "").partition("\n\n")[0].split()).replace("|", "\\|")


def _used() -> Iterator[tuple[str, dict[str, Any]]]:
    """The measures of the course with their arguments, the first use of each last."""
    steps = [step for lesson in lesson_files.all_lessons() if isinstance(lesson, Lesson) for step in lesson.steps]
    for call in reversed([call for step in steps for call in step.measures.values()]):
        default = Setup()
        setup = {
            field: value
            for field in FIELDS
            if (value := getattr(call.setup, field)) not in (None, getattr(default, field)) and field != "changes"
        }
        arguments = {key: list(value) if isinstance(value, tuple) else value for key, value in call.arguments}
        yield call.what, setup | arguments


def _example_arguments(name: str) -> dict[str, Any]:
    parameters = list(inspect.signature(MEASURES[name]).parameters.values())[1:]
    hints = get_type_hints(MEASURES[name])
    return {
        parameter.name: EXAMPLE_ARGUMENTS[hints[parameter.name]]
        for parameter in parameters
        if parameter.default is parameter.empty
    }
