"""Tests that any request gets an answer or a sentence, with parameters from the API's schema, within its memory."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.api.conftest import MODELS
from transformer.api import app as application
from transformer.api import cache, request_parameters, tensors
from transformer.api.app import create_app
from transformer.api.errors import BROKEN
from transformer.api.limits import Limits
from transformer.api.request_counts import Counts

SCHEMA = create_app().openapi()
POINTS = [
    *("logits", "probabilities", "hook_embed", "blocks.0.attn.hook_pattern", "blocks.1.attn.hook_q", "embed.weight"),
    *("blocks.0.attn.hook_mask", "blocks.0.attn.qkv.weight", "blocks.1.mlp.up.bias", "blocks.0.ln1.hook_scale"),
    *("decoder.blocks.0.cross_attn.hook_k", "encoder.blocks.1.hook_resid_pre", "blocks.0.attn.hook_result"),
]
INDICES = [
    *("", "[0]", "[:, 1]", "[1:3]", "[0, 0, 0]", "[-1]", "[5:2]", "[::2]", f"[{'9' * 40}]", "[ ]", "[,]", "[0:99]"),
    *("[0:0]", "[١]"),
]
CODES = [
    *(f"scale~blocks.0.attn.hook_z~1~{place}~0.0" for place in ("", "9" * 20)),
    *(f"scale~blocks.{layer}.hook_mlp_out~~~{factor}" for layer, factor in ((0, "nan"), (9, "0"), (0, "1e999"))),
    *("without~mask", "without~positions", "mean~blocks.0.hook_mlp_out~~", "scale", "~~~~", "steer~a~b~c", "!"),
]
STRANGE_TEXTS = [
    *("", "\0", "a\0b", "\ud800", "-1", "1e9", "nan", "inf", "٣", "null", "true", "1,2\n", "0" * 5000, "💥" * 50),
    *("'; --", "../../etc/passwd", "%00", "{}", "[]", "own"),
]
ODD = st.text(max_size=30) | st.sampled_from(STRANGE_TEXTS) | st.integers(-(2**70), 2**70) | st.floats()
LIKELY = {
    "model": st.sampled_from([*MODELS, "own"]),
    "text": st.text("To be,rnot\n", min_size=1, max_size=20)
    | st.sampled_from(["forty-two", "the cat", "ROMEO:", "To [mask]e"]),
    "clean_text": st.text("To be,rnot", min_size=1, max_size=8) | st.sampled_from(["sixty-two", "So be"]),
    "names": st.builds(str.__add__, st.sampled_from(POINTS), st.sampled_from(INDICES)),
    "name": st.builds(str.__add__, st.sampled_from([*POINTS, "blocks.0", ""]), st.sampled_from(INDICES)),
    "changes": st.lists(st.sampled_from(CODES), min_size=1, max_size=3).map("!".join),
    "attention": st.sampled_from(["blocks.0.attn", "blocks.2.attn", "decoder.blocks.0.cross_attn", "blocks.0"]),
    "first": st.integers(1, 3),
    "last": st.integers(1, 6),
    "max_new_tokens": st.integers(1, 30),
    "version": st.just("0123456789ab"),
    **{
        name: st.lists(st.integers(0, 90), min_size=1, max_size=8).map(lambda ids: ",".join(map(str, ids)))
        for name in ("tokens", "source", "clean_tokens", "clean_source")
    },
}
"""Values that get far, by parameter; the rest comes from the schema."""
NEEDED = {
    *("model", "text", "names", "format", "position", "token", "answer", "against", "attention", "head", "kind"),
    *("first", "last", "clean_text"),
}
"""Parameters that a question begins with, where its address has them."""


def of_schema(schema):
    """Values that a schema allows, and those at its edges."""
    if "$ref" in schema:
        return ODD
    if "anyOf" in schema:
        return st.one_of(*(of_schema(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if schema.get("type") == "integer":
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 2**31))
        return st.integers(low, min(high, low + 12)) | st.sampled_from([low - 1, low, high, high + 1])
    if schema.get("type") == "number":
        return st.floats(0, 3) | st.sampled_from([schema.get("minimum", 0), schema.get("maximum", 100), -0.1])
    if schema.get("type") == "array":
        return of_schema(schema["items"])
    longest = schema.get("maxLength", 100)
    return st.text(max_size=20) | st.just("a" * longest) | st.just("a" * min(longest + 1, 100_000))


@st.composite
def questions(draw, path):
    """A question to an address, by GET or POST: (name, value) of each parameter, those that get far, and up to three
    changes to them."""
    schemas = {each["name"]: each["schema"] for each in SCHEMA["paths"][path]["get"].get("parameters", [])}
    likely = LIKELY | ({"model": st.just("encoder") | LIKELY["model"]} if path == "/masked" else {})  # no other can
    likely |= {"name": LIKELY["model"]} if "{name}" in path else {}
    asked = [
        (name, draw(likely.get(name, of_schema(schema))))
        for name, schema in schemas.items()
        if name in NEEDED or f"{{{name}}}" in path
    ]
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        name = draw(st.sampled_from([*schemas, "unknown", "", "__class__"]))
        value = draw(st.one_of(LIKELY.get(name, ODD), of_schema(schemas.get(name, {})), ODD))
        if draw(st.sampled_from(["set", "set", "set", "repeat", "leave out"])) != "repeat":
            asked = [each for each in asked if each[0] != name]
        if draw(st.booleans()) or name not in dict(asked):
            asked.append((name, value))
    return draw(st.sampled_from(sorted(SCHEMA["paths"][path]))), draw(st.permutations(asked))


@pytest.fixture(scope="module")
def fuzzed(library):
    """A client that nothing stops, and to whom a fault is an answer."""
    cache.clear()
    app = create_app(lambda: library, limits=lambda app: Limits(app, Counts(1e9, 10**9, 10**6)))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def check(found):
    """An answer, or a sentence about a parameter."""
    assert found.status_code in (200, 304, 400, 404, 409, 413, 414, 503), (found.status_code, found.text[:300])
    assert BROKEN.encode() not in found.content and len(found.content) < 70_000_000
    if found.status_code >= 400:
        told = found.json()
        assert told.keys() == {"error", "parameter"} and told["error"].endswith("."), told
        assert 3 < len(told["error"]) < 700 and isinstance(told["parameter"], str)


@pytest.mark.parametrize("path", SCHEMA["paths"])
def test_whatever_is_asked_is_answered_or_refused_in_a_sentence(path, fuzzed):
    statuses = []

    @settings(suppress_health_check=list(HealthCheck), derandomize=True)
    @given(questions(path))
    def ask(question):
        method, asked = question
        if method == "get":
            values = [(name, str(value).encode("utf-8", "surrogatepass")[:20_000]) for name, value in asked]
            named = path.replace("{name}", quote(dict(values).get("name", b"")[:2000], safe=""))
            found = fuzzed.get(
                named + "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in values)
            )
        else:
            body = {
                name: [value] if name == "names" and not isinstance(value, list) else value for name, value in asked
            }
            found = fuzzed.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        statuses.append(found.status_code)
        check(found)

    ask()
    assert 200 in statuses, "nothing that was asked got far"
    assert 400 in statuses or "parameters" not in SCHEMA["paths"][path]["get"]


BODIES = [
    *(b"", b"[]", b"null", b"1", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"model": NaN}', b'{"model": 1e999}'),
    *(b'{"model": ' + b"9" * 6000 + b"}", b'{"model": {"a": [1, {"b": null}]}}', b'{"\\ud800": 1}'),
    *(b'{"model": "rotary", "text": "\\ud800"}', b'{"model": "rotary", "text": null, "tokens": "1"}'),
    *(b'{"model": ["rotary"], "text": "To"}', b'{"model": true, "text": "To"}'),
]
STRANGE = [
    *("//", "/%00", "/tensors/%2e%2e/x", "/modules/%00/x.js", "/" + "a" * 5000, "/tensors?%ff=%fe", "/export/"),
    *("/tensors?model=rotary&text=%ff&names=logits", "/tensors?&&==&model", "/docs?x=1", "/health?x=%00"),
]


def test_any_body_and_any_address_is_answered_or_refused_in_a_sentence(fuzzed):
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded", ""):
        for body in BODIES:
            found = fuzzed.post("/overview", content=body, headers={"Content-Type": kind})
            check(found)
            assert found.status_code in (200, 400), body[:30]
    for address in STRANGE:
        found = fuzzed.get(address, follow_redirects=False)
        assert found.status_code in (200, 307, 400, 404, 414), address


# Memory


def test_what_is_too_much_is_refused_before_anything_is_computed(fuzzed, library, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("it was computed")

    text = {"model": "chatty", "text": "a" * 96}
    config = library.open("chatty").checkpoint.model.config
    many = [f"blocks.{layer}.attn.{point}" for layer in range(3) for point in ("hook_pattern", "hook_raw_scores")]
    monkeypatch.setattr(application.analyses.tensors, "tensors", fail)
    monkeypatch.setattr(request_parameters, "MOST_CELLS", 6 * config.n_heads * 96 * 96 - 1)
    found = fuzzed.get("/tensors", params={**text, "names": many})
    assert found.status_code == 413 and found.json()["parameter"] == "names"
    monkeypatch.setattr(tensors, "MOST_RECORDED", 4 * 6 * config.n_heads * 96 * 96 - 1)
    found = fuzzed.get("/tensors", params={**text, "names": [f"{name}[0, 0, 0]" for name in many]})
    assert found.status_code == 413 and "cut from tensors" in found.json()["error"]


LARGEST = """
import resource
from starlette.testclient import TestClient
from transformer.api.app import create_app
import torch
torch.set_num_threads(1)
size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
text = {"model": "shakespeare", "text": ("To be, or not to be, that is the question. " * 9)[:256]}
every = [f"blocks.{layer}.attn.{point}" for layer in range(6)
         for point in ("hook_pattern", "hook_attn_scores", "hook_scaled_scores")]
with TestClient(create_app()) as client:
    assert client.get("/tensors", params={**text, "names": "hook_embed"}).status_code == 200
    before = size()
    for path, more, status in [
        ("/tensors", {"names": every}, 200), ("/overview", {}, 200), ("/outline", {}, 200), ("/checks", {}, 200),
        ("/export", {"format": "safetensors", "name": "blocks.0"}, 200), ("/export", {"format": "safetensors"}, 413),
        ("/export", {"format": "html"}, 200), ("/export", {"format": "csv", "name": every[0]}, 200),
        ("/tensors", {"names": every + [name.replace("pattern", "raw_scores") for name in every]}, 413),
        ("/ablation", {}, 200),
    ]:
        found = client.get(path, params={**text, **more})
        assert found.status_code == status, (path, more, found.text[:200])
        del found
    print(round(size() - before))
"""


def test_the_largest_questions_on_the_largest_model_stay_within_what_is_stated():
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", LARGEST], cwd=root, capture_output=True, text=True, timeout=250)
    assert found.returncode == 0, found.stderr[-2000:]
    assert int(found.stdout) < 600
