"""Runs rooms, in which a class votes on the questions of a lesson: opens, finds, changes and ends them in a store.

A teacher opens a room and leads it from step to step; students join with its code. There are no names: teacher and
students have a key each, which only their browser stores. All tabs of a browser are one student.
"""

import contextlib
import functools
import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from pages.ui.lessons.lesson import LONGEST_FILE
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.room import (
    LONGEST_ANSWER,
    NOT_IN_IT,
    TEACHER,
    MemberVotes,
    NoRoomError,
    NotInRoomError,
    Phase,
    Poll,
    Room,
    RoomError,
    Seen,
    State,
    Tally,
)
from pages.ui.lessons.room_stores import MemoryStore, RoomStore, room_store
from pages.ui.session.lesson_answers import StepId

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Of which codes are made: no vowels, so that none is a word, and no digits that look like letters."""
SHORTEST_CODE, GUESSED = 5, 100_000
"""Letters of a code; it has more where one random code in so many would be that of an open room."""
ROOMS_VARIABLE, SIZE_VARIABLE = "HEADSUP_ROOMS", "HEADSUP_ROOM_SIZE"
"""The environment variables that say how many rooms may be open, and how many students one takes."""
ROOMS, MOST_ROOMS, SIZE, LARGEST_SIZE = 20, 10_000, 60, 1_000
"""What they say where they aren't set, and the most they can say."""
IDLE = 2 * 3600.0
"""Seconds without the teacher after which a room ends by itself."""
ENDED = "This room has ended, or no room has this code. Check the code, or work on your own."
KEY = re.compile(r"[0-9a-f]{32}")
"""Of a member, or a teacher."""
T = TypeVar("T")


class Versions(NamedTuple):
    """What tells a page whether it shows its room as it is: equal versions look the same."""

    teacher_key: str
    members: frozenset[str]
    teacher: str
    student: str

    def of(self, key: str) -> str | None:
        """For the page of a key; None for that of nobody in the room."""
        if secrets.compare_digest(self.teacher_key.encode(), key.encode()):
            return self.teacher
        return self.student if key in self.members else None


class Rooms:
    """All rooms of a store. Every method can be called from any thread.

    Each raises RoomError for a room that has ended, and for what it says besides; RoomsAwayError if the store can't be
    reached. most: how many rooms may be open. size: how many students a room takes.
    """

    def __init__(self, store: RoomStore | None = None, *, most: int = ROOMS, size: int = SIZE) -> None:
        self.store = MemoryStore() if store is None else store
        self.most, self.size = most, size

    def open(self, step_id: StepId | None = None) -> tuple[str, str]:
        """Open a room; returns its code and the teacher's key. RoomError if there are too many."""
        key = secrets.token_hex(16)
        while (count := len(self)) < self.most:
            code = "".join(secrets.choice(LETTERS) for _ in range(code_length(count + 1)))
            if self.store.add(Room(code, key, step_id), self.most):
                return code, key
        raise RoomError(f"This server already has {self.most:,} open rooms. Try again later, or run the app yourself.")

    def join(self, code: str, member: str | None = None, admit: Callable[[], object] = lambda: None) -> tuple[str, str]:
        """Join a room; returns its code as it is written, and the member's key.

        code: as it was typed, in any case and width, spaces and dashes anywhere. member: the key by which a browser is
        in the room, however often it joins; None for a new one. admit: called before somebody enters who isn't in the
        room; it may raise a RoomError. RoomError if there is no such room, or if it is full.
        """
        code = tidy(code)
        key = member if member and KEY.fullmatch(member) else secrets.token_hex(16)
        if not self._read(code, lambda room, seen: key in room.members):
            admit()
            now = self.store.now()
            self._update(code, lambda room, seen: room.enter(key, seen, now, self.size))
        self._see(code, key)
        return code, key

    def leave(self, code: str, member: str) -> None:
        """Leave a room, which no longer counts the member's votes on what isn't revealed, unless they come back.

        Nothing happens if there is no such room or member.
        """

        def change(room: Room, seen: Seen) -> None:
            room.members = [key for key in room.members if key != member]

        with contextlib.suppress(NoRoomError):
            self._update(code, change)

    def state(self, code: str, member: str, step_id: StepId | None = None) -> State:
        """What a student's page shows. step_id: the step that is on it, if any.

        A page that is where the teacher has the room counts as up to date from now on. NotInRoomError for anybody who
        isn't a member.
        """
        now = self.store.now()

        def look(room: Room, seen: Seen) -> State:
            room.check_member(member)
            return room.state(seen, now)

        state = self._read(code, look)
        self._see(code, member)
        if state.step_id in (None, step_id):
            self.store.note_drawn(code, member, state.revision)
        return state

    def led(self, code: str, key: str) -> State:
        """What the teacher's page shows."""
        now = self.store.now()
        self._see_teacher(code, key)
        return self._read(code, lambda room, seen: room.state(seen, now))

    def versions(self, code: str, connected: Iterable[str] = ()) -> Versions:
        """What the pages of a room show now. connected: the keys of those whose pages follow it."""
        now, drawn = self.store.now(), self.store.drawn(code)

        def look(room: Room, seen: Seen) -> tuple[Versions, dict[str, float]]:
            people = {TEACHER if key == room.key else key: now for key in connected if key in {room.key, *room.members}}
            state = room.state({**seen, **people}, now)
            tally = room.tally({**seen, **people}, drawn, state.step_id, now)
            student, teacher = (blake2b(repr(it).encode(), digest_size=8).hexdigest() for it in (state, (state, tally)))
            return Versions(room.key, frozenset(room.members), teacher, student), people

        versions, people = self._read(code, look)
        if people:
            self.store.see(code, people)
        return versions

    def move(self, code: str, key: str, step_id: StepId | None) -> None:
        """Move the room to a step; None lets students navigate freely."""

        def change(room: Room, seen: Seen) -> None:
            room.step_id = step_id

        self._lead(code, key, change)

    def carry(self, code: str, key: str, text: str) -> None:
        """Have the room hold its teacher's own lesson, in the place of one before it. RoomError for too long a text."""
        if len(text) > LONGEST_FILE:
            raise RoomError(f"A room's lesson has at most {LONGEST_FILE:,} characters.")

        def change(room: Room, seen: Seen) -> None:
            room.lesson = name_of(text)

        self._see_teacher(code, key)
        self.store.put_lesson(code, text)  # before anybody hears of it
        self._lead(code, key, change)

    def lesson(self, code: str, key: str) -> str:
        """The text of the room's own lesson, for who is in it; "" for none."""
        if not self._read(code, lambda room, seen: key in room.members or room.is_led_by(key)):
            raise NotInRoomError(NOT_IN_IT)
        return self.store.lesson(code)

    def advance(self, code: str, key: str, step_id: StepId, phase: Phase) -> None:
        """Bring the question of a step to a later phase; an earlier one is left as it is."""
        self._lead(code, key, lambda room, seen: room.advance(step_id, phase))

    def show(self, code: str, key: str, step_id: StepId) -> None:
        """Record that the class sees how it voted on a step: from now on no vote of this phase is changed."""

        def change(room: Room, seen: Seen) -> None:
            poll = room.poll(step_id)
            poll.shown = poll.phase

        self._lead(code, key, change)

    def give_time(self, code: str, key: str, step_id: StepId, seconds: float) -> None:
        """Give the class time for the question of a step; if there is some left, so much more."""
        now = self.store.now()

        def change(room: Room, seen: Seen) -> None:
            poll = room.poll(step_id)
            poll.deadline = max(poll.deadline or 0.0, now) + seconds

        self._lead(code, key, change)

    def left(self, deadline: float) -> float:
        """Seconds until a deadline; 0 once it is over."""
        return max(0.0, deadline - self.store.now())

    def vote(self, code: str, member: str, step_id: StepId, answer: str, within: Phase | None = None) -> None:
        """Answer the question of a step, or change the answer. RoomError if it is too late, or too long.

        within: the phase in which it was answered; in a later one it is too late. None: the present one.
        """
        if not 0 < len(answer) <= LONGEST_ANSWER:
            raise RoomError(f"An answer has between 1 and {LONGEST_ANSWER} characters; this one has {len(answer)}.")
        self._update(code, lambda room, seen: room.vote(member, step_id, answer, within))
        self._see(code, member)

    def votes_of(self, code: str, member: str, *steps: StepId) -> dict[StepId, MemberVotes]:
        """What a member has answered to the questions of steps; of all that were voted on where none is named."""

        def look(room: Room, seen: Seen) -> dict[StepId, MemberVotes]:
            polls = {step_id: room.polls.get(step_id, Poll()) for step_id in steps or room.polls}
            return {
                step_id: MemberVotes(poll.phase, poll.first.get(member), poll.second.get(member))
                for step_id, poll in polls.items()
            }

        return self._read(code, look)

    def tally(self, code: str, key: str, step_id: StepId | None) -> Tally:
        """The votes on a step, for the teacher."""
        now, drawn = self.store.now(), self.store.drawn(code)
        self._see_teacher(code, key)
        return self._read(code, lambda room, seen: room.tally(seen, drawn, step_id, now))

    def tallies(self, code: str, key: str) -> dict[StepId, Tally]:
        """The votes on every step that was voted on, for the teacher."""
        now, drawn = self.store.now(), self.store.drawn(code)
        self._see_teacher(code, key)

        def look(room: Room, seen: Seen) -> dict[StepId, Tally]:
            found = {step_id: room.tally(seen, drawn, step_id, now) for step_id in room.polls}
            return {step_id: tally for step_id, tally in found.items() if tally.first or tally.second}

        return self._read(code, look)

    def end(self, code: str, key: str) -> None:
        """End a room for everybody."""
        self._see_teacher(code, key)
        self.store.remove(code)

    def __len__(self) -> int:
        return self.store.open_since(self.store.now() - IDLE)

    def _read(self, code: str, look: Callable[[Room, Seen], T]) -> T:
        return self._found(code, look, self.store.read)

    def _update(self, code: str, change: Callable[[Room, Seen], T]) -> T:
        return self._found(code, change, self.store.update)

    def _found(
        self, code: str, use: Callable[[Room, Seen], T], way: Callable[[str, Callable[[Room, Seen], T]], T]
    ) -> T:
        now = self.store.now()

        def used(room: Room, seen: Seen) -> T:
            if now - seen.get(TEACHER, 0.0) > IDLE:
                raise NoRoomError
            return use(room, seen)

        try:
            return way(code, used)
        except NotInRoomError:
            raise
        except NoRoomError as error:
            raise NoRoomError(*(error.args or [ENDED])) from None

    def _lead(self, code: str, key: str, change: Callable[[Room, Seen], None]) -> None:
        self._see_teacher(code, key)
        now = self.store.now()

        def lead(room: Room, seen: Seen) -> None:
            change(room, seen)
            room.revision, room.changed_at = room.revision + 1, now

        self._update(code, lead)

    def _see_teacher(self, code: str, key: str) -> None:
        """Note that the teacher is connected. RoomError for anybody else."""
        if not self._read(code, lambda room, seen: room.is_led_by(key)):
            raise NoRoomError("Only the teacher who opened this room can do that.")
        self._see(code, TEACHER)

    def _see(self, code: str, who: str) -> None:
        self.store.see(code, {who: self.store.now()})


def tidy(code: str) -> str:
    """A code as rooms have it, from one that somebody typed: capital letters alone, whose full-width forms, which
    keyboards for Chinese and Japanese give, are the same letters."""
    return "".join(letter for letter in unicodedata.normalize("NFKC", code[:40]).upper() if letter.isalpha())


def code_length(count: int) -> int:
    """Letters of a code, so that a random one is that of one of `count` rooms less than once in `GUESSED` times."""
    length = SHORTEST_CODE
    while count * GUESSED >= len(LETTERS) ** length:
        length += 1
    return length


@functools.cache
def all_rooms() -> Rooms:
    """The rooms of this server, or of all servers that share its Redis.

    Raises: ValueError, saying what would do, for an environment variable that says what it can't.
    """
    most, size = _number(ROOMS_VARIABLE, ROOMS, MOST_ROOMS), _number(SIZE_VARIABLE, SIZE, LARGEST_SIZE)
    return Rooms(room_store(), most=most, size=size)


def _number(variable: str, usual: int, most: int) -> int:
    text = os.environ.get(variable, "").strip() or str(usual)
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most:
        return int(text)
    raise ValueError(f"{variable} is {text[:60]!r}; it must be a number from 1 to {most:,}.")
