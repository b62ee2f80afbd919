"""A transformer written from the papers. Every tensor inside it can be read and changed.

`__init__.pyi` lists the public names. Each is imported on first use, so that what needs little, such as the command
line's help, doesn't wait for PyTorch.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_MODULES = {
    alias.name: f".{line.module}"
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
