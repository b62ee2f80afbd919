"""Chat templates: the tokens before and after a user's message, as the model was fine-tuned to expect them.

A file brings its template as a program (Jinja). It is run when a model is imported and never after, in a process of its
own (`render_chat.py`): with a few messages, to see what it puts around them. That is kept, as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from .limited_process import MEGABYTE, ProgramError, answer_of
from .tokenizers import Tokenizer

LONGEST_TEMPLATE = 200_000
"""Characters of a template."""
SECONDS = 20
"""How long rendering may take, with the start of a process; its program may use half of that."""
WORDS = "Some words"
"""What a person says in the first message."""
OTHERS = (
    "x",
    " \n\t padded \n ",
    "Two\n\nlines",
    "{{ 7 * 7 }} {% if %} <b> & </b> \\n '\"",
    "naïve 👩‍👩‍👧 שלום",
    "ab " * 999,
)
"""And in others, which must come out in the same place."""
_PROGRAM = Path(__file__).with_name("render_chat.py")


class ChatTemplateError(ValueError):
    """A template that can't be rendered, or does other things than to put something around the words."""


@dataclass(frozen=True)
class Chat:
    """What stands around a person's words: special tokens are written by their names."""

    before: str
    after: str
    strip: bool = False
    """Whether white space around the words is left out."""

    def tokens(self, tokenizer: Tokenizer, words: str) -> list[int]:
        """Token ids of one question, up to where the answer begins.

        The names of special tokens count as such in the template alone; in the words they are letters like any others.
        Raises: UnknownTokenError, as `Tokenizer.encode`.
        """
        *begun, last = tokenizer.parted(self.before)
        first, *rest = tokenizer.parted(self.after)
        return tokenizer.encode_parts([*begun, f"{last}{self._words(words)}{first}", *rest])

    def text(self, words: str) -> str:
        """One question, up to where the answer begins."""
        return f"{self.before}{self._words(words)}{self.after}"

    def _words(self, words: str) -> str:
        return words.strip() if self.strip else words


def chat_of(template: object, tokenizer: Tokenizer, named: Mapping[str, str] = MappingProxyType({})) -> Chat:
    """What a template puts around a person's words.

    named: special tokens, as templates ask for them, such as {"bos_token": "<s>"}.
    Raises: ChatTemplateError for one that fails, takes too long, depends on what the words are, or writes what the
        tokenizer can't read.
    """
    if not isinstance(template, str) or len(template) > LONGEST_TEMPLATE:
        raise ChatTemplateError("it is no text, or too long a one")
    first, *others = rendered(template, [WORDS, *OTHERS], named)
    before, *after = first.split(WORDS)
    if len(after) != 1:
        raise ChatTemplateError("it doesn't say a person's words once")
    for chat in (Chat(before, after[0]), Chat(before, after[0], strip=True)):
        if [chat.text(words) for words in OTHERS] == others:
            if unknown := tokenizer.unknown_pieces(chat.text("")):
                raise ChatTemplateError(f"the vocabulary lacks {unknown[0].text!r}, which it writes")
            return chat
    raise ChatTemplateError("it changes what stands around the words, or the words, by what they are")


def rendered(template: str, words: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """What a template makes of each of these messages, up to where the answer begins.

    It runs in a process with limits, without this one's environment. Raises: ChatTemplateError if it fails.
    """
    request = {"template": template, "words": list(words), "named": dict(named)}
    try:
        return answer_of(
            _PROGRAM, request, deadline=SECONDS, seconds=SECONDS // 2, memory=512 * MEGABYTE, output=MEGABYTE
        )
    except ProgramError as error:
        raise ChatTemplateError(str(error)) from None
