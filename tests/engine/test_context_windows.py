"""Tests texts longer than the context: the window moves by a quarter of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import MODERN, close, tiny_model
from transformer import MeanAblate, Patch, Sampling, Scale, SetAttention, Steer, Without, generate, in_window
from transformer.inference.context_windows import by_window, window_start
from transformer.inference.interventions import hooks_of

CONTEXT = 12
SOURCE = [4, 1, 7, 2, 9]
MODELS = {
    **{kind: {"positions": kind} for kind in ("learned", "sinusoidal", "rotary", "none")},
    "encoder–decoder": {"architecture": "encoder-decoder"},
    "encoder–decoder, learned": {"architecture": "encoder-decoder", "positions": "learned", "pad_token_id": 0},
    **{kind: {"n_heads": 4, **fields} for kind, fields in MODERN.items()},
}
CHANGES = [
    (Scale("blocks.0.attn.hook_z", 1),),
    (Scale("blocks.1.hook_mlp_out", None, 14, 3.0), Steer("blocks.0.hook_resid_pre", None, 16, (1, 2), (3,))),
    (MeanAblate("blocks.0.hook_attn_out"),),
    (Without("mask"),),
    (Without("positions"), Without("scale")),
    (Patch("blocks.1.hook_resid_pre", tokens=(1, 2, 3, 4, 5, 6, 7, 8)),),
    (
        SetAttention("blocks.0.attn.hook_pattern", 1, 17, 11, 0.7),
        SetAttention("blocks.1.attn.hook_pattern", 0, 9, 2, 0.6),
    ),
]
"""Their positions count from the text's start."""


@given(st.integers(1, 500), st.integers(1, 60), st.integers(1, 100))
def test_a_window_begins_at_the_first_quarter_from_which_the_text_fits(first, count, context):
    lengths = range(first, first + count)
    for length in lengths:
        quarters = range(0, length + 1, max(1, context // 4))
        assert window_start(length, context) == next(start for start in quarters if length - start <= context)
    groups = by_window(lengths, context)
    assert [length for _, group in groups for length in group] == [*lengths]
    assert all(window_start(length, context) == begin for begin, group in groups for length in group)
    assert len({begin for begin, _ in groups}) == len(groups)


def check(model, interventions=(), steps=CONTEXT + 10, prompt=(3, 1, 4, 1, 5)) -> set[int]:
    """Every step of a text that grows past the context is a full pass over the window that it names."""
    config, sequence = model.config, list(prompt)
    source = SOURCE if config.architecture == "encoder-decoder" else None
    asked = {"max_new_tokens": steps, "sampling": Sampling(seed=3), "interventions": interventions, "source": source}
    begins = set()
    for step in generate(model, prompt, **asked):
        begin = window_start(len(sequence), config.context_length)
        assert step.window_start == begin
        hooks = hooks_of(in_window(interventions, begin), model)
        inputs = [torch.tensor([ids]) for ids in (source, sequence[begin:]) if ids]
        with torch.no_grad():
            close(step.logits, model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1])
        sequence.append(step.token_id)
        begins.add(begin)
    return begins


@pytest.mark.parametrize("fields", MODELS.values(), ids=MODELS)
def test_what_is_written_is_a_full_pass_over_the_window_for_several_quarters(fields):
    assert check(tiny_model(context_length=CONTEXT, **fields)) == {0, 3, 6, 9, 12, 15}


def test_a_prompt_may_be_longer_than_the_context():
    model = tiny_model(context_length=CONTEXT, positions="learned")
    assert check(model, prompt=[i % 11 for i in range(40)], steps=9) == {30, 33, 36}


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("changed", CHANGES, ids=lambda changed: "; ".join(map(str, changed)))
def test_so_it_is_with_changes(changed, positions):
    check(tiny_model(context_length=CONTEXT, positions=positions), changed)
