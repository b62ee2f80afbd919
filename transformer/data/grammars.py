"""The grammars of tasks whose texts are words, as data: by them a page offers the words that may come next.

    TEXT -> PERSON DOES MORE          DOES -> WENT to PLACE .          PERSON -> Mary
    TEXT -> Where is PERSON ? ASKED   WENT -> walked                   PERSON -> [new]

A symbol with rules is replaced by the right-hand side of one of them; every other is a word of the text. A story's
pronouns follow a sentence, and no question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

from .number_words import english
from .story_world import FACTS, HE, MEN, NOT_IT, PLACES, QUESTIONS, SHE, THINGS, VERBS, VOWELS, WOMEN

NEW = "[new]"
"""Any word that the vocabulary lacks."""


@dataclass(frozen=True)
class Grammar:
    """What texts are made of, from TEXT on."""

    rules: Mapping[str, list[str]]
    """Of each symbol, the right-hand sides that may stand for it."""
    separators: str = ""
    """Signs that separate words, as spaces do."""

    def within(self, words: Collection[str]) -> Grammar:
        """The rules that need no other words than these."""
        known = {*words, *(symbol for symbol, sides in self.rules.items() if sides)}
        fewer = {
            symbol: [side for side in sides if known.issuperset(side.split())] for symbol, sides in self.rules.items()
        }
        return self if fewer == self.rules else replace(self, rules=fewer).within(words)


@cache
def of_number_words() -> Grammar:
    """The numbers from zero to 999,999 in English."""
    rules = {
        "TEXT": ["zero", "HUNDREDS", "HUNDREDS thousand", "HUNDREDS thousand REST"],
        "HUNDREDS": ["TENS", "UNIT hundred", "UNIT hundred and TENS"],
        "REST": ["and TENS", "UNIT hundred", "UNIT hundred and TENS"],
        "TENS": ["UNIT", *map(english, range(10, 20)), "TEN", "TEN UNIT"],
        "TEN": [*map(english, range(20, 100, 10))],
        "UNIT": [*map(english, range(1, 10))],
    }
    return Grammar(rules, separators="-,")


@cache
def of_stories() -> Grammar:
    """That of `story_world`; what follows a sentence is MORE, and what follows a question ASKED."""
    begins_with_vowel = {thing: thing[0] in VOWELS for thing in THINGS}
    rules = {
        "TEXT": ["PERSON DOES MORE", *(f"{_asked(line)} ? ASKED" for lines in QUESTIONS.values() for line in lines)],
        "MORE": [f"{SHE[0]} DOES MORE", f"{HE[0]} DOES MORE", "TEXT"],
        "ASKED": ["TEXT", "ANSWER TEXT"],
        "ANSWER": ["PERSON", "SITE", "ITEM"],
        "DOES": [f"{_told(line)} ." for lines in FACTS.values() for line in dict.fromkeys(lines)],
        **{verb.upper(): list(verbs) for verb, verbs in VERBS.items()},
        "PERSON": [*WOMEN, *MEN, NEW],
        "WHOM": ["PERSON", SHE[1], HE[1]],
        "PLACE": ["the SITE", NEW],
        "SITE": [*PLACES, NEW],
        "THING": ["the ITEM", NEW],
        "GIFT": ["THING", "a CONSONANT", "an VOWEL"],
        "OBJECT": ["GIFT", "it"],
        "ITEM": [*THINGS, NEW],
        "CONSONANT": [*(thing for thing, has_vowel in begins_with_vowel.items() if not has_vowel), NEW],
        "VOWEL": [*(thing for thing, has_vowel in begins_with_vowel.items() if has_vowel), NEW],
    }
    return Grammar(rules)


def _told(line: str) -> str:
    """What follows the person in a sentence, with symbols for what varies."""
    thing = "GIFT" if line.endswith(NOT_IT) else "OBJECT"
    symbols = {"THING": thing, **{verb: verb.upper() for verb in VERBS}}
    return " ".join(symbols.get(word, word) for word in line.removeprefix("WHO ").split())


def _asked(line: str) -> str:
    return " ".join("PERSON" if word in ("WHO", "WHOM") else word for word in line.split())
