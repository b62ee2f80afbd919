"""The grammar of the stories, as data: what a page offers while a story is typed, and tells apart from what isn't one.

    TEXT -> PERSON DOES MORE          DOES -> WENT to PLACE .          PERSON -> Mary
    TEXT -> Where is PERSON ? ASKED   WENT -> walked                   PERSON -> [new]

A symbol with rules is replaced by the right-hand side of one of them; every other is a word of the text. A pronoun
follows a sentence, and no question.
"""

from __future__ import annotations

from collections.abc import Collection

from .story_world import FACTS, HE, MEN, PLACES, QUESTIONS, SHE, THINGS, VERBS, VOWELS, WOMEN

NEW = "[new]"
"""Any word that the vocabulary lacks."""

Rules = dict[str, list[str]]


def story_rules() -> Rules:
    """Of each symbol, the right-hand sides that may stand for it; a text is a TEXT, and after a sentence MORE."""
    begins_with_vowel = {thing: thing[0] in VOWELS for thing in THINGS}
    return {
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


def within(rules: Rules, words: Collection[str]) -> Rules:
    """Those of the rules that need no other words than these."""
    while True:
        known = {*words, *(symbol for symbol, sides in rules.items() if sides)}
        fewer = {symbol: [side for side in sides if known.issuperset(side.split())] for symbol, sides in rules.items()}
        if fewer == rules:
            return rules
        rules = fewer


def _told(line: str) -> str:
    """What follows the person in a sentence, with symbols for what varies."""
    thing = "GIFT" if line.endswith("WHOM THING") else "OBJECT"
    symbols = {"THING": thing, **{verb: verb.upper() for verb in VERBS}}
    return " ".join(symbols.get(word, word) for word in line.removeprefix("WHO ").split())


def _asked(line: str) -> str:
    return " ".join("PERSON" if word in ("WHO", "WHOM") else word for word in line.split())
