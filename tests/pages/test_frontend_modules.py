"""Tests how the frontend's scripts are linked and installed, and runs their Node tests."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plotly import colors
from safetensors.numpy import save

from tests.engine_passes import write_passes
from tests.grammar_cases import write_grammar_cases
from tests.helpers import tiny_config, tiny_model
from tests.inside_answers import Inside
from tests.local_answers import write_answers
from tests.sampling_cases import draw_cases
from tests.tokenizer_cases import write_labels, write_tokenizer_cases
from transformer import ModelConfig, Recording
from transformer.frontend import FOLDER, bundle, bundle_in_parts
from transformer.inference.circuits import qk_circuit
from transformer.inference.context_windows import window_start
from transformer.inference.pass_outline import outline
from transformer.inference.tracing import trace_pass
from transformer.model.equations import equations
from transformer.model.layers import ACTIVATIONS

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ROOT / "pages" / "ui" / "components"
FRONTEND_TESTS = Path(__file__).parents[1] / "frontend"
LOCAL = {FRONTEND_TESTS / f"{name}.test.mjs" for name in ("local_api", "browser_first")}
"""Of models in a browser."""
PAGE_SCRIPTS = [
    *("start", "service_worker", "learn"),
    *("attention", "generate", "inside", "masks", "positions", "what_if"),
]
RUN_AT_ONCE = {
    *(FOLDER / "site" / f"{name}.js" for name in PAGE_SCRIPTS),
    FOLDER / "lessons" / "handout_page.js",
    FOLDER / "startup_errors.js",
    COMPONENTS / "room_membership" / "private_link.js",
}
"""Scripts of pages of their own, which need a browser when they are loaded."""
SCRIPTS = sorted({*FOLDER.rglob("*.js"), *COMPONENTS.rglob("*.js")} - RUN_AT_ONCE)


@pytest.fixture
def files(tmp_path):
    """`files(**texts)`: the scripts of these names, written; returns the path of the first."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(texts))}.js"

    return write


# The linker


def test_what_is_imported_comes_first_each_file_once_and_what_is_not_exported_is_its_own(files, node):
    dom = 'console.log("dom");\nexport function node() {\nreturn "node";\n}\nexport async function put() {}\n'
    dom += "export const GAP = 8;\nconst own = 1;\n"
    box = 'import { node } from "./dom.js";\nconst GAP = 2;\nexport const own = 3;\nexport class Box {\n'
    box += "told = [node(), GAP].join();\n}\n"
    view = 'import { Box } from "./box.js";\nimport {\n  GAP,\n  put,\n} from "./dom.js";\nconst own = 4;\n'
    linked = bundle(files(view=f"{view}console.log(new Box().told, GAP, own, typeof put);\n", box=box, dom=dom))
    assert node("--input-type=module", "-", input=linked).stdout.split() == ["dom", "node,2", "8", "4", "function"]


def test_data_are_read_once_by_all_who_import_them(files, node):
    view = 'import { first } from "./a.js";\nimport table from "./table.json" with { type: "json" };\n'
    a = 'import names from "./table.json" with { type: "json" };\nexport const first = names[0];\n'
    path = files(view=f"{view}console.log(first, table === table, table[1].a);\n", a=a)
    (path.parent / "table.json").write_text('["</b>\\u2028", {"a": null}]', encoding="utf-8")
    linked = bundle(path)
    assert linked.count("</b>") == 1
    assert node("--input-type=module", "-", input=linked).stdout.split() == ["</b>", "true", "null"]
    (path.parent / "table.json").unlink()
    with pytest.raises(ValueError, match=r"imports table\.json, but there is no file"):
        bundle(path)


def test_what_is_imported_when_needed_is_a_part_of_its_own_and_what_several_need_is_in_the_first(files, tmp_path, node):
    main = 'import { log } from "./log.js";\nlog("main");\nexport const open = () => import("./first.js");\n'
    main += 'export const both = async () => [await open(), await import("./second.js"), await import("./log.js")];\n'
    first = 'import { log } from "./log.js";\nimport { twice } from "./twice.js";\nimport { own } from "./own.js";\n'
    first += 'log(twice(own));\nexport const more = () => import("./third.js");\n'
    parts = bundle_in_parts(
        files(
            main=main,
            log="export const log = (what) => console.log(what);\n",
            twice='import { log } from "./log.js";\nlog("twice");\nexport const twice = (what) => `${what} ${what}`;\n',
            first=first,
            second='import { twice } from "./twice.js";\nexport const second = twice("second");\n',
            own='export const own = "own";\n',
            third='import { own } from "./own.js";\nexport const third = `third ${own}`;\n',
        ),
        "app.js",
    )
    folder = tmp_path.name
    assert {*parts} == {"app.js", *(f"{folder}_{name}.js" for name in ("first", "second", "third"))}
    assert [name for name, text in parts.items() if 'own = "own"' in text] == [f"{folder}_first.js"]
    (tmp_path / "served").mkdir()
    for name, text in parts.items():
        (tmp_path / "served" / name).write_text(text, encoding="utf-8")
    script = "const { both } = await import(process.argv[1]); const [first, { second }, { log }] = await both();"
    script += "log(second); log((await first.more()).third);"
    expected = ["twice", "main", "own own", "second second", "third own"]
    served = tmp_path / "served" / "app.js"
    assert node("--input-type=module", "--eval", script, served).stdout.splitlines() == expected
    (tmp_path / "served" / "alone.mjs").write_text(bundle(tmp_path / "main.js"), encoding="utf-8")
    found = node("--input-type=module", "--eval", script, tmp_path / "served" / "alone.mjs").stdout.splitlines()
    assert sorted(found) == sorted(expected)


def test_comments_and_indentation_are_left_out_and_words_that_only_look_like_statements_stay(files):
    text = 'function f() {\nreturn { import: 1, export: 2 }; // "import" and export\n}\n'
    linked = bundle(files(view='import { f } from "./a.js";\n', a=text.replace("function", "export function")))
    assert text in linked
    text = "// a note\n\n/**\n * What it does.\n */\nfunction f() {\n"
    text += '  const url = "http://x; // y"; // a note\n}\n/** One line. */\nf(/** @type {any} */ (url)); // a "note"\n'
    text += "class A {\n  /** @type {number} */ b; // a note\n\n  /** It * says. **/ c() {}\n}\n"
    text += "/** @import { B } from './b.js' */\n"
    assert bundle(files(view=text)) == (
        'function f() {\nconst url = "http://x; // y";\n}\nf((url)); // a "note"\nclass A {\nb;\nc() {}\n}\n'
    )


CIRCLE = {"view": 'import { a } from "./a.js";', "a": 'import { b } from "./b.js";\nexport const a = 1;'}
CIRCLE |= {"b": 'import { a } from "./a.js";\nexport const b = 1;'}
REFUSED = """import one from "./one.js";
import * as one from "./one.js";
import "./one.js";
import { one as two } from "./one.js";
import { } from "./one.js";
import { one } from "one";
import { one } from "https://example.org/one.js";
import { one } from "./one.js"; import { two } from "./one.js";
  import * as one from "./one.js";
const one = await import(`./one.js`);
export { one };
export * from "./one.js";
export { one } from "./one.js";
export let one = 1;
export const { one } = {};"""


def test_what_leads_nowhere_or_is_another_form_of_import_or_export_is_refused_with_its_place(files):
    one = "export const one = 1;\nexport const two = 2;\n"
    refused = [
        ({"view": 'import { a } from "./gone.js";'}, "view.js imports gone.js, but there is no file"),
        ({"view": 'const a = import("./gone.js");'}, "view.js imports gone.js, but there is no file"),
        ({"view": 'import("./a.js");', "a": 'import { b } from "./view.js";'}, "in a circle: view.js → a.js → view.js"),
        ({"view": 'import { a } from "./b.js";', "b": "const a = 1;"}, "imports a from b.js, which doesn't export it"),
        ({"view": 'import { a } from "./view.js";\nexport const a = 1;'}, "in a circle: view.js → view.js"),
        (CIRCLE, "in a circle: a.js → b.js → a.js"),
        (
            {"view": 'import { one } from "./one.js";', "one": "export default 1;\n"},
            "one.js, line 1: … isn't supported",
        ),
        *(
            ({"view": f"// A view.\n{line}\n", "one": one}, "view.js, line 2: … isn't supported")
            for line in REFUSED.splitlines()
        ),
    ]
    for texts, words in refused:
        with pytest.raises(ValueError, match=re.escape(words).replace("…", ".*")):
            bundle(files(**texts))


@given(st.text("ab{}[]/*\"'`;,\n =:().importexfs", max_size=80))
def test_any_text_is_linked_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.js"
    path.write_text(text, encoding="utf-8")
    try:
        bundle(path)
    except ValueError as error:
        assert "any.js" in str(error)


# The scripts


def test_the_instrument_knows_nothing_of_who_shows_it():
    """Only the page state knows of Community Cloud, which frames it."""
    for path in [path for kind in ("*.js", "*.css") for path in FOLDER.rglob(kind) if path.name != "page_state.js"]:
        assert not re.search(r"streamlit|--st-|setTriggerValue", path.read_text(encoding="utf-8"), re.IGNORECASE), path


def test_an_installed_engine_has_the_scripts_and_the_data():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    for package in ("inference", "frontend"):
        folder = FOLDER.parent / package
        packed = {path for pattern in data[f"transformer.{package}"] for path in folder.glob(pattern)}
        assert packed == {path for path in folder.rglob("*") if path.suffix in (".js", ".css", ".json")}


# Node


def test_every_script_can_be_imported_as_it_is_and_every_component_from_its_part(node, tmp_path):
    parts = bundle_in_parts(COMPONENTS / "components.js", "components.js")
    for name, text in parts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    script = "import sys; from module_bundle import *; print(bundle_in_parts(Path(sys.argv[1]), 'components.js'))"
    for seed in "12":  # of sets' order
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(FOLDER)}
        command = [sys.executable, "-c", script, COMPONENTS / "components.js"]
        written = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60).stdout
        assert written == f"{parts}\n", "servers of one deployment serve the same texts"
    names = re.findall(r"^  (\w+): ", (COMPONENTS / "components.js").read_text(encoding="utf-8"), re.MULTILINE)
    script = "const { mountOf } = await import(process.argv[1]);"
    script += "for (const name of process.argv.slice(2)) console.log(typeof await mountOf(name));"
    found = node("--input-type=module", "--eval", script, tmp_path / "components.js", *names)
    assert found.stdout.split() == ["function"] * len(names) and len(names) > 10, found.stderr
    script = "for (const path of process.argv.slice(1)) await import(path);"
    found = node("--input-type=module", "--eval", script, *SCRIPTS)
    assert found.returncode == 0, found.stderr


def test_scripts_and_style_sheets_have_nothing_that_browsers_of_2022_or_safari_can_t_read():
    """A look behind can't be taken from a browser by a test, and what Safari refuses it only leaves out."""
    scripts = [path.read_text(encoding="utf-8") for path in {*SCRIPTS, *RUN_AT_ONCE}]
    sheets = [path.read_text(encoding="utf-8") for folder in (FOLDER, COMPONENTS) for path in folder.rglob("*.css")]
    young = {r"\(\?<[=!]": scripts, r"\bstatic \{": scripts}
    young |= {
        r"text-decoration:\s*[\w-]+\s+\w": [*scripts, *sheets],
        r"&[ :.]\S+ \{|@layer|@scope|@starting-style": sheets,
    }
    for pattern, texts in young.items():
        assert [found[0] for text in texts for found in re.finditer(pattern, text, re.MULTILINE)] == []


def test_the_tests_of_the_scripts_pass(node, tmp_path):
    write_fixtures(tmp_path)
    tests = sorted(path for path in FRONTEND_TESTS.glob("*.test.mjs") if path not in LOCAL)
    alone = [path for path in tests if re.search(r"globalThis|mock\.", path.read_text(encoding="utf-8"))]
    assert 0 < len(alone) < len(tests)  # which change what all scripts of a process share
    for some in (alone, ["--test-isolation=none", *sorted({*tests} - {*alone})]):
        found = node("--test", *some, env={**os.environ, "HEADSUP_FIXTURES": str(tmp_path)})
        assert found.returncode == 0, found.stdout + found.stderr
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [TABLE["columns"], *TABLE["rows"]]


def test_a_browser_answers_what_instruments_ask_as_the_api_does(node, tmp_path):
    write_answers(tmp_path / "answers")
    found = node("--test", *sorted(LOCAL), env={**os.environ, "HEADSUP_FIXTURES": str(tmp_path)})
    assert found.returncode == 0, found.stdout + found.stderr


TABLE = {
    "columns": ["query", "a, b", 'say "so"'],
    "rows": [["\n", " ", ""], ["\r\n", "ñ", '"'], ["", "", ""], ["'", "\t", "=1+1"], [",", '","', "\u2028"]],
}


def write_fixtures(folder: Path) -> None:
    """What the tests under tests/frontend read."""
    write_tokenizer_cases(folder / "tokenizers.json")
    write_labels(folder / "labels.json")
    write_grammar_cases(folder / "grammars.json")
    tensors = {
        "blocks.0.hook_resid_pre[3]": np.array([[0, -0.5, 1.5], [1e-7, -np.inf, np.nan]], np.float32),
        "halves": np.array([0, 1, -2.5, 65504, 2**-24, 2**-14, -np.inf, np.nan], np.float16),
        "ids": np.array([-1, 2**31 - 1], np.int32),
        "weights": np.array([[0], [254], [255]], np.uint8),
        "seen": np.array([True, False, True]),
        "empty": np.zeros((0, 4), np.float32),
        "one": np.array(7, np.uint8),
    }
    metadata = {"labels": ["␣", "ñ", "<b>"], "depth": {"layers": 2}}
    recording = save(tensors, {name: json.dumps(value) for name, value in metadata.items()})
    (folder / "recording.safetensors").write_bytes(recording)
    viridis, balance = (evenly_spaced(scale) for scale in (colors.sequential.Viridis, colors.cmocean.balance))
    # Plotly's 12 samples of balance leave out the middle, where zero must look neutral.
    colours = {
        "sequential": [(place**2, color) for place, color in viridis],
        "diverging": sorted([*balance, (0.5, "#f1eceb")]),
    }
    (folder / "palette.json").write_text(json.dumps(colours), encoding="utf-8")
    (folder / "draws.json").write_text(json.dumps(draw_cases()), encoding="utf-8")
    windows = [[length, context, window_start(length, context)] for context in range(1, 40) for length in range(1, 130)]
    (folder / "windows.json").write_text(json.dumps(windows), encoding="utf-8")
    (folder / "table.json").write_text(json.dumps(TABLE), encoding="utf-8")
    x = torch.cat([torch.linspace(-7, 7, 57, dtype=torch.float64), torch.tensor([-40.0, -1e-9, 1e-9, 40.0]).double()])
    values = {"x": x, "erf": torch.erf(x)} | {name: activation(x) for name, activation in ACTIVATIONS.items()}
    functions = {name: found.tolist() for name, found in values.items()} | {"activations": sorted(ACTIVATIONS)}
    (folder / "functions.json").write_text(json.dumps(functions), encoding="utf-8")
    (folder / "circuits.json").write_text(json.dumps(circuits()), encoding="utf-8")
    write_outlines(folder)
    write_passes(folder / "engine")


def evenly_spaced(scale: list[str]) -> list[tuple[float, str]]:
    """A colour scale of plotly's as places from 0 to 1 and hexadecimal colours."""
    triples = colors.convert_colors_to_same_type(list(scale), colortype="tuple")[0]
    codes = ("#" + "".join(f"{round(255 * channel):02x}" for channel in triple) for triple in triples)
    return [(at / (len(triples) - 1), code) for at, code in enumerate(codes)]


def circuits() -> list[dict[str, object]]:
    """Of rotary heads of each kind: queries and keys by token, and how well they fit at several distances."""
    kinds = [{}, {"rotary_pairs": "halves", "rotary_base": 500.0}, {"rotary_dims": 2}]
    kinds.append({"rotary_factors": (1.0, 3.5), "rotary_scale": 1.2})
    return [a_circuit(tiny_config(positions="rotary", **kind)) for kind in kinds]


def a_circuit(config: ModelConfig) -> dict[str, object]:
    model = tiny_model(config)
    near = qk_circuit(model, "blocks.1.attn", 1)
    fits = {distance: qk_circuit(model, "blocks.1.attn", 1, distance).full() for distance in (0, 1, 7)}
    return {
        "left": near.left.flatten().tolist(),
        "right": near.right.flatten().tolist(),
        "width": near.left.shape[1],
        "fits": {distance: full.flatten().tolist() for distance, full in fits.items()},
        "rotation": equations(config)["blocks.1.attn.hook_rot_q"].constants,
    }


def write_outlines(folder: Path) -> None:
    """Whole passes for the tests of the page Inside's picture: shipped models, one of thirty layers, and some of
    blocks that none of them has."""
    prompts = {
        "shakespeare": "ROMEO:\nBut",
        "next-vowel": "abc",
        "number-words-en-es": "two hundred and five",
        "ladder-4-attention": "ROMEO:",
        "ladder-1-bigram": "R",
    }
    found = {name: Inside(name, prompt).outline for name, prompt in prompts.items()}
    tiny_models = {"deep": {"n_layers": 30, "n_encoder_layers": 30}, "parallel": {"parallel_residual": True}}
    tiny_models |= {"sandwich": {"norm": "sandwich", "qk_norm": "head", "score_cap": 2.0, "logit_cap": 3.0}}
    tiny_models |= {"res-post": {"norm": "res-post", "positions": "alibi", "embed_norm": True}}
    for name, fields in tiny_models.items():
        config = tiny_config(**fields)
        tiny = outline(trace_pass(tiny_model(config), [1, 2, 3]))
        labels = {"labels": {"text": ["a", "b", "c"], "source": []}, "vocabulary": ["?"] * config.vocab_size}
        found[name] = Recording(tiny.tensors, {**tiny.metadata, **labels})
    for name, recording in found.items():
        (folder / f"inside-{name}.safetensors").write_bytes(recording.to_bytes())
