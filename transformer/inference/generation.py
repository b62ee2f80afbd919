"""Text generation: one token per step, each step with the logits and tensors that led to it.

Shapes: batch (always 1 here), pos, vocab.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ..hooks import ActivationCache, ForwardHook, NamesFilter
from ..model.caches import KeyValueCache
from ..model.models import Model
from .analysis import check_logits, token_statistics
from .context_windows import looks_ahead, window_start
from .inputs import ids_of, source_of
from .interventions import Intervention, hooks_of
from .sampling import Sampling, random_points, token_at


@dataclass(frozen=True)
class GenerationStep:
    """One written token. Its probability, rank and entropy are the model's own: temperature 1, nothing cut off."""

    position: int
    """Its position in the whole text, prompt included, from 0."""
    token_id: int
    logits: Tensor
    """(vocab,), raw, so that the sampling can be redone without the model."""
    cache: ActivationCache
    """This step's recording: of the newest token only, if earlier ones were cached."""
    point: float = 0.0
    """The random number between 0 and 1 that chose the token; 0 for greedy writing."""
    window_start: int = 0
    """The position of the window's first token; above 0 past the context."""

    @property
    def probability(self) -> float:
        return self._statistics[0]

    @property
    def rank(self) -> int:
        """1 for the likeliest token."""
        return self._statistics[1]

    @property
    def entropy(self) -> float:
        """The entropy of the whole distribution, in nats."""
        return self._statistics[2]

    @cached_property
    def _statistics(self) -> tuple[float, int, float]:
        return token_statistics(self.logits, self.token_id)


class DecodeState:
    """A text that a model writes: its tokens so far, their cache, and the random numbers to come.

    Keys and values of earlier tokens, and of the source, are cached. Past the context length the window moves by a
    quarter of the context at a time (`window_start`): then the window is read again, since positions in it have
    changed. Hooks, its own or those of `hooked` around a step, end caching: each sees the whole window, as in a forward
    pass. Interventions keep the cache, except those that make earlier positions depend on later ones, such as removing
    the mask.
    """

    def __init__(
        self,
        model: Model,
        tokens: Sequence[int] | Tensor,
        *,
        sampling: Sampling = Sampling(),
        names_filter: NamesFilter = (),
        fwd_hooks: Sequence[ForwardHook] = (),
        source: Sequence[int] | Tensor | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> None:
        """As in `generate`, with the errors raised there."""
        if not model.config.is_causal:
            raise ValueError("This model reads in both directions and writes nothing on; it fills gaps: fill_masks.")
        self.model = model
        self.tokens = ids_of(tokens)
        if not self.tokens:
            raise ValueError("The prompt is empty; a decoder continues at least one token.")
        self.source = source_of(model.config, source)
        if bad := [token for token in (*self.tokens, *self.source) if not 0 <= token < model.config.vocab_size]:
            raise ValueError(f"Token id {bad[0]} is not in this model's vocabulary of {model.config.vocab_size}.")
        self._device = model.device
        self._before = (torch.tensor([self.source], device=self._device),) if self.source else ()
        self._pass_start = 0
        self.hooks = [*fwd_hooks, *hooks_of(interventions, model, lambda: self._pass_start)]
        """The interventions in each of its passes."""
        keeps = not fwd_hooks and not model.is_hooked and not any(map(looks_ahead, interventions))
        self._shares = keeps and all(getattr(intervention, "same_everywhere", False) for intervention in interventions)
        self._interventions = tuple(interventions)
        self.past = KeyValueCache.for_model(model.config) if keeps else None
        """The cache of its tokens and its source; None if nothing is cached."""
        self._cached = range(0)
        self.record(names_filter)
        self.draw(sampling)

    @property
    def window_start(self) -> int:
        """The start of the window from which the next token is predicted."""
        return window_start(len(self.tokens), self.model.config.context_length)

    @property
    def cached(self) -> int:
        """How many of the window's first tokens are cached."""
        return len(self._cached) if self.past is not None and self._cached.start == self.window_start else 0

    @property
    def pending(self) -> int:
        """How many tokens the next pass computes, including those of an unread source."""
        unread = 0 if self.past is not None and self.past.memory is not None else len(self.source)
        return len(self.tokens) - self.window_start - self.cached + unread

    @property
    def batch_key(self) -> tuple[Intervention, ...] | None:
        """Equal for texts that can share a pass; None if it can share none.

        Recorded masks belong to a whole pass, and a position of an intervention differs by text.
        """
        is_alone = self.past is None or not self._shares or self.model.is_hooked or any(map(_is_mask, self.names))
        return None if is_alone else self._interventions

    def draw(self, sampling: Sampling) -> None:
        """From here on, draw tokens with this sampling; without a seed, draw one first."""
        if sampling.seed is None:
            sampling = replace(sampling, seed=secrets.randbits(63))
        self.sampling = sampling
        self._points = random_points(sampling, position=len(self.tokens))

    def record(self, names_filter: NamesFilter) -> None:
        """From here on, record these points. Raises: ValueError for an unknown name."""
        self.names = self.model.chosen_names(names_filter)

    def step(self) -> GenerationStep:
        """Compute the next logits, and draw the token."""
        if self.model.is_hooked:
            self.past = None
        elif self.past is not None and not self.cached:
            self.past.forget_tokens()
        self._pass_start = self.window_start + self.cached
        inputs = (*self._before, torch.tensor([self.tokens[self._pass_start :]], device=self._device))
        with torch.no_grad():
            logits, cache = self.model.run_with_cache(
                *inputs, names_filter=self.names, fwd_hooks=self.hooks, past=self.past, newest=True
            )
        return self.advance(logits[0, -1].float(), cache)

    def advance(self, logits: Tensor, cache: ActivationCache) -> GenerationStep:
        """Draw the next token after a pass that cached the window. logits: (vocab,), raw."""
        point = next(self._points)
        token_id = token_at(point, logits, self.sampling)
        start = self.window_start
        self._cached = range(start, len(self.tokens))
        self.tokens.append(token_id)
        return GenerationStep(len(self.tokens) - 1, token_id, logits, cache, point, start)


def generate(
    model: Model,
    tokens: Sequence[int] | Tensor,
    *,
    max_new_tokens: int,
    sampling: Sampling = Sampling(),
    stop_tokens: Sequence[int] = (),
    names_filter: NamesFilter = (),
    fwd_hooks: Sequence[ForwardHook] = (),
    source: Sequence[int] | Tensor | None = None,
    interventions: Sequence[Intervention] = (),
) -> Iterator[GenerationStep]:
    """Continue a prompt, token by token. `DecodeState` describes the caching.

    tokens: the prompt's ids, (pos,) or (1, pos), at least one.
    stop_tokens: ids after which writing ends; the stop token itself is still reported.
    names_filter, fwd_hooks: as in `run_with_cache`, but nothing is recorded by default. They are active only while a
        step is computed, never while the caller holds the iterator.
    source: what an encoder–decoder reads, ids (pos,) or (1, pos); `tokens` then begins with the start token. The
        encoder runs once, unless nothing is cached, so that only the first step records its points.
    interventions: applied in every pass; their positions count from the start of the text.
    Returns: an iterator of at most max_new_tokens steps. Put the model into evaluation mode first.
    Raises: ValueError for an empty prompt, one with ids the model doesn't know, or a source that is missing, too
        long, or given to a model that reads none; its steps, LogitsError for logits that are not numbers.
    """
    state = DecodeState(
        model,
        tokens,
        sampling=sampling,
        names_filter=names_filter,
        fwd_hooks=fwd_hooks,
        source=source,
        interventions=interventions,
    )
    return _steps(state, max_new_tokens, set(stop_tokens))


def _steps(state: DecodeState, max_new_tokens: int, stop_tokens: set[int]) -> Iterator[GenerationStep]:
    for _ in range(max_new_tokens):
        step = state.step()
        yield step
        if step.token_id in stop_tokens:
            return


@torch.no_grad()
def write_greedily(
    model: Model, tokens: Tensor, max_new_tokens: int, source: Tensor | None = None, end_token: int | None = None
) -> Tensor:
    """Continue many texts at once greedily, until each has written the end token.

    tokens: (batch, pos), prompts of one length; source: (batch, source), for an encoder–decoder.
    Returns: (batch, at most max_new_tokens), the new tokens; those after an end token mean nothing. Put the model into
    evaluation mode first.
    Raises: ValueError if prompt and text together don't fit the context; LogitsError for logits that are not numbers.
    """
    past = None if model.is_hooked else KeyValueCache.for_model(model.config)
    before = () if source is None else (source,)
    written = [tokens[:, :0]]
    has_ended = torch.zeros_like(tokens[:, :1], dtype=torch.bool)
    for _ in range(max_new_tokens):
        largest, newest = model(*before, tokens, past=past)[:, -1].max(-1, keepdim=True)
        check_logits(largest.float().cpu().numpy())
        written.append(newest)
        has_ended |= newest == end_token if end_token is not None else False
        tokens = newest if past else torch.cat((tokens, newest), 1)
        if has_ended.all():
            break
    return torch.cat(written, 1)


def _is_mask(point: str) -> bool:
    return point.endswith("hook_mask")
