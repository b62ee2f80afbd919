"""Tokenizers: encode text to token ids and decode ids to text, using `tokenizer.json` files.

The file decides whether a token is a character, a word or a part of one. This module adds labels in which spaces and
line ends are visible, and never drops parts of a text: unknown pieces become the vocabulary's unknown token if it has
one, as in the library; otherwise the text is refused, and the error names each unknown piece.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, count, pairwise, takewhile
from pathlib import Path
from typing import ParamSpec, TypeVar
from unicodedata import category, normalize

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from .foreign_tokenizer import SlowTokenizerError, backend_of
from .token_text import UnknownPiece, UnknownTokenError, printable, printable_bytes

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
PASSES = 20
"""The most passes over a text to remove unknown pieces."""
_VISIBLE_BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTE_LETTERS = dict(
    zip(
        [*map(chr, _VISIBLE_BYTES), *(chr(256 + at) for at in range(256 - len(_VISIBLE_BYTES)))],
        [*_VISIBLE_BYTES, *(byte for byte in range(256) if byte not in _VISIBLE_BYTES)],
        strict=True,
    )
)
"""The byte behind each letter of a byte-level token (Radford et al. 2019, GPT-2's encoder)."""
_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""How a vocabulary with byte fallback writes a byte."""
HALF = "\N{REPLACEMENT CHARACTER}"
"""The replacement character, which decoding writes for bytes that are no whole character."""
CHUNK, CONTEXT = 64, 8
"""Tokens of a long text to separate at a time, and how many on either side to decode with them."""
UNSEEN = "\N{OLD PERSIAN SIGN A}"
"""A letter that no vocabulary has."""
REMEMBERED = 4096
"""The most pieces, as typed, that a tokenizer caches: normalizing them takes most of the time."""
NEW_WORD = "[new{}]"
"""How the vocabulary names the places that it keeps for new words, from 1: no text has such a piece, as brackets part
words."""
SIGNS = r'[.,;:!?…“”„«»"()\[\]]'
"""What parts the words of a sentence beside spaces; an apostrophe and a hyphen belong to a word."""
P = ParamSpec("P")
T = TypeVar("T")


def _without_panics(method: Callable[P, T]) -> Callable[P, T]:
    """Wrap a method so that a panic of the Rust library, which is no Exception, becomes a ValueError."""

    @functools.wraps(method)
    def safe(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Exception:
            raise
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise ValueError(f"This model's tokenizer fails on this text ({str(error)[:100]}).") from None

    return safe


class Tokenizer:
    """Encodes, decodes and labels; `encode` never drops anything."""

    def __init__(self, backend: tokenizers.Tokenizer, *, reads_names: bool = False) -> None:
        """reads_names: whether a special token's name in a text, such as [mask], is read as that token."""
        self.reads_names = reads_names
        backend.no_truncation()
        backend.no_padding()
        model = backend.model
        for sampling in ("dropout", "alpha", "nbest_size"):  # training options that make encoding random
            if getattr(model, sampling, None) is not None:
                setattr(model, sampling, None)
        backend.encode_special_tokens = True  # names of special tokens are ordinary letters
        self._backend = backend
        added = {token.content: (id, token) for id, token in backend.get_added_tokens_decoder().items()}
        self._special = {name: id for name, (id, token) in added.items() if token.special}
        self._names = _names([token for _, token in added.values() if token.special])
        self._eats_space: dict[str | int, tuple[bool, bool]] = {
            id: (token.lstrip, token.rstrip) for id, token in added.values()
        }
        decoder = _state(backend.decoder)
        self._is_of_bytes = '"ByteLevel"' in decoder
        self._marks_spaces = any(sign in decoder for sign in ("▁", '"ByteFallback"'))
        self._reads_everything = _reads_everything(backend.model, of_bytes=self._is_of_bytes)
        self._known: set[str] = set()
        self._normals: dict[str, str] = {}
        slots = (model.token_to_id(NEW_WORD.format(number)) for number in count(1))
        self._slots = tuple(takewhile(lambda id: id is not None, slots)) if isinstance(model, models.WordLevel) else ()
        self.new_words: tuple[str, ...] = ()
        """The words that it reads as new ones, in order. Others of a text take the next places, in that text alone."""
        self._ids_of_new: dict[str, int] = {}
        self._typed: dict[int, str] = {}

    @classmethod
    def of_characters(cls, alphabet: Iterable[str], special: Sequence[str] = ()) -> Tokenizer:
        """One token per character; ids follow the code points, then come those of `special`."""
        backend = _word_level(sorted(set(alphabet)), special)
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
        return cls(backend)

    @classmethod
    def of_words(cls, words: Iterable[str], special: Sequence[str] = ()) -> Tokenizer:
        """One token per word, ignoring case; commas, hyphens and spaces separate words.

        Ids follow the alphabet, then come those of `special`.
        """
        backend = _word_level(sorted({word.lower() for word in words}), special)
        backend.normalizer = normalizers.Lowercase()
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s,\-]+"), "removed")
        return cls(backend)

    @classmethod
    def of_sentences(cls, words: Iterable[str], special: Sequence[str] = (), *, new_words: int = 0) -> Tokenizer:
        """One token per word or sign, ignoring case and spaces before signs.

        words: in the one spelling that `decode` writes: `Mary`, but `went`. Ids follow the code points, then come those
        of the new words, and those of `special`. `decode` writes no space before a full stop or a question mark.
        new_words: how many words beside these it can read in a text (`with_new_words`).
        """
        slots = [NEW_WORD.format(number) for number in range(1, new_words + 1)]
        backend = _word_level([*sorted(words), *slots], special)
        capitals = [word for word in sorted(words) if word != word.lower()]
        as_written = [normalizers.Replace(Regex(rf"\b{word.lower()}\b"), word) for word in capitals]
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *as_written])
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(SIGNS), "isolated")]
        )
        backend.decoder = decoders.WordPiece(prefix="[none]", cleanup=True)  # spaces as in a sentence
        return cls(backend)

    @classmethod
    def of_bytes(cls, text: str, size: int) -> Tokenizer:
        """Byte-level BPE (Sennrich et al. 2016, Radford et al. 2019): the bytes, and the pairs that are most frequent
        in a text, one after another, until there are `size` tokens. Every text can be encoded."""
        backend = tokenizers.Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        backend.train_from_iterator(text.splitlines(keepends=True), trainer)
        return cls(backend)

    @classmethod
    def from_file(cls, path: str | Path) -> Tokenizer:
        """Read a `tokenizer.json`. Raises ValueError for any other file, and for one that would take too long."""
        try:
            return cls(backend_of(Path(path).read_text(encoding="utf-8-sig")))
        except SlowTokenizerError as error:
            raise ValueError(f"{Path(path).name} can't be used: {error}.") from None
        except Exception as error:  # a damaged file can raise anything
            raise ValueError(f"{Path(path).name} is not a tokenizer file: {error}") from None

    def with_names(self) -> Tokenizer:
        """The same tokenizer, but reading names of special tokens as those tokens."""
        return Tokenizer(self._backend, reads_names=True)

    def with_new_words(self, texts: Iterable[str]) -> Tokenizer:
        """The same tokenizer, whose new words are those that the vocabulary lacks in these texts, in order; no others.

        The same word, in capitals or not, is the same new one; labels and `decode` write it as it was typed first. What
        has neither a letter nor a number nor a symbol is no word. Without a place for new words: this tokenizer.
        """
        if not self._slots:
            return self
        named = copy.copy(self)
        named._ids_of_new = {}
        found: dict[str, str] = {}
        pieces = (piece for text in texts for piece in named._unknown_pieces(text))
        while len(found) < len(self._slots) and (piece := next(pieces, None)):
            if any(category(character)[0] in "LNS" for character in piece.text):
                found.setdefault(self._composed(piece.text), piece.text)
        named.new_words = tuple(found.values())
        named._ids_of_new = dict(zip(found, self._slots, strict=False))
        named._typed = dict(zip(self._slots, named.new_words, strict=False))
        return named

    def _with_those_of(self, texts: Iterable[str]) -> Tokenizer:
        """The same tokenizer, with the new words of these texts after its own."""
        return self.with_new_words([*self.new_words, *texts])

    def to_json(self, *, pretty: bool = False) -> str:
        """The content of a `tokenizer.json`. pretty: over many lines, as `save` writes it."""
        return self._backend.to_str(pretty)

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json`."""
        self._backend.save(str(path))

    @property
    def limit(self) -> str:
        """A sentence, where all places for new words are taken: how many there are."""
        is_full = self._slots and len(self.new_words) == len(self._slots)
        return f" A text can have up to {len(self._slots)} new words." if is_full else ""

    @property
    def vocab_size(self) -> int:
        """Number of token ids, special ones included: one more than the largest id."""
        return max(self._backend.get_vocab().values(), default=-1) + 1

    @property
    def special(self) -> dict[str, int]:
        """The id of each special token."""
        return dict(self._special)

    def special_id(self, token: str) -> int:
        """The id of a special token, such as `[pad]`. Raises KeyError if there is none."""
        return self._special[token]

    @_without_panics
    def encode(
        self, text: str, *, add_special_tokens: bool = True, split_special_tokens: bool | None = None
    ) -> list[int]:
        """Token ids of a text; names of special tokens are ordinary letters, unless `reads_names`.

        add_special_tokens: add the tokens before and after a text that the model was trained with, such as <s>.
        split_special_tokens: True reads names of special tokens as letters, False as those tokens, as in transformers;
            a text that begins with the name of its first special token doesn't get it twice.
        Raises: UnknownTokenError for pieces that the vocabulary lacks, if it has no unknown token.
        """
        splits = not self.reads_names if split_special_tokens is None else split_special_tokens
        if not splits and len(parts := self.parted(text)) > 1:
            return self._around(self.encode_parts(parts)) if add_special_tokens else self.encode_parts(parts)
        named = self._with_those_of([text])
        read, unknown = named._read(text)
        if unknown:
            raise UnknownTokenError(unknown, named.limit)
        if named.new_words:
            return [named._id_of(piece) for piece, _ in self._pieces(read)]
        return self._backend.encode(read, add_special_tokens=add_special_tokens).ids

    @_without_panics
    def encode_continuation(self, text: str) -> list[int]:
        """Token ids of a text that continues another: without anything before it, not even a space."""
        if unknown := self.unknown_pieces(text):
            raise UnknownTokenError(unknown, self._with_those_of([text]).limit)
        if self._slots:
            return self.encode(text, add_special_tokens=False)  # it puts no space before a text
        return self._continuing.encode(self._read(text)[0], add_special_tokens=False).ids

    def encode_parts(self, parts: Sequence[str | int]) -> list[int]:
        """Token ids of alternating texts and special tokens, as `parted` gives them, with nothing before or after."""
        named = self._with_those_of(part for part in parts if isinstance(part, str))
        ids = []
        for at, part in enumerate(parts):
            if isinstance(part, int):
                ids.append(part)
                continue
            if at > 0 and self._eats_space[parts[at - 1]][1]:
                part = part.lstrip()
            if at + 1 < len(parts) and self._eats_space[parts[at + 1]][0]:
                part = part.rstrip()
            begins = at == 0 or not self._first_alone
            ids += named.encode(part, add_special_tokens=False) if begins else named.encode_continuation(part)
        return ids

    def _around(self, ids: list[int]) -> list[int]:
        """Add the special tokens before and after a text, except those that are already there."""
        first, last = self.around
        first = [] if ids[: len(first)] == first else first
        last = [] if last and ids[-len(last) :] == last else last
        return [*first, *ids, *last]

    @cached_property
    def around(self) -> tuple[list[int], list[int]]:
        """The tokens that `encode` adds before and after a text, such as [CLS] and [SEP]."""
        known = next((letter for letter in ["a", "b", "c", "the", "0"] if not self._unknown_pieces(letter)), "")
        bare = self._backend.encode(known, add_special_tokens=False).ids
        ids = self._backend.encode(known).ids
        count = len(ids) - len(bare)
        begins = next(at for at in range(count + 1) if ids[at : at + len(bare)] == bare)
        return ids[:begins], ids[begins + len(bare) :]

    def parted(self, text: str) -> list[str | int]:
        """Split a text at the names of special tokens: alternating texts and ids, a text first and last."""
        parts = self._names.split(text)
        return [self._special[part] if at % 2 else part for at, part in enumerate(parts)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each token's share of the decoded text; joined, they are that text. A character whose bytes are several
        tokens belongs to the last of them."""
        pieces = []
        for start in range(0, len(ids), CHUNK):
            before = min(start, CONTEXT)
            pieces += self._pieces_of(ids[start - before : start + CHUNK + CONTEXT])[before:][:CHUNK]
        return pieces if "".join(pieces) == self.decode(ids) else self._pieces_of(ids)

    def _pieces_of(self, ids: Sequence[int]) -> list[str]:
        """`pieces` in quadratic time: a token ends where decoding without the later tokens still gives the same
        beginning."""
        text = self.decode(ids)
        ends = [_common(text, self.decode(ids[:count])) for count in range(len(ids))]
        return [text[start:end] for start, end in pairwise(accumulate([*ends, len(text)], max))]

    @_without_panics
    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids into a text, without special tokens unless `reads_names`."""
        if self._typed:
            kept = [id for id in ids if self.reads_names or id not in self._special.values()]
            return self._backend.decoder.decode([self._typed.get(id) or self._backend.id_to_token(id) for id in kept])
        return self._backend.decode(list(ids), skip_special_tokens=not self.reads_names)

    def piece(self, token_id: int, *, first: bool) -> str:
        """A token's text within a sentence: a word has a space before it, unless it is the first."""
        text = self.decode([token_id])
        return text if first else self.decode([token_id, token_id])[len(text) :]

    def label(self, token_id: int) -> str:
        """A token's label for charts: signs for spaces, tabs and line ends, ⟨E2⟩ for part of a character."""
        token = self._typed.get(token_id) or self._backend.id_to_token(token_id)
        if token is None:
            return f"#{token_id}"
        if token in self._special:
            return printable(token)
        if self._is_of_bytes and all(letter in BYTE_LETTERS for letter in token):
            return printable_bytes(bytes(BYTE_LETTERS[letter] for letter in token))
        if self._marks_spaces:
            byte = _ONE_BYTE.fullmatch(token)
            return printable_bytes(bytes.fromhex(byte[1])) if byte else printable(token.replace("▁", " "))
        return printable(token)

    def labels(self, ids: Iterable[int]) -> list[str]:
        """`label` of each id."""
        return [self.label(token_id) for token_id in ids]

    def unknown_pieces(self, text: str) -> list[UnknownPiece]:
        """Pieces of the text that are neither in the vocabulary nor among the new words, in order."""
        return self._with_those_of([text])._unknown_pieces(text)

    @_without_panics
    def _unknown_pieces(self, text: str) -> list[UnknownPiece]:
        unknown, start = [], 0
        for number, part in enumerate(self._names.split(text) if self.reads_names else [text]):
            if number % 2 == 0:  # each text between two names
                unknown += [replace(piece, position=start + piece.position) for piece in self._unknown_in(part)]
            start += len(part)
        return unknown

    def _unknown_in(self, text: str) -> list[UnknownPiece]:
        """The same, reading names of special tokens as letters."""
        return self._read(text)[1]

    def _read(self, text: str) -> tuple[str, list[UnknownPiece]]:
        """The text in the vocabulary's own spelling, and every piece that the vocabulary lacks.

        An accented letter may be one character, or a letter and its marks (NFC and NFD, Unicode Standard Annex 15): a
        piece that is known only in the other form is converted to it.
        """
        if not (unknown := self._lacking(text)):
            return text, []
        left, parts, end, known = [], [], 0, None
        for piece in unknown:
            if piece.position >= end:
                start = piece.position
                while start > end and _joins(text[start]):
                    start -= 1
                parts.append(text[end:start])
                end = piece.position + len(piece.text)
                while end < len(text) and _joins(text[end]):
                    end += 1
                typed = text[start:end]
                forms = (form for form in (normalize("NFC", typed), normalize("NFD", typed)) if form != typed)
                known = next((form for form in forms if not self._lacking(form)), None)
                parts.append(typed if known is None else known)
            if known is None:
                left.append(piece)
        read = "".join([*parts, text[end:]])
        # A foreign pattern may split the joined text elsewhere.
        return (read, left) if left or not self._lacking(read) else (text, unknown)

    def _lacking(self, text: str) -> list[UnknownPiece]:
        """Pieces that the vocabulary lacks as they were typed."""
        if broken := list(LONE_SURROGATE.finditer(text)):  # surrogates: no file has them, and the library fails on them
            return [UnknownPiece(match[0], match.start()) for match in broken]
        if self._reads_everything:
            return []
        by_character = isinstance(self._backend.model, models.BPE)  # merges start from single characters
        unknown = []
        for piece, start in self._pieces(text):
            parts = [(letter, start + i) for i, letter in enumerate(piece)] if by_character else [(piece, start)]
            unknown += [UnknownPiece(part, at) for part, at in parts if not self._knows(part)]
        return unknown

    def _knows(self, piece: str) -> bool:
        """Whether a piece, normalized, has tokens in the vocabulary; caches up to `REMEMBERED` known pieces."""
        if piece in self._known:
            return True
        if self._ids_of_new and self._composed(piece) in self._ids_of_new:
            return True
        normal = self._normal(piece)
        knows = normal not in self._special and _has_tokens(self._backend.model, normal)
        if knows and len(self._known) < REMEMBERED:
            self._known.add(piece)
        return knows

    def _normal(self, piece: str) -> str:
        """A piece as the vocabulary spells it."""
        if (normal := self._normals.get(piece)) is None:
            normalizer = self._backend.normalizer
            normal = piece if normalizer is None else normalizer.normalize_str(piece)
            if len(self._normals) < REMEMBERED:
                self._normals[piece] = normal
        return normal

    def _composed(self, piece: str) -> str:
        """A new word's spelling, by which it is found again: one for its letters with their marks, however typed."""
        return normalize("NFC", self._normal(piece))

    def _id_of(self, piece: str) -> int:
        """The id of a piece that is known, of a vocabulary of words."""
        new = self._ids_of_new.get(self._composed(piece))
        return self._vocabulary[self._normal(piece)] if new is None else new

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._backend.get_vocab()

    def without_unknown(self, text: str) -> str:
        """The text without the pieces that the vocabulary lacks.

        The remaining ones may join to new unknown pieces; if that still happens after `PASSES` rounds, returns an empty
        text.
        """
        for _ in range(PASSES):
            unknown = self.unknown_pieces(text)
            if not unknown:
                return text
            starts = [piece.position for piece in unknown] + [len(text)]
            ends = [0, *(piece.position + len(piece.text) for piece in unknown)]
            text = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
        return ""

    def _pieces(self, text: str) -> list[tuple[str, int]]:
        if self._backend.pre_tokenizer is None:
            return [(text, 0)] if text else []
        return [(piece, start) for piece, (start, _) in self._backend.pre_tokenizer.pre_tokenize_str(text)]

    @cached_property
    def _first_alone(self) -> bool:
        """Whether the tokenizer puts a space before a text, but not after a special token in it."""
        return '"prepend_scheme":"first"' in _state(self._backend.pre_tokenizer)

    @cached_property
    def _continuing(self) -> tokenizers.Tokenizer:
        """The same tokenizer, without the space before a text."""
        settings = json.loads(self._backend.to_str())
        normalizer, cut = settings["normalizer"] or {}, settings["pre_tokenizer"] or {}
        steps = normalizer.get("normalizers", [normalizer])
        puts_space = any(step.get("type") == "Prepend" for step in steps)
        if not puts_space and cut.get("type") != "Metaspace" and not cut.get("add_prefix_space"):
            return self._backend
        if puts_space:
            rest = [step for step in steps if step.get("type") != "Prepend"]
            settings["normalizer"] = {"type": "Sequence", "normalizers": rest}
        cut |= {"prepend_scheme": "never"} if cut.get("type") == "Metaspace" else {"add_prefix_space": False}
        settings["pre_tokenizer"] = cut if settings["pre_tokenizer"] else None
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(settings))
        tokenizer.encode_special_tokens = True
        return tokenizer


def _joins(character: str) -> bool:
    """Whether a character may belong to the one before it: a mark, or a later letter of a Korean syllable."""
    is_later = "\u1161" <= character <= "\u1175" or "\u11a8" <= character <= "\u11c2"
    return is_later or category(character).startswith("M")


def _common(one: str, other: str) -> int:
    """The length of two texts' common beginning."""
    if one.startswith(other):
        return len(other)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _state(part: decoders.Decoder | pre_tokenizers.PreTokenizer | None) -> str:
    """A part of a tokenizer as JSON; empty for one that isn't there."""
    return "" if part is None else part.__getstate__().decode()


def _names(special: Sequence[AddedToken]) -> re.Pattern[str]:
    """Finds the names of special tokens in a text, the longest first."""
    names = sorted((token.content for token in special), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, names)).join("()") if names else "((?!))")


def _has_tokens(model: models.Model, piece: str) -> bool:
    try:
        return bool(_without_panics(model.tokenize)(piece))
    except Exception:  # models other than BPE raise for unknown pieces
        return False


def _reads_everything(model: models.Model, *, of_bytes: bool) -> bool:
    """Whether every text can be encoded: by an unknown token, or one for each byte."""
    if isinstance(model, models.Unigram):
        return _has_tokens(model, UNSEEN)
    if model.token_to_id(getattr(model, "unk_token", None) or "") is not None:
        return True
    letters = [f"<0x{byte:02X}>" for byte in range(256)] if getattr(model, "byte_fallback", False) else BYTE_LETTERS
    return (of_bytes or letters is not BYTE_LETTERS) and all(
        model.token_to_id(letter) is not None for letter in letters
    )


def _word_level(pieces: Sequence[str], special: Sequence[str]) -> tokenizers.Tokenizer:
    """One token per piece; special tokens never match in a text, and `decode` skips them."""
    backend = tokenizers.Tokenizer(models.WordLevel({piece: index for index, piece in enumerate(pieces)}))
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return backend
