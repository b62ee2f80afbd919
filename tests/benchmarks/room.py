"""Benchmarks a room: how fast thirty students follow their teacher.

The pages of teacher and students speak Streamlit's protocol over websockets; beside it students ask the API of rooms,
as their page's script does. The teacher goes from step to step; what is timed is how long it takes from the press to
each student's browser having the step (`followed`), and to the end of their page's run, the live view included
(`whole`). At each step everybody votes, too, within two seconds (`answered`). Then the teacher reveals what is right:
`revealed` is the time from the last vote to each student's browser having that, and `all revealed`, once for each step,
to the last of them. The load is the machine's, over the last minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import secrets
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlencode, urlsplit

from pages.ui.lessons.room_events import HEADER
from tests.browser.servers import Server

from .measuring import machine, print_table, spread
from .protocol import FailedError, Tab
from .serving import app_server, memory, on_two_cores, processor_seconds

STUDENTS = 30
LESSON = "12-many-heads"
"""The one with which it begins; others follow."""
MOVES = 20
WITHIN = 2.0
"""Seconds within which everybody answers."""
PATIENCE = 20.0
SPREAD = 1.5
"""Seconds over which the pages of a class ask for the run that a reveal needs, as `room.js` has it."""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    on_two_cores()
    load = os.getloadavg()[0]
    with app_server() as server:
        figures = asyncio.run(_measure(server, 6 if quick else STUDENTS, 4 if quick else MOVES))
        figures |= {"load_before": load, "load_at_end": os.getloadavg()[0]}
        figures |= {"memory_MB": memory(server.process.pid)["VmRSS"], "traceback": server.has_traceback()}
        if server.has_traceback():
            print(server.log_tail())
    figures = {name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}
    print_table(("figure", "value"), [(name.replace("_", " "), str(value)) for name, value in figures.items()])
    return figures | machine()


async def _measure(server: Server, count: int, moves: int) -> dict:
    failures: list[str] = []
    async with AsyncExitStack() as stack:
        teacher = await stack.enter_async_context(Tab(server.url, urlencode({"lesson": LESSON})))
        await teacher.open()
        await teacher.turn("Learn")
        await _press(teacher, "Open a room")
        code = next(text.split()[2] for text in _texts(teacher) if text.startswith("### Room"))
        students = [
            Student(await stack.enter_async_context(Tab(server.url, urlencode({"room": code})))) for _ in range(count)
        ]
        for student in students:
            await student.join(code)
        for following in (_follow_as_teacher(teacher), *(student.follow() for student in students)):
            stack.callback(asyncio.create_task(following).cancel)
        began, used, driver = time.perf_counter(), processor_seconds(server.process.pid), time.process_time()
        followed: list[float] = []
        whole: list[float] = []
        answered: list[float] = []
        revealed: list[float] = []
        all_revealed: list[float] = []
        for _ in range(moves):
            before, runs = _step(teacher), {student: student.tab.runs for student in students}
            pressed = asyncio.create_task(_press(teacher, "Next step", "Next lesson"))
            there, ended = await asyncio.gather(
                _all_see(students, lambda student, before=before: student.step not in ("", before), pressed),
                _all_see(students, lambda student, runs=runs: student.tab.runs > runs[student], pressed),
            )
            followed += there
            whole += ended
            voted: list[float] = []
            times = await asyncio.gather(
                *(student.vote(number / count * WITHIN, voted, failures) for number, student in enumerate(students))
            )
            answered += filter(None, times)
            if voted and teacher.labelled("button", "Reveal"):
                pressed = asyncio.create_task(_press(teacher, "Reveal"))
                seen = await _all_see(students, lambda student: student.is_revealed, pressed, max(voted))
                revealed += seen
                all_revealed.append(max(seen))
        took = time.perf_counter() - began
        shares = {
            "server_share_of_a_core": (processor_seconds(server.process.pid) - used) / took,
            "driver_share_of_a_core": (time.process_time() - driver) / took,
        }
    figures: dict = {"students": count, "moves": moves}
    for name, times in (
        ("followed", followed),
        ("whole", whole),
        ("answered", answered),
        ("revealed", revealed),
        ("all_revealed", all_revealed),
    ):
        figures |= {f"{name}_{part}": value for part, value in spread(times).items()} | {f"{name}_times": len(times)}
    return figures | shares | {"failures": failures[:20]}


class Student:
    """A student's tab: its page, and what the page's script asks of the room."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.membership, self.seen = tab, {}, {}

    async def join(self, code: str) -> None:
        await self.tab.open()
        await self.tab.turn("Learn")
        self.membership = {"code": code, "key": ""}
        answer = await self._ask("POST", "/members", {"browser": secrets.token_hex(16)})
        self.membership = answer
        found = {"membership": json.dumps([answer["code"], answer["key"], False]), "problem": ""}
        await self.tab.tell("headsup_room_membership", "found", found)

    async def follow(self) -> None:
        """Look at the room at each event, and have the page run where it has drawn another step, or not yet the view
        that a reveal opens."""
        async for _ in _events(self.tab.url, self.membership):
            drawn = self.tab.data("headsup_room")
            query = f"?{urlencode(dict(zip(('lesson', 'step'), drawn['step'], strict=True)))}" if drawn["step"] else ""
            self.seen = await self._ask("GET", query)
            is_there = drawn["room"] and drawn["room"]["step"] == self.seen["step"]
            if is_there and not (self.is_revealed and drawn["opens"] and not drawn["room"]["is_revealed"]):
                continue
            if is_there:
                await asyncio.sleep(random.random() * SPREAD)
            with contextlib.suppress(FailedError):
                await self.tab.tell("headsup_room", "changed", True)

    @property
    def step(self) -> str:
        return "/".join(map(str, self.seen.get("step") or ()))

    @property
    def is_revealed(self) -> bool:
        return self.seen.get("phase") == 2

    async def vote(self, after: float, voted: list[float], failures: list[str]) -> float:
        """Vote for the first answer; returns the seconds that took, 0 where there are no answers to choose from.

        voted: gets the time at which it was sent.
        """
        await asyncio.sleep(after)
        question = (self.seen.get("document") or {}).get("question")
        if not question or question["kind"] != "choose":
            return 0.0
        began = time.perf_counter()
        voted.append(began)
        lesson, step = self.seen["step"]
        try:
            await self._ask("POST", "/votes", {"lesson": lesson, "step": step, "answer": 0})
        except OSError as error:
            failures.append(str(error))
            return 0.0
        return time.perf_counter() - began

    async def _ask(self, method: str, path: str, body: dict | None = None) -> dict[str, Any]:
        headers = {HEADER: self.membership["key"], "Content-Type": "application/json"}
        url, data = f"{self.tab.url}/api/rooms/{self.membership['code']}{path}", body and json.dumps(body).encode()

        def ask() -> dict[str, Any]:
            request = urllib.request.Request(url, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return json.load(response)

        return await asyncio.to_thread(ask)


async def _events(url: str, membership: dict[str, str]) -> AsyncIterator[str]:
    """The versions of a room that a page hears of."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    path = f"/api/rooms/{membership['code']}/events"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n{HEADER}: {membership['key']}\r\n\r\n".encode())
    try:
        async for line in reader:
            if b'"version"' in line:
                yield json.loads(line.removeprefix(b"data: "))["version"]
    finally:
        writer.close()


async def _follow_as_teacher(tab: Tab) -> None:
    """Have what shows the room run for each event, as the teacher's page does."""
    async for version in _events(tab.url, tab.data("headsup_room_follower")["membership"]):
        if tab.data("headsup_room_follower")["version"] != version:
            with contextlib.suppress(FailedError):
                await tab.tell("headsup_room_follower", "changed", True)


async def _all_see(
    students: list[Student], sees: Callable[[Student], bool], pressed: asyncio.Task, began: float | None = None
) -> list[float]:
    """Seconds from a press, which is about to begin, to each student having what it brings.

    began: another time from which they count.
    """
    began = time.perf_counter() if began is None else began
    times: dict[int, float] = {}
    while len(times) < len(students) and time.perf_counter() - began < PATIENCE:
        for number, student in enumerate(students):
            if number not in times and sees(student):
                times[number] = time.perf_counter() - began
        await asyncio.sleep(0.01)
    await pressed
    return [times.get(number, PATIENCE) for number in range(len(students))]


async def _press(tab: Tab, *labels: str) -> float:
    return await tab.set(tab.labelled("button", *labels), trigger_value=True)


def _step(teacher: Tab) -> str:
    """The lesson and the number of the step on the teacher's page; "" for none."""
    told = [element.bidi_component for element in teacher.elements("bidi_component")]
    steps = [json.loads(each.json)["state"]["id"] for each in told if each.component_name == "headsup_lesson_step"]
    return steps[0] if steps else ""


def _texts(tab: Tab) -> list[str]:
    return [element.markdown.body for element in tab.elements("markdown")]
