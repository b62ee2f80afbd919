"""Tests models that read in both directions, and fill masked words."""

import pytest
import torch

from tests.helpers import close, tiny_model
from transformer import Sampling, fill_masks, generate
from transformer.inference.interventions import Without


def encoder(**fields):
    return tiny_model(architecture="encoder-only", vocab_size=13, **fields)


@pytest.mark.parametrize("windows", [(), (2, 3)])
def test_a_token_sees_what_stands_before_it_and_after_it(windows):
    model = encoder(n_layers=1, attention_windows=windows)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    other = tokens.clone()
    other[0, 3] = 9
    reach = windows[0] if windows else 9
    changed = (model(tokens) != model(other)).any(-1)[0]
    assert changed.tolist() == [abs(at - 3) < reach for at in range(7)]


def test_masked_words_are_filled_the_surest_first_and_each_knows_those_before_it():
    model, tokens, mask = encoder(norm="post"), [3, 12, 5, 12, 12], 12
    steps, written = list(fill_masks(model, tokens, mask)), list(tokens)
    for step in steps:
        logits = model(torch.tensor([written]))[0]
        logits[:, mask] = -torch.inf
        left = [at for at, token in enumerate(written) if token == mask]
        assert step.position == max(left, key=lambda at: logits[at].softmax(-1).amax())
        assert step.token_id == logits[step.position].argmax()
        written[step.position] = step.token_id
    assert mask not in written
    drawn = [[step.token_id for step in fill_masks(model, tokens, mask, sampling=Sampling(seed=1))] for _ in "ab"]
    assert drawn[0] == drawn[1]


def test_a_separator_ends_the_first_segment():
    model = encoder(n_segments=2, separator_token_id=9)
    tokens, segments = torch.tensor([[1, 2, 9, 3, 4, 9, 5]]), torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    close(model(tokens), model(tokens, segments))
    assert not torch.equal(model(tokens), model(tokens, torch.zeros_like(tokens)))


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: generate(encoder(), [1], max_new_tokens=1), "fill_masks"),
        (lambda: next(fill_masks(tiny_model(), [1], 1)), "generate"),
        (lambda: encoder()(torch.tensor([[1]]), torch.tensor([[0]])), "no segments"),
        (lambda: Without("mask").check(encoder().config), "causal mask"),
        (lambda: encoder(n_segments=2)(torch.tensor([[1]]), torch.tensor([[2]])), "between 0 and 1"),
        (lambda: encoder(n_segments=2)(torch.tensor([[1, 1]]), torch.tensor([[0]])), "the tokens' shape"),
    ],
)
def test_what_it_can_t_do_is_a_sentence(act, words):
    with pytest.raises(ValueError, match=words):
        act()
