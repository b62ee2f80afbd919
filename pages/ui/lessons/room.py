"""A room as it is stored: where its teacher has it, who is in it, and the votes on each step."""

import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self

from pages.ui.session.lesson_answers import Answer, StepId

HEAD = "room"
"""The name of the text that has all of a room but its votes."""


class RoomError(ValueError):
    """What can't be done in a room, as a sentence that says what would do."""


class NoRoomError(RoomError):
    """There is no such room, or this isn't its key."""


class NotInRoomError(NoRoomError):
    """There is such a room, and this isn't the key of anybody in it."""


class TooOftenError(RoomError):
    """Somebody has tried too many codes, or joined too often."""


class RoomsAwayError(RoomError):
    """Rooms can't be reached at the moment; they are as they were when they can."""


class Phase(IntEnum):
    """Of a question; it never goes back."""

    FIRST = 0
    """Everybody votes alone."""
    SECOND = 1
    """The class has discussed it and votes again."""
    REVEALED = 2


def as_text(answer: Answer) -> str:
    """An answer as a room counts it: equal answers are equal texts."""
    return json.dumps(answer, separators=(",", ":"))


def answer_of(text: str) -> Answer:
    """The answer that was counted so."""
    return json.loads(text)


@dataclass
class Poll:
    """The votes on one step: of each member the first, and the second where there is one."""

    phase: Phase = Phase.FIRST
    first: dict[str, str] = field(default_factory=dict)
    second: dict[str, str] = field(default_factory=dict)
    shown: Phase | None = None
    """The phase whose votes the class has seen: in it, no vote can be changed any more."""
    deadline: float | None = None
    """On the rooms' clock, the end of the time to answer; nothing else ends with it."""


@dataclass
class Room:
    """A room. Who is connected at the moment is stored apart from it, since it changes all the time."""

    code: str
    key: str
    """The teacher's."""
    step_id: StepId | None = None
    members: list[str] = field(default_factory=list)
    """The keys of the students in it."""
    polls: MutableMapping[StepId, Poll] = field(default_factory=dict)
    lesson: str = ""
    """The name of the teacher's own lesson, whose text is stored beside the room; "" for none."""
    revision: int = 0
    """How often the teacher has changed what its pages show."""
    changed_at: float = 0.0
    """When that was last, on the store's clock."""

    def as_fields(self) -> dict[str, str]:
        """As texts, of which `from_fields` makes an equal room; of one that it made, those that may have changed."""
        steps = [[step_id.lesson, step_id.step] for step_id in self.polls]
        step = self.step_id and [self.step_id.lesson, self.step_id.step]
        polls = self.polls.read if isinstance(self.polls, StoredPolls) else self.polls
        return {
            HEAD: json.dumps(
                [self.code, self.key, step, self.members, steps, self.lesson, self.revision, self.changed_at]
            ),
            **{_field(step_id): json.dumps(vars(poll)) for step_id, poll in polls.items()},
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> Self:
        """The room of the texts that `as_fields` has made."""
        code, key, step, members, steps, *others = json.loads(fields[HEAD])  # which an older server doesn't store
        polls = StoredPolls([StepId(*each) for each in steps], fields)
        return cls(code, key, StepId(*step) if step else None, members, polls, *others)


class StoredPolls(MutableMapping[StepId, Poll]):
    """The polls of a stored room, in order. Each is read when it is asked for: a lecture's are long, and few are asked
    for at once."""

    def __init__(self, steps: Iterable[StepId], fields: Mapping[str, str]) -> None:
        self._steps, self._fields = dict.fromkeys(steps), fields
        self.read: dict[StepId, Poll] = {}
        """Those that were asked for, and may have been changed."""

    def __getitem__(self, step_id: StepId) -> Poll:
        if step_id not in self._steps:
            raise KeyError(step_id)
        if step_id not in self.read:
            fields = json.loads(self._fields[_field(step_id)])
            shown = None if fields["shown"] is None else Phase(fields["shown"])
            self.read[step_id] = Poll(**fields | {"phase": Phase(fields["phase"]), "shown": shown})
        return self.read[step_id]

    def __setitem__(self, step_id: StepId, poll: Poll) -> None:
        self._steps[step_id] = None
        self.read[step_id] = poll

    def __delitem__(self, step_id: StepId) -> None:
        del self._steps[step_id]
        self.read.pop(step_id, None)

    def __contains__(self, step_id: object) -> bool:
        return step_id in self._steps

    def __iter__(self) -> Iterator[StepId]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _field(step_id: StepId) -> str:
    return f"{step_id.step} {step_id.lesson}"
