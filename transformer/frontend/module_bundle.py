"""Bundles an ES module and its imports into one text, or into a few.

A saved HTML page and a notebook can't follow relative imports, and the app's visitors would ask for a hundred files.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_NAME = r"[A-Za-z_$][\w$]*"
# A line that begins like an import or export statement: not a call, a property, or a key.
_STATEMENT = re.compile(r"^[ \t]*(?:import|export)\b(?!\s*[:(=.,)])", re.MULTILINE)
_IMPORT = re.compile(r"import\s*\{(?P<names>[^{}]*)\}\s*from\s*([\"'])(?P<path>\.{1,2}/[^\"'\n]+)\2;?[ \t]*(?:\n|\Z)")
_IMPORTED_DATA = re.compile(
    rf"import\s+(?P<name>{_NAME})\s+from\s*([\"'])(?P<path>\.{{1,2}}/[^\"'\n]+\.json)\2\s*"
    r"with\s*\{\s*type:\s*([\"'])json\4\s*\};?[ \t]*(?:\n|\Z)"
)
_EXPORT = re.compile(rf"export\s+(?:(?:async\s+)?function\s*\*?|class|const)\s+(?P<name>{_NAME})")
_DEFAULT = re.compile(r"export\s+default\b")
# Without \b, a regular expression finds the word ten times as fast.
_DYNAMIC = re.compile(r"import\s*\(\s*[\"'`]\.")
_LATER = re.compile(r"import\(([\"'])(?P<path>\.{1,2}/[^\"'\n]+\.js)\1\)")
# Comments that a line begins with, or ends with where no string can be; types within a line; empty lines, and the space
# that a line begins with: a quarter of the text.
_COMMENTS = re.compile(
    r"^[ \t]*(?://.*\n|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*\n?|\n)|^[ \t]+"
    r"|(?<=[;{},(]) // [^\n\"'`]*$|/\*\* @type (?:[^*]|\*(?!/))*\*/ ?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class _Module:
    """One file: `text` is what is left of it without its imports."""

    path: Path
    imports: tuple[tuple[Path, tuple[str, ...]], ...]
    """Files, and the names taken from each: `name`, or `name: other` as destructuring renames it."""
    exports: tuple[str, ...]
    text: str
    """Without comments."""

    @cached_property
    def later(self) -> list[Path]:
        """Files that it imports only when they are needed."""
        return [self._file(found) for found in _LATER.finditer(self.text)]

    def body(self, name_of: Callable[[Path], str], load: Callable[[Path], str]) -> str:
        """Its text in a bundle. name_of: the variable that holds a file's exports; load: what stands for
        `import("./file.js")`."""
        imported = [f"const {{ {', '.join(given)} }} = {name_of(path)};\n" for path, given in self.imports]
        return "".join([*imported, _LATER.sub(lambda found: load(self._file(found)), self.text)])

    def _file(self, found: re.Match[str]) -> Path:
        return (self.path.parent / found["path"]).resolve()


def bundle(entry: Path) -> str:
    """The text of one module: a file and all that it imports, each file once, what is imported before what imports it.

    Supported are `import { one, other } from "./file.js"`, without renaming and with a relative path;
    `import one from "./file.json" with { type: "json" }`, which browsers of 2022 can't read themselves; and `export` in
    front of a function, class or const that begins a line; only `entry` may have an `export default`, and only its
    exports stay. What a file doesn't export is its own: each is the body of a function that returns its exports.
    `import("./file.js")` gives the exports of a file that is in the text as well.
    ValueError for anything else, a file or name that isn't there, and files that import each other in a circle.
    """
    *others, main = (modules := _linked(entry)).values()
    name = _names(modules).__getitem__

    def load(path: Path) -> str:
        return f"Promise.resolve({name(path)})"

    return "\n".join([*(_scoped(module, name, load) for module in others), main.body(name, load)])


def bundle_in_parts(entry: Path, name: str) -> dict[str, str]:
    """The same as several texts by file name, to be served from one folder: under `name` what `entry` imports at once,
    and what several others need; and for each `import("./file.js")` a part with what hasn't been loaded by then.
    """
    modules = _linked(entry)
    main = entry.resolve()
    roots = [main, *(path for module in modules.values() for path in module.later)]
    at_once = {root: _reached(root, modules) for root in roots}
    parents: dict[Path, set[Path]] = defaultdict(set)
    for root, reached in at_once.items():
        for path in reached if root == main else reached - at_once[main]:
            for later in modules[path].later:
                parents[later].add(root)
    needed_by: dict[Path, list[Path]] = defaultdict(list)
    for root, reached in at_once.items():
        present, above = at_once[main] if root != main else set(), parents[root]
        while len(above) == 1 and main not in above:
            (parent,) = above
            present, above = present | at_once[parent], parents[parent]
        for path in reached - present:
            needed_by[path].append(root)
    home = {path: needed_by[path][0] for path in modules}  # in their order: all servers make the same text
    for path, needing in needed_by.items():
        if len(needing) > 1:
            home |= dict.fromkeys(_reached(path, modules), main)
    parts = dict.fromkeys(home.values())
    files = {root: name if root == main else f"{root.parent.name}_{root.stem}.js" for root in parts}
    if len({*files.values()}) < len(files):
        raise ValueError(f"two parts have one name: {', '.join(sorted(files.values()))}")
    return {file: _part(root, home, files, modules, main) for root, file in files.items()}


def _part(
    root: Path, home: Mapping[Path, Path], files: Mapping[Path, str], modules: Mapping[Path, _Module], main: Path
) -> str:
    names = _names(modules)
    taken: dict[Path, set[str]] = defaultdict(set)
    """The variables of other parts that are used, by part."""

    def name_of(path: Path) -> str:
        if home[path] != root:
            taken[home[path]].add(names[path])
        return names[path]

    def load(path: Path) -> str:
        return f'import("./{files[path]}")' if home[path] == path else f"Promise.resolve({name_of(path)})"

    own = [module for path, module in modules.items() if home[path] == root and path != main]
    texts = [_scoped(module, name_of, load) for module in own]
    if root == main:
        texts.append(modules[main].body(name_of, load))
    else:
        texts.append(f"export const {{ {', '.join(modules[root].exports)} }} = {names[root]};")
    texts.append(f"export {{ {', '.join(names[module.path] for module in own)} }};")
    imports = [f'import {{ {", ".join(sorted(used))} }} from "./{files[part]}";' for part, used in taken.items()]
    return "\n".join([*imports, *texts])


def _scoped(module: _Module, name_of: Callable[[Path], str], load: Callable[[Path], str]) -> str:
    exported = ", ".join(module.exports)
    return f"const {name_of(module.path)} = (() => {{\n{module.body(name_of, load)}\nreturn {{ {exported} }};\n}})();"


def _names(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: f"module{number}" for number, path in enumerate(paths)}


def _reached(path: Path, modules: Mapping[Path, _Module]) -> set[Path]:
    """A file and all that it imports at once."""
    reached, waiting = {path}, [path]
    while waiting:
        imported = {each for each, _ in modules[waiting.pop()].imports} - reached
        reached |= imported
        waiting += imported
    return reached


def _linked(entry: Path) -> dict[Path, _Module]:
    """A file and all that it imports, at once or later, itself the last: each after what it imports at once."""
    linked: dict[Path, _Module] = {}
    main = entry.resolve()
    _link(main, (), linked)
    waiting = [*linked]
    while waiting:
        for path in linked[waiting.pop()].later:
            before = len(linked)
            _link(path, (main,), linked)
            waiting += [*linked][before:]
    linked[main] = linked.pop(main)
    return linked


def _link(path: Path, importers: tuple[Path, ...], linked: dict[Path, _Module]) -> None:
    """Add a file to `linked`, after everything that it imports."""
    if path in importers:
        circle = [*importers[importers.index(path) :], path]
        raise ValueError(f"files import each other in a circle: {' → '.join(step.name for step in circle)}")
    if path in linked:
        return
    module = _read(path, is_entry=not importers)
    for later in module.later:
        if not later.is_file():
            raise ValueError(f"{path.name} imports {later.name}, but there is no file {later}")
    for imported, names in module.imports:
        if not imported.is_file():
            raise ValueError(f"{path.name} imports {imported.name}, but there is no file {imported}")
        _link(imported, (*importers, path), linked)
        for name in names:
            if name.partition(":")[0] not in linked[imported].exports:
                raise ValueError(f"{path.name} imports {name} from {imported.name}, which doesn't export it")
    linked[path] = module


def _read(path: Path, is_entry: bool) -> _Module:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        data = json.dumps(json.loads(source), ensure_ascii=False, separators=(",", ":"))
        return _Module(path, (), ("data",), f"const data = {data};\n")
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
        elif match := _IMPORTED_DATA.match(source, start):
            imports.append(((path.parent / match["path"]).resolve(), (f"data: {match['name']}",)))
            done = match.end()
        elif match := _EXPORT.match(source, start):
            exports.append(match["name"])
            if not is_entry:
                done = start + len("export ")
        elif not (is_entry and _DEFAULT.match(source, start)):
            raise _unsupported(path, source, start)
    if _DYNAMIC.search(source):
        code = _COMMENTS.sub(_blank, source)
        for dynamic in _DYNAMIC.finditer(code):
            if not _LATER.match(code, dynamic.start()):
                raise _unsupported(path, source, dynamic.start())
    text = _COMMENTS.sub("", "".join([*kept, source[done:]]))
    return _Module(path, tuple(imports), tuple(exports), text)


def _blank(comment: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", comment[0])


def _unsupported(path: Path, source: str, at: int) -> ValueError:
    line = source.count("\n", 0, at) + 1
    written = source[at:].partition("\n")[0].strip()
    return ValueError(
        f"{path.name}, line {line}: {written!r} isn't supported; write "
        'import { name } from "./file.js", import("./file.js"), or export in front of a function, class or const '
        "(export default only in the file that is bundled)"
    )
