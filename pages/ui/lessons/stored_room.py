"""Writes a room as the texts that Redis stores, and reads it back: one for each step's votes, and one for the rest."""

import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from pages.ui.lessons.room import Phase, Poll, Room
from pages.ui.session.lesson_answers import StepId

HEAD = "room"
"""The name of the text that has all of a room but its votes."""


def fields_of(room: Room) -> dict[str, str]:
    """A room as texts. Of a room that `room_of` has made, the polls that nobody has asked for since are left out."""
    polls = room.polls.read if isinstance(room.polls, StoredPolls) else room.polls
    head = {name: value for name, value in vars(room).items() if name != "polls"}
    head |= {"step_id": _pair(room.step_id), "steps": [_pair(step_id) for step_id in room.polls]}
    return {HEAD: json.dumps(head), **{_field(step_id): json.dumps(vars(poll)) for step_id, poll in polls.items()}}


def room_of(fields: Mapping[str, str]) -> Room:
    """The room of all its texts."""
    head = json.loads(fields[HEAD])
    polls = StoredPolls([StepId(*each) for each in head.pop("steps")], fields)
    return Room(**head | {"step_id": head["step_id"] and StepId(*head["step_id"]), "polls": polls})


class StoredPolls(MutableMapping[StepId, Poll]):
    """The polls of a stored room, in order. Each is parsed when it is asked for: a lecture's are long, few needed."""

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


def _pair(step_id: StepId | None) -> list[str | int] | None:
    return step_id and [step_id.lesson, step_id.step]


def _field(step_id: StepId) -> str:
    return f"{step_id.step} {step_id.lesson}"
