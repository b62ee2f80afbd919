"""Tests the files of components, and the addresses that they are served under."""

import json
import re

import pytest
from starlette.testclient import TestClient

from pages.ui.components import assets
from pages.ui.components.instruments import STYLES
from transformer.api.frontend_modules import FrontendModules


@pytest.mark.parametrize("kind", STYLES)
def test_a_loader_names_each_module_that_is_imported_and_each_is_served(kind):
    client = TestClient(assets.MODULES)
    paths = assets.MODULES.needs(f"transformer/frontend/{kind}/on_page.js")
    loader = assets.frontend_script(f"{kind}/on_page.js")
    assert len(paths) == len(set(paths)) > 10
    assert json.dumps(paths) in loader and assets.MODULES.version in loader
    served = {path: client.get(f"/{assets.MODULES.address(path)}") for path in paths}
    assert all(answer.status_code == 200 for answer in served.values())
    imported = {name for answer in served.values() for name in re.findall(r'from "(?:\.+/)+([\w/]+\.js)"', answer.text)}
    assert imported and all(any(path.endswith(f"/{name}") for path in paths) for name in imported)


def test_what_a_module_needs_is_found_in_any_form_and_in_a_circle(tmp_path):
    (tmp_path / "a.js").write_text('import {\n  b,\n} from "./deep/b.js";\nimport "./c.js";\nconst no = "./no.js";\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.js").write_text('export { c } from "../c.js";\nimport { a } from "../a.js";\n')
    (tmp_path / "c.js").write_text("export const c = 1;\n")
    assert FrontendModules({"x": tmp_path}).needs("x/a.js") == ("x/a.js", "x/deep/b.js", "x/c.js")


def test_what_computes_models_is_one_file():
    script = TestClient(assets.MODULES).get(f"/{assets.MODULES.address(assets.WORKER)}")
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert "onmessage" in script.text and not re.search(r"^import ", script.text, re.MULTILINE)


def test_the_glossary_is_served_for_good_under_its_contents_address():
    answer = TestClient(assets.MODULES).get(f"/{assets.MODULES.address(assets.GLOSSARY)}")
    assert answer.json() == json.loads(json.dumps(assets.glossary_terms()))
    assert "immutable" in answer.headers["Cache-Control"]
