"""Tests the scores of a text's tokens, past the context too."""

import math

import numpy as np
import pytest
import torch

from pages.ui.models import library
from tests.tiny_models import CONTEXT
from transformer import Sampling, Without
from transformer.api import generated_texts


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


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
