"""Tests the batched ablations against single interventions."""

import pytest
import torch
from hypothesis import given, strategies

from tests.browser.servers import ROOT
from tests.helpers import any_configs, close, some_inputs, tiny_config, tiny_model, unpadded
from transformer import Scaled, hook_points, load_checkpoint, silencing
from transformer.inference import effects
from transformer.inference.interventions import hooks_of


def texts(config):
    *source, tokens = (tuple(each[0].tolist()) for each in some_inputs(config, unpadded))
    return tokens, source[0] if source else ()


def run(model, tokens, source=(), *interventions):
    inputs = [torch.tensor([each]) for each in (source, tokens) if each]
    with torch.no_grad():
        return model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, model))[0]


@given(any_configs(), strategies.booleans())
def test_each_row_is_the_model_without_that_part_beside_what_is_changed_already(config, is_changed):
    model, (tokens, source) = tiny_model(config), texts(config)
    some = silencing(model, tokens, source).parts[:2] if is_changed else ()
    changed = tuple(Scaled(part.point, part.head, factor=2.0) for part in some)
    found = silencing(model, tokens, source, changed)
    close(found.plain, run(model, tokens, source, *changed))
    expected = sum(
        config.n_heads if name.endswith("hook_z") else name.endswith("hook_mlp_out") for name in hook_points(config)
    )
    assert len(found.parts) == len(found.logits) == expected
    for part, logits in zip(found.parts, found.logits, strict=True):
        close(logits, run(model, tokens, source, *changed, part))


def test_a_small_batch_says_the_same(monkeypatch):
    model, (tokens, source) = tiny_model(), texts(tiny_config())
    whole = silencing(model, tokens, source)
    monkeypatch.setattr(effects, "AT_ONCE", 1)
    close(silencing(model, tokens, source).logits, whole.logits)


def test_loss_and_logit_are_those_of_the_changed_model():
    model, (tokens, _) = tiny_model(), texts(tiny_config())
    found = silencing(model, tokens)
    right = torch.tensor(tokens[1:])

    def loss(logits):
        return torch.nn.functional.cross_entropy(logits[:-1], right)

    for row, part in enumerate(found.parts):
        changed = run(model, tokens, (), part)
        torch.testing.assert_close(found.loss(tokens)[row], loss(changed) - loss(found.plain))
        torch.testing.assert_close(found.logit(3, 5)[row], changed[3, 5] - found.plain[3, 5])
    with pytest.raises(ValueError, match="one token has no loss"):
        silencing(model, tokens[:1]).loss(tokens[:1])


def test_induction_needs_the_heads_that_make_it_up():
    """Of the eight heads of `induction`, one of each layer carries what repeats, and to silence it costs most."""
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "induction")
    tokens = checkpoint.tokenizer.encode("kR7wZq3xB kR7wZ")
    found = silencing(checkpoint.model, tokens)
    (q,) = checkpoint.tokenizer.encode("q")
    lost = found.logit(len(tokens) - 1, q)
    needed = sorted(range(len(lost)), key=lambda row: float(lost[row]))[:2]
    assert {(found.parts[row].point[:8], found.parts[row].head) for row in needed} == {("blocks.0", 0), ("blocks.1", 1)}
