"""A transformer written from the papers. Every tensor inside it can be read and changed.

`__init__.pyi` lists the public names. Each is imported on first use, so that what needs little, such as the command
line's help, doesn't wait for PyTorch.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _lines(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _all(module: str) -> list[str]:
    """The names in a module's `__all__`."""
    for line in _lines(Path(__file__).parent / f"{module.replace('.', '/')}.py"):
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            return ast.literal_eval(line.value)
    raise ImportError(f"{module} has no __all__")


_MODULES = {
    name: f".{line.module}"
    for line in _lines(Path(__file__).with_suffix(".pyi"))
    if isinstance(line, ast.ImportFrom) and line.module
    for alias in line.names
    for name in (_all(line.module) if alias.name == "*" else [alias.name])
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
