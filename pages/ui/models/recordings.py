"""What recordings of a pass are called between server and browser."""

from __future__ import annotations

import hashlib

from pages.ui.models.library import OpenModel, opened
from transformer.api.tensors import Interventions, Tokens


def identity(
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), kind: str = "self", interventions: Interventions = ()
) -> str:
    """What recordings of this pass are called between server and browser: the same only for the same numbers."""
    model = opened(model) if isinstance(model, str) else model
    told = repr((model.version, tokens, source, kind, interventions))
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]
