"""Writes numbers as English or Spanish words, and reads English ones back."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 16)
def english(number: int) -> str:
    """A number in English words, without commas: `one thousand two hundred and thirty-four`."""
    return _num2words(number, "en").replace(",", "")


@lru_cache(maxsize=1 << 16)
def spanish(number: int) -> str:
    """A number in Spanish words: `mil doscientos treinta y cuatro`."""
    return _num2words(number, "es")


def number_from_english(text: str) -> int | None:
    """The number that English words name, commas, hyphens and `and` aside; None if they name none.

    >>> number_from_english("two hundred and five")
    205
    """
    units = {english(number): number for number in range(20)} | {english(ten): ten for ten in range(20, 100, 10)}
    words = [word for word in words_of(text) if word != "and"]
    thousands, below = 0, 0
    for word in words:
        if word in units:
            below += units[word]
        elif word == "hundred" and 0 < below < 10:
            below *= 100
        elif word == "thousand" and below and not thousands:
            thousands, below = 1000 * below, 0
        else:
            return None
    number = thousands + below
    english_words = [word for word in words_of(english(number)) if word != "and"]
    return number if words and words == english_words else None


def _num2words(number: int, language: str) -> str:
    from num2words import num2words

    return num2words(number, lang=language)


def words_of(text: str) -> list[str]:
    """Lower-case words, split at spaces, commas and hyphens."""
    return text.lower().replace(",", " ").replace("-", " ").split()
