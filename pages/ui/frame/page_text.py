"""Represents the text on the page: the prompt, what was generated after it, and what of both a model reads.

Places count the tokens of the decoder's text from 0, prompt included.
"""

import hashlib
from dataclasses import dataclass

from pages.ui.computations import activations
from pages.ui.models.library import OpenModel
from transformer import Intervention, in_window
from transformer.inference.context_windows import window_start

SCOPES = {"prompt": "The prompt", "all": "Prompt and generated text"}


@dataclass(frozen=True)
class PassInput:
    """A text as the model reads it: all of it, or past the context its window."""

    model: OpenModel
    tokens: tuple[int, ...]
    source: tuple[int, ...] = ()
    begin: int = 0
    """The first token's position in the whole text."""
    interventions: tuple[Intervention, ...] = ()
    """What is changed in this pass, at positions that count from its first token."""
    kind: str = ""
    """The attention that is looked at, as in `attention_modules`."""

    @property
    def passed(self) -> tuple[OpenModel, tuple[int, ...], tuple[int, ...]]:
        """Model, tokens and source: what most computations are asked for by."""
        return self.model, self.tokens, self.source

    @property
    def offsets(self) -> dict[str, int]:
        """The positions of the attention's first query and first key in their texts."""
        return {
            "queries": 0 if self.kind == "encoder" else self.begin,
            "keys": self.begin if self.kind in ("self", "decoder") else 0,
        }


@dataclass(frozen=True)
class Text:
    """What a model reads, and has written.

    prompt: for an encoder–decoder its start token. source: what its encoder reads; empty for a model that has none.
    """

    model: OpenModel
    prompt: tuple[int, ...]
    source: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    interventions: tuple[Intervention, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and what was written."""
        return self.prompt + self.written

    @property
    def identity(self) -> str:
        """The same only for the same prompt and source of the same model, changed in the same way."""
        identity = repr((self.model.version, self.prompt, self.source, self.interventions))
        return hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def whole(self) -> tuple[int, ...]:
        """Prompt and what was written; of an encoder–decoder that has written nothing, what it would write."""
        if self.written or not self.source:
            return self.tokens
        return self.tokens + activations.answer(self.model, self.prompt, self.source, self.interventions)

    def read(self) -> tuple[int, ...]:
        """All of that; of an encoder–decoder without its end token, from which nothing is looked up."""
        text = self.whole()
        return text[:-1] if self.source and text[-1] == self.model.checkpoint.card.end_token_id else text

    def pass_over(self, tokens: tuple[int, ...], kind: str = "") -> PassInput:
        """The pass over some of the text, from its start on. kind: as in `PassInput`."""
        begin = window_start(len(tokens), self.model.checkpoint.model.config.context_length)
        changed = in_window(self.interventions, begin)
        return PassInput(self.model, tokens[begin:], self.source, begin, changed, kind)
