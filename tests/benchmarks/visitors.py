"""Visitors of a lesson: those who speak the protocol alone, and those in a real browser. Each does what a seed says.

A visitor without a browser asks the server for what the page's scripts would ask, when they would: the next chunk of a
text before the last is revealed, a head's numbers that aren't there yet, and those of all others ahead. What a browser
answers by itself asks for nothing, and isn't counted.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from transformer import Recording

from .protocol import FailedError, Tab

PAGES = ("Generate", "Attention", "Masks", "Positions", "Inside", "What if", "Learn", "Train")
MODELS = ("shakespeare", "shakespeare", "shakespeare", "martin-fierro")
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question", "in", "mind", "suffer", "come", "all", "night")
"""Of letters that all of these models know."""
TOKENS, PACE = 60, 25.0
"""Of a text, and how many of them are revealed in a second."""
LEFT, AGAIN = 0.7, 1.0
"""Seconds: the next chunk is asked for when so many are left to be revealed, and no sooner after the last was, but
for the first, which is small."""
MOST_PARTS, SLICED = 48, 100_000
"""Of one request of the page Inside, and the cells above which a tensor with heads comes head by head."""
AT_ONCE, AHEAD = 400_000, 8_000_000
"""Bytes of one request for heads that nobody waits for, and of all."""
THINK = (2.0, 6.0)


@dataclass
class Log:
    """How long the server took to answer, by kind, in seconds, with the time at which it did; and what went wrong."""

    answers: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    """Seconds for which each text that was written stood still, since what came next hadn't come."""

    async def timed(self, kind: str, asked: Awaitable[float]) -> float:
        """Wait for an answer and note its time."""
        try:
            seconds = await asked
        except (FailedError, OSError) as error:
            self.failures.append(f"{kind}: {error}")
            raise FailedError(str(error)) from error
        self.answers.setdefault(kind, []).append((time.perf_counter(), seconds))
        return seconds


class Visitor:
    """One visitor without a browser."""

    def __init__(self, url: str, number: int, log: Log) -> None:
        self.random = random.Random(number)
        self.log = log
        self.at = "Generate"
        self._heads: dict[str, set[tuple[int, int]]] = {}
        self._tensors: dict[str, set[str]] = {}
        """What has come of each pass, by its name."""
        model = MODELS[number % len(MODELS)]
        self.tab = Tab(url, urlencode({"model": model, "prompt": self._prompt(), "pace": "fast"}))

    def _prompt(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(4, 9)))

    async def open(self) -> None:
        """Come to the first page."""
        await self.log.timed("page", self.tab.open())

    async def learn(self, until: float) -> None:
        """Take part in the lesson up to a time; what fails is noted, and the visitor goes on."""
        acts: dict[Callable[[], Awaitable[None]], int] = {
            self.write: 4, self.change_page: 4, self.look: 3, self.type_prompt: 2,
        }  # fmt: skip
        while (left := until - time.perf_counter()) > 0:
            await asyncio.sleep(min(self.random.uniform(*THINK), left))
            (act,) = self.random.choices(list(acts), list(acts.values()))
            try:
                await act()
            except FailedError:
                await asyncio.sleep(1)

    async def change_page(self, to: str | None = None) -> None:
        """Go to another page, and fetch ahead what it fetches."""
        name = to or self.random.choice([page for page in PAGES if page != self.at])
        if name == self.at:
            return
        await self.log.timed("page", self.tab.turn(name))
        self.at = name
        if name == "Attention":
            await self._fetch_ahead()

    async def type_prompt(self) -> None:
        """Type another prompt, wherever there is a box for it."""
        box = self.tab.labelled("text_area", "Prompt", "Source")
        if box is not None:
            await self.log.timed("prompt", self.tab.set(box, string_value=self._prompt()))
            if self.at == "Attention":
                await self._fetch_ahead()

    # Attention and Inside

    async def look(self) -> None:
        """Look at something else on the page: another head, or another block."""
        await (self.open_block() if self.at == "Inside" else self.look_at_head())

    async def open_block(self) -> None:
        """Open a block of the whole pass, and ask for the numbers that its picture doesn't have yet."""
        outline = Recording.from_bytes(self.tab.component("headsup_inside").bytes)
        about = outline.metadata
        block = f"blocks.{self.random.randrange(about['config']['n_layers'])}"
        shown = [info for info in about["tensors"] if info["name"].startswith(f"{block}.") and info["kind"] == "point"]
        has = self._tensors.setdefault(about["id"], set())
        missing = [info for info in shown if info["name"] not in has and f"strip.{info['name']}" not in outline.tensors]
        feed = "headsup_inside_feed"
        for first in range(0, len(missing), MOST_PARTS):
            parts = [
                ["slice", info["name"], 0] if "head" in info["dims"] and math.prod(info["sizes"]) > SLICED
                else ["tensor", info["name"]]
                for info in missing[first : first + MOST_PARTS]
            ]  # fmt: skip
            await self.log.timed("block", self.tab.tell(feed, "want", {"id": about["id"], "parts": parts}))
        has.update(info["name"] for info in missing)
        chosen = {**self._feed(feed).metadata["chosen"], "open": block, "count": int(1000 * time.time())}
        await self.log.timed("told", self.tab.tell(feed, "chosen", chosen))

    async def look_at_head(self) -> None:
        """Look at another head, of a text or of a pass."""
        if self.at == "Attention":
            about = self._pass()
            layer = self.random.randrange(len(about["modules"]))
            head = self.random.randrange(about["config"]["n_heads"])
            await self._want([(layer, head)], about["id"])
            chosen = {**self._feed("headsup_attention_feed").metadata["chosen"], "layer": layer, "head": head}
            count = int(1000 * time.time())
            await self.log.timed("told", self.tab.tell("headsup_attention_feed", "chosen", {**chosen, "count": count}))
        elif self.at == "Generate":
            about = self._feed("headsup_writing_feed").metadata
            choices = about["choices"]
            controls = {"layer": self.random.randrange(max(choices["layers"], 1)),
                        "head": self.random.randrange(max(choices["heads"], 1))}  # fmt: skip
            await self.log.timed("head", self._tell("rows", controls, first=0, last=about["length"]))

    def _pass(self) -> dict:
        return Recording.from_bytes(self.tab.component("headsup_attention").bytes).metadata

    async def _fetch_ahead(self) -> None:
        about = self._pass()
        config = about["config"]
        size = 4 * config["d_model"] // config["n_heads"] * (about["queries"] + 2 * about["keys"])
        heads = [(layer, head) for layer in range(len(about["modules"])) for head in range(config["n_heads"])]
        at_once, most = max(1, AT_ONCE // size), max(1, AHEAD // size)
        for first in range(0, min(len(heads), most), at_once):
            await self._want(heads[first : first + at_once], about["id"], "ahead")

    async def _want(self, heads: list[tuple[int, int]], name: str, kind: str = "head") -> None:
        has = self._heads.setdefault(name, set())
        missing = [head for head in heads if head not in has]
        if missing:
            parts = [["head", *head] for head in missing]
            await self.log.timed(kind, self.tab.tell("headsup_attention_feed", "want", {"id": name, "parts": parts}))
            has.update(missing)

    # Generate

    def _feed(self, name: str) -> Recording:
        return Recording.from_bytes(self.tab.component(name).bytes)

    async def write(self, tokens: int = TOKENS, *, anew: bool = False) -> tuple[float, float] | None:
        """Press Generate and watch the text at its pace.

        anew: take away what was written before. Returns the seconds to the first token that had to be computed, and
        the tokens seen in a second; None if there was nothing to write.
        """
        await self.change_page("Generate")
        if anew or self.random.random() < 0.5:
            await self.log.timed("text", self._tell("clear"))
        about = self._feed("headsup_writing_feed").metadata
        start = about["length"]
        goal, seen, have = start + tokens, float(start), self._have()
        pressed = before = asked = time.perf_counter()
        first = await self.log.timed("text", self._tell("write", goal=goal, seen=start))
        stalled, ended = 0.0, self._feed("headsup_writing_feed").metadata["ended"]
        have, waiting, is_first = max(have, self._have()), None, True
        while seen < goal and not (ended and seen >= have):
            now = time.perf_counter()
            could = seen + (now - before) * PACE
            stalled += max(could - have, 0) / PACE if not ended else 0
            seen, before = min(could, have, goal), now
            is_low = not ended and have < goal and have - seen < LEFT * PACE
            if waiting is None and is_low and (is_first or now - asked >= AGAIN):
                asked, is_first = now, False
                waiting = asyncio.create_task(
                    self.log.timed("text", self._tell("write", goal=goal, seen=math.floor(seen)))
                )
            if waiting is not None and waiting.done():
                await waiting
                waiting = None
                have, ended = max(have, self._have()), self._feed("headsup_writing_feed").metadata["ended"]
            await asyncio.sleep(0.04)
        if waiting is not None:
            await waiting
        self.log.stalls.append(stalled)
        rate = (seen - start) / (time.perf_counter() - pressed)
        await self.log.timed("text", self._tell("rest", seen=math.floor(min(seen, self._have()))))
        return first, rate

    def _have(self) -> int:
        shown = self._feed("headsup_writing_feed")
        return shown.metadata["first"] + len(shown.tensors["ids"])

    async def _tell(self, act: str, controls: dict | None = None, *, seen: int | None = None, **asked: int) -> float:
        about = self._feed("headsup_writing_feed").metadata
        event = {
            "id": about["id"], "branch": about["branch"], "count": max(int(1000 * time.time()), about["heard"] + 1),
            "act": act, "seen": about["length"] if seen is None else seen, "have": self._have(),
            "controls": {**about["controls"], **(controls or {})}, "step": about["step"], **asked,
        }  # fmt: skip
        return await self.tab.tell("headsup_writing_feed", "tell", event)

    # Train

    async def train(self) -> None:
        """Begin the training that the page Train offers first, and stay."""
        await self.change_page("Train")
        await self.log.timed("page", self.tab.set(self.tab.labelled("button", "Train"), trigger_value=True))


class WatchingVisitor:
    """One visitor in a real browser, who changes pages and presses Generate; what they see is timed in their page."""

    def __init__(self, browser, url: str, number: int, log: Log) -> None:
        self.browser, self.url, self.log = browser, url, log
        self.random = random.Random(number)

    async def open(self) -> None:
        """Come to the first page."""
        self.page = await self.browser.new_page(viewport={"width": 1280, "height": 900})
        await self.page.goto(self.url)
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
