"""Tries an untrusted tokenizer on texts that could be slow for it; `limited_process` runs this.

Its patterns are regular expressions with backtracking, whose time can be quadratic, cubic or exponential in the length
of a text; its replacements can lengthen a text again and again. Both show on texts that repeat the strings in the
patterns and replacements.
"""

import json
import re
import time
from collections.abc import Iterator

import tokenizers

LENGTHS, OF_PAIRS = (30, 1_000, 10_000), 4_000
"""Lengths of texts that repeat one character, the shortest first, since it suffices for exponential patterns; and the
length of texts that repeat several."""
SECONDS = 0.5
"""Processor seconds for one text."""
MOST_GROWTH = 50
"""The largest factor by which a text may grow."""
USUAL = "aA0 \n\té中!'-\N{COMBINING ACUTE ACCENT}"
END = "☃"
"""A character that ends each run, so that patterns which must reach the end fail there. All strings of the patterns
follow it: a text that lacks a part of a pattern is refused at once."""
MOST_CHARACTERS, MOST_PAIRED, MOST_WORDS = 60, 9, 20


def answer(ways: dict) -> None:
    """Raises: ValueError, naming the text, if a tokenizer is too slow, lengthens a text too much, or panics."""
    model = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    whole = {"version": "1.0", "added_tokens": [], "post_processor": None, "model": model, **ways}
    try:
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(whole))
        for text in _texts([*_strings(ways)]):
            _try(tokenizer, text)
    except Exception:
        raise
    except BaseException as error:  # the library panics, below Exception
        raise ValueError(f"it fails ({str(error)[:100]})") from None


def _try(tokenizer: tokenizers.Tokenizer, text: str) -> None:
    began, normal = time.process_time(), text
    if tokenizer.normalizer is not None:
        normal = tokenizer.normalizer.normalize_str(text)
    pieces = [normal]
    if tokenizer.pre_tokenizer is not None:
        pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
    joined = "" if tokenizer.decoder is None else tokenizer.decoder.decode([text]) + tokenizer.decoder.decode([*text])
    if time.process_time() - began > SECONDS:
        raise ValueError(f"it takes too long for a text that begins with {text[:12]!r}")
    if max(len(normal), sum(map(len, pieces)), len(joined)) > MOST_GROWTH * len(text):
        raise ValueError(
            f"it makes more than {MOST_GROWTH} characters of one, in a text that begins with {text[:12]!r}"
        )


def _texts(named: list[str]) -> Iterator[str]:
    """named: the strings in patterns and replacements."""
    letters = "".join(dict.fromkeys("".join(named)))
    words = [*dict.fromkeys(word for text in named for word in re.findall(r"\w{2,20}", text))][:MOST_WORDS]
    rest = END + " ".join([*words, letters])
    for length in LENGTHS:
        for letter in [*dict.fromkeys(USUAL + letters)][:MOST_CHARACTERS]:
            yield letter * length
            yield letter * length + rest
    paired = [*dict.fromkeys([letter for letter in letters if not letter.isupper()] + [*"a 0"])][:MOST_PAIRED]
    for unit in [*words, *(one + other for one in paired for other in paired if one != other)]:
        yield unit * (OF_PAIRS // len(unit)) + rest


def _strings(part: object) -> Iterator[str]:
    """The strings in a part of a tokenizer's file, without its option names."""
    if isinstance(part, list):
        for each in part:
            yield from _strings(each)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("Regex", "String", "content", "prepend", "prefix", "suffix") and isinstance(value, str):
                yield value
            else:
                yield from _strings(value)
