"""Simulates visitors of a lesson, with and without a browser, from a seed.

A visitor without a browser has pages run, and asks the engine what the page's instrument would ask, when it would: its
first picture, a text as a stream, a head's numbers that aren't there yet, and those of all others ahead. What a browser
answers by itself asks for nothing, and isn't counted.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlencode

from pages.ui.components.assets import WORKER, address
from tests.browser.servers import ROOT
from transformer import Tokenizer

from .engine_client import EngineClient
from .protocol import SHELL, FailedError, Tab

PAGES = ("Generate", "Attention", "Masks", "Positions", "Inside", "What if", "Learn", "Train")
MODELS = ("shakespeare", "shakespeare", "shakespeare", "martin-fierro")
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer", "come", "all", "night")
"""Of letters that all of these models know."""
TOKENS, PACE = 60, 25.0
"""Of a text, and how many of them are revealed in a second."""
ORDERS = 8
"""Random orders of a text that the page Positions tries."""
SAMPLING = {"temperature": 0.8, "seed": 1}
MOST_NAMES, MOST_CELLS, SLICED = 64, 2_000_000, 100_000
"""Of one question of the page Inside, and the cells above which a tensor with heads comes head by head."""
AT_ONCE, AHEAD, MOST_HEADS = 400_000, 8_000_000, 16
"""Bytes of one question for heads that nobody waits for, and of all; heads of one question."""
THINK = (2.0, 6.0)
LONGEST_CONTEXT = 256


@dataclass
class Log:
    """How long the server took to answer, by kind, in seconds, with the time at which it did; and what went wrong."""

    answers: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    """Seconds for which each text stood still because its next token was late."""

    def note(self, kind: str, seconds: float) -> None:
        """An answer has come."""
        self.answers.setdefault(kind, []).append((time.perf_counter(), seconds))

    async def timed(self, kind: str, asked: Awaitable[Any]) -> Any:
        """Wait for an answer, which is its seconds or begins with them, and note its time."""
        found = await self.tried(kind, asked)
        self.note(kind, found[0] if isinstance(found, tuple) else found)
        return found

    async def tried(self, kind: str, asked: Awaitable[Any]) -> Any:
        """Wait for an answer; note if there is none."""
        try:
            return await asked
        except (FailedError, OSError) as error:
            self.failures.append(f"{kind}: {error}")
            raise FailedError(str(error)) from error


def seen_at(times: Sequence[float], pace: float = PACE) -> list[float]:
    """When each token of a text is seen that is revealed at a pace, as soon as the first comes. times: of coming."""
    seen: list[float] = []
    for came in times:
        seen.append(max(came, seen[-1] + 1 / pace) if seen else came)
    return seen


@cache
def _tokenizer(model: str) -> Tokenizer:
    return Tokenizer.from_file(ROOT / "checkpoints" / model / "tokenizer.json")


class Visitor:
    """One visitor without a browser."""

    def __init__(self, url: str, number: int, log: Log) -> None:
        self.random = random.Random(number)
        self.log = log
        self.at = "Generate"
        self.model = MODELS[number % len(MODELS)]
        self._passes: dict[tuple[str, str], _Pass] = {}
        """What has come of the passes that were looked at, by path and prompt."""
        self.tab = Tab(url)
        self.engine = EngineClient(url, self.tab.cookies)
        self._begin_text()

    def _begin_text(self) -> None:
        """Take another prompt."""
        self.prompt = " ".join(self.random.choices(WORDS, k=self.random.randint(4, 9)))
        self.tokens = _tokenizer(self.model).encode(self.prompt)
        self.written: list[int] = []
        self.tab.query = urlencode({"model": self.model, "prompt": self.prompt, "pace": "fast"})
        self.engine.asks = {**self.engine.asks, "tokens": _list(self.tokens)}

    async def open(self) -> None:
        """Come to the first page."""
        await self.log.timed("page", self.tab.open())
        _, models = await self.engine.json("models")
        version = next(each["version"] for each in models["models"] if each["name"] == self.model)
        self.engine.asks = {"model": self.model, "version": version, "tokens": _list(self.tokens)}
        await self._draw()

    async def learn(self, until: float) -> None:
        """Take part in the lesson up to a time; what fails is noted, and the visitor goes on."""
        acts: dict[Callable[[], Awaitable[Any]], int] = {
            self.write: 4,
            self.change_page: 4,
            self.look: 3,
            self.type_prompt: 2,
        }
        while (left := until - time.perf_counter()) > 0:
            await asyncio.sleep(min(self.random.uniform(*THINK), left))
            (act,) = self.random.choices(list(acts), list(acts.values()))
            try:
                await act()
            except FailedError:
                await asyncio.sleep(1)

    async def change_page(self, to: str | None = None) -> None:
        """Go to another page."""
        name = to or self.random.choice([page for page in PAGES if page != self.at])
        if name == self.at:
            return
        await self.log.timed("page", self.tab.turn(name))
        self.at = name
        await self._draw()

    async def type_prompt(self) -> None:
        """Type another prompt, on a page that reads one."""
        if self.at in ("Learn", "Train"):
            return
        self._begin_text()
        if "prompt" in self.tab.data(SHELL)["drawn"]:  # by Python, whose page runs again
            await self.log.timed("prompt", self.tab.hold({"model": self.model, "prompt": self.prompt}))
        await self._draw()

    async def _draw(self) -> None:
        """Ask what the page's instrument draws, and fetch ahead what it fetches."""
        if self.at == "Attention":
            found = await self._pass("overview")
            heads = [
                (layer, head)
                for layer in range(len(found.about["modules"]))
                for head in range(found.about["config"]["n_heads"])
            ]
            config, about = found.about["config"], found.about
            size = 4 * config["d_model"] // config["n_heads"] * (about["queries"] + 2 * about["keys"])
            at_once = min(MOST_HEADS, max(1, AT_ONCE // size))
            for first in range(0, min(len(heads), max(1, AHEAD // size)), at_once):
                await self._ask_heads(found, heads[first : first + at_once], "ahead")
        elif self.at == "Inside":
            await self._pass("outline")
        elif self.at == "Masks":
            both = (self._ask("predictions", "predictions", changes=changes) for changes in (None, "without~mask~"))
            await asyncio.gather(*both)
        elif self.at == "Positions":
            last = len(self.tokens) - 1
            orders = [_list(self.random.sample(self.tokens, len(self.tokens))) for _ in range(ORDERS)]
            await self._ask("predictions", "predictions", first=last, last=last, orders=orders)
            less = [["without~positions~"], ["without~positions~", "without~mask~"]]
            asks = {"first": last, "last": last, "orders": orders[:1]}
            await asyncio.gather(*(self._ask("predictions", "predictions", changes="!".join(c), **asks) for c in less))
        elif self.at == "Generate":
            text = self.tokens + self.written
            await self._ask("scores", "scores", tokens=_list(text), first=len(text), **SAMPLING)

    async def _ask(self, kind: str, path: str, /, **values: Any) -> Any:
        """A recording."""
        _, found = await self.log.timed(kind, self.engine.recording(path, **values))
        return found

    async def _pass(self, path: str) -> _Pass:
        """What is known of the prompt's pass; its picture is asked for first."""
        key = path, self.prompt
        if key not in self._passes:
            found = await self._ask(path, path)
            self._passes[key] = _Pass(found.metadata, {name.removeprefix("strip.") for name in found.tensors})
        return self._passes[key]

    async def look(self) -> None:
        """Look at something else on the page: another head, or another block."""
        await (self.open_block() if self.at == "Inside" else self.look_at_head())

    async def open_block(self) -> None:
        """Open a block of the whole pass, and ask for the numbers that its picture doesn't have yet."""
        found = await self._pass("outline")
        block = f"blocks.{self.random.randrange(found.about['config']['n_layers'])}."
        missing = [
            info
            for info in found.about["tensors"]
            if info["name"].startswith(block) and info["kind"] == "point" and info["name"] not in found.has
        ]
        while missing:
            names, cells = [], 0
            for info in missing[:MOST_NAMES]:
                size, name = math.prod(info["sizes"]), info["name"]
                if "head" in info["dims"] and size > SLICED:
                    axis = info["dims"].index("head")
                    size, name = size // info["sizes"][axis], f"{name}[{':, ' * axis}0]"
                if names and cells + size > MOST_CELLS:
                    break
                cells += size
                names.append(name)
            await self._ask("block", "tensors", names=names)
            found.has.update(info["name"] for info in missing[: len(names)])
            missing = missing[len(names) :]

    async def look_at_head(self) -> None:
        """Look at another head, of a text or of a pass."""
        if self.at == "Attention":
            found = await self._pass("overview")
            layer = self.random.randrange(len(found.about["modules"]))
            await self._ask_heads(found, [(layer, self.random.randrange(found.about["config"]["n_heads"]))], "head")
        elif self.at == "Generate":
            text, where = self.tokens + self.written, {"attention": "blocks.0.attn", "head": self.random.randrange(2)}
            await self._ask("head", "rows", tokens=_list(text), first=max(1, len(text) - 100), last=len(text), **where)

    async def _ask_heads(self, found: _Pass, heads: list[tuple[int, int]], kind: str) -> None:
        names = []
        for layer, head in heads:
            around, config = found.about["names"][layer], found.about["config"]
            shared = head * (config.get("n_kv_heads") or config["n_heads"]) // config["n_heads"]
            names += [f"{around[what]}[:, {which}]" for what, which in (("q", head), ("k", shared), ("v", shared))]
        if missing := [name for name in dict.fromkeys(names) if name not in found.has]:
            await self._ask(kind, "tensors", names=missing)
            found.has.update(missing)

    async def write(self, tokens: int = TOKENS, *, anew: bool | None = None) -> tuple[float, float]:
        """Press Generate and watch the text at its pace.

        anew: take away what was written before; None leaves that to chance. Returns the seconds to the first token,
        and the tokens seen in a second.
        """
        await self.change_page("Generate")
        if anew or (anew is None and self.random.random() < 0.5):
            self.written = []
        pressed = time.perf_counter()
        ids, times = await self.log.tried("text", self.engine.generate(self.tokens + self.written, tokens, **SAMPLING))
        seen = seen_at(times)
        self.log.note("text", times[0])
        self.log.stalls.append(seen[-1] - (len(seen) - 1) / PACE)
        self.written += ids
        await asyncio.sleep(max(pressed + seen[-1] - time.perf_counter(), 0))
        return times[0], len(seen) / seen[-1]

    async def lengthen(self) -> None:
        """Have a text that is longer than the context."""
        await self.change_page("Generate")
        text = self.tokens + self.written
        if (missing := LONGEST_CONTEXT + 1 - len(text)) > 0:
            ids, _ = await self.log.tried("text", self.engine.generate(text, missing, **SAMPLING))
            self.written += ids


class ComputingVisitor(Visitor):
    """One whose browser computes the model: it asks the engine for the first picture, then for the model's files and
    the worker's script, and from then on only has pages run."""

    has_model = False

    async def _draw(self) -> None:
        if self.has_model or self.at not in ("Attention", "Inside", "Generate"):
            return
        await super()._draw()
        self.has_model = True
        await self.log.timed("model files", self._fetch())

    async def _fetch(self) -> float:
        began = time.perf_counter()
        asked = urlencode({name: self.engine.asks[name] for name in ("model", "version")})
        for file in (f"/api/description?{asked}", f"/api/weights?{asked}", f"/{address(WORKER)}"):
            await self.engine.file(file)
        return time.perf_counter() - began

    async def look(self) -> None:
        """Look at something else: its numbers are computed here."""

    async def write(self, tokens: int = TOKENS, *, anew: bool | None = None) -> tuple[float, float]:
        """Press Generate: nobody is asked."""
        await self.change_page("Generate")
        await asyncio.sleep(tokens / PACE)
        return 0.0, PACE


@dataclass
class _Pass:
    """What a visitor's tab has of a pass: what is told about it, and the names of the tensors that have come."""

    about: dict[str, Any]
    has: set[str]


def _list(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


class WatchingVisitor:
    """One visitor in a real browser, who changes pages and presses Generate; what they see is timed in their page."""

    def __init__(self, browser, url: str, number: int, log: Log) -> None:
        self.browser, self.url, self.log = browser, url, log
        self.random = random.Random(number)

    async def open(self) -> None:
        """Come to the first page."""
        self.page = await self.browser.new_page(viewport={"width": 1280, "height": 900})
        await self.page.goto(f"{self.url}/?model=shakespeare")  # whose text has no end
        await self.page.wait_for_selector("[data-testid=stMain] h1", timeout=60_000)

    async def _press_generate(self) -> None:
        """Press Generate, unless the text is still being written: the page then offers *Stop* in its place."""
        buttons = self.page.get_by_test_id("stMain")
        generate = buttons.get_by_role("button", name="Generate", exact=True)
        if await generate.is_enabled(timeout=10_000):
            await generate.click(timeout=10_000)
        elif await buttons.get_by_role("button", name="Stop", exact=True).is_disabled(timeout=10_000):
            await generate.click(timeout=10_000)  # neither: one of the two must come back

    async def learn(self, until: float) -> None:
        """Take part in the lesson up to a time."""
        from playwright.async_api import Error

        from .latency import CONTENT, QUIET_MS, TURN

        at = "Generate"
        while (left := until - time.perf_counter()) > 0:
            await asyncio.sleep(min(self.random.uniform(*THINK), left))
            try:
                if at == "Generate" and self.random.random() < 0.5:
                    await self._press_generate()
                    continue
                at = self.random.choice([page for page in PAGES if page != at])
                change = await self.page.evaluate(TURN, [at, CONTENT[at], QUIET_MS])
                if change is None:
                    self.log.failures.append(f"Chromium: {at} didn't come to rest")
                    continue
                seen = time.perf_counter(), change["content"] / 1000
                self.log.answers.setdefault("page in Chromium", []).append(seen)
            except Error as error:
                self.log.failures.append(f"Chromium: {error.message[:200]}")
