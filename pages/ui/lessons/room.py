"""Defines a room and its rules: where its teacher has it, who is in it, who may vote, and how votes are counted.

A question is voted on twice, before and after the class has discussed it (peer instruction, Mazur 1997), and then
revealed.
"""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from pages.ui.session.lesson_answers import Answer, StepId

TEACHER = "teacher"
"""Stands for the teacher among those who are connected."""
Seen = Mapping[str, float]
"""When the page of each member, and of the teacher, was connected last, on the store's clock."""
MAX_POLLS, LONGEST_ANSWER = 200, 200
"""Steps that are voted on in a room, characters of an answer."""
HERE = 12.0
"""Seconds that a page counts as connected after its room heard of it."""
BEHIND = 5.0
"""Seconds after a change by the teacher from which on a connected page that hasn't drawn it counts as behind."""
NOT_IN_IT = "You are no longer in this room. Join it again with its code."


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


class Tally(NamedTuple):
    """The votes on a step, counted: of those who are in the room, and of a question that is revealed, who were then."""

    phase: Phase
    first: Counter[str]
    second: Counter[str]
    voted: int
    """Members who have voted in the present phase; once it is revealed, in any."""
    here: int
    """Members in the room, who could have."""
    pairs: tuple[tuple[str, str], ...]
    """Of each member who voted twice: the first answer and the second."""
    behind: int
    """Connected members whose page hasn't drawn yet what the teacher did some seconds ago."""

    def changes(self, right: Callable[[str], bool]) -> tuple[int, int]:
        """How many changed from a wrong answer to a right one, and how many from a right to a wrong."""
        sides = Counter((right(first), right(second)) for first, second in self.pairs)
        return sides[False, True], sides[True, False]


class MemberVotes(NamedTuple):
    """What one member has answered to a question, and the question's phase."""

    phase: Phase = Phase.FIRST
    first: str | None = None
    second: str | None = None

    @property
    def given(self) -> list[str]:
        """The answers that there are, at most two."""
        return [answer for answer in (self.first, self.second) if answer is not None]


class State(NamedTuple):
    """What a student's page shows; equal states look the same."""

    step_id: StepId | None
    """Where the teacher has the room; None while students navigate freely."""
    phase: Phase
    """Of the question there."""
    teacher_here: bool
    shown: bool = False
    """Whether the class has seen the votes of this phase."""
    deadline: float | None = None
    """See `Poll`; `Rooms.left` tells how far off it is."""
    lesson: str = ""
    """The name of the teacher's own lesson that the room has; "" for none."""
    revision: int = 0
    """See `Room`."""


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

    def is_led_by(self, key: str) -> bool:
        """Whether a key is the teacher's."""
        return secrets.compare_digest(self.key.encode(), key.encode())

    def enter(self, member: str, seen: Seen, now: float, size: int) -> None:
        """Take a student in; of a full room, whoever has been away for longest leaves it. Raises: RoomError."""
        if member in self.members:
            return
        if len(self.members) >= size:
            away = min(self.members, key=lambda key: seen.get(key, 0.0))
            if is_here(seen, away, now):
                raise RoomError(
                    f"This room is full: it takes {size:,} students. Ask your teacher, or work on your own."
                )
            self.members.remove(away)
        self.members.append(member)

    def poll(self, step_id: StepId) -> Poll:
        """The votes on a step, which are kept from now on. Raises: RoomError for too many steps."""
        if step_id not in self.polls and len(self.polls) >= MAX_POLLS:
            raise RoomError("This room has reached its limit of questions. Open another one.")
        return self.polls.setdefault(step_id, Poll())

    def advance(self, step_id: StepId, phase: Phase) -> None:
        """Bring a question to a later phase; an earlier one is left as it is. What is revealed is no longer changed."""
        poll = self.poll(step_id)
        if phase > poll.phase:
            poll.phase, poll.deadline = phase, None
            if phase is Phase.REVEALED:
                poll.first, poll.second = self._of_members(poll.first), self._of_members(poll.second)

    def vote(self, member: str, step_id: StepId, answer: str, within: Phase | None) -> None:
        """See `Rooms.vote`."""
        self.check_member(member)
        poll = self.poll(step_id)
        if poll.phase is Phase.REVEALED:
            raise RoomError("The answer has been revealed; voting is closed.")
        if within not in (None, poll.phase):
            raise RoomError("The class is voting again by now.")
        votes = poll.first if poll.phase is Phase.FIRST else poll.second
        if poll.shown is poll.phase and votes.get(member, answer) != answer:
            raise RoomError("The votes have been shown; you can't change yours.")
        votes[member] = answer

    def check_member(self, key: str) -> None:
        """Raises: NotInRoomError for anybody else."""
        if key not in self.members:
            raise NotInRoomError(NOT_IN_IT)

    def state(self, seen: Seen, now: float) -> State:
        poll = (self.polls.get(self.step_id) if self.step_id else None) or Poll()
        teacher_here, shown = is_here(seen, TEACHER, now), poll.shown is poll.phase
        return State(self.step_id, poll.phase, teacher_here, shown, poll.deadline, self.lesson, self.revision)

    def tally(self, seen: Seen, drawn: Mapping[str, int], step_id: StepId | None, now: float) -> Tally:
        """drawn: the revision that each member's page has drawn last; of a page that has just joined, nothing."""
        poll = self.polls.get(step_id, Poll()) if step_id else Poll()
        here = {member for member in self.members if is_here(seen, member, now)}
        first, second = poll.first, poll.second
        if poll.phase is not Phase.REVEALED:
            first, second = self._of_members(first), self._of_members(second)
        voted = {Phase.FIRST: first.keys(), Phase.SECOND: second.keys()}.get(poll.phase, first.keys() | second.keys())
        pairs = tuple((first[member], again) for member, again in second.items() if member in first)
        is_late = now - self.changed_at > BEHIND
        behind = sum(drawn.get(member, self.revision) < self.revision for member in here) if is_late else 0
        counts = Counter(first.values()), Counter(second.values())
        return Tally(poll.phase, *counts, len(voted), len(here | voted), pairs, behind)

    def _of_members(self, votes: Mapping[str, str]) -> dict[str, str]:
        members = set(self.members)
        return {member: answer for member, answer in votes.items() if member in members}


def is_here(seen: Seen, who: str, now: float) -> bool:
    return who in seen and now - seen[who] <= HERE
