"""Tests the API's streams: results, progress, and their end when nobody reads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.api.conftest import events_of, ids, served
from tests.training_plans import until
from transformer import Client, Scale, WindowedIntervention, ablation, patching, to_code
from transformer.api import ablation_and_patching, app, responses
from transformer.api.computations import Computations
from transformer.api.errors import STOPPING, ApiError
from transformer.inference.scheduler import schedulers
from transformer.jobs import FairThreads, progress

PATIENCE = 120
"""Seconds after which something that should have happened hasn't."""
TEXT = {"rotary": "To be, or not", "grouped": "T", "local": "To be, or not", "translator": "two hundred and five"}


def inputs(library, model, text):
    checkpoint = library.open(model).checkpoint
    ids, start = tuple(checkpoint.tokenizer.encode(text)), checkpoint.card.start_token_id
    return checkpoint.model, *((ids, ()) if start is None else ((start,), ids))


# Results


@pytest.mark.parametrize("changes", [(), (Scale("blocks.0.attn.hook_z", 1), Scale("blocks.1.hook_mlp_out"))])
@pytest.mark.parametrize("model", TEXT)
def test_ablation_is_the_engine_s(client, library, model, changes):
    if model == "translator":
        changes = tuple(Scale(f"decoder.{each.point}".replace("blocks.1", "blocks.0"), each.head) for each in changes)
    asked = {"model": model, "text": TEXT[model], "changes": "!".join(map(to_code, changes))}
    *progress, (name, result) = events_of(client.get("/ablation", params=asked))
    assert name == "result" and {each for each, _ in progress} <= {"progress"}
    engine, tokens, source = inputs(library, model, TEXT[model])
    found = ablation(engine, tokens, source, changes)
    assert [(each["point"], each["head"]) for each in result["parts"]] == [
        (each.point, each.head) for each in found.parts
    ]
    free = [at for at, part in enumerate(found.parts) if part not in changes]  # the others are put back
    if len(tokens) > 1:
        np.testing.assert_allclose(np.array(result["loss"])[free], found.loss(tokens).numpy()[free], atol=1e-5)
    else:
        assert result["loss"] is None
    assert result["token"] == int(found.plain[-1].argmax())
    rises = found.logit(len(tokens) - 1, result["token"]).numpy()
    np.testing.assert_allclose(np.array(result["logit"])[free], rises[free], atol=1e-5)
    assert min(result["divergence"]) > -1e-9
    assert all(abs(result["logit"][at]) > 1e-6 for at in range(len(found.parts)) if at not in free)
    if not changes:  # a position and a token can be chosen
        chosen = events_of(client.get("/ablation", params={**asked, "position": 0, "token": 7}))[-1][1]
        np.testing.assert_allclose(chosen["logit"], found.logit(0, 7).numpy(), atol=1e-5)
        for parameter, value in (("position", len(tokens)), ("token", engine.config.vocab_size)):
            refused = client.get("/ablation", params={**asked, parameter: value})
            assert refused.status_code == 400 and refused.json()["parameter"] == parameter


@pytest.mark.parametrize(
    ("model", "clean", "stack"),
    [
        *(("rotary", "So be, or not", None), ("local", "To be, ar not", None)),
        *(("translator", "six hundred and five", "encoder"), ("translator", (7, 6), "decoder")),
    ],
)
@pytest.mark.parametrize("begin", [0, 2])
def test_patching_is_the_engine_s(client, library, model, clean, stack, begin):
    change = Scale("blocks.0.hook_mlp_out" if model != "translator" else "encoder.blocks.0.hook_mlp_out", None, 3, 0.5)
    engine, tokens, source = inputs(library, model, TEXT[model])
    if stack == "decoder":  # its own tokens
        tokens, clean_tokens, clean_source = (*tokens, 5, 6), (*tokens, *clean), source
        read = {"tokens": ids(tokens), "clean_tokens": ids(clean_tokens), "source": ids(source)}
    else:
        _, clean_tokens, clean_source = inputs(library, model, clean)
        read = {"text": TEXT[model], "clean_text": clean}
    asked = {"model": model, "changes": to_code(change), "answer": 3, "against": 4, "begin": begin, **read}
    *progress, (name, result) = events_of(client.get("/patching", params=asked | ({"stack": stack} if stack else {})))
    shares = [data["share"] for _, data in progress]
    assert name == "result" and shares == sorted(shares) and all(0 <= share <= 1 for share in shares)
    of_pass = {"stack": stack or "", "interventions": (WindowedIntervention(change, begin),)}
    expected = patching(engine, clean_tokens, tokens, 3, 4, clean_source, source, **of_pass)
    assert result["restored"] == expected.restored.tolist()
    assert (result["clean"], result["corrupted"]) == (expected.clean, expected.corrupted)
    assert result["sites"] == list(expected.sites) and result["points"] == [list(each) for each in expected.points]


def test_what_can_not_be_ablated_or_patched_is_said(client, monkeypatch):
    text = {"model": "rotary", "text": "To be"}
    pair = text | {"answer": 3, "against": 4}
    for path, asked, parameter in (
        ("/patching", pair | {"clean_text": "To b"}, "clean_text"),
        ("/patching", pair, "clean_text"),
        ("/patching", pair | {"clean_text": "So", "clean_tokens": "1"}, "clean_text"),
        ("/patching", pair | {"clean_text": "So be", "answer": 10**6}, "answer"),
        ("/patching", pair | {"clean_tokens": "1,2,3,4,9999"}, "clean_tokens"),
        ("/patching", pair | {"clean_text": "So be", "stack": "decoder"}, "stack"),
        ("/patching", pair | {"clean_text": "To be"}, None),  # only computing shows these
        ("/ablation", {"model": "bigram", "text": "To be"}, None),
    ):
        found = client.get(path, params=asked)
        if parameter is None:
            name, data = events_of(found)[-1]
            assert name == "error" and data["error"].endswith("."), asked
        else:
            assert found.status_code == 400 and found.json()["parameter"] == parameter, asked
    monkeypatch.setattr(ablation_and_patching, "MOST_WORK", 1000)
    monkeypatch.setattr(ablation_and_patching, "ablation", None)
    monkeypatch.setattr(app, "patching", None)
    for path, asked in (("/ablation", text), ("/patching", pair | {"clean_text": "So be"})):
        found = client.get(path, params=asked)
        assert found.status_code == 413 and "shorter text" in found.json()["error"]


def test_a_cached_result_is_answered_at_once_and_an_error_is_not_cached(client, library, monkeypatch):
    asked = {"model": "rotary", "text": "To be", "version": library.version("rotary")}
    first = client.get("/ablation", params=asked)
    assert first.headers["cache-control"] == "no-store"
    compute = ablation_and_patching.ablation
    monkeypatch.setattr(ablation_and_patching, "ablation", lambda *args: 1 / 0)
    again = client.get("/ablation", params=asked)
    assert events_of(again) == events_of(first)[-1:] and "immutable" in again.headers["cache-control"]
    asked["text"] = "or not"
    name, data = events_of(client.get("/ablation", params=asked))[-1]
    assert name == "error" and "in its log" in data["error"]
    monkeypatch.setattr(ablation_and_patching, "ablation", compute)
    assert events_of(client.get("/ablation", params=asked))[-1][0] == "result"


# Readers that go away


def test_computing_ends_when_its_last_reader_goes_away(client, monkeypatch):
    seen, ended, batches = [], threading.Event(), ablation_and_patching.ablated_in_batches

    def endless(*args):
        try:
            while True:
                for each in batches(*args):
                    seen.append(time.sleep(0.02))
                    yield each
        finally:
            ended.set()

    monkeypatch.setattr(ablation_and_patching, "ablated_in_batches", endless)
    with served(client.app) as url:
        one, other = (Client(url).events("ablation", model="rotary", text="To be") for _ in range(2))
        assert next(one)[0] == next(other)[0] == "progress"
        one.close()
        assert not ended.wait(0.5)
        count = len(seen)
        until(lambda: len(seen) > count)
        other.close()
        assert ended.wait(PATIENCE)
    assert client.app.state.responder.counts == {"ablation:computed": 2}


def test_what_was_abandoned_before_it_began_never_begins():
    computations, free, begun = Computations(1, 3), threading.Event(), []
    with computations.join("long", lambda: free.wait(20)):
        with computations.join("abandoned", lambda: begun.append(1)), computations.join("more", lambda: 0):
            with pytest.raises(ApiError) as told, computations.join("too many", lambda: 0):
                pass
            assert told.value.status_code == 503 and told.value.retry_after
        with computations.join("last", lambda: begun.append(2)) as last:
            free.set()
            last.result(10)
    assert begun == [2]
    computations.close()


def test_whoever_joins_finds_the_computation_waited_for():
    """A computation that says at once how far it is must not think that nobody waits."""
    computations = Computations(4, 300)
    for each in range(200):
        with computations.join(each, lambda: progress(0.5)) as job:
            job.result(10)
            assert job.share == 0.5
    computations.close()


# A server that ends


def test_whoever_waits_when_the_server_ends_reads_that_it_does(make_client, library, monkeypatch):
    """Answers and streams, begun and not begun, a text in progress, and what was about to be asked."""
    run, free, begun = FairThreads._run, threading.Event(), threading.Semaphore(0)

    def blocked(threads, job):
        if threads is not responder._opening:
            begun.release()
            assert free.wait(PATIENCE)
        run(threads, job)

    monkeypatch.setattr(FairThreads, "_run", blocked)
    monkeypatch.setattr(responses, "THREADS", 1)
    monkeypatch.setattr(responses, "LONG_THREADS", 1)
    client, model = make_client(), library.open("rotary").checkpoint.model
    responder, handle = client.app.state.responder, model.register_forward_pre_hook(lambda *_: time.sleep(0.01))
    asked = [("tensors", {"names": "logits"}), ("ablation", {})]
    try:
        with ThreadPoolExecutor(5) as threads:

            def get(path, **query):
                return client.get(f"/{path}", params={"model": "rotary", **query})

            first = [threads.submit(get, path, text="To be", **query) for path, query in asked]
            assert all(begun.acquire(timeout=PATIENCE) for _ in first)
            queued = [threads.submit(get, path, text="To b", **query) for path, query in asked]
            text = threads.submit(get, "generate", text="To be", max_new_tokens=500, seed=1)
            until(lambda: responder.gauges() == {"computations": 4, "texts_in_progress": 1})
            responder.stop()
            later = get("tensors", text="To", names="logits")
            responder.close()
            schedulers.close()
            free.set()
            answered, streamed, unanswered, unstreamed, written = (each.result() for each in [*first, *queued, text])
    finally:
        handle.remove()
    assert answered.status_code == 200, "what had begun is answered"
    for response in (later, unanswered):
        assert (response.status_code, response.json()["error"]) == (503, STOPPING) and response.headers["Retry-After"]
    for response in (streamed, unstreamed, written):
        assert events_of(response)[-1] == ("error", {"error": STOPPING, "parameter": "", "retry_after": 60})
    assert 2 < len(events_of(written)) < 500
    for computations in (responder._short, responder._long):
        with pytest.raises(ApiError, match=STOPPING), computations.join("whose model was found before", free.wait):
            pass
