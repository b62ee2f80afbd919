"""Tests how the API sends answers: versions, tags, visitors' models, single flight, documentation."""

import csv
import dataclasses
import io
import logging
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.api.conftest import served
from tests.tiny_models import save_tiny
from tests.training_plans import until
from transformer import Client, Recording, load_checkpoint, record_pass
from transformer.api import (
    ablation_and_patching,
    analyses,
    app,
    csv_file,
    exports,
    outlines,
    request_parameters,
    responses,
    tensors,
)
from transformer.api.library import Library, version_of
from transformer.api.model_store import TOKEN
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import schedulers

PASS = {"model": "rotary", "text": "To be, or not"}
QUESTIONS = {
    "/overview": {},
    "/outline": {},
    "/tensors": {"names": ["logits", "blocks.0.attn.hook_q[:, 1]"]},
    "/checks": {},
    "/lens": {"position": 3},
    "/attribution": {"position": 3, "token": 5},
    "/ablation": {},
    "/patching": {"clean_text": "So be, or not", "answer": 3, "against": 4},
    "/export": {"format": "csv", "name": "blocks.0.attn.hook_pattern"},
}
CIRCUIT = {"model": "rotary", "kind": "ov", "attention": "blocks.0.attn", "head": 1}


@pytest.fixture(params=[*QUESTIONS, "/circuit"])
def question(request):
    """An address and its parameters."""
    return request.param, CIRCUIT if request.param == "/circuit" else {**PASS, **QUESTIONS[request.param]}


def test_a_post_is_answered_as_the_get(question, client):
    path, parameters = question
    got, posted = client.get(path, params=parameters), client.post(path, json=parameters)
    assert got.status_code == posted.status_code == 200
    ends = [each.content.rpartition(b"event: result")[2] for each in (got, posted)]  # after the progress, in a stream
    assert ends[0] == ends[1]


def test_an_answer_has_a_tag_and_is_cached_for_good_where_the_version_is_named(question, client, library):
    path, parameters = question
    client.get(path, params=parameters)
    plain = client.get(path, params=parameters)
    assert plain.headers["cache-control"] == "public, no-cache"
    tag = plain.headers["etag"]
    for asked in (tag, f'"other", {tag}', f"W/{tag}"):
        again = client.get(path, params=parameters, headers={"If-None-Match": asked})
        assert again.status_code == 304 and not again.content and again.headers["etag"] == tag
    assert client.get(path, params=parameters, headers={"If-None-Match": '"other"'}).status_code == 200
    named = client.get(path, params={**parameters, "version": library.version("rotary")})
    assert named.headers["cache-control"] == "public, max-age=31536000, immutable" and named.headers["etag"] == tag
    other = client.get(path, params={**parameters, "version": "0123456789ab"})
    assert other.status_code == 409 and other.json()["parameter"] == "version"
    assert other.headers["cache-control"] == "no-store"


def test_a_first_answer_brings_a_cookie_and_is_not_for_shared_caches(client, library):
    asked = {**PASS, "version": library.version("rotary")}
    first, then = (client.get("/overview", params=asked) for _ in range(2))
    assert "headsup_visitor" in first.headers["set-cookie"] and "httponly" in first.headers["set-cookie"].lower()
    assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert "set-cookie" not in then.headers and then.headers["cache-control"].startswith("public")


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_what_is_compressed_is_the_same(client, coding):
    found = client.get("/outline", params=PASS, headers={"Accept-Encoding": coding})
    assert found.headers.get("content-encoding", "identity") == coding
    assert Recording.from_bytes(found.content).tensors.keys() >= {"next", "lens"}


@pytest.mark.parametrize("path", ["/overview", "/attribution", "/ablation", "/patching"])
def test_identical_questions_at_once_are_computed_once(path, make_client, monkeypatch):
    where, name = {
        "/overview": (outlines, "overview"),
        "/attribution": (analyses, "attribution"),
        "/ablation": (ablation_and_patching, "ablation"),
        "/patching": (app, "patching"),
    }[path]
    compute, begun, free = getattr(where, name), [], threading.Event()

    def slowly(*args, **kwargs):
        begun.append(args)
        free.wait(20)
        return compute(*args, **kwargs)

    monkeypatch.setattr(where, name, slowly)
    client = make_client()
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(client.get, path, params={**PASS, **QUESTIONS[path]}) for _ in range(8)]
        while not begun:
            time.sleep(0.01)
        time.sleep(0.2)
        other = client.get("/tensors", params={**PASS, "names": "logits"})  # those who wait leave threads to others
        free.set()
        answers = [each.result() for each in asked]
    assert other.status_code == 200 and len(begun) == 1
    assert len({each.content.rpartition(b"event: result")[2] for each in answers}) == 1


# Own models


@pytest.fixture
def own(library, store):
    """The token of an own model."""
    checkpoint = library.open("grouped").checkpoint
    card = dataclasses.replace(checkpoint.card, title='<b>"Mine"</b> / ../..')
    return store.put(dataclasses.replace(checkpoint, card=card))


@pytest.mark.parametrize("path", QUESTIONS)
def test_an_own_model_is_asked_by_its_header_and_its_answers_are_private(path, client, own):
    asked = {**PASS, **QUESTIONS[path], "model": "own"}
    for _ in range(2):
        found = client.get(path, params=asked, headers={"HeadsUp-Model": own})
        assert found.status_code == 200, found.text
    assert found.headers["cache-control"] == "private, no-cache" and "HeadsUp-Model" in found.headers["vary"]
    assert own not in f"{found.headers} {found.content!r}"
    for headers in ({}, {"HeadsUp-Model": "own-" + "0" * 32}, {"HeadsUp-Model": "../rotary"}):
        assert client.get(path, params=asked, headers=headers).status_code == 404
    assert client.get(path, params={**asked, "model": own}, headers={"HeadsUp-Model": own}).status_code == 404
    named = client.get(path, params={**asked, "version": "1"}, headers={"HeadsUp-Model": own})
    assert named.status_code == 400 and named.json()["parameter"] == "version"


def test_a_token_of_an_own_model_is_in_no_list_no_address_and_no_log(client, own, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)

    def fail(*args, **kwargs):
        raise RuntimeError("a fault")

    assert TOKEN.fullmatch(own)
    with served(client.app) as url:
        asks = Client(url, token=own)
        asks.tensors("own", "To be", ["logits"])
        with pytest.raises(ValueError, match="reads at most"):
            asks.tensors("own", "To be" * 9, ["logits"])
        assert asks.models() and own not in str(asks.models())
        monkeypatch.setattr(tensors, "tensors", fail)
        with pytest.raises(ValueError, match="Something is wrong in the server"):
            asks.tensors("own", "To be or", ["logits"])
    assert "a fault" in caplog.text and own not in caplog.text
    assert own not in client.get("/metrics").text


# Exports


def saved(client, token="", **parameters):
    asked = {name: value for name, value in {**PASS, **parameters}.items() if value is not None}
    found = client.get("/export", params=asked, headers={"HeadsUp-Model": token} if token else {})
    assert found.status_code == 200, found.text
    assert found.headers["content-disposition"].startswith("attachment;")
    return re.search(r'filename="(.*?)"', found.headers["content-disposition"])[1], found.content


@pytest.mark.parametrize("view", ["inside", "attention", "generation"])
@pytest.mark.parametrize(
    ("model", "text", "file"),
    [
        ("rotary", "To be", "tiny-rotary"),
        ("translator", "forty-two", "translator"),
        ("encoder", "To [mask]e", "encoder"),
        ("own", "To be", "b-mine-b"),
    ],
)
def test_a_page_is_saved_that_needs_no_server(client, own, view, model, text, file):
    token = own if model == "own" else ""
    name, body = saved(client, token, format="html", view=view, model=model, text=text)
    assert name == f"{file}-{view}.html"
    page = body.decode()
    assert page.startswith("<!doctype html>") and "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=[\"']?https?:", page)


@pytest.mark.parametrize("part", [None, "blocks.1", "blocks.1.attn.hook_pattern", "embed.weight", "logits"])
def test_an_exported_file_has_what_record_pass_has(client, library, part):
    name, body = saved(client, format="safetensors", name=part)
    checkpoint = library.open("rotary").checkpoint
    expected = record_pass(
        checkpoint.model, checkpoint.tokenizer.encode(PASS["text"]), labels=checkpoint.tokenizer.labels
    )
    found = Recording.from_bytes(body)
    assert found.tensors.keys() == {
        each for each in expected.tensors if part is None or each == part or each.startswith(f"{part}.")
    }
    assert all(found.tensors[each].tobytes() == expected.tensors[each].tobytes() for each in found.tensors)
    assert found.metadata["labels"] == expected.metadata["labels"]
    assert part is not None or body == expected.to_bytes()
    assert name == f"tiny-rotary-{'pass' if part is None else re.sub('[._]', '-', part)}.safetensors"


CELL = ["query", "key", "query token", "key token", "value"]


@pytest.mark.parametrize(
    ("model", "part", "columns"),
    [
        ("rotary", "blocks.0.attn.hook_pattern[1:]", ["head", *CELL]),
        ("rotary", "logits[3]", ["pos", "vocab", "pos token", "vocab token", "value"]),
        ("rotary", "blocks.0.attn.hook_mask", CELL),
        ("rotary", "blocks.0.ln1.bias", ["d_model", "value"]),
        ("translator", "decoder.blocks.0.cross_attn.hook_attn_scores", ["head", *CELL]),
    ],
)
def test_a_table_reads_back_as_the_tensor_with_its_tokens(client, library, model, part, columns):
    text = "forty-two" if model == "translator" else '=a,"b" -'
    asked = {"model": model, "text": text, "names": part}
    values = Recording.from_bytes(client.get("/tensors", params=asked).content).tensors[part]
    name, body = saved(client, format="csv", name=part, model=model, text=text)
    assert name.endswith(".csv") and body.startswith("\ufeff".encode())
    header, *rows = csv.reader(io.StringIO(body.decode("utf-8-sig")))
    assert header == columns and len(rows) == values.size
    assert np.array([row[-1] for row in rows], dtype=np.float32).tobytes() == values.astype(np.float32).tobytes()
    checkpoint = library.open(model).checkpoint
    keys = checkpoint.tokenizer.labels(checkpoint.tokenizer.encode(text))
    queries = keys if model == "rotary" else checkpoint.tokenizer.labels([checkpoint.card.start_token_id])
    letters = checkpoint.tokenizer.labels(range(values.shape[-1]))
    of_dim = {"query": queries, "key": keys, "pos": queries, "vocab": letters}
    for row in rows:
        cell = dict(zip(header, row, strict=True))
        for dim in of_dim.keys() & cell.keys():
            assert cell[f"{dim} token"].removeprefix("'") == of_dim[dim][int(cell[dim])].removeprefix("'")


def test_what_is_too_much_for_a_file_is_told_before_it_is_computed(client, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("it was computed")

    monkeypatch.setattr(exports, "MOST_BYTES", 1000)
    monkeypatch.setattr(exports, "MOST_ROWS", 10)
    monkeypatch.setattr(exports, "page_fit", lambda *sizes: None)
    monkeypatch.setattr(exports, "attention_fits", lambda *sizes: False)
    for name in ("file_of", "page_of", "record_pass", "whole_attention", "csv_file"):
        monkeypatch.setattr(exports, name, fail)
    for status, kind, more in (
        *((413, "safetensors", {}), (413, "csv", {"name": "logits"}), (413, "html", {})),
        *((413, "html", {"view": "attention"}), (400, "csv", {}), (400, "safetensors", {"name": "blocks.9"})),
    ):
        found = client.get("/export", params={**PASS, "format": kind, **more})
        assert found.status_code == status and found.json()["error"].endswith(".")
    assert csv_file.MOST_ROWS * 100 < 64_000_000


# Modules, documentation, what there is


def test_modules_are_cached_for_good_at_the_address_of_their_content(client):
    modules = client.app.state.modules
    address = f"/modules/{modules.address('frontend/api.js')}"
    found = client.get(address)
    assert found.status_code == 200 and found.headers["content-type"].startswith("text/javascript")
    assert found.headers["cache-control"].endswith("max-age=31536000, immutable")
    for wrong in (
        address.replace(modules.version, "0" * 16),
        address + "x",
        "/modules/",
        "/modules/../app.py",
        f"/modules/{modules.version}/frontend/saved_page.py",
    ):
        missing = client.get(wrong)
        assert missing.status_code == 404 and missing.headers["cache-control"] in ("no-store",)
    assert client.post(address).status_code == 405


class Sources(HTMLParser):
    """What a page would fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href", "data", "action")]


def test_the_documentation_names_every_parameter_and_fetches_nothing(client):
    page, schema = client.get("/docs").text, client.get("/openapi.json").json()
    addresses = 0
    for path, methods in schema["paths"].items():
        assert f"/api{path}</code>" in page
        section = page.split(f"/api{path}</code>")[1].split("<h2>")[0]
        for parameter in methods.get("get", {}).get("parameters", []):
            addresses += 1
            assert f"<code>{parameter['name']}</code>" in section, (path, parameter["name"])
    assert addresses > 60
    sources = Sources()
    sources.feed(page)
    assert sources.found == ["openapi.json"]
    for limit in (request_parameters.MOST_NAMES, request_parameters.MOST_CELLS, request_parameters.MOST_NEW_TOKENS):
        assert f"{limit:,}" in page


def test_models_are_listed_with_what_a_question_needs(client, library):
    found = {each["name"]: each for each in client.get("/models").json()["models"]}
    assert found.keys() == {entry.name for entry in library.entries()}
    assert found["translator"]["attentions"].keys() == {"encoder", "decoder", "cross"}
    assert found["rotary"]["version"] == library.version("rotary") and found["bigram"]["n_layers"] == 0
    assert client.get("/health").json() == {"status": "ok", "models": len(found)}


def test_a_replaced_model_has_another_version(make_client, library, tmp_path):
    save_tiny(tmp_path, "one", seed=1)
    mine = Library(tmp_path)
    before = mine.version("one")
    assert before == version_of(tmp_path / "one") and mine.open("one").version == before
    save_tiny(tmp_path, "one", seed=2)
    assert mine.version("one") == mine.open("one").version != before
    assert load_checkpoint(tmp_path / "one")


def test_counts_are_kept_for_prometheus(client):
    client.get("/overview", params=PASS)
    client.get("/overview", params=PASS)
    lines = client.get("/metrics").text.splitlines()
    assert 'headsup_answers_total{address="overview",how="computed"} 1' in lines
    assert 'headsup_answers_total{address="overview",how="cached"} 1' in lines
    numbers = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(numbers["headsup_memory_bytes"]) > 1e7 and numbers["headsup_texts_in_progress"] == "0"
    counts = [int(count) for name, count in numbers.items() if name.startswith("headsup_latency_seconds_bucket")]
    assert counts == sorted(counts) and counts[-1] == int(numbers["headsup_latency_seconds_count"]) == 2
    assert 0 < float(numbers["headsup_latency_seconds_sum"]) < 60


def test_health_fails_when_the_engine_does(client, tmp_path, monkeypatch):
    computations, begun, done = client.app.state.responder._short, threading.Event(), threading.Event()
    assert client.get("/health").status_code == 200
    with computations.join("stuck", lambda progress: begun.set() or done.wait(60)):
        assert begun.wait(20) and client.get("/health").status_code == 200
        monkeypatch.setattr(responses, "STUCK_AFTER", 0.0)
        assert "stuck" in client.get("/health").json()["error"]
        done.set()
    nothing = Library(tmp_path / "nothing")
    empty = TestClient(app.create_app(lambda: nothing)).get("/health")
    assert (empty.status_code, empty.json()["error"]) == (503, "The folder of models has none that can be read.")
    monkeypatch.setattr(responses, "STUCK_AFTER", 60.0)
    client.app.state.responder.stop()
    assert client.get("/health").status_code == client.get("/overview", params=PASS).status_code == 503


def test_a_server_is_busy_while_somebody_waits_for_an_answer(client, library):
    responder, model = client.app.state.responder, library.open("rotary").checkpoint.model
    until(lambda: not responder.is_busy())
    done = threading.Event()
    with responder._short.join("computation", lambda progress: done.wait(60)):
        assert responder.is_busy()
        done.set()
    assert not responder.is_busy()
    request = schedulers.of(model).submit(DecodeState(model, [1]), on_step=lambda step: True)
    assert responder.is_busy()
    request.cancel()
    request.wait()
    assert not responder.is_busy()
