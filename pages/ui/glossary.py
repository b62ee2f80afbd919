"""Reads the glossary from `glossary.md`: each term's meaning, source, name in the code, and page."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("glossary.md")
LAST_LINE = re.compile(r"source: (?P<source>.+) \| code: (?P<code>.+) \| page: (?P<page>.+)")


@dataclass(frozen=True)
class Term:
    name: str
    others: tuple[str, ...]
    """Other words for it."""
    alone: tuple[str, ...]
    """Of all its words, those that mean it only where nothing else is said: on a label, not within a sentence."""
    meaning: str
    source: str
    """The paper, and its section if there is one to name."""
    code: str
    """What it is called in the code."""
    page: str
    """The title of the page where it can be seen."""


def read_glossary(text: str) -> list[Term]:
    """The entries of a glossary, in their order. Raises ValueError, naming the entry, for one that isn't whole.

    An entry is a heading with the term and, after bars, other words for it, any of which may stand in parentheses (see
    `Term.alone`); a paragraph; and a last line such as
    `source: Vaswani et al. 2017, §3.4 | code: hook_embed | page: Inside`.
    """
    terms: list[Term] = []
    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = entry.strip().splitlines()
        written = [word.strip() for word in heading.split("|")]
        name, *others = (word.removeprefix("(").removesuffix(")").strip() for word in written)
        alone = tuple(word for word, as_written in zip((name, *others), written, strict=True) if as_written != word)
        last = LAST_LINE.fullmatch(lines[-1]) if lines else None
        meaning = " ".join(lines[:-1])
        if not (name and all(others) and last and meaning.strip()):
            raise ValueError(f"The entry {heading!r} needs a term, a paragraph, and a line with source, code and page.")
        terms.append(Term(name, tuple(others), alone, meaning, **last.groupdict()))
    words = [word.lower() for term in terms for word in (term.name, *term.others)]
    if twice := sorted({word for word in words if words.count(word) > 1}):
        raise ValueError(f"The glossary has more than one entry for {', '.join(twice)}.")
    return terms


@lru_cache(maxsize=1)
def entries() -> tuple[Term, ...]:
    """The glossary's terms, in its order."""
    return tuple(read_glossary(FILE.read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def glossary() -> dict[str, Term]:
    """Each term of the interface, by every word for it, in small letters."""
    return {word.lower(): term for term in entries() for word in (term.name, *term.others)}
