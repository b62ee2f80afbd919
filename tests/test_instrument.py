"""The scripts that draw what a model computed: how they are linked, installed, and tested by Node."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.instrument import FOLDER, bundle

ROOT = Path(__file__).resolve().parents[1]
COMPONENTS = ROOT / "pages" / "ui" / "components"
SCRIPTS = sorted([*FOLDER.rglob("*.js"), *COMPONENTS.rglob("*.js")])
ENTRIES = [path for path in SCRIPTS if re.search(r"^export default", path.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.fixture
def files(tmp_path):
    """`files(**texts)`: the scripts of these names, written; returns the path of the first."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(texts))}.js"

    return write


# The linker


def test_what_is_imported_comes_first_and_each_file_once(files):
    entry = files(
        view='import { Box } from "./box.js";\nimport {\n  node,\n  put,\n} from "./dom.js";\n'
        "export default function () {}\n",
        box='import { node } from "./dom.js";\nexport class Box {}\n',
        dom="export function node() {}\nexport async function put() {}\nexport const GAP = 8;\nconst own = 1;\n",
    )
    assert bundle(entry) == (
        "function node() {}\nasync function put() {}\nconst GAP = 8;\nconst own = 1;\n\n"
        "class Box {}\n\n"
        "export default function () {}\n"
    )


def test_what_the_entry_exports_stays(files):
    text = "export const ONE = 1;\nexport default function () {}\n"
    assert bundle(files(view=text)) == text


def test_words_that_only_look_like_statements_stay(files):
    text = "// import and export\n/** export it. */\nfunction f() {\n  return { import: 1, export: 2 };\n}\n"
    view = 'import { f } from "./a.js";\n'
    assert bundle(files(view=view, a=text.replace("function", "export function"))) == text + "\n"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"view": 'import { a } from "./gone.js";'}, "view.js imports gone.js, but there is no file"),
        ({"view": 'import { a } from "./b.js";', "b": "const a = 1;"}, "imports a from b.js, which doesn't export it"),
        ({"view": 'import { a } from "./view.js";\nexport const a = 1;'}, "in a circle: view.js → view.js"),
        (
            {
                "view": 'import { a } from "./a.js";',
                "a": 'import { b } from "./b.js";\nexport const a = 1;',
                "b": 'import { a } from "./a.js";\nexport const b = 1;',
            },
            "in a circle: a.js → b.js → a.js",
        ),
    ],
)
def test_imports_that_lead_nowhere_are_refused(files, texts, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        bundle(files(**texts))


@pytest.mark.parametrize(
    "declared",
    ["const view = 1;", "function view() {}", "class view {}", "const [a, view] = [1, 2];", "let { b: view } = {};"],
)
def test_two_files_that_declare_the_same_name_are_refused(files, declared):
    one = "export const one = 1;\nconst view = 2;\n"
    entry = files(view=f'import {{ one }} from "./one.js";\n{declared}\n', one=one)
    with pytest.raises(ValueError, match=r"one\.js and view\.js both declare view"):
        bundle(entry)


def test_the_same_name_inside_functions_is_no_clash(files):
    one = "export function one() {\n  const here = 1;\n  return here;\n}\n"
    entry = files(view='import { one } from "./one.js";\nfunction two() {\n  const here = 2;\n}\n', one=one)
    assert bundle(entry).count("const here") == 2


@pytest.mark.parametrize(
    "line",
    [
        'import one from "./one.js";',
        'import * as one from "./one.js";',
        'import "./one.js";',
        'import { one as two } from "./one.js";',
        'import { } from "./one.js";',
        'import { one } from "one";',
        'import { one } from "https://example.org/one.js";',
        'import { one } from "./one.js"; import { two } from "./one.js";',
        '  import * as one from "./one.js";',
        'const one = await import("./one.js");',
        "export { one };",
        'export * from "./one.js";',
        'export { one } from "./one.js";',
        "export let one = 1;",
        "export const { one } = {};",
    ],
)
def test_other_forms_of_import_and_export_are_refused_with_their_line(files, line):
    with pytest.raises(ValueError, match=r"view\.js, line 2: .* isn't supported"):
        bundle(files(view=f"// A view.\n{line}\n", one="export const one = 1;\nexport const two = 2;\n"))


def test_only_the_entry_has_a_default_export(files):
    with pytest.raises(ValueError, match=r"one\.js, line 1: .* isn't supported"):
        bundle(files(view='import { one } from "./one.js";', one="export default function one() {}\n"))


@given(st.text("ab{}[]/*\"'`;,\n =:().importexfs", max_size=80))
def test_any_text_is_linked_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.js"
    path.write_text(text, encoding="utf-8")
    try:
        bundle(path)
    except ValueError as error:
        assert "any.js" in str(error)


# The scripts


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_what_it_uses_of_others_and_nothing_else(path):
    declaring = r"^(?:export\s+)?(?:async\s+)?(?:function|class|const)\s+(\w+)"
    others = [other.read_text(encoding="utf-8") for other in SCRIPTS if other != path]
    exported = {name for text in others for name in re.findall(rf"^export {declaring[1:]}", text, re.MULTILINE)}
    source = path.read_text(encoding="utf-8")
    imports = re.findall(r"^import \{([^}]*)\} from .*$", source, re.MULTILINE)
    imported = {name.strip() for names in imports for name in names.split(",") if name.strip()}
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    code = re.sub(r"^import [^;]*;|^\s*//.*", "", code, flags=re.MULTILINE)
    used = r"(?<![.\w-])(\w+)(?=\s*\()|(?<=\bnew )(\w+)|\b([A-Z_]{3,})\b"  # calls, classes, constants
    called = {name for names in re.findall(used, code) for name in names}
    own = set(re.findall(declaring, source, re.MULTILINE)) | set(re.findall(r"^  (\w+)\(.*\{$", code, re.MULTILINE))
    assert called & exported <= imported | own
    assert imported == {name for name in imported if re.search(rf"\b{name}\b", code)}


def test_the_instrument_knows_nothing_of_who_shows_it():
    for path in [*FOLDER.rglob("*.js"), *FOLDER.rglob("*.css")]:
        assert not re.search(r"streamlit|--st-|setTriggerValue", path.read_text(encoding="utf-8"), re.IGNORECASE), path


def test_an_installed_engine_has_the_scripts():
    """The patterns of package data in pyproject.toml name every file that isn't Python."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["transformer.instrument"]
    packed = {path for pattern in patterns for path in FOLDER.glob(pattern)}
    assert packed == {path for path in FOLDER.rglob("*.*") if path.suffix not in (".py", ".pyc")}
