"""Benchmarks every page with a pretrained model, with a short and a long prompt.

Measured in the server's process: seconds until a page is all there, bytes that it sends, resident memory after it and
the most while it was made, and tokens a second on the page Generate with one layer's attention shown. Two cores, as
many as Community Cloud lends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.browser.servers import Server

from .measuring import print_table
from .protocol import FailedError
from .serving import app_server, memory, processor_seconds
from .visitors import Log, Visitor

STORY = (
    "The old lighthouse keeper climbed the stairs every evening, because the lamp would not light itself. She carried "
    "a small bottle of oil and counted the steps aloud, although there was nobody who could hear her. "
)
PROMPTS = {"short": 32, "long": 512}
"""How many tokens the prompts have, about."""
PAGES = ("Attention", "Masks", "Positions", "Inside", "What if")
WRITTEN = 64
"""Tokens that are written."""
REST = 3.0
"""Seconds that a server lets pass before it prepares other pages than the first."""


def prompt_of(encode: Callable[[str], list[int]], tokens: int) -> str:
    """A text of at most so many tokens, as many whole words of it as fit."""
    words = (STORY * (tokens // 20 + 1)).split()
    count = next(count for count in range(len(words), 0, -1) if len(encode(" ".join(words[:count]))) <= tokens)
    return " ".join(words[:count])


def opened_pages(checkpoints: Path, name: str, prompts: Mapping[str, str]) -> dict[str, float]:
    """Open every page on a checkpoint, with each prompt; every figure, by what was done."""
    with app_server(HEADSUP_CHECKPOINTS=str(checkpoints)) as server:
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
        async with visitor.tab:
            await _measured(process, visitor, f"{length}_Generate", visitor.open(), figures)
            await _at_rest(process)
            writing = visitor.write(WRITTEN)
            _, figures[f"{length}_tokens_per_second"] = await _measured(
                process, visitor, f"{length}_written", writing, figures
            )
            for page in PAGES:
                name = f"{length}_{page.replace(' ', '_')}"
                await _measured(process, visitor, name, visitor.change_page(page), figures)
                if page in ("Attention", "Inside"):
                    await _measured(process, visitor, f"{length}_look_at_{page}", visitor.look(), figures)
            if failed := visitor.log.failures:
                raise FailedError(failed[0])
    figures["MB_at_the_end"] = memory(process)["VmRSS"]
    figures["MB_most"] = max(value for name, value in figures.items() if name.endswith("_MB_most"))
    return figures


async def _at_rest(process: int) -> None:
    """Wait until the server has ended what it does ahead once its first visitor has come."""
    used = -1.0
    while (now := processor_seconds(process)) - used > 0.1:
        used = now
        await asyncio.sleep(2 * REST)


async def _measured(process: int, visitor: Visitor, what: str, doing: Awaitable, figures: dict[str, float]) -> Any:
    """Do something, and note how long it took, what came, and the memory that it took."""
    Path(f"/proc/{process}/clear_refs").write_text("5")  # the most so far is forgotten: proc(5)
    loop = asyncio.get_running_loop()
    began, came, used = loop.time(), visitor.bytes, processor_seconds(process)
    found = await doing
    figures[f"{what}_seconds"], figures[f"{what}_bytes"] = loop.time() - began, visitor.bytes - came
    now = memory(process)
    figures[f"{what}_MB"], figures[f"{what}_MB_most"] = now["VmRSS"], now["VmHWM"]
    figures[f"{what}_processor_seconds"] = processor_seconds(process) - used
    return found


def print_pages(figures: dict[str, float]) -> None:
    """A table of what was done, a row each."""
    columns = ("seconds", "processor_seconds", "bytes", "MB", "MB_most")
    done = [name.removesuffix("_processor_seconds") for name in figures if name.endswith("_processor_seconds")]
    print_table(
        ("what", *columns), [(what, *(f"{figures[f'{what}_{column}']:,.2f}" for column in columns)) for what in done]
    )
