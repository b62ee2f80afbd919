"""The tokenizer of a folder in Hugging Face layout, whichever files it is in, as `transformers` reads them.

Out of all of them comes one `tokenizers.Tokenizer`. The files say which tokens there are; how a text is normalised and
cut, and what stands around it, they leave in part to the class that they name: `KINDS` has an entry for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from ..data.tokenizers import Tokenizer
from .folder import TOKENIZER, CheckpointError, reason
from .their_files import checked, read_json

SPM = ("tokenizer.model", "spiece.model", "source.spm")
"""What SentencePiece's files are called."""
UNIGRAM, BPE = 1, 2
"""Kinds of its models, by their number in a file."""
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Kinds of pieces: as most are; a token of the model's own; one that is whole in any text."""
UNREADABLE = "\0"
"""Put before a token that is written and never read, for no text has it."""
LONGEST_TOKEN, MOST_EXTRA = 1_000, 1_000
"""Characters of a token, and tokens that a T5's files leave out."""
NAMED = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
"""Under which names settings have special tokens."""
CUT_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class TheirTokenizer:
    """A tokenizer, and the names that chat templates have for its special tokens."""

    tokenizer: Tokenizer
    named: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a class of tokenizers does, whatever its files say."""

    model: type[models.Model] = models.BPE
    options: dict[str, Any] = field(default_factory=dict)
    """Of the model."""
    normalizer: normalizers.Normalizer | None = None
    pre_tokenizer: pre_tokenizers.PreTokenizer
    decoder: decoders.Decoder
    named: dict[str, str]
    """Special tokens where the settings name none."""
    around: tuple[str | None, str | None] | None = None
    """What stands before a text and after it, by name; None for what the files say."""
    more: tuple[str, ...] = ()
    """Tokens that its files leave out."""


def _llama(told: Settings, _: bytes | None) -> Kind:
    puts_space = told.get("add_prefix_space") is not False
    scheme = ("always" if told.get("legacy") else "first") if puts_space else "never"
    strip = [decoders.Strip(" ", 1, 0)] if puts_space else []
    return Kind(
        options={"unk_token": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False},
        pre_tokenizer=pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=False),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]),
        named={"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
    )


def _gemma(told: Settings, _: bytes | None) -> Kind:
    named = {f"{name}_token": f"<{name}>" for name in ("unk", "bos", "eos", "pad", "mask")}
    unknown = _content(told.get("unk_token")) or named["unk_token"]
    return Kind(
        options={"unk_token": unknown, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False},
        normalizer=normalizers.Replace(" ", "▁"),
        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
        named=named,
    )


def _byte_level(
    named: dict[str, str],
    normalizer: normalizers.Normalizer | None = None,
    cut: str | None = None,
    around: tuple[str | None, str | None] | None = None,
) -> Callable[[Settings, bytes | None], Kind]:
    """Of GPT-2's kind. cut: a pattern that isn't GPT-2's own."""

    def kind(told: Settings, _: bytes | None) -> Kind:
        puts_space = told.get("add_prefix_space") is True
        words: pre_tokenizers.PreTokenizer = pre_tokenizers.ByteLevel(puts_space, use_regex=cut is None)
        if cut:
            words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(cut), "isolated"), words])
        options = {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
        return Kind(
            options=options,
            normalizer=normalizer,
            pre_tokenizer=words,
            decoder=decoders.ByteLevel(),
            named=named,
            around=around,
        )

    return kind


def _bert(told: Settings, _: bytes | None) -> Kind:
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
    return Kind(
        model=models.WordPiece,
        options={"unk_token": _content(told.get("unk_token")) or named["unk_token"]},
        normalizer=normalizers.BertNormalizer(
            handle_chinese_chars=told.get("tokenize_chinese_chars", True),
            strip_accents=told.get("strip_accents"),
            lowercase=told.get("do_lower_case", True),
        ),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(prefix="##"),
        named=named,
        around=("cls_token", "sep_token"),
    )


def _t5(told: Settings, charsmap: bytes | None) -> Kind:
    space = {"replacement": "▁", "prepend_scheme": "always", "split": True}
    return Kind(
        model=models.Unigram,
        normalizer=normalizers.Precompiled(charsmap) if charsmap else None,
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**space)]),
        decoder=decoders.Metaspace(**space),
        named={"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        around=(None, "eos_token"),
        more=tuple(f"<extra_id_{place}>" for place in reversed(range(min(told.get("extra_ids", 100), MOST_EXTRA)))),
    )


def _marian(told: Settings, charsmap: bytes | None) -> Kind:
    space = {"replacement": "▁", "prepend_scheme": "always"}
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    return Kind(
        model=models.Unigram,
        normalizer=normalizers.Sequence([*([normalizers.Precompiled(charsmap)] if charsmap else []), *spaces]),
        pre_tokenizer=pre_tokenizers.Metaspace(**space, split=False),
        decoder=decoders.Sequence([decoders.Replace(UNREADABLE, ""), decoders.Metaspace(**space)]),
        named={"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        around=(None, "eos_token"),
    )


_END_OF_TEXT = {name: "<|endoftext|>" for name in ("unk_token", "bos_token", "eos_token")}
_OF_ROBERTA = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    **{f"{name}_token": f"<{name}>" for name in ("unk", "pad", "mask")},
}
KINDS: dict[str, Callable[[Settings, bytes | None], Kind]] = {
    "LlamaTokenizer": _llama,
    "GemmaTokenizer": _gemma,
    "GPT2Tokenizer": _byte_level(_END_OF_TEXT),
    "GPTNeoXTokenizer": _byte_level({**_END_OF_TEXT, "pad_token": "<|padding|>"}, normalizers.NFC()),
    "Qwen2Tokenizer": _byte_level(
        {name: "<|endoftext|>" for name in ("unk_token", "eos_token", "pad_token")}, normalizers.NFC(), CUT_QWEN2
    ),
    "RobertaTokenizer": _byte_level(_OF_ROBERTA, around=("cls_token", "sep_token")),
    "BertTokenizer": _bert,
    "T5Tokenizer": _t5,
    "MarianTokenizer": _marian,
}
"""By the class that tokenizer_config.json names. Others are as their tokenizer.json says."""
OF_MODELS = {
    "gpt2": "GPT2Tokenizer",
    "gpt_neo": "GPT2Tokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "gemma": "GemmaTokenizer",
    "bert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "t5": "T5Tokenizer",
    "marian": "MarianTokenizer",
}
"""The class where no file names one, by the type of the model."""
GENERIC = ("PreTrainedTokenizer", "TokenizersBackend", "")
DECIDED = {"qwen2": "Qwen2Tokenizer", "phi3": ""}
"""Types of models whose files often name a wrong class; "" for none."""


def read_tokenizer(folder: Path) -> TheirTokenizer:
    """A folder's tokenizer. Raises: CheckpointError if it is missing, too large, damaged, or of an unknown kind."""
    told = _settings(folder)
    name = _class_of(folder, told)
    try:
        return _read(folder, told, name)
    except (CheckpointError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library panics, below Exception, on some damaged files
        raise CheckpointError(f"Its tokenizer can't be read ({reason(Exception(str(error)))}).") from None


def _read(folder: Path, told: Settings, name: str) -> TheirTokenizer:
    if (folder / TOKENIZER).is_file():
        backend, kind = _from_json(checked(folder / TOKENIZER), told, name)
        keeps_around = True
    else:
        backend, kind = _from_older_files(folder, told, name)
        keeps_around = False
    named = {**(kind.named if kind else {}), **{each: _content(told[each]) for each in NAMED if each in told}}
    named = {each: token for each, token in named.items() if token}
    _add_tokens(backend, told, named)
    before, after = (kind and kind.around) or (None, None)
    if not (kind and kind.around) and not keeps_around:
        before = "bos_token" if told.get("add_bos_token") is True else None
        after = "eos_token" if told.get("add_eos_token") is True else None
    if before or after or not keeps_around:
        put_around(backend, named.get(before or ""), named.get(after or ""))
    return TheirTokenizer(Tokenizer(backend), named)


def put_around(backend: tokenizers.Tokenizer, before: str | None, after: str | None) -> None:
    """Let texts begin and end with these tokens, as far as there are such."""
    first, last = ([token] if token and backend.token_to_id(token) is not None else [] for token in (before, after))
    special = [(token, backend.token_to_id(token)) for token in {*first, *last}]
    backend.post_processor = processors.TemplateProcessing(single=[*first, "$A", *last], special_tokens=special)


def merges_of(tokens: Sequence[str], scores: Sequence[float] | None = None) -> list[tuple[str, str]]:
    """The pairs that tokens may be joined from, the best first: by their scores, or else in their own order.

    Raises: ValueError for tokens too long to be taken apart.
    """
    if (longest := max(map(len, tokens), default=0)) > LONGEST_TOKEN:
        raise ValueError(f"it has a token of {longest:,} characters")
    known = set(tokens)
    pairs = [
        (place, token[:cut], token[cut:])
        for place, token in enumerate(tokens)
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]
    if scores is not None:
        pairs.sort(key=lambda pair: (scores[pair[0]], len(pair[1])), reverse=True)
    return [(left, right) for _, left, right in pairs]


def _settings(folder: Path) -> dict[str, Any]:
    """What the files say beside the vocabulary, older files included."""
    told = _json(folder, "tokenizer_config.json")
    if "added_tokens_decoder" not in told:
        told |= _json(folder, "special_tokens_map.json")
        special = {*map(_content, (told.get(name) for name in NAMED)), *_extra(told)}
        told["added_tokens_decoder"] = {
            place: {"content": token, "special": token in special, "normalized": token not in special}
            for token, place in _json(folder, "added_tokens.json").items()
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
    return [*map(_content, found)] if isinstance(found, list) else []


def _content(token: object) -> str | None:
    """A token's text; files have it as it is, or among its properties."""
    found = token.get("content") if isinstance(token, Mapping) else token
    return found if isinstance(found, str) else None


def _from_json(path: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind | None]:
    """A tokenizer.json, cut and decoded as its class does where that doesn't leave it to the file."""
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise CheckpointError(
            f"{path.name} is not a tokenizer file: {reason(Exception(str(error))).rstrip('.')}."
        ) from None
    whole = json.loads(path.read_text(encoding="utf-8"))
    parts = [part for part in (whole.get("pre_tokenizer"), whole.get("decoder")) if part]
    if name not in KINDS or (name == "LlamaTokenizer" and '"ByteLevel"' in json.dumps(parts)):
        return backend, None
    kind = KINDS[name](told, _charsmap(whole.get("normalizer")))
    if not isinstance(backend.model, kind.model):
        return backend, None
    for option, value in kind.options.items():
        setattr(backend.model, option, value)
    _dress(backend, kind)
    if name == "GPTNeoXTokenizer":
        put_around(backend, None, None)
    return backend, kind


def _charsmap(normalizer: Mapping[str, Any] | None) -> bytes | None:
    """SentencePiece's table of characters that are written another way, from a tokenizer.json."""
    import base64

    steps = (normalizer or {}).get("normalizers", [normalizer or {}])
    found = [step["precompiled_charsmap"] for step in steps if step.get("type") == "Precompiled"]
    return base64.b64decode(found[0]) if found else None


def _from_older_files(folder: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind | None]:
    spm = next((folder / each for each in SPM if (folder / each).is_file()), None)
    pairs = folder / "vocab.json", folder / "merges.txt"
    words = folder / "vocab.txt"
    if name not in KINDS and name not in GENERIC:
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
    _dress(backend, kind)
    return backend, kind


def _from_spm(folder: Path, path: Path, told: Settings, name: str) -> tuple[tokenizers.Tokenizer, Kind | None]:
    """From SentencePiece's file; what its class leaves open is as in the file."""
    from sentencepiece import sentencepiece_model_pb2 as spm  # nothing else needs it

    proto = spm.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except Exception:
        raise CheckpointError(f"{path.name} is no SentencePiece file; tokenizer.json would do.") from None
    trained, charsmap = proto.trainer_spec, proto.normalizer_spec.precompiled_charsmap
    kind = KINDS[name](told, charsmap) if name in KINDS else None
    if trained.model_type not in (UNIGRAM, BPE) or (kind and (kind.model is models.BPE) != (trained.model_type == BPE)):
        raise CheckpointError(f"{path.name} is of another kind than its class reads; tokenizer.json would do.")
    tokens = [piece.piece for piece in proto.pieces]
    scores = [piece.score for piece in proto.pieces]
    unknown = trained.unk_id
    if name == "MarianTokenizer":
        read = {piece.piece: piece.score for piece in proto.pieces if piece.type == NORMAL}
        tokens, scores, unknown = _numbered(_json(folder, "vocab.json"), read)
    more = kind.more if kind else ()
    if trained.model_type == UNIGRAM:
        entries = [*zip(tokens, scores, strict=True), *((token, 0.0) for token in more)]
        backend = tokenizers.Tokenizer(
            models.Unigram(entries, unknown, byte_fallback=trained.byte_fallback and not kind)
        )
    else:
        options = {"unk_token": trained.unk_piece, "fuse_unk": True, "byte_fallback": trained.byte_fallback}
        vocabulary = {token: place for place, token in enumerate(tokens)}
        backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges_of(tokens), **(kind.options if kind else options)))
    if kind:
        _dress(backend, kind)
    else:
        first = [normalizers.Precompiled(charsmap)] if charsmap else []
        backend.normalizer = normalizers.Sequence([*first, normalizers.Replace(" ", "▁")])
        fuse = [decoders.ByteFallback(), decoders.Fuse()] if trained.byte_fallback else []
        backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), *fuse])
    for special, of in ((True, CONTROL), (False, USER_DEFINED)):
        found = [AddedToken(each.piece, special=special, normalized=False) for each in proto.pieces if each.type == of]
        (backend.add_special_tokens if special else backend.add_tokens)(
            [token for token in found if backend.token_to_id(token.content) is not None]
        )
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in more])
    return backend, kind


def _numbered(ids: Mapping[str, int], scores: Mapping[str, float]) -> tuple[list[str], list[float], int]:
    """Pieces in the order of a vocab.json, which has those of two SentencePiece files. scores: of those that are read;
    those of the other file are there to be written."""
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))) or "<unk>" not in ids:
        raise CheckpointError("vocab.json doesn't number its tokens from 0 on, or lacks <unk>.")
    if missing := sorted(scores.keys() - ids.keys()):
        raise CheckpointError(f"vocab.json lacks {missing[0][:40]!r}, which source.spm has.")
    special = ("</s>", "<unk>", "<pad>")
    pieces = [token if token in scores or token in special else UNREADABLE + token for token in tokens]
    unlikely = min(scores.values()) - 1_000  # a name of a special token that is typed is rather its letters
    return pieces, [scores.get(token, unlikely) for token in pieces], ids["<unk>"]


def _dress(backend: tokenizers.Tokenizer, kind: Kind) -> None:
    backend.normalizer, backend.pre_tokenizer, backend.decoder = kind.normalizer, kind.pre_tokenizer, kind.decoder


def _add_tokens(backend: tokenizers.Tokenizer, told: Settings, named: Mapping[str, str]) -> None:
    """Add the tokens that are whole in any text, and mark those that are special.

    Raises: CheckpointError for one that doesn't get the id it should have.
    """
    added = {int(place): token for place, token in told.get("added_tokens_decoder", {}).items()}
    for place, token in sorted(added.items()):
        backend.add_tokens([AddedToken(**token)])
        if backend.token_to_id(token["content"]) != place:
            raise CheckpointError(f"Its tokenizer has no place for {token['content'][:40]!r} as token {place}.")
    special = {*named.values(), *_extra(told)}
    whole = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
    for token in sorted(each for each in special - whole if each and backend.token_to_id(each) is not None):
        backend.add_special_tokens([AddedToken(token, special=True, normalized=False)])
