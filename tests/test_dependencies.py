"""Tests which module may import which, and that each part's packages are declared and pinned.

Layers and contracts stand in pyproject.toml, for import-linter; what nobody may import, for ruff. The rest is here.
"""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "app.py",
        *sorted((ROOT / "pages").rglob("*.py")),
        *sorted((ROOT / "transformer").rglob("*.py")),
    )
}
ENGINE = [path for path in SOURCES if path.startswith("transformer/")]


def imports_of(source: str) -> set[str]:
    """The absolute imports of a source file, in full, also of those inside functions."""
    nodes = [*ast.walk(ast.parse(source))]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}


@pytest.mark.parametrize(
    ("files", "what"),
    [
        (ENGINE, r"from (transformer|\.\.) import|import transformer\b"),  # its parts, never the whole: a circle
        (
            [path for path in SOURCES if re.match(r"app\.py|pages/[^/]+$", path)],
            r"(import|from) torch\b",
        ),  # pages are thin
        ([path for path in SOURCES if path.startswith("pages/ui/")], r"(import|from) (app|tests|pages\.(?!ui\b))\b"),
        (list(SOURCES), r".*(allow_pickle|import_module|__import__)"),
    ],
    ids=["the engine", "pages", "what pages share", "everything"],
)
def test_nothing_is_imported_that_stands_above(files, what):
    found = [path for path in files if re.search(rf"^\s*{what}", SOURCES[path], re.MULTILINE)]
    assert len(files) > 5 and set(found) <= {"transformer/__init__.py"}  # which imports its own parts by their names


@cache
def packages() -> dict[str, frozenset[str]]:
    """What pyproject.toml says that each part needs, on top of the parts below it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {"engine": project["dependencies"], **project["optional-dependencies"]}
    return {part: frozenset(re.match(r"[\w-]+", each)[0] for each in parts[part]) - {"headsup"} for part in parts}


def imported(part: str) -> set[str]:
    """The names that the packages of a part are imported by."""
    return {name.removesuffix("-py").replace("-", "_") for name in packages()[part]}


def test_every_import_is_declared_by_the_part_that_has_it():
    engine = {*sys.stdlib_module_names, "app", "pages", "transformer"} | imported("engine")
    for path, source in SOURCES.items():
        api = imported("api") if path not in ENGINE or path.startswith("transformer/api/") else set()
        known = engine | api | (set() if path in ENGINE else imported("app"))
        assert {name.partition(".")[0] for name in imports_of(source)} <= known, path


def test_every_package_is_pinned_in_one_place():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([\w-]+)==[\w.]+(?:; .+)?", line) for line in lines if line and line[0] not in "#-"]
    assert all(pinned) and sorted(line[1] for line in pinned) == sorted(frozenset().union(*packages().values()))


def test_servers_install_all_that_is_needed_each_file_by_its_hash():
    locked, files = {}, (ROOT / "deploy" / "requirements.lock").read_text(encoding="utf-8")
    asked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for entry in re.findall(r"^\w.*$", files.replace("\\\n", ""), re.MULTILINE):
        pin, *hashes = entry.split()
        name, version = re.fullmatch(r"([\w.-]+)==([\w.+]+)", pin).groups()
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), pin
        locked[name] = version
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", asked, re.MULTILINE))
    assert {name: locked.get(canonicalize_name(name), "").partition("+")[0] for name in pinned} == pinned
    linux = {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix", "python_full_version": "3.11.7"}
    for name in locked:
        for needed in map(Requirement, requires(name) or ()):
            if re.match("nvidia|cuda|triton", needed.name):  # of a build of PyTorch for GPUs
                continue
            if needed.marker is None or needed.marker.evaluate({**linux, "python_version": "3.11", "extra": ""}):
                assert canonicalize_name(needed.name) in locked, f"{name} needs {needed.name}"
    links = re.findall(r"^--find-links .*$", asked, re.MULTILINE)
    assert re.findall(r"^-.*$|^.*//.*$", files, re.MULTILINE) == links and len(links) == 1
    install = "pip install .*--require-hashes --no-build-isolation --requirement requirements.lock"
    assert re.search(install, (ROOT / "Containerfile").read_text(encoding="utf-8"))


DOCKER = """#!/bin/sh
[ "$*" = "buildx imagetools inspect $4 --format {{.Manifest.Digest}}" ] && echo "$ANSWER"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_images_can_be_pinned_to_what_they_are(tmp_path):
    (tmp_path / "docker").write_text(DOCKER, encoding="utf-8")
    (tmp_path / "docker").chmod(0o755)
    command = ["sh", ROOT / "deploy" / "pin_images.sh"]

    def run(answer):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ANSWER": answer}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    images = {"NGINX_IMAGE": "nginx:1.30", "PYTHON_IMAGE": "python:3.11-slim", "REDIS_IMAGE": "redis:8"}
    digest = f"sha256:{'0f' * 32}"
    found = run(digest)
    assert found.stdout.splitlines() == [
        f"{variable}=docker.io/library/{image}@{digest}" for variable, image in images.items()
    ]
    assert run("no such image").returncode and "has no digest" in run("").stderr
    assert f"ARG PYTHON_IMAGE=docker.io/library/{images['PYTHON_IMAGE']}\nFROM $PYTHON_IMAGE" in (
        ROOT / "Containerfile"
    ).read_text(encoding="utf-8")


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
    others = imported("api") | imported("app")
    assert {"streamlit", "fastapi", "starlette", "plotly", "pandas"} <= others
    command = [sys.executable, "-c", ENGINE_ALONE, ",".join(others)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=250)
    assert found.returncode == 0 and "COMMAND" in found.stdout, found.stderr
    assert re.findall(r"^exit \d", found.stdout, re.MULTILINE) == ["exit 0", "exit 1"]
    assert re.fullmatch(r"Error: [^\n]+ pip install '\.\[api\]'\.\n", found.stderr), found.stderr


def test_the_project_keeps_its_contracts():
    script = "import importlinter.cli; importlinter.cli.lint_imports(no_cache=True)"
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert re.search(r"^Contracts: \d+ kept, 0 broken", found.stdout, re.MULTILINE), found.stdout + found.stderr
