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
}


class TestTheWindow:
    @given(st.integers(0, 500), st.integers(1, 100))
    def test_it_begins_at_the_first_quarter_from_which_the_text_fits(self, length, context):
        quarters = range(0, length + 1, max(1, context // 4))
        assert window_start(length, context) == next(start for start in quarters if length - start <= context)

    @given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 40))
    def test_lengths_are_grouped_by_the_window_they_share(self, first, count, context):
        groups = by_window(range(first, first + count), context)
        assert [length for _, lengths in groups for length in lengths] == list(range(first, first + count))
        assert all(window_start(length, context) == begin for begin, lengths in groups for length in lengths)
        assert len({begin for begin, _ in groups}) == len(groups)


def check(model, interventions=(), steps=CONTEXT + 10, prompt=(3, 1, 4, 1, 5)):
    """Every step of a text that grows past the context is a full pass over the window that it names."""
    config, sequence = model.config, list(prompt)
    source = [torch.tensor([SOURCE])] if config.architecture == "encoder-decoder" else []
    written = generate(
        model,
        prompt,
        max_new_tokens=steps,
        sampling=Sampling(seed=3),
        interventions=interventions,
        source=SOURCE if source else None,
    )
    begins = set()
    for step in written:
        begin = window_start(len(sequence), config.context_length)
        assert step.window_start == begin
        hooks = hooks_of(in_window(interventions, begin), model)
        with torch.no_grad():
            logits = model.run_with_hooks(*source, torch.tensor([sequence[begin:]]), fwd_hooks=hooks)[0, -1]
        close(step.logits, logits)
        sequence.append(step.token_id)
        begins.add(begin)
    return begins


class TestWhatIsWritten:
    @pytest.mark.parametrize("fields", [*MODELS.values(), *MODERN.values()], ids=[*MODELS, *MODERN])
    def test_is_a_full_pass_over_the_window_for_several_quarters(self, fields):
        heads = {"n_heads": 4} if fields in MODERN.values() else {}
        assert check(tiny_model(context_length=CONTEXT, **heads, **fields)) == {0, 3, 6, 9, 12, 15}

    def test_a_prompt_may_be_longer_than_the_context(self):
        model = tiny_model(context_length=CONTEXT, positions="learned")
        assert check(model, prompt=[i % 11 for i in range(40)], steps=9) == {30, 33, 36}

    @pytest.mark.parametrize("positions", ["learned", "rotary"])
    @pytest.mark.parametrize(
        "changed",
        [
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
        ],
        ids=lambda changed: "; ".join(map(str, changed)),
    )
    def test_with_changes_whose_positions_count_from_the_texts_start(self, changed, positions):
        check(tiny_model(context_length=CONTEXT, positions=positions), changed)
