"""Tests that the examples in docstrings and documentation run, and that the documentation is true."""

import doctest
import importlib
import json
import pkgutil
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import transformer
from tests.api.conftest import served
from transformer import Recording, record_pass
from transformer.api import exports, limits, model_store, request_counts, request_parameters, responses
from transformer.api.app import create_app

ROOT = Path(__file__).parents[1]

FOUND = [found.name for found in pkgutil.walk_packages(transformer.__path__, "transformer.")]
MODULES = [name for name in FOUND if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["masks", "positions", "attention", "registry"])
def test_there_are_examples_where_a_student_starts(name):
    module = importlib.import_module(f"transformer.model.{name}")
    assert any(found.examples for found in doctest.DocTestFinder().find(module))


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "transformer" / "README.md"]
DOCUMENTATION = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SERVER = "http://localhost:8000"


@pytest.fixture(scope="module")
def server():
    """The address of a server like the one that the documentation asks."""
    with served(create_app()) as url:
        yield url


def test_its_python_runs(monkeypatch, server):
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", DOCUMENTATION, re.DOTALL)
    assert len(examples) >= 3
    names = {}
    for example in examples:
        exec(example.replace(SERVER, server), names)
    assert names["deviations"](names["found"])[0].largest < 1e-5
    here = record_pass(names["model"], names["shakespeare"].tokenizer.encode("To be, or")).tensors
    asked = names["pattern"].tensors["blocks.0.attn.hook_pattern[3]"]
    assert (asked == here["blocks.0.attn.hook_pattern"][3]).all()


CURLS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", DOCUMENTATION, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("curl ")
]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", CURLS, ids=lambda line: re.search(r"/api/(\w+)", line)[1])
def test_its_questions_are_answered(line, server, tmp_path):
    command = ["curl", "--fail", "--max-time", "60", *shlex.split(line.replace(SERVER, server))[1:]]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=250)
    assert found.returncode == 0, found.stderr
    (body,) = [file.read_bytes() for file in tmp_path.iterdir()] or [found.stdout]
    kind = line.rpartition(".")[2] if " -o " in line else "stream" if " -N " in line else "json"
    if kind == "safetensors":
        assert Recording.from_bytes(body).tensors
    elif kind == "html":
        assert body.startswith(b"<!doctype html>")
    elif kind == "stream":
        assert re.findall(rb"^event: (\w+)$", body, re.MULTILINE)[-1] in (b"end", b"result")
    else:
        assert len(json.loads(body)["models"]) > 20


def test_it_says_the_limits_and_the_variables_of_the_api():
    section = DOCUMENTATION.split("\n## Over HTTP")[1].split("\n## ")[0]
    told = [
        limits.LONGEST_QUERY,
        request_parameters.MOST_CELLS,
        request_parameters.MOST_NAMES,
        request_parameters.MOST_NEW_TOKENS,
        request_counts.BURST,
        int(request_counts.PER_SECOND),
        request_counts.AT_ONCE,
        limits.LARGEST_BODY // 1024,
        exports.MOST_BYTES // 10**6,
    ]
    for limit in told:
        assert f"{limit:,}" in section
    assert limits.CLASSES == 60 and "sixty times" in section
    for variable in (limits.SECRET_VARIABLE, limits.PROXIES_VARIABLE, model_store.FOLDER_VARIABLE):
        assert f"`{variable}`" in DOCUMENTATION
    assert responses.OWN_HEADER in section and len(CURLS) >= 6


def test_every_setting_of_the_app_is_in_the_page_on_hosting():
    sources = [ROOT / "app.py", *ROOT.glob("pages/**/*.py"), *ROOT.glob("transformer/**/*.py")]
    read = set().union(*(re.findall(r'"(HEADSUP_\w+)"', file.read_text(encoding="utf-8")) for file in sources))
    hosting = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    assert read and {name for name in read if f"`{name}`" not in hosting} == set()


def test_the_tree_has_a_short_line_for_every_folder_that_is_there():
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## The tree")[1].split("```")[1]
    listed, above = set(), []
    for indent, name, meaning in re.findall(r"^( *)(\S+) +(.+)$", tree, re.MULTILINE):
        above = [*above[: len(indent) // 4], name]
        listed.add("".join(above))
        assert (ROOT / "".join(above)).exists() and len(meaning.split()) <= 9, meaning
    for folder in (ROOT, ROOT / "pages", ROOT / "pages" / "ui", ROOT / "transformer"):
        for each in folder.iterdir():
            if each.is_dir() and any(each.rglob("*.*")) and not each.name.startswith((".", "_", "venv")):
                assert f"{each.relative_to(ROOT).as_posix()}/" in listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}, anchor
