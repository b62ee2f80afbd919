"""Represents the text on the page: the prompt, and what was generated after it.

Places count the tokens of the decoder's text from 0, prompt included.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pages.ui.models.library import OpenModel
from transformer import Intervention


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
