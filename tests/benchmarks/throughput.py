"""Benchmarks one, two and three copies of the app behind nginx: what they answer together.

Visitors ask without pausing, as many for each copy: a head's numbers of a text that is new each time, so that nothing
is cached, and a page run anew over its websocket. Measured are answers a second, and the processor time that the copies
use for one. Copies share nothing but the machine, so on machines of their own each answers what one does, as long as
an answer takes no more processor time than with one copy: that is computed, from the time and from what one process of
Python can use, a core. Each copy is held to a core of its own, and the visitors to those that are left: where none is
left, they take from the copies, and the answers a second say little.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from deploy.replicas import Replicas, free_port

from .engine_client import EngineClient
from .load import percentile
from .measuring import machine, print_table
from .protocol import Cookies, FailedError
from .returning import ReturningTab
from .serving import memory, processor_seconds

MOST, FOR_EACH, SECONDS, WARM_UP = 3, 8, 30.0, 3.0
"""Copies, visitors for each, seconds that are measured and before."""

CORES = sorted(os.sched_getaffinity(0))


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    os.environ["HEADSUP_START"] = "off"
    rows = []
    for count in range(1, MOST + 1):
        with tempfile.TemporaryDirectory() as folder, Replicas(Path(folder), count, free_port()) as replicas:
            replicas.start_all()
            rows.append(asyncio.run(_measure(replicas, count, 10.0 if quick else SECONDS)))
    one = rows[0]
    for row in rows:
        alike = one["ms of a core for an answer"] / row["ms of a core for an answer"]
        row["times as much, computed"] = round(row["copies"] * min(1.0, alike), 2)
        row["times as much, measured"] = round(row["answers a second"] / one["answers a second"], 2)
    print_table(("", *("" for _ in rows)), [(name, *(str(row[name]) for row in rows)) for name in one])
    return {"rows": rows, **machine()}


async def _measure(replicas: Replicas, count: int, seconds: float) -> dict:
    pids = [replicas.processes[f"app-{at}"].pid for at in range(1, count + 1)]
    free = _pin(pids)
    answered: list[float] = []
    failed: list[str] = []
    async with AsyncExitStack() as stack:
        tabs = [
            await stack.enter_async_context(ReturningTab(replicas.url, "model=shakespeare&prompt=To be"))
            for _ in range(count * FOR_EACH)
        ]
        for tab in tabs:
            await tab.open()
        asking = [asyncio.create_task(_ask(tab, number, answered, failed)) for number, tab in enumerate(tabs)]
        await asyncio.sleep(WARM_UP)
        answered.clear()
        began, used = time.perf_counter(), sum(map(processor_seconds, pids))
        await asyncio.sleep(seconds)
        took, used = time.perf_counter() - began, sum(map(processor_seconds, pids)) - used
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return {
        "copies": count,
        "visitors": len(tabs),
        "answers a second": round(len(answered) / took, 1),
        "failed": len(failed),
        "95 % of them within, s": round(percentile(answered, 95), 2),
        "ms of a core for an answer": round(1000 * used / len(answered), 1),
        "cores used by the copies": round(used / took, 2),
        "cores left to the visitors": free,
        "MB of a copy": round(sum(memory(pid)["VmRSS"] for pid in pids) / count),
        "load of the machine": round(os.getloadavg()[0], 1),
    }


def _pin(pids: list[int]) -> int:
    """Hold each process to a core, with all its threads, and this one to the others; returns how many those are."""
    for at, pid in enumerate(pids):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {CORES[at % len(CORES)]})
    left = CORES[len(pids) :]
    os.sched_setaffinity(0, left or CORES)
    return len(left)


async def _ask(tab: ReturningTab, number: int, answered: list[float], failed: list[str]) -> None:
    """In turn a page, and what its instrument asks for."""
    engine = EngineClient(tab.url, Cookies(tab.cookies))
    at = 0
    while True:
        at += 1
        began = time.perf_counter()
        try:
            if at % 2:
                await tab.again()
            else:
                about = tab.data("headsup_generation")
                engine.asks = about["request"]
                tokens = [*about["prompt"], *((number * 7919 + at * 31 + each) % 60 for each in range(24))]
                module = about["modules"]["self"][at % len(about["modules"]["self"])]
                text = ",".join(map(str, tokens))
                await engine.recording("rows", tokens=text, attention=module, head=0, first=1, last=len(tokens))
            answered.append(time.perf_counter() - began)
        except FailedError as error:
            failed.append(str(error))
