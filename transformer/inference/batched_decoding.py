"""Continuous batching: generates the next token of several texts in one forward pass.

    decoding = BatchedDecoding(model)
    for state, step in decoding.step([DecodeState(model, one), DecodeState(model, other)]).items(): …

A pass over one token mostly reads weights and launches kernels, and a pass over thirty tokens does the same once. Texts
join and leave between any two tokens (Yu et al. 2022, Orca, §3.1: iteration-level scheduling).
Shapes: batch (the texts), pos, vocab, head, query, key.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import torch
from torch import Tensor

from ..hooks import ActivationCache
from ..model.caches import KeyValueCache
from ..model.models import Model
from ..model.registry import HookInfo, hook_points
from .batched_cache import BatchedCache
from .generation import DecodeState, GenerationStep
from .interventions import Intervention

PREFILL_TOKENS = 256
"""Tokens in one pass over several prompts. More would save few passes, and scores take megabytes per layer."""

Passed = dict[DecodeState, tuple[Tensor, ActivationCache]]
"""By text: logits (vocab,) for its next token, and its recording."""


class BatchedDecoding:
    """Texts that one model writes at once, each with its own length, sampling, and recorded points.

    Texts that need only their newest token computed share a pass and keep their caches side by side. Prompts of one
    length share passes, too, as do moved windows. Texts can share a pass only with the same interventions
    (`DecodeState.batch_key`): texts with hooks, or with interventions at a position, have passes of their own.

    Each text gets what `generate` yields for it alone: the same tokens with a seed, and the same numbers up to
    rounding, since matrix products add up in another order. Logits differ in their last bits (by 1e-5 at most in
    float32), so if a random number falls that close to the border between two tokens, or two logits tie, either token
    can be drawn, as on another machine. The reported logits are always those that the token was drawn from.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._caches: dict[tuple[Intervention, ...], BatchedCache] = {}  # by their interventions

    def step(self, states: Sequence[DecodeState]) -> dict[DecodeState, GenerationStep | Exception]:
        """The next token of each text, or the error of one that failed; the others continue.

        Texts may join and leave between steps. Release a text before it continues alone.
        """
        passed: Passed = {}
        for compute, batch in self._batches(states):
            with contextlib.suppress(Exception):  # separate passes show whose error it is
                passed |= compute(batch)
        results: dict[DecodeState, GenerationStep | Exception] = {}
        for state in states:
            try:
                if state in passed:
                    results[state] = state.advance(*passed[state])
                else:
                    self.release(state)
                    results[state] = state.step()
            except Exception as error:
                self.release(state)
                results[state] = error
        return results

    def release(self, state: DecodeState) -> None:
        """Return a text's cache, so that it can continue alone."""
        for key, cache in self._caches.items():
            if state.past in cache.texts:
                cache.leave(state.past)
                if not cache.texts:
                    del self._caches[key]
                return

    def _batches(self, states: Sequence[DecodeState]) -> Iterator[tuple[Callable[[list[DecodeState]], Passed], list]]:
        """Groups of texts that share a pass, and the function that computes it."""
        decoding, prompts = defaultdict(list), defaultdict(list)
        for state in states:
            if (key := state.batch_key) is not None:
                if state.cached and state.pending == 1:
                    decoding[key].append(state)
                elif not state.cached and not state.source:
                    prompts[key, state.pending].append(state)
        for key, batch in decoding.items():
            if len(batch) > 1:
                yield partial(self._decode, key), batch
        for (_, length), alike in prompts.items():
            at_once = max(1, PREFILL_TOKENS // length)
            for first in range(0, len(alike), at_once):
                if len(batch := alike[first : first + at_once]) > 1:
                    yield self._prefill, batch

    def _prefill(self, states: list[DecodeState]) -> Passed:
        """Read the windows of equally long texts without a cache."""
        cache = KeyValueCache.for_model(self.model.config)
        logits, recorded = self._run(states, [state.tokens[state.window_start :] for state in states], cache)
        for row, state in enumerate(states):
            self.release(state)
            assert state.past is not None and cache.tokens is not None
            state.past.tokens = cache.tokens[row : row + 1]
            for own, every in zip(state.past.blocks, cache.blocks, strict=True):
                own.tensors = tuple(tensor[row : row + 1] for tensor in every.tensors)
        passed: Passed = {}
        for row, state in enumerate(states):
            own = {name: tensor[row : row + 1].clone() for name, tensor in recorded.items() if name in state.names}
            passed[state] = logits[row, -1].float().clone(), ActivationCache(own)
        return passed

    def _decode(self, key: tuple[Intervention, ...], states: list[DecodeState]) -> Passed:
        """Read the newest token of texts whose other tokens are cached."""
        by_past = {state.past: state for state in states if state.past is not None}
        cache = self._caches.setdefault(key, BatchedCache(self.model.config))
        for past in [past for past in cache.texts if past not in by_past]:
            cache.leave(past)
        for past in by_past:
            if past not in cache.texts:
                cache.join(past)
        rows = [by_past[past] for past in cache.texts]
        logits, recorded = self._run(rows, [state.tokens[-1:] for state in rows], cache)
        return {
            state: (logits[row, -1].float().clone(), self._own(recorded, state, row)) for row, state in enumerate(rows)
        }

    def _run(
        self, states: list[DecodeState], rows: list[list[int]], past: KeyValueCache | BatchedCache
    ) -> tuple[Tensor, ActivationCache]:
        tokens = torch.tensor(rows, device=next(self.model.parameters()).device)
        inputs = (tokens,) if past.memory is None else (tokens, tokens)  # the source was read before
        names = frozenset().union(*(state.names for state in states))
        with torch.no_grad():
            return self.model.run_with_cache(
                *inputs, names_filter=names, fwd_hooks=states[0].hooks, past=past, newest=True
            )

    def _own(self, recorded: ActivationCache, state: DecodeState, row: int) -> ActivationCache:
        """One text's recording, without padding."""
        return ActivationCache(
            {
                name: self._without_padding(name, tensor[row : row + 1], state).clone()
                for name, tensor in recorded.items()
                if name in state.names
            }
        )

    def _without_padding(self, name: str, tensor: Tensor, state: DecodeState) -> Tensor:
        dims = self._points[name].shape
        if "key" not in dims:
            return tensor
        along = dims.index("key")
        if ".cross_attn." in name:
            return tensor.narrow(along, 0, len(state.source))
        length = len(state.tokens) - state.window_start
        return tensor.narrow(along, tensor.shape[along] - length, length)

    @cached_property
    def _points(self) -> dict[str, HookInfo]:
        return hook_points(self.model.config)
