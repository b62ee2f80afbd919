"""Between HTTP and the engine: which model, computed once, kept as bytes, no more at once than there is room for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from gzip import compress
from typing import Any

import anyio
import anyio.to_thread
from fastapi import Request
from fastapi.responses import JSONResponse, Response

from ..checkpoints.folder import Checkpoint, CheckpointError
from ..inference.recording import Recording
from .cache import Cache
from .errors import ApiError, wrong
from .library import Library
from .open_models import OpenModel
from .queries import ModelQuery

OWN, OWN_HEADER = "own", "HeadsUp-Model"
"""What an own model is called in an address, and the header that its token comes in."""
KEPT_BYTES = 48_000_000
"""Of answers."""
THREADS = 4
"""Answers that are computed at the same moment."""
WAITING = 64
"""Questions that may wait for those; one more is told to come back."""
COMPRESSED_FROM = 4_000
"""Bytes from which on an answer is compressed, where that pays."""
RECORDING = "application/vnd.headsup.recording"
"""A safetensors file."""


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, and those compressed, if that makes them shorter."""

    media_type: str
    body: bytes
    compressed: bytes = b""


class Service:
    """What the addresses share. library, own: where models are found, by name and by token."""

    def __init__(self, library: Callable[[], Library], own: Callable[[str], Checkpoint | None]) -> None:
        self._library, self._own = library, own
        self._answers = Cache(KEPT_BYTES)
        self._threads: anyio.CapacityLimiter | None = None
        self._waiting = 0
        self.counts: dict[str, int] = {}
        """Answers by address and how they came to be, for /api/metrics."""

    @property
    def library(self) -> Library:
        """The models that ship."""
        return self._library()

    async def model(self, query: ModelQuery, request: Request) -> OpenModel:
        """The model that is asked. Raises: ApiError for one that there isn't, or that has changed."""
        token = request.headers.get(OWN_HEADER, "")
        if query.model == OWN:
            checkpoint = self._own(token)
            if checkpoint is None:
                raise ApiError(404, "This model of your own isn't here any more; train or upload it again.", "model")
            return OpenModel(OWN, token, checkpoint, is_own=True)
        known = {entry.name for entry in self.library.entries() if not entry.problem}
        if query.model not in known:
            raise ApiError(404, f"There is no model {query.model[:60]!r}; /api/models lists those there are.", "model")
        try:
            model = await self.in_thread(lambda: self.library.open(query.model))
        except CheckpointError as error:
            raise ApiError(503, f"The model can't be opened: {error}", "model", retry_after=5) from None
        if query.version is not None and query.version != model.version:
            raise ApiError(409, "The model has been replaced by another version; load the page again.", "version")
        return model

    async def recording(
        self, request: Request, query: ModelQuery, model: OpenModel, compute: Callable[[], Recording], *,
        compresses: bool = False,
    ) -> Response:  # fmt: skip
        """Answer with a recording's bytes. compresses: whether that pays, as for bytes, and not for floats."""

        def make() -> Answer:
            body = compute().to_bytes()
            packed = compress(body, 5, mtime=0) if compresses and len(body) >= COMPRESSED_FROM else b""
            return Answer(RECORDING, body, packed if len(packed) < len(body) else b"")

        return await self.answer(request, query, model, make)

    async def json(
        self, request: Request, query: ModelQuery, model: OpenModel, compute: Callable[[], Any]
    ) -> Response:
        """Answer with what JSON can hold."""

        def make() -> Answer:
            return Answer("application/json", json.dumps(compute(), allow_nan=False).encode())

        return await self.answer(request, query, model, make)

    async def answer(
        self, request: Request, query: ModelQuery, model: OpenModel, make: Callable[[], Answer]
    ) -> Response:
        """Answer what was asked: from what the client has, from what is kept, or computed now, once for all who ask."""
        path = request.url.path.rpartition("/")[2]
        asked = query.model_dump_json(exclude={"version"}, exclude_none=True)
        key = path, model.version, asked
        tag = f'"{hashlib.blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()}"'
        headers = self._headers(tag, query, model)
        if request.headers.get("if-none-match") == tag:
            self._count(path, "unchanged")
            return Response(status_code=304, headers=headers)
        found: Answer | None = self._answers.known(key)
        self._count(path, "computed" if found is None else "cached")
        if found is None:
            try:
                found = await self.in_thread(lambda: self._answers.get(key, make))
            except ValueError as error:  # what only computing shows
                raise wrong("", error) if not str(error) else ApiError(400, _sentence(error)) from None
        body = found.body
        if found.compressed and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = found.compressed, "gzip"
        return Response(body, 200, headers, found.media_type)

    async def in_thread(self, compute: Callable[[], Any]) -> Any:
        """Compute on one of a few threads. Raises: ApiError 503 where too many wait for one."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        if self._waiting >= WAITING:
            raise ApiError(503, "The server has too much to compute just now; ask again in a second.", retry_after=1)
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(compute, limiter=self._threads)
        finally:
            self._waiting -= 1

    def forget(self) -> None:
        """Keep no answers."""
        self._answers.clear()

    def _headers(self, tag: str, query: ModelQuery, model: OpenModel) -> dict[str, str]:
        scope = "private" if model.is_own else "public"
        lasts = "max-age=31536000, immutable" if query.version is not None and not model.is_own else "no-cache"
        return {"ETag": tag, "Cache-Control": f"{scope}, {lasts}", "Vary": f"Accept-Encoding, {OWN_HEADER}",
                "X-Content-Type-Options": "nosniff"}  # fmt: skip

    def _count(self, path: str, how: str) -> None:
        name = f"{path}:{how}"
        self.counts[name] = self.counts.get(name, 0) + 1


def _sentence(error: Exception) -> str:
    words = str(error)[:400].strip()
    return words if words.endswith(".") else f"{words}."


def as_json(found: Mapping[str, Any]) -> JSONResponse:
    """JSON that is asked for anew each time."""
    return JSONResponse(found, headers={"Cache-Control": "no-cache"})
