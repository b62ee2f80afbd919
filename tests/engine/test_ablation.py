"""Tests the batched ablations against single interventions."""

import pytest
import torch
from hypothesis import given, strategies

from tests.helpers import (
    any_configs,
    changed_logits,
    close,
    encoder_configs,
    some_text,
    tiny_config,
    tiny_model,
    unpadded,
)
from transformer import Scale, ablation, hook_points
from transformer.inference import ablation as module


@given(any_configs() | encoder_configs(), strategies.booleans(), strategies.sampled_from([1, module.AT_ONCE]))
def test_each_row_is_the_model_without_that_part_beside_what_is_changed_already(config, is_changed, at_once):
    """Also a few at a time."""
    model, (tokens, source) = tiny_model(config), some_text(config, unpadded)
    some = ablation(model, tokens, source).parts[:2] if is_changed else ()
    changed = tuple(Scale(part.point, part.head, factor=2.0) for part in some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", at_once)
        found = ablation(model, tokens, source, changed)
    close(found.plain, changed_logits(model, tokens, source, *changed))
    expected = sum(
        config.n_heads if name.endswith("hook_z") else name.endswith("hook_mlp_out") for name in hook_points(config)
    )
    assert len(found.parts) == len(found.logits) == expected
    for part, logits in zip(found.parts, found.logits, strict=True):
        close(logits, changed_logits(model, tokens, source, *changed, part))


def test_loss_and_logit_are_those_of_the_changed_model():
    model, (tokens, _) = tiny_model(), some_text(tiny_config(), unpadded)
    found = ablation(model, tokens)
    right = torch.tensor(tokens[1:])

    def loss(logits):
        return torch.nn.functional.cross_entropy(logits[:-1], right)

    for row, part in enumerate(found.parts):
        changed = changed_logits(model, tokens, (), part)
        torch.testing.assert_close(found.loss(tokens)[row], loss(changed) - loss(found.plain))
        torch.testing.assert_close(found.logit(3, 5)[row], changed[3, 5] - found.plain[3, 5])
    with pytest.raises(ValueError, match="one token has no loss"):
        ablation(model, tokens[:1]).loss(tokens[:1])
    with pytest.raises(ValueError, match="predicts what is masked"):
        ablation(tiny_model(architecture="encoder-only"), tokens).loss(tokens)
