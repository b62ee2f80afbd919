"""Tests the API's client, recordings by address, and the server by itself."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.api.conftest import served
from transformer import Client, Recording, Sampling, Scale, generate, to_code
from transformer.__main__ import main
from transformer.api import client as client_module
from transformer.api import settings
from transformer.api.model_store import model_store
from transformer.inference import http_client
from transformer.inference.http_client import ResponseError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(client):
    with served(client.app) as address:
        yield address


def test_a_client_asks_as_an_address_does_and_what_is_too_long_for_one_as_a_body(url, library, monkeypatch):
    asks, sent, asked = Client(f"{url}/"), [], client_module.open_url
    monkeypatch.setattr(client_module, "open_url", lambda request, *more: sent.append(request) or asked(request, *more))
    assert {each["name"] for each in asks.models()} == {entry.name for entry in library.entries()}
    names = ["blocks.0.attn.hook_pattern[1]", "logits"]
    query = urlencode({"model": "rotary", "text": "To be", "names": names}, doseq=True)
    expected = Recording.from_url(f"{url}/api/tensors?{query}").tensors
    for longest, method in ((client_module.LONGEST_ADDRESS, "GET"), (10, "POST")):
        monkeypatch.setattr(client_module, "LONGEST_ADDRESS", longest)
        found = asks.tensors("rotary", "To be", names).tensors
        assert sent[-1].get_method() == method and found.keys() == set(names) == expected.keys()
        assert all(found[name].tobytes() == expected[name].tobytes() for name in names)
    assert asks.json("checks", model="rotary", text="To be")["checks"]
    assert asks.result("ablation", model="rotary", text="To be")["parts"]
    assert asks.recording("overview", model="rotary", text="To be").tensors


def test_an_error_is_the_server_s_sentence(url):
    with pytest.raises(ResponseError, match="There is no model 'nobody'") as told:
        Client(url).tensors("nobody", "To be", ["logits"])
    assert (told.value.status, told.value.parameter) == (404, "model")
    with pytest.raises(ValueError, match="never seen"):
        Recording.from_url(f"{url}/api/outline?model=rotary&text=%C3%A9")
    with pytest.raises(ValueError, match="must begin with http"):
        Recording.from_url("file:///etc/passwd")
    with pytest.raises(ValueError, match="no recording"):
        Recording.from_url(f"{url}/api/health")
    with pytest.raises(URLError):
        Client("http://127.0.0.1:9").models()


def test_who_asks_too_often_waits_and_asks_again(monkeypatch):
    answers = [503, 429, 200]
    monkeypatch.setattr(http_client, "time", SimpleNamespace(sleep=lambda seconds: None))

    async def app(scope, receive, send):
        status = answers.pop(0)
        headers = [(b"content-type", b"application/json"), *([(b"retry-after", b"1")] if status != 200 else [])]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = b'{"models": []}' if status == 200 else b'{"error": "Too often.", "parameter": ""}'
        await send({"type": "http.response.body", "body": body})

    with served(app) as url:
        assert Client(url).models() == [] and not answers
        answers += [503] * http_client.TRIES
        with pytest.raises(ResponseError, match=r"Too often\.") as told:
            Client(url).models()
        assert told.value.status == 503 and not answers


def test_generated_steps_have_logits_as_an_array(url, library):
    checkpoint = library.open("rotary").checkpoint
    change, ids = Scale("blocks.0.hook_mlp_out", None, 2, 0.5), checkpoint.tokenizer.encode("To be, or")
    steps = list(Client(url).generate("rotary", "To be, or", max_new_tokens=24, seed=3, changes=to_code(change)))
    expected = generate(checkpoint.model, ids, max_new_tokens=24, sampling=Sampling(seed=3), interventions=[change])
    for step, computed in zip(steps, expected, strict=True):
        np.testing.assert_allclose(step["logits"], computed.logits, atol=1e-5)
        assert step["label"] == checkpoint.tokenizer.label(step["id"])
    assert steps[-1]["window_start"] > 0, "the text is longer than the context"


def test_the_server_by_itself_answers_under_api_and_stops_when_it_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformer", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            asks, until = Client(f"http://127.0.0.1:{port}"), time.monotonic() + 60
            while True:
                try:
                    assert "shakespeare" in {each["name"] for each in asks.models()}
                    break
                except OSError:
                    assert server.poll() is None and time.monotonic() < until
                    time.sleep(0.1)
            with http_client.open_url(f"http://127.0.0.1:{port}/") as page:
                assert page.url.endswith("/api/docs") and "<h1>HeadsUp API</h1>" in page.read().decode()
            text = {"text": "To be or not " * 15, "clean_text": "A" + ("To be or not " * 15)[1:]}
            events = asks.events("patching", model="shakespeare", answer=1, against=2, **text)
            assert next(events)[0] == "progress"
            server.send_signal(signal.SIGINT)
            events.close()
            said = server.communicate(timeout=120)[0]
        finally:
            server.kill()
    assert server.returncode == 0 and "Traceback" not in said


NONSENSE = {
    "HEADSUP_PROXIES": "everybody",
    "HEADSUP_MODEL_MEMORY": "much",
    "HEADSUP_BROWSER_MODELS": "no",
    "HEADSUP_SECRET": " ",
    **dict.fromkeys(("HEADSUP_STORE", "HEADSUP_CHECKPOINTS", "HEADSUP_CORPORA"), "/dev/null/x"),
}


@pytest.mark.parametrize(("variable", "told"), NONSENSE.items())
def test_a_setting_that_says_nonsense_is_said_at_once(variable, told, monkeypatch, capsys):
    monkeypatch.setenv(variable, told)
    monkeypatch.setattr("uvicorn.Server.run", lambda *args, **options: pytest.fail("it serves"))
    model_store.cache_clear()
    assert main(["serve", "--port", "9"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"Error: {variable} is ") and len(said.splitlines()) == 1 and told in said
    assert NONSENSE.keys() == settings.CHECKS.keys()
