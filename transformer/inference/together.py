"""Writing several texts at once: one forward pass for the next token of each (continuous batching).

    room = Together(model)
    room.join(Text(model, one)); room.join(Text(model, other))
    for text, step in room.step().items(): …

A pass over one token spends most of its time on reading the weights and on starting kernels, and both are the same for
thirty. Texts join and leave between any two tokens (Yu et al. 2022, Orca, §3.1: iteration-level scheduling). Those that
have outgrown the context share passes of their own, over whole windows: `Windows`.
Shapes: batch (the texts), pos, vocab, head, query, key.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from functools import cached_property

import torch
from torch import Tensor

from ..hooks import ActivationCache
from ..model.models import DecoderOnly, EncoderDecoder
from ..model.registry import HookInfo, hook_points
from .generation import GenerationStep, Text
from .shared_cache import SharedCache

WINDOWS_AT_ONCE = 8
"""In one pass. More would save few steps, and their scores take megabytes in each layer."""


class _Several(ABC):
    """Texts that one model writes at once, each with its own length, sampling, and recorded points.

    Each gets what `generate` yields for it alone: the same tokens with a seed, and the same numbers up to rounding,
    since a product of matrices adds up in another order. So logits differ in their last bits (1e-5 at most in float32),
    and where a random number falls so close to the border between two tokens, or two are likeliest with the same
    logit, either can come: as they can on another machine. What is reported is always what the token was drawn from.
    """

    def __init__(self, model: DecoderOnly | EncoderDecoder) -> None:
        self.model = model
        self.texts: list[Text] = []

    def join(self, text: Text) -> None:
        """Write this text too, from the next step on. Raises: ValueError for a text of another model."""
        if text.model is not self.model:
            raise ValueError("This text is written by another model; texts that are written together share one.")
        if text not in self.texts:
            self.texts.append(text)

    def leave(self, text: Text) -> None:
        """Write this text no more; it can go on alone, or join again."""
        if text in self.texts:
            self.texts.remove(text)
        self._take_out(text)

    @abstractmethod
    def shares(self, text: Text) -> bool:
        """Whether the next token of a text can be computed in a pass with others'."""

    def step(self) -> dict[Text, GenerationStep | Exception]:
        """The next token of each text. One that fails leaves, with its error in its place; the others go on."""
        sharing = [text for text in self.texts if self.shares(text)]
        passed: dict[Text, tuple[Tensor, ActivationCache]] = {}
        if len(sharing) > 1:
            with contextlib.suppress(Exception):  # whose it is will show, as each then has a pass of its own
                passed = self._pass(sharing)
        found: dict[Text, GenerationStep | Exception] = {}
        for text in list(self.texts):
            try:
                if text in passed:
                    found[text] = text.go_on(*passed[text])
                else:
                    self._take_out(text)
                    found[text] = text.step()
            except Exception as error:
                self.leave(text)
                found[text] = error
        return found

    @abstractmethod
    def _pass(self, sharing: list[Text]) -> dict[Text, tuple[Tensor, ActivationCache]]:
        """Of each text, logits (vocab,) for its next token and what was recorded."""

    @abstractmethod
    def _take_out(self, text: Text) -> None:
        """Keep nothing of a text that goes on alone."""


class Together(_Several):
    """Texts whose newest tokens share a pass; what is cached of the others is cached side by side.

    A text whose pass isn't over its newest token alone (its prompt, a window past the context), one with hooks or
    interventions, and one that records masks has a pass of its own.
    """

    def __init__(self, model: DecoderOnly | EncoderDecoder) -> None:
        super().__init__(model)
        self._shared = SharedCache(model.config)

    def shares(self, text: Text) -> bool:
        return self._is_cached(text) and _is_plain(text)

    def _pass(self, sharing: list[Text]) -> dict[Text, tuple[Tensor, ActivationCache]]:
        together = {text.past: text for text in sharing}
        for past in [past for past in self._shared.texts if past not in together]:
            self._shared.leave(past)
        for past in together:
            if past not in self._shared.texts:
                self._shared.join(past)
        rows = [together[past] for past in self._shared.texts]
        tokens = torch.tensor([[text.tokens[-1]] for text in rows], device=next(self.model.parameters()).device)
        inputs = (tokens, tokens) if self._shared.memory is not None else (tokens,)  # the source has been read
        names = frozenset().union(*(text.names for text in rows))
        with torch.no_grad():
            logits, cache = self.model.run_with_cache(*inputs, names_filter=names, past=self._shared)
        return {text: (logits[row, -1].float().clone(), self._own(cache, text, row)) for row, text in enumerate(rows)}

    def _own(self, cache: ActivationCache, text: Text, row: int) -> ActivationCache:
        """What was recorded of one text, without the padding."""
        return ActivationCache({name: self._without_padding(name, tensor[row : row + 1], text).clone()
                                for name, tensor in cache.items() if name in text.names})  # fmt: skip

    def _without_padding(self, name: str, tensor: Tensor, text: Text) -> Tensor:
        dims = self._points[name].shape
        if "key" not in dims:
            return tensor
        along = dims.index("key")
        if ".cross_attn." in name:
            return tensor.narrow(along, 0, len(text.source))
        length = len(text.tokens)
        return tensor.narrow(along, tensor.shape[along] - length, length)

    def _is_cached(self, text: Text) -> bool:
        """Whether all but the newest token is, as it always is of a text in the shared cache."""
        if text.past in self._shared.texts:
            return len(text.tokens) <= self.model.config.context_length
        return text.only_the_newest

    @cached_property
    def _points(self) -> dict[str, HookInfo]:
        return hook_points(self.model.config)

    def _take_out(self, text: Text) -> None:
        if text.past in self._shared.texts:
            self._shared.leave(text.past)


class Windows(_Several):
    """Texts that have outgrown the context: their windows are equally long, so that several share a pass.

    It computes as much as their own passes would, in as many steps as one of them.
    """

    def shares(self, text: Text) -> bool:
        return len(text.tokens) > self.model.config.context_length and not text.source and _is_plain(text)

    def _pass(self, sharing: list[Text]) -> dict[Text, tuple[Tensor, ActivationCache]]:
        found: dict[Text, tuple[Tensor, ActivationCache]] = {}
        for first in range(0, len(sharing), WINDOWS_AT_ONCE):
            texts = sharing[first : first + WINDOWS_AT_ONCE]
            windows = [text.tokens[-self.model.config.context_length :] for text in texts]
            names = frozenset().union(*(text.names for text in texts))
            with torch.no_grad():
                logits, cache = self.model.run_with_cache(
                    torch.tensor(windows, device=next(self.model.parameters()).device), names_filter=names, newest=True
                )
            for row, text in enumerate(texts):
                own = {name: tensor[row : row + 1].clone() for name, tensor in cache.items() if name in text.names}
                found[text] = logits[row, -1].float().clone(), ActivationCache(own)
        return found

    def _take_out(self, text: Text) -> None:
        if len(text.tokens) > self.model.config.context_length:
            text.past = None  # which is never of use again


def _is_plain(text: Text) -> bool:
    """Whether nothing changes a text's passes, and none of their masks, which passes share, is recorded."""
    return not text.hooks and not any(name.endswith("hook_mask") for name in text.names)
