"""Stores one visitor's answers and progress in the lessons.

A question is answered once, and once more after a discussion. Nothing of this leaves the visitor's session unless they
put it into a link, or save it as a file.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

Answer = int | float | list[int]
_LIMITS = Field(ge=-1e9, le=1e9)
_ANSWER: TypeAdapter[Answer] = TypeAdapter(
    Annotated[int, _LIMITS] | Annotated[float, _LIMITS] | Annotated[list[int], Field(max_length=20)]
)
MAX_CHARACTERS = 4_000
"""Characters of all answers in a link."""
MAX_ANSWERS = 200
BETWEEN, WITHIN = "!", "~"
"""In a link: what stands between two answers, and between an answer's parts."""
LESSON = re.compile(r"[A-Za-z0-9_-]{1,80}")
MAX_STEPS = 1000


@dataclass(frozen=True)
class StepId:
    """A step of a lesson, counted from 0."""

    lesson: str
    step: int


@dataclass
class Response:
    first: Answer
    second: Answer | None = None
    """The one after discussion."""
    discussing: bool = False
    """Whether a second answer is still to come."""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When the first answer was given."""

    @property
    def last(self) -> Answer:
        return self.first if self.second is None else self.second


@dataclass
class Answers:
    """A visitor's responses by step, and the steps that were opened."""

    responses: dict[StepId, Response] = field(default_factory=dict)
    opened: dict[str, set[int]] = field(default_factory=dict)
    last: StepId | None = None
    is_shared: bool = False
    """Whether the visitor puts them into the link."""

    @property
    def is_empty(self) -> bool:
        """True before the first lesson was opened."""
        return self.last is None and not self.responses

    def open(self, step_id: StepId) -> None:
        """Note that a step was opened."""
        self.opened.setdefault(step_id.lesson, set()).add(step_id.step)
        self.last = step_id

    def keep_vote(self, step_id: StepId, first: Answer, second: Answer | None = None) -> None:
        """Store what a room has of an answer, in the place of any other."""
        second = None if second == first else second
        before = self.responses.get(step_id)
        if before is None or before.discussing or (before.first, before.second) != (first, second):
            self.responses[step_id] = Response(first, second)
            self.opened.setdefault(step_id.lesson, set()).add(step_id.step)

    def is_done(self, lesson: str, steps: int, questions: Sequence[int]) -> bool:
        """Whether all of a lesson's steps were opened and its questions answered."""
        return not self.unanswered(lesson, questions) and len(self.opened.get(lesson, ())) >= steps

    def unanswered(self, lesson: str, questions: Sequence[int]) -> list[int]:
        """The steps of a lesson whose questions have no answer that stands."""
        return [step for step in questions if not self._stands(StepId(lesson, step))]

    def answered(self, lesson: str) -> int:
        """How many of a lesson's questions have an answer that stands."""
        return sum(step_id.lesson == lesson and self._stands(step_id) for step_id in self.responses)

    def clear(self, lesson: str) -> None:
        """Forget what was answered in one lesson."""
        self.responses = {step_id: response for step_id, response in self.responses.items() if step_id.lesson != lesson}
        self.opened.pop(lesson, None)

    def merge(self, other: dict[StepId, Response]) -> None:
        """Add the responses of a link where there are none yet."""
        for step_id, response in other.items():
            self.responses.setdefault(step_id, response)
            self.opened.setdefault(step_id.lesson, set()).add(step_id.step)

    def as_text(self) -> str:
        """The answers that stand as a link has them; the latest, if there isn't room for all."""
        codes: list[str] = []
        for step_id, response in reversed(self.responses.items()):
            parts = [response.first] if response.second is None else [response.first, response.second]
            texts = [json.dumps(part, separators=(",", ":")) for part in parts]
            code = WITHIN.join([step_id.lesson, str(step_id.step), *texts])
            if len(codes) >= MAX_ANSWERS or len(BETWEEN.join([*codes, code])) > MAX_CHARACTERS:
                break
            codes.append(code)
        return BETWEEN.join(reversed(codes))

    def _stands(self, step_id: StepId) -> bool:
        return step_id in self.responses and not self.responses[step_id].discussing


def from_text(text: str) -> dict[StepId, Response]:
    """What `as_text` wrote. The text is untrusted. Raises ValueError, which says what would do."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"answers have at most {MAX_CHARACTERS:,} characters")
    responses = {}
    for code in text.split(BETWEEN)[:MAX_ANSWERS] if text else ():
        lesson, *rest = code.split(WITHIN)
        if not LESSON.fullmatch(lesson) or not 2 <= len(rest) <= 3 or not re.fullmatch(r"[0-9]{1,3}", rest[0]):
            raise ValueError("answers are copied from the link of whoever gave them")
        answers = [_answer(part) for part in rest[1:]]
        responses[StepId(lesson, int(rest[0]))] = Response(answers[0], answers[1] if answers[1:] else None)
    return responses


def _answer(text: str) -> Answer:
    try:
        return _ANSWER.validate_json(text, strict=True)
    except ValidationError:
        raise ValueError("answers are numbers, and lists of whole numbers") from None
