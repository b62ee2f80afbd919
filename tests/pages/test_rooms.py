"""Tests rooms: permissions, votes, expiry, in any order of events."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pages.ui.lessons import rooms
from pages.ui.lessons.rooms import Phase, RoomError, Rooms, State
from pages.ui.models.lesson_answers import StepId

PLACES = [StepId("heads", 0), StepId("heads", 1), StepId("masks", 0)]


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def all_rooms(clock: Clock) -> Rooms:
    return Rooms(clock)


def test_a_question_is_voted_on_twice_and_then_closed(all_rooms: Rooms) -> None:
    code, key = all_rooms.open(PLACES[0])
    one, two, three = (all_rooms.join(code)[1] for _ in range(3))
    for member, answer in ((one, "a"), (two, "b"), (three, "b")):
        all_rooms.vote(code, member, PLACES[0], answer)
    all_rooms.vote(code, one, PLACES[0], "b")  # changed before the discussion
    all_rooms.vote(code, one, PLACES[0], "a")
    assert all_rooms.tally(code, key, PLACES[0])[1:5] == ({"a": 1, "b": 2}, {}, 3, 3)
    all_rooms.advance(code, key, PLACES[0], Phase.SECOND)
    assert all_rooms.tally(code, key, PLACES[0]).voted == 0
    all_rooms.vote(code, two, PLACES[0], "a")
    all_rooms.vote(code, one, PLACES[0], "b")
    found = all_rooms.tally(code, key, PLACES[0])
    assert found.first == {"a": 1, "b": 2} and found.second == {"a": 1, "b": 1} and found.voted == 2
    assert found.changes(lambda answer: answer == "a") == (1, 1)
    all_rooms.advance(code, key, PLACES[0], Phase.REVEALED)
    all_rooms.advance(code, key, PLACES[0], Phase.FIRST)
    with pytest.raises(RoomError, match="voting is closed"):
        all_rooms.vote(code, three, PLACES[0], "a")
    assert all_rooms.state(code, one) == State(PLACES[0], Phase.REVEALED, teacher_here=True)


def test_a_code_is_found_however_it_is_typed(all_rooms: Rooms) -> None:
    code, _ = all_rooms.open()
    assert all_rooms.join(f" {code[:2].lower()}-{code[2:]} ")[0] == code
    for wrong in ("", "?", "AAAAA", code[:-1], code * 1000, "😀"):
        with pytest.raises(RoomError, match="This room has ended"):
            all_rooms.join(wrong)


def test_only_the_teacher_leads(all_rooms: Rooms) -> None:
    code, _ = all_rooms.open()
    _, member = all_rooms.join(code)
    for key in (member, "", "é"):
        for forbidden in (
            lambda key=key: all_rooms.move(code, key, PLACES[0]),
            lambda key=key: all_rooms.advance(code, key, PLACES[0], Phase.REVEALED),
            lambda key=key: all_rooms.tally(code, key, PLACES[0]),
            lambda key=key: all_rooms.end(code, key),
        ):
            with pytest.raises(RoomError, match="Only the teacher"):
                forbidden()
    assert all_rooms.state(code, member).step_id is None


def test_a_stranger_has_no_vote(all_rooms: Rooms) -> None:
    code, _ = all_rooms.open(PLACES[0])
    with pytest.raises(RoomError, match="no longer in this room"):
        all_rooms.vote(code, "stranger", PLACES[0], "a")


@pytest.mark.parametrize("answer", ["", "x" * (rooms.LONGEST_ANSWER + 1)])
def test_an_answer_has_a_length(all_rooms: Rooms, answer: str) -> None:
    code, _ = all_rooms.open(PLACES[0])
    _, member = all_rooms.join(code)
    with pytest.raises(RoomError, match="between 1 and"):
        all_rooms.vote(code, member, PLACES[0], answer)


def test_who_has_gone_is_not_waited_for(all_rooms: Rooms, clock: Clock) -> None:
    code, key = all_rooms.open(PLACES[0])
    (_, stays), (_, goes) = all_rooms.join(code), all_rooms.join(code)
    clock.now += rooms.HERE + 1
    all_rooms.state(code, stays)
    assert all_rooms.tally(code, key, PLACES[0]).here == 1
    assert all_rooms.join(code, goes)[1] == goes  # and comes back as who they were
    assert all_rooms.tally(code, key, PLACES[0]).here == 2


def test_a_vote_counts_though_its_member_has_gone(all_rooms: Rooms, clock: Clock) -> None:
    code, key = all_rooms.open(PLACES[0])
    _, member = all_rooms.join(code)
    all_rooms.vote(code, member, PLACES[0], "a")
    all_rooms.leave(code, member)
    found = all_rooms.tally(code, key, PLACES[0])
    assert found.first == {"a": 1} and (found.voted, found.here) == (1, 1)


def test_a_vote_is_awaited_once_in_each_phase(all_rooms: Rooms) -> None:
    code, key = all_rooms.open(PLACES[0])
    _, member = all_rooms.join(code)
    for phase in (Phase.FIRST, Phase.SECOND):
        all_rooms.advance(code, key, PLACES[0], phase)
        assert [all_rooms.awaits(code, member, PLACES[0], each) for each in Phase] == [phase is each for each in Phase]
        all_rooms.vote(code, member, PLACES[0], "a")
        assert not all_rooms.awaits(code, member, PLACES[0], phase)
    all_rooms.advance(code, key, PLACES[0], Phase.REVEALED)
    assert not any(all_rooms.awaits(code, all_rooms.join(code)[1], PLACES[0], each) for each in Phase)


def test_who_left_comes_back_as_whoever_voted(all_rooms: Rooms) -> None:
    code, _ = all_rooms.open(PLACES[0])
    _, member = all_rooms.join(code)
    all_rooms.vote(code, member, PLACES[0], "a")
    all_rooms.leave(code, member)
    assert all_rooms.join(code, member)[1] == member
    for stranger in (None, "unheard of"):
        assert all_rooms.join(code, stranger)[1] not in (member, stranger)


def test_members_see_that_the_teacher_is_away(all_rooms: Rooms, clock: Clock) -> None:
    code, key = all_rooms.open()
    _, member = all_rooms.join(code)
    clock.now += rooms.HERE + 1
    assert not all_rooms.state(code, member).teacher_here
    assert all_rooms.led(code, key).teacher_here
    assert all_rooms.state(code, member).teacher_here


def test_a_room_ends_by_itself_and_makes_room_for_another(all_rooms: Rooms, clock: Clock) -> None:
    opened = [all_rooms.open() for _ in range(rooms.MAX_ROOMS)]
    with pytest.raises(RoomError, match="Try again later"):
        all_rooms.open()
    clock.now += rooms.IDLE / 2
    all_rooms.led(*opened[0])
    clock.now += rooms.IDLE / 2 + 1
    assert len(all_rooms) == 1
    all_rooms.open()
    with pytest.raises(RoomError, match="This room has ended"):
        all_rooms.join(opened[1][0])


def test_a_full_room_takes_those_who_come_back_and_those_for_whom_someone_left(all_rooms: Rooms, clock: Clock) -> None:
    code, _ = all_rooms.open()
    members = [all_rooms.join(code)[1] for _ in range(rooms.MAX_MEMBERS)]
    with pytest.raises(RoomError, match="is full"):
        all_rooms.join(code)
    assert all_rooms.join(code, members[0])[1] == members[0]
    clock.now += rooms.HERE + 1
    all_rooms.state(code, members[0])
    assert all_rooms.join(code)[1] not in members


def test_a_room_votes_on_so_many_questions(all_rooms: Rooms) -> None:
    code, _ = all_rooms.open()
    _, member = all_rooms.join(code)
    for step in range(rooms.MAX_POLLS):
        all_rooms.vote(code, member, StepId("long", step), "a")
    with pytest.raises(RoomError, match="limit of questions"):
        all_rooms.vote(code, member, StepId("long", rooms.MAX_POLLS), "a")


def test_thirty_threads_vote_at_once(all_rooms: Rooms) -> None:
    code, key = all_rooms.open(PLACES[0])
    members = [all_rooms.join(code)[1] for _ in range(30)]

    def vote(number: int) -> None:
        for turn in range(50):
            all_rooms.vote(code, members[number], PLACES[0], str((number + turn) % 3))

    threads = [threading.Thread(target=vote, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = all_rooms.tally(code, key, PLACES[0])
    assert found.voted == 30
    assert found.first == Counter(str((number + 49) % 3) for number in range(30))


class OneRoom(RuleBasedStateMachine):
    """Whatever is done in whatever order: the room says what this simple account of it says."""

    members = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.rooms = Rooms(self.clock)
        self.code, self.key = self.rooms.open()
        self.step_id: StepId | None = None
        self.phases: Counter[StepId] = Counter()
        self.votes: dict[tuple[StepId, int], dict[str, str]] = {}

    @rule(target=members)
    def join(self) -> str:
        return self.rooms.join(self.code)[1]

    @rule(member=consumes(members))
    def leave(self, member: str) -> None:
        self.rooms.leave(self.code, member)

    @rule(step_id=st.sampled_from([None, *PLACES]))
    def move(self, step_id: StepId | None) -> None:
        self.rooms.move(self.code, self.key, step_id)
        self.step_id = step_id

    @rule(step_id=st.sampled_from(PLACES), phase=st.sampled_from(Phase))
    def advance(self, step_id: StepId, phase: Phase) -> None:
        self.rooms.advance(self.code, self.key, step_id, phase)
        self.phases[step_id] = max(self.phases[step_id], phase)

    @rule(member=members, step_id=st.sampled_from(PLACES), answer=st.text(min_size=1, max_size=3))
    def vote(self, member: str, step_id: StepId, answer: str) -> None:
        phase = self.phases[step_id]
        try:
            self.rooms.vote(self.code, member, step_id, answer)
        except RoomError:
            assert phase == Phase.REVEALED
        else:
            assert phase != Phase.REVEALED
            self.votes.setdefault((step_id, phase), {})[member] = answer

    @rule(seconds=st.floats(0, rooms.HERE * 3))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def tallies_agree(self) -> None:
        for step_id in PLACES:
            found = self.rooms.tally(self.code, self.key, step_id)
            first, second = (self.votes.get((step_id, phase), {}) for phase in (Phase.FIRST, Phase.SECOND))
            assert found.phase == self.phases[step_id]
            assert (found.first, found.second) == (Counter(first.values()), Counter(second.values()))
            assert found.voted <= found.here
            assert len(found.pairs) == len(first.keys() & second.keys())

    @invariant()
    def the_room_is_where_it_was_led(self) -> None:
        found = self.rooms.led(self.code, self.key)
        assert found.step_id == self.step_id and found.teacher_here


TestOneRoom = OneRoom.TestCase
TestOneRoom.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
