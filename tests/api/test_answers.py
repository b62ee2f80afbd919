"""Tests how the API sends answers: versions, tags, visitors' models, single flight, files, documentation."""

import csv
import dataclasses
import io
import json
import logging
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.torch import load
from starlette.testclient import TestClient

from tests.api.conftest import MODELS, served
from tests.helpers import tiny_model
from tests.tiny_models import save_tiny
from tests.training_plans import until
from transformer import Client, Recording, load_checkpoint, record_pass, trace_pass
from transformer.api import (
    ablation_and_patching,
    app,
    exports,
    open_models,
    outlines,
    request_parameters,
    responses,
    tensors,
    text_reading,
)
from transformer.api.model_library import Library, version_of
from transformer.api.model_store import TOKEN
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import schedulers
from transformer.model.equations import LOGITS

PASS = {"model": "rotary", "text": "To be, or not"}
QUESTIONS = {
    "/overview": PASS,
    "/outline": PASS,
    "/tensors": PASS | {"names": ["logits", "blocks.0.attn.hook_q[:, 1]"]},
    "/checks": PASS,
    "/lens": PASS | {"position": 3},
    "/attribution": PASS | {"position": 3, "token": 5},
    "/ablation": PASS,
    "/patching": PASS | {"clean_text": "So be, or not", "answer": 3, "against": 4},
    "/export": PASS | {"format": "csv", "name": "blocks.0.attn.hook_pattern"},
    "/scores": PASS | {"first": 3, "seed": 1},
    "/predictions": PASS | {"first": 3},
    "/rows": PASS | {"attention": "blocks.0.attn", "first": 1, "last": 3},
    "/circuit": {"model": "rotary", "kind": "ov", "attention": "blocks.0.attn", "head": 1},
    "/weights": {"model": "rotary"},
    "/description": {"model": "rotary"},
    "/tokens": {"model": "rotary", "text": "To be, or not"},
}
every_question = pytest.mark.parametrize(("path", "asked"), QUESTIONS.items(), ids=QUESTIONS)


def end_of(answer):
    """What an answer says: in a stream, after its progress."""
    return answer.content.rpartition(b"event: result")[2]


@every_question
def test_an_answer_is_cached_by_its_address_for_good_where_the_version_is_named(path, asked, client, library):
    named = {**asked, "version": library.version("rotary")}
    first = client.get(path, params=named)
    assert "headsup_visitor" in first.headers["set-cookie"] and "httponly" in first.headers["set-cookie"].lower()
    assert "public" not in first.headers["cache-control"], "the cookie is nobody else's"
    then = client.get(path, params=named)
    assert then.headers["cache-control"] == "public, max-age=31536000, immutable" and "set-cookie" not in then.headers
    plain, posted = client.get(path, params=asked), client.post(path, json=asked)
    assert {each.status_code for each in (first, then, plain, posted)} == {200}
    assert end_of(first) == end_of(then) == end_of(plain) == end_of(posted)
    assert plain.headers["cache-control"] == "public, no-cache"
    tag = plain.headers["etag"]
    assert then.headers["etag"] == tag
    for sent in (tag, f'"other", {tag}', f"W/{tag}"):
        again = client.get(path, params=asked, headers={"If-None-Match": sent})
        assert again.status_code == 304 and not again.content and again.headers["etag"] == tag
    assert client.get(path, params=asked, headers={"If-None-Match": '"other"'}).status_code == 200
    other = client.get(path, params={**asked, "version": "0123456789ab"})
    assert other.status_code == 409 and other.json()["parameter"] == "version"
    assert other.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_what_is_compressed_is_the_same(client, coding):
    found = client.get("/outline", params=PASS, headers={"Accept-Encoding": coding})
    assert found.headers.get("content-encoding", "identity") == coding
    assert Recording.from_bytes(found.content).tensors.keys() >= {"next", "lens"}


@pytest.mark.parametrize(
    ("path", "where", "name"), [("/overview", outlines, "overview"), ("/ablation", ablation_and_patching, "ablation")]
)
def test_identical_questions_at_once_are_computed_once(path, where, name, client, monkeypatch):
    compute, begun, free = getattr(where, name), [], threading.Event()

    def slowly(*args, **kwargs):
        begun.append(args)
        free.wait(20)
        return compute(*args, **kwargs)

    monkeypatch.setattr(where, name, slowly)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(client.get, path, params=QUESTIONS[path]) for _ in range(8)]
        while not begun:
            time.sleep(0.01)
        time.sleep(0.2)
        other = client.get("/tensors", params={**PASS, "names": "logits"})  # those who wait leave threads to others
        free.set()
        answers = [each.result() for each in asked]
    assert other.status_code == 200 and len(begun) == 1
    assert len(set(map(end_of, answers))) == 1


# Own models


@pytest.fixture
def own(library, store):
    """The token of an own model."""
    checkpoint = library.open("grouped").checkpoint
    card = dataclasses.replace(checkpoint.card, title='<b>"Mine"</b> / ../..')
    return store.put(dataclasses.replace(checkpoint, card=card))


@every_question
def test_an_own_model_is_asked_by_its_header_and_its_answers_are_private(path, asked, client, own):
    asked = {**asked, "model": "own"}
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


# Files


def saved(client, token="", **parameters):
    asked = {name: value for name, value in {**PASS, **parameters}.items() if value is not None}
    found = client.get("/export", params=asked, headers={"HeadsUp-Model": token} if token else {})
    assert found.status_code == 200, found.text
    assert found.headers["content-disposition"].startswith("attachment;")
    return re.search(r'filename="(.*?)"', found.headers["content-disposition"])[1], found.content


@pytest.mark.parametrize("view", ["inside", "attention", "generation"])
def test_a_page_is_saved_that_needs_no_server(client, own, view):
    for model, text, file in (
        *(("rotary", "To be", "tiny-rotary"), ("translator", "forty-two", "translator")),
        *(("encoder", "To [mask]e", "encoder"), ("own", "To be", "b-mine-b")),
    ):
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
    tokens, labels = checkpoint.tokenizer.encode(PASS["text"]), checkpoint.tokenizer.labels
    expected = record_pass(checkpoint.model, tokens, labels=labels)
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


# Models that browsers compute


@pytest.mark.parametrize("name", ["rotary", "grouped", "bigram", "translator", "encoder"])
def test_weights_are_the_model_s_and_the_sample_is_what_it_computes(client, library, name):
    model = library.open(name).checkpoint.model
    weights = load(client.get("/weights", params={"model": name}).content)
    for key, weight in weights.items():
        assert weight.to(model.state_dict()[key].dtype).equal(model.state_dict()[key])
    sample = Recording.from_bytes(client.get("/description", params={"model": name}).content)
    assert sample.metadata["about"]["config"] == json.loads(json.dumps(model.config.to_dict()))
    logits = trace_pass(model, sample.metadata["tokens"], sample.metadata["source"]).tensors[LOGITS]
    assert np.abs(np.asarray(logits) - sample.tensors[LOGITS]).max() < 1e-5


def test_a_large_model_a_16_bit_one_and_a_server_that_wants_it_so_leave_it_to_the_server(client, monkeypatch, library):
    small = library.open("rotary")
    assert open_models.is_for_browsers(small)
    half = dataclasses.replace(small.checkpoint, model=tiny_model().half())
    assert not open_models.is_for_browsers(dataclasses.replace(small, checkpoint=half))
    monkeypatch.setattr(open_models, "MOST_PARAMETERS", small.checkpoint.model.parameter_count() - 1)
    answer = client.get("/weights", params={"model": "rotary"})
    assert (answer.status_code, answer.json()["parameter"]) == (413, "model")
    assert answer.json()["error"].startswith("Browsers compute models of at most ")
    monkeypatch.undo()
    monkeypatch.setenv("HEADSUP_BROWSER_MODELS", "Off")
    assert client.get("/description", params={"model": "rotary"}).status_code == 413


# What a page knows of a model, and of a text


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_described_with_all_that_a_page_needs(client, library, name):
    found = client.get(f"/models/{name}").json()
    checkpoint = library.open(name).checkpoint
    about = found["about"]
    assert about["config"] == json.loads(json.dumps(checkpoint.model.config.to_dict()))
    assert found["card"]["title"] == checkpoint.card.title and found["card"]["examples"] == checkpoint.card.examples
    assert len(about["kinds"]) == checkpoint.tokenizer.vocab_size
    assert found["version"] == library.version(name) and found["file_name"] == name and found["in_browser"]
    assert (found["tokenizer"] or {}).get("model", {}).get("type", "WordLevel") == "WordLevel"
    lasting = client.get(f"/models/{name}", params={"version": found["version"]})
    assert lasting.headers["cache-control"].endswith("max-age=31536000, immutable") and lasting.json() == found


def test_a_visitors_own_model_is_described_to_those_who_have_its_key(client, own, monkeypatch):
    refused = client.get("/models/own", headers={"HeadsUp-Model": "own-" + "0" * 32})
    assert refused.status_code == 404 and refused.json()["parameter"] == "model"
    monkeypatch.setattr(text_reading, "MOST_NAMES", 3)
    found = client.get("/models/own", headers={"HeadsUp-Model": own})
    assert found.headers["cache-control"] == "private, no-cache" and own not in found.text
    described = found.json()
    assert (described["version"], described["file_name"], described["about"]["kinds"]) == (None, "b-mine-b", {})


def tokens_of(client, model, text, **more):
    return client.get("/tokens", params={"model": model, "text": text, **more}).json()


def test_a_text_is_read_as_its_model_reads_it(client, library):
    read = tokens_of(client, "rotary", "To be")
    assert read["tokens"] == library.open("rotary").checkpoint.tokenizer.encode("To be")
    assert (read["labels"], read["problem"], read["unknown"], read["chat"]) == (
        ["T", "o", "␣", "b", "e"],
        None,
        [],
        None,
    )
    context = library.open("rotary").checkpoint.model.config.context_length
    long = tokens_of(client, "rotary", "a" * (context + 1))
    assert long["problem"] is None and long["window"] > 0 and len(long["tokens"]) == context + 1
    plain, chat = (tokens_of(client, "chatty", "Hi", reads=reads) for reads in ("plain", "chat"))
    assert plain["chat"] is None and "Hi" in chat["chat"] and len(chat["tokens"]) > len(plain["tokens"])


def test_what_is_wrong_with_a_text_is_said_in_a_sentence(client, library):
    read = tokens_of(client, "rotary", "To § or €")
    assert read["unknown"] == [{"text": "§", "position": 3}, {"text": "€", "position": 8}] and read["tokens"] == []
    assert read["known"] == "To  or " and read["words"] == []
    assert read["problem"].startswith("This model has never seen “§” (character 4), “€” (character 9). Remove them")
    assert tokens_of(client, "rotary", "")["problem"] == "The prompt is empty. Type a text or pick an example."
    assert "numbers from zero to 999,999" in tokens_of(client, "translator", "forty-twelve")["problem"]
    most = library.open("encoder").checkpoint.model.config.context_length
    problem = tokens_of(client, "encoder", "a" * (most + 1))["problem"]
    assert problem.startswith("The prompt has ") and f"at most {most}." in problem


# Modules, documentation, what there is


def test_modules_are_cached_for_good_at_the_address_of_their_content(client):
    modules = client.app.state.modules
    address = f"/modules/{modules.address('frontend/api.js')}"
    found = client.get(address)
    assert found.status_code == 200 and found.headers["content-type"].startswith("text/javascript")
    assert found.headers["cache-control"].endswith("max-age=31536000, immutable")
    for wrong in (
        *(address.replace(modules.version, "0" * 16), address + "x", "/modules/", "/modules/../app.py"),
        f"/modules/{modules.version}/frontend/saved_page.py",
    ):
        missing = client.get(wrong)
        assert missing.status_code == 404 and missing.headers["cache-control"] == "no-store"
    assert client.post(address).status_code == 405


def test_the_documentation_names_every_parameter_and_fetches_nothing(client):
    page, schema = client.get("/docs").text, client.get("/openapi.json").json()
    parameters = 0
    for path, methods in schema["paths"].items():
        section = page.split(f"/api{path}</code>")[1].split("<h2>")[0]
        for parameter in methods.get("get", {}).get("parameters", []):
            parameters += 1
            assert f"<code>{parameter['name']}</code>" in section, (path, parameter["name"])
    assert parameters > 60
    assert re.findall(r"""\s(?:src|href|data|action)=["']?([^"'\s>]*)""", page) == ["openapi.json"]
    for limit in (request_parameters.MOST_NAMES, request_parameters.MOST_CELLS, request_parameters.MOST_NEW_TOKENS):
        assert f"{limit:,}" in page


def test_models_are_listed_with_what_a_question_needs(client, library):
    found = {each["name"]: each for each in client.get("/models").json()["models"]}
    assert found.keys() == {entry.name for entry in library.entries()}
    assert found["translator"]["attentions"].keys() == {"encoder", "decoder", "cross"}
    assert found["rotary"]["version"] == library.version("rotary") and found["bigram"]["n_layers"] == 0
    assert client.get("/health").json() == {"status": "ok", "models": len(found)}


def test_a_replaced_model_has_another_version(tmp_path):
    save_tiny(tmp_path, "one", seed=1)
    mine = Library(tmp_path)
    before = mine.version("one")
    assert before == version_of(tmp_path / "one") and mine.open("one").version == before
    save_tiny(tmp_path, "one", seed=2)
    assert mine.version("one") == mine.open("one").version != before
    assert load_checkpoint(tmp_path / "one")


def test_counts_are_kept_for_prometheus(client):
    for _ in range(2):
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
    with computations.join("stuck", lambda: begun.set() or done.wait(60)):
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
    with responder._short.join("computation", lambda: done.wait(60)):
        assert responder.is_busy()
        done.set()
    assert not responder.is_busy()
    request = schedulers.of(model).submit(DecodeState(model, [1]), on_step=lambda step: True)
    assert responder.is_busy()
    request.cancel()
    request.wait()
    assert not responder.is_busy()
