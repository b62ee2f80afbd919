"""Runs a Redis for tests, where one is installed, and waits for what servers do."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis


class RedisServer:
    """A Redis on a free port that keeps what it was told in a folder. Also a context manager, which stops it."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"redis://127.0.0.1:{port}/0"
        options = f"--port {port} --bind 127.0.0.1 --appendonly yes --appendfsync always --save".split()
        self._command = [program, *options, "", "--dir", str(folder)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        client, until = redis.Redis.from_url(self.address), time.monotonic() + 60
        while True:
            try:
                client.ping()
                return
            except redis.RedisError:
                assert self._process.poll() is None and time.monotonic() < until, "Redis doesn't start"
                time.sleep(0.02)

    def clear(self) -> None:
        redis.Redis.from_url(self.address).flushall()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()


def within(seconds: float, holds: Callable[[], object]) -> bool:
    """Whether something holds before so many seconds are over."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return bool(holds())
