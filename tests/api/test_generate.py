"""Tests that the API's generation and scores equal the engine's under concurrency."""

import asyncio
import base64
import json
import threading
import time
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from tests.tiny_models import ALPHABET, CONTEXT, save_tiny, save_translator
from transformer import Averaged, Recording, Replaced, Sampling, Scaled, Weighed, Without, generate, to_code
from transformer.api import texts
from transformer.api.app import create_app
from transformer.api.library import Library
from transformer.inference.scheduler import schedulers
from transformer.inference.windows import in_window, window_start

PROMPT = (3, 1, 4, 1, 5)
SAMPLING = {"temperature": 0.9, "top_k": 20, "top_p": 0.95, "seed": 7}
CHANGED = (
    (),
    (Scaled("blocks.0.attn.hook_z", 0), Scaled("blocks.1.hook_mlp_out", None, 20)),
    (Averaged("blocks.0.hook_attn_out"), Without("mask")),
    (Replaced("blocks.1.hook_resid_pre", tokens=(1, 2, 3)), Weighed("blocks.0.attn.hook_pattern", 1, 19, 18, 0.7)),
)
TOGETHER = 8


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "tiny")
    save_tiny(folder, "many", alphabet=[*ALPHABET, *map(chr, range(0x4E00, 0x4E00 + 300))])
    save_translator(folder)
    return Library(folder)


@pytest.fixture(scope="module")
def client(library):
    with TestClient(create_app(lambda: library, limits=lambda app: app)) as client:
        yield client


def asked(client, path, expected=200, **query):
    found = client.get(f"/{path}", params={name: each for name, each in query.items() if each is not None})
    assert found.status_code == expected, found.text
    return found


def events(response):
    """[(event, data)] of a stream."""
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in response.text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def written(client, tokens=PROMPT, model="tiny", changes=(), **query):
    """The tokens of a text that is continued, as its events have them."""
    found = events(asked(client, "generate", model=model, tokens=ids(tokens), changes=coded(changes), **query))
    assert found[0][0] == "begin" and found[-1][0] == "end", found[-1]
    return [data for event, data in found if event == "token"]


def ids(tokens):
    return ",".join(map(str, tokens))


def coded(changes):
    return "!".join(map(to_code, changes)) or None


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def steps_of(library, tokens=PROMPT, model="tiny", changes=(), count=3 * CONTEXT, names_filter=(), **more):
    engine, sampling = library.open(model).checkpoint.model, Sampling(**SAMPLING)
    return list(
        generate(
            engine,
            tokens,
            max_new_tokens=count,
            sampling=sampling,
            interventions=changes,
            names_filter=names_filter,
            **more,
        )
    )


def check_same(token, step):
    """A token as it was told is what generation computed."""
    assert (token["position"], token["id"], token["rank"]) == (step.position, step.token_id, step.rank)
    assert (token["window_start"], token["point"]) == (step.window_start, step.point)
    np.testing.assert_allclose(
        [token["probability"], token["entropy"]], [step.probability, step.entropy], atol=1e-5, rtol=1e-4
    )
    if "logits" in token:
        np.testing.assert_allclose(floats(token["logits"]), step.logits, atol=1e-5)


def recording(client, path, **query):
    return Recording.from_bytes(asked(client, path, **query).content)


# A stream


@pytest.mark.parametrize("changes", CHANGED, ids=["as it is", "a head", "looking ahead", "a weight"])
def test_a_text_is_what_generation_writes_past_the_context_too(client, library, changes):
    found = written(client, changes=changes, max_new_tokens=3 * CONTEXT, **SAMPLING)
    for token, step in zip(found, steps_of(library, changes=changes), strict=True):
        check_same(token, step)
        assert token["label"] == library.open("tiny").checkpoint.tokenizer.label(step.token_id)
    assert [token["window_start"] for token in found] == [
        window_start(length, CONTEXT) for length in range(len(PROMPT), len(PROMPT) + 3 * CONTEXT)
    ]


def test_a_row_comes_with_each_token_that_is_the_pattern_s_last(client, library):
    found = written(client, attention="blocks.1.attn", head=1, max_new_tokens=2 * CONTEXT, **SAMPLING)
    steps = steps_of(library, count=2 * CONTEXT, names_filter="blocks.1.attn.hook_pattern")
    for token, step in zip(found, steps, strict=True):
        row = step.cache["blocks.1.attn.hook_pattern"][0, 1, -1]
        np.testing.assert_allclose(floats(token["row"]), row, atol=1e-5)
        assert token["row_start"] == step.window_start == step.position - len(row)


def test_of_a_large_vocabulary_the_likeliest_are_told_and_what_all_have_together(client, library):
    for token, step in zip(
        written(client, model="many", max_new_tokens=6, **SAMPLING),
        steps_of(library, model="many", count=6),
        strict=True,
    ):
        logits, top = step.logits.numpy(), token["top"]
        np.testing.assert_allclose(floats(top["logits"]), np.sort(logits)[::-1][: texts.LIKELIEST], atol=1e-5)
        np.testing.assert_allclose(floats(top["logits"]), logits[top["ids"]], atol=1e-5)
        assert top["normaliser"] == pytest.approx(float(np.log(np.exp(logits.astype(float)).sum())), abs=1e-5)
        assert {str(each) for each in [step.token_id, *top["ids"][: texts.NAMED]]} <= token["kinds"].keys()


def test_what_texts_beside_it_do_changes_no_text(client, library):
    """Eight texts of one model, begun at one moment, each with another prompt, seed or change."""
    asked_for = [
        {"tokens": PROMPT[: 1 + number % 5], "changes": CHANGED[number % len(CHANGED)]} for number in range(TOGETHER)
    ]
    found, begun = [None] * TOGETHER, threading.Barrier(TOGETHER)

    def read(number):
        begun.wait(30)
        found[number] = written(client, max_new_tokens=3 * CONTEXT, **asked_for[number], **SAMPLING)

    threads = [threading.Thread(target=read, args=[number]) for number in range(TOGETHER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for tokens, details in zip(found, asked_for, strict=True):
        for token, step in zip(tokens, steps_of(library, **details), strict=True):
            check_same(token, step)


def test_a_translator_s_text_ends_with_the_token_that_says_so(client, library):
    model, card = library.open("translator").checkpoint.model, library.open("translator").checkpoint.card
    source = library.open("translator").checkpoint.tokenizer.encode("two hundred and five")
    length = [1]

    def prefer_the_end(module, inputs, output):
        length[0] += 1
        output = output.clone()
        output[..., card.end_token_id] += 100.0 * (length[0] > 4)
        return output

    query = {
        "model": "translator",
        "tokens": str(card.start_token_id),
        "source": ids(source),
        "temperature": 0,
        "attention": "decoder.blocks.0.cross_attn",
    }
    handle = model.unembed.register_forward_hook(prefer_the_end)
    try:
        found = events(asked(client, "generate", max_new_tokens=20, **query))
    finally:
        handle.remove()
    tokens = [data for event, data in found if event == "token"]
    assert found[-1] == ("end", {"reason": "stop"}) and len(tokens) == 4 and tokens[-1]["label"] == "[end]"
    assert all(token["row_start"] == 0 and len(floats(token["row"])) == len(source) for token in tokens)
    rows = recording(
        client,
        "rows",
        model="translator",
        tokens=str(card.start_token_id),
        source=ids(source),
        attention="decoder.blocks.0.cross_attn",
        first=1,
        last=1,
    ).tensors
    np.testing.assert_allclose(rows["rows"], floats(tokens[0]["row"]), atol=1e-5)


def test_a_broken_text_goes_on_as_if_it_never_broke(client):
    whole = [token["id"] for token in written(client, max_new_tokens=40, **SAMPLING)]
    for kept in (1, 17, 39):
        more = written(client, [*PROMPT, *whole[:kept]], max_new_tokens=40 - kept, **SAMPLING)
        assert [token["id"] for token in more] == whole[kept:]


def test_a_text_that_is_too_long_for_an_address_is_posted(client):
    tokens = [token["id"] for token in written(client, max_new_tokens=5, **SAMPLING)]
    body = {"model": "tiny", "tokens": ids(PROMPT), "max_new_tokens": 5, **SAMPLING}
    found = events(client.post("/generate", json=body))
    assert [data["id"] for event, data in found if event == "token"] == tokens


def test_who_goes_away_ends_the_computing(client, library):
    model = library.open("tiny").checkpoint.model
    query = urlencode({"model": "tiny", "tokens": "1", "max_new_tokens": 1000, "seed": 1}).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/generate",
        "raw_path": b"/generate",
        "query_string": query,
        "root_path": "",
        "scheme": "http",
        "headers": [],
        "client": ("test", 1),
        "server": ("test", 80),
    }
    sent, passes = [], []

    async def visit():
        left = asyncio.Event()

        async def receive():
            if not sent:
                return {"type": "http.request", "body": b"", "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if len(sent) == 5:
                left.set()

        await client.app(scope, receive, send)

    handle = model.register_forward_pre_hook(lambda *_: passes.append(None))
    try:
        asyncio.run(visit())
        deadline = time.monotonic() + 10
        while schedulers.of(model).texts and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not schedulers.of(model).texts and len(passes) < 900
        computed = len(passes)
        time.sleep(0.1)
        assert len(passes) == computed
    finally:
        handle.remove()


# What is asked of a text that is there


@pytest.mark.parametrize("changes", CHANGED, ids=["as it is", "a head", "looking ahead", "a weight"])
@pytest.mark.parametrize("model", ["tiny", "many"])
def test_scores_say_what_writing_said(client, model, changes):
    found = written(client, model=model, changes=changes, max_new_tokens=2 * CONTEXT, **SAMPLING)
    tokens = [*PROMPT, *(token["id"] for token in found)]
    scores = recording(
        client, "scores", model=model, changes=coded(changes), tokens=ids(tokens), first=len(PROMPT), **SAMPLING
    )
    after = written(client, tokens, model=model, changes=changes, max_new_tokens=1, **SAMPLING)
    tensors = scores.tensors
    assert scores.metadata["first"] == len(PROMPT) and len(tensors["drawn"]) == len(found) + 1
    for at, token in enumerate([*found, *after]):
        assert (tensors["drawn"][at], tensors["points"][at]) == (token["id"], token["point"])  # the same dials
        assert (tensors["rank"][at], tensors["window_start"][at]) == (token["rank"], token["window_start"])
        assert tensors["probability"][at] == pytest.approx(token["probability"], abs=1e-5)
        assert tensors["entropy"][at] == pytest.approx(token["entropy"], abs=1e-4)
        if model == "tiny":
            np.testing.assert_allclose(tensors["logits"][at], floats(token["logits"]), atol=1e-5)
        else:
            np.testing.assert_allclose(tensors["top_logits"][at], floats(token["top"]["logits"]), atol=1e-5)
            assert tensors["normaliser"][at] == pytest.approx(token["top"]["normaliser"], abs=1e-5)
        assert str(token["id"]) in scores.metadata["kinds"]


@pytest.mark.parametrize("changes", CHANGED, ids=["as it is", "a head", "looking ahead", "a weight"])
def test_rows_are_the_pattern_of_the_window_that_a_token_was_chosen_in(client, library, changes):
    model = library.open("tiny").checkpoint.model
    tokens = [*PROMPT, *(token["id"] for token in written(client, changes=changes, max_new_tokens=20, **SAMPLING))]
    found = recording(
        client,
        "rows",
        model="tiny",
        tokens=ids(tokens),
        changes=coded(changes),
        attention="blocks.1.attn",
        head=1,
        first=12,
        last=25,
    ).tensors
    assert found["place"].tolist()[-3:] == [23, 24, 25]
    ends = np.cumsum(found["length"])
    for place, start, length, end in zip(found["place"], found["start"], found["length"], ends, strict=True):
        begin = window_start(int(place), CONTEXT)
        assert start == begin and length == place - begin
        steps = list(
            generate(
                model,
                tokens[:place],
                max_new_tokens=1,
                interventions=changes,
                names_filter="blocks.1.attn.hook_pattern",
            )
        )
        row = steps[0].cache["blocks.1.attn.hook_pattern"][0, 1, -1]
        np.testing.assert_allclose(found["rows"][end - length : end], row, atol=1e-5)


def test_a_change_at_a_place_of_the_text_moves_with_the_window(client, library):
    change = Scaled("blocks.0.hook_mlp_out", None, 20)
    tokens = list(range(30))
    (token,) = written(client, tokens, changes=[change], max_new_tokens=1, **SAMPLING)
    begin = window_start(30, CONTEXT)
    assert 0 < begin <= 20 and in_window([change], begin) != (change,)
    model = library.open("tiny").checkpoint.model
    with torch.no_grad():
        plain = model(torch.tensor([tokens[begin:]]))[0, -1]
        moved = model.run_with_hooks(
            torch.tensor([tokens[begin:]]),
            fwd_hooks=[("blocks.0.hook_mlp_out", lambda output, hook: silenced(output, 20 - begin))],
        )[0, -1]
    np.testing.assert_allclose(floats(token["logits"]), moved, atol=1e-5)
    assert not np.allclose(moved, plain, atol=1e-4)


def silenced(output, position):
    output = output.clone()
    output[:, position] = 0
    return output


@pytest.mark.parametrize(
    ("text", "label", "shown"),
    [
        ("a", "a", "a"),
        (" ", "␣", " "),
        ("\n", "↵", "\n"),
        ("", "<pad>", " <pad>"),
        ("\x00", "<0x00>", "<0x00>"),
        ("\u202e", "<U+202E>", "<U+202E>"),  # would turn the direction of everything after it
        ("<script>", "<script>", "<script>"),
    ],
)
def test_text_is_shown_raw_unless_it_cannot_be_seen(text, label, shown):
    assert texts._shown_as(text, label) == shown


def test_a_word_is_named_with_and_without_the_space_before_it(library):
    tokenizer = library.open("translator").checkpoint.tokenizer
    (word,) = tokenizer.encode("five")
    assert texts.kinds_of(tokenizer, [word]) == {str(word): ["five", " five", "five"]}
    letters = library.open("tiny").checkpoint.tokenizer
    (letter,) = letters.encode("a")
    assert texts.kinds_of(letters, [letter]) == {str(letter): ["a", "a"]}


# What can't be


@pytest.mark.parametrize(
    ("path", "query", "status", "parameter"),
    [
        ("generate", {"model": "nobody", "tokens": "1"}, 404, "model"),
        ("generate", {"model": "tiny", "tokens": "1", "version": "of-yesterday"}, 409, "version"),
        ("generate", {"model": "tiny"}, 400, "text"),
        ("generate", {"model": "tiny", "tokens": "99999"}, 400, "tokens"),
        ("generate", {"model": "tiny", "tokens": "1,,2"}, 400, "tokens"),
        ("generate", {"model": "tiny", "text": ""}, 400, "text"),
        ("generate", {"model": "tiny", "text": "é"}, 400, "text"),
        ("generate", {"model": "tiny", "tokens": "1", "source": "1"}, 400, "source"),
        ("generate", {"model": "translator", "tokens": "1"}, 400, "source"),
        ("generate", {"model": "tiny", "tokens": "1", "temperature": -1}, 400, "temperature"),
        ("generate", {"model": "tiny", "tokens": "1", "temperature": "nan"}, 400, "temperature"),
        ("generate", {"model": "tiny", "tokens": "1", "top_k": 0}, 400, "top_k"),
        ("generate", {"model": "tiny", "tokens": "1", "top_p": 0}, 400, "top_p"),
        ("generate", {"model": "tiny", "tokens": "1", "max_new_tokens": 10**9}, 400, "max_new_tokens"),
        ("generate", {"model": "tiny", "tokens": "1", "attention": "blocks.9.attn"}, 400, "attention"),
        ("generate", {"model": "tiny", "tokens": "1", "attention": "blocks.0.attn", "head": 9}, 400, "head"),
        ("generate", {"model": "tiny", "tokens": "1", "changes": "nonsense"}, 400, "changes"),
        ("scores", {"model": "tiny", "tokens": "1,2", "first": 4}, 400, "first"),
        ("scores", {"model": "tiny", "tokens": "1,2", "first": 0}, 400, "first"),
        ("rows", {"model": "tiny", "tokens": "1,2", "attention": "blocks.0.attn", "first": 2, "last": 1}, 400, "last"),
        ("rows", {"model": "tiny", "tokens": "1,2", "attention": "nowhere", "first": 1, "last": 1}, 400, "attention"),
        ("rows", {"model": "tiny", "tokens": "1,2", "attention": "blocks.0.attn", "first": 1, "last": 9}, 400, "last"),
    ],
)
def test_what_can_not_be_asked_is_answered_with_a_sentence(client, path, query, status, parameter):
    told = asked(client, path, status, **query).json()
    assert told["parameter"] == parameter and len(told["error"]) > 10


def test_a_text_longer_than_is_read_is_too_much(client):
    found = client.post("/generate", json={"model": "tiny", "tokens": ids([1] * 20_001)})
    assert found.status_code == 413 and "20,001 tokens" in found.json()["error"]


def test_a_text_that_fails_half_way_says_so_in_its_stream(client, library, monkeypatch):
    model = library.open("tiny").checkpoint.model

    def fail(module, inputs, output):
        raise ValueError("the numbers grew too large")

    handle = model.unembed.register_forward_hook(fail)
    try:
        (_, (event, data)) = events(asked(client, "generate", model="tiny", tokens="1", max_new_tokens=3))
    finally:
        handle.remove()
    assert event == "error" and "can't be written on: the numbers grew too large" in data["error"]
