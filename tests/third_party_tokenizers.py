"""Trains small tokenizers in the file formats of other libraries, and lists texts to test them on.

Each layout writes a folder as the real models have it: the same files, classes and settings, a few hundred tokens.
"""

import functools
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics

import sentencepiece
import sentencepiece.sentencepiece_model_pb2
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

MIXED = "naïve 👩‍👩‍👧 שלום 한 Việt"
TEXTS = {
    "empty": "",
    "a space": " ",
    "spaces": "  a   b  ",
    "a space first": " x",
    "line ends": "a\nb\r\nc\n\n\td\n",
    "many scripts": MIXED,
    "combining marks": "e\u0301 n\u0303 a\u0323\u0302",
    "3,000 characters": ("The quick brown fox jumps 1234 over. " * 82)[:3_000],
    "special tokens": "a <s> b</s> <|endoftext|> [CLS] <|im_start|>user <unk> <pad> <extra_id_0> <plain>x <|extra|>",
    "code": "def f(x):\n    return x**2 if x>0 else -x  # ok\n",
    "unknown letters": "日本𐎠",
}
CORPUS = [line for topic in [*topics.values()][:12] for line in topic.splitlines() if line.strip()] + [MIXED] * 20
CUT_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
AS_LLAMA = {
    **{"model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "split_digits": True},
    **{"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
}
OF_LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
proto_of = sentencepiece.sentencepiece_model_pb2.ModelProto.FromString


def write(folder: Path, name: str, value: dict) -> None:
    (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def tell(folder: Path, model_type: str, tokenizer_class: str | None = None, **told: object) -> None:
    """Write what the files beside a vocabulary say."""
    write(folder, "config.json", {"model_type": model_type})
    if tokenizer_class or told:
        named = {"tokenizer_class": tokenizer_class} if tokenizer_class else {}
        write(folder, "tokenizer_config.json", named | told)


def added(*tokens: AddedToken, first: int) -> dict[str, dict]:
    """As tokenizer_config.json has tokens that are whole in any text."""
    told = ("content", "lstrip", "rstrip", "normalized", "single_word", "special")
    return {str(first + at): {each: getattr(token, each) for each in told} for at, token in enumerate(tokens)}


def whole(*names: str, **told: bool) -> list[AddedToken]:
    return [AddedToken(name, **{"special": True, "normalized": False, **told}) for name in names]


def around(backend: tokenizers.Tokenizer, single: str) -> processors.TemplateProcessing:
    """What stands before and after a text."""
    special = [(token, backend.token_to_id(token)) for token in single.split() if token != "$A"]
    return processors.TemplateProcessing(single=single, special_tokens=special)


@functools.cache
def _trained_spm(options: str) -> bytes:
    out = io.BytesIO()
    quiet = {"minloglevel": 2, "num_threads": 1}
    trainer = sentencepiece.SentencePieceTrainer
    trainer.train(sentence_iterator=iter(CORPUS), model_writer=out, **quiet, **json.loads(options))
    return out.getvalue()


def trained_spm(path: Path, **options: object) -> sentencepiece.SentencePieceProcessor:
    path.write_bytes(_trained_spm(json.dumps(options)))
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def trained_bpe(special: Sequence[str] = ()) -> tokenizers.Tokenizer:
    """Byte-level, as GPT-2's."""
    return tokenizers.Tokenizer.from_str(_trained_bpe(tuple(special)))


@functools.cache
def _trained_bpe(special: tuple[str, ...]) -> str:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "special_tokens": list(special)}
    backend.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, show_progress=False, **options))
    return backend.to_str()


def llama_2(folder: Path) -> None:
    trained_spm(folder / "tokenizer.model", **AS_LLAMA)
    tell(folder, "llama", "LlamaTokenizer", **OF_LLAMA, add_bos_token=True, legacy=False)


def llama_2_json(folder: Path) -> tokenizers.Tokenizer:
    """With the tokenizer.json that the hub has for it."""
    llama_2(folder)
    pieces = proto_of((folder / "tokenizer.model").read_bytes()).pieces
    vocabulary = {piece.piece: at for at, piece in enumerate(pieces)}
    cuts = [(token[:cut], token[cut:]) for token in vocabulary for cut in range(1, len(token))]
    merges = [pair for pair in cuts if {*pair} <= vocabulary.keys()]
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    backend.add_special_tokens(whole("<unk>", "<s>", "</s>"))
    backend.post_processor = around(backend, "<s> $A")
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer.model").unlink()
    return backend


def tiny_llama(folder: Path) -> tokenizers.Tokenizer:
    """The same, of no class of its own."""
    backend = llama_2_json(folder)
    tell(folder, "llama", "PreTrainedTokenizerFast", **OF_LLAMA)
    return backend


def mistral(folder: Path) -> None:
    """The same of a model that its class means nothing to: the file counts."""
    llama_2_json(folder)
    write(folder, "config.json", {"model_type": "mistral"})


def code_llama(folder: Path) -> None:
    llama_2_json(folder)
    tell(folder, "llama", "CodeLlamaTokenizer", add_bos_token=True)


def phi_3(folder: Path) -> None:
    """The same, with tokens that take the white space after them away."""
    backend = llama_2_json(folder)
    tokens = [*whole("<|endoftext|>"), *whole("<|assistant|>", "<|end|>", "<|user|>", rstrip=True)]
    backend.add_special_tokens(tokens)
    backend.post_processor = around(backend, "$A")
    backend.save(str(folder / "tokenizer.json"))
    own = {"eos_token": "<|endoftext|>", "added_tokens_decoder": added(*tokens, first=AS_LLAMA["vocab_size"])}
    tell(folder, "phi3", "LlamaTokenizer", legacy=False, **OF_LLAMA | own)


def llama_3(folder: Path, tokenizer_class: str = "PreTrainedTokenizerFast") -> tokenizers.Tokenizer:
    """With a word in its vocabulary that no merges lead to."""
    found = json.loads(trained_bpe().model.__getstate__())
    vocabulary = {**found["vocab"], "Ġbrown": len(found["vocab"])}
    merges = [tuple(merge) for merge in found["merges"]]
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges, ignore_merges=True))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cut = pre_tokenizers.Split(Regex(CUT_LLAMA3), "isolated")
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Sequence([cut, words]), decoders.ByteLevel()
    begin, end = "<|begin_of_text|>", "<|eot_id|>"
    backend.add_special_tokens(whole(begin, "<|start_header_id|>", "<|end_header_id|>", end))
    begins = around(backend, f"{begin} $A")
    backend.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), begins])
    backend.save(str(folder / "tokenizer.json"))
    tell(folder, "llama", tokenizer_class, bos_token=begin, eos_token=end, clean_up_tokenization_spaces=True)
    return backend


def gpt_2(folder: Path) -> None:
    trained_bpe(["<|endoftext|>"]).model.save(str(folder))
    tell(folder, "gpt2")


def gpt_2_added(folder: Path) -> None:
    """With tokens of its own in the files of before, and a space before each text."""
    gpt_2(folder)
    write(folder, "added_tokens.json", {"<|extra|>": 600, "<plain>": 601})
    write(folder, "special_tokens_map.json", {"pad_token": "<|extra|>", "bos_token": {"content": "<|endoftext|>"}})
    tell(folder, "gpt2", "GPT2Tokenizer", add_prefix_space=True)


def gpt_2_json(folder: Path) -> None:
    backend = trained_bpe(["<|endoftext|>"])
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    backend.save(str(folder / "tokenizer.json"))
    tell(folder, "gpt2")


def cohere(folder: Path) -> None:
    backend = trained_bpe(["<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"])
    backend.post_processor = around(backend, "<BOS_TOKEN> $A")
    backend.save(str(folder / "tokenizer.json"))
    tell(folder, "cohere2")


def gpt_neox(folder: Path) -> None:
    backend = trained_bpe(["<|endoftext|>", "<|padding|>"])
    backend.normalizer, backend.post_processor = normalizers.NFC(), processors.ByteLevel()
    backend.save(str(folder / "tokenizer.json"))
    told = {f"{name}_token": "<|endoftext|>" for name in ("bos", "eos", "unk")}
    tell(folder, "gpt_neox", "GPTNeoXTokenizer", add_prefix_space=False, **told)


def qwen(folder: Path) -> tokenizers.Tokenizer:
    backend = trained_bpe()
    backend.model.save(str(folder))
    tokens = [*whole("<|endoftext|>", "<|im_start|>", "<|im_end|>"), *whole("<tool_call>", special=False)]
    told = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "bos_token": None, "add_prefix_space": False}
    told["added_tokens_decoder"] = added(*tokens, first=backend.get_vocab_size())
    tell(folder, "qwen2", "Qwen2Tokenizer", **told)
    backend.add_tokens(tokens)
    return backend


def qwen_json(folder: Path) -> tokenizers.Tokenizer:
    backend = qwen(folder)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cut = pre_tokenizers.Split(Regex(CUT_LLAMA3.replace("{1,3}", "")), "isolated")
    backend.pre_tokenizer, backend.normalizer = pre_tokenizers.Sequence([cut, words]), normalizers.NFC()
    backend.save(str(folder / "tokenizer.json"))
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    return backend


def roberta(folder: Path, model_type: str = "roberta") -> None:
    trained_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).model.save(str(folder))
    tell(folder, model_type)


def saved_whole(layout: Callable[[Path], object]) -> Callable[[Path], None]:
    """The same tokenizer as transformers writes it, in one file."""

    def saved(folder: Path) -> None:
        from transformers import AutoTokenizer

        layout(folder)
        tokenizer, config = AutoTokenizer.from_pretrained(folder), (folder / "config.json").read_bytes()
        for path in folder.iterdir():
            path.unlink()
        tokenizer.save_pretrained(folder)
        (folder / "config.json").write_bytes(config)

    return saved


def gemma(folder: Path) -> None:
    special = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>", "eos_piece": "<eos>"}
    own = ["<mask>", "<start_of_turn>", "<end_of_turn>", "\n\n"]
    trained_spm(folder / "tokenizer.model", **AS_LLAMA, **special, add_dummy_prefix=False, user_defined_symbols=own)
    named = {f"{name}_token": f"<{name}>" for name in ("bos", "eos", "pad", "unk")}
    tell(folder, "gemma", "GemmaTokenizer", add_bos_token=True, **named)


def bert(folder: Path) -> None:
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=500, show_progress=False, special_tokens=special)
    backend.train_from_iterator(CORPUS, trainer)
    backend.model.save(str(folder))
    tell(folder, "bert", do_lower_case=True)


def t5(folder: Path) -> None:
    special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    trained_spm(folder / "spiece.model", model_type="unigram", vocab_size=500, **special)
    tell(folder, "t5", "T5Tokenizer", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", extra_ids=100)


def as_on_the_hub(folder: Path, first: Sequence[str], last: Sequence[str], ends: str) -> None:
    """A tokenizer.json that was made of SentencePiece's file, with a class's own tokens in place of its first three
    pieces and behind the last, and with all that the file says of characters."""
    trained_spm(folder / "m", model_type="unigram", vocab_size=500)
    proto = proto_of((folder / "m").read_bytes())
    (folder / "m").unlink()
    pieces = [(piece.piece, piece.score) for piece in proto.pieces[3:]]
    entries = [*((token, 0.0) for token in first), *pieces, *((token, 0.0) for token in last)]
    backend = tokenizers.Tokenizer(models.Unigram(entries, first.index("<unk>")))
    table = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    backend.normalizer = normalizers.Sequence([table, normalizers.Replace(Regex(" {2,}"), " ")])
    steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Sequence(steps), decoders.Metaspace()
    backend.add_special_tokens(whole(*first[:4]))
    backend.post_processor = around(backend, f"$A {ends}")
    backend.save(str(folder / "tokenizer.json"))


def mbart(folder: Path) -> None:
    """Its class leaves out the table of characters, and lets a text end with its language."""
    as_on_the_hub(folder, ["<s>", "<pad>", "</s>", "<unk>"], ["ar_AR", "en_XX", "ro_RO", "<mask>"], "</s> en_XX")
    tell(folder, "mbart", "MBartTokenizer", src_lang="ro_RO", tgt_lang="en_XX")


def mbart_untold(folder: Path) -> None:
    """With nothing said of its class."""
    mbart(folder)
    write(folder, "tokenizer_config.json", {"model_max_length": 1024})


def pegasus(folder: Path) -> None:
    """Its class keeps spaces that its file drops."""
    first = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, 103)), "<unk>"]
    as_on_the_hub(folder, first, [], "</s>")
    tell(folder, "pegasus", "PegasusTokenizer")


def marian(folder: Path) -> None:
    """Two SentencePiece files, and one numbering of both."""
    pieces = {"日", "▁日本"}  # that the other language has, and the source can't be read as
    for name, size in (("source.spm", 500), ("target.spm", 400)):
        found = trained_spm(folder / name, model_type="unigram", vocab_size=size)
        pieces |= {found.id_to_piece(place) for place in range(len(found))}
    named = ["</s>", "<unk>", *sorted(pieces - {"<s>", "</s>", "<unk>"}), "<pad>"]
    write(folder, "vocab.json", {piece: place for place, piece in enumerate(named)})
    tell(folder, "marian", "MarianTokenizer", source_lang="en", target_lang="es")


LAYOUTS: dict[str, Callable[[Path], object]] = {
    "Llama 2, tokenizer.model": llama_2,
    "Llama 2, tokenizer.json": llama_2_json,
    "TinyLlama, tokenizer.json": tiny_llama,
    "Mistral, tokenizer.json": mistral,
    "Code Llama, tokenizer.json": code_llama,
    "Llama 3, tokenizer.json": llama_3,
    "Llama 3 by the class of Llama 2": functools.partial(llama_3, tokenizer_class="LlamaTokenizerFast"),
    "Phi-3, tokenizer.json": phi_3,
    "GPT-2, vocab.json": gpt_2,
    "GPT-2, added_tokens.json": gpt_2_added,
    "GPT-2, tokenizer.json": gpt_2_json,
    "GPT-NeoX, tokenizer.json": gpt_neox,
    "Cohere, tokenizer.json": cohere,
    "Qwen, vocab.json": qwen,
    "Qwen, tokenizer.json": qwen_json,
    "RoBERTa, vocab.json": roberta,
    "Gemma, tokenizer.model": gemma,
    "BERT, vocab.txt": bert,
    "T5, spiece.model": t5,
    "T5, tokenizer.json": saved_whole(t5),
    "BART, vocab.json": functools.partial(roberta, model_type="bart"),
    "BART, tokenizer.json": saved_whole(functools.partial(roberta, model_type="bart")),
    "Marian, source.spm": marian,
    "mBART, tokenizer.json": mbart,
    "mBART, tokenizer.json of an unnamed class": mbart_untold,
    "Pegasus, tokenizer.json": pegasus,
}
