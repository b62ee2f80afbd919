"""Benchmarks a room: how fast thirty students follow their teacher.

Everybody speaks Streamlit's protocol over websockets. The teacher goes from step to step; what is timed is how long it
takes from the press to each student's page showing the step's title (`followed`), and to the end of that page, its live
view included (`whole`). At each step everybody answers, too, within two seconds: a choice and a press, which the server
answers one after the other (`answered` is both together, `request` each by itself, as the benchmark `load` counts).
Then the teacher reveals what is right: `revealed` is the time from the last vote to each student's page showing that,
and `all revealed`, once for each step, to the last of these pages. The load is the machine's, over the last minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
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
        students = [await stack.enter_async_context(Tab(server.url, urlencode({"room": code}))) for _ in range(count)]
        for student in students:
            await student.open()
            await student.turn("Learn")
            await student.set(student.labelled("text_input", "Join a room with its code"), string_value=code)
            await _press(student, "Join")
        for tab in (teacher, *students):
            following = asyncio.create_task(_follow(tab))
            stack.callback(following.cancel)
        began, used, driver = time.perf_counter(), processor_seconds(server.process.pid), time.process_time()
        followed: list[float] = []
        whole: list[float] = []
        requests: list[float] = []
        answered: list[float] = []
        revealed: list[float] = []
        all_revealed: list[float] = []
        for _ in range(moves):
            before, runs = _title(teacher), {tab: tab.runs for tab in students}
            pressed = asyncio.create_task(_press(teacher, "Next step", "Next lesson"))
            titled, ended = await asyncio.gather(
                _all_see(students, lambda tab, before=before: _title(tab) != before, pressed),
                _all_see(students, lambda tab, runs=runs: tab.runs > runs[tab], pressed),
            )
            followed += titled
            whole += ended
            voted: list[float] = []
            both = await asyncio.gather(
                *(_answer(tab, number / count * WITHIN, voted, failures) for number, tab in enumerate(students))
            )
            requests += [seconds for each in both for seconds in each]
            answered += [sum(each) for each in both if each]
            if voted and teacher.labelled("button", "Reveal"):
                pressed = asyncio.create_task(_press(teacher, "Reveal"))
                seen = await _all_see(students, _is_revealed, pressed, max(voted))
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
        ("request", requests),
        ("answered", answered),
        ("revealed", revealed),
        ("all_revealed", all_revealed),
    ):
        figures |= {f"{name}_{part}": value for part, value in spread(times).items()} | {f"{name}_times": len(times)}
    return figures | shares | {"failures": failures[:20]}


async def _follow(tab: Tab) -> None:
    """Listen to the room's events as a page does, and have what shows the room run for each."""
    address = urlsplit(tab.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    membership = tab.data("headsup_room_follower")["membership"]
    writer.write(f"GET /api/rooms/events HTTP/1.1\r\nHost: {address.netloc}\r\n{HEADER}: {membership}\r\n\r\n".encode())
    try:
        async for line in reader:
            if b'"version"' in line and tab.data("headsup_room_follower")["version"] not in line.decode():
                with contextlib.suppress(FailedError):
                    await tab.tell("headsup_room_follower", "changed", True)
    finally:
        writer.close()


async def _all_see(
    students: list[Tab], sees: Callable[[Tab], bool], pressed: asyncio.Task, began: float | None = None
) -> list[float]:
    """Seconds from a press, which is about to begin, to each student's page showing what it brings.

    began: another time from which they count.
    """
    began = time.perf_counter() if began is None else began
    times: dict[int, float] = {}
    while len(times) < len(students) and time.perf_counter() - began < PATIENCE:
        for number, tab in enumerate(students):
            if number not in times and sees(tab):
                times[number] = time.perf_counter() - began
        await asyncio.sleep(0.01)
    await pressed
    return [times.get(number, PATIENCE) for number in range(len(students))]


async def _answer(tab: Tab, after: float, voted: list[float], failures: list[str]) -> tuple[float, ...]:
    """Choose the first answer of a question, and send it; returns the seconds that each run took.

    None where there are no answers to choose from. voted: gets the time at which it was sent.
    """
    await asyncio.sleep(after)
    radio = tab.labelled("radio", "Your answer")
    if radio is None:
        return ()
    try:
        chosen = await tab.set(radio, string_value=radio.options[0])
        voted.append(time.perf_counter())
        return chosen, await _press(tab, "Answer")
    except (FailedError, AttributeError) as error:
        failures.append(str(error))
        return ()


async def _press(tab: Tab, *labels: str) -> float:
    return await tab.set(tab.labelled("button", *labels), trigger_value=True)


def _title(tab: Tab) -> str:
    """Of the step that a page shows."""
    return next((element.heading.body for element in tab.elements("heading") if element.heading.tag == "h2"), "")


def _texts(tab: Tab) -> list[str]:
    return [element.markdown.body for element in tab.elements("markdown")]


def _is_revealed(tab: Tab) -> bool:
    return any("The answer is revealed" in text for text in _texts(tab))
