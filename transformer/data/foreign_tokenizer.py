"""Refuses a stranger's tokenizer that would hang the process, before the process builds it.

The tokenizers library holds the interpreter's lock while it splits a text, so a regular expression that backtracks for
minutes stops a whole server. Patterns and replacements known to take linear time, as those of HeadsUp's own tokenizers
do, are accepted; others are first tried in a process with limits (`try_tokenizer.py`). The trial finds patterns that
are slow on repeated characters, pairs and words; it can't find every text that a pattern is slow on.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from .disk_errors import disk_problem
from .limited_process import MEGABYTE, ProgramError, answer_of

PARTS = ("normalizer", "pre_tokenizer", "decoder")
SECONDS, DEADLINE = 10, 240.0
"""The trial's limits: seconds of processor time, and of wall-clock time."""
LONGEST_WORD, LONGEST_REPLACEMENT = 1_000, 200
"""The longest word for WordPiece, whose time is quadratic in it; and the most bytes that a table may make of one
character."""
MOST_STEPS = 200
"""The most steps of one part, each of which takes time: a tokenizer of sentences has one for each name."""
ONE_ATOM = re.compile(
    r"(?:\\b)?(?:\w+|\\[sSdDwW]|\\[pP]\{\w+\}|[^\\.^$|?*+()\[\]{}]|\[\^?(?:\\.|[^\[\]\\&])+\])"
    r"(?:\+|\{[1-9]\d{0,3}(?:,\d{0,4})?\})?(?:\\b)?"
)
"""One character or class, repeated or not, or a word: such a pattern never backtracks."""
HARMLESS = {
    *("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Nmt", "Prepend"),
    *("BertPreTokenizer", "Metaspace", "Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "UnicodeScripts"),
    *("CharDelimiterSplit", "WordPiece", "BPEDecoder", "CTC", "Fuse", "ByteFallback", "ByteLevel", "Precompiled"),
}
"""Steps that take linear time and lengthen a text by a constant factor at most."""
_PROGRAM = Path(__file__).with_name("try_tokenizer.py")


class SlowTokenizerError(ValueError):
    """A tokenizer that takes too long, or makes too much of a text."""


def backend_of(content: str) -> tokenizers.Tokenizer:
    """Build the library's tokenizer from the content of a `tokenizer.json`.

    Raises: SlowTokenizerError, as `refuse_slow`; ValueError for what is none.
    """
    whole = json.loads(content)
    if not isinstance(whole, dict):
        raise ValueError("it is no set of named values")
    refuse_slow(whole)
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(whole))  # re-encoded: duplicate keys are gone
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library panics, below Exception, on some damaged files
        raise ValueError(str(error)) from None


def refuse_slow(tokenizer: Mapping[str, Any]) -> None:
    """Raise SlowTokenizerError, saying why, for a tokenizer that would take too long or too much memory for some texts.

    tokenizer: the content of its `tokenizer.json`, or the untrusted parts of it.
    """
    model = tokenizer.get("model")
    if isinstance(model, Mapping) and not model.get("max_input_chars_per_word", 0) <= LONGEST_WORD:
        raise SlowTokenizerError(f"it takes apart words of more than {LONGEST_WORD:,} characters")
    ways = {part: tokenizer.get(part) for part in PARTS}
    steps = {part: [*_steps(way)] for part, way in ways.items()}
    for step in itertools.chain.from_iterable(steps.values()):
        _check_lengths(step)
    if all(map(_are_harmless, steps.values())):
        return
    try:
        problem = _problem(json.dumps(ways, sort_keys=True))
    except OSError as error:
        why = disk_problem(error) or error.strerror
        raise SlowTokenizerError(f"it has to be tried first, and at the moment it can't be: {why}") from None
    if problem:
        raise SlowTokenizerError(problem)


@functools.lru_cache(maxsize=64)
def _problem(ways: str) -> str:
    """The trial's verdict. Raises: OSError if there is no room to run it."""
    limits = {"deadline": DEADLINE, "seconds": SECONDS, "memory": 256 * MEGABYTE, "output": MEGABYTE}
    try:
        answer_of(_PROGRAM, json.loads(ways), **limits)
    except ProgramError as error:
        return str(error).removeprefix("ValueError: ")
    return ""


def _steps(part: Any) -> Iterator[Mapping[str, Any]]:
    """The steps of one part of a tokenizer."""
    if not isinstance(part, Mapping):
        return
    if part.get("type") != "Sequence":
        yield part
    for name in ("normalizers", "pretokenizers", "decoders"):
        for each in part.get(name) or ():
            yield from _steps(each)


def _check_lengths(step: Mapping[str, Any]) -> None:
    """Raise SlowTokenizerError for a step that expands some rare character a lot, which a trial could miss."""
    made = [step.get(name) for name in ("content", "prepend", "replacement")]
    longest = max((len(text) for text in made if isinstance(text, str)), default=0)
    if isinstance(table := step.get("precompiled_charsmap"), str):  # the size of a trie, the trie, and texts
        content = base64.b64decode(table)
        texts = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
        longest = max(longest, *map(len, texts))
    if longest > LONGEST_REPLACEMENT:
        raise SlowTokenizerError(f"it replaces a piece of a text by {longest:,} characters")


def _are_harmless(steps: list[Mapping[str, Any]]) -> bool:
    """Whether all steps together take linear time."""
    kinds = [step.get("type") for step in steps if not _cuts_or_shortens(step)]
    return len(steps) <= MOST_STEPS and len(set(kinds)) == len(kinds) and HARMLESS.issuperset(kinds)


def _cuts_or_shortens(step: Mapping[str, Any]) -> bool:
    """Whether a step's pattern can't backtrack, and its replacement isn't longer than the match."""
    pattern = step.get("pattern")
    if not isinstance(pattern, Mapping):
        return False
    literal, regex = pattern.get("String"), pattern.get("Regex", "")
    if not literal and not ONE_ATOM.fullmatch(regex):
        return False
    word = re.fullmatch(r"\\b(\w+)\\b", regex)
    shortest = len(literal or (word[1] if word else "x"))
    return step.get("type") == "Split" or (step.get("type") == "Replace" and len(step["content"]) <= shortest)
