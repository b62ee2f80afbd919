"""The files of a component, read from the folder that holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def reader(module_file: str) -> Callable[[str], str]:
    """A function that returns the text of a file beside a module. module_file: the module's `__file__`."""
    folder = Path(module_file).parent
    return lambda name: (folder / name).read_text(encoding="utf-8")
