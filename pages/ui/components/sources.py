"""The files of a component, read from the folder that holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SHARED = Path(__file__).with_name("shared.js")


def reader(module_file: str) -> Callable[[str], str]:
    """A function that returns the text of a file beside a module. module_file: the module's `__file__`."""
    folder = Path(module_file).parent
    return lambda name: (folder / name).read_text(encoding="utf-8")


def script(module_file: str, *names: str) -> str:
    """One JavaScript module: what all components share, then the named files beside a Python module, in this order.

    The browser gets it as text, where relative imports would fail. The last file has the default export.
    """
    read = reader(module_file)
    return "\n".join([SHARED.read_text(encoding="utf-8"), *map(read, names)])
