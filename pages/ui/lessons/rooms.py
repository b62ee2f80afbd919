"""Runs rooms, in which a class votes on the questions of a lesson; all of it stays in memory.

A teacher opens a room and leads it from step to step; students join with its code. A question is voted on twice, before
and after the class has discussed it (peer instruction, Mazur 1997), and then revealed. There are no names: teacher and
students have a key each, which only their browser's tab stores.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from pages.ui.models.lesson_answers import StepId

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Of which codes are made: no vowels, so that none is a word, and no digits that look like letters."""
CODE_LENGTH = 5
MAX_ROOMS, MAX_MEMBERS, MAX_POLLS, LONGEST_ANSWER = 20, 60, 200, 200
"""Rooms of a server, members of a room, steps that are voted on in it, characters of an answer."""
HERE = 12.0
"""Seconds after its last poll that a page counts as connected; see `FOLLOW_EVERY` of the pages."""
IDLE = 2 * 3600.0
"""Seconds without the teacher after which a room ends by itself."""


class RoomError(ValueError):
    """What can't be done in a room, as a sentence that says what would do."""


class Phase(IntEnum):
    """Of a question; it never goes back."""

    FIRST = 0
    """Everybody votes alone."""
    SECOND = 1
    """The class has discussed it and votes again."""
    REVEALED = 2


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

    def has_vote_of(self, member: str) -> bool:
        """Whether a member has voted in any phase."""
        return member in self.first or member in self.second


class Tally(NamedTuple):
    """The votes on a step, counted."""

    phase: Phase
    first: Counter[str]
    second: Counter[str]
    voted: int
    """Members who have voted in the present phase; once it is revealed, in any."""
    here: int
    """Members in the room, who could have."""
    pairs: tuple[tuple[str, str], ...]
    """Of each member who voted twice: the first answer and the second."""

    def changes(self, right: Callable[[str], bool]) -> tuple[int, int]:
        """How many changed from a wrong answer to a right one, and how many from a right to a wrong."""
        sides = Counter((right(first), right(second)) for first, second in self.pairs)
        return sides[False, True], sides[True, False]


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

    def looks_like(self, other: State) -> bool:
        """Whether a page that was drawn for one state can stay as it is for the other."""
        same = {"teacher_here": True, "deadline": None}
        return self._replace(**same) == other._replace(**same)


@dataclass
class _Room:
    code: str
    key: str
    """The teacher's."""
    led_at: float
    """When the teacher's page polled last."""
    step_id: StepId | None = None
    members: dict[str, float] = field(default_factory=dict)
    """When the page of each polled last."""
    polls: dict[StepId, Poll] = field(default_factory=dict)


class Rooms:
    """All rooms of a server. Every method can be called from any thread.

    clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rooms: dict[str, _Room] = {}

    def open(self, step_id: StepId | None = None) -> tuple[str, str]:
        """Open a room; returns its code and the teacher's key. RoomError if there are too many."""
        with self._lock:
            self._sweep()
            if len(self._rooms) >= MAX_ROOMS:
                raise RoomError(
                    f"This server already has {MAX_ROOMS} open rooms. Try again later, or run the app yourself."
                )
            code = next(code for code in _codes() if code not in self._rooms)
            self._rooms[code] = _Room(code, secrets.token_hex(16), self._clock(), step_id)
            return code, self._rooms[code].key

    def join(self, code: str, member: str | None = None) -> tuple[str, str]:
        """Join a room; returns its code as it is written, and the member's key.

        code: as it was typed, in any case, spaces and dashes anywhere. member: the key of a student who comes back, and
        whose votes then aren't counted twice. RoomError if there is no such room, or if it is full.
        """
        with self._room(tidy(code)) as room:
            if member is None or member not in room.members:
                self._remove_disconnected(room)
                if len(room.members) >= MAX_MEMBERS:
                    raise RoomError(f"This room is full: it holds {MAX_MEMBERS} people.")
                if member is None or not any(poll.has_vote_of(member) for poll in room.polls.values()):
                    member = secrets.token_hex(16)
            room.members[member] = self._clock()
            return room.code, member

    def leave(self, code: str, member: str) -> None:
        """Leave a room; the member's votes stay. Nothing happens if there is no such room or member."""
        with self._lock:
            if room := self._rooms.get(code):
                room.members.pop(member, None)

    def state(self, code: str, member: str) -> State:
        """What a student's page shows, which polls with this. RoomError if the room has ended."""
        with self._room(code) as room:
            if member in room.members:
                room.members[member] = self._clock()
            return self._state(room)

    def led(self, code: str, key: str) -> State:
        """What the teacher's page shows, which polls with this. RoomError if the room has ended."""
        with self._led(code, key) as room:
            return self._state(room)

    def move(self, code: str, key: str, step_id: StepId | None) -> None:
        """Move the room to a step; None lets students navigate freely."""
        with self._led(code, key) as room:
            room.step_id = step_id

    def advance(self, code: str, key: str, step_id: StepId, phase: Phase) -> None:
        """Bring the question of a step to a later phase; an earlier one is left as it is."""
        with self._led(code, key) as room:
            poll = self._poll(room, step_id)
            if phase > poll.phase:
                poll.phase, poll.deadline = phase, None

    def show(self, code: str, key: str, step_id: StepId) -> None:
        """Record that the class sees how it voted on a step: from now on no vote of this phase is changed."""
        with self._led(code, key) as room:
            poll = self._poll(room, step_id)
            poll.shown = poll.phase

    def give_time(self, code: str, key: str, step_id: StepId, seconds: float) -> None:
        """Give the class time for the question of a step; if there is some left, so much more."""
        with self._led(code, key) as room:
            poll = self._poll(room, step_id)
            poll.deadline = max(poll.deadline or 0.0, self._clock()) + seconds

    def left(self, deadline: float) -> float:
        """Seconds until a deadline; 0 once it is over."""
        return max(0.0, deadline - self._clock())

    def vote(self, code: str, member: str, step_id: StepId, answer: str) -> None:
        """Answer the question of a step, or change the answer. RoomError if it is too late, or too long."""
        if not 0 < len(answer) <= LONGEST_ANSWER:
            raise RoomError(f"An answer has between 1 and {LONGEST_ANSWER} characters; this one has {len(answer)}.")
        with self._room(code) as room:
            if member not in room.members:
                raise RoomError("You are no longer in this room. Join it again with its code.")
            room.members[member] = self._clock()
            poll = self._poll(room, step_id)
            if poll.phase is Phase.REVEALED:
                raise RoomError("The answer has been revealed; voting is closed.")
            votes = poll.first if poll.phase is Phase.FIRST else poll.second
            if poll.shown is poll.phase and votes.get(member, answer) != answer:
                raise RoomError("The votes have been shown; you can't change yours.")
            votes[member] = answer

    def awaits(self, code: str, member: str, step_id: StepId, phase: Phase) -> bool:
        """Whether the question of a step is in a phase in which a member has still to vote."""
        with self._room(code) as room:
            poll = room.polls.get(step_id, Poll())
            votes = {Phase.FIRST: poll.first, Phase.SECOND: poll.second}.get(phase)
            return poll.phase is phase and votes is not None and member not in votes

    def tally(self, code: str, key: str, step_id: StepId) -> Tally:
        """The votes on a step, for the teacher."""
        with self._led(code, key) as room:
            return self._tally(room, room.polls.get(step_id, Poll()))

    def tallies(self, code: str, key: str) -> dict[StepId, Tally]:
        """The votes on every step that was voted on, for the teacher."""
        with self._led(code, key) as room:
            return {
                step_id: self._tally(room, poll) for step_id, poll in room.polls.items() if poll.first or poll.second
            }

    def end(self, code: str, key: str) -> None:
        """End a room for everybody."""
        with self._led(code, key):
            del self._rooms[code]

    def __len__(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._rooms)

    def _state(self, room: _Room) -> State:
        poll = room.polls.get(room.step_id) if room.step_id else None
        poll = poll or Poll()
        return State(room.step_id, poll.phase, self._is_here(room.led_at), poll.shown is poll.phase, poll.deadline)

    def _tally(self, room: _Room, poll: Poll) -> Tally:
        here = {member for member, seen in room.members.items() if self._is_here(seen)}
        voted = {Phase.FIRST: poll.first.keys(), Phase.SECOND: poll.second.keys()}.get(
            poll.phase, poll.first.keys() | poll.second.keys()
        )
        pairs = tuple((poll.first[member], again) for member, again in poll.second.items() if member in poll.first)
        return Tally(
            poll.phase,
            Counter(poll.first.values()),
            Counter(poll.second.values()),
            len(voted),
            len(here | voted),
            pairs,
        )

    def _poll(self, room: _Room, step_id: StepId) -> Poll:
        if step_id not in room.polls and len(room.polls) >= MAX_POLLS:
            raise RoomError("This room has reached its limit of questions. Open another one.")
        return room.polls.setdefault(step_id, Poll())

    def _is_here(self, seen: float) -> bool:
        return self._clock() - seen <= HERE

    def _remove_disconnected(self, room: _Room) -> None:
        """Make room in a full one: members whose pages no longer poll leave it."""
        if len(room.members) >= MAX_MEMBERS:
            room.members = {key: seen for key, seen in room.members.items() if self._is_here(seen)}

    @contextmanager
    def _room(self, code: str) -> Iterator[_Room]:
        with self._lock:
            self._sweep()
            if code not in self._rooms:
                raise RoomError(
                    "This room has ended, or there is none of this code. Check the code, or work on your own."
                )
            yield self._rooms[code]

    @contextmanager
    def _led(self, code: str, key: str) -> Iterator[_Room]:
        with self._room(code) as room:
            if not secrets.compare_digest(room.key.encode(), key.encode()):
                raise RoomError("Only the teacher who opened this room can do that.")
            room.led_at = self._clock()
            yield room

    def _sweep(self) -> None:
        """End the rooms whose teachers have been disconnected for long."""
        now = self._clock()
        self._rooms = {code: room for code, room in self._rooms.items() if now - room.led_at <= IDLE}


def tidy(code: str) -> str:
    """A code as rooms have it, from one that somebody typed: capital letters alone."""
    return "".join(letter for letter in code[:40].upper() if letter.isalpha())


def _codes() -> Iterator[str]:
    while True:
        yield "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))
