"""Represents the text on the page: the prompt, what was generated after it, and what of both a model reads.

Places count the tokens of the decoder's text from 0, prompt included.
"""

import hashlib
from dataclasses import dataclass

from pages.ui.computations import activations
from pages.ui.models.library import OpenModel
from transformer import Intervention
from transformer.api.pass_inputs import PassInputs
from transformer.inference.context_windows import window_start

SCOPES = {"prompt": "The prompt", "all": "Prompt and generated text"}


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

    def pass_over(self, tokens: tuple[int, ...]) -> PassInputs:
        """The pass over some of the text, from its start on."""
        begin = window_start(len(tokens), self.model.checkpoint.model.config.context_length)
        return PassInputs(self.model, tokens[begin:], self.source, self.interventions, begin)
