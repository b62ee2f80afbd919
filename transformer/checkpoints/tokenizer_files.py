"""Loads the tokenizer of a folder in Hugging Face layout from whichever files it has, as `transformers` does.

The result is one `tokenizers.Tokenizer`. The files list the tokens; the rest they leave in part to the class that they
name (`tokenizer_kinds.py`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, processors

from ..data.foreign_tokenizer import SlowTokenizerError, backend_of, refuse_slow
from ..data.tokenizers import Tokenizer
from .file_checks import checked, read_json
from .folder import TOKENIZER, CheckpointError, reason
from .tokenizer_kinds import DECIDED, GENERIC, KINDS, OF_MODELS, UNREADABLE, Kind, Settings, content

SPM = ("tokenizer.model", "spiece.model", "source.spm")
"""Names of SentencePiece's files."""
ONLY_WHOLE = ("MBartTokenizer", "PegasusTokenizer")
"""Classes that renumber the pieces of SentencePiece's file."""
UNIGRAM, BPE = 1, 2
"""SentencePiece's kinds of models, by their number in a file."""
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Kinds of pieces: ordinary ones; control tokens; user-defined ones, which are never split."""
LONGEST_TOKEN = 1_000
"""The longest token to find merges for, in characters."""
NAMED = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
"""Names of special tokens in the settings."""


@dataclass(frozen=True)
class TheirTokenizer:
    """A tokenizer, and its special tokens by their names in chat templates."""

    tokenizer: Tokenizer
    named: dict[str, str]


def read_tokenizer(folder: Path) -> TheirTokenizer:
    """A folder's tokenizer. Raises: CheckpointError if it is missing, too large, damaged, or of an unknown kind."""
    told = _settings(folder)
    name = _class_of(folder, told)
    try:
        return _read(folder, told, name)
    except (CheckpointError, KeyboardInterrupt, SystemExit):
        raise
    except SlowTokenizerError as error:
        raise CheckpointError(f"Its tokenizer can't be used: {reason(error)}.") from None
    except BaseException as error:  # the library panics, below Exception, on some damaged files
        raise CheckpointError(f"Its tokenizer can't be read ({reason(Exception(str(error)))}).") from None


def _read(folder: Path, told: Settings, name: str) -> TheirTokenizer:
    is_whole = (folder / TOKENIZER).is_file()
    backend, kind = (_from_json if is_whole else _from_older_files)(folder, told, name)
    named = {**(kind.named if kind else {}), **{each: content(told[each]) for each in NAMED if each in told}}
    named = {each: token for each, token in named.items() if token}
    _add_tokens(backend, told, named)
    if backend.normalizer is not None:  # it may have a table of theirs
        refuse_slow({"normalizer": json.loads(backend.normalizer.__getstate__())})
    wanted = tuple(f"{each}_token" if told.get(f"add_{each}_token") is True else None for each in ("bos", "eos"))
    if around := (kind and kind.around) or (None if is_whole else wanted):
        put_around(backend, *(named.get(each or "") for each in around))
    return TheirTokenizer(Tokenizer(backend), named)


def put_around(backend: tokenizers.Tokenizer, before: str | None, *after: str | None) -> None:
    """Make texts begin and end with these tokens, if given; in a pair, both texts end with the end token.

    Raises: CheckpointError for one that the vocabulary lacks.
    """
    first, last = ([token for token in tokens if token] for tokens in ((before,), after))
    if lacking := [token for token in {*first, *last} if backend.token_to_id(token) is None]:
        raise CheckpointError(f"Its texts begin or end with {lacking[0][:40]!r}, which its vocabulary lacks.")
    special = [(token, backend.token_to_id(token)) for token in {*first, *last}]
    single = [*first, "$A", *last]
    pair = [*single, *([] if last else first), "$B:1", *(f"{token}:1" for token in last)]
    backend.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)


def merges_of(tokens: Sequence[str], scores: Sequence[float] | None = None) -> list[tuple[str, str]]:
    """The merges that give these tokens, best first: by score, or else in vocabulary order.

    Raises: ValueError for tokens too long to split.
    """
    if (longest := max(map(len, tokens), default=0)) > LONGEST_TOKEN:
        raise ValueError(f"it has a token of {longest:,} characters")
    known = set(tokens)
    pairs = [
        (rank, token[:cut], token[cut:])
        for rank, token in enumerate(tokens)
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]
    if scores is not None:
        pairs.sort(key=lambda pair: (scores[pair[0]], len(pair[1])), reverse=True)
    return [(left, right) for _, left, right in pairs]


def _settings(folder: Path) -> dict[str, Any]:
    """The files' settings, including those of older files."""
    told = _json(folder, "tokenizer_config.json")
    if "added_tokens_decoder" not in told:
        told |= _json(folder, "special_tokens_map.json")
        special = {*map(content, (told.get(name) for name in NAMED)), *_extra(told)}
        told["added_tokens_decoder"] = {
            token_id: {"content": token, "special": token in special, "normalized": token not in special}
            for token, token_id in _json(folder, "added_tokens.json").items()
        }
    return told


def _json(folder: Path, name: str) -> dict[str, Any]:
    return read_json(folder / name) if (folder / name).is_file() else {}


def _class_of(folder: Path, told: Settings) -> str:
    config = _json(folder, "config.json")
    model = str(config.get("model_type"))
    named = told.get("tokenizer_class") or config.get("tokenizer_class") or OF_MODELS.get(model, "")
    return DECIDED.get(model, str(named).removesuffix("Fast"))


def _extra(told: Settings) -> list[str | None]:
    """Special tokens without a name."""
    found = told.get("extra_special_tokens") or told.get("additional_special_tokens")
    return [*map(content, found)] if isinstance(found, list) else []


def _from_json(folder: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind | None]:
    """A tokenizer.json, with its class's rules for splitting and decoding if the class overrides the file."""
    text = checked(folder / TOKENIZER).read_text(encoding="utf-8-sig")
    backend, whole = backend_of(text), json.loads(text)
    parts = [part for part in (whole.get("pre_tokenizer"), whole.get("decoder")) if part]
    if name not in KINDS or (name == "LlamaTokenizer" and '"ByteLevel"' in json.dumps(parts)):
        return backend, None
    kind = KINDS[name](told, _charsmap(whole.get("normalizer")))
    if not isinstance(backend.model, kind.model):
        return backend, None
    for option, value in kind.options.items():
        setattr(backend.model, option, value)
    kind.dress(backend)
    whole = {token.content for token in backend.get_added_tokens_decoder().values()}
    left = [each for each in kind.more if each not in whole and backend.token_to_id(each) is not None]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in left])
    return backend, kind


def _charsmap(normalizer: Mapping[str, Any] | None) -> bytes | None:
    """SentencePiece's table of character replacements, from a tokenizer.json."""
    steps = (normalizer or {}).get("normalizers", [normalizer or {}])
    found = [step["precompiled_charsmap"] for step in steps if step.get("type") == "Precompiled"]
    return base64.b64decode(found[0]) if found else None


def _from_older_files(folder: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind]:
    spm = next((folder / each for each in SPM if (folder / each).is_file()), None)
    pairs = folder / "vocab.json", folder / "merges.txt"
    words = folder / "vocab.txt"
    if name in ONLY_WHOLE or (name not in KINDS and name not in GENERIC):
        raise CheckpointError(
            f"tokenizer.json is missing, and a {name[:40]} can't be read without it; load it with transformers and "
            "save it again."
        )
    if spm:
        return _from_spm(folder, checked(spm), told, name)
    kind = KINDS[name](told, None) if name in KINDS else None
    if kind and kind.model is models.BPE and all(path.is_file() for path in pairs):
        model: models.Model = models.BPE.from_file(*(str(checked(path)) for path in pairs), **kind.options)
    elif kind and kind.model is models.WordPiece and words.is_file():
        model = models.WordPiece.from_file(str(checked(words)), **kind.options)
    else:
        raise CheckpointError(
            "tokenizer.json is missing, and so is what could stand for it: vocab.json with merges.txt, vocab.txt, or "
            f"{SPM[0]}, of the kind that tokenizer_config.json names."
        )
    backend = tokenizers.Tokenizer(model)
    kind.dress(backend)
    return backend, kind


def _from_spm(folder: Path, path: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind]:
    """From SentencePiece's file, with its settings unless the class overrides them."""
    from sentencepiece import sentencepiece_model_pb2 as spm  # imported here: nothing else needs it

    proto = spm.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]  # made as it is imported
    try:
        proto.ParseFromString(path.read_bytes())
    except Exception:
        raise CheckpointError(f"{path.name} is no SentencePiece file; tokenizer.json would do.") from None
    trained, charsmap = proto.trainer_spec, proto.normalizer_spec.precompiled_charsmap
    kind = KINDS[name](told, charsmap) if name in KINDS else _as_trained(proto)
    if {UNIGRAM: models.Unigram, BPE: models.BPE}.get(trained.model_type) is not kind.model:
        raise CheckpointError(f"{path.name} is of another kind than its class reads; tokenizer.json would do.")
    tokens, scores = [piece.piece for piece in proto.pieces], [piece.score for piece in proto.pieces]
    if kind.model is models.BPE:
        vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
        model: models.Model = models.BPE(vocabulary, merges_of(tokens), **kind.options)
    else:
        unknown = trained.unk_id
        if name == "MarianTokenizer":
            if told.get("separate_vocabs"):
                raise CheckpointError("Its source and its target have vocabularies of their own; here both have one.")
            read = {piece.piece: piece.score for piece in proto.pieces if piece.type == NORMAL}
            tokens, scores, unknown = _numbered(_json(folder, "vocab.json"), read)
        entries = [*zip(tokens, scores, strict=True), *((token, 0.0) for token in kind.more)]
        model = models.Unigram(entries, unknown, **kind.options)
    backend = tokenizers.Tokenizer(model)
    kind.dress(backend)
    whole = {piece.piece: piece.type == CONTROL for piece in proto.pieces if piece.type in (CONTROL, USER_DEFINED)}
    found = {**whole, **dict.fromkeys(kind.more, True)}.items()
    backend.add_tokens(
        [
            AddedToken(token, special=special, normalized=False)
            for token, special in found
            if backend.token_to_id(token) is not None
        ]
    )
    return backend, kind


def _as_trained(proto: Any) -> Kind:
    """The settings in SentencePiece's file, for a model without a class of its own."""
    trained, charsmap = proto.trainer_spec, proto.normalizer_spec.precompiled_charsmap
    is_unigram, falls_back = trained.model_type == UNIGRAM, trained.byte_fallback
    whole = {} if is_unigram else {"unk_token": trained.unk_piece, "fuse_unk": True}
    bytes_too = [decoders.ByteFallback(), decoders.Fuse()] if falls_back else []
    first = [normalizers.Precompiled(charsmap)] if charsmap else []
    return Kind(
        model=models.Unigram if is_unigram else models.BPE,
        options={**whole, "byte_fallback": falls_back},
        normalizer=normalizers.Sequence([*first, normalizers.Replace(" ", "▁")]),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), *bytes_too]),
        named={"unk_token": trained.unk_piece, "bos_token": trained.bos_piece, "eos_token": trained.eos_piece},
    )


def _numbered(ids: Mapping[str, int], scores: Mapping[str, float]) -> tuple[list[str], list[float], int]:
    """Pieces in the order of a vocab.json, which covers two SentencePiece files. scores: of the pieces for reading; the
    other file's are only for writing."""
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))) or "<unk>" not in ids:
        raise CheckpointError("vocab.json doesn't number its tokens from 0 on, or lacks <unk>.")
    if missing := sorted(scores.keys() - ids.keys()):
        raise CheckpointError(f"vocab.json lacks {missing[0][:40]!r}, which source.spm has.")
    special = ("</s>", "<unk>", "<pad>")
    pieces = [token if token in scores or token in special else UNREADABLE + token for token in tokens]
    unlikely = min(scores.values()) - 1_000  # prefer letters to a typed name of a special token
    return pieces, [scores.get(token, unlikely) for token in pieces], ids["<unk>"]


def _add_tokens(backend: tokenizers.Tokenizer, told: Settings, named: Mapping[str, str]) -> None:
    """Add the tokens that are never split, and mark the special ones.

    Raises: CheckpointError for one that doesn't get its id.
    """
    added = {int(token_id): token for token_id, token in told.get("added_tokens_decoder", {}).items()}
    backend.add_tokens([AddedToken(**token) for _, token in sorted(added.items())])
    for token_id, token in added.items():
        if backend.token_to_id(token["content"]) != token_id:
            raise CheckpointError(f"Its tokenizer has no place for {token['content'][:40]!r} as token {token_id}.")
    special = {*named.values(), *_extra(told)}
    whole = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
    left = sorted(each for each in special - whole if each and backend.token_to_id(each) is not None)
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in left])
