"""Continuous batching: generates the next token of several texts in one forward pass.

    decoding = BatchedDecoding(model)
    for state, step in decoding.step([DecodeState(model, one), DecodeState(model, other)]).items(): …

A pass over one token spends most of its time on reading the weights and on starting kernels, and both are the same for
thirty. Texts join and leave between any two tokens (Yu et al. 2022, Orca, §3.1: iteration-level scheduling).
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
"""In one pass over several prompts. More would save few steps, and their scores take megabytes in each layer."""

Passed = dict[DecodeState, tuple[Tensor, ActivationCache]]
"""Of each text, logits (vocab,) for its next token and what was recorded."""


class BatchedDecoding:
    """Texts that one model writes at once, each with its own length, sampling, and recorded points.

    Those whose newest token alone is to be computed share a pass; what is cached of the others is cached side by side.
    Prompts of one length share passes, too, as do windows that have moved. What is changed in a pass must be the same
    (`DecodeState.batch_key`): texts with hooks, or with changes at some position, have passes of their own.

    Each gets what `generate` yields for it alone: the same tokens with a seed, and the same numbers up to rounding,
    since a product of matrices adds up in another order. So logits differ in their last bits (1e-5 at most in float32),
    and where a random number falls so close to the border between two tokens, or two are likeliest with the same
    logit, either can come: as they can on another machine. What is reported is always what the token was drawn from.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._caches: dict[tuple[Intervention, ...], BatchedCache] = {}  # by what is changed in the passes

    def step(self, states: Sequence[DecodeState]) -> dict[DecodeState, GenerationStep | Exception]:
        """The next token of each text; of one that fails, which can't go on, the error, and the others go on.

        Texts come and go from step to step. One that was among them must be released before it goes on alone.
        """
        passed: Passed = {}
        for compute, batch in self._batches(states):
            with contextlib.suppress(Exception):  # whose it is will show, as each then has a pass of its own
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
        """Give a text what is cached of it back, so that it can go on alone, and keep nothing."""
        for key, cache in self._caches.items():
            if state.past in cache.texts:
                cache.leave(state.past)
                if not cache.texts:
                    del self._caches[key]
                return

    def _batches(self, states: Sequence[DecodeState]) -> Iterator[tuple[Callable[[list[DecodeState]], Passed], list]]:
        """Texts that share a pass, several each, and how it is computed."""
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
        """Read the windows of texts, equally long, of which nothing is cached."""
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
        """Read the newest token of texts of which all others are cached."""
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
        inputs = (tokens,) if past.memory is None else (tokens, tokens)  # the source has been read
        names = frozenset().union(*(state.names for state in states))
        with torch.no_grad():
            return self.model.run_with_cache(
                *inputs, names_filter=names, fwd_hooks=states[0].hooks, past=past, newest=True
            )

    def _own(self, recorded: ActivationCache, state: DecodeState, row: int) -> ActivationCache:
        """What was recorded of one text, without the padding."""
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
