"""Speaks Streamlit's protocol over a websocket, in place of a browser.

What the server sends is kept as the frontend keeps it: elements by their place on the page, and timers of fragments.
Nothing is drawn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import NewSession
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

PATIENCE = 60.0
"""Seconds after which a request counts as failed."""
SHELL = "headsup_shell"
"""The component that every page draws first."""
ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


class FailedError(Exception):
    """A request that wasn't answered as it should be; the message says how."""


@dataclass
class _Placed:
    """An element, the fragment it belongs to, and the run that drew it last."""

    element: Element
    fragment: str
    run: int


@dataclass
class _Request:
    """A run that was asked for. fragment: its fragment, empty for the page's; begun: the server has begun it."""

    fragment: str
    page: str
    done: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    begun: bool = False


class Cookies(dict[str, str]):
    """What a browser keeps of a server's cookies."""

    @property
    def header(self) -> dict[str, str]:
        """As they are sent."""
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.items())} if self else {}

    def take(self, headers: Iterable[str]) -> None:
        """Keep what an answer sets."""
        for header in headers:
            name, _, value = header.partition(";")[0].partition("=")
            self[name] = value


class Tab:
    """One visitor's connection; use it as an asynchronous context manager."""

    def __init__(self, url: str, query: str = "", cookies: Cookies | None = None) -> None:
        self.url, self.query = url, query
        self.cookies = Cookies() if cookies is None else cookies
        self.page = ""
        self.runs = 0
        """Of a page, that came to their end."""
        self._placed: dict[tuple[int, ...], _Placed] = {}
        self._values: dict[str, WidgetState] = {}
        self._told = 0
        self._held = 0
        """How often the tab has sent its page state."""
        self._run = 0
        self._running: tuple[str, ...] = ()
        self._timers: dict[str, asyncio.Task] = {}
        self._requests: list[_Request] = []
        self._pages: dict[str, str] = {}
        """The navigation: each page's script, by its title."""

    async def __aenter__(self) -> Tab:
        await self.connect()
        return self

    async def connect(self) -> None:
        """Connect, with the cookies there are, and read what comes. Raises: OSError, WebSocketException."""
        address = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        self._socket: ClientConnection = await connect(
            address,
            origin=self.url,
            subprotocols=["streamlit"],
            additional_headers=self.cookies.header,
            max_size=None,
            compression=None,
            open_timeout=PATIENCE,
        )
        self.cookies.take(self._socket.response.headers.get_all("Set-Cookie"))
        self._reader = asyncio.create_task(self._read())

    async def __aexit__(self, *_: object) -> None:
        self._reader.cancel()
        self._stop_timers(*self._timers)
        with contextlib.suppress(Exception):
            await self._socket.close()

    async def open(self) -> float:
        """Open the page that the address names; returns the seconds until it was all there."""
        return await self._ask(_Request("", ""))

    async def turn(self, name: str) -> float:
        """Go to another page; returns the seconds until it was all there."""
        self._values.clear()
        return await self._ask(_Request("", self._pages[name]))

    async def set(self, widget: Any, **value: Any) -> float:
        """What a widget reports, such as `string_value="…"`, and the run of its page or fragment that this causes."""
        state = WidgetState(id=widget.id, **value)
        if "trigger_value" not in value:
            self._values[widget.id] = state
        return await self._ask(_Request(self._fragment_of(widget), self.page), state)

    async def tell(self, component: str, event: str, value: Any) -> float:
        """What a component tells, and the run of its fragment that this causes."""
        placed = self._component(component)
        name = placed.element.bidi_component.id
        self._told += 1
        told = {"number": self._told, "component": self.data(component)["key"], "name": event, "value": value}
        told = {"session": self.data("headsup_session_token")["session"], "events": [told]}
        state = WidgetState(id=name, json_value=json.dumps({"events": told}))
        return await self._ask(_Request(placed.fragment, self.page), state)

    async def hold(self, values: dict[str, str]) -> float:
        """The page state where it isn't what the page has drawn, and the run of the page that this causes."""
        told = self.data(SHELL)
        self._held += 1
        obeyed = max((command["number"] for command in told["commands"]), default=0)
        message = {"sent": self._held, "agreed": told["reading"], "session": told["session"], "obeyed": obeyed}
        name = self._component(SHELL).element.bidi_component.id
        state = WidgetState(id=name, json_value=json.dumps({"page_state": {**message, "values": values}}))
        self._values[name] = state
        return await self._ask(_Request("", self.page))

    def data(self, component: str) -> dict[str, Any]:
        """What a component is given."""
        data = json.loads(self._component(component).element.bidi_component.json)
        return data[0] if isinstance(data, list) else data

    def elements(self, kind: str) -> Iterator[Element]:
        """All elements of a kind, such as "button", from top to bottom."""
        for _, placed in sorted(self._placed.items()):
            if placed.element.WhichOneof("type") == kind:
                yield placed.element

    def labelled(self, kind: str, *labels: str) -> Any:
        """The widget of a kind that has one of these labels, or None."""
        widgets = (getattr(element, kind) for element in self.elements(kind))
        return next((widget for widget in widgets if widget.label in labels), None)

    def _fragment_of(self, widget: Any) -> str:
        for placed in self._placed.values():
            if getattr(getattr(placed.element, placed.element.WhichOneof("type")), "id", "") == widget.id:
                return placed.fragment
        return ""

    def _component(self, name: str) -> _Placed:
        for placed in self._placed.values():
            if placed.element.bidi_component.component_name == name:
                return placed
        raise FailedError(f"the page has no component {name}")

    async def _ask(self, request: _Request, *triggers: WidgetState, by_itself: bool = False) -> float:
        began = time.perf_counter()
        self._requests.append(request)
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = self.query, request.page
        state.fragment_id, state.is_auto_rerun = request.fragment, by_itself
        state.widget_states.widgets.extend([*self._values.values(), *triggers])
        state.context_info.url, state.context_info.timezone, state.context_info.locale = self.url, "UTC", "en"
        try:
            await self._socket.send(message.SerializeToString())
            async with asyncio.timeout(PATIENCE):
                await request.done
        except ConnectionClosed:
            raise FailedError("the connection was closed") from None
        except TimeoutError:
            raise FailedError(f"no answer in {PATIENCE:.0f} s") from None
        finally:
            if request in self._requests:
                self._requests.remove(request)
        return time.perf_counter() - began

    async def _read(self) -> None:
        why = "the connection was closed"
        try:
            async for payload in self._socket:
                self._take(ForwardMsg.FromString(payload))
        except Exception as error:
            why = f"a message can't be read: {error!r}"
        finally:
            self._fail(why)

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._begin(message.new_session, tuple(message.metadata.run.fragment_ids))
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            placed = _Placed(message.delta.new_element, message.delta.fragment_id, self._run)
            self._placed[tuple(message.metadata.delta_path)] = placed
            self._note(placed.element)
        elif kind == "navigation":
            self._pages = {page.page_name: page.page_script_hash for page in message.navigation.app_pages}
        elif kind == "auto_rerun":
            fragment = message.auto_rerun.fragment_id
            if fragment not in self._timers:
                self._timers[fragment] = asyncio.create_task(self._repeat(fragment, message.auto_rerun.interval))
        elif kind == "stop_auto_rerun":
            self._stop_timers(*message.stop_auto_rerun.fragment_ids)
        elif kind == "script_finished":
            self._end(message.script_finished)

    def _note(self, element: Element) -> None:
        if element.WhichOneof("type") == "exception":
            self._fail(f"the page shows {element.exception.type}: {element.exception.message[:200]}")

    def _begin(self, session: NewSession, fragments: tuple[str, ...]) -> None:
        self._run += 1
        self._running = fragments
        if not self._running:
            self._stop_timers(*self._timers)
            if session.page_script_hash != self.page:
                self._placed.clear()
            self.page = session.page_script_hash
        for request in self._requests:
            request.begun |= request.fragment in self._running if request.fragment else not self._running

    def _end(self, status: int) -> None:
        if status not in ENDS:
            return  # cut short by another run, which answers what this one didn't
        if self._running:
            gone = [
                place
                for place, placed in self._placed.items()
                if placed.fragment in self._running and placed.run != self._run
            ]
        else:
            self.runs += 1
            gone = [place for place, placed in self._placed.items() if placed.run != self._run]
        for place in gone:
            del self._placed[place]
        for request in self._requests:
            if request.begun and not request.done.done():
                request.done.set_result(None)

    def _fail(self, why: str) -> None:
        for request in self._requests:
            if not request.done.done():
                request.done.set_exception(FailedError(why))

    async def _repeat(self, fragment: str, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(FailedError):
                await self._ask(_Request(fragment, self.page), by_itself=True)

    def _stop_timers(self, *fragments: str) -> None:
        for fragment in fragments:
            if timer := self._timers.pop(fragment, None):
                timer.cancel()
