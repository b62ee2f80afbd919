"""Tests which module may import which, by reading the source.

What import-linter can say stands in pyproject.toml: the layers of the engine, of its model, and of what pages share.
The rest is here. A rule is a function from modules to a list of violations; it is run on the project, where the list
must be empty, and on a snippet that breaks it, where it must not be.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

IMPORTERS = {"importlib.import_module", "import_module", "__import__"}
PRIVATE = re.compile(r"streamlit\.(runtime|web|proto|elements)(\.|$)|streamlit\.(.*\.)?_[^_]")
"""Modules that Streamlit doesn't document."""
OF_NAMED_TUPLES = {"_replace", "_asdict"}
"""What is documented all the same."""
PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
PICKLING_CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "pandas.read_pickle"}


@dataclass(frozen=True)
class Module:
    """A source file: its path in the project, with forward slashes, and its text."""

    path: str
    source: str

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @cached_property
    def names_of_imports(self) -> dict[str, str]:
        """Each name that an import binds, with its meaning: `import torch as t` gives {"t": "torch"}."""
        bound = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    bound[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    bound[alias.asname or alias.name] = f"{self._from(node)}.{alias.name}"
        return bound

    @cached_property
    def imports(self) -> frozenset[str]:
        """Full dotted names, also of imports inside functions and under TYPE_CHECKING. `from a import b`
        counts as both `a` and `a.b`, for b may be a module."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add(self._from(node))
                found.update(f"{self._from(node)}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPORTERS and self.name != "transformer":
                # The engine's own table of contents names its parts alone.
                target = node.args[0] if node.args else None
                found.add(target.value if isinstance(target, ast.Constant) else "an import by a computed name")
        return frozenset(found)

    def _from(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])

    def uses(self, package: str) -> bool:
        return any(name == package or name.startswith(package + ".") for name in self.imports)

    def references(self) -> Iterator[str]:
        """Every dotted name in the code, with import aliases resolved: `t.load` gives `torch.load`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name):
                head, _, rest = ast.unparse(node).partition(".")
                if head in self.names_of_imports:
                    yield f"{self.names_of_imports[head]}.{rest}".rstrip(".")


@cache
def project() -> list[Module]:
    """The shipped code, as far as it is written: app.py, pages/ and transformer/."""
    files = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "transformer").rglob("*.py"))]
    return [Module(f.relative_to(ROOT).as_posix(), f.read_text(encoding="utf-8")) for f in files if f.exists()]


def is_engine(module: Module) -> bool:
    return module.path.startswith("transformer/")


def is_page(module: Module) -> bool:
    return module.path == "app.py" or re.fullmatch(r"pages/[^/]+\.py", module.path) is not None


# The rules


def the_engine_imports_its_parts(modules: list[Module]) -> list[str]:
    """Not the whole of itself: `from transformer import …` inside it would run in a circle."""
    own = {".".join(module.name.split(".")[:2]) for module in modules if is_engine(module)}
    return [
        f"{module.path} imports {name}"
        for module in filter(is_engine, modules)
        for name in sorted(module.imports)
        if name.rpartition(".")[0] == "transformer" and name not in own
    ]


def pages_are_thin(modules: list[Module]) -> list[str]:
    pages = [m for m in modules if is_page(m)]
    arithmetic = [f"{m.path} imports torch" for m in pages if m.uses("torch")]
    return arithmetic + [f"{m.path} imports nothing from pages.ui" for m in pages if not m.uses("pages.ui")]


def shared_parts_know_no_page(modules: list[Module]) -> list[str]:
    return [
        f"{m.path} imports {name}"
        for m in modules
        if m.path.startswith("pages/ui/")
        for name in sorted(m.imports)
        if re.match(r"(app|tests)(\.|$)|pages\.(?!ui(\.|$))", name)
    ]


def only_documented_parts_are_used(modules: list[Module]) -> list[str]:
    """Of Streamlit, and of whatever else a page uses: a private part may be another one in any version."""
    pages = [m for m in modules if m.path == "app.py" or m.path.startswith("pages/")]
    broken = [f"{m.path} imports {name}" for m in pages for name in sorted(m.imports) if PRIVATE.match(name)]
    return broken + [
        f"{m.path}:{node.lineno} uses {ast.unparse(node)}"
        for m in pages
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Attribute)
        and re.match(r"_(?!_)", node.attr)
        and node.attr not in OF_NAMED_TUPLES
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def nothing_is_unpickled(modules: list[Module]) -> list[str]:
    broken = []
    for module in modules:
        broken += [f"{module.path} imports {pickle}" for pickle in sorted(PICKLES) if module.uses(pickle)]
        broken += [f"{module.path} uses {name}" for name in module.references() if name in PICKLING_CALLS]
        broken += [
            f"{module.path}:{node.value.lineno} sets allow_pickle"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False"
        ]
    return broken


def imports_are_declared(modules: list[Module]) -> list[str]:
    """By the part that imports: the engine, the API on top of it, the app on top of both."""
    declared, broken = packages(), []
    for module in modules:
        parts = ["engine", *(["api"] if not is_engine(module) or module.path.startswith("transformer/api/") else [])]
        parts += [] if is_engine(module) else ["app"]
        installed = {name.removesuffix("-py").replace("-", "_") for part in parts for name in declared[part]}
        known = installed | sys.stdlib_module_names | {"app", "pages", "transformer"}
        broken += [
            f"{module.path} imports {top}, which isn't installed with it"
            for top in sorted({name.split(".")[0] for name in module.imports} - known)
        ]
    return broken


@cache
def packages() -> dict[str, frozenset[str]]:
    """What pyproject.toml says that each part needs, on top of the parts below it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {"engine": project["dependencies"], **project["optional-dependencies"]}
    return {part: frozenset(re.match(r"[\w-]+", each)[0] for each in parts[part]) - {"headsup"} for part in parts}


RULES = (
    the_engine_imports_its_parts,
    pages_are_thin,
    shared_parts_know_no_page,
    only_documented_parts_are_used,
    nothing_is_unpickled,
    imports_are_declared,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule):
    assert rule(project()) == []


def test_the_project_is_found():
    assert any(is_engine(module) for module in project())


BAD = [
    (the_engine_imports_its_parts, {"transformer/model/models.py": "from transformer import generate"}),
    (the_engine_imports_its_parts, {"transformer/model/masks.py": "from .. import causal_mask"}),
    (pages_are_thin, {"pages/Attention.py": "import pages.ui.frame.page\nimport torch"}),
    (pages_are_thin, {"app.py": "from pages.ui import sidebar\nfrom torch.nn import functional"}),
    (pages_are_thin, {"app.py": "import streamlit as st"}),
    (shared_parts_know_no_page, {"pages/ui/sidebar.py": "from pages.attention import draw"}),
    (shared_parts_know_no_page, {"pages/ui/sidebar.py": "from ..masks import draw"}),
    (shared_parts_know_no_page, {"pages/ui/components/live_text.py": "import app"}),
    (only_documented_parts_are_used, {"pages/ui/state.py": "from streamlit.runtime.state import SessionState"}),
    (only_documented_parts_are_used, {"pages/ui/state.py": "import streamlit.web.server"}),
    (only_documented_parts_are_used, {"app.py": "from streamlit import proto"}),
    (only_documented_parts_are_used, {"pages/ui/state.py": "import streamlit as st\nst.session_state._state"}),
    (nothing_is_unpickled, {"transformer/checkpoints.py": "import torch\ntorch.load('model.pt')"}),
    (nothing_is_unpickled, {"transformer/checkpoints.py": "import torch as t\nt.load('model.pt')"}),
    (nothing_is_unpickled, {"transformer/checkpoints.py": "from torch import load as read\nread('model.pt')"}),
    (nothing_is_unpickled, {"pages/ui/models.py": "from pickle import loads"}),
    (nothing_is_unpickled, {"app.py": "import pandas as pd\npd.read_pickle('frame.pkl')"}),
    (nothing_is_unpickled, {"app.py": "import numpy as np\nnp.load('a.npy', allow_pickle=True)"}),
    (imports_are_declared, {"app.py": "import seaborn"}),
    (imports_are_declared, {"transformer/tasks.py": "def f():\n    import inflect"}),
    (imports_are_declared, {"transformer/tasks.py": "import starlette"}),
    (imports_are_declared, {"transformer/api/app.py": "import streamlit"}),
]


@pytest.mark.parametrize(("rule", "files"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_the_rule_can_fail(rule, files):
    assert rule([Module(path, source) for path, source in files.items()]) != []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rule_accepts_what_is_right(rule):
    files = {
        "transformer/__init__.py": "from .model.models import build_model\nfrom .data.tokenizers import Tokenizer",
        "transformer/__main__.py": "from .training import presets",
        "transformer/config.py": "",
        "transformer/model/attention.py": "import torch\nfrom ..config import ModelConfig\nfrom . import masks",
        "transformer/model/masks.py": "",
        "transformer/checkpoints/folder.py": "import safetensors.torch\nfrom ..data.tokenizers import Tokenizer",
        "transformer/training/presets.py": "",
        "pages/ui/figures/lines.py": "import numpy as np\nfrom pages.ui.figures.palette import Theme",
        "pages/ui/models/library.py": "import streamlit as st\nimport torch\nfrom transformer import load_checkpoint",
        "pages/Attention.py": "import streamlit as st\nfrom pages.ui.views import attention",
        "app.py": "import streamlit as st\nfrom pages.ui.models.library import model\nmodel('x')",
    }
    assert rule([Module(path, source) for path, source in files.items()]) == []


# What is installed


def test_every_package_is_pinned_in_one_place():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([\w-]+)==[\w.]+(?:; .+)?", line) for line in lines if line and line[0] not in "#-"]
    assert all(pinned) and sorted(line[1] for line in pinned) == sorted(frozenset().union(*packages().values()))


ENGINE_ALONE = """
import sys
from importlib.abc import MetaPathFinder

class NotInstalled(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
import transformer
from transformer.__main__ import main

for name in transformer.__all__:
    getattr(transformer, name)
print("exit", main(["generate", "stories", "Mary went to the kitchen.", "--tokens", "2"]))
print("exit", main(["serve"]))
main(["--help"])
"""


def test_the_engine_needs_no_interface_and_no_web_framework():
    others = {name.removesuffix("-py").replace("-", "_") for part in ("api", "app") for name in packages()[part]}
    assert {"streamlit", "fastapi", "starlette", "plotly", "pandas"} <= others
    command = [sys.executable, "-c", ENGINE_ALONE, ",".join(others)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=250)
    assert found.returncode == 0 and "COMMAND" in found.stdout, found.stderr
    assert re.findall(r"^exit \d", found.stdout, re.MULTILINE) == ["exit 0", "exit 1"]
    assert re.fullmatch(r"Error: [^\n]+ pip install '\.\[api\]'\.\n", found.stderr), found.stderr


# The contracts in pyproject.toml

BREAKING = {
    "The engine: every part": ("transformer/data/tasks.py", "from ..training.loop import train"),
    "The paper": ("transformer/model/masks.py", "from .attention import attention"),
    "What is drawn in a browser": ("pages/ui/views/attention.py", "from transformer import frontend"),
    "The engine knows no interface": ("transformer/model/layers.py", "import streamlit"),
    "What pages share": ("pages/ui/frame/state.py", "from pages.ui.views import attention"),
    "Figures are drawn from arrays": ("pages/ui/figures/palette.py", "import torch"),
}
"""An import that breaks each contract, by the beginning of the contract's name."""


def broken_contracts(folder: Path) -> list[str]:
    """The names of the contracts that the code in a folder breaks."""
    script = "import importlinter.cli; importlinter.cli.lint_imports(no_cache=True)"
    found = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=250)
    lines = re.findall(r"^(.+) (KEPT|BROKEN)$", found.stdout, re.MULTILINE)
    assert len(lines) == len(BREAKING), found.stdout + found.stderr
    return [name for name, state in lines if state == "BROKEN"]


def test_the_project_keeps_its_contracts():
    assert broken_contracts(ROOT) == []


def test_each_contract_can_be_broken(tmp_path):
    for name in ("transformer", "pages"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, line in BREAKING.values():
        with (tmp_path / path).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    broken = broken_contracts(tmp_path)
    assert [name for name in BREAKING if not any(contract.startswith(name) for contract in broken)] == []
