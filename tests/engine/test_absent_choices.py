"""Tests that every analysis, asked about something that isn't there, says so in a sentence."""

import copy
import pickle

import pytest
import torch

from tests.helpers import tiny_encoder_decoder, tiny_model
from transformer import (
    ActivationCache,
    Sampling,
    ablation,
    causal_mask,
    choose_token,
    direct_logit_attribution,
    fill_masks,
    head_measures,
    induction_score,
    logit_lens,
    ov_circuit,
    patching,
    qk_circuit,
    record,
    record_pass,
    score_arithmetic,
    show,
    token_statistics,
    trace_pass,
)
from transformer.inference.pass_outline import lens_at

TOKENS, OTHER = [1, 2, 3, 4], [1, 2, 5, 4]
"""Of a vocabulary of 11."""
MODEL, PAIR = tiny_model(), tiny_encoder_decoder()
FILLER = tiny_model(architecture="encoder-only")
_, CACHE = MODEL.run_with_cache(torch.tensor([TOKENS]))
PATTERN = CACHE["pattern", 0]
TRACE, EFFECTS = trace_pass(MODEL, TOKENS), ablation(MODEL, TOKENS)
CIRCUIT, PASS = ov_circuit(MODEL, "blocks.0.attn", 0), record_pass(MODEL, TOKENS)
VECTORS = torch.randn(4, 4)

OF_TOKENS = {
    "ablation, logit": lambda token: EFFECTS.logit(0, token),
    "ablation, loss": lambda token: EFFECTS.loss([1, 2, token, 4]),
    "ablation": lambda token: ablation(MODEL, [1, token]),
    "patching, answer": lambda token: patching(MODEL, TOKENS, OTHER, token, 2),
    "patching, against": lambda token: patching(MODEL, TOKENS, OTHER, 2, token),
    "lens": lambda token: logit_lens(TRACE).of([1, 2, 3, token]),
    "attribution": lambda token: direct_logit_attribution(TRACE, [token, 2, 3, 4]),
    "attribution, against": lambda token: direct_logit_attribution(TRACE, TOKENS, [token, 2, 3, 4]),
    "attributed heads": lambda token: CACHE.logit_attrs(CACHE.stack_head_results(), token),
    "attributed heads, against": lambda token: CACHE.logit_attrs(CACHE.stack_head_results(), 1, token),
    "circuit, row": lambda token: CIRCUIT.row(token),
    "circuit, part": lambda token: CIRCUIT.full(torch.tensor([token]), None),
    "circuit, strongest": lambda token: CIRCUIT.strongest(3, [token]),
    "statistics": lambda token: token_statistics(torch.randn(11), token),
    "masks": lambda token: list(fill_masks(FILLER, TOKENS, token)),
    "trace": lambda token: trace_pass(MODEL, [token]),
    "page": lambda token: show(PASS, candidate=token),
}
OF_POSITIONS = {
    "ablation": lambda position: EFFECTS.logit(position, 1),
    "scores, query": lambda position: score_arithmetic(VECTORS, VECTORS, causal_mask(4, 4), position, 0),
    "scores, key": lambda position: score_arithmetic(VECTORS, VECTORS, causal_mask(4, 4), 0, position),
    "lens": lambda position: lens_at(MODEL, TOKENS, (), position),
    "page": lambda position: show(PASS, token=position),
    "page of attention": lambda position: show(PASS, "self", query=position),
}
OF_HEADS = {
    "query and key": lambda head: qk_circuit(MODEL, "blocks.0.attn", head),
    "value and output": lambda head: ov_circuit(MODEL, "blocks.0.attn", head),
    "page": lambda head: show(PASS, head=head),
    "page's circuit": lambda head: show(PASS, circuit=("ov", "blocks.0.attn", head, 0)),
}
OF_LAYERS = {
    "query and key": lambda layer: qk_circuit(MODEL, f"blocks.{layer}.attn", 0),
    "value and output": lambda layer: ov_circuit(MODEL, f"blocks.{layer}.attn", 0),
    "page": lambda layer: show(PASS, "self", layer=layer),
    "page's circuit": lambda layer: show(PASS, circuit=("ov", f"blocks.{layer}.attn", 0, 0)),
    "recording": lambda layer: record(MODEL, torch.tensor([TOKENS]), f"blocks.{layer}.attn.hook_z"),
    "parameter": lambda layer: record(
        MODEL, torch.tensor([TOKENS]), (), parameters=[f"blocks.{layer}.attn.out.weight"]
    ),
    "heads": lambda layer: CACHE.stack_head_results(layer - 1 if layer < 0 else layer),
}
ABSENT = [
    *((f"token {index}: {name}", ask, index) for name, ask in OF_TOKENS.items() for index in (-1, -12, 11, 10**6)),
    *((f"position {index}: {name}", ask, index) for name, ask in OF_POSITIONS.items() for index in (-1, 4)),
    *((f"head {index}: {name}", ask, index) for name, ask in OF_HEADS.items() for index in (-1, 2)),
    *((f"layer {index}: {name}", ask, index) for name, ask in OF_LAYERS.items() for index in (-1, 5)),
]
OTHERS = {
    "a text of another length": lambda: EFFECTS.loss([1, 2]),
    "too few tokens to attribute": lambda: direct_logit_attribution(TRACE, [1]),
    "too many tokens to read": lambda: logit_lens(TRACE).of([1] * 5),
    "a position of two": lambda: patching(FILLER, TOKENS, OTHER, 1, 2, position=4),
    "a stack that isn't there": lambda: patching(MODEL, TOKENS, OTHER, 1, 2, stack="encoder"),
    "a stack that is none": lambda: patching(PAIR, TOKENS, OTHER, 1, 2, [1], [1], stack="middle"),
    "no period": lambda: induction_score(PATTERN, 0),
    "a period as long as the text": lambda: induction_score(PATTERN, 4),
    "a key after its query": lambda: qk_circuit(MODEL, "blocks.0.attn", 0, distance=-1),
    "a circuit of another kind": lambda: show(PASS, circuit=("vo", "blocks.0.attn", 0, 0)),
    "a text before its start": lambda: choose_token(torch.randn(11), Sampling(seed=1), -1),
    "a mask of another size": lambda: head_measures(PATTERN[0], causal_mask(3, 3)),
    "a text of another size": lambda: head_measures(PATTERN[0], causal_mask(4, 4), torch.tensor([1, 2])),
}


@pytest.mark.parametrize(("ask", "index"), [each[1:] for each in ABSENT], ids=[each[0] for each in ABSENT])
def test_what_isn_t_there_is_said_to_be_absent(ask, index):
    with pytest.raises(ValueError, match=r"^['\w].{10,}[.?]$"):
        ask(index)


@pytest.mark.parametrize("ask", OTHERS.values(), ids=OTHERS)
def test_what_can_t_be_asked_is_said(ask):
    with pytest.raises(ValueError, match=r"^\w.{10,}\.$"):
        ask()


def test_a_cache_that_is_copied_or_pickled_carries_no_model():
    for again in (pickle.loads(pickle.dumps(CACHE)), copy.copy(CACHE), copy.deepcopy(CACHE)):
        assert list(again) == list(CACHE) and all(torch.equal(again[name], CACHE[name]) for name in CACHE)
        assert torch.equal(again["pattern", -1], CACHE["pattern", 1])
        found = ActivationCache(again, model=MODEL).stack_head_results()
        torch.testing.assert_close(found, CACHE.stack_head_results())
    assert torch.equal(copy.deepcopy(CACHE).stack_head_results(), CACHE.stack_head_results())  # of the very same model
    _, one = MODEL.run_with_cache(torch.tensor([TOKENS]), names_filter="blocks.0.attn.hook_k")
    assert len(pickle.dumps(one)) < one["k", 0].nbytes + 1000  # though it is a third of a larger tensor
    with pytest.raises(ValueError, match="weights, which this cache doesn't carry"):
        pickle.loads(pickle.dumps(CACHE)).stack_head_results()
    with pytest.raises(TypeError, match="show takes a recording or a checkpoint, and nothing of type ActivationCache"):
        show(CACHE)
