"""Keeps uploaded lessons in the Redis that servers share, by the tokens of their sessions.

Where there is none, or it can't be reached, a lesson is lost with its server, as the rest of its session is.
"""

import contextlib
import functools
import os
from typing import Any

import redis

from pages.ui.session.shared_redis import PREFIX, REDIS_VARIABLE, redis_client

KEPT_FOR = 8 * 3600
"""Seconds since it was uploaded, or came back: a day at school."""


def keep_lesson(token: str, text: str) -> None:
    """Keep the text of a session's lesson; "" removes it."""
    with contextlib.suppress(redis.RedisError):
        if (client := _client()) and text:
            client.set(_key(token), text, ex=KEPT_FOR)
        elif client:
            client.delete(_key(token))


def kept_lesson(token: str) -> str:
    """The text of a session's lesson; "" for none."""
    with contextlib.suppress(redis.RedisError):
        return ((client := _client()) and client.get(_key(token))) or ""
    return ""


def _client() -> Any:
    address = os.environ.get(REDIS_VARIABLE, "")
    return _connected(address) if address else None


_connected = functools.cache(redis_client)


def _key(token: str) -> str:
    return f"{PREFIX}lesson:{token}"
