"""Builds a tokenizer from the metadata of a .gguf file, as llama.cpp does.

The file names how a text is cut before pieces are joined; what the names mean stands in llama.cpp (llama-vocab.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from ..data.tokenizers import Tokenizer
from .folder import CheckpointError, reason
from .tokenizer_files import CONTROL, USER_DEFINED, merges_of, put_around
from .tokenizer_kinds import CUT_QWEN2

_CUT_LLAMA3 = CUT_QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_CAPITALS, _SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


def _cut_by_capitals(ending: str, digits: str) -> str:
    word = r"[^\r\n\p{L}\p{N}]?"
    return (
        f"{word}{_CAPITALS}*{_SMALL}+{ending}|{word}{_CAPITALS}+{_SMALL}*{ending}"
        rf"|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


@dataclass(frozen=True)
class _Cut:
    """How a text is cut, and what goes with it."""

    pattern: str | None = None
    """None for GPT-2's own."""
    digits_alone: bool = False
    ignores_merges: bool = False
    """Whether a word that is in the vocabulary is one token, whatever its merges would make of it."""
    composed: bool = False
    """Whether letters and their marks are put together first (NFC), as Qwen's own tokenizer does."""
    begins: bool = False
    """Whether texts begin with a token of the model's own unless the file says otherwise."""


_LLAMA3 = _Cut(_CUT_LLAMA3, ignores_merges=True, begins=True)
CUTS = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4", "gigachat", "mellum"), _Cut()),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), _Cut(digits_alone=True)
    ),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"), _LLAMA3
    ),
    **dict.fromkeys(("smaug-bpe", "dbrx"), _Cut(_CUT_LLAMA3)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), _Cut(CUT_QWEN2, composed=True)),
    **dict.fromkeys(("kormo", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"), _Cut(CUT_QWEN2)),
    "tekken": _Cut(_cut_by_capitals("", r"\p{N}"), ignores_merges=True, begins=True),
    **dict.fromkeys(("gpt-4o", "llama4"), _Cut(_cut_by_capitals(_ENDING, r"\p{N}{1,3}"))),
}
"""By what the file calls it."""


def tokenizer_of(fields: Mapping[str, Any]) -> Tokenizer:
    """A file's tokenizer. Raises: CheckpointError for another kind of one, or one that doesn't hold together."""
    told = _told(fields)
    kind, cut = told.get("model"), told.get("pre", "gpt-2")
    if kind != "llama" and (kind != "gpt2" or cut not in CUTS):
        raise CheckpointError(
            f"Its tokenizer ({str(kind)[:40]}, {str(cut)[:40]}) can't be built; SentencePiece's (llama) can, and "
            f"byte-level BPE (gpt2) of the kinds {', '.join(CUTS)}."
        )
    tokens = told.get("tokens")
    needed = told.get("scores" if kind == "llama" else "merges")
    kinds = told.get("token_type", [1] * len(tokens or ()))
    if not (
        isinstance(tokens, list) and isinstance(needed, list) and isinstance(kinds, list) and len(kinds) == len(tokens)
    ):
        raise CheckpointError(f"Its tokenizer lacks tokens or {'scores' if kind == 'llama' else 'merges'}.")
    named = named_tokens(fields)
    try:
        if len(set(tokens)) < len(tokens):
            raise ValueError("it names a token twice")
        backend = _sentence_pieces(told, named) if kind == "llama" else _byte_level(told, CUTS[cut])
        whole = ((token, own) for token, own in zip(tokens, kinds, strict=True) if own in (CONTROL, USER_DEFINED))
        backend.add_tokens([AddedToken(token, special=own == CONTROL, normalized=False) for token, own in whole])
        begins = told.get("add_bos_token", True if kind == "llama" else CUTS[cut].begins)
        put_around(
            backend,
            named.get("bos_token") if begins is True else None,
            named.get("eos_token") if told.get("add_eos_token") is True else None,
        )
        return Tokenizer(backend)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library panics, below Exception, on some that are damaged
        raise CheckpointError(f"Its tokenizer can't be built ({reason(Exception(str(error)))}).") from None


def named_tokens(fields: Mapping[str, Any]) -> dict[str, str]:
    """A file's special tokens, by what chat templates call them."""
    told, found = _told(fields), {}
    for name, theirs in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token_id, tokens = told.get(f"{theirs}_token_id"), told.get("tokens")
        if isinstance(tokens, list) and isinstance(token_id, int) and 0 <= token_id < len(tokens):
            found[f"{name}_token"] = tokens[token_id]
    return found


def _told(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("tokenizer.ggml."): value for name, value in fields.items()}


def _byte_level(told: Mapping[str, Any], cut: _Cut) -> tokenizers.Tokenizer:
    vocabulary = {token: token_id for token_id, token in enumerate(told["tokens"])}
    merges = [tuple(merge.split(" ", 1)) for merge in told["merges"]]
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges, ignore_merges=cut.ignores_merges))
    steps: list[pre_tokenizers.PreTokenizer] = []
    if cut.digits_alone:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if cut.pattern:
        steps.append(pre_tokenizers.Split(Regex(cut.pattern), "isolated"))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut.pattern is None)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*steps, words])
    backend.decoder = decoders.ByteLevel()
    if cut.composed:
        backend.normalizer = normalizers.NFC()
    return backend


def _sentence_pieces(told: Mapping[str, Any], named: Mapping[str, str]) -> tokenizers.Tokenizer:
    tokens = told["tokens"]
    if len(told["scores"]) != len(tokens):
        raise ValueError("it has other scores than tokens")
    backend = tokenizers.Tokenizer(
        models.BPE(
            {token: token_id for token_id, token in enumerate(tokens)},
            merges_of(tokens, told["scores"]),
            unk_token=named.get("unk_token", "<unk>"),
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    puts_space = told.get("add_space_prefix") is not False
    prepend, strip = ([normalizers.Prepend("▁")], [decoders.Strip(" ", 1, 0)]) if puts_space else ([], [])
    backend.normalizer = normalizers.Sequence([*prepend, normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    return backend
