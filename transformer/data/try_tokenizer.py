"""Lets a stranger's tokenizer normalise, cut and join texts that could take it long; `limited_process` runs it.

Its patterns are regular expressions with backtracking, which can take a time that grows with the square of a text's
length, its cube, or exponentially; its replacements can make a text longer again and again. Both show in texts that
repeat what the patterns and replacements name.
"""

import json
import re
import time
from collections.abc import Iterator

import tokenizers

LENGTHS, OF_PAIRS = (30, 1_000, 10_000), 4_000
"""Characters of texts that repeat one character, the shortest first: what takes exponentially long fails in that one.
And of one that repeats several."""
SECONDS = 0.5
"""Of a processor, for one text."""
MOST_GROWTH = 50
"""How many times as long a text may become."""
USUAL = "aA0 \n\té中!'-\N{COMBINING ACUTE ACCENT}"
END = "☃"
"""A character that a run of others ends with, so that what has to reach the end fails there. After it comes all that
is looked for: a text that lacks a part of a pattern is no work."""
MOST_CHARACTERS, MOST_PAIRED, MOST_WORDS = 60, 9, 20


def answer(ways: dict) -> None:
    """Raises: ValueError, saying of what, if a tokenizer takes too long, makes too much of a text, or panics."""
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
    """named: what patterns look for, and what they are replaced with."""
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
    """The texts in a part of a tokenizer's file, but for names of its options."""
    if isinstance(part, list):
        for each in part:
            yield from _strings(each)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("Regex", "String", "content", "prepend", "prefix", "suffix") and isinstance(value, str):
                yield value
            else:
                yield from _strings(value)
