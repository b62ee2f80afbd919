"""The files of a component: what it has in its own folder, and what it uses of the instrument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from transformer import frontend


def reader(module_file: str) -> Callable[[str], str]:
    """A function that returns the text of a file beside a module. module_file: the module's `__file__`."""
    folder = Path(module_file).parent
    return lambda name: (folder / name).read_text(encoding="utf-8")


def script(module_file: str, name: str) -> str:
    """One JavaScript module: a file beside a Python module, which has the default export, and all that it imports."""
    return frontend.bundle(Path(module_file).with_name(name))


def style(module_file: str, *names: str, instruments: Sequence[str] = ()) -> str:
    """One style sheet: the theme, the instrument's of these names, then those beside a Python module."""
    read, read_instruments = reader(module_file), reader(frontend.__file__)
    return "\n".join([reader(__file__)("theme.css"), *map(read_instruments, instruments), *map(read, names)])
