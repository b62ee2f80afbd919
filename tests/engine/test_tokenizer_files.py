"""Tests tokenizers read from other libraries' files against transformers."""

import json

import pytest
from tokenizers import Regex, normalizers, pre_tokenizers
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from tests.pretrained_models import transformers
from tests.third_party_tokenizers import LAYOUTS, MIXED, TEXTS, added, llama_3, qwen_json, tiny_llama, whole
from transformer import CheckpointError
from transformer.checkpoints.gguf_tokenizer import CUTS, tokenizer_of
from transformer.checkpoints.tokenizer_files import read_tokenizer
from transformer.checkpoints.tokenizer_kinds import Kind
from transformer.data.chat import chat_of


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The tokenizer of a layout as transformers and as we read it, each layout written and read once."""
    found = {}

    def read(layout):
        if layout not in found:
            folder = tmp_path_factory.mktemp("tokenizer")
            LAYOUTS[layout](folder)
            found[layout] = transformers.AutoTokenizer.from_pretrained(folder), read_tokenizer(folder)
        return found[layout]

    return read


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_ids_are_those_of_transformers_and_pieces_make_up_the_text(both, layout, tmp_path):
    """Also when it was saved; and in a text that goes on after another."""
    theirs, found = both(layout)
    ours = found.tokenizer
    for name, text in TEXTS.items():
        ids = ours.encode(text)
        assert ids == list(theirs(text, split_special_tokens=True)["input_ids"]), name
        bare = theirs(text, split_special_tokens=True, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False) == list(bare), name
        pieces = ours.pieces(ids)
        assert len(pieces) == len(ids) and "".join(pieces) == ours.decode(ids), name
    ours.save(tmp_path / "tokenizer.json")
    again = type(ours).from_file(tmp_path / "tokenizer.json")
    assert again.encode(MIXED) == ours.encode(MIXED) and again.decode(again.encode(MIXED))
    assert ours.encode_continuation("") == []
    if not layout.startswith("Marian"):
        for name in theirs.all_special_tokens[:3]:  # their names are those tokens where that is asked for
            text, ids = f"a{name} b", theirs(f"a{name} b", add_special_tokens=False)["input_ids"]
            assert theirs.convert_tokens_to_ids(name) in ids
            assert ours.encode(text, add_special_tokens=False, split_special_tokens=False) == ids, name
            assert ours.encode(text, split_special_tokens=False) == theirs(text)["input_ids"], name


@pytest.mark.parametrize("layout", ["Llama 2, tokenizer.model", "TinyLlama, tokenizer.json", "GPT-2, vocab.json"])
def test_what_goes_on_after_a_text_begins_with_nothing(both, layout):
    ours = both(layout)[1].tokenizer
    assert ours.decode([*ours.encode("a"), *ours.encode_continuation("bc"), *ours.encode_continuation(" d")]) == "abc d"


def test_llama_2_puts_no_second_beginning_before_its_name_and_keeps_the_spaces_before_words(both):
    theirs, found = both("Llama 2, tokenizer.json")
    ids = theirs("<s>a")["input_ids"]
    assert ids[0] == ids[1] and found.tokenizer.encode("<s>a", split_special_tokens=False) == ids[1:]
    text = "The names of the objects"  # its decoder takes the space off a beginning, and so off each token by itself
    ids = found.tokenizer.encode(text)
    assert "".join(found.tokenizer.piece(token, first=at == 1) for at, token in enumerate(ids)) == text


def turns(each: str, prompt: str = "", first: str = "") -> str:
    """A template that writes each message, and what an answer begins with."""
    prompt = f"{{%- if add_generation_prompt %}}\n    {prompt}\n{{%- endif %}}\n" if prompt else ""
    return f"{first}{{% for message in messages %}}\n{each}\n{{% endfor %}}\n{prompt}"


CHATS = {
    "Llama 2, tokenizer.json": turns(
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Alternate') }}{% endif %}"
        "{{- bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' -}}"
    ),
    "TinyLlama, tokenizer.json": turns(
        "{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n{% endif %}\n"
        "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}"
    ),
    "Llama 3, tokenizer.json": turns(
        "{%- set who = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' %}\n"
        "{{- who + message['content'] | trim + '<|eot_id|>' }}",
        "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}",
        "{{- bos_token }}{%- if strftime_now is defined %}{%- set date = strftime_now('%Y') %}{%- endif %}\n"
        "{{- '<|start_header_id|>system<|end_header_id|>\\n\\nYear: ' + date + '<|eot_id|>' }}\n",
    ),
    "Qwen, tokenizer.json": turns(
        "{%- if message.role == 'x' %}{%- continue %}{%- endif %}\n{{- '<|im_start|>' + message.role + '\\n' }}\n"
        "{% generation %}{{- message.content }}{% endgeneration %}\n{{- '<|im_end|>\\n' }}",
        "{{- '<|im_start|>assistant\\n' }}",
        "{%- if tools %}{{- tools | tojson }}{%- endif %}\n",
    ),
    "Phi-3, tokenizer.json": turns(
        "{{- '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' -}}", "{{- '<|assistant|>\\n' }}"
    ),
}
"""As the models have them, but shorter."""


@pytest.mark.parametrize("layout", CHATS)
def test_a_chat_is_what_transformers_renders_and_begins_once(both, layout):
    theirs, found = both(layout)
    theirs.chat_template = CHATS[layout]
    chat = chat_of(CHATS[layout], found.tokenizer, found.named)
    asked = {"add_generation_prompt": True, "return_dict": False, "sanitize_control_tokens": True}
    for text in filter(None, TEXTS.values()):
        expected = theirs.apply_chat_template([{"role": "user", "content": text}], **asked)
        assert chat.tokens(found.tokenizer, text) == expected


def fields_of(backend, **told) -> dict:
    """What llama.cpp's converter writes of a tokenizer."""
    state = json.loads(backend.model.__getstate__())
    kinds = {at: 3 if token.special else 4 for at, token in backend.get_added_tokens_decoder().items()}
    tokens = [backend.id_to_token(place) for place in range(backend.get_vocab_size())]
    found = {
        "tokens": tokens,
        "token_type": [kinds.get(place, 1) for place in range(len(tokens))],
        "merges": [" ".join(merge) for merge in state["merges"]],
        **told,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in found.items()}


@pytest.mark.parametrize("kind", ["llama-bpe", "qwen2", "llama"])
def test_a_gguf_file_s_tokenizer_is_the_one_that_it_was_made_of(kind, tmp_path):
    backend = {"llama-bpe": llama_3, "qwen2": qwen_json, "llama": tiny_llama}[kind](tmp_path)
    if kind == "llama":
        scores = [-float(place) for place in range(backend.get_vocab_size())]
        fields = fields_of(backend, model=kind, scores=scores, bos_token_id=1, eos_token_id=2, unknown_token_id=0)
        del fields["tokenizer.ggml.merges"]
    else:
        begin = backend.token_to_id("<|begin_of_text|>")
        fields = fields_of(backend, model="gpt2", pre=kind, **({} if begin is None else {"bos_token_id": begin}))
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), tokenizer_of(fields)
    for name, text in TEXTS.items():
        assert ours.encode(text) == theirs(text, split_special_tokens=True)["input_ids"], name
    if kind != "qwen2":
        assert theirs("x")["input_ids"][0] == ours.encode("x")[0]
        assert tokenizer_of({**fields, "tokenizer.ggml.add_bos_token": False}).encode("x") == ours.encode("x")[1:]


@pytest.mark.parametrize("name", sorted(CUTS.keys() & GGUF_PRE_TOKENIZER_SPLITS.keys()))
def test_a_gguf_file_s_texts_are_cut_as_transformers_cuts_them(name, tmp_path):
    backend = llama_3(tmp_path)
    ours = tokenizer_of(fields_of(backend, model="gpt2", pre=name))
    cut = pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS[name]), "isolated")
    backend.normalizer = normalizers.NFC() if CUTS[name].composed else None
    backend.model.ignore_merges = CUTS[name].ignores_merges
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer, backend.encode_special_tokens = pre_tokenizers.Sequence([cut, words]), True
    for text in (*TEXTS.values(), "HELLO McDonald's don'T 12345 a/b\n/\n"):
        assert ours.encode(text) == backend.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "names, pieces",
    [
        ("gpt-2", "don|'t| say| 2024|!!?| | 中文és|\n"),
        ("smollm", "don|'t| say| |2|0|2|4|!!?| | 中文és|\n"),
        ("falcon default", "don|'|t| say| |202|4|!!?| | 中文és|\n"),
        ("deepseek-llm", "don|'|t| say| |2024|!!?|  |中文|é|s|\n"),
        ("deepseek-coder", "don|'|t| say| |2|0|2|4|!!?| | |中文|és|\n"),
        ("deepseek-v3", "don|'t| say| |202|4|!!?|  |中文|és|\n"),
        ("viking", "don't| say| |2|0|2|4|!!? | 中文és|\n"),
        ("bailingmoe", "don|'t| say| |2|0|2|4|!!?| | 中文és|\n"),
    ],
)
def test_a_gguf_file_s_texts_are_cut_as_llama_cpp_cuts_them(names, pieces, tmp_path):
    for name in names.split():
        ours = tokenizer_of(fields_of(llama_3(tmp_path), model="gpt2", pre=name))
        found = ours._backend.pre_tokenizer.pre_tokenize_str("don't say 2024!!?  中文és\n")
        assert "|".join("don't say 2024!!?  中文és\n"[first:last] for _, (first, last) in found) == pieces


@pytest.mark.parametrize(
    ("pre", "words"), [(None, "doesn't say how"), ("kimi-k2", "in the way 'kimi-k2', which isn't")]
)
def test_another_way_of_cutting_is_refused(pre, words, tmp_path):
    fields = fields_of(llama_3(tmp_path), model="gpt2", **({"pre": pre} if pre else {}))
    with pytest.raises(CheckpointError, match=words):
        tokenizer_of(fields)


UNPLACED = {"added_tokens_decoder": added(*whole("<|x|>"), first=900)}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid x"


def named(**told: object) -> bytes:
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    "layout, name, content, words",
    [
        ("Llama 2, tokenizer.model", "tokenizer.model", b"IQ== 0\n", "no SentencePiece file"),
        ("Llama 2, tokenizer.model", "tokenizer.model", None, "tokenizer.json is missing, and so is what"),
        ("Llama 2, tokenizer.model", "tokenizer_config.json", named(tokenizer_class="XLNetTokenizer"), "XLNet"),
        ("Llama 2, tokenizer.model", "tokenizer_config.json", named(tokenizer_class="T5Tokenizer"), "of another kind"),
        ("Marian, source.spm", "tokenizer_config.json", named(separate_vocabs=True), "have vocabularies of their own"),
        ("Marian, source.spm", "vocab.json", named(**{"<unk>": 0, "</s>": 2}), "doesn't number its tokens from 0 on"),
        ("Marian, source.spm", "vocab.json", named(**{"<unk>": 0, "</s>": 1}), "which source.spm has"),
        ("T5, spiece.model", "tokenizer_config.json", named(eos_token="<end>"), "end with '<end>', which its vocab"),
        ("BERT, vocab.txt", "vocab.txt", b"\xff", "can't be read"),
        ("GPT-2, vocab.json", "vocab.json", b'{"a": "b"}', "can't be read"),
        ("Qwen, vocab.json", "tokenizer_config.json", named(**UNPLACED), r"no place for '<\|x\|>' as token 900"),
        ("GPT-2, tokenizer.json", "tokenizer.json", POINTER, "tokenizer.json is a Git LFS pointer"),
    ],
)
def test_what_can_t_be_read_is_said(layout, name, content, words, tmp_path):
    LAYOUTS[layout](tmp_path)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=words):
        read_tokenizer(tmp_path)


def test_a_tokenizer_that_would_hang_the_process_is_refused_before_it_is_built(tmp_path, monkeypatch):
    """Of the files of others, too; and a table of theirs that makes very much of a character."""
    LAYOUTS["Llama 3, tokenizer.json"](tmp_path)
    path = tmp_path / "tokenizer.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    cut = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({**told, "pre_tokenizer": cut}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"^Its tokenizer can't be used: it fails .*\.$"):
        read_tokenizer(tmp_path)
    long = normalizers.Precompiled(bytes([4, 0, 0, 0]) + bytes(4) + b"b" * 10_000 + b"\0")
    monkeypatch.setattr(Kind, "dress", lambda kind, backend: setattr(backend, "normalizer", long))
    (tmp_path / "older").mkdir()
    LAYOUTS["GPT-2, vocab.json"](tmp_path / "older")
    with pytest.raises(CheckpointError, match=r"can't be used: it replaces a piece of a text by 10,000 characters\.$"):
        read_tokenizer(tmp_path / "older")
