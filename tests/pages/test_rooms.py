"""Tests rooms, in memory and in Redis: permissions, votes, expiry, in any order of events, on several servers."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pages.ui.lessons import room, rooms
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.room import MemberVotes, Phase, RoomError, RoomsAwayError
from pages.ui.lessons.room_stores import MemoryStore, RedisStore
from pages.ui.lessons.rooms import LETTERS, Rooms
from pages.ui.session.lesson_answers import StepId
from pages.ui.shared_redis import redis_client
from tests.redis_server import RedisServer, within

STEPS = [StepId("heads", 0), StepId("heads", 1), StepId("masks", 0)]
HERE = STEPS[0]


class Clock:
    """Time that passes when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def rooms_of(request: pytest.FixtureRequest) -> Callable[[Clock], Rooms]:
    """`rooms_of(clock)`: rooms of which none is open."""
    if request.param == "memory":
        return lambda clock: Rooms(MemoryStore(clock))
    server = request.getfixturevalue("redis")
    return lambda clock: server.clear() or Rooms(RedisStore(redis_client(server.address), clock))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def all_rooms(rooms_of: Callable[[Clock], Rooms], clock: Clock) -> Rooms:
    return rooms_of(clock)


class OneRoom(RuleBasedStateMachine):
    """Whatever is done in whatever order: the room says what this simple account of it says."""

    keys = Bundle("keys")

    def __init__(self, rooms_of: Callable[[Clock], Rooms]) -> None:
        super().__init__()
        self.clock = Clock()
        self.rooms = rooms_of(self.clock)
        self.code, self.key = self.rooms.open()
        self.step_id: StepId | None = None
        self.phases: Counter[StepId] = Counter()
        self.shown: dict[StepId, int] = {}
        self.votes: dict[tuple[StepId, int], dict[str, str]] = {}
        self.members: set[str] = set()
        self.seen: dict[str, float] = {}
        self.drawn: dict[str, int] = {}
        self.revision, self.led_at = 0, 0.0

    @rule(target=keys, key=st.none() | keys)
    def join(self, key: str | None) -> str:
        admitted: list[bool] = []
        own = self.rooms.join(self.code, key, lambda: admitted.append(True))[1]
        assert own == key or key is None, "a browser is the same member, however often it joins"
        assert len(admitted) == (own not in self.members), "whoever enters is counted"
        self.members.add(own)
        self.seen[own] = self.clock.now
        return own

    @rule(key=keys)
    def leave(self, key: str) -> None:
        self.rooms.leave(self.code, key)
        self.members.discard(key)

    @rule(step_id=st.none() | st.sampled_from(STEPS))
    def move(self, step_id: StepId | None) -> None:
        self.rooms.move(self.code, self.key, step_id)
        self.step_id = step_id
        self.lead()

    @rule(step_id=st.sampled_from(STEPS), phase=st.sampled_from(Phase))
    def advance(self, step_id: StepId, phase: Phase) -> None:
        self.rooms.advance(self.code, self.key, step_id, phase)
        if phase == Phase.REVEALED:
            for each in (Phase.FIRST, Phase.SECOND):
                self.votes[step_id, each] = self.counted(step_id, each)
        self.phases[step_id] = max(self.phases[step_id], phase)
        self.lead()

    @rule(step_id=st.sampled_from(STEPS))
    def show(self, step_id: StepId) -> None:
        self.rooms.show(self.code, self.key, step_id)
        self.shown[step_id] = self.phases[step_id]
        self.lead()

    @rule(key=keys, step_id=st.none() | st.sampled_from(STEPS))
    def draw(self, key: str, step_id: StepId | None) -> None:
        if key in self.members:
            self.rooms.state(self.code, key, step_id)
            self.saw(key, step_id)

    def saw(self, key: str, step_id: StepId | None) -> None:
        """A page on which a step is has asked for the room's state: it is up to date if that is the room's step."""
        self.seen[key] = self.clock.now
        if self.step_id in (None, step_id):
            self.drawn[key] = self.revision

    def lead(self) -> None:
        self.revision, self.led_at = self.revision + 1, self.clock.now

    def counted(self, step_id: StepId, phase: Phase) -> dict[str, str]:
        """The votes that end with their member, until they are revealed."""
        votes = self.votes.get((step_id, phase), {})
        if self.phases[step_id] == Phase.REVEALED:
            return votes
        return {key: answer for key, answer in votes.items() if key in self.members}

    @rule(key=keys, step_id=st.sampled_from(STEPS), answer=st.sampled_from("abc"), within=st.none() | st.just(Phase(0)))
    def vote(self, key: str, step_id: StepId, answer: str, within: Phase | None) -> None:
        phase = self.phases[step_id]
        votes = self.votes.setdefault((step_id, phase), {})
        stands = self.shown.get(step_id) == phase and votes.get(key, answer) != answer
        if key in self.members and phase < Phase.REVEALED and within in (None, phase) and not stands:
            self.rooms.vote(self.code, key, step_id, answer, within)
            votes[key], self.seen[key] = answer, self.clock.now
        else:
            with pytest.raises(RoomError):
                self.rooms.vote(self.code, key, step_id, answer, within)

    @rule(key=keys)
    def look(self, key: str) -> None:
        if key not in self.members:
            with pytest.raises(RoomError, match="no longer in this room"):
                self.rooms.state(self.code, key)
            return
        found = self.rooms.state(self.code, key)
        phase = self.phases[self.step_id]
        assert (found.step_id, found.phase, found.teacher_here) == (self.step_id, phase, True)
        assert found.shown == (self.shown.get(self.step_id) == phase)
        self.saw(key, None)
        votes = self.rooms.votes_of(self.code, key)
        assert self.rooms.votes_of(self.code, key, HERE) == {HERE: votes.get(HERE, MemberVotes())}
        for step_id in STEPS:
            both = (self.votes.get((step_id, each), {}).get(key) for each in (Phase.FIRST, Phase.SECOND))
            assert votes.get(step_id, MemberVotes()) == (self.phases[step_id], *both)

    @rule(seconds=st.floats(0, room.HERE * 3))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def tallies_agree(self) -> None:
        tallies = self.rooms.tallies(self.code, self.key)
        connected = {key for key in self.members if self.clock.now - self.seen[key] <= room.HERE}
        for step_id in STEPS:
            first, second = (self.counted(step_id, phase) for phase in (Phase.FIRST, Phase.SECOND))
            voted = [first.keys(), second.keys(), first.keys() | second.keys()][self.phases[step_id]]
            found = self.rooms.tally(self.code, self.key, step_id)
            assert found.phase == self.phases[step_id]
            assert (found.first, found.second) == (Counter(first.values()), Counter(second.values()))
            assert (found.voted, found.here) == (len(voted), len(voted | connected))
            late = self.clock.now - self.led_at > room.BEHIND
            assert found.behind == late * sum(self.drawn.get(key, self.revision) < self.revision for key in connected)
            twice = [(first[key] == "a", second[key] == "a") for key in first.keys() & second.keys()]
            assert len(found.pairs) == len(twice)
            changes = twice.count((False, True)), twice.count((True, False))
            assert found.changes(lambda answer: answer == "a") == changes
            assert tallies.get(step_id) == (found if first or second else None)


def test_whatever_is_done_in_whatever_order_a_room_is_as_a_simple_account_of_it(rooms_of, request):
    many = 10 if "redis" in request.node.callspec.id else 40
    machine = settings(max_examples=many, stateful_step_count=25)
    run_state_machine_as_test(lambda: OneRoom(rooms_of), settings=machine)


def test_a_code_is_found_however_it_is_typed(all_rooms):
    code, _ = all_rooms.open(HERE)
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in code)  # as keyboards for Chinese and Japanese type it
    for typed in (f" {code[:2].lower()}-{code[2:]} ", wide, wide.lower(), f"{wide[:2]}\u3000{wide[2:]}"):
        assert all_rooms.join(typed)[0] == code
    for wrong in ("", "?", "AAAAA", code[:-1], code * 1000, "😀"):
        with pytest.raises(RoomError, match="This room has ended"):
            all_rooms.join(wrong)


def test_only_the_teacher_leads_and_only_members_take_part(all_rooms):
    code, key = all_rooms.open(HERE)
    member = all_rooms.join(code)[1]
    leading = {
        all_rooms.led: (),
        all_rooms.move: (STEPS[1],),
        all_rooms.carry: ("+++",),
        all_rooms.advance: (HERE, Phase.REVEALED),
        all_rooms.show: (HERE,),
        all_rooms.give_time: (HERE, 60),
        all_rooms.tally: (HERE,),
        all_rooms.tallies: (),
        all_rooms.end: (),
    }
    for stranger in (member, "", "é", "0" * 32):
        for lead, more in leading.items():
            with pytest.raises(RoomError, match="Only the teacher"):
                lead(code, stranger, *more)
    assert all_rooms.state(code, member) == all_rooms.led(code, key), "nothing of it was done"
    for stranger in ("", "0" * 32):
        with pytest.raises(RoomError, match="no longer in this room"):
            all_rooms.vote(code, stranger, HERE, "a")
        with pytest.raises(RoomError, match="no longer in this room"):
            all_rooms.lesson(code, stranger)
        with pytest.raises(RoomError, match="no longer in this room"):
            all_rooms.state(code, stranger)
        assert all_rooms.versions(code).of(stranger) is None
    for answer in ("", "x" * (room.LONGEST_ANSWER + 1)):
        with pytest.raises(RoomError, match="between 1 and"):
            all_rooms.vote(code, member, HERE, answer)


def test_a_room_ends_by_itself_and_another_can_be_opened_for_it(all_rooms, clock):
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


def test_a_full_room_takes_those_who_come_back_and_those_for_whom_someone_left(all_rooms, clock):
    code, _ = all_rooms.open(HERE)
    members = [all_rooms.join(code)[1] for _ in range(all_rooms.size)]
    with pytest.raises(RoomError, match="takes 60 students"):
        all_rooms.join(code)
    assert all_rooms.join(code, members[0])[1] == members[0]
    clock.now += room.HERE + 1
    all_rooms.state(code, members[0])
    assert all_rooms.join(code)[1] not in members
    assert all_rooms.join(code, members[0])[1] == members[0]
    for step in range(room.MAX_POLLS):
        all_rooms.vote(code, members[0], StepId("long", step), "a")
    with pytest.raises(RoomError, match="limit of questions"):
        all_rooms.vote(code, members[0], StepId("long", room.MAX_POLLS), "a")


def test_a_room_holds_its_teacher_s_own_lesson_for_who_is_in_it(all_rooms):
    code, key = all_rooms.open(HERE)
    member = all_rooms.join(code)[1]
    assert all_rooms.lesson(code, member) == "" == all_rooms.state(code, member).lesson
    for text in ("+++ one", "+++ zwei ü"):
        all_rooms.carry(code, key, text)
        assert all_rooms.lesson(code, member) == all_rooms.lesson(code, key) == text
        assert all_rooms.state(code, member).lesson == name_of(text)
    with pytest.raises(RoomError, match="at most 100,000 characters"):
        all_rooms.carry(code, key, "a" * 100_001)
    all_rooms.end(code, key)
    assert all_rooms.store.lesson(code) == ""


def test_a_page_draws_a_room_anew_where_what_it_shows_has_changed(all_rooms, clock):
    code, key = all_rooms.open(HERE)
    member, silent = (all_rooms.join(code)[1] for _ in range(2))

    def changed(do: Callable[[], object]) -> tuple[bool, bool]:
        """Whether the teacher's page has, and a student's."""
        before = all_rooms.versions(code)
        do()
        after = all_rooms.versions(code)
        return before.of(key) != after.of(key), before.of(member) != after.of(member)

    assert changed(lambda: None) == (False, False)
    assert changed(lambda: all_rooms.vote(code, member, HERE, "a")) == (True, False)
    assert changed(lambda: all_rooms.join(code)) == (True, False)
    assert changed(lambda: all_rooms.give_time(code, key, HERE, 60)) == (True, True)
    assert changed(lambda: all_rooms.carry(code, key, "+++")) == (True, True)
    clock.now += room.HERE + 1
    assert not all_rooms.state(code, member).teacher_here
    assert changed(lambda: all_rooms.versions(code, [key, "nobody"])) == (True, True), "the teacher is back"
    assert changed(lambda: all_rooms.versions(code, [silent])) == (True, False)
    assert all_rooms.tally(code, key, STEPS[1]).here == 2
    deadline = all_rooms.state(code, member).deadline
    assert all_rooms.left(deadline) == pytest.approx(60 - room.HERE - 1)
    all_rooms.give_time(code, key, HERE, 60)
    assert all_rooms.left(all_rooms.state(code, member).deadline) == pytest.approx(120 - room.HERE - 1)


def test_thirty_threads_vote_at_once(all_rooms):
    code, key = all_rooms.open(HERE)
    members = [all_rooms.join(code)[1] for _ in range(30)]

    def vote(number: int) -> None:
        for turn in range(10):
            all_rooms.vote(code, members[number], HERE, str((number + turn) % 3))

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(vote, range(30)))
    found = all_rooms.tally(code, key, HERE)
    assert found.voted == 30 and found.first == {"0": 10, "1": 10, "2": 10}


def test_two_servers_with_one_redis_have_one_room_which_outlives_the_redis(redis):
    one, other = (Rooms(RedisStore(redis_client(redis.address))) for _ in range(2))
    code, key = one.open(HERE)
    members = [(each, each.join(code)[1]) for each in (one, other) for _ in range(10)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda member: member[0].vote(code, member[1], HERE, "a"), members))
    assert other.tally(code, key, HERE).first == {"a": 20}
    heard: list[str | None] = []
    other.store.listen(heard.append)
    assert within(30, lambda: None in heard)
    one.move(code, key, STEPS[1])
    assert within(30, lambda: code in heard)
    student = members[0][1]
    redis.kill()
    heard.clear()
    for ask in (lambda: other.state(code, student), other.open, lambda: other.leave(code, student)):
        with pytest.raises(RoomsAwayError, match="can't be reached at the moment"):
            ask()
    redis.start()
    assert other.state(code, student).step_id == STEPS[1] and other.tally(code, key, HERE).first == {"a": 20}
    assert within(30, lambda: None in heard), "what was missed meanwhile may be any room"
    other.end(code, key)
    assert within(30, lambda: code in heard)
    with pytest.raises(RoomError, match="has ended"):
        one.state(code, student)


def test_codes_get_longer_with_the_number_of_rooms_so_that_none_is_guessed(monkeypatch, clock):
    assert all(rooms.GUESSED * n < len(LETTERS) ** rooms.code_length(n) for n in range(1, 20_000))
    monkeypatch.setattr(rooms, "GUESSED", len(LETTERS) ** 5 // 2 - 1)
    small = Rooms(MemoryStore(clock), most=3)
    assert [len(small.open()[0]) for _ in range(3)] == [5, 5, 6]


@pytest.mark.parametrize("variable", [rooms.ROOMS_VARIABLE, rooms.SIZE_VARIABLE, "HEADSUP_REDIS"])
def test_a_setting_that_makes_no_sense_is_a_sentence(variable, monkeypatch):
    for value in ("0", "many", "1000000", "-1"):
        monkeypatch.setenv(variable, value)
        rooms.all_rooms.cache_clear()
        with pytest.raises(ValueError, match=f"{variable} is"):
            rooms.all_rooms()
