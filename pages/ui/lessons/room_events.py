"""Tells the pages of a room that it has changed, as server-sent events.

Each page keeps one stream open. A server looks at a room once for all its streams: when the store says that it has
changed, and every few seconds, when it also notes who is connected.
"""

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.responses import Response

from pages.ui.lessons.room import NoRoomError, RoomError
from pages.ui.lessons.rooms import Rooms, Versions
from transformer.api.errors import ApiError
from transformer.api.server_sent_events import event, stream_of

HEADER = "HeadsUp-Room"
"""The header that has a member's key. In an address, proxies would log it."""
LOOK_EVERY, GATHER = 3.0, 0.1
"""Seconds after which a server looks at a room again though nothing was heard of it, and at least between two looks."""
QUIET = 1.0
"""Seconds at least between two events that say no more than that the server is there: a class that votes makes it look
at the room ten times a second, and a vote is nothing that the others' pages show."""
AT_ONCE = 4
"""Streams that one member's pages may have open, on all servers together."""
T = TypeVar("T")


@dataclass
class _Watch:
    """A room that pages of this server follow."""

    streams: Counter[str] = field(default_factory=Counter)
    """How many are open, by their members' keys."""
    versions: Versions | None = None
    """None for a room that has ended, or can't be reached."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the room has to be looked at."""
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it was, and then replaced."""


class RoomEvents:
    """The streams of a server.

    rooms: gives all rooms; it is first asked by the first stream. is_stopping: whether the server has been told to end,
    which waits for every answer; then streams end within seconds, and their pages look for another server.
    """

    def __init__(self, rooms: Callable[[], Rooms], is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._rooms, self._is_stopping, self._threads = rooms, is_stopping, ThreadPoolExecutor(4, "rooms")
        self._name = secrets.token_hex(8)
        """Among the servers that share the store."""
        self._watches: dict[str, _Watch] = {}
        self._tasks: set[asyncio.Task] = set()
        self._listens = False

    async def follow(self, code: str, key: str) -> Response:
        """A stream: an event `room` with the `version` of what the member's page shows, whenever that is another.

        Raises: RoomError, ApiError.
        """
        if self._is_stopping():
            raise ApiError(503, "The server is stopping; ask again in a minute.", retry_after=1)
        versions = await self._run(lambda: self._rooms().versions(code, [key]))
        if versions.of(key) is None:
            raise NoRoomError
        elsewhere = await self._run(lambda: self._rooms().store.streams_elsewhere(code, self._name, key))
        if elsewhere + (self._watches[code].streams[key] if code in self._watches else 0) >= AT_ONCE:
            raise ApiError(429, "This room is open in too many tabs.", retry_after=5)
        return stream_of(self._events(code, key, versions))

    async def _events(self, code: str, key: str, versions: Versions) -> AsyncIterator[bytes]:
        watch, now = self._watch(code, key, versions), asyncio.get_running_loop().time
        told, told_at = None, 0.0
        try:
            while watch.versions is not None and not self._is_stopping():
                looked, version = watch.looked, watch.versions.of(key)
                if version is None:
                    return
                if version != told or now() - told_at >= QUIET:
                    yield event("here", {}) if version == told else event("room", {"version": version})
                    told, told_at = version, now()
                await looked.wait()
        finally:
            watch.streams[key] -= 1
            watch.streams += Counter()  # without those that have none
            watch.changed.set()

    def _watch(self, code: str, key: str, versions: Versions) -> _Watch:
        if not self._listens:
            self._listens, loop = True, asyncio.get_running_loop()
            self._rooms().store.listen(lambda code: loop.call_soon_threadsafe(self._on_change, code))
        watch = self._watches.get(code)
        if watch is None:
            watch = self._watches[code] = _Watch()
            task = asyncio.get_running_loop().create_task(self._look(code, watch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watch.versions = versions
        watch.streams[key] += 1
        watch.changed.set()
        return watch

    def _on_change(self, code: str | None) -> None:
        for watch in self._watches.values() if code is None else filter(None, [self._watches.get(code)]):
            watch.changed.set()

    async def _look(self, code: str, watch: _Watch) -> None:
        """Look at a room again and again, as long as a page follows it."""
        while watch.streams and not self._is_stopping():
            watch.changed.clear()
            try:
                watch.versions = await self._run(lambda: self._rooms().versions(code, list(watch.streams)))
                await self._note_streams(code, watch)
            except RoomError:
                watch.versions = None  # pages ask again, and are told why
            watch.looked.set()
            watch.looked = asyncio.Event()
            if watch.versions is None:
                break
            await asyncio.sleep(GATHER)
            try:
                await asyncio.wait_for(watch.changed.wait(), LOOK_EVERY)
            except TimeoutError:
                continue
        watch.versions = None
        watch.looked.set()
        self._watches.pop(code, None)
        with contextlib.suppress(RoomError):  # it lapses by itself
            await self._note_streams(code, watch)

    async def _note_streams(self, code: str, watch: _Watch) -> None:
        streams = dict(watch.streams)
        await self._run(lambda: self._rooms().store.note_streams(code, self._name, streams))

    async def _run(self, ask: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)
