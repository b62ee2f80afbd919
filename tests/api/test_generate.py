"""Tests that the API's generation, scores and masked words equal the engine's."""

import base64
import re
import time

import numpy as np
import pytest
import torch

from tests.api.conftest import events_of, ids, served
from tests.helpers import close
from tests.tiny_models import CONTEXT
from tests.training_plans import until
from transformer import (
    Client,
    MeanAblate,
    Patch,
    Recording,
    Sampling,
    Scale,
    SetAttention,
    Without,
    fill_masks,
    generate,
    to_code,
)
from transformer.api import generated_texts, predictions
from transformer.data import token_names
from transformer.inference.analysis import LogitsError
from transformer.inference.context_windows import window_start
from transformer.inference.generation import write_greedily
from transformer.inference.scheduler import schedulers

PROMPT = (3, 1, 4, 1, 5)
SAMPLING = {"temperature": 0.9, "top_k": 20, "top_p": 0.95, "seed": 7}
CHANGES = {
    "as it is": (),
    "a head": (Scale("blocks.0.attn.hook_z", 0), Scale("blocks.1.hook_mlp_out", None, 20)),
    "looking ahead": (MeanAblate("blocks.0.hook_attn_out"), Without("mask")),
    "a weight": (
        Patch("blocks.1.hook_resid_pre", tokens=(1, 2, 3)),
        SetAttention("blocks.0.attn.hook_pattern", 1, 19, 18, 0.7),
    ),
}
changed = pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)


def asked(client, path, expected=200, **query):
    found = client.get(f"/{path}", params={name: each for name, each in query.items() if each is not None})
    assert found.status_code == expected, found.text
    return found


def written(client, tokens=PROMPT, model="rotary", changes=(), **query):
    """The tokens of a text that is continued, as its events have them."""
    query = {"max_new_tokens": 2 * CONTEXT, **SAMPLING, **query}
    found = events_of(asked(client, "generate", model=model, tokens=ids(tokens), changes=coded(changes), **query))
    assert found[0][0] == "begin" and found[-1][0] == "end", found[-1]
    return [data for event, data in found if event == "token"]


def coded(changes):
    return "!".join(map(to_code, changes)) or None


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def steps_of(library, tokens=PROMPT, model="rotary", changes=(), count=2 * CONTEXT, **more):
    engine, sampling = library.open(model).checkpoint.model, Sampling(**SAMPLING)
    return list(generate(engine, tokens, max_new_tokens=count, sampling=sampling, interventions=changes, **more))


def recording(client, path, **query):
    return Recording.from_bytes(asked(client, path, **query).content)


# A stream


@changed
def test_a_text_is_what_generation_writes_past_the_context_too(client, library, changes):
    """With the newest row of a head's pattern beside each token."""
    point = "blocks.1.attn.hook_pattern"
    found = written(client, changes=changes, attention="blocks.1.attn", head=1)
    label = library.open("rotary").checkpoint.tokenizer.label
    for token, step in zip(found, steps_of(library, changes=changes, names_filter=point), strict=True):
        assert (token["position"], token["id"], token["rank"]) == (step.position, step.token_id, step.rank)
        assert token["window_start"] == step.window_start == window_start(step.position, CONTEXT)
        assert (token["point"], token["label"]) == (step.point, label(step.token_id))
        told = [token["probability"], token["entropy"]]
        np.testing.assert_allclose(told, [step.probability, step.entropy], atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(floats(token["logits"]), step.logits, atol=1e-5)
        np.testing.assert_allclose(floats(token["row"]), step.cache[point][0, 1, -1], atol=1e-5)
        assert token["row_start"] == step.window_start == step.position - len(floats(token["row"]))


def test_of_a_large_vocabulary_the_likeliest_are_told_and_what_all_have_together(client, library):
    found = written(client, model="many", max_new_tokens=6)
    for token, step in zip(found, steps_of(library, model="many", count=6), strict=True):
        logits, top = step.logits.numpy(), token["top"]
        np.testing.assert_allclose(floats(top["logits"]), np.sort(logits)[::-1][: generated_texts.LIKELIEST], atol=1e-5)
        np.testing.assert_allclose(floats(top["logits"]), logits[top["ids"]], atol=1e-5)
        assert top["normaliser"] == pytest.approx(float(np.log(np.exp(logits.astype(float)).sum())), abs=1e-5)
        assert {str(each) for each in [step.token_id, *top["ids"][: generated_texts.NAMED]]} <= token["kinds"].keys()


def test_a_translator_s_text_ends_with_the_token_that_says_so(client, library):
    checkpoint, length = library.open("translator").checkpoint, [1]
    source = checkpoint.tokenizer.encode("two hundred and five")

    def prefer_the_end(module, inputs, output):
        length[0] += 1
        output = output.clone()
        output[..., checkpoint.card.end_token_id] += 100.0 * (length[0] > 4)
        return output

    asks = {"model": "translator", "tokens": str(checkpoint.card.start_token_id), "source": ids(source)}
    asks["attention"] = "decoder.blocks.0.cross_attn"
    handle = checkpoint.model.unembed.register_forward_hook(prefer_the_end)
    try:
        found = events_of(asked(client, "generate", max_new_tokens=20, temperature=0, **asks))
    finally:
        handle.remove()
    tokens = [data for event, data in found if event == "token"]
    assert found[-1] == ("end", {"reason": "stop"}) and len(tokens) == 4 and tokens[-1]["label"] == "[end]"
    assert all(token["row_start"] == 0 and len(floats(token["row"])) == len(source) for token in tokens)
    rows = recording(client, "rows", first=1, last=1, **asks).tensors
    np.testing.assert_allclose(rows["rows"], floats(tokens[0]["row"]), atol=1e-5)


def test_a_broken_text_goes_on_as_if_it_never_broke(client):
    whole = [token["id"] for token in written(client, max_new_tokens=40)]
    for kept in (1, 17, 39):
        more = written(client, [*PROMPT, *whole[:kept]], max_new_tokens=40 - kept)
        assert [token["id"] for token in more] == whole[kept:]
    body = {"model": "rotary", "tokens": ids(PROMPT), "max_new_tokens": 5, **SAMPLING}
    found = events_of(client.post("/generate", json=body))
    assert [data["id"] for event, data in found if event == "token"] == whole[:5]


def test_who_goes_away_ends_the_computing(client, library):
    model, passes = library.open("rotary").checkpoint.model, []
    handle = model.register_forward_pre_hook(lambda *_: passes.append(time.sleep(0.02)))
    try:
        with served(client.app) as url:
            steps = Client(url).generate("rotary", "a", max_new_tokens=500, seed=1)
            next(steps)
            steps.close()
            until(lambda: not schedulers.of(model).texts)
            computed = len(passes)
            time.sleep(0.1)
            assert len(passes) == computed < 450
    finally:
        handle.remove()


def test_a_text_that_fails_half_way_says_so_in_its_stream(client, library):
    def fail(module, inputs, output):
        raise ValueError("the numbers grew too large")

    handle = library.open("rotary").checkpoint.model.unembed.register_forward_hook(fail)
    try:
        (_, (event, data)) = events_of(asked(client, "generate", model="rotary", tokens="1", max_new_tokens=3))
    finally:
        handle.remove()
    assert event == "error" and "can't be written on: the numbers grew too large" in data["error"]


# What is asked of a text that is there


@changed
@pytest.mark.parametrize("model", ["rotary", "many"])
def test_scores_say_what_writing_said(client, model, changes):
    found = written(client, model=model, changes=changes)
    tokens, about = [*PROMPT, *(token["id"] for token in found)], {"model": model, "changes": coded(changes)}
    scores = recording(client, "scores", tokens=ids(tokens), first=len(PROMPT), **about, **SAMPLING)
    found += written(client, tokens, model=model, changes=changes, max_new_tokens=1)
    tensors = scores.tensors
    assert scores.metadata["first"] == len(PROMPT) and len(tensors["drawn"]) == len(found)
    for at, token in enumerate(found):
        assert (tensors["drawn"][at], tensors["points"][at]) == (token["id"], token["point"])  # the same dials
        assert (tensors["rank"][at], tensors["window_start"][at]) == (token["rank"], token["window_start"])
        assert tensors["probability"][at] == pytest.approx(token["probability"], abs=1e-5)
        assert tensors["entropy"][at] == pytest.approx(token["entropy"], abs=1e-4)
        if model == "rotary":
            np.testing.assert_allclose(tensors["logits"][at], floats(token["logits"]), atol=1e-5)
        else:
            np.testing.assert_allclose(tensors["top_logits"][at], floats(token["top"]["logits"]), atol=1e-5)
            assert tensors["normaliser"][at] == pytest.approx(token["top"]["normaliser"], abs=1e-5)
        assert str(token["id"]) in scores.metadata["kinds"]


@changed
def test_rows_are_the_pattern_of_the_window_that_a_token_was_chosen_in(client, library, changes):
    model, point = library.open("rotary").checkpoint.model, "blocks.1.attn.hook_pattern"
    tokens = [*PROMPT, *(token["id"] for token in written(client, changes=changes, max_new_tokens=20))]
    asks = {"tokens": ids(tokens), "changes": coded(changes), "attention": "blocks.1.attn", "head": 1}
    found = recording(client, "rows", model="rotary", first=12, last=25, **asks).tensors
    assert found["place"].tolist()[-3:] == [23, 24, 25]
    ends = np.cumsum(found["length"])
    for place, start, length, end in zip(found["place"], found["start"], found["length"], ends, strict=True):
        assert start == window_start(int(place), CONTEXT) and length == place - start
        (step,) = generate(model, tokens[:place], max_new_tokens=1, interventions=changes, names_filter=point)
        np.testing.assert_allclose(found["rows"][end - length : end], step.cache[point][0, 1, -1], atol=1e-5)


def test_what_is_expected_at_each_mask_is_what_the_model_says_there(client, library):
    checkpoint = library.open("encoder").checkpoint
    mask = checkpoint.card.mask_token_id
    tokens = checkpoint.tokenizer.encode("To [mask]e or[mask]")
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([tokens]))[0].double()
    logits[:, mask] = -torch.inf
    answer = asked(client, "masked", text="To [mask]e or[mask]", model="encoder").json()
    assert [found["position"] for found in answer["masks"]] == [3, 8]
    for found in answer["masks"]:
        best = logits[found["position"]].softmax(-1).sort(descending=True)
        assert [candidate["id"] for candidate in found["candidates"]] == best.indices[:10].tolist()
        probabilities = [candidate["probability"] for candidate in found["candidates"]]
        close(torch.tensor(probabilities, dtype=torch.float64), best.values[:10])
    assert answer["kinds"][str(mask)][0] == "[mask]"
    assert asked(client, "masked", text="To be", model="encoder").json()["masks"] == []


@pytest.mark.parametrize("model", ["rotary", "translator", "many", "encoder"])
def test_predictions_are_those_of_one_pass_and_an_encoder_s_those_of_each_token_masked(client, library, model):
    checkpoint, source = library.open(model).checkpoint, (4, 2, 3) if model == "translator" else ()
    change = Without("later" if model == "encoder" else "mask")
    asks = {"model": model, "tokens": ids(PROMPT), "source": ids(source) or None, "changes": coded([change])}
    found = recording(client, "predictions", first=1, last=3, **asks)
    for row, at in enumerate(range(1, 4)):
        mask = checkpoint.card.mask_token_id
        text = [mask if place == at and model == "encoder" else token for place, token in enumerate(PROMPT)]
        inputs = [torch.tensor([each]) for each in (source, text) if each]
        with torch.no_grad():
            hooks = change.fwd_hooks(checkpoint.model)
            expected = checkpoint.model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, at]
        if "top_ids" in found.tensors:
            best = expected.sort(descending=True, stable=True)
            assert found.tensors["top_ids"][row].tolist() == best.indices[:64].tolist()
            close(torch.tensor(found.tensors["normaliser"][row]), expected.logsumexp(-1))
            expected, logits = best.values[:64], found.tensors["top_logits"][row]
        else:
            logits = found.tensors["logits"][row]
        close(torch.tensor(logits), expected)
    assert {str(token) for token in PROMPT} <= found.metadata["kinds"].keys()
    assert len(recording(client, "predictions", **asks).tensors.popitem()[1]) == len(PROMPT)
    which = "source" if source else "tokens"
    others = [ids(order) for order in (sorted(source or PROMPT), (source or PROMPT)[::-1])]
    both = recording(client, "predictions", first=2, last=2, orders=others, **asks).tensors
    for row, order in enumerate([asks[which], *others]):
        alone = recording(client, "predictions", first=2, last=2, **{**asks, which: order}).tensors
        assert all(np.array_equal(both[name][row], alone[name][0]) for name in alone)


def test_of_a_large_encoder_few_tokens_are_masked_in_turn(client, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_COMPUTE", 1)
    told = asked(client, "predictions", 413, model="encoder", tokens=ids([5] * 12)).json()
    assert told["parameter"] == "first" and "At most 8 tokens" in told["error"]
    assert asked(client, "predictions", model="encoder", tokens=ids([5] * 12), last=7)


def test_tokens_are_named_as_they_look_in_a_text_unless_they_cannot_be_seen(library):
    for text, label, shown in (
        *((" ", "␣", " "), ("\n", "↵", "\n"), ("", "<pad>", " <pad>"), ("<script>", "<script>", "<script>")),
        ("\x00", "<0x00>", "<0x00>"),
        ("\u202e", "<U+202E>", "<U+202E>"),  # would turn the direction of everything after it
    ):
        assert token_names._shown_as(text, label) == shown
    for model, text, names in (("translator", "five", ["five", " five", "five"]), ("rotary", "a", ["a", "a"])):
        tokenizer = library.open(model).checkpoint.tokenizer
        (token,) = tokenizer.encode(text)
        assert token_names.kinds_of(tokenizer, [token]) == {str(token): names}


# What can't be


ONE = {"model": "rotary", "tokens": "1"}
TWO = {"model": "rotary", "tokens": "1,2", "attention": "blocks.0.attn"}
WRONG = [
    ("generate", {"model": "nobody", "tokens": "1"}, 404, "model"),
    ("generate", ONE | {"version": "of-yesterday"}, 409, "version"),
    ("generate", {"model": "rotary"}, 400, "text"),
    *(("generate", {"model": "rotary", "tokens": tokens}, 400, "tokens") for tokens in ("99999", "1,,2")),
    *(("generate", {"model": "rotary", "text": text}, 400, "text") for text in ("", "é")),
    ("generate", ONE | {"source": "1"}, 400, "source"),
    ("generate", {"model": "translator", "tokens": "1"}, 400, "source"),
    *(("generate", ONE | {"temperature": value}, 400, "temperature") for value in (-1, "nan")),
    *(("generate", ONE | {name: 0}, 400, name) for name in ("top_k", "top_p")),
    ("generate", ONE | {"max_new_tokens": 10**9}, 400, "max_new_tokens"),
    ("generate", ONE | {"attention": "blocks.9.attn"}, 400, "attention"),
    ("generate", ONE | {"attention": "blocks.0.attn", "head": 2}, 400, "head"),
    ("generate", ONE | {"changes": "nonsense"}, 400, "changes"),
    ("generate", {"model": "encoder", "text": "To [mask]e"}, 400, "tokens"),
    ("masked", {"model": "rotary", "text": "To be"}, 400, "model"),
    *(("scores", {"model": "rotary", "tokens": "1,2", "first": first}, 400, "first") for first in (3, 0)),
    *(
        ("predictions", {"model": "rotary", "tokens": "1,2", "first": first, "last": last}, 400, "last")
        for first, last in ((1, 0), (0, 2), (2, None))
    ),
    *(
        (
            "predictions",
            {"model": "rotary", "tokens": "1,2", "orders": orders, "first": first, "last": 1},
            400,
            "orders",
        )
        for orders, first in ((["2,3"], 1), (["2"], 1), (["2,1"], 0), (["2,1"] * 17, 1))
    ),
    *(("rows", TWO | {"first": first, "last": last}, 400, "last") for first, last in ((2, 1), (1, 3))),
    ("rows", TWO | {"attention": "nowhere", "first": 1, "last": 1}, 400, "attention"),
]


def test_what_can_not_be_asked_is_answered_with_a_sentence_about_the_parameter(client):
    for path, query, status, parameter in WRONG:
        told = asked(client, path, status, **query).json()
        assert told["parameter"] == parameter and len(told["error"]) > 10, query
    found = client.post("/generate", json={"model": "rotary", "tokens": ids([1] * 20_001)})
    assert found.status_code == 413 and "20,001 tokens" in found.json()["error"]


OTHERS = {
    "outline": {},
    "overview": {},
    "tensors": {"names": ["logits", "probabilities"]},
    "lens": {"position": 1},
    "attribution": {"position": 1, "token": 3},
    "checks": {},
    "export": {"format": "html", "view": "inside"},
}
NO_NUMBERS = r"The model's logits are not numbers: with its weights, or with what is changed in it, .*\.$"


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_logits_that_are_no_numbers_are_a_sentence_wherever_they_are_asked_for(client, library, value):
    broken = lambda module, inputs, output: torch.full_like(output, value)  # noqa: E731
    encoder, text = library.open("encoder").checkpoint.model, {"model": "rotary", "text": "To be"}
    handles = [
        each.unembed.register_forward_hook(broken) for each in (library.open("rotary").checkpoint.model, encoder)
    ]
    try:
        for seed, temperature in enumerate((0, 1)):
            (_, (event, data)) = events_of(asked(client, "generate", temperature=temperature, seed=seed, **text))
            assert event == "error" and re.search(NO_NUMBERS, data["error"])
            told = asked(client, "scores", 400, first=1, temperature=temperature, seed=seed, **text).json()["error"]
            assert re.match(NO_NUMBERS, told)
        assert re.match(NO_NUMBERS, asked(client, "masked", 400, model="encoder", text="To [mask]e").json()["error"])
        assert re.match(NO_NUMBERS, asked(client, "predictions", 400, **text).json()["error"])
        for path, more in (("ablation", {}), ("patching", {"clean_text": "So be", "answer": 3, "against": 4})):
            event, data = events_of(asked(client, path, **text, **more))[-1]
            assert event == "error" and re.match(NO_NUMBERS, data["error"])
        for path, more in OTHERS.items():
            response = client.get(f"/{path}", params={**text, **more})
            assert response.status_code == 200 or re.match(NO_NUMBERS, response.json()["error"]), (path, response.text)
        with pytest.raises(LogitsError):
            write_greedily(library.open("rotary").checkpoint.model, torch.tensor([[1], [2]]), 2)
        with pytest.raises(LogitsError):
            next(fill_masks(encoder, [0, 1], 0))
    finally:
        for handle in handles:
            handle.remove()
