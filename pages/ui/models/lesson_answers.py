"""What one visitor has answered in the lessons, and how far they have come.

A question is answered once, and once more after a discussion. Nothing of this leaves the visitor's session unless they
put it into a link, or save it as a file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

Answer = int | float | list[int]

LONGEST = 4_000
"""Characters of all answers in a link."""
MOST = 200
BETWEEN, WITHIN = "!", "~"
"""In a link: what stands between two answers, and between an answer's parts."""
LESSON = re.compile(r"[A-Za-z0-9_-]{1,80}")
MOST_STEPS = 1000


@dataclass(frozen=True)
class StepPlace:
    """A step of a lesson, counted from 0."""

    lesson: str
    step: int


@dataclass
class Given:
    """What was answered to one question."""

    first: Answer
    second: Answer | None = None
    """The one after discussion."""
    discussing: bool = False
    """Whether a second answer is still to come."""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When the first was given."""
    right: tuple[bool, ...] | None = None
    """Whether each of them is right; None while nobody has looked."""

    @property
    def last(self) -> Answer:
        """The answer that stands."""
        return self.first if self.second is None else self.second


@dataclass
class Answers:
    """What was answered, by step; where each lesson was left, and which of its steps were opened."""

    given: dict[StepPlace, Given] = field(default_factory=dict)
    opened: dict[str, set[int]] = field(default_factory=dict)
    last: StepPlace | None = None
    is_shared: bool = False
    """Whether the visitor puts them into the link."""

    @property
    def is_empty(self) -> bool:
        """True before the first lesson was opened."""
        return self.last is None and not self.given

    def open(self, place: StepPlace) -> None:
        """Remember that a step is on screen."""
        self.opened.setdefault(place.lesson, set()).add(place.step)
        self.last = place

    def give(self, place: StepPlace, answer: Answer, *, discuss: bool = False) -> None:
        """Store an answer: the first, or the second if the first is being discussed. Others change nothing."""
        before = self.given.get(place)
        if before is None:
            self.given[place] = Given(answer, discussing=discuss)
        elif before.discussing:
            before.discussing = False
            before.second = None if answer == before.first else answer

    def change(self, place: StepPlace, answer: Answer, *, second: bool) -> None:
        """Put another answer in the place of the first, or of the second."""
        given = self.given[place]
        if second:
            given.second = None if answer == given.first else answer
        else:
            given.first = answer

    def discuss(self, place: StepPlace) -> None:
        """Let an answer be given a second time, if it hasn't been yet."""
        if (given := self.given.get(place)) and given.second is None:
            given.discussing = True

    def is_done(self, lesson: str, steps: int, questions: list[int]) -> bool:
        """Whether all of a lesson's steps were opened and its questions answered."""
        answered = all(self._stands(StepPlace(lesson, step)) for step in questions)
        return answered and len(self.opened.get(lesson, ())) >= steps

    def answered(self, lesson: str) -> int:
        """How many of a lesson's questions have an answer that stands."""
        return sum(place.lesson == lesson and self._stands(place) for place in self.given)

    def clear(self, lesson: str) -> None:
        """Forget what was answered in one lesson."""
        self.given = {place: given for place, given in self.given.items() if place.lesson != lesson}
        self.opened.pop(lesson, None)

    def take_over(self, brought: dict[StepPlace, Given]) -> None:
        """Add what a link brings, where nothing has been answered yet."""
        for place, given in brought.items():
            self.given.setdefault(place, given)
            self.opened.setdefault(place.lesson, set()).add(place.step)

    def as_text(self) -> str:
        """The answers that stand as a link has them; the latest, if there isn't room for all."""
        found: list[str] = []
        for place, given in reversed(self.given.items()):
            parts = [given.first] if given.second is None else [given.first, given.second]
            texts = [json.dumps(part, separators=(",", ":")) for part in parts]
            code = WITHIN.join([place.lesson, str(place.step), *texts])
            if len(found) >= MOST or len(BETWEEN.join([*found, code])) > LONGEST:
                break
            found.append(code)
        return BETWEEN.join(reversed(found))

    def _stands(self, place: StepPlace) -> bool:
        return place in self.given and not self.given[place].discussing


def from_text(text: str) -> dict[StepPlace, Given]:
    """What `as_text` wrote. The text is untrusted. Raises ValueError, which says what would do."""
    if len(text) > LONGEST:
        raise ValueError(f"answers have at most {LONGEST:,} characters")
    found = {}
    for code in text.split(BETWEEN)[:MOST] if text else ():
        lesson, *rest = code.split(WITHIN)
        if not LESSON.fullmatch(lesson) or not 2 <= len(rest) <= 3 or not re.fullmatch(r"[0-9]{1,3}", rest[0]):
            raise ValueError("answers are copied from the link of whoever gave them")
        answers = [_answer(part) for part in rest[1:]]
        found[StepPlace(lesson, int(rest[0]))] = Given(answers[0], answers[1] if answers[1:] else None)
    return found


def _answer(text: str) -> Answer:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    several = isinstance(found, list) and len(found) <= 20 and all(type(each) is int for each in found)
    if not several and (type(found) not in (int, float) or not abs(found) <= 1e9):
        raise ValueError("answers are numbers, and lists of whole numbers")
    return found
