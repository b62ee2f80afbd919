"""Tests the API's client, recordings by address, and the server by itself."""

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode

import numpy as np
import pytest
import torch

from tests.api.conftest import served
from transformer import Client, Recording, Scaled, in_window, to_code
from transformer.api import client as client_module
from transformer.inference import fetching
from transformer.inference.fetching import AnswerError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def _quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching.time, "sleep", lambda seconds: None)
        yield


@pytest.fixture
def url(client):
    with served(client.app) as address:
        yield address


def test_a_client_asks_as_an_address_does(url, library):
    asks = Client(f"{url}/")
    assert {each["name"] for each in asks.models()} == {entry.name for entry in library.entries()}
    names = ["blocks.0.attn.hook_pattern[1]", "logits"]
    found = asks.tensors("rotary", "To be", names)
    asked = urlencode({"model": "rotary", "text": "To be", "names": names}, doseq=True)
    same = Recording.from_url(f"{url}/api/tensors?{asked}")
    assert found.tensors.keys() == set(names) == same.tensors.keys()
    assert all(found.tensors[name].tobytes() == same.tensors[name].tobytes() for name in names)
    assert asks.json("checks", model="rotary", text="To be")["checks"]
    assert asks.result("ablation", model="rotary", text="To be")["parts"]
    assert asks.recording("overview", model="rotary", text="To be").tensors


def test_what_is_too_long_for_an_address_is_sent_as_a_body(url, monkeypatch):
    asks, sent, asked = Client(url), [], client_module.asked
    monkeypatch.setattr(client_module, "asked", lambda request, *more: sent.append(request) or asked(request, *more))
    short = asks.tensors("rotary", "To be", ["logits"])
    monkeypatch.setattr(client_module, "LONGEST_ADDRESS", 10)
    long = asks.tensors("rotary", "To be", ["logits"])
    assert [each.get_method() for each in sent] == ["GET", "POST"]
    assert long.tensors["logits"].tobytes() == short.tensors["logits"].tobytes()


def test_an_error_is_the_server_s_sentence(url):
    with pytest.raises(AnswerError, match="There is no model 'nobody'") as told:
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


@pytest.mark.usefixtures("_quick")
def test_who_asks_too_often_waits_and_asks_again():
    answers = [503, 429, 200]

    async def app(scope, receive, send):
        status = answers.pop(0)
        headers = [(b"content-type", b"application/json"), *([(b"retry-after", b"1")] if status != 200 else [])]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = b'{"models": []}' if status == 200 else b'{"error": "Too often.", "parameter": ""}'
        await send({"type": "http.response.body", "body": body})

    with served(app) as url:
        assert Client(url).models() == [] and not answers
        answers += [503] * fetching.TRIES
        with pytest.raises(AnswerError, match=r"Too often\.") as told:
            Client(url).models()
        assert told.value.status == 503 and not answers


@pytest.mark.parametrize("model", ["rotary", "grouped", "local", "translator"])
def test_generated_logits_are_those_of_a_pass_over_the_window(url, library, model):
    checkpoint = library.open(model).checkpoint
    change = Scaled("blocks.0.hook_mlp_out" if model != "translator" else "encoder.blocks.0.hook_mlp_out", None, 2, 0.5)
    text = "forty-two" if model == "translator" else "To be, or"
    asked = {"max_new_tokens": 9 if model == "translator" else 24, "seed": 3, "changes": to_code(change)}
    steps = list(Client(url).generate(model, text, **asked))
    ids, source = checkpoint.tokenizer.encode(text), []
    if model == "translator":
        ids, source = [checkpoint.card.start_token_id], ids
    assert steps and {"id", "label", "logits"} <= steps[0].keys()
    for step in steps:
        start = step["window_start"]
        inputs = [torch.tensor([each]) for each in (source, ids[start:]) if each]
        hooks = [hook for each in in_window([change], start) for hook in each.fwd_hooks(checkpoint.model)]
        expected = checkpoint.model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1].detach().numpy()
        np.testing.assert_allclose(step["logits"], expected, atol=1e-5)
        ids = [*ids, step["id"]]
    assert model == "translator" or steps[-1]["window_start"] > 0, "the text is longer than the context"


def test_importing_the_client_costs_nothing():
    """No server, no web framework, nothing that only an answer needs."""
    code = "import sys, transformer; print({'fastapi', 'starlette', 'uvicorn'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert found.stdout.strip() == "set()", found.stderr


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
            with fetching.asked(f"http://127.0.0.1:{port}/") as page:
                assert page.url.endswith("/api/docs") and "<h1>HeadsUp API</h1>" in page.read().decode()
            events = asks.events(
                "patching",
                model="shakespeare",
                text="To be or not " * 15,
                clean_text="A" + ("To be or not " * 15)[1:],
                answer=1,
                against=2,
            )
            assert next(events)[0] == "progress"
            server.send_signal(signal.SIGINT)
            events.close()
            said = server.communicate(timeout=30)[0]
        finally:
            server.kill()
    assert server.returncode == 0 and "Traceback" not in said


@pytest.mark.parametrize(("variable", "told"), [("HEADSUP_PROXIES", "everybody"), ("HEADSUP_STORE", "/dev/null/x")])
def test_a_setting_that_says_nonsense_is_said_at_once(variable, told, monkeypatch):
    monkeypatch.setenv(variable, told)
    found = subprocess.run(
        [sys.executable, "-m", "transformer", "serve", "--port", "9"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 1 and found.stderr.startswith("Error: ") and len(found.stderr.splitlines()) == 1
    assert re.search(re.escape(told), found.stderr) and "Traceback" not in found.stderr
