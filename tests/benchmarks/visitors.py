"""Simulates visitors of a lesson, with and without a browser, from a seed.

A visitor without a browser has pages run as Streamlit's frontend does, and asks the engine what the page's instruments
would ask, when they would: a text as a stream, which is revealed at its pace, a head's numbers that aren't there yet,
and those of all others ahead. What a browser answers by itself asks for nothing, and isn't counted.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from pages.ui.components.assets import WORKER, address

from .engine_client import EngineClient
from .protocol import FailedError, Tab

PAGES = ("Generate", "Attention", "Masks", "Positions", "Inside", "What if", "Learn", "Train")
MODELS = ("shakespeare", "shakespeare", "shakespeare", "martin-fierro")
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer", "come", "all", "night")
"""Of letters that all of these models know."""
TOKENS, PACE = 60, 25.0
"""Of a text, and how many of them are revealed in a second."""
SAMPLING = {"temperature": 0.8, "seed": 1}
MOST_NAMES, MOST_CELLS, SLICED = 64, 2_000_000, 100_000
"""Of one question of the page Inside, and the cells above which a tensor with heads comes head by head."""
AT_ONCE, AHEAD, MOST_HEADS = 400_000, 8_000_000, 16
"""Bytes of one question for heads that nobody waits for, and of all; heads of one question."""
THINK = (2.0, 6.0)


@dataclass
class Log:
    """How long the server took to answer, by kind, in seconds, with the time at which it did; and what went wrong."""

    answers: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    """Seconds for which each text that was written stood still, since what came next hadn't come."""

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


class Visitor:
    """One visitor without a browser."""

    tab_of: type[Tab] = Tab
    """What they open pages in."""

    def __init__(self, url: str, number: int, log: Log) -> None:
        self.random = random.Random(number)
        self.log = log
        self.at = "Generate"
        self._passes: dict[str, _Pass] = {}
        """What is known of the passes that were looked at."""
        self._written: dict[str, list[int]] = {}
        """What was written after each prompt."""
        model = MODELS[number % len(MODELS)]
        self.tab = self.tab_of(url, urlencode({"model": model, "prompt": self._prompt(), "pace": "fast"}))
        self.engine = EngineClient(url, self.tab.cookies)

    @property
    def bytes(self) -> int:
        """That came, of pages and of answers."""
        return self.tab.bytes + self.engine.bytes

    def _prompt(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(4, 9)))

    async def open(self) -> None:
        """Come to the first page."""
        await self.log.timed("page", self.tab.open())
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
            await self.ready()
            try:
                await act()
            except FailedError:
                await asyncio.sleep(1)

    async def ready(self) -> None:
        """Return when there is a page to act on."""

    async def change_page(self, to: str | None = None) -> None:
        """Go to another page."""
        name = to or self.random.choice([page for page in PAGES if page != self.at])
        if name == self.at:
            return
        await self.log.timed("page", self.tab.turn(name))
        self.at = name
        await self._draw()

    async def type_prompt(self) -> None:
        """Type another prompt, wherever there is a box for it."""
        box = self.tab.labelled("text_area", "Prompt", "Source")
        if box is not None:
            await self.log.timed("prompt", self.tab.set(box, string_value=self._prompt()))
            await self._draw()

    async def _draw(self) -> None:
        """Ask what the page's instrument draws, and fetch ahead what it fetches."""
        if self.at == "Attention":
            found = await self._pass("attention", "overview")
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
            await self._pass("inside", "outline")
        elif self.at == "Generate":
            tokens = self._text()
            await self._ask("scores", "scores", tokens=_list(tokens), first=len(tokens), **SAMPLING)

    async def _ask(self, kind: str, path: str, /, **values: Any) -> Any:
        """A recording."""
        _, found = await self.log.timed(kind, self.engine.recording(path, **values))
        return found

    async def _pass(self, instrument: str, path: str) -> _Pass:
        """What is known of the pass that an instrument shows, which begins with the picture of it."""
        data = self.tab.data(f"headsup_{instrument}")
        self.engine.asks = data["request"]
        key = json.dumps([path, data["request"], data.get("kind")])
        if key not in self._passes:
            found = await self._ask(path, path, kind=data.get("kind"))
            self._passes[key] = _Pass(found.metadata, {name.removeprefix("strip.") for name in found.tensors})
        return self._passes[key]

    # Attention and Inside

    async def look(self) -> None:
        """Look at something else on the page: another head, or another block."""
        await (self.open_block() if self.at == "Inside" else self.look_at_head())

    async def open_block(self) -> None:
        """Open a block of the whole pass, and ask for the numbers that its picture doesn't have yet."""
        found = await self._pass("inside", "outline")
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
            found = await self._pass("attention", "overview")
            layer = self.random.randrange(len(found.about["modules"]))
            await self._ask_heads(found, [(layer, self.random.randrange(found.about["config"]["n_heads"]))], "head")
        elif self.at == "Generate":
            about, tokens = self.tab.data("headsup_generation"), self._text()
            module = self.random.choice(about["modules"]["self"])
            head = self.random.randrange(about["choices"]["heads"])
            first = max(1, len(tokens) - 100)
            await self._ask(
                "head", "rows", tokens=_list(tokens), attention=module, head=head, first=first, last=len(tokens)
            )

    async def _ask_heads(self, found: _Pass, heads: list[tuple[int, int]], kind: str) -> None:
        names = []
        for layer, head in heads:
            around, config = found.about["names"][layer], found.about["config"]
            shared = head * (config.get("n_kv_heads") or config["n_heads"]) // config["n_heads"]
            names += [f"{around[what]}[:, {which}]" for what, which in (("q", head), ("k", shared), ("v", shared))]
        if missing := [name for name in dict.fromkeys(names) if name not in found.has]:
            await self._ask(kind, "tensors", names=missing)
            found.has.update(missing)

    # Generate

    def _text(self) -> list[int]:
        """The ids of the text on the page Generate."""
        about = self.tab.data("headsup_generation")
        self.engine.asks = about["request"]
        return about["prompt"] + self._written.setdefault(about["id"], [])

    async def write(self, tokens: int = TOKENS, *, anew: bool | None = None) -> tuple[float, float]:
        """Press Generate and watch the text at its pace.

        anew: take away what was written before; None leaves that to chance. Returns the seconds to the first token,
        and the tokens seen in a second.
        """
        await self.change_page("Generate")
        text, about = self._text(), self.tab.data("headsup_generation")
        if anew or (anew is None and self.random.random() < 0.5):
            self._written[about["id"]].clear()
            text = about["prompt"]
        pressed = time.perf_counter()
        ids, times = await self.log.tried("text", self.engine.generate(text, tokens, **SAMPLING))
        seen = seen_at(times)
        self.log.note("text", times[0])
        self.log.stalls.append(seen[-1] - (len(seen) - 1) / PACE)
        written = self._written[about["id"]]
        written += ids
        await asyncio.sleep(max(pressed + seen[-1] - time.perf_counter(), 0))
        await self._tell(about["id"], written)
        return times[0], len(seen) / seen[-1]

    async def _tell(self, text: str, written: Sequence[int]) -> None:
        """Tell the page what has been written."""
        held = {"written": ".".join(map(str, written)), "pace": "fast"}
        told = {"id": text, "selection": held, "time": int(1000 * time.time())}
        await self.log.timed("told", self.tab.tell("headsup_generation", "text", told))

    async def lengthen(self) -> None:
        """Have a text that is longer than the context."""
        await self.change_page("Generate")
        about, text = self.tab.data("headsup_generation"), self._text()
        if (missing := about["context"] + 1 - len(text)) > 0:
            ids, _ = await self.log.tried("text", self.engine.generate(text, missing, **SAMPLING))
            self._written[about["id"]] += ids

    # Train

    async def train(self) -> None:
        """Begin the training that the page Train offers first, and stay."""
        await self.change_page("Train")
        await self.log.timed("page", self.tab.set(self.tab.labelled("button", "Train"), trigger_value=True))


class ComputingVisitor(Visitor):
    """One whose browser computes the model: it has pages run, and asks the engine for the first picture, as the others
    do, and then for the model's files and the worker's script. From then on it asks for nothing.

    The tokens that it writes are not the model's: nobody computes them here, and pages are told of as many.
    """

    has_model = False

    async def _draw(self) -> None:
        if self.has_model or self.at not in ("Attention", "Inside", "Generate"):
            return
        await super()._draw()
        self.has_model = True
        asked = {name: self.engine.asks[name] for name in ("model", "version")}
        await self.log.timed("model files", self._fetch(asked))

    async def _fetch(self, asked: dict[str, Any]) -> float:
        began = time.perf_counter()
        files = [f"/api/{name}?{urlencode(asked)}" for name in ("description", "weights")]
        for file in [*files, f"/{address(WORKER)}"]:
            await self.engine.file(file)
        return time.perf_counter() - began

    async def look(self) -> None:
        """Look at something else: its numbers are computed here."""

    async def write(self, tokens: int = TOKENS, *, anew: bool | None = None) -> tuple[float, float]:
        """Press Generate: only the page is told."""
        await self.change_page("Generate")
        about = self.tab.data("headsup_generation")
        written = [] if anew or (anew is None and self.random.random() < 0.5) else self._written.get(about["id"], [])
        written = self._written[about["id"]] = written + (about["prompt"] * tokens)[:tokens]
        await asyncio.sleep(tokens / PACE)
        await self._tell(about["id"], written)
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
