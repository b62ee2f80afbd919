"""Chats as a model was tuned to read them: what stands before a person's words, and after them.

A file brings its template as a program (Jinja). No program of others is run here: the form that most models share,
ChatML, is recognised, and kept as data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .tokenizers import Tokenizer

LONGEST_TEMPLATE = 20_000
"""Characters of a template that are looked through."""
_TURN = re.compile(
    r"""['"]<\|im_start\|>['"]\s*\+\s*message(?:\.role|\[['"]role['"]\])\s*\+\s*['"](?:\\n|\n)['"]\s*\+\s*"""
    r"""message(?:\.content|\[['"]content['"]\])\s*\+\s*['"]<\|im_end\|>(?:['"]\s*\+\s*['"])?(?:\\n|\n)['"]"""
)
"""One turn: the role, a line end, the words."""
_ANSWER = re.compile(r"""add_generation_prompt.*['"]<\|im_start\|>assistant(?:\\n|\n)['"]""", re.DOTALL)
_SYSTEM = re.compile(r"""['"]<\|im_start\|>system(?:\\n|\n)([^'"{}<]{0,1000})<\|im_end\|>(?:\\n|\n)['"]""")
"""What is said first where nobody says anything else."""


@dataclass(frozen=True)
class Chat:
    """What stands around a person's words: special tokens are written by their names."""

    before: str
    after: str

    def tokens(self, tokenizer: Tokenizer, words: str) -> list[int]:
        """Token ids of one question, up to where the answer begins.

        The names of special tokens count as such in the template alone; in the words they are letters like any others.
        Raises: UnknownTokenError, as `Tokenizer.encode`.
        """
        *begun, last = tokenizer.parted(self.before)
        first, *rest = tokenizer.parted(self.after)
        found = [*begun, f"{last}{words}{first}", *rest]
        return [each for part in found for each in (tokenizer.encode(part) if isinstance(part, str) else [part])]


def chat_of(template: object, tokenizer: Tokenizer) -> Chat | None:
    """The chat that a template describes, or None for one in another form, or of tokens that there aren't."""
    if not isinstance(template, str) or len(template) > LONGEST_TEMPLATE:
        return None
    if not (_TURN.search(template) and _ANSWER.search(template)):
        return None
    system = _SYSTEM.search(template)
    said = f"<|im_start|>system\n{system[1].replace(chr(92) + 'n', chr(10))}<|im_end|>\n" if system else ""
    try:
        for token in ("<|im_start|>", "<|im_end|>"):
            tokenizer.special_id(token)
    except KeyError:
        return None
    return Chat(f"{said}<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
