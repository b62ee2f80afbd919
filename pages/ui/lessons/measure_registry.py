"""Reads and runs the measures that a lesson's file names.

Arguments are checked against the function's annotations when the file is read, and against the model when the measure
is taken.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, get_type_hints

import numpy as np

from pages.ui.lessons.did_you_mean import did_you_mean
from pages.ui.lessons.measure_setup import FIELDS, MeasureError, NotMeasurableYet, Setup
from pages.ui.models.model_cache import cached
from transformer import Checkpoint

TYPES_IN_WORDS = {str: "a text", int: "a whole number", float: "a number", list[int]: "a list of whole numbers"}
MAX_LIST = 8
MEASURES: dict[str, Callable[..., Any]] = {}
"""The registry, by name; the modules `…measures.py` fill it."""
_UNCACHED: set[str] = set()
"""Names of those that are taken anew each time."""


def measure(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let lessons use a function under its own name. What it finds depends on its setup alone, and is cached."""
    MEASURES[function.__name__] = function
    return function


def uncached_measure(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for what depends on more than its setup: on other models, or on what the visitor has trained."""
    _UNCACHED.add(function.__name__)
    return measure(function)


@dataclass(frozen=True)
class MeasureCall:
    """One measure of a lesson, with its arguments, ready to be taken."""

    what: str
    setup: Setup
    arguments: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def read(cls, given: Mapping[str, Any], link: Mapping[str, str]) -> Self:
        """What a lesson's file says of a measure. link: the parameters of the view beside it.

        Raises: MeasureError, which says what would do.
        """
        what = given.get("what")
        if not isinstance(what, str) or what not in MEASURES:
            raise MeasureError(f"what = {what!r} is no measure; {did_you_mean(str(what), MEASURES)}")
        for name in FIELDS:
            if not isinstance(given.get(name, ""), str):
                raise MeasureError(f"{name} is a text, as in a link")
        arguments = {name: value for name, value in given.items() if name not in ("what", *FIELDS)}
        return cls(what, Setup.of(link, given), tuple(sorted(_checked(what, arguments).items())))

    def result(self) -> Any:
        """What the model does now. Raises MeasureError where it can't be measured."""
        try:
            value = self.compute() if self.what in _UNCACHED else _cached_result(self.setup.name, self)
        except NotMeasurableYet:
            raise
        except MeasureError as error:
            raise MeasureError(f"{self.what} can't be measured: {error}") from None
        return _plain(value)

    def compute(self) -> Any:
        """The same, computed anew."""
        arguments = {name: list(value) if isinstance(value, tuple) else value for name, value in self.arguments}
        return MEASURES[self.what](self.setup, **arguments)


@cached
def _cached_result(checkpoint: Checkpoint, call: MeasureCall) -> Any:
    """What a call comes to on this checkpoint, which is the one that its setup finds."""
    return call.compute()


def _checked(what: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that a measure takes. Raises MeasureError for others, and for missing ones."""
    hints = get_type_hints(MEASURES[what])
    parameters = dict(list(inspect.signature(MEASURES[what]).parameters.items())[1:])
    checked = {}
    for name, value in arguments.items():
        if name not in parameters:
            raise MeasureError(f"{what} has no {name}; {did_you_mean(name, parameters, 'it takes')}")
        kind = hints[name]
        if kind is float and type(value) is int:
            value = float(value)
        if isinstance(kind, types.GenericAlias):
            if not isinstance(value, list) or len(value) > MAX_LIST or any(type(number) is not int for number in value):
                raise MeasureError(f"{name} of {what} is {TYPES_IN_WORDS[kind]}")
            value = tuple(value)
        elif type(value) is not kind:
            raise MeasureError(f"{name} of {what} is {TYPES_IN_WORDS[kind]}")
        checked[name] = value
    missing = [name for name, each in parameters.items() if each.default is each.empty and name not in checked]
    if missing:
        raise MeasureError(f"{what} needs {' and '.join(missing)}")
    return checked


def _plain(value: Any) -> Any:
    """Python's own numbers and lists."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
