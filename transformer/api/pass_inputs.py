"""The inputs of a forward pass: a model, what it reads, and what is changed in it."""

from dataclasses import dataclass

from ..inference.context_windows import in_window
from .open_models import OpenModel
from .tensors import Interventions, Tokens


@dataclass(frozen=True)
class PassInputs:
    """A text as the model reads it: all of it, or past the context its window."""

    model: OpenModel
    tokens: Tokens
    source: Tokens = ()
    changes: Interventions = ()
    """At positions that count from the start of the whole text."""
    begin: int = 0
    """The first token's position in the whole text."""

    @property
    def interventions(self) -> Interventions:
        """The changes, at positions that count from the pass's first token."""
        return in_window(self.changes, self.begin)

    @property
    def passed(self) -> tuple[OpenModel, Tokens, Tokens]:
        """Model, tokens and source, as most functions take them."""
        return self.model, self.tokens, self.source

    def offsets(self, kind: str) -> dict[str, int]:
        """The positions of an attention's first query and first key in their texts. kind: as in `attention_modules`."""
        return {
            "queries": 0 if kind == "encoder" else self.begin,
            "keys": self.begin if kind in ("self", "decoder") else 0,
        }
