"""Benchmarks the API: the time for a head of 256 tokens, and answers per second for thirty clients.

A head is its queries, keys and values, as the page Attention asks for them. Cold: of a text nobody has asked about;
another head: of one whose pass is cached; again: the same question.
"""

from __future__ import annotations

import asyncio
import random
import time

from .engine_client import EngineClient
from .measuring import machine, print_table, spread
from .serving import app_server

MODEL, LAYERS, HEADS, TOKENS = "shakespeare", 6, 6, 256
CLIENTS = 30
WORDS = ["the", "king", "shall", "have", "my", "crown", "and", "all", "his", "men", "to", "be", "or", "not"]


def run(quick: bool) -> dict[str, object]:
    """Measure, print a table, return every figure, in milliseconds."""
    with app_server() as server:
        return asyncio.run(_measure(server.url, 8 if quick else 40, 3 if quick else 15))


async def _measure(url: str, rounds: int, seconds: float) -> dict[str, object]:
    chance, client = random.Random(0), EngineClient(url)
    await _head(client, _text(chance), 0, 0)  # opens the model
    waited: dict[str, list[float]] = {"cold": [], "another_head": [], "again": [], "together": []}
    for _ in range(rounds):
        text, before = _text(chance), client.bytes
        for name, place in (("cold", (2, 1)), ("another_head", (4, 5)), ("again", (4, 5))):
            waited[name].append(await _head(client, text, *place))
    size, began = (client.bytes - before) // 3, time.perf_counter()

    async def ask(number: int) -> None:
        """One head after another, of a text of its own."""
        own, text = random.Random(number), _text(random.Random(1000 + number))
        one = EngineClient(url)
        while time.perf_counter() < began + seconds:
            waited["together"].append(await _head(one, text, own.randrange(LAYERS), own.randrange(HEADS)))

    await asyncio.gather(*map(ask, range(CLIENTS)))
    rate = round(len(waited["together"]) / (time.perf_counter() - began), 1)
    figures = {name: spread(times) for name, times in waited.items()}
    rows = [(name.replace("_", " "), *(f"{each:.1f}" for each in found.values())) for name, found in figures.items()]
    print_table(("milliseconds", "median", "95 %", "worst"), rows)
    print(f"{rate} answers a second to {CLIENTS} clients, {size / 1000:.0f} kB each.")
    return {**figures, "bytes": size, "clients": CLIENTS, "answers_a_second": rate, "machine": machine()}


async def _head(client: EngineClient, text: str, layer: int, head: int) -> float:
    """Milliseconds until a head is here."""
    names = [f"blocks.{layer}.attn.hook_{part}[:, {head}]" for part in ("rot_q", "rot_k", "v")]
    return 1000 * (await client.recording("tensors", model=MODEL, text=text, names=names))[0]


def _text(chance: random.Random) -> str:
    """As many characters as the model reads."""
    return " ".join(chance.choices(WORDS, k=TOKENS))[:TOKENS]
