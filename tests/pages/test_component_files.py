"""Tests the files of components, and the addresses that they are served under."""

import json
import re

from starlette.testclient import TestClient

from pages.ui.components import assets
from pages.ui.components.instruments import STYLES


def test_each_component_is_in_the_one_file_that_is_served():
    client = TestClient(assets.MODULES)
    assert assets.MODULES.version in assets.script("inside")
    served = client.get(f"/{assets.MODULES.address(assets.COMPONENTS)}").text
    assert not re.search(r"^import |^export default", served, re.MULTILINE)
    (names,) = re.findall(r"export const components = {(.*?)};", served, re.DOTALL)
    mounts = re.compile(r"^export (async )?function mount", re.MULTILINE)
    mounted = {path.stem for path in assets.HERE.glob("*/*.js") if mounts.search(path.read_text(encoding="utf-8"))}
    assert set(re.findall(r"(\w+):", names)) == mounted | set(STYLES)


def test_what_computes_models_is_one_file():
    script = TestClient(assets.MODULES).get(f"/{assets.MODULES.address(assets.WORKER)}")
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert "onmessage" in script.text and not re.search(r"^import ", script.text, re.MULTILINE)


def test_the_glossary_is_served_for_good_under_its_contents_address():
    answer = TestClient(assets.MODULES).get(f"/{assets.MODULES.address(assets.GLOSSARY)}")
    assert answer.json() == json.loads(json.dumps(assets.glossary_terms()))
    assert "immutable" in answer.headers["Cache-Control"]
