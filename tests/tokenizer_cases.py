"""Writes texts with what Python's tokenizers make of them, for the test of what the browser makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import category, normalize, ucd_3_2_0

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.checkpoints.folder import list_checkpoints
from transformer.data.token_text import UnknownTokenError, printable
from transformer.data.tokenizers import Tokenizer

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
ODD = ("", " ", "\r\n", "🙂", "👩‍🚀 é e\u0301", "ΣΑΣ", "İstanbul", "anna_ben", "'\"\\")
ODD += ("\ufeff\x85\u2028", "[mask]", "[pad][end]", "👩\u200d❤\ufe0f\u200d👨 it's  we'll 'TIS ٣½S12")
ODD += ("a\ud83d", "\ude42\ud83d b", "\r\n\r\n \n\t", f"{' ' * 50}x{' ' * 50}", "🏳️‍🌈👩🏽‍🚀🇪🇸 漢字 नमस्ते سلام")
LONG = 200_000
"""Characters of a text, in one piece of which nothing may take the square of its length."""
LONG_KNOWN = st.characters(exclude_categories=["Cn", "Cs"]).filter(lambda one: category(one) == ucd_3_2_0.category(one))
"""A browser, Python and its tokenizers know characters, and what is punctuation, of different editions of Unicode."""


def write_tokenizer_cases(file: Path) -> None:
    """Texts with their ids, or the error, and ids with their text: of each tokenizer that shipped models have, once."""
    examples = {entry.name: entry.card.examples for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None}
    assert len(examples) > 20
    by_content = {(CHECKPOINTS / name / "tokenizer.json").read_bytes(): name for name in examples}
    cases = [_cases(CHECKPOINTS / name, examples[name]) for name in by_content.values()]
    text = "José took the 👨‍👩‍👧. Мария gave it to 小明. Where is O'Brien?"
    source = Path(__file__).read_text(encoding="utf-8")
    made = {
        "new-words": Tokenizer.of_sentences(
            ["Mary", "took", "the", "gave", "it", "to", ".", "?"], ("[pad]",), new_words=3
        ),
        "bytes": Tokenizer.of_bytes(source, 400),
    }
    long = [source * (LONG // len(source)), "".join(filter(str.isalpha, source)) * 100, " " * LONG, "🙂" * (LONG // 4)]
    for name, tokenizer in made.items():
        (file.parent / name).mkdir()
        tokenizer.save(file.parent / name / "tokenizer.json")
        typed = ["Mary took the ball. Where is Mary?", text]
        cases.append(_cases(file.parent / name, typed, long if name == "bytes" else []))
    file.write_text(json.dumps(cases), encoding="utf-8")


def write_labels(file: Path) -> None:
    """Every character that this edition of Unicode has, alone and after a letter, with what labels show of it."""
    known = [one for one in map(chr, range(0x110000)) if category(one) not in ("Cn", "Cs")]
    file.write_text(json.dumps([known, [printable(one) + printable(f"a{one}") for one in known]]), encoding="utf-8")


def _cases(folder: Path, examples: list[str], long: Sequence[str] = ()) -> dict[str, Any]:
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json")
    vocabulary = tokenizer.vocab_size
    texts = [*ODD, *examples, *(text.upper() for text in examples), " ".join(examples * 8)]
    texts += [normalize(form, text) for form in ("NFC", "NFD") for text in (*examples, "á☃ñu\u0308e각\u0301")]
    lists = [[vocabulary, 0], list(range(vocabulary))]

    known = st.sampled_from([tokenizer.label(id).replace("␣", " ").replace("↵", "\n") for id in range(vocabulary)])
    among = st.sampled_from(["", " ", ", ", "-", "\n", ".", "!"])

    some = st.lists(st.integers(0, vocabulary + 1), max_size=20)

    @settings(max_examples=25)
    @given(st.text(LONG_KNOWN, max_size=20), st.lists(st.tuples(known, among), max_size=20), some)
    def collect(anything: str, parts: list[tuple[str, str]], ids: list[int]) -> None:
        typed = "".join(f"{token}{between}" for token, between in parts)
        texts.extend([anything, typed, typed.title()])
        lists.append(ids)

    collect()
    return {
        "name": folder.name,
        "folder": str(folder),
        "readsNames": tokenizer.reads_names,
        "vocabSize": vocabulary,
        "labels": tokenizer.labels(range(vocabulary + 1)),
        "encoded": [_encoded(tokenizer, text) for text in dict.fromkeys([*texts, *long])],
        "decoded": [[ids, tokenizer.decode(ids)] for ids in lists],
        "named": [_named(tokenizer, [one, other]) for one, other in pairwise(texts)],
    }


def _named(tokenizer: Tokenizer, texts: list[str]) -> dict[str, Any]:
    """What is read with the new words of two texts."""
    named = tokenizer.with_new_words(texts)
    ids = list(range(tokenizer.vocab_size))
    return {
        "texts": texts,
        "words": named.new_words,
        "labels": named.labels(ids),
        "decoded": named.decode(ids[:40] + ids[-40:]),
        "encoded": [_encoded(named, text) for text in reversed(texts)],
    }


def _encoded(tokenizer: Tokenizer, text: str) -> dict[str, Any]:
    if unknown := tokenizer.unknown_pieces(text):
        pieces = [[piece.text, piece.position] for piece in unknown]
        with pytest.raises(UnknownTokenError) as caught:
            tokenizer.encode(text)
        return {"text": text, "error": str(caught.value), "pieces": pieces}
    return {"text": text, "ids": tokenizer.encode(text)}
