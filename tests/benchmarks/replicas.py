"""Tries what becomes of sixty visitors when their servers are killed in the middle of a lesson.

Three copies of the app behind nginx, with Redis. The visitors speak Streamlit's protocol and ask the engine; four sit
at a real Chromium. Some have trained models of their own, two wait for one, a third is in a room and votes. Then a copy
is killed (SIGKILL), and later another at the same moment as Redis, while students vote. A tab is back when its page is
all there on another copy. What it had is compared with what it has then: page, model, prompt, text, place, own models,
room.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlencode

from deploy.replicas import Replicas, free_port
from pages.ui.lessons.room_stores import RedisStore
from tests.browser.conftest import CHROMIUM_ARGS, find_chromium

from .load import percentile
from .measuring import machine, print_table
from .protocol import FailedError
from .returning import ROOM, ReturningTab, ReturningVisitor, Window
from .serving import memory, processor_seconds
from .visitors import Log

APPS, VISITORS, LESSON, WITHIN = 3, 60, 60.0, 5.0
"""Copies of the app, visitors, seconds of the lesson, and seconds within which everybody should be back."""
LONGEST_TRAINING = 120.0
STEP = {"lesson": "12-many-heads"}
TASK = {"learn": "task", "task": "sort-letters", "shape": "dials", "n_layers": 1, "n_heads": 2, "d_model": 32}
SHORT, LONG = TASK | {"steps": 50}, TASK | {"n_layers": 2, "d_model": 64, "steps": 3000}
LOST = "Your training has ended"
WINDOWS = ("", "Attention?layer=1&head=2", "Inside?prompt=To+be", "Learn?room={room}")
"""What is open in Chromium."""


def run(quick: bool = False) -> dict:
    """Try it, print the tables, and return every count."""
    os.environ["HEADSUP_START"] = "off"
    with tempfile.TemporaryDirectory() as folder, Replicas(Path(folder), APPS, free_port(), redis=True) as replicas:
        replicas.start_all()
        return asyncio.run(Trial(replicas, 24 if quick else VISITORS, 15.0 if quick else LESSON).run())


class Trial:
    """One lesson. count: of visitors; seconds: before the first kill, and half as many after each."""

    def __init__(self, replicas: Replicas, count: int, seconds: float) -> None:
        self.replicas, self.count, self.seconds = replicas, count, seconds
        self.log, self.stack = Log(), AsyncExitStack()
        self.windows: list[Window] = []
        self.voters: set[ReturningTab] = set()
        """Students who were told that their vote counts, or will."""

    async def run(self) -> dict:
        """All of it."""
        async with self.stack:
            await self._begin()
            figures, rows = await self._lesson(self.seconds), []
            print(json.dumps(figures), flush=True)
            for killed in (("app-1",), ("app-2", "redis")):
                rows.append(await self._kill(*killed))
                print(json.dumps(rows[-1]), flush=True)
                await self._act(self.seconds / 2)
        print_table(("what",) + ("",) * len(rows), [(name, *(str(row[name]) for row in rows)) for name in rows[0]])
        print_table(("figure", "value"), [(name, str(value)) for name, value in figures.items()])
        for problem, times in Counter(self.log.failures).most_common(10):
            print(f"cut short {times} times: {problem}")
        return {**figures, "kills": rows, "cut_short": len(self.log.failures), **machine()}

    async def _begin(self) -> None:
        """Everybody comes, trains, joins; half of the class votes."""
        students, owners, trainers = self.count // 3 - 1, self.count // 10, 2
        has_windows = find_chromium() is not None
        others = self.count - students - owners - trainers - 1 - has_windows * len(WINDOWS)
        self.teacher = await self._tab("Learn", STEP)
        await _press(self.teacher, "Open a room")
        self.code = self.teacher.view().room
        self.students = [await self._tab("Learn", {}) for _ in range(students)]
        for tab in self.students:
            await tab.set(tab.labelled("text_input", "Join a room with its code"), string_value=self.code)
            await _press(tab, "Join")
        self.owners = [await self._tab("Train", SHORT) for _ in range(owners)]
        self.trainers = [await self._tab("Train", LONG) for _ in range(trainers)]
        self.visitors = [ReturningVisitor(self.replicas.url, number, self.log) for number in range(others)]
        for visitor in self.visitors:
            await self.stack.enter_async_context(visitor.tab)
            await visitor.open()
        if has_windows:
            await self._open_windows()
        for tab in self.owners:
            await _press(tab, "Train")
        async with asyncio.timeout(LONGEST_TRAINING):
            for tab in self.owners:
                while not tab.view().models:
                    await asyncio.sleep(1)
                    await tab.again()
                await tab.turn("Generate")
        await asyncio.gather(*(self._vote(tab) for tab in self.students[::2]))

    async def _tab(self, page: str, parameters: dict) -> ReturningTab:
        tab = ReturningTab(self.replicas.url, urlencode({"model": "shakespeare", **parameters}))
        await self.stack.enter_async_context(tab)
        await tab.open()
        await tab.turn(page)
        return tab

    async def _open_windows(self) -> None:
        from playwright.async_api import async_playwright

        playwright = await self.stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=list(CHROMIUM_ARGS))
        self.stack.push_async_callback(browser.close)
        for path in WINDOWS:
            window = await Window.open(browser, f"{self.replicas.url}/{path.format(room=self.code)}")
            if not path:
                await window.page.get_by_role("button", name="Generate", exact=True).click()
            if "room" in path:
                await window.page.locator(ROOM).wait_for(timeout=60_000)
            self.windows.append(window)

    @property
    def tabs(self) -> list[ReturningTab]:
        """All without a browser."""
        return [self.teacher, *self.students, *self.owners, *self.trainers, *(each.tab for each in self.visitors)]

    async def _vote(self, tab: ReturningTab) -> None:
        """Vote, as the student of a tab who hasn't yet."""
        await tab.is_back.wait()
        with contextlib.suppress(FailedError):
            if (radio := tab.labelled("radio", "Your answer")) and tab.labelled("button", "Answer"):
                await tab.set(radio, string_value=radio.options[0])
                await _press(tab, "Answer")
                self.voters.add(tab)

    async def _act(self, seconds: float) -> None:
        """All who write, look and turn pages do."""
        until = time.perf_counter() + seconds
        await asyncio.gather(*(visitor.learn(until) for visitor in self.visitors))

    async def _lesson(self, seconds: float) -> dict:
        """Let them act; returns what the copies need for that."""
        pids = [self.replicas.processes[f"app-{at}"].pid for at in range(1, APPS + 1)]
        used, began = [processor_seconds(pid) for pid in pids], time.perf_counter()
        await self._act(seconds)
        took = time.perf_counter() - began
        return {
            "visitors": self.count,
            "of them in Chromium": len(self.windows),
            "of them acting": len(self.visitors),
            "share of a core, of each copy": [
                round((processor_seconds(pid) - before) / took, 2) for pid, before in zip(pids, used, strict=True)
            ],
            "tabs on each copy": sorted(Counter(self.replicas.app_of(tab.server) for tab in self.tabs).items()),
            "memory of each copy, MB": [round(memory(pid)["VmRSS"]) for pid in pids],
            "load of the machine": round(os.getloadavg()[0], 1),
        }

    async def _kill(self, name: str, *others: str) -> dict:
        """Kill a copy, and what else is named, while the lesson goes on; start them anew once everybody is back."""
        for tab in self.trainers:
            if (button := tab.labelled("button", "Train")) and not button.disabled:
                await _press(tab, "Train")
        windows = [window for window in self.windows if self.replicas.app_of(await window.server()) == name]
        for window in windows:
            await window.page.wait_for_timeout(1_000)
            await window.remember()
        lesson = asyncio.create_task(self._act(self.seconds / 4))
        await asyncio.sleep(self.seconds / 8)
        affected = {tab: len(tab.returns) for tab in self.tabs if self.replicas.app_of(tab.server) == name}
        trained = [tab for tab in self.trainers if tab in affected and tab.last and tab.last.trains]
        for each in (name, *others):
            self.replicas.kill(each)
        killed_at, load = time.perf_counter(), os.getloadavg()[0]
        returns = [asyncio.create_task(window.returned(name, killed_at)) for window in windows]
        if others:
            voting = [tab for tab in self.students if tab not in affected][1::4]
            await asyncio.gather(*(self._vote(tab) for tab in voting))  # while Redis is away
            self.replicas.restart_ended(*others)
        found = [*[await tab.returned(times) for tab, times in affected.items()], *[await each for each in returns]]
        await lesson
        self.replicas.restart_ended()
        await asyncio.to_thread(self.replicas.wait_until_healthy)
        await asyncio.sleep(2)
        await asyncio.gather(*(tab.again() for tab in [self.teacher, *self.students]))
        for each in found:
            if each.lost or each.seconds is None or each.seconds > 2 * WITHIN:
                print(f"{name}: after {each.seconds} s, lost {each.lost}; told {each.told}", flush=True)
        seconds = [each.seconds for each in found if each.seconds is not None]
        return {
            "killed": " and ".join((name, *others)),
            "tabs on it": len(found),
            "of them in Chromium": len(windows),
            "back": len(seconds),
            f"back within {WITHIN:.0f} s": sum(each <= WITHIN for each in seconds),
            "seconds, median": round(statistics.median(seconds), 2),
            "seconds, 95 %": round(percentile(seconds, 95), 2),
            "seconds, worst": round(max(seconds), 2),
            "lost something": sum(bool(each.lost) for each in found),
            "own models on it": sum(len(tab.view().models) for tab in affected),
            "trainings on it": len(trained),
            "trainings that said so": sum(tab.says(LOST) for tab in trained),
            "in the room": sum(tab.view().room == self.code for tab in [self.teacher, *self.students]),
            "of": 1 + len(self.students),
            "votes": len(self.voters),
            "votes in the room": self._votes_in_the_room(),
            "load of the machine": round(load, 1),
        }

    def _votes_in_the_room(self) -> int:
        store = RedisStore(self.replicas.redis_address)
        return store.read(self.code, lambda room, seen: sum(len(poll.first) for poll in room.polls.values()))


async def _press(tab: ReturningTab, label: str) -> None:
    await tab.set(tab.labelled("button", label), trigger_value=True)
