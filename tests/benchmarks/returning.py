"""Simulates tabs that look for another server when theirs has gone, as Streamlit's frontend does, and real ones."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from websockets.exceptions import WebSocketException

from pages.ui.frame.session_restore import TRAINING

from .protocol import PATIENCE, FailedError, Tab
from .visitors import Visitor

SERVER = "headsup_server"
"""The cookie that names a visitor's server."""
APP = "[data-testid='stApp'][data-test-connection-state='CONNECTED']"
REST = f"{APP}[data-test-script-state='notRunning']"
ROOM = ".st-key-room_member strong"
AWAY = "[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])"
AGAIN_AFTER = 0.5
"""Seconds after which a browser tries again to connect."""
KEPT = {"headsup_session_token": "value", "headsup_room_membership": "membership"}
"""What the tab keeps, beside its address, and tells a new session: by component, the value that it is given."""


@dataclass
class View:
    """What a tab has, which has to be there again on another server."""

    title: str
    address: dict[str, str]
    kept: dict[str, str]
    """By component."""

    room: str = ""
    """The code of the room that it is in."""

    @property
    def trains(self) -> bool:
        """Whether a training of the visitor's is under way."""
        return TRAINING in self.kept["headsup_session_token"].split()

    @property
    def models(self) -> list[str]:
        """The visitor's own."""
        return [name for name in self.kept["headsup_session_token"].split() if name.startswith("own-")]


@dataclass
class Return:
    """How a tab came back. seconds: from the loss of the connection; None for one that didn't. lost: what it lacks."""

    killed: str
    seconds: float | None = None
    lost: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """Why it tried again, and what its page says: what helps to find out why something was lost."""


class ReturningTab(Tab):
    """A tab that comes back by itself, with its address and what a browser keeps for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.returns: list[Return] = []
        self.wanted: dict[str, str] = {}
        """Parameters that the newest run was asked for; if it was cut short, the address may have either."""
        self.last: View | None = None
        """At the end of the last run of a page."""
        self._leaves = False
        self._returning: asyncio.Task | None = None
        self.is_back = asyncio.Event()
        self.is_back.set()

    @property
    def server(self) -> str:
        """The server that it is on, as the cookie names it."""
        return self.cookies.get(SERVER, "")

    async def __aexit__(self, *error: object) -> None:
        self._leaves = True
        if self._returning:
            self._returning.cancel()
        await super().__aexit__(*error)

    def on_lost(self) -> None:
        if not self._leaves and self.is_back.is_set():
            self.is_back.clear()
            self._returning = asyncio.create_task(self._return())

    def view(self) -> View:
        """What it has now."""
        address = dict(parse_qsl(self.data("headsup_address_bar")["query"], keep_blank_values=True))
        kept = {name: self.data(name)[value] for name, value in KEPT.items() if self.has(name)}
        rooms = [re.match(r"(?:### Room|:material/groups: Room) \**([A-Z]+)", text) for text in self.texts]
        return View(self.title, address, kept, next((found[1] for found in rooms if found), ""))

    @property
    def title(self) -> str:
        """The page's."""
        return next((each.heading.body for each in self.elements("heading") if each.heading.tag == "h1"), "")

    @property
    def texts(self) -> list[str]:
        """Those of the page, as Markdown."""
        return [each.markdown.body for each in self.elements("markdown")]

    def says(self, words: str) -> bool:
        """Whether a box of the page has these words."""
        return any(words in each.alert.body for each in self.elements("alert"))

    async def turn(self, name: str) -> float:
        return await self._wanting({"page": name}, super().turn(name))

    async def set(self, widget: Any, **value: Any) -> float:
        wanted = {"prompt": value["string_value"]} if "string_value" in value else {}
        return await self._wanting(wanted, super().set(widget, **value))

    async def tell(self, component: str, event: str, value: Any) -> float:
        wanted = value["selection"] if event == "text" else {}
        return await self._wanting(wanted, super().tell(component, event, value))

    async def _wanting(self, wanted: dict[str, str], run: Coroutine[Any, Any, float]) -> float:
        self.wanted = wanted
        seconds = await run
        self.wanted = {}
        return seconds

    def _end(self, status: int) -> None:
        super()._end(status)
        if not self._running and self.has("headsup_address_bar"):
            self.last = self.view()

    async def returned(self, times: int) -> Return:
        """Wait until it is back after it was lost so many times before; returns how it came back."""
        until = time.perf_counter() + PATIENCE
        while len(self.returns) <= times:
            if time.perf_counter() > until:
                return Return(self.server, None, ["the cookie names another server than the page is on"])
            await asyncio.sleep(0.02)
        await self.is_back.wait()
        return self.returns[times]

    async def _return(self) -> None:
        began, before = time.perf_counter(), self.last
        assert before is not None, "no page was open yet"
        found = Return(self.server)
        self.returns.append(found)
        self._stop_timers(*self._timers)
        self.query = urlencode(before.address)
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        await self.connect()
                        await self.again()
                        await self._restore(before)
                        break
                    except (OSError, WebSocketException, FailedError) as error:
                        found.told.append(f"{time.perf_counter() - began:.1f} s: {error}")
                    await asyncio.sleep(AGAIN_AFTER)
            found.seconds = time.perf_counter() - began
            found.lost = self._lacks(before, self.view())
            found.told += [each.alert.body for each in self.elements("alert")]
        except TimeoutError:
            found.lost = [f"didn't come back within {PATIENCE:.0f} s"]
        finally:
            self.is_back.set()

    async def _restore(self, before: View) -> None:
        """Tell the new session what the tab has kept: all components at once, as those of a page do in a browser."""
        kept = {name: before.kept[name] for name in KEPT if before.kept.get(name)}
        found = [name for name in kept if self.data(name).get(KEPT[name]) != kept[name]]
        await asyncio.gather(*(super(ReturningTab, self).tell(name, "found", kept[name]) for name in found))

    def _lacks(self, before: View, after: View) -> list[str]:
        """What was there before."""
        lost = [] if after.title in (before.title, self.wanted.get("page")) else [f"the page {before.title}"]
        for name, value in before.address.items():
            if after.address.get(name) not in (value, self.wanted.get(name)) and "prompt" not in self.wanted:
                lost.append(f"{name}={value[:40]} (is {after.address.get(name)})")
        lost += [f"the model {name[:10]}…" for name in before.models if name not in after.models]
        room = before.kept.get("headsup_room_membership")
        if room and after.title == before.title and room != after.kept.get("headsup_room_membership"):
            lost.append("the room")  # which a page that was being turned to doesn't tell
        return lost


class ReturningVisitor(Visitor):
    """A visitor whose tab comes back, and who goes on then."""

    tab_of = ReturningTab
    tab: ReturningTab

    async def ready(self) -> None:
        if not self.tab.is_back.is_set():
            await self.tab.is_back.wait()
            self.at = self.tab.title


class Window:
    """A visitor's tab in a real Chromium, each with cookies of its own."""

    def __init__(self, page: Any) -> None:
        self.page, self.before = page, dict[str, Any]()

    @classmethod
    async def open(cls, browser: Any, url: str) -> Window:
        """A window with a page that is all there."""
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        await page.goto(url)
        await page.get_by_role("heading", level=1).wait_for(timeout=60_000)
        await page.locator(REST).wait_for(timeout=60_000)
        return cls(page)

    async def server(self) -> str:
        """The server that it is on, as the cookie names it."""
        return next(each["value"] for each in await self.page.context.cookies() if each["name"] == SERVER)

    async def view(self) -> dict[str, Any]:
        """What is seen in it."""
        main, room = self.page.get_by_test_id("stMain"), self.page.locator(ROOM)
        prompt = main.get_by_role("textbox", name="Prompt", exact=True)
        return {
            "the address": await self.page.evaluate("location.href"),
            "the title": await main.get_by_role("heading", level=1).inner_text(),
            "headings": await main.get_by_role("heading", level=2).all_inner_texts(),
            "the prompt": await prompt.input_value() if await prompt.count() else "",
            "the text": await self.page.get_by_test_id("live-text-token").all_inner_texts(),
            "the room": await room.all_inner_texts(),
        }

    async def remember(self) -> None:
        """What has to be there again."""
        self.before = await self.view()

    async def returned(self, killed: str, killed_at: float) -> Return:
        """Wait until it is back."""
        found = Return(killed)
        try:
            await self.page.locator(AWAY).wait_for(timeout=5_000)
            await self.page.locator(REST).wait_for(timeout=1000 * PATIENCE)
            while (now := await self.view()) != self.before and time.perf_counter() - killed_at < PATIENCE:
                await asyncio.sleep(0.1)
            found.seconds = time.perf_counter() - killed_at
            found.lost = [
                f"{name}: {self.before[name]}, is {now[name]}" for name in now if now[name] != self.before[name]
            ]
        except Exception as error:
            found.lost = [f"a window: {str(error)[:200]}"]
        return found
