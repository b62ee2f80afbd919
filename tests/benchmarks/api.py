"""Benchmarks the API: the time for a head of 256 tokens, and answers per second for thirty clients.

Against `python -m transformer serve`, a process of its own, from this one, each client over a connection of its own. A
head is its queries, keys and values, as the page Attention asks for them. Cold: of a text that nobody has asked about;
another head: of one whose pass is cached; again: the same question.
"""

from __future__ import annotations

import http.client
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from .measuring import machine, print_table

ROOT = Path(__file__).parents[2]
MODEL, LAYERS, HEADS, TOKENS = "shakespeare", 6, 6, 256
CLIENTS = 30
WORDS = ["the", "king", "shall", "have", "my", "crown", "and", "all", "his", "men", "to", "be", "or", "not"]


class Visitor:
    """A client with a connection and a cookie."""

    def __init__(self, port: int) -> None:
        self._connection, self._cookie = http.client.HTTPConnection("127.0.0.1", port, timeout=60), ""

    def ask(self, path: str, **parameters: object) -> tuple[float, int]:
        """Seconds until the answer is here, and its bytes."""
        began = time.perf_counter()
        headers = {"Cookie": self._cookie} if self._cookie else {}
        self._connection.request("GET", f"/api/{path}?{urlencode(parameters, doseq=True)}", headers=headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} was answered with {response.status}: {body[:200]!r}")
        self._cookie = response.headers.get("Set-Cookie", self._cookie).partition(";")[0]
        return time.perf_counter() - began, len(body)

    def head(self, text: str, layer: int, head: int) -> tuple[float, int]:
        """Ask for a head."""
        names = [f"blocks.{layer}.attn.hook_{part}[:, {head}]" for part in ("rot_q", "rot_k", "v")]
        return self.ask("tensors", model=MODEL, text=text, names=names)


def run(quick: bool) -> dict[str, object]:
    """Measure, print a table, return every figure. Seconds are in milliseconds."""
    chance = random.Random(0)
    with served() as port:
        visitor = Visitor(port)
        visitor.head(a_text(chance), 0, 0)  # opens the model
        cold, other, again, size = [], [], [], 0
        for _ in range(8 if quick else 40):
            text = a_text(chance)
            cold.append(visitor.head(text, 2, 1)[0])
            other.append(visitor.head(text, 4, 5)[0])
            seconds, size = visitor.head(text, 4, 5)
            again.append(seconds)
        together = thirty(port, chance, 3 if quick else 15)
    figures = {
        "cold": in_ms(cold),
        "another_head": in_ms(other),
        "again": in_ms(again),
        "bytes": size,
        "clients": CLIENTS,
        "answers_a_second": round(len(together["seconds"]) / together["took"], 1),
        "together": in_ms(together["seconds"]),
        "machine": machine(),
    }
    rows = [
        (name, *(f"{figures[key][part]:.1f}" for part in ("median", "p95", "worst")))
        for name, key in (
            ("a head, cold", "cold"),
            ("another head", "another_head"),
            ("the same again", "again"),
            (f"{CLIENTS} clients at once", "together"),
        )
    ]
    print_table(("milliseconds", "median", "95 %", "worst"), rows)
    print(f"{figures['answers_a_second']} answers a second, {size / 1000:.0f} kB each.")
    return figures


def thirty(port: int, chance: random.Random, seconds: float) -> dict[str, object]:
    """Thirty clients, each with a text of its own, ask for one head after another."""
    waited: list[float] = []
    texts = [a_text(chance) for _ in range(CLIENTS)]
    until = time.perf_counter() + seconds

    def ask(number: int) -> None:
        visitor, own = Visitor(port), random.Random(number)
        while time.perf_counter() < until:
            waited.append(visitor.head(texts[number], own.randrange(LAYERS), own.randrange(HEADS))[0])

    threads = [threading.Thread(target=ask, args=[number]) for number in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": waited, "took": time.perf_counter() - began}


def a_text(chance: random.Random) -> str:
    """As many characters as the model reads."""
    return " ".join(chance.choices(WORDS, k=TOKENS))[:TOKENS]


def in_ms(seconds: list[float]) -> dict[str, float]:
    """Median, 95th percentile and worst."""
    found = sorted(seconds)
    return {
        "median": round(1000 * statistics.median(found), 2),
        "p95": round(1000 * found[min(len(found) - 1, round(0.95 * len(found)))], 2),
        "worst": round(1000 * found[-1], 2),
    }


@contextmanager
def served() -> Iterator[int]:
    """The port of a server that runs meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformer", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > until:
                        raise RuntimeError("The server doesn't start.") from None
                    time.sleep(0.05)
            yield port
        finally:
            server.terminate()
