"""Tests what components are served and send to the browser, and what they accept from it."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from pages.ui.components import assets, head_grid
from pages.ui.components.rounding import rounded
from pages.ui.host.shell import MARKUP

# Their files


def test_components_are_served_in_parts_beside_the_worker_and_the_glossary():
    def served(path):
        answer = client.get(f"/{assets.MODULES.address(path)}")
        assert "immutable" in answer.headers["Cache-Control"]
        return answer

    client, beginning = TestClient(assets.MODULES), re.compile(r"^import |^export default", re.MULTILINE)
    assert assets.MODULES.version in assets.script("shell")
    script = served(assets.COMPONENTS).text
    (names,) = re.findall(r"const mounts = {(.*?)};", script, re.DOTALL)
    mounts = re.compile(r"^export (async )?function mount", re.MULTILINE)
    mounted = {path.stem for path in assets.HERE.glob("*/*.js") if mounts.search(path.read_text(encoding="utf-8"))}
    assert set(re.findall(r"(\w+):", names)) == mounted | {"shell", "step_view"}
    worker = served(assets.WORKER)
    assert worker.headers["Content-Type"].startswith("text/javascript") and "onmessage" in worker.text
    assert not beginning.search(script) and not beginning.search(worker.text)
    parts = re.findall(r'import\("\./(\w+\.js)"\)', script)
    texts = {part: served(f"transformer/frontend/{part}").text for part in parts}
    assert {"attention_view.js", "inside_view.js"} < {*parts} and len(script) < sum(map(len, texts.values()))
    assert {name for text in texts.values() for name in re.findall(r'from "\./(.*?)"', text)} == {"components.js"}
    sheet = served(assets.SHELL_STYLE).text
    assert "/*" not in sheet and sheet.index("--ink:") < sheet.index(".shell-line") < sheet.index(".waiting")
    assert assets.address(assets.SHELL_STYLE) in MARKUP
    assert served(assets.GLOSSARY).json() == json.loads(json.dumps(assets.glossary_terms()))


# The grid of heads


def read(data: bytes):
    return load(data)["overview"]


patterns = arrays.arrays(
    np.float32, arrays.array_shapes(min_dims=4, max_dims=4, max_side=9), elements=st.floats(0, 1, width=32)
)


@given(patterns, st.integers(1, 9))
def test_patterns_arrive_within_half_a_step_and_pooling_keeps_the_largest_weight_of_every_head(weights, limit):
    cells = read(head_grid.build_payload(weights, None))
    np.testing.assert_allclose(cells / 254, weights, atol=0.5 / 254 + 1e-6)
    pooled, hidden = head_grid.pool(weights, None, limit)
    assert pooled.shape[:2] == weights.shape[:2]
    assert max(pooled.shape[2:]) <= limit
    assert not hidden.any()
    np.testing.assert_array_equal(pooled.max((2, 3)), weights.max((2, 3)))


def test_pooling_four_cells_into_one_which_is_hidden_only_if_all_of_it_is():
    weights = np.arange(16, dtype=float).reshape(1, 1, 4, 4) / 16
    pooled, hidden = head_grid.pool(weights, np.triu(np.ones((4, 4), bool), 1), 2)
    np.testing.assert_array_equal(hidden[0, 0], [[False, True], [False, False]])
    np.testing.assert_array_equal(head_grid.pool(weights, None, 2)[0][0, 0] * 16, [[5, 7], [13, 15]])
    assert pooled[0, 0, 1, 0] * 16 == 13


def test_hidden_weights_and_nan_never_reach_the_browser():
    weights = np.array([[[[0.5, 0.9], [np.nan, 1.0]]]])
    hidden = np.array([[False, True], [False, False]])
    cells = read(head_grid.build_payload(weights, hidden))
    np.testing.assert_array_equal(cells[0, 0], [[127, 255], [255, 254]])


def test_a_payload_stays_below_a_megabyte_and_has_the_shape_of_patterns():
    for shape in ((6, 6, 256, 256), (24, 16, 100, 30)):
        weights = np.zeros(shape, np.float32)
        data = head_grid.build_payload(weights, None)
        cells = read(data)
        assert cells.nbytes <= head_grid.MAX_BYTES and max(cells.shape[2:]) <= head_grid.LIMIT
        assert head_grid.build_payload(weights, None) == data, "equal grids are equal bytes"
    for shape in ((2, 3, 4), (2, 0, 4, 4), (2, 3, 0, 4)):
        with pytest.raises(ValueError, match="shape"):
            head_grid.build_payload(np.zeros(shape), None)


# What the components share


@given(st.floats() | st.none())
def test_short_numbers_are_right_to_five_digits_or_none(number):
    written = rounded(number)
    if number is None or not abs(number) < 1.7976e308:
        assert written is None or math.isfinite(written)
    else:
        assert written == pytest.approx(number, rel=6e-5)


def test_a_component_that_has_gone_with_its_page_tells_nothing():
    def page():
        import streamlit as st

        from pages.ui.components.events import sent_by

        st.write(repr(sent_by("gone")))

    at = AppTest.from_function(page).run()
    assert not at.exception and at.markdown[0].value == "None"
