"""What a server does before its first visitor needs it: it imports what pages are made of, and opens the first model.

Streamlit does none of that until somebody opens a page, who then waits. So it is done as the server starts, while the
visitor's browser fetches the frontend. Only the connection that runs pages is kept waiting until the first page's needs
are met, so that no page is imported by two threads at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlit.proto.ClientState_pb2 import ClientState
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.state import SessionState

REST = 3.0
"""Seconds between what the first page needs and what the others do: the first visitor's browser is busy meanwhile."""
SWITCH_EVERY = 0.0005
"""Seconds after which Python turns to another thread during the former. The frontend is a hundred files, each of which
would wait several times for the usual 5 ms."""
_LOGGER = logging.getLogger(__name__)
_NO_VISITOR = logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context")
"""Warns of what is called without a visitor, as all is that prepares, or makes a file to download."""
_PREPARING = "preparing"
"""The thread."""
_FILING = "asyncio_"
"""What the threads are called that make the files a visitor downloads, a handout among them."""
_prepared = threading.Event()
_HEAD = b"<head>"
_SERVER = b"<script>window.__streamlit ??= { BACKEND_BASE_URL: new URL('.', location.href).href };</script>"
"""Scripts are at ./static, so the server is what this path begins with."""


ARENAS = 2
"""Pools that memory is taken from. Each run of a page is a thread, and glibc would give up to 16 of them a pool of
their own, each of which keeps what its busiest moment took: with eight visitors 160 MB of 730."""
LARGE = 262_144
"""Bytes from which on memory is taken from the system by itself, and goes back to it at once. Else glibc raises this
bound with use, and a large tensor leaves a hole that small ones fill: with thirty visitors 40 MB."""
HEARD_AFTER = 0.002
"""Seconds after which it is looked again whether a run's end has been heard."""
TIDY_EVERY = 20.0
"""Seconds between two times at which the pools give back what lies free within: with thirty visitors 60 MB."""


@contextlib.asynccontextmanager
async def preparing(app: Any) -> AsyncIterator[None]:
    """The life of a served app: as it begins, what visitors need is prepared on a thread of its own."""
    share_memory()
    answer_at_once()
    hear_runs_out()
    cut_only_where_drawn()
    threading.Thread(target=_prepare, name=_PREPARING, daemon=True).start()
    threading.Thread(target=_tidy, name="tidying", daemon=True).start()
    yield


def check_settings() -> None:
    """End the server with a sentence if an environment variable says what it can't. Imports nothing large."""
    from transformer.api.limits import proxies
    from transformer.api.memory_limit import memory_limit

    try:
        memory_limit()
        proxies()
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from None


def routes() -> list[Any]:
    """What is served beside the pages: the engine over HTTP, and the modules that draw what it answers."""
    from starlette.routing import Mount

    return [Mount("/api", MadeWhenAsked(_api)), Mount("/modules", MadeWhenAsked(_modules))]


def _api() -> Any:
    from pages.ui.models import library
    from transformer.api.app import create_app
    from transformer.api.store import model_store

    return create_app(library.shared, model_store().get)


def _modules() -> Any:
    from pages.ui.components.sources import MODULES

    return MODULES


class MadeWhenAsked:
    """An ASGI application that is made by the first who asks: importing it would keep the server from starting."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = functools.cache(make)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await _made(self._make)
        await self._make()(scope, receive, send)


async def _made(make: Callable[[], Any]) -> None:
    await asyncio.to_thread(make)


class WaitUntilPrepared:
    """ASGI middleware: who wants pages run waits until the first page is prepared, everybody else is let in at once."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket" and not _prepared.is_set():
            await asyncio.to_thread(_prepared.wait)
        await self._app(scope, receive, send)


class SayWhereTheServerIs:
    """ASGI middleware: each document tells the frontend where its server is, namely where its scripts come from.

    Else a page that is opened by its link is taken for the server's place first: the frontend asks there, in vain, and
    waits for a tenth of a second before it asks where the app is.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        begun: dict[str, Any] | None = None

        async def pass_on(message: dict[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _is_document(message):
                begun = message  # its length is known only with its text
                return
            if begun is not None:
                document = message.get("body", b"")
                message = {**message, "body": document.replace(_HEAD, _HEAD + _SERVER, 1)}
                longer = len(message["body"]) - len(document)
                await send({**begun, "headers": [_longer(header, longer) for header in begun["headers"]]})
                begun = None
            await send(message)

        if scope["type"] != "http" or b"text/html" not in dict(scope["headers"]).get(b"accept", b""):
            await self._app(scope, receive, send)
            return
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, receive, pass_on)


def _is_document(message: dict[str, Any]) -> bool:
    return message["status"] == 200 and dict(message["headers"]).get(b"content-type", b"").startswith(b"text/html")


def _longer(header: tuple[bytes, bytes], count: int) -> tuple[bytes, bytes]:
    name, value = header
    return (name, str(int(value) + count).encode()) if name == b"content-length" else header


WAIT_UNTIL_PREPARED = (WaitUntilPrepared, (), {})
"""A class and its arguments, which is all that Starlette's own `Middleware` is."""
SAY_WHERE_THE_SERVER_IS = (SayWhereTheServerIs, (), {})


def share_memory() -> None:
    """Let all threads that are yet to come take their memory from a few pools, where the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        arena_max, mmap_threshold = -8, -3  # M_ARENA_MAX and M_MMAP_THRESHOLD in glibc's malloc.h
        ctypes.CDLL(None).mallopt(arena_max, ARENAS)
        ctypes.CDLL(None).mallopt(mmap_threshold, LARGE)


def answer_at_once() -> None:
    """Let what is written to a visitor leave at once, where a process can list its files.

    asyncio sees to that only for sockets that name their protocol, and Streamlit's doesn't. So the end of an answer
    would wait until the browser has confirmed its beginning, which it puts off for up to 40 ms (Nagle, RFC 896, and
    delayed acknowledgement, RFC 1122, §4.2.3.2). A connection has this from the socket that it is accepted by.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError):
                found = socket.socket(fileno=int(name))
                try:
                    if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                finally:
                    found.detach()  # it was only looked at


def hear_runs_out() -> None:
    """Let a part of a page be asked for only once the server has heard the end of the run before.

    A run that is over tells what it drew last through the event loop. Streamlit takes a request that comes meanwhile to
    a new runner, and from then on hears nothing of the old one: its page stays without its end, for good. A page that
    asks by a clock, or a press that comes as another ends, would meet that moment now and then; a room of thirty, once
    in a thousand presses. A request for a whole page may: it draws everything anew.
    """
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

    request_rerun = AppSession.request_rerun

    def request_in_turn(session: AppSession, client_state: ClientState | None) -> None:
        runner = session._scriptrunner
        if client_state and client_state.fragment_id and runner and runner._requests._state is ScriptRequestType.STOP:
            session._event_loop.call_later(HEARD_AFTER, request_in_turn, session, client_state)
        else:
            request_rerun(session, client_state)

    AppSession.request_rerun = request_in_turn


def cut_only_where_drawn() -> None:
    """Let a run be cut short, for a newer request, only where it draws.

    Streamlit does so wherever a run reads or writes its session, too: between two values that belong together, before
    it has taken in what was pressed, or in the midst of what that press is to cause. The newer run draws everything
    anew, but nobody presses again, and a text that was half restored is lost. Two requests of one visitor that come in
    quick succession to a busy server meet that.
    """
    from streamlit.runtime.state.safe_session_state import SafeSessionState

    begin = SafeSessionState.__init__

    def begin_uncut(session: SafeSessionState, state: SessionState, yield_callback: Callable[[], None]) -> None:
        begin(session, state, yield_callback=lambda: None)

    SafeSessionState.__init__ = begin_uncut


def give_back_memory() -> None:
    """Give the system what lies free in the pools, where the C library is glibc."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def prepare_first_page() -> None:
    """Import what every page needs, and let the model that a visit begins with read its own prompt."""
    from pages.ui.models import activations, library
    from pages.ui.shell.choices import DEFAULT_MODEL
    from pages.ui.shell.sidebar import open_page  # noqa: F401
    from pages.ui.views import generate  # noqa: F401

    if DEFAULT_MODEL in library.usable():
        checkpoint = library.model(DEFAULT_MODEL)
        activations.next_token(DEFAULT_MODEL, tuple(checkpoint.tokenizer.encode(checkpoint.card.examples[0])))


def prepare_other_pages() -> None:
    """Import the rest: tables, charts, and what PyTorch imports when a training is measured for the first time."""
    from plotly.graph_objects import Figure

    from pages.ui.models.lessons.shelf import shelf
    from pages.ui.views import (  # noqa: F401
        attention,
        inside,
        masks,
        padded_batch,
        positions,
        train_choice,
        train_progress,
    )
    from pages.ui.views.learn import course, step  # noqa: F401
    from pages.ui.views.what_if import before, beside, ladder, needed, traced  # noqa: F401
    from transformer.training.cost import machine

    Figure()
    machine()
    shelf()


def _prepare() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_EVERY)
    _NO_VISITOR.addFilter(_is_of_a_visitor)
    try:
        with _uncollected():
            _attempt(prepare_first_page)
        gc.freeze()  # what is there before the first visitor stays, and needn't be gone through again and again
    finally:
        sys.setswitchinterval(usual)
        _prepared.set()
    time.sleep(REST)
    with _uncollected():
        _attempt(prepare_other_pages)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Within, the garbage collector rests: what is imported is no garbage, and it would look for some a dozen times."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_of_a_visitor(record: logging.LogRecord) -> bool:
    return not str(record.threadName).startswith((_PREPARING, _FILING))


def _tidy() -> None:
    while True:
        time.sleep(TIDY_EVERY)
        give_back_memory()


def _attempt(prepare: Any) -> None:
    """What can't be prepared isn't; the page that needs it will say what is wrong."""
    try:
        prepare()
    except Exception:
        _LOGGER.exception("Not everything could be prepared for the first visitor.")
