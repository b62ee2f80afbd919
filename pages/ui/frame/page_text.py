"""Represents the text on the page: the prompt, what was generated after it, and what of both a model reads.

Places count the tokens of the decoder's text from 0, prompt included.
"""

from dataclasses import dataclass

from pages.ui.computations import activations
from pages.ui.models import library
from pages.ui.models.library import OpenModel
from transformer import Intervention
from transformer.api.pass_inputs import PassInputs
from transformer.api.text_reading import reading
from transformer.inference.context_windows import window_start


@dataclass(frozen=True)
class Text:
    """What a model reads, and has written.

    model: with the new words of the prompt. prompt: for an encoder–decoder its start token. source: what its encoder
    reads; empty for a model that has none.
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


def read_prompt(name: str, prompt: str, reads: str) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """What the decoder continues, or an encoder-only model reads, and the source; None for the first if it can't be."""
    checkpoint = library.model(name)
    read = reading(checkpoint, prompt, reads)
    tokens = tuple(read["tokens"])
    if read["problem"]:
        return None, ()
    is_source = checkpoint.model.config.architecture == "encoder-decoder"
    return (checkpoint.card.start_tokens, tokens) if is_source else (tokens, ())
