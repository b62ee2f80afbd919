"""Checks a lesson's file: its syntax, links, models, measures and claims.

`python -m pages.ui lesson check FILE` prints the findings; the page for teachers shows them.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.host.page_state import PARAMETERS, PageState
from pages.ui.lessons.did_you_mean import did_you_mean
from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.lesson import BLOCKS, FENCE, Lesson, Step, View, examine
from pages.ui.lessons.measure_registry import MeasureCall
from pages.ui.lessons.measure_setup import MeasureError, NotMeasurableYet, Setup
from pages.ui.lessons.measured_values import MeasuredValues, failed_claims
from pages.ui.models import library
from transformer import ModelConfig, Tokenizer, attention_modules


@dataclass(frozen=True)
class Finding:
    """One mistake in a lesson's file, with the correction, in a sentence."""

    line: int
    what: str
    is_fatal: bool = False
    """Whether the mistake keeps the lesson from being opened."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def check(text: str, seconds: float = math.inf) -> Iterator[Finding]:
    """What is wrong with a lesson, as it is found. text: the file's.

    seconds: of a processor, after which no more is measured.
    """
    end = time.process_time() + seconds
    lesson, problems = examine("lesson", text)
    lines = text.split("\n")
    for problem in problems:
        yield Finding(problem.line, f"{problem.what.rstrip('.')}.", is_fatal=True)
    for line, what in _misspelt_blocks(lines):
        yield Finding(line, f"{what}.")
    if lesson is None:
        return
    if (lesson.needs or "") not in ("", *library.usable()):
        line = next((number for number, line in enumerate(lines, 1) if line.startswith("needs")), 1)
        yield Finding(line, f"without its model the lesson can't be taken: {_no_model(lesson.needs)}.", is_fatal=True)
        return
    seen: set[str] = set()
    reported: set[str] = set()
    for number, step in enumerate(lesson.steps):
        checked = _Step(lesson, number, step, lines, _TimedValues(step.measures, end))
        try:
            for line, what in checked.findings(step.measures.keys() - seen):
                if what not in reported:  # a view and each of its measures have the same model and prompt
                    yield Finding(line, f"{what.rstrip('.')}.")
                reported.add(what)
        except _OutOfTimeError:
            what = f"up to here the models need more than {seconds:.0f} seconds; ask them for less."
            yield Finding(step.lines[""], what, is_fatal=True)
            return
        seen |= step.measures.keys()


def _misspelt_blocks(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Find fences whose name is almost a block's: they would be shown as code."""
    for number, line in enumerate(lines, 1):
        if (fence := FENCE.fullmatch(line.rstrip())) and (name := fence["info"].strip()) and name not in BLOCKS:
            advice = did_you_mean(name, BLOCKS)
            if advice.startswith("write"):
                yield number, f"“{name}” is no block of a lesson and would be shown as code; {advice}"


def _no_model(name: str) -> str:
    return f"there is no model “{name[:40]}” here; {did_you_mean(name, library.usable())}"


class _OutOfTimeError(Exception):
    """A lesson has used up its time."""


class _TimedValues(MeasuredValues):
    """Stops measuring at a time of `time.process_time`."""

    def __init__(self, calls: Mapping[str, MeasureCall], end: float) -> None:
        super().__init__(calls)
        self._end = end

    def __getitem__(self, name: str) -> Any:
        if time.process_time() > self._end:
            raise _OutOfTimeError
        return super().__getitem__(name)


class _Step:
    """One step, and its lines in the file."""

    def __init__(self, lesson: Lesson, number: int, step: Step, lines: list[str], values: MeasuredValues) -> None:
        self.lesson, self.number, self.step, self.lines, self.values = lesson, number, step, lines, values
        self.broken: set[str] = set()
        """Measures that fail; text that needs one of them isn't checked."""

    def findings(self, own: set[str]) -> Iterator[tuple[int, str]]:
        """own: the names of the measures that no earlier step has."""
        view = self.step.view
        if view and view.needs and view.needs not in library.usable():
            yield self.line("view", "needs"), f"without its model the step is left out: {_no_model(view.needs)}"
            return
        is_shown = True
        for name, what in _view_findings(view) if view else ():
            is_shown = False
            yield self.line("view", name), what
        for name in self.step.measures:
            try:
                what = _call_finding(self.step.measures[name], self.values, name)
            except NotMeasurableYet:
                self.broken.add(name)
                continue
            if what:
                self.broken.add(name)
                if name in own:
                    yield self.line("measure", rf"\[{name}\]"), what
        if is_shown:
            yield from self.of_the_question()
        yield from self.of_the_words()
        for claim in self.step.claims:
            if claim.names.isdisjoint(self.broken) and (problem := unmet_claim(self.step, claim.text, self.values)):
                yield self.line("claim", re.escape(claim.text)), problem

    def of_the_question(self) -> Iterator[tuple[int, str]]:
        question = self.step.question
        if question is None or not question.names.isdisjoint(self.broken):
            return
        view = self.lesson.view_at(self.number)
        try:
            what = question.flaw(question.right_of(self.values), view.parameters if view else {})
        except ExpressionError as error:
            measured = ", ".join(f"{name} = {_short(self.values[name])}" for name in sorted(question.needed))
            what = f"{error}; measured: {measured or 'nothing'}"
        if what:
            yield self.line("question", "right"), what

    def of_the_words(self) -> Iterator[tuple[int, str]]:
        step, question = self.step, self.step.question
        question_texts = [question.text, *question.options] if question else []
        blocks = (("", [step.words]), ("question", question_texts), ("reveal", [step.reveal]), ("try", [step.to_try]))
        for block, texts in blocks:
            for words in filter(None, texts):
                if words.names.isdisjoint(self.broken) and (what := _words_finding(words, self.values)):
                    yield self.line(block), what

    def line(self, block: str, pattern: str = "") -> int:
        """The line of a block in which a pattern begins; the block's first line if there is no match."""
        first = self.step.lines.get(block, self.step.lines[""])
        for number in range(first, len(self.lines) + 1) if pattern else ():
            line = self.lines[number - 1].strip()
            if re.match(pattern, line):
                return number
            if line.startswith("```"):
                break
        return first


def _view_findings(view: View) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in a view, each with the name of its line."""
    for name in view.parameters.keys() - PARAMETERS.keys():
        yield "link", f"a link has no “{name[:40]}”; {did_you_mean(name, PARAMETERS)}"
    state = PageState.of(view.parameters)
    for notice in state.notices:
        yield "link", notice.removesuffix(" The default is used instead.")
    if view.parameters.get("other_model", "") not in ("", *library.usable()):
        yield "link", _no_model(view.parameters["other_model"])
    setup = Setup.of(view.parameters, {})
    if what := _setup_finding(setup):
        yield "link", what
        return
    config = library.config(setup.name)
    if view.page == "Attention":
        kind = view.parameters.get("attention", "")
        if what := _head_finding(config, setup, state.layer, state.head, kind):
            yield "link", what
    positions = max(len(setup.source), len(setup.tokens))
    for name in ("query", "key"):
        if (position := getattr(state, name)) is not None and position >= positions:
            yield "link", f"{name}={position} is no position of the prompt; write one from 0 to {positions - 1}"


def _setup_finding(setup: Setup) -> str:
    """Say what is wrong with a model and its texts; "" for nothing."""
    if setup.model not in library.usable():
        return _no_model(setup.model)
    tokenizer = setup.tokenizer
    for text in (setup.prompt or "", setup.text):
        if unknown := tokenizer.unknown_pieces(text):
            piece = unknown[0].text[:20]
            return f"{setup.model} doesn't know “{piece}”; {did_you_mean(piece, _known(tokenizer), 'it knows')}"
    try:
        assert setup.tokens and setup.read
        setup.interventions  # noqa: B018, which is checked as it is looked up
    except MeasureError as error:
        return str(error)
    return ""


def _call_finding(call: MeasureCall, values: MeasuredValues, name: str) -> str:
    """Say what is wrong with a measure; "" for nothing. Raises NotMeasurableYet for one that waits for the visitor."""
    if call.setup.model not in library.usable():
        return _no_model(call.setup.model)
    try:
        values[name]
    except NotMeasurableYet:
        raise
    except MeasureError as error:
        return _setup_finding(call.setup) or _argument_finding(call) or f"{str(error).rstrip('.')}{_hint(call, error)}"
    return ""


def _argument_finding(call: MeasureCall) -> str:
    given = dict(call.arguments)
    if not {"layer", "head"} <= given.keys() or given["head"] < 0:
        return ""
    config = library.config(call.setup.name)
    return _head_finding(config, call.setup, given["layer"], given["head"], given.get("attention", ""))


def _hint(call: MeasureCall, error: MeasureError) -> str:
    """Suggest a tensor or a token to write instead, as the end of a sentence."""
    given, tokenizer = dict(call.arguments), library.tokenizer(call.setup.name)
    if "tensor" in given:
        return (
            f"; {did_you_mean(given['tensor'], library.model(call.setup.name).model.hook_names(), 'its tensors are')}"
        )
    if "token" in given and "is no token" in str(error):
        return f"; {did_you_mean(given['token'], _known(tokenizer), 'its tokens are')}"
    return ""


def _known(tokenizer: Tokenizer) -> list[str]:
    """The first tokens of a vocabulary; those of shipped models are complete."""
    return tokenizer.labels(range(min(tokenizer.vocab_size, 1000)))


def _head_finding(config: ModelConfig, setup: Setup, layer: int | None, head: int | None, attention: str) -> str:
    kinds = attention_modules(config)
    kind = attention or next(reversed(kinds), "")
    if kind not in kinds:
        known = f"write {' or '.join(kinds)}" if kinds else "it has no attention"
        return f"{setup.model} has no attention of the kind “{kind}”; {known}"
    for name, number, count in (("layer", layer, len(kinds[kind])), ("head", head, config.n_heads)):
        if number is not None and not 0 <= number < count:
            return f"{setup.model} has no {name} {number}; write {f'0 to {count - 1}' if count > 1 else '0'}"
    return ""


def unmet_claim(step: Step, text: str, values: MeasuredValues) -> str:
    """Say how a claim fails; "" if it holds."""
    unmet = [claim for claim in failed_claims(step, values) if claim.startswith(text)]
    return f"this isn't what the models do: {unmet[0]}; change the claim, and the words that say so" if unmet else ""


def _words_finding(words: Words, values: MeasuredValues) -> str:
    try:
        words.filled(values, str)
    except NotMeasurableYet:
        return ""
    except ExpressionError as error:
        return str(error)
    return ""


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
