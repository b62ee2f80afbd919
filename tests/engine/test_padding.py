"""Tests that padding changes nothing at real positions, nor does computing in pieces with a cache."""

from itertools import accumulate

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers import MODERN, any_configs, encoder_configs, modern_config, some_inputs, tiny_model
from transformer import KeyValueCache, ModelConfig

PAD = 0


def exact_model(config: ModelConfig) -> nn.Module:
    """In float64, so that only what is wrong differs by more than 1e-6."""
    return tiny_model(config).double()


def texts(batch: int, pos: int, seed: int = 0) -> Tensor:
    """Ids (batch, pos), none of them padding."""
    return torch.randint(1, 11, (batch, pos), generator=torch.Generator().manual_seed(seed))


def close(actual: Tensor, expected: Tensor, config: ModelConfig) -> None:
    """To 1e-6; a text that is turned by other angles only to what their float32 leaves, relative to all numbers."""
    scale, tolerance = torch.ones(()), 1e-6
    if config.positions == "rotary" and expected.numel():
        scale, tolerance = expected.abs().max().clamp(min=1), 1e-4
    torch.testing.assert_close(actual / scale, expected / scale, atol=tolerance, rtol=tolerance)


@st.composite
def padded_batches(draw, by_mask: bool, relative: bool):
    """(rows, starts, batch, mask): texts, where each begins in the batch, and what tells which of it is real."""
    sizes = draw(st.lists(st.integers(1 if by_mask else 0, 6), min_size=1, max_size=4))
    longest = max(sizes)
    starts = [draw(st.sampled_from([0, longest - size])) if relative else 0 for size in sizes]
    batch = texts(len(sizes), longest, seed=9) if by_mask else torch.full((len(sizes), longest), PAD)
    rows, mask = [texts(1, size, seed=row)[0] for row, size in enumerate(sizes)], torch.zeros(len(sizes), longest)
    for at, (row, start) in enumerate(zip(rows, starts, strict=True)):
        batch[at, start : start + len(row)] = row
        mask[at, start : start + len(row)] = 1
    return rows, starts, batch, {"attention_mask": mask} if by_mask else {}


@given(st.data(), st.booleans(), st.booleans())
def test_a_batch_of_unequal_lengths_gives_what_each_text_gives_alone(data, by_mask, explicit):
    """Padding has an id of its own, or an attention mask tells it, whatever its id. It is on the right, or on either
    side where that can't matter: for a mask tells where a text begins, or positions count only by their distance."""
    pad = None if by_mask else PAD
    config = data.draw(any_configs(pad_token_id=pad) | encoder_configs(pad_token_id=pad, n_segments=0))
    model, names = exact_model(config), None if explicit else ()
    side = padded_batches(by_mask, by_mask or config.positions in ("none", "rotary"))
    rows, starts, batch, mask = data.draw(side)
    if config.architecture == "encoder-decoder":  # which reads the padded texts, and has read two tokens, or is padded
        targets = texts(len(rows), 2, seed=50)
        targets[0] = targets[0] if by_mask else torch.tensor([5, PAD])
        together = model.run_with_cache(batch, targets, names_filter=names, **mask)[0]
        for row, target, found in zip(rows, targets, together, strict=True):
            target = target[target != PAD]
            if len(row):
                alone = model.run_with_cache(row[None], target[None], names_filter=names)[0][0]
                close(found[: len(target)], alone, config)
        return
    together = model.run_with_cache(batch, names_filter=names, **mask)[0]
    for row, start, found in zip(rows, starts, together, strict=True):
        if len(row):
            alone = model.run_with_cache(row[None], names_filter=names)[0][0]
            close(found[start : start + len(row)], alone, config)


@given(
    any_configs() | st.sampled_from(sorted(MODERN)).map(modern_config),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_in_pieces_with_a_cache_a_text_gives_what_it_gives_at_once(config, sizes, padded, explicit):
    """Some of the text is padding before it, or of the source, after it."""
    model, length, names = exact_model(config), sum(sizes), None if explicit else ()
    tokens, source = texts(2, length), []
    padded = padded and config.pad_token_id is None
    mask = torch.ones(2, length)
    mask[0, :1] = not padded
    if config.architecture == "encoder-decoder":
        source, of_source = [texts(2, 4, seed=1)], torch.ones(2, 4)
        of_source[0, 3:] = not padded
    past = KeyValueCache.for_model(config)

    def logits(piece: Tensor, past: KeyValueCache | None, end: int) -> Tensor:
        hidden = {"attention_mask": of_source if source else mask[:, :end]} if padded else {}
        return model.run_with_cache(*source, piece, past, names_filter=names, **hidden)[0]

    pieces = [
        logits(tokens[:, end - size : end], past, end) for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    real = ... if source else mask.bool()
    close(torch.cat(pieces, 1)[real], logits(tokens, None, length)[real], config)
    assert past.length == length


@given(any_configs(pad_token_id=PAD), st.booleans(), st.booleans())
def test_a_query_that_sees_nothing_gets_zeros_and_nothing_is_no_number(config, explicit, all_of_the_source):
    model = tiny_model(config)
    inputs = some_inputs(config)  # padded on the left in the first row
    inputs[0][0] = PAD if all_of_the_source else inputs[0][0]
    points = ["hook_z", "hook_pattern"] if explicit else ["hook_z"]
    output, cache = model.run_with_cache(*inputs, names_filter=lambda name: name.endswith(tuple(points)))
    assert output.isfinite().all()
    for name, tensor in cache.items():
        assert tensor.isfinite().all(), name
        if name.endswith("hook_pattern"):
            close(tensor.sum(-1), (tensor != 0).any(-1).float(), config)  # one, or nothing at all
        elif "cross_attn" in name:
            assert bool((tensor[0] == 0).all()) == all_of_the_source, name
        else:
            real = inputs[0 if name.startswith("encoder.") else -1] != PAD
            is_encoder = name.startswith("encoder.")
            seen = real.any(1, keepdim=True).expand_as(real) if is_encoder else real.cumsum(1) > 0
            zeros = (tensor == 0).all(-1).all(-1)
            assert zeros[~seen].all(), name
            if config.residual:  # without, zeros may also be what an earlier block handed on
                assert torch.equal(zeros, ~seen), name
    output.square().mean().backward()
    reached = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    assert "unembed.weight" in reached or "embed.weight" in reached
    assert all(gradient.isfinite().all() for gradient in reached.values())
