"""Tokens as they can be read: what can't be seen gets a sign, and what a vocabulary lacks is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category

JOINER, DRAWN = "\u200d", "\ufe0e\ufe0f"
"""What makes one sign of two characters; and what says that the one before is drawn as a letter, or in colour."""
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U00016fe4\U0001d159"
    "\U000e0000-\U000e0fff]"
)
"""Invisible characters that are neither controls nor separators in Unicode: the other default-ignorable ones, such as
variation selectors and fillers, and blank signs."""
CARRIER = "\N{DOTTED CIRCLE}"
"""The circle on which a combining mark without a letter is drawn."""


@dataclass(frozen=True)
class UnknownPiece:
    """A character or word that the vocabulary lacks, and where it begins in the text (from 0)."""

    text: str
    position: int


class UnknownTokenError(ValueError):
    """The text has pieces that the vocabulary lacks; `pieces` lists each with its position.

    limit: what is said besides, of the new words that a model reads all the same.
    """

    def __init__(self, pieces: Sequence[UnknownPiece], limit: str = "") -> None:
        self.pieces = tuple(pieces)
        listed = ", ".join(f"{_quoted(printable(piece.text))} at {piece.position + 1}" for piece in self.pieces[:8])
        more = f" and {len(self.pieces) - 8} more" if len(self.pieces) > 8 else ""
        super().__init__(f"This model has never seen: {listed}{more}.{limit}")


def printable(text: str) -> str:
    """Replace spaces, line ends and other invisible characters by signs, and put marks without a letter on a dotted
    circle. What joins visible characters stays."""
    signs, carries = [], False
    for at, character in enumerate(text):
        if carries and _joins_signs(text, at):
            signs.append(character)
            continue
        seen = is_seen(character)
        alone = seen and not carries and category(character).startswith("M")
        sign = f"{CARRIER if alone else ''}{character}" if seen else f"U+{ord(character):04X}"
        signs.append(VISIBLE.get(character, sign))
        carries = seen
    return "".join(signs)


def _joins_signs(text: str, at: int) -> bool:
    """Whether a character makes one sign of its neighbours, as in an emoji of two people, or says how one is drawn."""
    if text[at] == JOINER:
        following = text[at + 1 : at + 2]
        return bool(following) and is_seen(following) and not category(following).startswith("M")
    return text[at] in DRAWN and category(text[at - 1]).startswith("S")


def is_seen(character: str) -> bool:
    """Whether a character is visible, if only as a mark on another.

    Characters newer than this Python's Unicode count as visible: browsers draw a box for those that they don't know.
    """
    kind, code = category(character), ord(character)
    is_none = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF  # never a character
    return not (is_none or kind in ("Cc", "Cf", "Cs", "Co") or kind.startswith("Z") or _BLANK.match(character))


def printable_bytes(piece: bytes) -> str:
    """Decode bytes, writing incomplete characters as ⟨E2⟩."""
    letters = piece.decode("utf-8", "surrogateescape")
    parts = re.split("([\udc80-\udcff])", letters)
    return "".join(f"⟨{ord(part) - 0xDC00:02X}⟩" if at % 2 else printable(part) for at, part in enumerate(parts))


def _quoted(text: str) -> str:
    """As `repr` writes it, without escaping what joins characters."""
    mark = '"' if "'" in text and '"' not in text else "'"
    return mark + text.replace("\\", "\\\\").replace(mark, f"\\{mark}") + mark
