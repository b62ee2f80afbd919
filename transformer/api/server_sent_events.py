"""Server-sent events: formats them, and streams them until the client disconnects."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
"""A stream's headers: no proxy may cache it, or hold it back to its end."""
STILL_THERE = b":\n\n"
"""A comment that keeps an idle connection open."""


def event(name: str, data: Any) -> bytes:
    """One event. data: what JSON can hold. Raises: ValueError for a number that isn't finite."""
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False, separators=(',', ':'))}\n\n".encode()


def stream_of(events: AsyncIterator[bytes], headers: Mapping[str, str] = HEADERS) -> StreamingResponse:
    """The response that sends events. When its reader goes away, the iterator is closed where it waits."""
    return StreamingResponse(events, headers=dict(headers), media_type=MEDIA_TYPE)
