"""Tests that the text of Austen's novels is made from the R package that has them."""

import gzip
import re
import subprocess
import sys
import zlib
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.austen import NOVELS, novels, text_of


def of_r(value, *, version: int = 3) -> bytes:
    """A list, a text or a dictionary of them as R writes it (*R Internals*, section 1.8)."""
    encoding = pack(">i", 5) + b"UTF-8" if version == 3 else b""
    return b"X\n" + pack(">iii", version, 0x40300, 0x30500) + encoding + item(value, [])


def item(value, seen: list[str]) -> bytes:
    if isinstance(value, str):
        raw = value.encode()
        return pack(">ii", 0x40009, len(raw)) + raw
    if isinstance(value, dict):
        kind, values, names = 0x213, list(value.values()), list(value)
    else:
        kind, values, names = 0x10 if value and isinstance(value[0], str) else 0x13, value, None
    if values and isinstance(values[0], int):
        return pack(f">ii{len(values)}i", 0x0D, len(values), *values)
    found = pack(">ii", kind, len(values)) + b"".join(item(each, seen) for each in values)
    if names is None:
        return found
    symbol = pack(">i", 0x1FF) if seen else pack(">i", 1) + item("names", seen)
    seen.append("names")  # from now on it is the first symbol
    return found + pack(">i", 0x402) + symbol + item(names, seen) + pack(">i", 0xFE)


def package(folder: Path, books: dict[str, list[str]], version: int = 3) -> Path:
    """An installed package with these lines."""
    (folder / "data").mkdir(parents=True)
    places, data = {}, b""
    for name, lines in books.items():
        raw = of_r(lines, version=version)
        part = pack(">i", len(raw)) + zlib.compress(raw)
        places[name] = [len(data), len(part)]
        data += part
    index = of_r({"variables": places, "references": {}}, version=version)
    (folder / "data/Rdata.rdx").write_bytes(gzip.compress(index))
    (folder / "data/Rdata.rdb").write_bytes(data)
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_the_novels_are_written_one_after_another_a_paragraph_a_line(tmp_path, version):
    books = {name: [name.upper(), "", "", "It _is_ a  truth", "universally acknowledged.", "", "é"] for name in NOVELS}
    folder = package(tmp_path / "janeaustenr", {**books, "another": ["text"]}, version)
    assert novels(folder) == books
    made = tmp_path / "austen.txt"
    subprocess.run([sys.executable, "-m", "transformer.data.austen", folder, made], check=True, timeout=120)
    one = "It is a truth universally acknowledged.\né\n"
    assert made.read_text(encoding="utf-8") == "".join(f"{name.upper()}\n{one}" for name in NOVELS)


@given(st.lists(st.text("a_ \t", max_size=4)))
def test_a_paragraph_keeps_its_words_and_ends_at_an_empty_line(lines):
    written = text_of(lines)
    assert written.split() == " ".join(lines).replace("_", "").split()
    assert written.count("\n") == len(re.findall(r"(?:\S.*?\n)+", "".join(f"{line.strip()}\n" for line in lines)))


def test_what_is_no_such_package_is_a_sentence(tmp_path):
    with pytest.raises(OSError, match="Rdata"):
        novels(tmp_path)
    with pytest.raises(ValueError, match=r"The package has no .*emma"):
        novels(package(tmp_path / "other", {"sunspots": ["1"]}))
    (tmp_path / "other/data/Rdata.rdx").write_bytes(gzip.compress(b"RDA3"))
    with pytest.raises(ValueError, match="aren't in R's binary format"):
        novels(tmp_path / "other")
