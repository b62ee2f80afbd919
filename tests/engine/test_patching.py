"""Tests ablations and activation patching against whole passes with one activation changed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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
from transformer import MeanAblate, Scale, Without, ablation, hook_points, patching
from transformer.inference import ablation as ablating
from transformer.inference import patching as module
from transformer.inference.interventions import hooks_of

ANY = any_configs() | encoder_configs()
ENDINGS = ("hook_resid_pre", "hook_attn_out", "hook_cross_attn_out", "hook_mlp_out")


@given(ANY, st.booleans(), st.sampled_from([1, ablating.AT_ONCE]))
def test_each_ablation_is_the_model_without_that_part_beside_what_is_changed_already(config, is_changed, at_once):
    """Also a few at a time."""
    model, (tokens, source) = tiny_model(config), some_text(config, unpadded)
    some = ablation(model, tokens, source).parts[:2] if is_changed else ()
    changed = tuple(Scale(part.point, part.head, factor=2.0) for part in some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablating, "AT_ONCE", at_once)
        found = ablation(model, tokens, source, changed)
    close(found.plain, changed_logits(model, tokens, source, *changed))
    expected = sum(
        config.n_heads if name.endswith("hook_z") else name.endswith("hook_mlp_out") for name in hook_points(config)
    )
    assert len(found.parts) == len(found.logits) == expected

    def loss(logits):
        return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(tokens[1:]))

    for row, (part, logits) in enumerate(zip(found.parts, found.logits, strict=True)):
        close(logits, changed_logits(model, tokens, source, *changed, part))
        close(found.logit(3, 5)[row], logits[3, 5] - found.plain[3, 5])
        if config.is_causal:
            torch.testing.assert_close(found.loss(tokens)[row], loss(logits) - loss(found.plain), atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="one token has no loss" if config.is_causal else "predicts what is masked"):
        ablation(model, tokens[:1], source).loss(tokens[:1])


def with_another(tokens, place):
    """The same text with another token at a place, none that stands for padding."""
    other = next(token for token in (1, 2) if token != tokens[place])
    return (*tokens[:place], other, *tokens[place + 1 :])


@given(ANY, st.data())
def test_each_number_of_patching_is_that_of_a_whole_pass_with_one_place_replaced(config, data):
    if not config.n_layers or config.n_encoder_layers == 0:
        return
    model, (clean, source) = tiny_model(config), some_text(config, unpadded)
    place = data.draw(st.integers(0, len(source or clean) - 1))
    stack = data.draw(st.sampled_from(["", "encoder", "decoder"])) if source else "self"
    position = len(clean) - 1 if config.is_causal else data.draw(st.integers(0, len(clean) - 1))
    other = (clean, with_another(source, place)) if source else (with_another(clean, place), ())
    some = [Scale("decoder.hook_embed" if source else "hook_embed", factor=0.5)]
    some += [Without("mask")] if config.is_causal else []
    some += [MeanAblate("blocks.0.hook_attn_out")] if "blocks.0.hook_attn_out" in hook_points(config) else []
    changes = data.draw(st.lists(st.sampled_from(some), max_size=2, unique=True))

    hooks = hooks_of(changes, model)

    def logits(text, *more):
        inputs = [torch.tensor([each]) for each in reversed(text) if each]
        with torch.no_grad():
            logits, cache = model.run_with_cache(*inputs, fwd_hooks=[*hooks, *more])
        return logits[0, position].double(), cache

    (right, cache), (wrong, _) = logits((clean, source)), logits(other)
    difference = right - wrong
    answer, against = int(difference.argmax()), int(difference.argmin())
    if difference.max() - difference.min() < 0.01:
        return  # what is left of it would be rounding
    shares = []
    with pytest.MonkeyPatch.context() as monkeypatch:  # batches of any size say the same
        monkeypatch.setattr(module, "ROWS", data.draw(st.sampled_from([1, 3, module.ROWS])))
        asked = {"stack": stack, "position": position, "interventions": changes, "on_progress": shares.append}
        found = patching(model, clean, other[0], answer, against, source, other[1], **asked)
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1)
    prefix = {"self": "", "": "encoder."}.get(stack, f"{stack}.")
    points = {point for point in hook_points(config) if point.startswith(prefix) and point.endswith(ENDINGS)}
    assert {point for layers in found.points for point in layers} == points
    assert found.restored.shape[2] == len(source if prefix == "encoder." else clean)
    site, layer, at = (data.draw(st.integers(0, size - 1)) for size in found.restored.shape)
    point = found.points[site][layer]

    def put_in(tensor, hook):
        tensor[:, at] = cache[point][:, at]

    patched, _ = logits(other, (point, put_in))
    share = (float(patched[answer] - patched[against]) - found.corrupted) / (found.clean - found.corrupted)
    assert float(found.restored[site, layer, at]) == pytest.approx(share, abs=2e-3, rel=2e-3)


def test_what_can_t_be_patched_is_said():
    model, (tokens, _) = tiny_model(), some_text(tiny_config(), unpadded)
    encoder = tiny_model(architecture="encoder-only")
    for asked, words in (
        ((model, tokens, tokens[1:]), "texts have 8 and 7 tokens"),
        ((model, tokens, tokens), "no difference to trace"),
        ((tiny_model(n_layers=0), tokens, tokens[::-1]), "no layers"),
        ((model, tokens, tokens[::-1], 0), "after the last token"),
        ((encoder, tokens, tokens[::-1], 8), "none at position 8"),
    ):
        with pytest.raises(ValueError, match=words):
            patching(*asked[:3], 3, 5, position=(*asked, -1)[3])
