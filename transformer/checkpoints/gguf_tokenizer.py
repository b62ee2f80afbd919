"""Builds a tokenizer from the metadata of a .gguf file, as llama.cpp does.

The file names the rule for splitting a text before merging; llama.cpp (llama-vocab.cpp) defines the rules.
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

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = CUT_QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_QWEN35 = CUT_QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_CAPITALS, _SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_ASIAN = r"[\x{0800}-\x{9FA5}\x{AC00}-\x{D7FF}]+"
_CASED = (  # upper- and lower-case letters, except those newer than the tokenizer
    r"[\p{Lu}\p{Ll}\p{Lt}&&[^\x{0560}-\x{0588}\x{10C7}-\x{10FF}\x{1C80}-\x{1C8A}\x{2D00}-\x{2D2D}\x{A790}-\x{A7FF}"
    r"\x{AB30}-\x{AB68}\x{10570}-\x{105BC}\x{10D50}-\x{10D85}\x{16E40}-\x{16E7F}\x{1D400}-\x{1DF2A}]]"
)
_SIGNS = r"[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"
_DEEPSEEK_3 = (
    r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_BAILING = (
    r"'(?:[sdmt]|ll|ve|re)|'(?:[SDMT]|LL|VE|RE)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)


def _cut_by_capitals(ending: str, digits: str) -> str:
    word = r"[^\r\n\p{L}\p{N}]?"
    return (
        f"{word}{_CAPITALS}*{_SMALL}+{ending}|{word}{_CAPITALS}+{_SMALL}*{ending}"
        rf"|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


@dataclass(frozen=True)
class _Cut:
    """A rule for splitting a text."""

    patterns: tuple[str, ...] = (_GPT2,)
    """Each splits the pieces of those before it, into matches and what lies between."""
    ignores_merges: bool = False
    """Whether a word in the vocabulary is one token, whatever the merges give."""
    composed: bool = False
    """Whether letters and marks are composed first (NFC), as in Qwen's own tokenizer."""
    begins: bool = False
    """Whether texts begin with the model's start token, unless the file says otherwise."""


CUTS = {
    name: cut
    for names, cut in {
        "gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat mellum a.x-4.0 granite-docling": _Cut(),
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": _Cut((r"\p{N}", _GPT2)),
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2": _Cut((_LLAMA3,), True, begins=True),
        "smaug-bpe dbrx glm4 chatglm-bpe": _Cut((_LLAMA3,)),
        "qwen2 deepseek-r1-qwen f2llmv2": _Cut((CUT_QWEN2,), composed=True),
        "qwen35": _Cut((_QWEN35,), composed=True),
        "kormo megrez stablelm2 hunyuan solar-open grok-2": _Cut((CUT_QWEN2,)),
        "seed-coder": _Cut((CUT_QWEN2.replace(r"[^\s\p{L}\p{N}]+[\r\n]*", r"[^\s\p{L}\p{N}]+"),)),
        "bailingmoe bailingmoe2 llada-moe": _Cut((_BAILING,)),
        "tekken": _Cut((_cut_by_capitals("", r"\p{N}"),), True, begins=True),
        "gpt-4o llama4 kanana2 talkie minimax-m2": _Cut((_cut_by_capitals(_ENDING, r"\p{N}{1,3}"),)),
        "deepseek-llm": _Cut((r"[\r\n]", rf"\s?{_CASED}+", rf"\s?{_SIGNS}", r"\s+$", _ASIAN, r"\p{N}+")),
        "deepseek-coder": _Cut((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _ASIAN, r"\p{N}")),
        "deepseek-v3 hunyuan-dense joyai-llm": _Cut(
            (r"\p{N}{1,3}", r"[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+", _DEEPSEEK_3)
        ),
        "falcon": _Cut((r"[\p{P}$+<=>^~|`]+", _GPT2, r"[0-9][0-9][0-9]")),
        "default": _Cut((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
        "poro-chat bloom gpt3-finnish": _Cut((r" ?[^(\s|.,!?…。，、।۔،)]+",)),
        "viking": _Cut((r" ?[^(\s|.,!?…。，、।۔،)]+", r"\p{N}")),
    }.items()
    for name in names.split()
}
"""By the file's name for it."""


def tokenizer_of(fields: Mapping[str, Any]) -> Tokenizer:
    """A file's tokenizer. Raises: CheckpointError for an unknown kind, or an inconsistent one."""
    told = _told(fields)
    kind, cut = told.get("model"), told.get("pre", "")
    if kind not in ("llama", "gpt2"):
        raise CheckpointError(
            f"Its tokenizer, of the kind {str(kind)[:40]!r}, can't be built; those of SentencePiece (llama) and of "
            "byte-level BPE (gpt2) can."
        )
    if kind == "gpt2" and not cut:
        raise CheckpointError(
            "It doesn't say how its tokenizer cuts texts (tokenizer.ggml.pre); a file that is made anew with "
            "llama.cpp's converter does."
        )
    if kind == "gpt2" and cut not in CUTS:
        raise CheckpointError(
            f"Its tokenizer cuts texts in the way {str(cut)[:40]!r}, which isn't known; known are {', '.join(CUTS)}. "
            "Import the model that the file was made of instead."
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
    except BaseException as error:  # the library panics, below Exception, on some damaged ones
        raise CheckpointError(f"Its tokenizer can't be built ({reason(Exception(str(error)))}).") from None


def named_tokens(fields: Mapping[str, Any]) -> dict[str, str]:
    """A file's special tokens, by their names in chat templates."""
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
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in cut.patterns]
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
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
