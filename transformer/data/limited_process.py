"""Runs one of our programs on untrusted input, in a process with limited time, memory and output.

The process runs this very file, by its path, so that it imports nothing but what the program needs. It imports the
program, then limits itself, and calls the program's function `answer` with the request. macOS doesn't limit memory;
Windows limits wall-clock time only.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MEGABYTE = 2**20
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Error numbers of a full disk."""


class ProgramError(Exception):
    """The program gave no answer; the message says why."""


def answer_of(
    program: Path,
    request: object,
    *,
    deadline: float,
    seconds: int,
    memory: int,
    output: int,
    environment: Sequence[str] = (),
) -> Any:
    """The result of a program's function `answer` on a request; both are JSON values.

    deadline: seconds on the clock, with the start of the process. seconds: of a processor; memory: bytes; both beyond
    what the program's imports take. output: bytes. environment: the names of this process's variables that the other
    one may know. Raises: ProgramError if there is no answer, or `answer` fails; OSError where this machine has no room
    for temporary files, or for another process.
    """
    known = {name: os.environ[name] for name in ("SYSTEMROOT", *environment) if name in os.environ}
    known["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    known["MALLOC_ARENA_MAX"] = "1"  # for glibc: each thread's arena would reserve 64 MB of address space
    limits = map(str, (seconds, memory, output))
    command = [sys.executable, "-P", os.path.abspath(__file__), str(program), *limits]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        try:
            process = subprocess.run(
                command,
                input=json.dumps(request).encode(),
                stdout=out,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=known,
                timeout=deadline,
            )
        except subprocess.TimeoutExpired:
            raise ProgramError(f"it takes longer than {deadline:.0f} seconds") from None
        if process.returncode in FULL:
            raise OSError(process.returncode, os.strerror(process.returncode))
        out.seek(0)
        told = out.read()
    try:
        found = json.loads(told)
    except ValueError:
        why = "takes too much time, memory or room" if process.returncode else "gives no text"
        raise ProgramError(f"it {why}") from None
    if "error" in found:
        raise ProgramError(found["error"])
    return found["answer"]


def main() -> None:
    """The child process: answer one request."""
    program, *limits = sys.argv[1:]
    with contextlib.suppress(OSError):  # out of memory, the system kills this process first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    answer = runpy.run_path(program)["answer"]
    request = json.load(sys.stdin)
    _limit(*map(int, limits))
    try:
        found = {"answer": answer(request)}
    except MemoryError:
        found = {"error": "it takes too much memory"}
    except Exception as error:  # untrusted input can raise anything
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    try:
        json.dump(found, sys.stdout)
        sys.stdout.flush()
    except OSError as error:
        os._exit(error.errno or 1)  # the parent tells a full disk from a fault of the program


def _limit(seconds: int, memory: int, output: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime) + seconds,
        resource.RLIMIT_FSIZE: output,
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + memory
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
