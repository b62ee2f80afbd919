"""Tests the scores of a text's tokens, past the context too."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from pages.ui.models import activations, library
from tests import app_driver as app
from tests.tiny_models import CONTEXT
from transformer import MeanAblate, Sampling, Scale, SetAttention, Without
from transformer.api import generated_texts

CHANGES = (
    (),
    (Scale("blocks.0.attn.hook_z", 0), Scale("blocks.1.hook_mlp_out", None, 20)),
    (SetAttention("blocks.0.attn.hook_pattern", 1, 24, 19, 0.7),),
    (MeanAblate("blocks.0.hook_attn_out"),),
    (Without("mask"),),
)


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some.sampled_from(["shakespeare", "martin-fierro"]),
    some.integers(1, 3 * CONTEXT),
    some.integers(0, 9),
    some.sampled_from(CHANGES),
)
def test_each_token_is_scored_as_it_was_predicted(name, length, seed, changes):
    """In one go, and alone."""
    prompt = (5,)
    steps = app.generated(name, prompt, length, interventions=changes, seed=seed)
    tokens = prompt + tuple(step.token_id for step in steps)
    opened = library.opened(name)
    found = scored(opened, tokens, changes)
    assert len(steps) == len(found["logits"]) - 1
    for step, row, rank in zip(steps, found["logits"], found["rank"], strict=False):
        np.testing.assert_allclose(row, step.logits, atol=1e-4)
        assert rank == step.rank
    logits = activations.next_token(opened, tokens[:-1], (), changes)
    np.testing.assert_allclose(logits, steps[-1].logits, atol=1e-4)


def scored(opened, tokens, changes=()):
    return generated_texts.scores(opened, tokens, (), 1, Sampling(), changes).tensors


def passes_of(name, work):
    """How many passes of a model some work takes."""
    passes = []
    handle = library.model(name).model.embed.register_forward_hook(lambda *_: passes.append(1))
    try:
        work()
    finally:
        handle.remove()
    return len(passes)


def test_one_pass_serves_a_window():
    tokens, moves = tuple(i % 60 for i in range(41)), math.ceil((41 - CONTEXT) / (CONTEXT / 4))
    opened = library.opened("shakespeare")
    assert passes_of("shakespeare", lambda: scored(opened, tokens)) == 1 + moves
    whole = scored(opened, tokens)["logits"]
    with torch.no_grad():
        first = library.model("shakespeare").model(torch.tensor([tokens[:CONTEXT]]))[0]
    np.testing.assert_allclose(whole[:CONTEXT], first, atol=1e-5)


def test_changes_that_look_ahead_need_a_pass_for_each_place():
    tokens = tuple(i % 60 for i in range(30))
    opened = library.opened("shakespeare")
    assert passes_of("shakespeare", lambda: scored(opened, tokens, (Without("mask"),))) == 30
