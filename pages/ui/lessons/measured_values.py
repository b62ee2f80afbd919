"""Measures a lesson's values on demand, and tests the lesson's claims about them."""

from collections.abc import Iterator, Mapping
from typing import Any

from pages.ui.lessons.expressions import Expression, ExpressionError
from pages.ui.lessons.lesson import Step
from pages.ui.lessons.measure_registry import MeasureCall


class MeasuredValues(Mapping[str, Any]):
    """What is measured, by name. Nothing is measured before it is looked up. Looking up raises MeasureError."""

    def __init__(self, calls: Mapping[str, MeasureCall]) -> None:
        self._calls = calls
        self._taken: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._taken:
            self._taken[name] = self._calls[name].result()
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)


def failed_claims(step: Step, values: MeasuredValues) -> list[str]:
    """The step's claims that don't hold on the models there are, each with what was measured or why it wasn't."""
    failed = []
    for claim in step.claims:
        try:
            if claim.value(values) is not True:
                failed.append(f"{claim.text} ({_measured(claim, values)})")
        except ExpressionError as error:
            failed.append(f"{claim.text} ({error})")
    return failed


def _measured(claim: Expression, values: MeasuredValues) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in sorted(claim.names)) or "nothing is measured"
