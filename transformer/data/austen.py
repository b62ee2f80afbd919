"""Makes `austen.txt`, Jane Austen's six novels, from the R package `janeaustenr` (Debian: `r-cran-janeaustenr`).

    python -m transformer.data.austen /usr/lib/R/site-library/janeaustenr austen.txt

R keeps a package's data in two files: `Rdata.rdb` has the objects one after another, each compressed behind the length
that it has unpacked, and `Rdata.rdx` says where each begins. Objects are in R's binary format ("R Internals", §1.8),
of which this reads what the two files contain.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import unpack_from
from typing import Any

NOVELS = ("sensesensibility", "prideprejudice", "mansfieldpark", "emma", "northangerabbey", "persuasion")
"""In the order in which they were published."""
HEADER = 14
"""Bytes before the first object: the format and three versions; version 3 has the name of an encoding after them."""
NIL, SYMBOL, PAIRS, CHARACTERS, LOGICALS, INTEGERS, STRINGS, LIST, SEEN = 254, 1, 2, 9, 10, 13, 16, 19, 255
HAS_ATTRIBUTES, HAS_TAG = 0x200, 0x400


def novels(package: Path) -> dict[str, list[str]]:
    """The lines of each novel, from an installed package's folder. Raises OSError if it isn't there, ValueError if its
    data can't be read."""
    index = _Reader(gzip.decompress((package / "data/Rdata.rdx").read_bytes())).value()
    data = (package / "data/Rdata.rdb").read_bytes()
    parts = {name: data[at : at + size] for name, (at, size) in index["variables"].items()}
    if missing := set(NOVELS) - set(parts):
        raise ValueError(f"The package has no {', '.join(sorted(missing))}.")
    return {name: _Reader(zlib.decompress(parts[name][4:])).value() for name in NOVELS}


def text_of(lines: Iterable[str]) -> str:
    """A paragraph a line, without the underscores that stand for italics."""
    return "".join(f"{paragraph}\n" for paragraph in _paragraphs(lines)).replace("_", "")


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    words: list[str] = []
    for line in [*lines, ""]:
        if not line.strip() and words:
            yield " ".join(words)
            words = []
        words += line.split()


class _Reader:
    """Reads one object: a vector as a list, one with names as a dictionary."""

    def __init__(self, data: bytes) -> None:
        if data[:2] != b"X\n":
            raise ValueError("These data aren't in R's binary format.")
        self._data, self._at = data, HEADER
        self._seen: list[str] = []
        if unpack_from(">i", data, 2)[0] >= 3:
            self._at += 4 + unpack_from(">i", data, HEADER)[0]

    def value(self) -> Any:
        flags = self._number()
        kind = flags & 0xFF
        if kind == NIL:
            return None
        if kind == SEEN:
            return self._seen[(flags >> 8 or self._number()) - 1]
        if kind == SYMBOL:
            self._seen.append(self.value())
            return self._seen[-1]
        if kind == CHARACTERS:
            return self._characters()
        if kind == PAIRS:
            return self._pairs(flags)
        if kind not in (LOGICALS, INTEGERS, STRINGS, LIST):
            raise ValueError(f"An object of R's type {kind} isn't read here.")
        one = self._number if kind in (LOGICALS, INTEGERS) else self.value
        values = [one() for _ in range(self._number())]
        names = self.value().get("names") if flags & HAS_ATTRIBUTES else None
        return dict(zip(names, values, strict=True)) if names else values

    def _pairs(self, flags: int) -> dict[str, Any]:
        pairs = {}
        while flags & 0xFF == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self.value()
            tag = self.value() if flags & HAS_TAG else ""
            pairs[tag] = self.value()
            flags = self._number()
        return pairs

    def _characters(self) -> str | None:
        length = self._number()
        if length < 0:
            return None
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _number(self) -> int:
        self._at += 4
        return unpack_from(">i", self._data, self._at - 4)[0]


if __name__ == "__main__":
    folder, made = sys.argv[1:]
    Path(made).write_text("".join(map(text_of, novels(Path(folder)).values())), encoding="utf-8")
