"""Tests the files from which a visitor's browser computes a small model itself."""

import dataclasses
import json

import numpy as np
import pytest
from safetensors.torch import load
from starlette.testclient import TestClient

from tests.helpers import tiny_model
from transformer import Recording, trace_pass
from transformer.api import browser_models
from transformer.api.app import create_app
from transformer.api.browser_models import is_for_browsers
from transformer.api.responses import OWN_HEADER
from transformer.model.equations import LOGITS

MODELS = ("rotary", "grouped", "bigram", "translator", "encoder")


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_the_model_s_and_the_sample_is_what_it_computes(client, library, name):
    model = library.open(name).checkpoint.model
    weights = load(client.get("/weights", params={"model": name}).content)
    for key, weight in weights.items():
        assert weight.to(model.state_dict()[key].dtype).equal(model.state_dict()[key])
    sample = Recording.from_bytes(client.get("/description", params={"model": name}).content)
    assert sample.metadata["about"]["config"] == json.loads(json.dumps(model.config.to_dict()))
    logits = trace_pass(model, sample.metadata["tokens"], sample.metadata["source"]).tensors[LOGITS]
    assert np.abs(np.asarray(logits) - sample.tensors[LOGITS]).max() < 1e-5


@pytest.mark.parametrize("path", ["/weights", "/description"])
def test_a_version_s_files_are_kept_for_good_and_an_own_model_s_are_its_owner_s(library, path):
    own = library.open("rotary").checkpoint
    client = TestClient(create_app(lambda: library, {"own-0": own}.get))
    named = {"model": "rotary", "version": library.version("rotary")}
    client.get(path, params=named)  # which gives the visitor a cookie
    answer = client.get(path, params=named)
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    again = client.get(path, params=named, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    mine = client.get(path, params={"model": "own"}, headers={OWN_HEADER: "own-0"})
    assert mine.headers["Cache-Control"] == "private, no-cache" and mine.content == answer.content
    assert client.get(path, params={"model": "own"}, headers={OWN_HEADER: "own-1"}).status_code == 404


def test_a_large_model_a_16_bit_one_and_a_server_that_wants_it_so_leave_it_to_the_server(client, monkeypatch, library):
    small = library.open("rotary")
    assert is_for_browsers(small)
    half = dataclasses.replace(small.checkpoint, model=tiny_model().half())
    assert not is_for_browsers(dataclasses.replace(small, checkpoint=half))
    monkeypatch.setattr(browser_models, "MOST_PARAMETERS", small.checkpoint.model.parameter_count() - 1)
    answer = client.get("/weights", params={"model": "rotary"})
    assert (answer.status_code, answer.json()["parameter"]) == (413, "model")
    assert answer.json()["error"].startswith("Browsers compute models of at most ")
    monkeypatch.undo()
    monkeypatch.setenv("HEADSUP_BROWSER_MODELS", "Off")
    assert not is_for_browsers(small)
    assert client.get("/description", params={"model": "rotary"}).status_code == 413
