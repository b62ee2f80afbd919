"""Tests gradients of activations, and backward hooks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, some_inputs, tiny_config, tiny_model, unpadded


def last_logit(logits):
    return logits[0, -1, 3]


def gradients(model, inputs, **options):
    return model.run_with_gradients(*inputs, of=last_logit, **options)


@given(any_configs(), st.data())
def test_a_gradient_says_how_the_number_changes_with_the_tensor(config, data):
    """A small step along any direction, at any point, changes the number as the gradient says (in float64)."""
    model, inputs = tiny_model(config).double(), some_inputs(config, unpadded)
    output, found = gradients(model, inputs, names_filter=model.hook_names())
    assert set(found) == {name for name in model.hook_names() if not name.endswith("hook_mask")}
    _, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
    for name in data.draw(st.lists(st.sampled_from(sorted(found)), max_size=4, unique=True)):
        assert found[name].shape == cache[name].shape
        step = torch.randn(found[name].shape, dtype=torch.float64).where(cache[name].isfinite(), 0.0)

        def moved(size, name=name, step=step):
            hook = (name, lambda tensor, hook: tensor.double() + size * step)
            return float(last_logit(model.run_with_hooks(*inputs, fwd_hooks=[hook])).detach())

        slope = (moved(1e-6) - moved(-1e-6)) / 2e-6
        # A feed-forward layer's corners aside, where the slope on one side isn't that on the other.
        assert slope == pytest.approx(float((found[name] * step).sum()), abs=1e-4, rel=1e-3)
    torch.testing.assert_close(output, model(*inputs).detach())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_it_works_where_gradients_are_off_and_weights_frozen():
    model = tiny_model().requires_grad_(False)
    _, expected = gradients(tiny_model(), some_inputs(model.config))
    with torch.no_grad():
        _, found = gradients(model, some_inputs(model.config))
    assert list(found) == list(expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient)


def test_a_backward_hook_sees_the_gradient_and_may_replace_it_for_all_that_comes_before():
    model, inputs = tiny_model(n_layers=3), some_inputs(tiny_config())
    seen, stops, q = {}, "blocks.1.hook_resid_pre", "blocks.1.attn.hook_q"

    def stop(gradient, hook):
        seen[hook.name] = gradient.clone()
        return torch.zeros_like(gradient)

    before, after = "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"
    hooks = [(stops, stop), (q, lambda gradient, hook: seen.update({hook.name: gradient}))]  # also of no recorded point
    _, free = gradients(model, inputs, names_filter=[before, stops, after])
    _, stopped = gradients(model, inputs, names_filter=[before, stops, after], bwd_hooks=hooks)
    assert list(seen) == [q, stops] and list(stopped) == list(free)
    torch.testing.assert_close(seen[stops], free[stops])
    assert free[before].any() and not stopped[before].any()
    assert not stopped[stops].any(), "what is recorded is what the hooks left"
    torch.testing.assert_close(stopped[after], free[after])


def test_what_can_t_be_is_said():
    model, inputs = tiny_model(), some_inputs(tiny_config())
    with pytest.raises(ValueError, match="one number"):
        model.run_with_gradients(*inputs, of=lambda logits: logits[0])
    with pytest.raises(ValueError, match="no hook point"):
        gradients(model, inputs, bwd_hooks=[("blocks.9.attn.hook_q", print)])
    with pytest.raises(ValueError, match="must return None or a tensor of shape"):
        gradients(model, inputs, bwd_hooks=[("hook_embed", lambda gradient, hook: gradient[0])])
