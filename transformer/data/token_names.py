"""Labels of tokens, and their text in context."""

from __future__ import annotations

from collections.abc import Iterable

from .token_text import is_seen
from .tokenizers import HALF, Tokenizer


def kinds_of(tokenizer: Tokenizer, ids: Iterable[int]) -> dict[str, list[str]]:
    """Each token's label and its text within a sentence; third, if it differs, its text at the beginning of one."""
    kinds = {}
    for token in sorted(set(map(int, ids))):
        label = tokenizer.label(token)
        shown, first = (_shown_as(tokenizer.piece(token, first=first), label) for first in (False, True))
        kinds[str(token)] = [label, shown] if first == shown else [label, shown, first]
    return kinds


def _shown_as(text: str, label: str) -> str:
    """The raw text where it can be seen or is white space that the page lays out, else the printable label.

    A special token adds nothing to a text: it is shown by its name.
    """
    if HALF in text:  # part of a character: the label shows its bytes
        return label
    seen = text and all(is_seen(character) or character in f" \n\t{label}" for character in text)
    return text if seen else label if text else f" {label}"
