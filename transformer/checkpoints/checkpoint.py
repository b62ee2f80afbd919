"""A model with its tokenizer and its card, to be called with texts.

Shapes: batch, pos (or source, target), vocab.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor

from ..data.tokenizers import Tokenizer
from ..hooks import ActivationCache
from ..inference.inputs import predicted_position
from ..model.models import Model
from .model_card import ModelCard

Texts = str | Sequence[str]


class CheckpointError(Exception):
    """A checkpoint can't be read or written; the message says which file is wrong, and why."""


@dataclass(frozen=True)
class Checkpoint:
    """A model in evaluation mode, its tokenizer and its card.

    Call it with texts: `checkpoint("To be")`. An encoder–decoder reads `text`; `written` is its target so far, without
    the start token. An encoder's tokenizer reads names of special tokens as those tokens, so that texts can have masks.
    """

    model: Model
    tokenizer: Tokenizer
    card: ModelCard

    def __post_init__(self) -> None:
        if not self.model.config.is_causal and not self.tokenizer.reads_names:
            object.__setattr__(self, "tokenizer", self.tokenizer.with_names())

    def predicted_position(self, tokens: Sequence[int]) -> int:
        """The position whose prediction is shown: an encoder's first mask, or else the last token."""
        return predicted_position(self.model.config, tokens, self.card.mask_token_id)

    def with_new_words(self, texts: Iterable[str]) -> Self:
        """The same, whose tokenizer's new words are those of these texts, in order."""
        named = self.tokenizer.with_new_words(texts)
        return self if named is self.tokenizer else replace(self, tokenizer=named)

    def encode(
        self, text: Texts, *, padding_side: Literal["left", "right"] = "right", split_special_tokens: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Token ids of one text or several, and their attention mask, (batch, pos) each, on the model's device.

        The mask is 1 at tokens of the text, 0 at padding. padding_side: the side of the padding.
        split_special_tokens: as in `Tokenizer.encode`. New words are those of all texts, in order.
        Raises: ValueError for no text; UnknownTokenError for one with pieces that the vocabulary lacks.
        """
        texts = [text] if isinstance(text, str) else list(text)
        tokenizer = self.tokenizer.with_new_words([*self.tokenizer.new_words, *texts])
        rows = [tokenizer.encode(each, split_special_tokens=split_special_tokens) for each in texts]
        if not any(rows):
            raise ValueError("There is no text, or none with a token; a model reads at least one.")
        return self._padded(rows, padding_side)

    def __call__(self, text: Texts, written: Texts = "", **options: Any) -> Tensor:
        """Logits after each token, (batch, pos, vocab); those after padding mean nothing. options: as in `encode`."""
        inputs, mask = self._inputs(text, written, **options)
        return self.model(*inputs, attention_mask=mask)

    def run_with_cache(
        self, text: Texts, written: Texts = "", *, split_special_tokens: bool | None = None, **options: Any
    ) -> tuple[Tensor, ActivationCache]:
        """Logits and activations, as the model's `run_with_cache` records them. options: as there."""
        inputs, mask = self._inputs(text, written, split_special_tokens=split_special_tokens)
        return self.model.run_with_cache(*inputs, attention_mask=mask, **options)

    def _inputs(self, text: Texts, written: Texts, **options: Any) -> tuple[list[Tensor], Tensor | None]:
        """The model's inputs, and the attention mask if the texts differ in length."""
        tokens, mask = self.encode(text, **options)
        mask = None if mask.all() else mask
        if self.model.config.architecture != "encoder-decoder":
            return [tokens], mask
        begun = [written] * len(tokens) if isinstance(written, str) else written
        rows = [[*self.card.start_tokens, *self.tokenizer.encode(each, add_special_tokens=False)] for each in begun]
        return [tokens, self._padded(rows)[0]], mask

    def _padded(self, rows: Sequence[Sequence[int]], side: str = "right") -> tuple[Tensor, Tensor]:
        longest, pad = max(map(len, rows)), self.model.config.pad_token_id or 0
        tokens = torch.full((len(rows), longest), pad, device=self.model.device)
        mask = torch.zeros_like(tokens)
        for row, ids in enumerate(rows):
            place = slice(longest - len(ids), None) if side == "left" else slice(len(ids))
            tokens[row, place], mask[row, place] = torch.tensor(ids, dtype=tokens.dtype), 1
        return tokens, mask
