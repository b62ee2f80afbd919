"""Bundles an ES module and its imports into one text.

A saved HTML page and a notebook can't follow relative imports, and the app's visitors would ask for a hundred files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_NAME = r"[A-Za-z_$][\w$]*"
# A line that begins like an import or export statement: not a call, a property, or a key.
_STATEMENT = re.compile(r"^[ \t]*(?:import|export)\b(?!\s*[:(=.,)])", re.MULTILINE)
_IMPORT = re.compile(r"import\s*\{(?P<names>[^{}]*)\}\s*from\s*([\"'])(?P<path>\.{1,2}/[^\"'\n]+)\2;?[ \t]*(?:\n|\Z)")
_EXPORT = re.compile(rf"export\s+(?:(?:async\s+)?function\s*\*?|class|const)\s+(?P<name>{_NAME})")
_DEFAULT = re.compile(r"export\s+default\b")
_DYNAMIC = re.compile(r"\bimport\s*\(\s*[\"'`]\.")
# Comments that a line begins with, empty lines, and the space that a line begins with: a quarter of the text.
_COMMENTS = re.compile(r"^[ \t]*(?://.*\n|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*\n?|\n)|^[ \t]+", re.MULTILINE)


@dataclass(frozen=True)
class _Module:
    """One file: `text` is what is left of it without its imports."""

    path: Path
    imports: tuple[tuple[Path, tuple[str, ...]], ...]
    exports: tuple[str, ...]
    text: str


def bundle(entry: Path) -> str:
    """The text of one module: a file and all that it imports, each file once, what is imported before what imports it.

    Supported are `import { one, other } from "./file.js"`, without renaming and with a relative path, and `export` in
    front of a function, class or const that begins a line; only `entry` may have an `export default`, and only its
    exports stay. What a file doesn't export is its own: each is the body of a function that returns its exports.
    ValueError for anything else, a file or name that isn't there, and files that import each other in a circle.
    """
    linked: dict[Path, _Module] = {}
    _link(entry.resolve(), (), linked)
    *others, main = linked.values()
    names = {module.path: f"module{number}" for number, module in enumerate(others)}
    return _COMMENTS.sub("", "\n".join([*(_scoped(module, names) for module in others), _body(main, names)]))


def _scoped(module: _Module, names: Mapping[Path, str]) -> str:
    exported = ", ".join(module.exports)
    return f"const {names[module.path]} = (() => {{\n{_body(module, names)}\nreturn {{ {exported} }};\n}})();"


def _body(module: _Module, names: Mapping[Path, str]) -> str:
    imported = [f"const {{ {', '.join(given)} }} = {names[path]};\n" for path, given in module.imports]
    return "".join([*imported, module.text])


def _link(path: Path, importers: tuple[Path, ...], linked: dict[Path, _Module]) -> None:
    """Add a file to `linked`, after everything that it imports."""
    if path in importers:
        circle = [*importers[importers.index(path) :], path]
        raise ValueError(f"files import each other in a circle: {' → '.join(step.name for step in circle)}")
    if path in linked:
        return
    module = _read(path, is_entry=not importers)
    for imported, names in module.imports:
        if not imported.is_file():
            raise ValueError(f"{path.name} imports {imported.name}, but there is no file {imported}")
        _link(imported, (*importers, path), linked)
        for name in names:
            if name not in linked[imported].exports:
                raise ValueError(f"{path.name} imports {name} from {imported.name}, which doesn't export it")
    linked[path] = module


def _read(path: Path, is_entry: bool) -> _Module:
    source = path.read_text(encoding="utf-8")
    imports: list[tuple[Path, tuple[str, ...]]] = []
    exports: list[str] = []
    kept: list[str] = []
    done = 0
    for statement in _STATEMENT.finditer(source):
        start = statement.start() + len(statement[0]) - len("import")  # as long as "export"
        kept.append(source[done:start])
        done = start
        if match := _IMPORT.match(source, start):
            names = tuple(name.strip() for name in match["names"].split(",") if name.strip())
            if not names or not all(re.fullmatch(_NAME, name) for name in names):
                raise _unsupported(path, source, start)
            imports.append(((path.parent / match["path"]).resolve(), names))
            done = match.end()
        elif match := _EXPORT.match(source, start):
            exports.append(match["name"])
            if not is_entry:
                done = start + len("export ")
        elif not (is_entry and _DEFAULT.match(source, start)):
            raise _unsupported(path, source, start)
    if _DYNAMIC.search(source) and (dynamic := _DYNAMIC.search(_COMMENTS.sub(_blank, source))):
        raise _unsupported(path, source, dynamic.start())
    text = "".join([*kept, source[done:]])
    return _Module(path, tuple(imports), tuple(exports), text)


def _blank(comment: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", comment[0])


def _unsupported(path: Path, source: str, at: int) -> ValueError:
    line = source.count("\n", 0, at) + 1
    written = source[at:].partition("\n")[0].strip()
    return ValueError(
        f"{path.name}, line {line}: {written!r} isn't supported; write "
        'import { name } from "./file.js", or export in front of a function, class or const '
        "(export default only in the file that is bundled)"
    )
