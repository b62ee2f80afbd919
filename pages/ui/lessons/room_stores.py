"""Stores rooms: in this process's memory, or in Redis, which several servers share.

A store knows no rules; those are in `room`. It holds each room, when each of its people was connected last, what their
pages have drawn, and tells whoever listens that a room has changed.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pages.ui.lessons.room import TEACHER, NoRoomError, Room, RoomsAwayError, Seen
from pages.ui.lessons.stored_room import fields_of, room_of
from pages.ui.shared_redis import PATIENCE, PREFIX, shared_client

CHANGES = f"{PREFIX}room-changes"
"""The channel on which the code of each room that has changed is published."""
LEFT_OVER_AFTER = 24 * 3600
"""Seconds after its last use that Redis removes what a server that was killed has left of a room."""
STREAMS_LAPSE = 8.0
"""Seconds for which what a server notes of its streams counts; it notes them every three."""
AGAIN_AFTER = 1.0
"""Seconds after which a connection that was lost is tried anew."""
T = TypeVar("T")


class MemoryStore:
    """Rooms in this process's memory. clock: seconds that only grow.

    Every method can be called from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        """Seconds on a clock that all who share the store have."""
        self._lock = threading.RLock()
        self._rooms: dict[str, Room] = {}
        self._seen: dict[str, dict[str, float]] = {}
        self._drawn: dict[str, dict[str, int]] = {}
        self._lessons: dict[str, str] = {}
        self._listeners: list[Callable[[str | None], object]] = []

    def add(self, room: Room, most: int) -> bool:
        """Store a new room, whose teacher is connected; False if there are `most` already, or one with its code."""
        with self._lock:
            if len(self._rooms) >= most or room.code in self._rooms:
                return False
            self._rooms[room.code], self._seen[room.code] = room, {TEACHER: self.now()}
        return True

    def read(self, code: str, look: Callable[[Room, Seen], T]) -> T:
        """Look at a room, without changing it. Raises: NoRoomError."""
        with self._lock:
            if code not in self._rooms:
                raise NoRoomError
            return look(self._rooms[code], self._seen[code])

    def update(self, code: str, change: Callable[[Room, Seen], T]) -> T:
        """Change a room in one piece, or not at all if `change` raises; it may be called again. Raises: NoRoomError."""
        result = self.read(code, change)
        self._tell(code)
        return result

    def remove(self, code: str) -> None:
        with self._lock:
            for held in (self._rooms, self._seen, self._drawn, self._lessons):
                held.pop(code, None)
        self._tell(code)

    def see(self, code: str, people: Mapping[str, float]) -> None:
        """Note who is connected."""
        with self._lock:
            if code in self._seen:
                self._seen[code].update(people)

    def note_drawn(self, code: str, member: str, revision: int) -> None:
        """Note the revision of the room that a member's page has drawn."""
        with self._lock:
            if code in self._rooms:
                self._drawn.setdefault(code, {})[member] = revision

    def drawn(self, code: str) -> dict[str, int]:
        """The revision that each member's page has drawn last."""
        with self._lock:
            return dict(self._drawn.get(code, {}))

    def put_lesson(self, code: str, text: str) -> None:
        """Store the text of a room's own lesson, in the place of one before it."""
        with self._lock:
            if code in self._rooms:
                self._lessons[code] = text

    def lesson(self, code: str) -> str:
        """That text; "" for none."""
        with self._lock:
            return self._lessons.get(code, "")

    def note_streams(self, code: str, server: str, streams: Mapping[str, int]) -> None:
        """Note how many streams of its events a server has open for each member of a room."""

    def streams_elsewhere(self, code: str, server: str, member: str) -> int:
        """How many a member has open on other servers, as far as those have noted it."""
        return 0  # nobody shares this store

    def open_since(self, moment: float) -> int:
        """How many rooms there are; those whose teacher was connected last before a moment are removed."""
        with self._lock:
            for code in [code for code, seen in self._seen.items() if seen[TEACHER] < moment]:
                self.remove(code)
            return len(self._rooms)

    def listen(self, on_change: Callable[[str | None], object]) -> None:
        """Call with the code of each room that changes from now on, from any thread; with None for any of them."""
        self._listeners.append(on_change)

    def _tell(self, code: str) -> None:
        for listener in self._listeners:
            listener(code)


class RedisStore:
    """Rooms in Redis: of each a hash of texts, and one of who was connected when.

    Its methods do what those of `MemoryStore` do; each may raise RoomsAwayError. clock: seconds, Redis's own where it
    isn't given.
    """

    def __init__(self, client: Any, clock: Callable[[], float] | None = None) -> None:
        self._redis = client
        self._clock = clock
        self._lock = threading.Lock()

    def now(self) -> float:
        if self._clock:
            return self._clock()
        with _reachable():
            seconds, microseconds = self._redis.time()
        return seconds + microseconds / 1e6

    def add(self, room: Room, most: int) -> bool:
        now = self.now()

        def change(pipe: Any) -> bool:
            if pipe.zcard(_OPEN) >= most or pipe.zscore(_OPEN, room.code) is not None:
                return False
            pipe.multi()
            pipe.zadd(_OPEN, {room.code: now})
            pipe.hset(_room(room.code), mapping=fields_of(room))
            pipe.hset(_seen(room.code), TEACHER, str(now))
            pipe.expire(_seen(room.code), LEFT_OVER_AFTER).expire(_room(room.code), LEFT_OVER_AFTER)
            return True

        with _reachable():
            return self._redis.transaction(change, _OPEN, value_from_callable=True)

    def read(self, code: str, look: Callable[[Room, Seen], T]) -> T:
        with _reachable(), self._redis.pipeline(transaction=False) as pipe:
            fields, seen = pipe.hgetall(_room(code)).hgetall(_seen(code)).execute()
        return look(*_stored(fields, seen))

    def update(self, code: str, change: Callable[[Room, Seen], T]) -> T:
        def changed(pipe: Any) -> T:
            room, seen = _stored(pipe.hgetall(_room(code)), pipe.hgetall(_seen(code)))
            result = change(room, seen)
            pipe.multi()
            pipe.hset(_room(code), mapping=fields_of(room))
            pipe.publish(CHANGES, code)
            return result

        with _reachable(), self._lock:  # of this process one at a time: what several begin, all but one begin again
            return self._redis.transaction(changed, _room(code), value_from_callable=True)

    def remove(self, code: str) -> None:
        with _reachable(), self._redis.pipeline() as pipe:
            pipe.delete(_room(code), _seen(code), _drawn(code), _lesson(code), _streams(code))
            pipe.zrem(_OPEN, code).publish(CHANGES, code).execute()

    def see(self, code: str, people: Mapping[str, float]) -> None:
        with _reachable(), self._redis.pipeline() as pipe:
            pipe.hset(_seen(code), mapping={who: str(moment) for who, moment in people.items()})
            for key in (_seen(code), _room(code), _drawn(code), _lesson(code)):
                pipe.expire(key, LEFT_OVER_AFTER)
            if TEACHER in people:
                pipe.zadd(_OPEN, {code: people[TEACHER]}, xx=True)
            pipe.execute()

    def note_drawn(self, code: str, member: str, revision: int) -> None:
        with _reachable(), self._redis.pipeline() as pipe:
            pipe.hset(_drawn(code), member, str(revision)).expire(_drawn(code), LEFT_OVER_AFTER).execute()

    def drawn(self, code: str) -> dict[str, int]:
        with _reachable():
            return {member: int(revision) for member, revision in self._redis.hgetall(_drawn(code)).items()}

    def put_lesson(self, code: str, text: str) -> None:
        with _reachable():
            self._redis.set(_lesson(code), text, ex=LEFT_OVER_AFTER)

    def lesson(self, code: str) -> str:
        with _reachable():
            return self._redis.get(_lesson(code)) or ""

    def note_streams(self, code: str, server: str, streams: Mapping[str, int]) -> None:
        now = self.now()
        with _reachable(), self._redis.pipeline() as pipe:
            pipe.hset(_streams(code), server, json.dumps([now, dict(streams)]))
            pipe.expire(_streams(code), LEFT_OVER_AFTER).execute()

    def streams_elsewhere(self, code: str, server: str, member: str) -> int:
        now = self.now()
        with _reachable():
            noted = {other: json.loads(text) for other, text in self._redis.hgetall(_streams(code)).items()}
        return sum(
            streams.get(member, 0)
            for other, (noted_at, streams) in noted.items()
            if other != server and now - noted_at <= STREAMS_LAPSE
        )

    def open_since(self, moment: float) -> int:
        with _reachable():
            for code in self._redis.zrangebyscore(_OPEN, "-inf", f"({moment}"):
                self.remove(code)
            return self._redis.zcard(_OPEN)

    def listen(self, on_change: Callable[[str | None], object]) -> None:
        threading.Thread(target=self._listen, args=(on_change,), name="room changes", daemon=True).start()

    def _listen(self, on_change: Callable[[str | None], object]) -> None:
        from redis import RedisError

        while True:
            with contextlib.suppress(RedisError), self._redis.pubsub(ignore_subscribe_messages=True) as changes:
                changes.subscribe(CHANGES)
                on_change(None)  # what changed before nobody heard
                while True:
                    if message := changes.get_message(timeout=PATIENCE / 2):
                        on_change(message["data"])
            time.sleep(AGAIN_AFTER)


RoomStore = MemoryStore | RedisStore

_OPEN = f"{PREFIX}rooms"
"""The codes of all open rooms, each with when its teacher was connected last."""


def _room(code: str) -> str:
    return f"{PREFIX}room:{code}"


def _seen(code: str) -> str:
    return f"{PREFIX}room:{code}:seen"


def _drawn(code: str) -> str:
    return f"{PREFIX}room:{code}:drawn"


def _lesson(code: str) -> str:
    return f"{PREFIX}room:{code}:lesson"


def _streams(code: str) -> str:
    """Each server's streams, with the time at which it noted them: one that was killed no longer counts soon."""
    return f"{PREFIX}room:{code}:streams"


def _stored(fields: Mapping[str, str], seen: Mapping[str, str]) -> tuple[Room, Seen]:
    if not fields:
        raise NoRoomError
    return room_of(fields), {who: float(moment) for who, moment in seen.items()}


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    """Within, that Redis can't be asked is a sentence."""
    from redis import RedisError

    try:
        yield
    except RedisError:
        raise RoomsAwayError(
            "Rooms can't be reached at the moment. A page that is in a room tries again by itself."
        ) from None


def room_store() -> RoomStore:
    """The store of all servers that share a Redis, or of this process. Raises: ValueError, saying what would do."""
    client = shared_client()
    return RedisStore(client) if client else MemoryStore()
