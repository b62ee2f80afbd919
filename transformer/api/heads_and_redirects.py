"""Answers HEAD wherever GET is answered, and redirects by a relative address, which holds behind any proxy."""

import asyncio
import posixpath
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadsAndRedirects:
    """ASGI middleware. HEAD is answered as GET would be, up to its headers: a stream is ended before it begins.

    The server doesn't see whether a visitor came over HTTPS, nor what a proxy took off the address: a `Location` that
    leads elsewhere on this server is made relative to what was asked for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked, begun = Request(scope), asyncio.Event()
        is_head = scope["method"] == "HEAD"

        async def checked(message: Message) -> None:
            if begun.is_set():
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "location" in headers:
                    headers["Location"] = relative(headers["Location"], asked)
            await send(message)
            if is_head and message["type"] == "http.response.start":
                begun.set()
                await send({"type": "http.response.body", "body": b""})

        if not is_head:
            await self._app(scope, receive, checked)
            return
        answering = asyncio.ensure_future(self._app({**scope, "method": "GET"}, receive, checked))
        waiting = asyncio.ensure_future(begun.wait())
        try:
            await asyncio.wait([answering, waiting], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, waiting):
                task.cancel()
            await asyncio.wait([answering, waiting])


def relative(location: str, asked: Request) -> str:
    """An address on the server that was asked, as seen from the address that it was asked for; any other as it is."""
    target, here = urlsplit(location), asked.url
    if target.netloc not in ("", here.netloc) or not target.path.startswith("/"):
        return location
    folder, name = posixpath.split(target.path)
    way = posixpath.relpath(folder, posixpath.dirname(here.path))
    begins = "" if way.startswith(".") else "./"  # a name with a colon would be taken for a scheme
    return target._replace(scheme="", netloc="", path=f"{begins}{way}/{name}").geturl()
