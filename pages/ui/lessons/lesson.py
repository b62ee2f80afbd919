"""Parses a lesson's file: a header, then steps of text, view, question, answer and exercise.

The file is Markdown that a teacher writes; `read_lesson` says of one that can't be used which line is wrong and what to
write instead. Nothing is computed here. `views/learn/lesson_format.md` describes the format.
"""

import keyword
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from pages.ui.lessons import (  # noqa: F401, which fill the registry of measures
    activation_measures,
    context_measures,
    measures,
    model_measures,
    text_measures,
    token_measures,
    training_measures,
    visitor_training_measures,
)
from pages.ui.lessons.did_you_mean import did_you_mean
from pages.ui.lessons.expressions import FUNCTIONS, Expression, ExpressionError, Words
from pages.ui.lessons.measure_registry import MeasureCall
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.questions import Question, read_question

LONGEST_FILE = 100_000
"""Characters."""
MAX_STEPS, MAX_MEASURES, LONGEST_LINK = 40, 24, 6_000
PAGES = ("Generate", "Attention", "Masks", "Positions", "Inside", "What if", "Train")
"""Whose views a lesson can show."""
FENCE = re.compile(r"(?P<ticks>`{3,})(?P<info>[^`]*)")
BLOCKS = ("measure", "view", "question", "reveal", "claim", "try")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class LessonError(ValueError):
    """Why a lesson can't be read: a whole sentence that names the file and the line."""


@dataclass(frozen=True)
class View:
    """A page of the app as a link opens it. opened: "before" the question is answered, or "after".

    needs: a model without which the step is left out; "" for none.
    """

    page: str
    link: str
    opened: str
    needs: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        return _parameters(self.link)


@dataclass(frozen=True)
class Step:
    """One step of a lesson; what it doesn't have is None or empty."""

    title: str
    words: Words
    measures: Mapping[str, MeasureCall]
    """By name: its own, and those of the steps before it."""
    view: View | None = None
    question: Question | None = None
    reveal: Words | None = None
    claims: tuple[Expression, ...] = ()
    to_try: Words | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    """The numbers of the first lines of its blocks, by their kind; of its heading under ""."""


@dataclass(frozen=True)
class Lesson:
    """One lesson. name: that of its file, without the ending.

    asks: what it is about, as one question. needs: a model without which it can't be taken.
    get: where that comes from, in a sentence.
    """

    name: str
    steps: tuple[Step, ...]
    title: str = ""
    minutes: int = 10
    aims: tuple[str, ...] = ()
    asks: str = ""
    teacher: str = ""
    needs: str = ""
    get: str = ""

    @property
    def questions(self) -> list[int]:
        """The steps that ask one."""
        return [number for number, step in enumerate(self.steps) if step.question]

    def view_at(self, number: int) -> View | None:
        """What a step shows: its own view, or the last before it."""
        return next((step.view for step in reversed(self.steps[: number + 1]) if step.view), None)


@dataclass
class _Block:
    """What stands in a fence. line: the number of its first line."""

    text: str
    line: int


@dataclass
class _Part:
    """What stands between two headings."""

    title: str
    line: int
    words: list[str] = field(default_factory=list)
    blocks: dict[str, _Block] = field(default_factory=dict)


class Problem(Exception):
    """What is wrong in a line: a sentence without its full stop."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


class _UnknownName(Problem):
    """A name under which nothing is measured: perhaps only because the block that measures it can't be read."""


def read_lesson(name: str, text: str) -> Lesson:
    """Read a lesson's file. name: the file's, without its ending. Raises LessonError, whatever the text is."""
    lesson, problems = examine(name, text)
    if lesson is None or problems:
        first = min(problems, key=lambda problem: problem.line)
        raise LessonError(f"{name}.md, line {first.line}: {first.what.rstrip('.')}.")
    return lesson


def examine(name: str, text: str) -> tuple[Lesson | None, list[Problem]]:
    """What can be read of a lesson's file, None for nothing, and what is wrong with the rest."""
    if len(text) > LONGEST_FILE:
        return None, [Problem(1, f"a lesson has at most {LONGEST_FILE:,} characters")]
    lines = text.split("\n")
    problems: list[Problem] = []
    header: dict[str, Any] = {}
    begin, steps = 0, list[Step]()
    try:
        begin = _end_of_header(lines)
        try:
            header = _header(lines, begin)
        except Problem as problem:
            problems.append(problem)
        parts = _parts(lines, begin)
        if not 1 <= len(parts) <= MAX_STEPS:
            raise Problem(begin, f"a lesson has 1 to {MAX_STEPS} steps, each of which begins with “## ” and its title")
    except Problem as problem:
        return None, [*problems, problem]
    known: dict[str, MeasureCall] = {}
    is_known = True
    for part in parts:
        try:
            steps.append(_step(part, known))
            known = dict(steps[-1].measures)
        except Problem as problem:
            if is_known or not isinstance(problem, _UnknownName):
                problems.append(problem)
            is_known = False
    return Lesson(name, tuple(steps), **header), problems


def _end_of_header(lines: list[str]) -> int:
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "+++"][:2]
    if len(ends) < 2 or any(line.strip() for line in lines[: ends[0]]):
        raise Problem(1, "a lesson begins with a header between two lines of +++")
    return ends[1] + 1


def _header(lines: list[str], end: int) -> dict[str, Any]:
    begin = next(number for number, line in enumerate(lines) if line.rstrip() == "+++")
    line = begin + 2
    text = "\n".join(lines[begin + 1 : end - 1])
    header = _toml(text, line)
    kinds = {"title": str, "minutes": int, "aims": list, "asks": str, "teacher": str, "needs": str, "get": str}
    _only(header, kinds, text, line)
    title, minutes, aims = header.get("title", ""), header.get("minutes", 10), header.get("aims", [])
    if not title.strip() or len(title) > 100:
        raise Problem(line, 'the header needs a title, such as title = "Many heads"')
    if not 1 <= minutes <= 120:
        raise Problem(line, "minutes is a whole number from 1 to 120")
    if not all(isinstance(aim, str) and aim.strip() for aim in aims):
        raise Problem(line, "aims is a list of texts")
    return header | {"aims": tuple(aims)}


def _parts(lines: list[str], begin: int) -> list[_Part]:
    """The steps as they stand in the file."""
    parts: list[_Part] = []
    number = begin
    while number < len(lines):
        line = lines[number]
        fence = FENCE.fullmatch(line.rstrip())
        if line.startswith("## "):
            if not line[3:].strip():
                raise Problem(number + 1, "a step's heading needs a title")
            parts.append(_Part(line[3:].strip(), number + 1))
        elif not parts:
            if line.strip():
                raise Problem(number + 1, "what comes before the first step belongs into one: begin it with “## ”")
        elif fence:
            end = next((at for at in range(number + 1, len(lines)) if lines[at].rstrip() == fence["ticks"]), None)
            if end is None:
                raise Problem(number + 1, f"this block isn't closed; it needs a line of {fence['ticks']}")
            _put(parts[-1], fence["info"].strip(), lines[number : end + 1], number + 1)
            number = end
        else:
            parts[-1].words.append(line)
        number += 1
    return parts


def _put(part: _Part, info: str, lines: list[str], number: int) -> None:
    """Put a block where it belongs; one that only shows code is words."""
    if info not in BLOCKS:
        part.words += lines
    elif info in part.blocks:
        raise Problem(number, f"a step has one {info} at most")
    else:
        part.blocks[info] = _Block("\n".join(lines[1:-1]), number + 1)


def _step(part: _Part, known: Mapping[str, MeasureCall]) -> Step:
    blocks = part.blocks
    view = _view(blocks["view"]) if "view" in blocks else None
    scope = dict(known)
    if "measure" in blocks:
        scope |= _measures(blocks["measure"], view, known)
    words = _read(Words.read, "\n".join(part.words).strip(), part.line, scope)
    claim = blocks.get("claim", _Block("", 0))
    claims = tuple(
        _read(Expression.read, line.strip(), claim.line + number, scope)
        for number, line in enumerate(claim.text.split("\n"))
        if line.strip() and not line.lstrip().startswith("#")
    )
    reveal, to_try = (
        _read(Words.read, blocks[name].text.strip(), blocks[name].line, scope) if name in blocks else None
        for name in ("reveal", "try")
    )
    question = None
    if "question" in blocks:
        block = blocks["question"]
        try:
            question = read_question(_toml(block.text, block.line))
        except ExpressionError as error:
            raise Problem(block.line, str(error)) from None
        _known(question.names, scope, block.line)
    if reveal and not question:
        raise Problem(blocks["reveal"].line, "a reveal needs a question before it")
    if view:
        view = replace(view, opened=view.opened or _opened(view, question, words, scope))
    lines = {"": part.line} | {name: block.line for name, block in blocks.items()}
    return Step(part.title, words, scope, view, question, reveal, claims, to_try, lines)


def _opened(view: View, question: Question | None, words: Words, scope: Mapping[str, MeasureCall]) -> str:
    """When a view is opened that doesn't say so: after a question whose answer is of the very setup it shows."""
    if question is None:
        return "before"
    shown, hidden = Setup.of(view.parameters, {}), question.needed - words.names - question.shown
    return "after" if any(scope[name].setup == shown for name in hidden) else "before"


def _view(block: _Block) -> View:
    fields = _toml(block.text, block.line)
    _only(fields, {"page": str, "link": str, "opened": str, "needs": str}, block.text, block.line)
    if fields.get("page") not in PAGES:
        raise Problem(block.line, f"a view's page is one of {', '.join(PAGES)}")
    if fields.get("opened", "before") not in ("before", "after"):
        raise Problem(block.line, 'opened is "before" or "after" the question is answered')
    link = fields.get("link", "")
    if len(link) > LONGEST_LINK:
        raise Problem(block.line, f"a link has at most {LONGEST_LINK:,} characters")
    try:
        _parameters(link)
    except ValueError:
        raise Problem(block.line, "the link isn't one; copy what stands after the ? in the address bar") from None
    return View(fields["page"], link, fields.get("opened", ""), fields.get("needs", ""))


def _measures(block: _Block, view: View | None, known: Mapping[str, MeasureCall]) -> dict[str, MeasureCall]:
    tables = _toml(block.text, block.line)
    if len(tables) > MAX_MEASURES:
        raise Problem(block.line, f"a step measures at most {MAX_MEASURES} things")
    calls = {}
    for name, given in tables.items():
        if not NAME.fullmatch(name) or name in FUNCTIONS or keyword.iskeyword(name):
            raise Problem(block.line, f"a measure can't be called “{name[:40]}”; small letters, digits and _ will do")
        if name in known:
            raise Problem(block.line, f"an earlier step measures something under the name {name}; take another")
        if not isinstance(given, dict):
            raise Problem(block.line, f'{name} needs a table: [{name}], and below it what = "probability", say')
        try:
            calls[name] = MeasureCall.read(given, view.parameters if view else {})
        except ExpressionError as error:
            raise Problem(block.line, f"{name}: {error}") from None
    return calls


def _read(read: Callable[[str], Any], text: str, line: int, scope: Mapping[str, MeasureCall]) -> Any:
    try:
        expression = read(text)
    except ExpressionError as error:
        raise Problem(line, str(error)) from None
    _known(expression.names, scope, line)
    return expression


def _known(names: frozenset[str], scope: Mapping[str, MeasureCall], line: int) -> None:
    if missing := sorted(names - scope.keys()):
        close = did_you_mean(missing[0], scope, "what is measured here:")
        raise _UnknownName(line, f"nothing is measured under the name {missing[0][:40]}; {close}")


def _only(fields: Mapping[str, Any], kinds: Mapping[str, type], text: str, line: int) -> None:
    """Raises Problem for a field that isn't known, or is of another kind, at its line of the text."""
    for name, value in fields.items():
        before = re.split(rf"(?m)^\s*{re.escape(name)}\s*=", text)[0]
        at = line + before.count("\n")
        if name not in kinds:
            raise Problem(at, f"“{name[:40]}” isn't known here; {did_you_mean(name, kinds, 'there can be')}")
        if type(value) is not kinds[name]:
            kind = {str: "a text in quotes", int: "a whole number", list: "a list in brackets"}[kinds[name]]
            raise Problem(at, f"{name} is {kind}")


def _toml(text: str, line: int) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        at = re.search(r"\(at line (\d+), column \d+\)", str(error))
        what = str(error)[:150].split(" (at ")[0]
        raise Problem(line + (int(at[1]) - 1 if at else 0), f"this isn't TOML: {what}") from None


def _parameters(link: str) -> dict[str, str]:
    return dict(parse_qsl(link.removeprefix("?"), keep_blank_values=True, max_num_fields=100))
