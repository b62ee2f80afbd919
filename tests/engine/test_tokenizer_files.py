"""Tests tokenizers read from other libraries' files against transformers."""

import json
import shutil

import pytest
from tokenizers import Regex, normalizers, pre_tokenizers

from tests.third_party_tokenizers import (
    LAYOUTS,
    MIXED,
    TEXTS,
    added,
    llama_2,
    llama_3,
    qwen_json,
    tiny_llama,
    whole,
    write,
)
from transformer import CheckpointError
from transformer.checkpoints.gguf_tokenizer import CUTS, tokenizer_of
from transformer.checkpoints.tokenizer_files import read_tokenizer
from transformer.data.chat import chat_of

transformers = pytest.importorskip("transformers", reason="requirements-dev.txt installs what models are compared with")
transformers.utils.logging.set_verbosity_error()
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS  # noqa: E402


def both(folder):
    return transformers.AutoTokenizer.from_pretrained(folder), read_tokenizer(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each layout, written once."""
    found = {}

    def folder(layout):
        if layout not in found:
            found[layout] = tmp_path_factory.mktemp("tokenizer")
            LAYOUTS[layout](found[layout])
        return found[layout]

    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_ids_are_those_of_transformers_and_pieces_make_up_the_text(folders, layout):
    theirs, found = both(folders(layout))
    ours = found.tokenizer
    for name, text in TEXTS.items():
        ids = ours.encode(text)
        assert ids == list(theirs(text, split_special_tokens=True)["input_ids"]), name
        assert ours.encode(text, add_special_tokens=False) == list(
            theirs(text, split_special_tokens=True, add_special_tokens=False)["input_ids"]
        ), name
        pieces = ours.pieces(ids)
        assert len(pieces) == len(ids) and "".join(pieces) == ours.decode(ids), name


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith("Marian")])
def test_names_of_special_tokens_are_those_tokens_where_that_is_asked_for(folders, layout):
    theirs, ours = both(folders(layout))
    for name in theirs.all_special_tokens[:3]:
        ids = theirs(f"a{name} b", add_special_tokens=False)["input_ids"]
        assert theirs.convert_tokens_to_ids(name) in ids
        found = ours.tokenizer.encode(f"a{name} b", add_special_tokens=False, split_special_tokens=False)
        assert found == ids, name
        assert ours.tokenizer.encode(f"a{name} b", split_special_tokens=False) == theirs(f"a{name} b")["input_ids"]


def test_what_stands_before_a_text_is_not_put_before_its_own_name(folders):
    theirs, ours = both(folders("Llama 2, tokenizer.json"))
    ids = theirs("<s>a")["input_ids"]
    assert ids[0] == ids[1] and ours.tokenizer.encode("<s>a", split_special_tokens=False) == ids[1:]


def test_words_keep_the_spaces_before_them(folders):
    """Llama's decoder takes the space off a text's beginning, and so off each token by itself."""
    ours = read_tokenizer(folders("Llama 2, tokenizer.json")).tokenizer
    ids = ours.encode("The names of the objects")
    assert "".join(ours.piece(token, first=place == 1) for place, token in enumerate(ids)) == "The names of the objects"


@pytest.mark.parametrize("layout", ["Llama 2, tokenizer.model", "TinyLlama, tokenizer.json", "GPT-2, vocab.json"])
def test_what_goes_on_after_a_text_begins_with_nothing(folders, layout):
    ours = read_tokenizer(folders(layout)).tokenizer
    assert ours.encode_continuation("") == []
    assert ours.decode([*ours.encode("a"), *ours.encode_continuation("bc"), *ours.encode_continuation(" d")]) == "abc d"


def test_what_was_read_is_saved_whole(folders, tmp_path):
    for layout in LAYOUTS:
        ours = read_tokenizer(folders(layout)).tokenizer
        ours.save(tmp_path / "tokenizer.json")
        again = type(ours).from_file(tmp_path / "tokenizer.json")
        assert again.encode(MIXED) == ours.encode(MIXED) and again.decode(again.encode(MIXED))


CHATS = {
    "Llama 2": (
        "Llama 2, tokenizer.json",
        """{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{
raise_exception('Roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' +
message['content'].strip() + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}""",
    ),
    "TinyLlama": (
        "TinyLlama, tokenizer.json",
        """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    ),
    "Llama 3.1": (
        "Llama 3, tokenizer.json",
        """{{- bos_token }}
{%- if strftime_now is defined %}
    {%- set date = strftime_now('%Y') %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nYear: ' + date + '<|eot_id|>' }}
{%- for message in messages %}
    {%- set who = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' %}
    {{- who + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    ),
    "Gemma": (
        "Gemma, tokenizer.model",
        """{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\\n' +
message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{
'<start_of_turn>model\\n' }}{% endif %}""",
    ),
    "Qwen": (
        "Qwen, tokenizer.json",
        """{%- if tools %}
    {{- tools | tojson }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'x' %}
        {%- continue %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {% generation %}{{- message.content }}{% endgeneration %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    ),
    "Phi-3": (
        "Phi-3, tokenizer.json",
        """{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{%
endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}""",
    ),
}
"""As the models have them, but shorter."""


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_what_transformers_renders_and_begins_once(folders, name):
    layout, template = CHATS[name]
    theirs, found = both(folders(layout))
    theirs.chat_template = template
    chat = chat_of(template, found.tokenizer, found.named)
    for text in filter(None, TEXTS.values()):
        said = [{"role": "user", "content": text}]
        expected = theirs.apply_chat_template(
            said, add_generation_prompt=True, return_dict=False, sanitize_control_tokens=True
        )
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
    ("name", "pieces"),
    {
        "gpt-2": ["don", "'t", " say", " 2024", "!!?", " ", " 中文és", "\n"],
        "smollm": ["don", "'t", " say", " ", "2", "0", "2", "4", "!!?", " ", " 中文és", "\n"],
        "falcon": ["don", "'", "t", " say", " ", "202", "4", "!!?", " ", " 中文és", "\n"],
        "default": ["don", "'", "t", " say", " ", "202", "4", "!!?", " ", " 中文és", "\n"],
        "deepseek-llm": ["don", "'", "t", " say", " ", "2024", "!!?", "  ", "中文", "é", "s", "\n"],
        "deepseek-coder": ["don", "'", "t", " say", " ", "2", "0", "2", "4", "!!?", " ", " ", "中文", "és", "\n"],
        "deepseek-v3": ["don", "'t", " say", " ", "202", "4", "!!?", "  ", "中文", "és", "\n"],
        "viking": ["don't", " say", " ", "2", "0", "2", "4", "!!? ", " 中文és", "\n"],
        "bailingmoe": ["don", "'t", " say", " ", "2", "0", "2", "4", "!!?", " ", " 中文és", "\n"],
    }.items(),
)
def test_a_gguf_file_s_texts_are_cut_as_llama_cpp_cuts_them(name, pieces, tmp_path):
    ours = tokenizer_of(fields_of(llama_3(tmp_path), model="gpt2", pre=name))
    found = ours._backend.pre_tokenizer.pre_tokenize_str("don't say 2024!!?  中文és\n")
    assert ["don't say 2024!!?  中文és\n"[first:last] for _, (first, last) in found] == pieces


@pytest.mark.parametrize(
    ("pre", "words"), [(None, "doesn't say how"), ("kimi-k2", "in the way 'kimi-k2', which isn't")]
)
def test_another_way_of_cutting_is_refused(pre, words, tmp_path):
    fields = fields_of(llama_3(tmp_path), model="gpt2", pre=pre)
    with pytest.raises(CheckpointError, match=words):
        tokenizer_of(fields if pre else {name: each for name, each in fields.items() if not name.endswith(".pre")})


@pytest.mark.parametrize(
    "made, change, words",
    [
        (llama_2, lambda folder: (folder / "tokenizer.model").write_bytes(b"IQ== 0\n"), "no SentencePiece file"),
        (llama_2, lambda folder: (folder / "tokenizer.model").unlink(), "tokenizer.json is missing, and so is what"),
        (
            llama_2,
            lambda folder: write(folder, "tokenizer_config.json", {"tokenizer_class": "XLNetTokenizer"}),
            "XLNet",
        ),
        (
            LAYOUTS["Marian, source.spm"],
            lambda folder: write(folder, "tokenizer_config.json", {"separate_vocabs": True}),
            "have vocabularies of their own; here both have one",
        ),
        (
            LAYOUTS["T5, spiece.model"],
            lambda folder: write(folder, "tokenizer_config.json", {"eos_token": "<end>"}),
            "Its texts begin or end with '<end>', which its vocabulary lacks",
        ),
        (LAYOUTS["BERT, vocab.txt"], lambda folder: (folder / "vocab.txt").write_bytes(b"\xff"), "can't be read"),
        (LAYOUTS["GPT-2, vocab.json"], lambda folder: write(folder, "vocab.json", {"a": "b"}), "can't be read"),
        (
            LAYOUTS["Qwen, vocab.json"],
            lambda folder: write(
                folder, "tokenizer_config.json", {"added_tokens_decoder": added(*whole("<|x|>"), first=900)}
            ),
            r"no place for '<\|x\|>' as token 900",
        ),
        (
            LAYOUTS["GPT-2, tokenizer.json"],
            lambda folder: (folder / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\noid x"),
            "tokenizer.json is a Git LFS pointer",
        ),
    ],
)
def test_what_can_t_be_read_is_said(made, change, words, tmp_path):
    made(tmp_path)
    change(tmp_path)
    with pytest.raises(CheckpointError, match=words):
        read_tokenizer(tmp_path)
    shutil.rmtree(tmp_path)
