"""Prepares the server before its first visitor: imports the pages, opens the first model, sets the routes.

Streamlit does none of that until somebody opens a page, who then waits. So it is done as the server starts, while the
visitor's browser fetches the frontend. Only the connection that runs pages is kept waiting until the first page's needs
are met, so that no page is imported by two threads at once.
"""

import asyncio
import contextlib
import functools
import gc
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from pages.ui.index_page import PREVIEW
from pages.ui.security_headers import frame_ancestors
from transformer.api.settings import CHECKS as ENGINE_CHECKS
from transformer.api.settings import Check, check_all, check_folder, check_switch

REST = 3.0
"""Seconds between what the first page needs and what the others do: the first visitor's browser is busy meanwhile."""
SWITCH_EVERY = 0.0005
"""Python's switch interval, in seconds, while the first page is prepared: each of the frontend's hundred files would
wait several times for the usual 5 ms."""
SEEN_WITHIN = 7.0
"""Seconds within which a visitor's page notices that its training has ended, and keeps the model."""
TEXTS_WITHIN, TRAININGS_WITHIN = 5.0, 5.0
"""Seconds that texts have to end by themselves when the server stops, and trainings to end and be measured."""
_LOGGER = logging.getLogger(__name__)
_prepared = threading.Event()
_stopping = threading.Event()
"""Set when the server is told to stop: it ends streams that would last for hours."""
_texts_until = _trainings_seen_until = 0.0
"""Deadlines on the monotonic clock: for texts, and for pages to notice that their trainings have ended."""


@contextlib.asynccontextmanager
async def preparing(app: Any) -> AsyncIterator[None]:
    """Prepare the server on a thread of its own as it starts; as it stops, end texts and trainings in order."""
    from transformer.api.graceful_shutdown import ending_in_order

    threading.Thread(target=_prepare, name="preparing", daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        _note_as_stopping(signal.SIGINT)
    with ending_in_order(_begin_nothing, _has_ended, _cancel, TRAININGS_WITHIN + SEEN_WITHIN):
        yield


def _begin_nothing() -> None:
    """Stop trainings, whose models their visitors' pages then keep, and begin no computation."""
    global _texts_until
    from pages.ui.session.visitor_training import queue

    _stopping.set()
    if API.made:
        API.made.state.responder.stop()
    _texts_until = time.monotonic() + TEXTS_WITHIN
    _has_ended()  # which notes that there are trainings
    queue().stop("The training was stopped because the server is being restarted.")


def _has_ended() -> bool:
    global _trainings_seen_until
    from pages.ui.session.visitor_training import queue
    from transformer.inference.scheduler import schedulers

    now = time.monotonic()
    if queue().unfinished:  # those that wait or pause end at once, and their pages see that as well
        _trainings_seen_until = now + SEEN_WITHIN
    return now >= _trainings_seen_until and (not schedulers.texts or now >= _texts_until)


def _cancel() -> None:
    from transformer.inference.scheduler import schedulers

    if API.made:
        API.made.state.responder.close()
    schedulers.close()


def _note_as_stopping(number: signal.Signals) -> None:
    """Set `_stopping` before the signal's usual handler runs: the server waits for streams to end."""
    usual = signal.getsignal(number)

    def handle(number: int, frame: FrameType | None) -> None:
        _stopping.set()
        if callable(usual):
            usual(number, frame)

    signal.signal(number, handle)


def check_settings() -> None:
    """End the server with a sentence if an environment variable says what it can't. Without any, it imports nothing."""
    try:
        check_all({**ENGINE_CHECKS, **CHECKS})
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from None


def _check_rooms(name: str, value: str) -> None:
    from pages.ui.lessons.rooms import all_rooms

    all_rooms()


def _check_trainings(name: str, value: str) -> None:
    from transformer.training.training_queue import trainings_limit

    trainings_limit()


CHECKS: Mapping[str, Check] = {
    "HEADSUP_LESSONS": check_folder,
    "HEADSUP_TRAININGS": _check_trainings,
    "HEADSUP_FRAME_ANCESTORS": lambda name, value: frame_ancestors(),
    "HEADSUP_START": check_switch,
    **dict.fromkeys(("HEADSUP_REDIS", "HEADSUP_ROOMS", "HEADSUP_ROOM_SIZE"), _check_rooms),
}
"""Of the pages' settings, by variable."""


def routes(base_path: str) -> list[Any]:
    """What is served beside the pages: the engine over HTTP, and the modules that draw what it answers.

    base_path: that of the pages, as `server.baseUrlPath` has it; ends the server with a sentence if it can't be one.
    The first page has no name in its address; by the name that it has on the screen it is found all the same.
    """
    if not re.fullmatch(r"/*([\w.~-]+(/[\w.~-]+)*)?/*", base_path, re.ASCII):
        raise SystemExit(
            f"Error: server.baseUrlPath is {base_path[:60]!r}; it must be a path such as 'headsup' or 'school/headsup'."
        )
    from starlette.responses import FileResponse, HTMLResponse, RedirectResponse
    from starlette.routing import Mount, Route

    def private_link(request: Any) -> Any:  # in a thread, as it may be the first to import pages
        from pages.ui.components.room_membership import link_page

        return HTMLResponse(link_page(), headers={"Cache-Control": "no-store"})

    base = f"/{base_path.strip('/')}".rstrip("/")
    return [
        Route(f"{base}/api/rooms", lambda request: RedirectResponse("rooms/"), methods=["POST"]),
        Mount(f"{base}/api/rooms", MadeWhenAsked(_rooms_api)),
        Mount(f"{base}/api", API),
        Mount(f"{base}/modules", MadeWhenAsked(_modules)),
        Route(f"{base}/Generate", lambda request: RedirectResponse(f"./?{request.url.query}")),
        Route(f"{base}/room", private_link),
        Route(f"{base}/{PREVIEW.name}", lambda request: FileResponse(PREVIEW, headers={"Cache-Control": "no-cache"})),
    ]


def _api() -> Any:
    from pages.ui.models import library
    from pages.ui.session.visitor_training import queue
    from transformer.api.app import create_app
    from transformer.api.limits import Limits
    from transformer.api.model_store import model_store

    limits = functools.partial(Limits, counts=_counts())
    app = create_app(library.shared, model_store().get, limits=limits, gauges=_gauges)
    queue().is_busy = app.state.responder.is_busy
    return app


@functools.cache
def _counts() -> Any:
    """Counts requests to the engine and for events: of this server, or of all that share its Redis."""
    from pages.ui.shared_redis import buckets, shared_client
    from transformer.api.request_counts import Counts

    return Counts(fill_shared=buckets().fill if shared_client() else None)


def _gauges() -> dict[str, float]:
    """What /api/metrics tells of the pages."""
    from pages.ui.lessons.rooms import all_rooms
    from pages.ui.session.visitor_training import queue

    running, waiting = queue().counts
    return {
        "visitors": WaitUntilPrepared.connected,
        "rooms": len(all_rooms()),
        "trainings_running": running,
        "trainings_waiting": waiting,
    }


def _rooms_api() -> Any:
    from pages.ui.lessons.room_events import RoomEvents
    from pages.ui.lessons.rooms import all_rooms
    from pages.ui.views.learn.room_api import app_of

    return app_of(all_rooms, RoomEvents(all_rooms, _stopping.is_set), _counts())


def _modules() -> Any:
    from pages.ui.components.assets import MODULES

    return MODULES


class MadeWhenAsked:
    """An ASGI application that the first request makes: importing it would delay the server's start."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, asyncio.Lock()
        self.made: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.made is None:
            async with self._lock:
                self.made = self.made or await asyncio.to_thread(self._make)
        await self.made(scope, receive, send)


API = MadeWhenAsked(_api)


class WaitUntilPrepared:
    """ASGI middleware: websockets wait until the first page is prepared; HTTP requests don't."""

    connected = 0
    """How many tabs are connected, by one websocket each."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        if not _prepared.is_set():
            await asyncio.to_thread(_prepared.wait)
        WaitUntilPrepared.connected += 1
        try:
            await self._app(scope, receive, send)
        finally:
            WaitUntilPrepared.connected -= 1


def prepare_first_page() -> None:
    """Import what every page needs, and run the default model on its first example."""
    from pages.ui.computations import activations
    from pages.ui.frame.page import open_page  # noqa: F401
    from pages.ui.host.page_state import DEFAULT_MODEL
    from pages.ui.models import library
    from pages.ui.views import generate_export  # noqa: F401

    if any(entry.name == DEFAULT_MODEL and not entry.problem for entry in library.catalogue()):
        model = library.shared().open(DEFAULT_MODEL)
        checkpoint = model.checkpoint
        activations.next_token(model, tuple(checkpoint.tokenizer.encode(checkpoint.card.examples[0])))


def prepare_first_answers() -> None:
    """Import the engine over HTTP, and compress the scripts: a browser asks for both when it has the first page."""
    from pages.ui.components.assets import MODULES
    from transformer.api import app  # noqa: F401

    MODULES.compress()


def prepare_other_pages() -> None:
    """Import the rest: tables, charts, and what PyTorch imports when a training is measured for the first time."""
    from plotly.graph_objects import Figure

    from pages.ui.lessons.lesson_files import all_lessons
    from pages.ui.views import (  # noqa: F401
        attention_export,
        encoder_mask,
        inside_export,
        padded_batch,
        positions,
        train_choice,
        train_progress,
        without_mask,
    )
    from pages.ui.views.learn import lesson_list, step  # noqa: F401
    from transformer.training.cost_estimate import machine

    Figure()
    machine()
    all_lessons()


def _prepare() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_EVERY)
    try:
        with _uncollected():
            _attempt(prepare_first_page)
        gc.freeze()  # all that is here now stays, so the collector needn't search it again and again
    finally:
        sys.setswitchinterval(usual)
        _prepared.set()
    with _uncollected():
        _attempt(prepare_first_answers)
    time.sleep(REST)
    with _uncollected():
        _attempt(prepare_other_pages)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector off: imports leave no garbage, and it would search them a dozen times."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _attempt(prepare: Any) -> None:
    """Log what fails instead of raising it: the page that needs it will show what is wrong."""
    try:
        prepare()
    except Exception:
        _LOGGER.exception("Not everything could be prepared for the first visitor.")
