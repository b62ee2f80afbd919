"""Sends HTTP requests, retries when the server is busy, and raises its error message as an exception."""

from __future__ import annotations

import json
import time
from http.client import HTTPResponse
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request, build_opener

TRIES = 4
"""The statuses to retry: too many requests, or no memory at the moment."""
LONGEST_PAUSE = 10.0
"""Seconds before a retry."""


class ResponseError(ValueError):
    """The server's error message. status: the HTTP status; 0 in a stream that had begun."""

    def __init__(self, sentence: str, status: int = 0, parameter: str = "") -> None:
        super().__init__(sentence)
        self.status, self.parameter = status, parameter


def open_url(request: Request | str, timeout: float = 60.0, opener: OpenerDirector | None = None) -> HTTPResponse:
    """The response to a request, to be read and closed. timeout: seconds without a byte.

    Raises: ResponseError for an error response; OSError if no server can be reached.
    """
    address = request if isinstance(request, str) else request.full_url
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{address[:80]!r} is no address of a server; it must begin with http:// or https://.")
    opener = opener or build_opener()
    for tried in range(1, TRIES + 1):
        try:
            return opener.open(request, timeout=timeout)
        except HTTPError as error:
            with error:
                pause = error.headers.get("Retry-After", "")
                if error.code in (429, 503) and pause.isdecimal() and tried < TRIES:
                    time.sleep(min(float(pause), LONGEST_PAUSE))
                    continue
                raise _error_of(error) from None
    raise AssertionError("unreachable")


def _error_of(error: HTTPError) -> ResponseError:
    try:
        content = json.loads(error.read())
        return ResponseError(str(content["error"]), error.code, str(content["parameter"]))
    except (ValueError, KeyError, TypeError):
        return ResponseError(f"The server answered with {error.code} {error.reason}.", error.code)
