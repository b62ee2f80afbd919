"""Which module may import which, read from the source with `ast`: nothing under test is imported or run.

    config, hooks → registry, positions, masks → attention → layers → stacks → models
        → generation, training, optimizers, analysis, checkpoints, archives, estimates
        → objectives, presets, quick → experiments, __main__, __init__

tokenizers, corpora and tasks stand beside them. pages/ui uses transformer, pages use pages/ui.

Every rule is a function from modules to a list of violations. It is run on the project, where the list must
be empty, and on a snippet that breaks it, where it must not be.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    {"config", "hooks"},
    {"registry", "positions", "masks"},
    {"attention"},
    {"layers"},
    {"stacks"},
    {"models"},
    {"generation", "training", "optimizers", "analysis", "checkpoints", "archives", "estimates"},
    {"objectives", "presets", "quick"},
    {"experiments", "__main__", "__init__"},
)
"""The engine from bottom to top: a module imports from its own layer and those below it."""

BESIDE = {"tokenizers", "corpora", "tasks"}
"""Text and data: they import one another and the configuration, and are imported from the last two layers."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
LOWEST_THAT_READS_TEXT = RANK["checkpoints"]

IMPORTERS = {"importlib.import_module", "import_module", "__import__"}
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
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPORTERS:
                target = node.args[0] if node.args else None
                found.add(
                    target.value if isinstance(target, ast.Constant) else "an import by a computed name"
                )
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


def project() -> list[Module]:
    """The shipped code, as far as it is written: app.py, pages/ and transformer/."""
    files = [
        ROOT / "app.py",
        *sorted((ROOT / "pages").rglob("*.py")),
        *sorted((ROOT / "transformer").rglob("*.py")),
    ]
    return [
        Module(f.relative_to(ROOT).as_posix(), f.read_text(encoding="utf-8")) for f in files if f.exists()
    ]


def is_engine(module: Module) -> bool:
    return module.path.startswith("transformer/")


def is_page(module: Module) -> bool:
    return module.path == "app.py" or re.fullmatch(r"pages/[^/]+\.py", module.path) is not None


def is_figures(module: Module) -> bool:
    return re.fullmatch(r"pages/ui/(\w*figures|palette)\.py", module.path) is not None


def engine_part(name: str) -> str:
    """The part of the engine that a full name belongs to: `transformer.masks.causal_mask` is of `masks`."""
    parts = name.split(".")
    known = len(parts) > 1 and (parts[1] in RANK or parts[1] in BESIDE)
    return parts[1] if known else "__init__"


def imported_parts(module: Module) -> set[str]:
    """Parts of the engine that a module of it imports. `from . import masks` is `masks`; `from . import
    name`, where name is no part, is `__init__`."""
    names = {name for name in module.imports if name.split(".")[0] == "transformer"}
    # `transformer` alone is only how `from transformer import masks` starts, unless nothing longer follows.
    longer = {name for name in names if name != "transformer"}
    return {engine_part(name) for name in longer or names}


def reachable(module: Module, modules: list[Module]) -> list[Module]:
    """The module and all of the project's that importing it runs, packages on the way included."""
    by_name = {m.name: m for m in modules}
    seen, waiting = [], [module.name]
    while waiting:
        name = waiting.pop()
        parents = [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
        found = by_name.get(name)
        if found and found not in seen:
            seen.append(found)
            waiting += found.imports
        waiting += [parent for parent in parents if parent in by_name and by_name[parent] not in seen]
    return seen


# The rules


def engine_knows_no_interface(modules: list[Module]) -> list[str]:
    foreign = ("streamlit", "plotly", "pages", "app", "tests")
    return [f"{m.path} imports {f}" for m in modules if is_engine(m) for f in foreign if m.uses(f)]


def engine_is_layered(modules: list[Module]) -> list[str]:
    broken = []
    for module in filter(is_engine, modules):
        part = module.path.split("/")[1].removesuffix(".py")
        if part not in RANK and part not in BESIDE:
            broken.append(f"{module.path} has no place in LAYERS or BESIDE yet: give it one")
            continue
        for target in imported_parts(module) - {part}:
            if part in BESIDE:
                allowed = target in BESIDE or target == "config"
            elif target in BESIDE:
                allowed = RANK[part] >= LOWEST_THAT_READS_TEXT
            else:
                allowed = RANK[target] <= RANK[part]
            if not allowed:
                broken.append(f"{module.path} imports transformer.{target}")
    return broken


def engine_has_no_cycles(modules: list[Module]) -> list[str]:
    graph = {}
    for module in filter(is_engine, modules):
        part = module.path.split("/")[1].removesuffix(".py")
        graph.setdefault(part, set()).update(imported_parts(module) - {part})
    # Taking away what imports nothing that is left, again and again, leaves the cycles.
    while free := [part for part, targets in graph.items() if not targets & graph.keys()]:
        for part in free:
            del graph[part]
    return [f"transformer.{part} is in a cycle, or imports one" for part in graph]


def figures_are_pure(modules: list[Module]) -> list[str]:
    foreign = ("streamlit", "torch", "transformer")
    return [
        f"{m.path} reaches {f} through {r.path}"
        for m in modules
        if is_figures(m)
        for r in reachable(m, modules)
        for f in foreign
        if r.uses(f)
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


def nothing_is_unpickled(modules: list[Module]) -> list[str]:
    broken = []
    for module in modules:
        broken += [f"{module.path} imports {pickle}" for pickle in sorted(PICKLES) if module.uses(pickle)]
        broken += [f"{module.path} uses {name}" for name in module.references() if name in PICKLING_CALLS]
        broken += [
            f"{module.path}:{node.value.lineno} sets allow_pickle"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and ast.unparse(node.value) != "False"
        ]
    return broken


def imports_are_pinned(modules: list[Module], requirements: str | None = None) -> list[str]:
    if requirements is None:
        requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w-]+)==[\w.]+$", requirements, flags=re.MULTILINE))
    known = pinned | sys.stdlib_module_names | {"app", "pages", "transformer"}
    return [
        f"{m.path} imports {top}, which requirements.txt does not pin"
        for m in modules
        for top in sorted({name.split(".")[0] for name in m.imports} - known)
    ]


RULES = (
    engine_knows_no_interface,
    engine_is_layered,
    engine_has_no_cycles,
    figures_are_pure,
    pages_are_thin,
    shared_parts_know_no_page,
    nothing_is_unpickled,
    imports_are_pinned,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule):
    assert rule(project()) == []


def test_the_project_is_found():
    assert any(is_engine(module) for module in project())


BAD = [
    (engine_knows_no_interface, {"transformer/models.py": "import streamlit as st"}),
    (engine_knows_no_interface, {"transformer/models.py": "from plotly import graph_objects"}),
    (
        engine_knows_no_interface,
        {"transformer/masks.py": "def f():\n    from pages.ui.figures import heatmap"},
    ),
    (engine_is_layered, {"transformer/masks.py": "from .attention import attention"}),
    (engine_is_layered, {"transformer/config.py": "from transformer.masks import causal_mask"}),
    (engine_is_layered, {"transformer/layers.py": "from . import models"}),
    (engine_is_layered, {"transformer/models.py": "from transformer import generate"}),
    (engine_is_layered, {"transformer/layers.py": "import transformer"}),
    (engine_is_layered, {"transformer/models.py": "from .generation import generate"}),
    (engine_is_layered, {"transformer/models.py": "from .tokenizers import Tokenizer"}),
    (engine_is_layered, {"transformer/tasks.py": "from .models import build_model"}),
    (engine_is_layered, {"transformer/checkpoints.py": "from .presets import PRESETS"}),
    (engine_is_layered, {"transformer/attention.py": "if TYPE_CHECKING:\n    from .layers import Block"}),
    (engine_is_layered, {"transformer/attention.py": "importlib.import_module('transformer.layers')"}),
    (engine_is_layered, {"transformer/newcomer.py": ""}),
    (
        engine_has_no_cycles,
        {
            "transformer/training.py": "from .checkpoints import save_checkpoint",
            "transformer/checkpoints.py": "from .training import train",
        },
    ),
    (figures_are_pure, {"pages/ui/figures.py": "import streamlit as st"}),
    (figures_are_pure, {"pages/ui/position_figures.py": "from torch import Tensor"}),
    (figures_are_pure, {"pages/ui/palette.py": "from transformer import causal_mask"}),
    (
        figures_are_pure,
        {"pages/ui/figures.py": "from pages.ui.state import dark", "pages/ui/state.py": "import streamlit"},
    ),
    (figures_are_pure, {"pages/ui/figures.py": "", "pages/ui/__init__.py": "import streamlit"}),
    (pages_are_thin, {"pages/1_Attention.py": "import pages.ui.sidebar\nimport torch"}),
    (pages_are_thin, {"app.py": "from pages.ui import sidebar\nfrom torch.nn import functional"}),
    (pages_are_thin, {"app.py": "import streamlit as st"}),
    (shared_parts_know_no_page, {"pages/ui/sidebar.py": "from pages.attention import draw"}),
    (shared_parts_know_no_page, {"pages/ui/sidebar.py": "from ..masks import draw"}),
    (shared_parts_know_no_page, {"pages/ui/components/live_text.py": "import app"}),
    (nothing_is_unpickled, {"transformer/checkpoints.py": "import torch\ntorch.load('model.pt')"}),
    (nothing_is_unpickled, {"transformer/checkpoints.py": "import torch as t\nt.load('model.pt')"}),
    (
        nothing_is_unpickled,
        {"transformer/checkpoints.py": "from torch import load as read\nread('model.pt')"},
    ),
    (nothing_is_unpickled, {"pages/ui/models.py": "from pickle import loads"}),
    (nothing_is_unpickled, {"app.py": "import pandas as pd\npd.read_pickle('frame.pkl')"}),
    (nothing_is_unpickled, {"app.py": "import numpy as np\nnp.load('a.npy', allow_pickle=True)"}),
    (imports_are_pinned, {"app.py": "import seaborn"}),
    (imports_are_pinned, {"transformer/tasks.py": "def f():\n    import inflect"}),
]


@pytest.mark.parametrize(("rule", "files"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_the_rule_can_fail(rule, files):
    assert rule([Module(path, source) for path, source in files.items()]) != []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rule_accepts_what_is_right(rule):
    files = {
        "transformer/__init__.py": "from .models import build_model\nfrom .tokenizers import Tokenizer",
        "transformer/__main__.py": "from . import presets, training",
        "transformer/attention.py": "import torch\nfrom .config import ModelConfig\nfrom . import masks",
        "transformer/checkpoints.py": "import safetensors.torch\nfrom .tokenizers import Tokenizer",
        "transformer/corpora.py": "import pooch\nfrom .tokenizers import Tokenizer",
        "transformer/models.py": "from transformer.attention import attention\nfrom .hooks import HookPoint",
        "transformer/presets.py": "from .training import train",
        "transformer/tokenizers.py": "from tokenizers import Tokenizer\nfrom .config import ModelConfig",
        "transformer/training.py": "from .checkpoints import save_checkpoint",
        "pages/ui/figures.py": "import numpy as np\nfrom pages.ui.palette import Theme",
        "pages/ui/palette.py": "from plotly import colors",
        "pages/ui/models.py": "import streamlit as st\nimport torch\nfrom transformer import load_checkpoint",
        "pages/1_Attention.py": "import streamlit as st\nfrom pages.ui import figures, models",
        "app.py": "import streamlit as st\nfrom pages.ui.models import load\nload('x')",
    }
    assert rule([Module(path, source) for path, source in files.items()]) == []


def test_a_module_that_is_not_pinned_exactly_is_not_pinned():
    assert imports_are_pinned([Module("app.py", "import plotly")], requirements="plotly>=7\n") != []
