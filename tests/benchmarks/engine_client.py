"""Sends a visitor's requests to the API, as their browser would."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode, urlsplit

from transformer import Recording

from .protocol import PATIENCE, Cookies, FailedError

WAITING = 200
"""Questions of all visitors that are waited for at the same moment, each on a thread."""
_threads = ThreadPoolExecutor(WAITING, "engine")


class EngineClient:
    """One visitor's. asks: the parameters that each of their questions about a pass has."""

    def __init__(self, url: str, cookies: Cookies | None = None) -> None:
        self._host = urlsplit(url).netloc
        self._cookies = Cookies() if cookies is None else cookies
        self.asks: Mapping[str, Any] = {}

    async def recording(self, path: str, /, **values: Any) -> tuple[float, Recording]:
        """The seconds to an answer's last byte, and what it says. Raises: FailedError."""
        seconds, body = await self._in_thread(path, values, lambda response, began: response.read())
        return seconds, Recording.from_bytes(body)

    async def json(self, path: str, /) -> tuple[float, Any]:
        """The seconds to an answer's last byte, and the object that it is. Raises: FailedError."""
        seconds, body = await self.file(f"/api/{path}")
        return seconds, json.loads(body)

    async def generate(self, tokens: list[int], count: int, **values: Any) -> tuple[list[int], list[float]]:
        """Continue a text; returns the ids that come, and the second after the question at which each did.

        Raises: FailedError if none comes.
        """

        def read(response: HTTPResponse, began: float) -> tuple[list[int], list[float]]:
            ids, times, name = [], [], ""
            for line in response:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: ") and name == "token":
                    times.append(time.perf_counter() - began)
                    ids.append(json.loads(line[6:])["id"])
                elif line.startswith(b"data: ") and name == "error":
                    raise FailedError(json.loads(line[6:])["error"])
            if not ids:  # its server was killed, and the proxy ends what it has begun
                raise FailedError("the text ended before it began")
            return ids, times

        written = ",".join(map(str, tokens))
        _, found = await self._in_thread("generate", {"tokens": written, "max_new_tokens": count, **values}, read)
        return found

    async def file(self, address: str) -> tuple[float, bytes]:
        """The seconds to a file's last byte, and its bytes. Raises: FailedError."""
        read = lambda response, began: response.read()  # noqa: E731
        return await asyncio.get_running_loop().run_in_executor(_threads, self._ask, address, read)

    async def _in_thread(self, path: str, values: Mapping[str, Any], read: Callable) -> tuple[float, Any]:
        asked = {name: value for name, value in {**self.asks, **values}.items() if value is not None}
        address = f"/api/{path}?{urlencode(asked, doseq=True)}"
        return await asyncio.get_running_loop().run_in_executor(_threads, self._ask, address, read)

    def _ask(self, address: str, read: Callable[[HTTPResponse, float], Any]) -> tuple[float, Any]:
        began = time.perf_counter()
        connection = HTTPConnection(self._host, timeout=PATIENCE)
        try:
            connection.request("GET", address, headers={"Accept-Encoding": "gzip", **self._cookies.header})
            response = connection.getresponse()
            self._cookies.take(response.headers.get_all("Set-Cookie", []))
            if response.status != 200:
                raise FailedError(f"{response.status}: {response.read(300).decode(errors='replace')}")
            found = read(response, began)
            seconds = time.perf_counter() - began
            is_packed = isinstance(found, bytes) and response.headers["Content-Encoding"] == "gzip"
            return seconds, gzip.decompress(found) if is_packed else found
        except (OSError, HTTPException) as error:
            raise FailedError(f"no answer: {error!r}") from error
        finally:
            connection.close()
