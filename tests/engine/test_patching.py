"""Tests activation patching against whole passes with one activation patched."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import (
    any_configs,
    changed_logits,
    encoder_configs,
    some_text,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import MeanAblate, Scale, Without, hook_points, patching
from transformer.inference import patching as module
from transformer.inference.interventions import hooks_of


def run(model, tokens, source=(), *interventions, position=-1):
    return changed_logits(model, tokens, source, *interventions)[position].double()


def with_another(tokens, place, config):
    """The same text with another token at a place, none that stands for padding."""
    other = next(token for token in (1, 2) if token != tokens[place])
    return (*tokens[:place], other, *tokens[place + 1 :])


@given(any_configs() | encoder_configs(), st.data())
def test_each_number_is_that_of_a_whole_pass_with_one_place_replaced(config, data):
    if not config.n_layers or config.n_encoder_layers == 0:
        return
    model, (clean, source) = tiny_model(config), some_text(config, unpadded)
    place = data.draw(st.integers(0, len(source or clean) - 1))
    stack = data.draw(st.sampled_from(["encoder", "decoder"])) if source else "self"
    position = len(clean) - 1 if config.is_causal else data.draw(st.integers(0, len(clean) - 1))
    corrupted, other_source = (
        (clean, with_another(source, place, config)) if source else (with_another(clean, place, config), ())
    )
    some = [
        Scale("hook_embed" if not source else "decoder.hook_embed", factor=0.5),
        *(
            change
            for change in (Without("mask"), MeanAblate("blocks.0.hook_attn_out"))
            if (config.is_causal if isinstance(change, Without) else change.point in hook_points(config))
        ),
    ]
    changes = data.draw(st.lists(st.sampled_from(some), max_size=2, unique=True))
    pair = (clean, source), (corrupted, other_source)
    one, other = (run(model, *text, *changes, position=position) for text in pair)
    difference = one - other
    answer, against = int(difference.argmax()), int(difference.argmin())
    if difference.max() - difference.min() < 0.01:
        return  # what is left of it would be rounding
    with pytest.MonkeyPatch.context() as monkeypatch:  # batches of any size say the same
        monkeypatch.setattr(module, "ROWS", data.draw(st.sampled_from([1, 3, module.ROWS])))
        where = {"stack": stack, "position": position}
        found = patching(model, clean, corrupted, answer, against, source, other_source, **where, interventions=changes)
    site, layer = data.draw(st.integers(0, len(found.sites) - 1)), data.draw(st.integers(0, 1)) % len(found.points[0])
    at = data.draw(st.integers(0, found.restored.shape[-1] - 1))

    whole = _whole(model, clean, corrupted, source, other_source, found, (site, layer, at), changes)[position]
    share = (float(whole[answer] - whole[against]) - found.corrupted) / (found.clean - found.corrupted)
    assert float(found.restored[site, layer, at]) == pytest.approx(share, abs=2e-3, rel=2e-3)


def _whole(model, clean, corrupted, source, other_source, found, cell, changes):
    """Logits of the corrupted text, read from its beginning, with one cell as on the clean text."""
    site, layer, at = cell
    point = found.points[site][layer]
    good, bad = (
        [torch.tensor([each]) for each in pair if each] for pair in ((source, clean), (other_source, corrupted))
    )
    hooks = hooks_of(changes, model)
    with torch.no_grad():
        _, cache = model.run_with_cache(*good, names_filter=point, fwd_hooks=hooks)

        def put_in(tensor, hook):
            tensor = tensor.clone()
            tensor[:, at] = cache[point][:, at]
            return tensor

        return model.run_with_hooks(*bad, fwd_hooks=[*hooks, (point, put_in)])[0].double()


def test_a_source_is_patched_in_the_encoder_unless_the_decoder_is_asked_for():
    model = tiny_encoder_decoder()
    tokens, source = some_text(model.config, unpadded)
    texts_of_two = tokens, tokens, 3, 5, source, with_another(source, len(source) - 1, model.config)
    found = patching(model, *texts_of_two)
    assert found.sites == ("stream", "attention", "feed-forward") and found.restored.shape == (3, 2, len(source))
    torch.testing.assert_close(found.restored[0, 0, -1], torch.tensor(1.0), atol=1e-4, rtol=0)
    found = patching(model, *texts_of_two, stack="decoder")
    assert found.sites == ("stream", "attention", "cross-attention", "feed-forward")
    assert found.restored.shape == (4, 2, len(tokens))
    assert found.restored[0, 0].abs().max() < 1e-5  # both texts are the same up to there


def test_what_can_t_be_patched_is_said():
    model, (tokens, _) = tiny_model(), some_text(tiny_config(), unpadded)
    with pytest.raises(ValueError, match="texts have 8 and 7 tokens"):
        patching(model, tokens, tokens[1:], 3, 5)
    with pytest.raises(ValueError, match="no difference to trace"):
        patching(model, tokens, tokens, 3, 5)
    with pytest.raises(ValueError, match="no layers"):
        patching(tiny_model(n_layers=0), tokens, tokens[::-1], 3, 5)
    with pytest.raises(ValueError, match="after the last token"):
        patching(model, tokens, tokens[::-1], 3, 5, position=0)
    with pytest.raises(ValueError, match="none at position 8"):
        patching(tiny_model(architecture="encoder-only"), tokens, tokens[::-1], 3, 5, position=8)
