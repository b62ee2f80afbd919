"""Starts the server that benchmarks measure, on as many cores as the smallest supported machine."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.servers import ROOT, Server

CORES = 2


@contextmanager
def app_server(**environment: str) -> Iterator[Server]:
    """A server that is ready to answer. environment: variables that it is started with."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(ROOT / "app.py", log_path=Path(folder, "log"), cwd=ROOT, env=environment, options=())
        with server:
            server.wait_until_healthy()
            yield server


def on_two_cores() -> None:
    """Let this process, and whatever it starts from here on, use no more than `CORES`."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def memory(process: int) -> dict[str, float]:
    """Megabytes of a process: VmRSS, all that is resident; VmHWM, the most; RssAnon, what no file holds; RssFile."""
    fields = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return {name.rstrip(":"): int(rest[0]) * 1.024 / 1000 for name, *rest in fields if rest[1:] == ["kB"]}


def processor_seconds(process: int) -> float:
    """Processor time that a process has used: on a busy machine it tells more than the time on the wall."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
