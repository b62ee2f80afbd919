"""The parts of tokenizer classes that are code rather than files: normalisation, pre-tokenisation, special tokens.

The classes are those of `transformers`. `KINDS` has an entry for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

UNREADABLE = "\0"
"""A prefix that no text has, for tokens that are written and never read."""
MOST_EXTRA = 1_000
"""Tokens that T5's files leave out."""
CUT_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

LANGUAGES_OF_MBART = tuple(
    [
        "ar_AR",
        "cs_CZ",
        "de_DE",
        "en_XX",
        "es_XX",
        "et_EE",
        "fi_FI",
        "fr_XX",
        "gu_IN",
        "hi_IN",
        "it_IT",
        "ja_XX",
        "kk_KZ",
        "ko_KR",
        "lt_LT",
        "lv_LV",
        "my_MM",
        "ne_NP",
        "nl_XX",
        "ro_RO",
        "ru_RU",
        "si_LK",
        "tr_TR",
        "vi_VN",
        "zh_CN",
    ]
)
"""The codes of its languages, each a token."""

Settings = Mapping[str, Any]


def content(token: object) -> str | None:
    """A token's text, given by itself or among its properties."""
    found = token.get("content") if isinstance(token, Mapping) else token
    return found if isinstance(found, str) else None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The behaviour of a tokenizer class."""

    model: type[models.Model] = models.BPE
    options: dict[str, Any] = field(default_factory=dict)
    """The model's options."""
    normalizer: normalizers.Normalizer | None = None
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None
    decoder: decoders.Decoder
    named: dict[str, str]
    """Default special tokens."""
    around: tuple[str | None, ...] | None = None
    """The tokens before and after a text, by name; None for those of the files."""
    more: tuple[str, ...] = ()
    """Tokens that its files leave out."""

    def dress(self, backend: tokenizers.Tokenizer) -> None:
        """Make a tokenizer normalise, split and decode as this class does."""
        backend.normalizer, backend.pre_tokenizer = self.normalizer, self.pre_tokenizer
        backend.decoder = self.decoder


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


def _code_llama(told: Settings, _: bytes | None) -> Kind:
    """Llama's, with tokens for filling gaps in programs; a text always begins with the start token."""
    puts_space = told.get("add_prefix_space") is not False
    gap = {f"{name}_token": f"▁<{name[:3].upper()}>" for name in ("prefix", "middle", "suffix", "eot")}
    named = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", **gap}
    kind = _llama({"add_prefix_space": True}, None)
    return replace(
        kind,
        options={**kind.options, "unk_token": content(told.get("unk_token")) or named["unk_token"]},
        pre_tokenizer=pre_tokenizers.Metaspace("▁", prepend_scheme="first" if puts_space else "never", split=False),
        named=named,
        around=("bos_token", None),
    )


def _gemma(told: Settings, _: bytes | None) -> Kind:
    named = {f"{name}_token": f"<{name}>" for name in ("unk", "bos", "eos", "pad", "mask")}
    unknown = content(told.get("unk_token")) or named["unk_token"]
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
    *,
    by_digit: bool = False,
) -> Callable[[Settings, bytes | None], Kind]:
    """GPT-2's kind. cut: a pattern in place of GPT-2's. by_digit: whether to split off each digit first."""

    def kind(told: Settings, _: bytes | None) -> Kind:
        puts_space = told.get("add_prefix_space") is True
        words: pre_tokenizers.PreTokenizer = pre_tokenizers.ByteLevel(puts_space, use_regex=cut is None)
        if cut:
            words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(cut), "isolated"), words])
        if by_digit:
            words = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
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
        options={"unk_token": content(told.get("unk_token")) or named["unk_token"]},
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
    space = ("▁", "always", True)
    return Kind(
        model=models.Unigram,
        normalizer=normalizers.Precompiled(charsmap) if charsmap else None,
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(*space)]),
        decoder=decoders.Metaspace(*space),
        named={"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        around=(None, "eos_token"),
        more=tuple(f"<extra_id_{number}>" for number in reversed(range(min(told.get("extra_ids", 100), MOST_EXTRA)))),
    )


def _mbart(told: Settings, _: bytes | None) -> Kind:
    """mBART ignores its file's normalisation; a text ends with its language code."""
    language = told.get("src_lang") or "en_XX"
    codes = (*LANGUAGES_OF_MBART, *([language] if language not in LANGUAGES_OF_MBART else []))
    return replace(
        _t5({"extra_ids": 0}, None),
        named={**_OF_ROBERTA, "src_lang": language},
        around=(None, "eos_token", "src_lang"),
        more=codes,
    )


def _pegasus(told: Settings, charsmap: bytes | None) -> Kind:
    """Like T5's, but white space at the end counts; the first ids are reserved for training."""
    space = ("▁", "always", True)
    first = normalizers.Precompiled(charsmap) if charsmap else normalizers.Replace("\n", " ")
    return replace(
        _t5({"extra_ids": 0}, None),
        normalizer=normalizers.Sequence([first, normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizer=pre_tokenizers.Metaspace(*space),
        named={"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask_2>"},
        more=("<mask_1>", *(f"<unk_{number}>" for number in range(2, min(told.get("offset", 103), MOST_EXTRA)))),
    )


def _marian(told: Settings, charsmap: bytes | None) -> Kind:
    space = ("▁", "always")
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    return Kind(
        model=models.Unigram,
        normalizer=normalizers.Sequence([*([normalizers.Precompiled(charsmap)] if charsmap else []), *spaces]),
        pre_tokenizer=pre_tokenizers.Metaspace(*space, split=False),
        decoder=decoders.Sequence([decoders.Replace(UNREADABLE, ""), decoders.Metaspace(*space)]),
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
_OF_COHERE = {
    "bos_token": "<BOS_TOKEN>",
    "eos_token": "<|END_OF_TURN_TOKEN|>",
    "mask_token": "<MASK_TOKEN>",
    **{f"{name}_token": f"<{name.upper()}>" for name in ("unk", "pad", "cls", "sep")},
}
KINDS: dict[str, Callable[[Settings, bytes | None], Kind]] = {
    "LlamaTokenizer": _llama,
    "CodeLlamaTokenizer": _code_llama,
    "GemmaTokenizer": _gemma,
    **dict.fromkeys(("GPT2Tokenizer", "CodeGenTokenizer"), _byte_level(_END_OF_TEXT)),
    "CohereTokenizer": _byte_level(_OF_COHERE, normalizers.NFC(), by_digit=True),
    "GPTNeoXTokenizer": _byte_level(
        {**_END_OF_TEXT, "pad_token": "<|padding|>"}, normalizers.NFC(), around=(None, None)
    ),
    "Qwen2Tokenizer": _byte_level(
        {name: "<|endoftext|>" for name in ("unk_token", "eos_token", "pad_token")}, normalizers.NFC(), CUT_QWEN2
    ),
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer"), _byte_level(_OF_ROBERTA, around=("cls_token", "sep_token"))),
    "BertTokenizer": _bert,
    "DistilBertTokenizer": _bert,
    "T5Tokenizer": _t5,
    "MBartTokenizer": _mbart,
    "PegasusTokenizer": _pegasus,
    "MarianTokenizer": _marian,
}
"""By the class that tokenizer_config.json names. Others follow their tokenizer.json."""
OF_MODELS = {
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi", "starcoder2"), "GPT2Tokenizer"),
    **dict.fromkeys(("gpt_neox", "olmo"), "GPTNeoXTokenizer"),
    **dict.fromkeys(("qwen2", "qwen3"), "Qwen2Tokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "GemmaTokenizer"),
    **dict.fromkeys(("cohere", "cohere2"), "CohereTokenizer"),
    **dict.fromkeys(("bert", "distilbert"), "BertTokenizer"),
    "roberta": "RobertaTokenizer",
    "bart": "BartTokenizer",
    **dict.fromkeys(("t5", "mt5"), "T5Tokenizer"),
    "marian": "MarianTokenizer",
    "mbart": "MBartTokenizer",
    "pegasus": "PegasusTokenizer",
}
"""The default class, by model_type."""
GENERIC = ("PreTrainedTokenizer", "TokenizersBackend", "")
_OF_NO_CLASS = (
    *("phi3", "modernbert", "mistral", "ministral", "ministral3", "olmo2", "olmo3", "granite", "glm", "glm4"),
    *("stablelm", "gpt_bigcode"),
)
DECIDED = {"qwen2": "Qwen2Tokenizer", **dict.fromkeys(_OF_NO_CLASS, "")}
"""Classes that override the files', by model_type; "" for none."""
