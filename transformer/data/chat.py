"""Chat templates: the tokens before and after a user's message, as the model was fine-tuned to expect them.

A file has its template as a program (Jinja). We run it once, when the model is imported, in a process of its own
(`render_chat.py`) on a few messages, and keep the text that it puts around them as data. A date in that text becomes
the date of the day on which the model is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from .limited_process import MEGABYTE, ProgramError, answer_of
from .tokenizers import Tokenizer

LONGEST_TEMPLATE = 200_000
"""The longest template, in characters."""
SECONDS = 20
"""Seconds for rendering, the start of the process included; the template itself may use half of them."""
WORDS = "Some words"
"""The user's words in the first trial message."""
OTHERS = (
    "x",
    " \n\t padded \n ",
    "Two\n\nlines",
    "{{ 7 * 7 }} {% if %} <b> & </b> \\n '\"",
    "naïve 👩‍👩‍👧 שלום",
    "ab " * 999,
)
"""The words in other trials, which must come out in the same place."""
DATE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""A placeholder for a date."""
DATE_FORM = r"^(?:[^%]|%-?[aAbBdejmyY%])*$"
"""A `strftime` format without hours, minutes or seconds."""
LONGEST_FORM, MOST_DATES = 60, 24
"""The longest format in characters; the most dates around one question."""
DAYS = (datetime(2001, 2, 3), datetime(2034, 11, 28))
"""Days on which a template's output is checked."""
MONTHS = tuple(datetime(2024, month, 4 * month % 29) for month in range(1, 13))
_PROGRAM = Path(__file__).with_name("render_chat.py")


class ChatTemplateError(ValueError):
    """A template that can't be rendered, or does more than put text around the words."""


@dataclass(frozen=True)
class Chat:
    """The text around a user's words; special tokens are written by their names."""

    before: str
    after: str
    strip: bool = False
    """Whether to strip white space around the words."""
    dates: Sequence[str] = ()
    """The `strftime` format of each `DATE`, those before the words first."""

    def tokens(self, tokenizer: Tokenizer, words: str) -> list[int]:
        """Token ids of one question, up to where the answer begins.

        Names of special tokens are tokens in the template only; in the user's words they are ordinary letters.
        Raises: UnknownTokenError, as `Tokenizer.encode`.
        """
        today = self.on(datetime.now())
        *begun, last = tokenizer.parted(today.before)
        first, *rest = tokenizer.parted(today.after)
        return tokenizer.encode_parts([*begun, f"{last}{self._words(words)}{first}", *rest])

    def text(self, words: str) -> str:
        """One question, up to where the answer begins."""
        today = self.on(datetime.now())
        return f"{today.before}{self._words(words)}{today.after}"

    def on(self, day: datetime) -> Chat:
        """The text before and after the words, on a given day."""
        forms = iter(self.dates)
        before, after = (
            re.sub(DATE, lambda _: day.strftime(next(forms, "")), text) if self.dates else text
            for text in (self.before, self.after)
        )
        return Chat(before, after, self.strip)

    def template(self) -> str:
        """A Jinja template with the same output, for other programs; it takes one message, the user's."""
        forms = iter(self.dates)

        def written(text: str) -> list[str]:
            first, *others = text.split(DATE) if self.dates else [text]
            dated = [f"strftime_now({_literal(next(forms, ''))}) + {_literal(other)}" for other in others]
            return [_literal(first), *dated]

        words = f"messages[0]['content']{' | trim' if self.strip else ''}"
        parts = " + ".join([*written(self.before), words, *written(self.after)])
        refused = "raise_exception('This template is for one message, the user\\'s.')"
        return f"{{%- if messages | length != 1 %}}{{{{ {refused} }}}}{{% endif %}}{{{{- {parts} }}}}"

    def _words(self, words: str) -> str:
        return words.strip() if self.strip else words


def chat_of(template: object, tokenizer: Tokenizer, named: Mapping[str, str] = MappingProxyType({})) -> Chat:
    """Find the text that a template puts around a user's words.

    named: special tokens under the names that templates use, such as {"bos_token": "<s>"}.
    Raises: ChatTemplateError for one that fails, takes too long, depends on what the words are, or writes what the
        tokenizer can't read.
    """
    if not isinstance(template, str) or len(template) > LONGEST_TEMPLATE:
        raise ChatTemplateError("it is no text, or too long a one")
    texts = rendered(template, [WORDS, *OTHERS], named)
    first, *others = (re.sub(f"{DATE}.*?{DATE}", DATE, text) for text in texts)
    before, *after = first.split(WORDS)
    if len(after) != 1:
        raise ChatTemplateError("it doesn't say a person's words once")
    whole = _dated(Chat(before, after[0]), template, texts[0], named)
    for chat in (whole, replace(whole, strip=True)):
        if [f"{chat.before}{chat._words(words)}{chat.after}" for words in OTHERS] == others:
            for day in MONTHS if chat.dates else MONTHS[:1]:
                if unknown := tokenizer.unknown_pieces(chat.on(day).text("")):
                    raise ChatTemplateError(f"the vocabulary lacks {unknown[0].text!r}, which it writes")
            return chat
    raise ChatTemplateError("it changes what stands around the words, or the words, by what they are")


def _dated(chat: Chat, template: str, text: str, named: Mapping[str, str]) -> Chat:
    """The same, with the format of its dates. text: the output, with formats in place of dates.

    Raises: ChatTemplateError for a template that does anything with a date but write it.
    """
    if "strftime_now" not in template and DATE not in text:
        return chat
    chat = replace(chat, dates=tuple(re.findall(f"{DATE}(.*?){DATE}", text)))
    if not all(len(form) <= LONGEST_FORM and re.match(DATE_FORM, form) for form in chat.dates[:MOST_DATES]):
        raise ChatTemplateError("it writes the time of the day, or a date in a form that isn't known")
    if (chat.before + chat.after).count(DATE) != len(chat.dates[:MOST_DATES]):
        raise ChatTemplateError("it depends on the date, and doesn't only write it")
    for day in DAYS:
        if rendered(template, [WORDS], named, day) != [chat.on(day).text(WORDS)]:
            raise ChatTemplateError("it depends on the date, and doesn't only write it")
    return chat


def _literal(text: str) -> str:
    """Escape a text for a Jinja template."""
    return json.dumps(text, ensure_ascii=False)


def rendered(template: str, words: Sequence[str], named: Mapping[str, str], day: datetime | None = None) -> list[str]:
    """Render each of these messages, up to where the answer begins.

    day: the date of today; None writes each date as its format between two `DATE`.
    The template runs in a process with limits, without this one's environment. Raises: ChatTemplateError if it fails.
    """
    request = {"template": template, "words": list(words), "named": dict(named), "mark": DATE}
    request["day"] = None if day is None else day.isoformat()
    try:
        return answer_of(
            _PROGRAM, request, deadline=SECONDS, seconds=SECONDS // 2, memory=512 * MEGABYTE, output=MEGABYTE
        )
    except ProgramError as error:
        raise ChatTemplateError(str(error)) from None
