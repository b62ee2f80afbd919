"""Chat templates: the tokens before and after a user's message, as the model was fine-tuned to expect them.

A file brings its template as a program (Jinja). It is run when a model is imported and never after, in a process of its
own (`render_chat.py`): with a few messages, to see what it puts around them. That is kept, as data; a date in it is
that of the day on which it is read.
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
DATE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""What stands for a date."""
DATE_FORM = r"^(?:[^%]|%-?[aAbBdejmyY%])*$"
"""A form for `strftime` in which nothing is smaller than a day."""
LONGEST_FORM, MOST_DATES = 60, 24
"""Characters of a form; dates around one question."""
DAYS = (datetime(2001, 2, 3), datetime(2034, 11, 28))
"""Days on which a template must write what is expected."""
MONTHS = tuple(datetime(2024, month, 4 * month % 29) for month in range(1, 13))
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
    dates: Sequence[str] = ()
    """How each date is written for which a `DATE` stands, first those before the words, as `strftime` has it."""

    def tokens(self, tokenizer: Tokenizer, words: str) -> list[int]:
        """Token ids of one question, up to where the answer begins.

        The names of special tokens count as such in the template alone; in the words they are letters like any others.
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
        """What stands around the words on a certain day."""
        forms = iter(self.dates)
        before, after = (
            re.sub(DATE, lambda _: day.strftime(next(forms, "")), text) if self.dates else text
            for text in (self.before, self.after)
        )
        return Chat(before, after, self.strip)

    def template(self) -> str:
        """A template that writes the same, for other programs: it has one message, the user's."""
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
    """What a template puts around a person's words.

    named: special tokens, as templates ask for them, such as {"bos_token": "<s>"}.
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
    """The same, with how its dates are written. text: in which forms stand for dates.

    Raises: ChatTemplateError for a template that does anything else with a date than to write it.
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
    """A text as templates have it."""
    return json.dumps(text, ensure_ascii=False)


def rendered(template: str, words: Sequence[str], named: Mapping[str, str], day: datetime | None = None) -> list[str]:
    """What a template makes of each of these messages, up to where the answer begins.

    day: what it takes for today; None for dates written as their form between two `DATE`.
    It runs in a process with limits, without this one's environment. Raises: ChatTemplateError if it fails.
    """
    request = {"template": template, "words": list(words), "named": dict(named), "mark": DATE}
    request["day"] = None if day is None else day.isoformat()
    try:
        return answer_of(
            _PROGRAM, request, deadline=SECONDS, seconds=SECONDS // 2, memory=512 * MEGABYTE, output=MEGABYTE
        )
    except ProgramError as error:
        raise ChatTemplateError(str(error)) from None
