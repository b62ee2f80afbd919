"""Tests rooms, in memory and in Redis: permissions, votes, expiry, in any order of events, on several servers."""

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pages.ui.lessons import room_attempts, rooms
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.room import Phase, RoomError, RoomsAwayError
from pages.ui.lessons.room_attempts import Attempts
from pages.ui.lessons.room_stores import MemoryStore, RedisStore
from pages.ui.lessons.rooms import LETTERS, Rooms, State
from pages.ui.models.lesson_answers import StepId
from pages.ui.models.shared_redis import MemoryBuckets
from tests.redis_server import RedisServer

PLACES = [StepId("heads", 0), StepId("heads", 1), StepId("masks", 0)]
HERE = PLACES[0]


class Clock:
    """Time that passes when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def all_rooms(request: pytest.FixtureRequest, clock: Clock) -> Rooms:
    if request.param == "memory":
        return Rooms(MemoryStore(clock))
    server = request.getfixturevalue("redis")
    server.clear()
    return Rooms(RedisStore(server.address, clock))


@pytest.fixture
def room(all_rooms: Rooms) -> tuple[str, str]:
    """The code and the teacher's key of a room at the first place."""
    return all_rooms.open(HERE)


def test_a_question_is_voted_on_twice_and_then_closed(all_rooms, room):
    code, key = room
    one, two, three = (all_rooms.join(code)[1] for _ in range(3))
    for member, answer in ((one, "a"), (two, "b"), (three, "b"), (one, "b"), (one, "a")):  # changed before discussion
        all_rooms.vote(code, member, HERE, answer)
    assert all_rooms.tally(code, key, HERE)[1:5] == ({"a": 1, "b": 2}, {}, 3, 3)
    all_rooms.advance(code, key, HERE, Phase.SECOND)
    assert all_rooms.tally(code, key, HERE).voted == 0
    all_rooms.vote(code, two, HERE, "a")
    all_rooms.vote(code, one, HERE, "b")
    found = all_rooms.tally(code, key, HERE)
    assert found.first == {"a": 1, "b": 2} and found.second == {"a": 1, "b": 1} and found.voted == 2
    assert found.changes(lambda answer: answer == "a") == (1, 1)
    all_rooms.advance(code, key, HERE, Phase.REVEALED)
    all_rooms.advance(code, key, HERE, Phase.FIRST)
    with pytest.raises(RoomError, match="voting is closed"):
        all_rooms.vote(code, three, HERE, "a")
    assert all_rooms.state(code, one) == State(HERE, Phase.REVEALED, teacher_here=True)


def test_a_code_is_found_however_it_is_typed(all_rooms, room):
    code, _ = room
    assert all_rooms.join(f" {code[:2].lower()}-{code[2:]} ")[0] == code
    for wrong in ("", "?", "AAAAA", code[:-1], code * 1000, "😀"):
        with pytest.raises(RoomError, match="This room has ended"):
            all_rooms.join(wrong)


def test_only_the_teacher_leads_and_only_members_vote_with_an_answer_of_some_length(all_rooms):
    code, _ = all_rooms.open()
    _, member = all_rooms.join(code)
    for key in (member, "", "é"):
        for lead, *more in (
            (all_rooms.move, HERE),
            (all_rooms.advance, HERE, Phase.REVEALED),
            (all_rooms.tally, HERE),
            (all_rooms.end,),
        ):
            with pytest.raises(RoomError, match="Only the teacher"):
                lead(code, key, *more)
    assert all_rooms.state(code, member).step_id is None
    with pytest.raises(RoomError, match="no longer in this room"):
        all_rooms.vote(code, "stranger", HERE, "a")
    for answer in ("", "x" * (rooms.LONGEST_ANSWER + 1)):
        with pytest.raises(RoomError, match="between 1 and"):
            all_rooms.vote(code, member, HERE, answer)


def test_who_has_gone_is_not_waited_for(all_rooms, clock, room):
    code, key = room
    (_, stays), (_, goes) = all_rooms.join(code), all_rooms.join(code)
    clock.now += rooms.HERE + 1
    assert not all_rooms.state(code, stays).teacher_here
    assert all_rooms.tally(code, key, HERE).here == 1
    assert all_rooms.join(code, goes)[1] == goes  # and comes back as who they were
    assert all_rooms.tally(code, key, HERE).here == 2
    clock.now += rooms.HERE + 1
    assert not all_rooms.state(code, stays).teacher_here
    assert all_rooms.led(code, key).teacher_here
    assert all_rooms.state(code, stays).teacher_here


def test_a_vote_is_awaited_once_in_each_phase_and_counts_though_its_member_has_gone(all_rooms, room):
    code, key = room
    _, member = all_rooms.join(code)
    for phase in (Phase.FIRST, Phase.SECOND):
        all_rooms.advance(code, key, HERE, phase)
        assert [all_rooms.awaits(code, member, HERE, each) for each in Phase] == [phase is each for each in Phase]
        all_rooms.vote(code, member, HERE, "a")
        assert not all_rooms.awaits(code, member, HERE, phase)
    all_rooms.leave(code, member)
    found = all_rooms.tally(code, key, HERE)
    assert found.first == {"a": 1} and (found.voted, found.here) == (1, 1)
    assert all_rooms.join(code, member)[1] == member  # comes back as whoever voted
    for stranger in (None, "unheard of"):
        assert all_rooms.join(code, stranger)[1] not in (member, stranger)
    all_rooms.advance(code, key, HERE, Phase.REVEALED)
    assert not any(all_rooms.awaits(code, all_rooms.join(code)[1], HERE, each) for each in Phase)


def test_a_room_tells_each_member_what_they_have_answered(all_rooms, room):
    code, key = room
    one, two = (all_rooms.join(code)[1] for _ in range(2))
    all_rooms.vote(code, one, HERE, "a")
    all_rooms.vote(code, one, PLACES[1], "b")
    all_rooms.advance(code, key, HERE, Phase.SECOND)
    all_rooms.vote(code, one, HERE, "c")
    all_rooms.vote(code, two, HERE, "d")
    assert all_rooms.votes_of(code, one) == {HERE: ["a", "c"], PLACES[1]: ["b"]}
    assert all_rooms.votes_of(code, two) == {HERE: ["d"]} and all_rooms.votes_of(code, "stranger") == {}


def test_a_room_ends_by_itself_and_makes_room_for_another(all_rooms, clock):
    opened = [all_rooms.open() for _ in range(all_rooms.most)]
    with pytest.raises(RoomError, match="Try again later"):
        all_rooms.open()
    clock.now += rooms.IDLE / 2
    all_rooms.led(*opened[0])
    clock.now += rooms.IDLE / 2 + 1
    assert len(all_rooms) == 1
    all_rooms.open()
    with pytest.raises(RoomError, match="This room has ended"):
        all_rooms.join(opened[1][0])


def test_a_full_room_takes_those_who_come_back_and_those_for_whom_someone_left(all_rooms, clock, room):
    code, _ = room
    members = [all_rooms.join(code)[1] for _ in range(all_rooms.size)]
    with pytest.raises(RoomError, match="takes 60 students"):
        all_rooms.join(code)
    assert all_rooms.join(code, members[0])[1] == members[0]
    for step in range(rooms.MAX_POLLS):
        all_rooms.vote(code, members[0], StepId("long", step), "a")
    with pytest.raises(RoomError, match="limit of questions"):
        all_rooms.vote(code, members[0], StepId("long", rooms.MAX_POLLS), "a")
    clock.now += rooms.HERE + 1
    all_rooms.state(code, members[0])
    assert all_rooms.join(code)[1] not in members


def test_a_room_holds_its_teacher_s_own_lesson_for_who_is_in_it(all_rooms, room):
    code, key = room
    member = all_rooms.join(code)[1]
    assert all_rooms.lesson(code, member) == "" == all_rooms.state(code, member).lesson
    before = all_rooms.versions(code).of(member)
    for text in ("+++ one", "+++ zwei ü"):
        all_rooms.carry(code, key, text)
        assert all_rooms.lesson(code, member) == all_rooms.lesson(code, key) == text
        assert all_rooms.state(code, member).lesson == name_of(text)
    assert all_rooms.versions(code).of(member) != before, "pages hear of it"
    for stranger in ("", "0" * 32):
        with pytest.raises(RoomError, match="no longer in this room"):
            all_rooms.lesson(code, stranger)
    for lead in (member, "0" * 32):
        with pytest.raises(RoomError, match="Only the teacher"):
            all_rooms.carry(code, lead, "+++")
    with pytest.raises(RoomError, match="at most 100,000 characters"):
        all_rooms.carry(code, key, "a" * 100_001)
    all_rooms.end(code, key)
    assert all_rooms.store.lesson(code) == ""


def test_thirty_threads_vote_at_once(all_rooms, room):
    code, key = room
    members = [all_rooms.join(code)[1] for _ in range(30)]

    def vote(number: int) -> None:
        for turn in range(10):
            all_rooms.vote(code, members[number], HERE, str((number + turn) % 3))

    threads = [threading.Thread(target=vote, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = all_rooms.tally(code, key, HERE)
    assert found.voted == 30 and found.first == Counter(str((number + 9) % 3) for number in range(30))


def test_two_servers_with_one_redis_have_one_room_which_outlives_the_redis(redis):
    one, other = (Rooms(RedisStore(redis.address)) for _ in range(2))
    code, key = one.open(HERE)
    members = [each.join(code)[1] for each in (one, other) for _ in range(10)]
    voting = [
        threading.Thread(target=(one, other)[number % 2].vote, args=(code, member, HERE, "a"))
        for number, member in enumerate(members)
    ]
    for thread in voting:
        thread.start()
    for thread in voting:
        thread.join()
    assert other.tally(code, key, HERE).first == {"a": 20}
    heard: list[str | None] = []
    other.store.listen(heard.append)
    assert _within(30, lambda: heard == [None])
    one.move(code, key, PLACES[1])
    assert _within(30, lambda: heard == [None, code])
    redis.kill()
    for ask in (lambda: other.state(code, members[0]), lambda: other.open(), lambda: other.leave(code, members[0])):
        with pytest.raises(RoomsAwayError, match="can't be reached at the moment"):
            ask()
    redis.start()
    assert other.state(code, members[0]).step_id == PLACES[1] and other.tally(code, key, HERE).first == {"a": 20}
    assert _within(30, lambda: heard == [None, code, None]), "what was missed meanwhile may be any room"
    other.end(code, key)
    assert _within(30, lambda: heard[-1] == code)
    with pytest.raises(RoomError, match="has ended"):
        one.state(code, members[0])


def _within(seconds: float, holds) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def test_a_page_draws_a_room_anew_where_what_it_shows_has_changed(all_rooms, clock, room):
    code, key = room
    member, silent = (all_rooms.join(code)[1] for _ in range(2))
    assert all_rooms.versions(code).of("nobody") is None

    def changed(do) -> tuple[bool, bool]:
        before = all_rooms.versions(code)
        do()
        after = all_rooms.versions(code)
        return before.of(key) != after.of(key), before.of(member) != after.of(member)

    assert changed(lambda: None) == (False, False)
    assert changed(lambda: all_rooms.vote(code, member, HERE, "a")) == (True, False)
    assert changed(lambda: all_rooms.join(code)) == (True, False)
    assert changed(lambda: all_rooms.give_time(code, key, HERE, 60)) == (True, True)
    clock.now += rooms.HERE + 1
    assert changed(lambda: all_rooms.versions(code, [key, "nobody"])) == (True, True), "the teacher is back"
    assert all_rooms.tally(code, key, PLACES[1]).here == 0
    assert changed(lambda: all_rooms.versions(code, [silent])) == (True, False)
    assert all_rooms.tally(code, key, PLACES[1]).here == 1


def test_codes_get_longer_with_the_number_of_rooms_so_that_none_is_guessed(monkeypatch, clock):
    assert [rooms.code_length(count) for count in (1, 31, 32, 639, 640, 10_000)] == [5, 5, 6, 6, 7, 7]
    assert all(100_000 * n < len(LETTERS) ** rooms.code_length(n) for n in range(1, 20_000))
    small = Rooms(MemoryStore(clock), most=3)
    monkeypatch.setattr(rooms, "GUESSED", len(LETTERS) ** 5 // 2 - 1)
    assert [len(small.open()[0]) for _ in range(3)] == [5, 5, 6]


def test_wrong_codes_are_limited_by_visitor_by_address_and_in_all(clock):
    attempts = Attempts(MemoryBuckets(clock))
    (visitor, rate), (address, _), (everybody, _) = room_attempts.VISITOR, room_attempts.ADDRESS, room_attempts.ALL
    for _ in range(visitor):
        attempts.check("one", "here")
        attempts.add_wrong("one", "here")
    with pytest.raises(RoomError, match="Too many wrong codes"):
        attempts.check("one", "here")
    attempts.check("two", "here")
    clock.now += 1 / rate
    attempts.check("one", "here")
    for number in range(address):  # who shows another cookie each time
        attempts.add_wrong(str(number), "here")
    with pytest.raises(RoomError):
        attempts.check("two", "here")
    attempts.check("two", "elsewhere")
    for number in range(everybody):  # and another address
        attempts.add_wrong(str(number), str(number))
    with pytest.raises(RoomError):
        attempts.check("two", "elsewhere")


@pytest.mark.parametrize("variable", [rooms.ROOMS_VARIABLE, rooms.SIZE_VARIABLE, "HEADSUP_REDIS"])
def test_a_setting_that_makes_no_sense_is_a_sentence(variable, monkeypatch):
    for value in ("0", "many", "1000000", "-1"):
        monkeypatch.setenv(variable, value)
        rooms.all_rooms.cache_clear()
        with pytest.raises(ValueError, match=f"{variable} is"):
            rooms.all_rooms()


class OneRoom(RuleBasedStateMachine):
    """Whatever is done in whatever order: the room says what this simple account of it says."""

    members = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.rooms = Rooms(MemoryStore(self.clock))
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
