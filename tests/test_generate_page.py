"""The page Generate: what is written is what the engine writes, and a visitor can stop it, go on and go elsewhere."""

import time

import numpy as np
import pytest
import torch

from pages.ui.models import library
from tests.app_driver import (
    cache_of,
    checked,
    go,
    link_of,
    live_text,
    named,
    open_drawers,
    press,
    prompt,
    start,
    text_of,
    type_prompt,
    write,
)
from tests.tiny_models import CONTEXT, EXAMPLES
from transformer import Sampling, generate

pytestmark = pytest.mark.usefixtures("folder")


def written_by_the_engine(prompt, tokens, **sampling):
    checkpoint = library.model("shakespeare")
    steps = generate(checkpoint.model, checkpoint.tokenizer.encode(prompt), max_new_tokens=tokens,
                     sampling=Sampling(**sampling), names_filter=())  # fmt: skip
    return checkpoint.tokenizer.decode([step.token_id for step in steps])


def test_generate_writes_as_many_tokens_as_the_dial_says_and_what_the_engine_says():
    at = write(start(tokens=30, seed=3, temperature=1.1, top_k=20, top_p=0.9))
    wanted = written_by_the_engine(EXAMPLES[0], 30, seed=3, temperature=1.1, top_k=20, top_p=0.9)
    assert text_of(at) == wanted
    assert "30 tokens written" in live_text(at)["status"]
    write(at)
    assert text_of(at).startswith(wanted) and len(text_of(at)) == 60


def test_a_step_writes_the_first_token_of_generate():
    stepwise, at_once = start(seed=9), write(start(seed=9, tokens=4))
    for tokens in range(1, 5):
        press(stepwise, "Step")
        assert text_of(stepwise) == text_of(at_once)[:tokens]


def test_the_candidates_are_the_model_s_odds_for_the_place_inspected():
    at = write(start(tokens=6, temperature=0.5))
    first = len(EXAMPLES[0])
    at = start(**link_of(at) | {"step": first + 2})
    shown = live_text(at)
    assert shown["selected"] == first + 2 and shown["query"] == first + 1
    text = EXAMPLES[0] + text_of(at)[:2]
    checkpoint = library.model("shakespeare")
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([checkpoint.tokenizer.encode(text)[-CONTEXT:]]))[0, -1].double()
    own, drawn_with = logits.softmax(-1), (logits / 0.5).softmax(-1)
    candidates = shown["candidates"]
    assert candidates["id"] == own.argsort(descending=True)[:10].tolist()
    assert np.allclose(candidates["probability"], own[candidates["id"]], rtol=1e-3)
    assert np.allclose(candidates["sampling"], drawn_with[candidates["id"]], rtol=1e-3)
    token = checkpoint.tokenizer.encode(text_of(at))[2]
    assert shown["probability"][first + 2] == pytest.approx(float(own[token]), rel=1e-3)
    pattern = cache_of("shakespeare", text)["pattern", 0][0, 0, -1]
    assert np.allclose(shown["weights"], pattern, atol=1e-4)
    assert shown["weights_start"] == len(text) - len(pattern)


def test_the_table_lists_every_token_that_was_written():
    at = write(start(tokens=7))
    table = open_drawers(at).dataframe[0].value
    assert table["position"].tolist() == list(range(len(EXAMPLES[0]), len(EXAMPLES[0]) + 7))
    assert len(table["token"]) == 7 and (table["probability"] > 0).all() and (table["rank"] >= 1).all()


def test_clear_takes_the_text_and_keeps_the_prompt():
    at = write(start(tokens=5))
    assert not named(at.button, "Clear").disabled
    press(at, "Clear")
    assert text_of(at) == "" and prompt(at) == EXAMPLES[0]
    assert named(at.button, "Clear").disabled
    assert "Nothing is written yet" in live_text(at)["status"]


def test_stop_ends_a_run_and_generate_goes_on():
    at = start(tokens=500, pace="slow")
    press(at, "Generate")
    assert named(at.button, "Generate").disabled and named(at.button, "Step").disabled
    assert live_text(at)["live"]
    press(at, "Stop")
    stopped = text_of(at)
    assert 1 <= len(stopped) < 500
    assert not live_text(at)["live"] and not named(at.button, "Generate").disabled
    time.sleep(0.7)
    assert text_of(checked(at.run())) == stopped
    named(at.select_slider, "Pace").set_value("unbounded")
    checked(named(at.slider, "Number of tokens").set_value(3).run())
    assert text_of(write(at)).startswith(stopped) and len(text_of(at)) == len(stopped) + 3


@pytest.mark.parametrize("page", ["Attention", "Positions"])
def test_another_page_ends_a_run(page):
    at = press(start(tokens=500, pace="slow"), "Generate")
    go(at, page)
    text = text_of(at)
    go(at, "Generate")
    assert text_of(at) == text and named(at.button, "Stop").disabled


def test_another_prompt_while_writing_drops_the_text_and_ends_the_run():
    at = press(start(tokens=500, pace="slow"), "Generate")
    type_prompt(at, "KING: ")
    assert text_of(at) == "" and named(at.button, "Stop").disabled
    assert live_text(at)["flags"] == "p" * len("KING: ")


def test_two_visitors_do_not_see_each_other():
    one, other = start(tokens=8, seed=1), start(tokens=8, seed=2)
    write(one)
    assert text_of(checked(other.run())) == ""
    write(other)
    assert text_of(one) != text_of(other)
    assert text_of(checked(one.run())) == written_by_the_engine(EXAMPLES[0], 8, seed=1, temperature=0.8)
