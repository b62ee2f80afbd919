"""Connects routes to the engine: finds the model, runs each computation once, and caches the encoded answer."""

import asyncio
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from gzip import compress
from typing import Any, NamedTuple

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from ..checkpoints.folder import Checkpoint, CheckpointError
from ..data.chat import Chat
from ..inference.recording import Recording
from ..inference.scheduler import schedulers
from ..jobs import FairThreads, StoppedError, progress
from .cache import Cache
from .computations import Computations
from .errors import BROKEN, ApiError, sentence_of, stopping
from .limits import Share, share_in
from .model_library import Library
from .open_models import OWN, OpenModel
from .request_parameters import ModelQuery
from .server_sent_events import HEADERS, MEDIA_TYPE, STILL_THERE, event, stream_of

OWN_HEADER = "HeadsUp-Model"
"""The header with the token of a visitor's own model."""
KEPT_BYTES, LARGEST_KEPT = 16_000_000, 6_000_000
"""Bytes of all cached answers, and of the largest. (The engine's own results are cached as well.)"""
THREADS, WAITING = 4, 64
"""Answers computed at once, and answers under way; beyond these, clients are told to come back."""
LONG_THREADS, LONG_WAITING = 2, 16
"""The same for long computations, so that short ones needn't wait for them."""
LOOK_EVERY, SAY_EVERY = 0.05, 5.0
"""Seconds between two checks for progress, and between two signs of life without any."""
STUCK_AFTER, LISTED_WITHIN = 30.0, 3.0
"""Seconds after which a short computation, or one step of a batch of texts, counts as stuck on any machine; and seconds
for listing the models."""
COMPRESSED_FROM = 4_000
"""The fewest bytes of an answer that is worth compressing."""
RECORDING = "application/vnd.headsup.recording"
"""A safetensors file."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, and those compressed, if that makes them shorter."""

    media_type: str
    body: bytes
    compressed: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Asked(NamedTuple):
    """A request, its query, and the model that it asks."""

    request: Request
    query: ModelQuery
    model: OpenModel


class Responder:
    """Answers the requests to all addresses, cached. library, own: where models are found, by name and by token."""

    def __init__(self, library: Callable[[], Library], own: Callable[[str], Checkpoint | None]) -> None:
        self._library, self._own = library, own
        self._answers = Cache(KEPT_BYTES, LARGEST_KEPT)
        self._short, self._long = Computations(THREADS, WAITING), Computations(LONG_THREADS, LONG_WAITING)
        self._opening = FairThreads(3, "opening")
        self._is_stopping = False
        self.counts: Counter[str] = Counter()
        """Answers by path and where they came from, for /api/metrics."""

    @property
    def library(self) -> Library:
        """The models that ship."""
        return self._library()

    async def model(self, query: ModelQuery, request: Request) -> OpenModel:
        """The model of a request. Raises: ApiError if there is none, or another version of it."""
        self._check_going_on()
        token = request.headers.get(OWN_HEADER, "")
        if query.model == OWN and query.version is not None:
            raise ApiError(400, "A model of your own has no version; leave it out.", "version")
        return query.named(await self.read(lambda: self._open(query, token), share_in(request)))

    def _open(self, query: ModelQuery, token: str) -> OpenModel:
        if query.model == OWN:
            checkpoint = self._own(token)
            if checkpoint is None:
                raise ApiError(404, "This model of your own isn't here any more; train or upload it again.", "model")
            return OpenModel(OWN, token, checkpoint, is_own=True)
        if query.model not in {entry.name for entry in self.library.entries() if entry.problem is None}:
            raise ApiError(404, f"There is no model {query.model[:60]!r}; /api/models lists those there are.", "model")
        try:
            model = self.library.open(query.model)
        except CheckpointError as error:
            raise ApiError(503, f"The model can't be opened: {error}", "model", retry_after=5) from None
        if query.version is not None and query.version != model.version:
            raise ApiError(409, "The model has been replaced by another version; ask without one.", "version")
        return model

    async def readable_models(self) -> int:
        """How many models can be asked. Raises: ApiError 503 if none can, or the engine doesn't answer."""
        self._check_going_on()
        if max(self._short.seconds_running, schedulers.seconds_in_step) > STUCK_AFTER:
            raise ApiError(503, f"A computation has been stuck for {STUCK_AFTER:.0f} seconds.", retry_after=5)
        try:
            entries = await asyncio.wait_for(self.read(lambda: self.library.entries()), LISTED_WITHIN)
        except (OSError, TimeoutError):
            entries = ()
        if not (models := sum(entry.problem is None for entry in entries)):
            raise ApiError(503, "The folder of models has none that can be read.", retry_after=5)
        return models

    def gauges(self) -> dict[str, float]:
        """The work in progress, for /api/metrics."""
        return {"computations": len(self._short) + len(self._long), "texts_in_progress": schedulers.texts}

    def is_busy(self) -> bool:
        """True while somebody waits for a computation, or for the next token of a text."""
        return bool(len(self._short) or len(self._long) or schedulers.texts_due)

    async def read(self, find: Callable[[], Any], share: Share | None = None) -> Any:
        """Look something up in files, on a thread apart from computations. share: in whose turn."""
        return await asyncio.wrap_future(self._opening.submit(share, find))

    async def recording(self, asked: Asked, compute: Callable[[], Recording], *, compresses: bool = False) -> Response:
        """Answer with a recording. compresses: whether to compress it, which pays for bytes, not for floats."""

        def make() -> Answer:
            body = compute().to_bytes()
            return _packed(RECORDING, body) if compresses else Answer(RECORDING, body)

        return await self.answer(asked, make, keeps=compresses)

    async def json(self, asked: Asked, compute: Callable[[], Any], *, takes_long: bool = True) -> Response:
        """Answer with JSON."""

        def make() -> Answer:
            return _packed("application/json", json.dumps(compute(), allow_nan=False).encode())

        return await self.answer(asked, make, takes_long=takes_long)

    async def answer(
        self, asked: Asked, make: Callable[[], Answer], *, takes_long: bool = False, keeps: bool = True
    ) -> Response:
        """Answer from the client's cache or this one, or compute the answer, once for all who ask."""
        key, headers, response = self._known(asked)
        if response is not None:
            return response
        computations = self._long if takes_long else self._short
        computed = (lambda: self._answers.get(key, make)) if keeps else make
        with computations.join(key, computed, share_in(asked.request)) as job:
            try:
                answer = await asyncio.shield(asyncio.wrap_future(job))
            except ValueError as error:  # a problem that only computing shows
                raise ApiError(400, sentence_of(error)) from None
            except (StoppedError, asyncio.CancelledError):
                if computations.is_closed:
                    raise stopping() from None
                raise  # it is the request that was cancelled
        return _response(asked.request, answer, headers)

    async def stream(self, asked: Asked, compute: Callable[[], Any]) -> Response:
        """Answer with events: `progress` {share} now and then, then `result`, or `error`.

        compute: returns what JSON can hold, and calls `progress`, by which it ends once nobody reads the stream.
        """
        key, headers, response = self._known(asked)
        if response is not None:
            return response

        def make() -> Answer:
            progress(0.0)  # ends the job if all readers left while it waited for a thread
            return self._answers.get(key, lambda: Answer(MEDIA_TYPE, event("result", compute())))

        async def events() -> AsyncIterator[bytes]:
            try:
                with self._long.join(key, make, share_in(asked.request)) as job:
                    last_share, last_sent = -1.0, time.monotonic()
                    while not job.done():
                        if job.share != last_share:
                            last_share, last_sent = job.share, time.monotonic()
                            yield event("progress", {"share": last_share})
                        elif time.monotonic() - last_sent > SAY_EVERY:
                            last_sent = time.monotonic()
                            yield STILL_THERE
                        await asyncio.sleep(LOOK_EVERY)
                    yield job.result().body
            except ApiError as error:
                yield error.event()
            except ValueError as error:
                yield ApiError(400, sentence_of(error)).event()
            except (StoppedError, CancelledError):
                yield stopping().event()
            except Exception:
                _log.exception("A stream broke off.")
                yield ApiError(500, BROKEN).event()

        return stream_of(events(), {**headers, **HEADERS})

    def _known(self, asked: Asked) -> tuple[Hashable, dict[str, str], Response | None]:
        """An answer's cache key, its headers, and the response if nothing has to be computed."""
        request, query, model = asked
        path = request.scope["route"].path.strip("/")
        of_today = _written_today(query, model)
        key = path, model.version, query.model_dump_json(exclude={"version"}, exclude_none=True), of_today
        tag = f'"{hashlib.blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()}"'
        scope = "private" if model.is_own else "public"
        lasts = "max-age=31536000, immutable" if query.version is not None and not of_today else "no-cache"
        headers = {
            "ETag": tag,
            "Cache-Control": f"{scope}, {lasts}",
            "Vary": f"Accept-Encoding, {OWN_HEADER}",
            "X-Content-Type-Options": "nosniff",
        }
        if tag in (sent.strip().removeprefix("W/") for sent in request.headers.get("if-none-match", "").split(",")):
            self.counts[f"{path}:unchanged"] += 1
            return key, headers, Response(status_code=304, headers=headers)
        answer: Answer | None = self._answers.known(key)
        self.counts[f"{path}:{'computed' if answer is None else 'cached'}"] += 1
        return key, headers, None if answer is None else _response(request, answer, headers)

    def forget(self) -> None:
        """Drop all cached answers."""
        self._answers.clear()

    def stop(self) -> None:
        """Finish the requests in progress, and refuse further computations."""
        self._is_stopping = True

    def _check_going_on(self) -> None:
        if self._is_stopping:
            raise stopping()

    def close(self) -> None:
        """Begin no computation any more."""
        self.stop()
        self._short.close()
        self._long.close()


def _packed(media_type: str, body: bytes) -> Answer:
    """An answer, compressed where that makes it shorter."""
    packed = compress(body, 5, mtime=0) if len(body) >= COMPRESSED_FROM else b""
    return Answer(media_type, body, packed if len(packed) < len(body) else b"")


def _written_today(query: ModelQuery, model: OpenModel) -> str:
    """The text that a chat puts around a question today, if it has a date; else an empty one."""
    chat = model.checkpoint.card.chat if getattr(query, "reads", "") == "chat" else None
    return Chat(**chat).text("") if chat and chat.get("dates") else ""


def _response(request: Request, answer: Answer, headers: Mapping[str, str]) -> Response:
    headers, body = {**headers, **answer.headers}, answer.body
    if answer.compressed and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = answer.compressed, "gzip"
    return Response(body, 200, headers, answer.media_type)


def as_json(content: Mapping[str, Any]) -> JSONResponse:
    """JSON that clients fetch anew each time."""
    return JSONResponse(content, headers={"Cache-Control": "no-cache"})
