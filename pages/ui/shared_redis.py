"""Connects to the Redis that servers share, where there is one, and counts in it what is limited."""

import functools
import os
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from transformer.api.limits import SECRET_VARIABLE
from transformer.api.request_counts import MemoryBuckets

REDIS_VARIABLE = "HEADSUP_REDIS"
"""The environment variable that names the Redis; without it, each server is by itself."""
PREFIX = "headsup:"
"""Of every key and channel."""
PATIENCE = 2.0
"""Seconds within which Redis has to answer."""
FILL = """
local left = math.max(redis.call('PTTL', KEYS[1]), 0) + ARGV[1]
if left > 0 then redis.call('SET', KEYS[1], '', 'PX', left) end
return left
"""
"""A bucket is a key that lives until the bucket is empty. In a script, nothing comes between its two halves."""


def shared_client() -> Any:  # whose types have the asynchronous client's answers, too
    """A client of the Redis that servers share; None for a server by itself. Safe from any thread.

    Raises: ValueError, saying what would do, for what is no address.
    """
    address = os.environ.get(REDIS_VARIABLE, "")
    try:
        return redis_client(address) if address else None
    except ValueError:
        example = "redis://localhost:6379/0"
        raise ValueError(f"{REDIS_VARIABLE} isn't the address of a Redis, such as {example!r}.") from None


@functools.cache
def redis_client(address: str) -> Any:
    """Raises: ValueError for an address that isn't one."""
    import redis  # takes a fifth of a second, and most servers have none
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis.from_url(
        address,
        decode_responses=True,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        retry=Retry(NoBackoff(), 1),  # a connection that was lost meanwhile; a page that asks often waits for none
        health_check_interval=15,
    )


def attempt(ask: Callable[[], Any]) -> Any:
    """What Redis answers; None if it can't be reached."""
    from redis import RedisError

    try:
        return ask()
    except RedisError:
        return None


class RedisBuckets:
    """Buckets in Redis; while it can't be reached, in memory. Of names, it has only what the servers' secret makes of
    them: they hold addresses."""

    def __init__(self, client: Any) -> None:
        self._client, self._alone = client, MemoryBuckets()
        self._key = os.environ.get(SECRET_VARIABLE, "").encode()[:64]

    def fill(self, seconds: Mapping[str, float]) -> dict[str, float]:
        left = attempt(lambda: self._shared(seconds))
        return self._alone.fill(seconds) if left is None else left

    def _shared(self, seconds: Mapping[str, float]) -> dict[str, float]:
        with self._client.pipeline(transaction=False) as pipe:
            for name, more in seconds.items():
                digest = blake2b(name.encode(), digest_size=16, key=self._key).hexdigest()
                pipe.eval(FILL, 1, f"{PREFIX}limit:{digest}", round(1000 * more))
            return {name: left / 1000 for name, left in zip(seconds, pipe.execute(), strict=True)}


Buckets = MemoryBuckets | RedisBuckets


def buckets() -> Buckets:
    """Of all servers that share a Redis, or of this process."""
    client = shared_client()
    return RedisBuckets(client) if client else MemoryBuckets()
