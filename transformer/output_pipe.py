"""Ends a command quietly when nobody reads its output any more, as in `python -m transformer list | head -n 1`."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

CLOSED = 141
"""The exit status then: that of a process ended by SIGPIPE, as a shell has it."""


def until_closed(command: Callable[[], int]) -> int:
    """The exit status of a command, which must let a BrokenPipeError through; `CLOSED` after one."""
    try:
        try:
            return command()
        finally:
            for stream in filter(None, (sys.stdout, sys.stderr)):  # a process may have none
                stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # which Python flushes once more as it ends
            with suppress(AttributeError, OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return CLOSED
