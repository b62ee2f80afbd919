"""Checks the engine's settings, which are environment variables, before a server starts."""

import os
import tempfile
from collections.abc import Callable, Mapping

Check = Callable[[str, str], object]
"""Takes a variable's name and value. Raises: ValueError, a sentence with what would do, for an invalid value."""


def check_folder(name: str, value: str) -> None:
    """Check that a folder can be read."""
    try:
        os.scandir(value).close()
    except OSError as error:
        raise ValueError(f"{name} is {value[:200]!r}, which can't be read as a folder: {error.strerror}.") from None


def check_switch(name: str, value: str) -> None:
    """Check that a value is "on" or "off"."""
    if value.lower() not in ("on", "off"):
        raise ValueError(f"{name} is {value[:40]!r}; it must be 'on', as without it, or 'off'.")


def check_all(checks: Mapping[str, Check]) -> None:
    """Check each variable that is set. Raises: ValueError for the first invalid one."""
    for name, check in checks.items():
        if value := os.environ.get(name):
            check(name, value)


def _check_store(name: str, value: str) -> None:
    try:
        os.makedirs(value, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=value):
            pass
    except OSError as error:
        raise ValueError(
            f"{name} is {value[:200]!r}, which can't be a folder for own models: {error.strerror}."
        ) from None


def _check_secret(name: str, value: str) -> None:
    if not value.strip():
        raise ValueError(
            f"{name} is blank; it must be a key that nobody guesses, such as `openssl rand -hex 32` gives."
        )


def _check_memory(name: str, value: str) -> None:
    from ..checkpoints.memory_limit import memory_limit

    memory_limit()


def _check_proxies(name: str, value: str) -> None:
    from .limits import proxies

    proxies()


CHECKS: Mapping[str, Check] = {
    "HEADSUP_STORE": _check_store,
    "HEADSUP_CHECKPOINTS": check_folder,
    "HEADSUP_CORPORA": check_folder,
    "HEADSUP_MODEL_MEMORY": _check_memory,
    "HEADSUP_BROWSER_MODELS": check_switch,
    "HEADSUP_SECRET": _check_secret,
    "HEADSUP_PROXIES": _check_proxies,
}
"""The engine's checks, by variable; each imports only what it needs."""
