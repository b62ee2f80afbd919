"""A real model in the app: a visitor opens every page on it, with a short prompt and a long one.

Measured in the server's process: seconds until a page is all there, bytes that it sends, resident memory after it and
the most while it was made, and tokens a second on the page Generate with one layer's attention shown. Two cores, as
many as Community Cloud lends.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.browser.servers import ROOT, Server

from .measuring import print_table
from .protocol import FailedError, Tab
from .visitors import Log, Visitor

STORY = (
    "The old lighthouse keeper climbed the stairs every evening, because the lamp would not light itself. She carried "
    "a small bottle of oil and counted the steps aloud, although there was nobody who could hear her. "
)
PROMPTS = {"short": 32, "long": 512}
"""How many tokens the prompts have, about."""
PAGES = ("Attention", "Masks", "Positions", "Inside", "What if")
WRITTEN = 32
"""Tokens that are written."""


def prompt_of(encode: Callable[[str], list[int]], tokens: int) -> str:
    """A text of at most so many tokens, as many whole words of it as fit."""
    words = (STORY * (tokens // 20 + 1)).split()
    count = next(count for count in range(len(words), 0, -1) if len(encode(" ".join(words[:count]))) <= tokens)
    return " ".join(words[:count])


def opened_pages(checkpoints: Path, name: str, prompts: Mapping[str, str]) -> dict[str, float]:
    """Open every page on a checkpoint, with each prompt; every figure, by what was done."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HEADSUP_CHECKPOINTS": str(checkpoints)}
        server = Server(ROOT / "app.py", log_path=Path(folder, "log"), cwd=ROOT, env=environment, options=())
        with server:
            server.wait_until_healthy()
            figures = asyncio.run(_visit(server, name, prompts))
            if server.has_traceback():
                raise RuntimeError(server.log_tail())
    return figures


async def _visit(server: Server, name: str, prompts: Mapping[str, str]) -> dict[str, float]:
    process, figures = server.process.pid, {}
    figures["MB_before"] = memory(process)["VmRSS"]
    for length, prompt in prompts.items():
        visitor = Visitor(server.url, 0, Log())
        visitor.tab.query = urlencode({"model": name, "prompt": prompt, "tokens": WRITTEN, "temperature": 0})
        async with visitor.tab as tab:
            await _measured(process, tab, f"{length}_Generate", tab.open(), figures)
            writing = visitor.write(WRITTEN)
            _, figures[f"{length}_tokens_per_second"] = await _measured(
                process, tab, f"{length}_written", writing, figures)  # fmt: skip
            for page in PAGES:
                await _measured(process, tab, f"{length}_{page.replace(' ', '_')}", visitor.change_page(page), figures)
                if page in ("Attention", "Inside"):
                    await _measured(process, tab, f"{length}_look_at_{page}", visitor.look(), figures)
            if failed := visitor.log.failures:
                raise FailedError(failed[0])
    figures["MB_at_the_end"] = memory(process)["VmRSS"]
    figures["MB_most"] = max(value for name, value in figures.items() if name.endswith("_MB_most"))
    return figures


async def _measured(process: int, tab: Tab, what: str, doing: Awaitable, figures: dict[str, float]) -> Any:
    """Do something, and note how long it took, what came, and the memory that it took."""
    Path(f"/proc/{process}/clear_refs").write_text("5")  # the most so far is forgotten: proc(5)
    loop = asyncio.get_running_loop()
    began, came, used = loop.time(), tab.bytes, processor_seconds(process)
    found = await doing
    figures[f"{what}_seconds"], figures[f"{what}_bytes"] = loop.time() - began, tab.bytes - came
    now = memory(process)
    figures[f"{what}_MB"], figures[f"{what}_MB_most"] = now["VmRSS"], now["VmHWM"]
    figures[f"{what}_processor_seconds"] = processor_seconds(process) - used
    return found


def memory(process: int) -> dict[str, float]:
    """Megabytes of a process: VmRSS, all that is resident; VmHWM, the most; RssAnon, what no file holds; RssFile."""
    fields = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return {name.rstrip(":"): int(rest[0]) / 1000 for name, *rest in fields if rest[1:] == ["kB"]}


def processor_seconds(process: int) -> float:
    """Processor time that a process has used: on a busy machine it tells more than the time on the wall."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def print_pages(figures: dict[str, float]) -> None:
    """A table of what was done, a row each."""
    columns = ("seconds", "processor_seconds", "bytes", "MB", "MB_most")
    done = [name.removesuffix("_processor_seconds") for name in figures if name.endswith("_processor_seconds")]
    print_table(("what", *columns),
                [(what, *(f"{figures[f'{what}_{column}']:,.2f}" for column in columns)) for what in done])  # fmt: skip
