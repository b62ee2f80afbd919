"""Benchmarks thirty visitors on one small machine.

Thirty visitors have pages run over websockets and ask the engine over HTTP, two more sit at a real Chromium; server,
visitors and browser share two cores. What is timed is what the server has to answer, from the request to its end:
opening and changing a page, another prompt, the first token of a text, the picture of a pass, the numbers of a head or
a block. Then all press Generate within two seconds, first with short texts, then with texts longer than the context. A
client shows at most 25 tokens a second.

Then the same lesson once more, and Generate pressed by all once, with visitors whose browsers compute the models: they
have pages run as before, but ask the engine only for the first picture and the model's files. What their browsers
compute is computed nowhere here, as it would be on thirty other machines; the two in Chromium do, on the same cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from tests.browser.conftest import CHROMIUM_ARGS, find_chromium
from tests.browser.servers import Server

from .measuring import machine, percentile, print_table, spread
from .protocol import FailedError
from .serving import app_server, memory, on_two_cores, processor_seconds
from .visitors import ComputingVisitor, Log, Visitor, WatchingVisitor

VISITORS, WATCHING = 30, 2
LESSON, ARRIVAL = 180.0, 20.0
"""Seconds of the lesson, and of its beginning, during which visitors come."""
WITHIN, TOKENS = 2.0, 200
"""Seconds within which all press Generate, and the tokens that each then writes."""
COUNTED = ("page", "prompt", "text", "scores", "overview", "outline", "head", "block")
"""The kinds of answers that somebody waits for; others are fetched ahead, or told by the way."""
PRESSED = ("together", "together_past_the_context")


def run(quick: bool = False) -> dict:
    """Measure, print the tables, and return every figure."""
    on_two_cores()
    count, seconds = (8, 30.0) if quick else (VISITORS, LESSON)
    with app_server() as server:
        figures = asyncio.run(_measure(server, Visitor, count, seconds))
    print("\nwith browsers that compute")
    with app_server(HEADSUP_BROWSER_MODELS="") as server:
        computing = asyncio.run(_measure(server, ComputingVisitor, count, seconds))
    return figures | {f"in_browsers_{name}": value for name, value in computing.items()} | machine()


async def _measure(server: Server, kind: type[Visitor], count: int, seconds: float) -> dict:
    async with Visitor(server.url, count, Log()).tab as tab:
        await tab.open()  # the room comes to a server that has started
    log = Log()
    began, used = time.perf_counter(), processor_seconds(server.process.pid)
    driver = time.process_time()
    noted: list[float] = []
    noting = asyncio.create_task(_note_memory(server.process.pid, noted))
    async with _room(server.url, kind, count, log) as (visitors, watching):
        until = began + seconds
        await asyncio.gather(
            *(_attend(visitor, number, count, seconds, until) for number, visitor in enumerate([*visitors, *watching]))
        )
        took = time.perf_counter() - began
        spent = processor_seconds(server.process.pid) - used
        shares = {
            "server_processor_seconds": spent,
            "server_share_of_a_core": spent / took,
            "driver_share_of_a_core": (time.process_time() - driver) / took,
        }
        after = memory(server.process.pid)["VmRSS"]
        figures = _lesson(log) | shares
        for name in PRESSED if kind is Visitor else PRESSED[:1]:
            used = processor_seconds(server.process.pid)
            pressed = await _press_together(visitors, name, is_long=name == PRESSED[1])
            spent = processor_seconds(server.process.pid) - used
            figures |= {f"{name}_server_processor_seconds": spent} | (pressed if kind is Visitor else {})
        noted.append(memory(server.process.pid)["VmRSS"])
        figures |= {
            "memory_MB_after_the_lesson": after,
            "memory_MB_at_the_end": noted[-1],
            "memory_MB_by_minute": [*noted[:-1:6], noted[-1]],
            "memory_MB_most": max(noted),
        }
    noting.cancel()
    problems = sorted(set(log.failures))
    print_table(("figure", "value"), [(name.replace("_", " "), str(_short(value))) for name, value in figures.items()])
    for problem in problems[:20]:
        print(f"failed: {problem}")
    if server.has_traceback():
        print(server.log_tail())
    return {name: _short(value) for name, value in figures.items()} | {
        "visitors": count,
        "failures": problems[:20],
        "traceback": server.has_traceback(),
    }


@asynccontextmanager
async def _room(
    url: str, kind: type[Visitor], count: int, log: Log
) -> AsyncIterator[tuple[list[Visitor], list[WatchingVisitor]]]:
    """All visitors of a lesson, connected; those in a browser only where there is one."""
    visitors = [kind(url, number, log) for number in range(count)]
    async with AsyncExitStack() as stack:
        for visitor in visitors:
            await stack.enter_async_context(visitor.tab)
        watching = []
        if executable := find_chromium():
            from playwright.async_api import async_playwright

            playwright = await stack.enter_async_context(async_playwright())
            browser = await playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
            stack.push_async_callback(browser.close)
            watching = [WatchingVisitor(browser, url, count + number, log) for number in range(WATCHING)]
        yield visitors, watching


async def _attend(visitor: Visitor | WatchingVisitor, number: int, count: int, seconds: float, until: float) -> None:
    await asyncio.sleep(number / count * min(ARRIVAL, seconds / 3))
    try:
        await visitor.open()
    except FailedError:
        return
    await visitor.learn(until)


async def _press_together(visitors: Sequence[Visitor], name: str, *, is_long: bool) -> dict[str, float]:
    """All press Generate within two seconds: the time to the first token, and the tokens that each sees a second.

    is_long: their texts are longer than the context.
    """
    for visitor in visitors:
        with contextlib.suppress(FailedError):
            await (visitor.lengthen() if is_long else visitor.change_page("Generate"))

    async def press(visitor: Visitor, number: int) -> tuple[float, float] | None:
        await asyncio.sleep(number / len(visitors) * WITHIN)
        try:
            return await visitor.write(TOKENS, anew=not is_long)
        except FailedError:
            return None

    found = await asyncio.gather(*(press(visitor, number) for number, visitor in enumerate(visitors)))
    firsts, rates = zip(*filter(None, found), strict=True)
    return {
        **{f"{name}_first_token_{part}": value for part, value in spread(firsts).items()},
        f"{name}_tokens_per_second_median": statistics.median(rates),
        f"{name}_tokens_per_second_least": min(rates),
        f"{name}_failed": found.count(None),
    }


def _lesson(log: Log) -> dict[str, float]:
    """Median, 95 %, worst and failed of each kind, and of all that somebody waits for together."""
    kinds = {kind: [seconds for _, seconds in answers] for kind, answers in log.answers.items()}
    together = [seconds for kind in COUNTED for seconds in kinds.get(kind, [])]
    figures: dict[str, float] = {}
    rows = []
    for kind, times in [("all", together), *sorted(kinds.items())]:
        failed = len(log.failures) if kind == "all" else sum(f.startswith(f"{kind}:") for f in log.failures)
        found = spread(times)
        rows.append((kind, str(len(times)), *(f"{value:.3f}" for value in found.values()), str(failed)))
        of_kind = {"count": len(times), **found, "failed": failed}
        figures |= {f"{kind}_{name}".replace(" ", "_"): value for name, value in of_kind.items()}
    print_table(("answers", "times", "median s", "95 % s", "worst s", "failed"), rows)
    stalls = log.stalls or [0.0]
    return figures | {"texts": len(log.stalls), "text_stood_still_95": percentile(stalls, 95)}


async def _note_memory(process: int, noted: list[float]) -> None:
    while True:
        noted.append(memory(process)["VmRSS"])
        await asyncio.sleep(10)


def _short(value: object) -> object:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return round(value, 3) if isinstance(value, float) else value
