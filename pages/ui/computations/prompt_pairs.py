"""Patches activations from one prompt into another.

Dimensions: site, layer, pos, vocab.
"""

from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.computations.activations import Interventions, Tokens, greedy_answer, log_softmax, logits_after
from pages.ui.models.library import opened
from pages.ui.models.model_cache import cached
from transformer import Checkpoint, patching
from transformer.api import prompt_pairs
from transformer.api.prompt_pairs import FACTS, MAX_TOKENS
from transformer.inference.patching import Patching
from transformer.jobs import progress


def suggested_pairs(name: str) -> tuple[tuple[str, str], ...]:
    return prompt_pairs.suggested_pairs(opened(name))


def suggested_prompt(name: str, prompt: str) -> str | None:
    return prompt_pairs.suggested_prompt(opened(name), prompt)


@dataclass(frozen=True)
class PromptPair:
    """Two texts as the model reads them, the one on screen first."""

    tokens: tuple[Tokens, Tokens]
    sources: tuple[Tokens, Tokens]
    """What an encoder reads; empty for a model that has none."""
    logits: np.ndarray
    """(2, vocab): what comes after each, or stands at its mask."""
    position: int = -1
    """Whose logits these are: an encoder's first mask; of other models the last."""

    @property
    def answers(self) -> tuple[int, int]:
        """The likeliest next token of each; where that is the same, the tokens for which the other text does most
        harm and most good."""
        own, other = (int(row.argmax()) for row in self.logits)
        if own == other:
            moved = log_softmax(self.logits[1]) - log_softmax(self.logits[0])
            likely = np.exp(log_softmax(self.logits)).max(0)
            return int((moved * likely).argmin()), int((moved * likely).argmax())
        return own, other

    @property
    def differing(self) -> int:
        """Tokens from the first that differs on; 0 for equal texts."""
        length = len(self.tokens[0])
        pairs = enumerate(zip(*self.tokens, strict=True))
        return length - next((at for at, (one, other) in pairs if one != other), length)


@cached
def prompt_pair(
    checkpoint: Checkpoint, own: Tokens, other: Tokens, start: Tokens = (), *, interventions: Interventions = ()
) -> PromptPair:
    """Two texts of one length, and what comes after each, or stands at the mask that both have at one position.

    own, other: what a decoder reads, no more than the context holds; for an encoder–decoder the sources. start: what
    its decoder begins with, then; it goes on with what it would write to both alike, up to where they part.
    """
    if not start:
        tokens, sources = (own, other), ((), ())
    else:
        written = [greedy_answer(checkpoint, start, source) for source in (own, other)]
        same = next((at for at, (a, b) in enumerate(zip(*written, strict=False)) if a != b), 0)
        text = start + written[0][:same]
        tokens, sources = (text, text), (own, other)
    logits = [
        logits_after(checkpoint, [text], [source] if source else [], interventions)
        for text, source in zip(tokens, sources, strict=True)
    ]
    position = -1 if checkpoint.model.config.is_causal else checkpoint.predicted_position(own)
    return PromptPair(tokens, sources, torch.cat(logits).numpy(), position)


@cached
def patching_effects(
    checkpoint: Checkpoint,
    tokens: tuple[Tokens, Tokens],
    sources: tuple[Tokens, Tokens],
    answers: tuple[int, int],
    stack: str,
    position: int = -1,
    *,
    interventions: Interventions = (),
) -> Patching:
    """The share of the other answer that each patch brings.

    tokens, sources, position: as in `PromptPair`; answers: the own token, and the other text's; stack: as in
    `patching`.
    Raises: ValueError, saying why, where nothing can be traced.
    """
    return patching(
        checkpoint.model,
        tokens[1],
        tokens[0],
        answers[1],
        answers[0],
        sources[1],
        sources[0],
        stack=stack,
        position=position,
        interventions=interventions,
        on_progress=progress,
    )


__all__ = ["FACTS", "MAX_TOKENS"]
