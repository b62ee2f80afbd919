"""Limits uploads: how many files and bytes a session, an address, and all visitors together have on the server.

Streamlit's upload route takes any number of files from whoever has a session, and keeps them in memory until some time
after the session has ended. Pages read a file as soon as it is there, so each is deleted after two minutes.
"""

import asyncio
import re
from collections import Counter, deque
from dataclasses import dataclass
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROUTE = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)")
"""Streamlit's, below the path of the pages: the ids of a session and of a file."""
KEPT_FOR = 120.0
"""Seconds after which a file is deleted."""
MEGABYTE = 2**20
_lapsed: deque[str] = deque(maxlen=10_000)


class Limit(NamedTuple):
    """Files, and bytes of them all, those included that are still being sent."""

    files: int
    bytes: int


SESSION = Limit(8, 66 * MEGABYTE)
"""Two of the largest files, for a new one may be sent before the former is removed, and what HTTP adds to them."""
ADDRESS = Limit(128, 96 * MEGABYTE)
"""A class of thirty, each with a model of 3 MB; or one of sixty with a text each."""
ALL = Limit(512, 128 * MEGABYTE)
TOO_MUCH_OF_SESSION = "You have uploaded too much within two minutes. Remove a file, or try again in two minutes."
TOO_MUCH = "So much is being uploaded at the moment that there is no room for this file. Try again in two minutes."


def has_lapsed(file_id: str) -> bool:
    """Whether an uploaded file was deleted because its time was over, rather than by its visitor."""
    return file_id in _lapsed


@dataclass(eq=False)
class _Upload:
    """A file. limits: what it counts against, by whose they are."""

    limits: dict[str, Limit]
    bytes: int = 0
    deletion: asyncio.Task[None] | None = None
    """Waits until its time is over."""


class UploadLimits:
    """ASGI middleware that holds the limits. kept_for: seconds after which a file is deleted."""

    def __init__(self, app: ASGIApp, *, kept_for: float = KEPT_FOR) -> None:
        self._app, self._kept_for = app, kept_for
        self._files, self._bytes = Counter[str](), Counter[str]()
        self._kept: dict[str, _Upload] = {}
        """What Streamlit has, by the route of each."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = ROUTE.search(scope["path"]) if scope["type"] == "http" else None
        if route and scope["method"] == "PUT":
            await self._put(route, scope, receive, send)
        elif route and scope["method"] == "DELETE":
            if await self._succeeds(scope, receive, send):
                self._release(self._kept.pop(route[0], None))
        else:
            await self._app(scope, receive, send)

    async def _put(self, route: re.Match[str], scope: Scope, receive: Receive, send: Send) -> None:
        request, upload = Request(scope), _Upload(_limits_of(route[1], scope))
        headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(b"content-")]
        deletion = {**scope, "method": "DELETE", "headers": headers}

        async def counted() -> Message:
            message = await receive()
            more = len(message.get("body", b""))
            self._check(upload, more)
            upload.bytes += more
            self._bytes.update(dict.fromkeys(upload.limits, more))
            return message

        self._files.update(upload.limits.keys())
        try:
            length = request.headers.get("content-length", "")
            # What is larger than any file may be, or no length at all, Streamlit refuses by its own sentence.
            self._check(upload, int(length) if length.isdecimal() and int(length) <= SESSION.bytes else 0)
            if await self._succeeds(scope, counted, send):
                self._release(self._kept.get(route[0]))  # whose place this one has taken
                self._kept[route[0]] = upload
                upload.deletion = asyncio.create_task(self._delete_later(route, deletion, upload))
        except HTTPException as error:
            await PlainTextResponse(error.detail, error.status_code, error.headers)(scope, receive, send)
        finally:
            if self._kept.get(route[0]) is not upload:
                self._release(upload)

    def _check(self, upload: _Upload, more: int) -> None:
        """Raises: HTTPException 429 if so many bytes more, or this file at all, are too many."""
        for whose, limit in upload.limits.items():
            if self._files[whose] > limit.files or self._bytes[whose] + more > limit.bytes:
                sentence = TOO_MUCH_OF_SESSION if limit is SESSION else TOO_MUCH
                raise HTTPException(429, sentence, {"Retry-After": f"{KEPT_FOR:.0f}", "Cache-Control": "no-store"})

    def _release(self, upload: _Upload | None) -> None:
        if upload is None:
            return
        if upload.deletion is not None:
            upload.deletion.cancel()
        for whose in upload.limits:
            self._files[whose] -= 1
            self._bytes[whose] -= upload.bytes
            if not self._files[whose]:
                del self._files[whose], self._bytes[whose]

    async def _delete_later(self, route: re.Match[str], deletion: Scope, upload: _Upload) -> None:
        await asyncio.sleep(self._kept_for)
        _lapsed.append(route[2])
        await self._succeeds(deletion, _nothing, _nowhere)
        upload.deletion = None  # it is this
        self._release(self._kept.pop(route[0]))

    async def _succeeds(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Let Streamlit answer; returns whether it has done what was asked."""
        status = 500

        async def note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, receive, note)
        return 200 <= status < 300


def _limits_of(session: str, scope: Scope) -> dict[str, Limit]:
    from transformer.api.limits import counted_address  # imports FastAPI, for which a server's start needn't wait

    request = Request(scope)
    host = request.client.host if request.client else ""
    address = counted_address(host, request.headers.getlist("x-forwarded-for"))
    of_address = {} if address is None else {f"address {address}": ADDRESS}
    return {f"session {session}": SESSION, **of_address, "all": ALL}


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(message: Message) -> None:
    pass
