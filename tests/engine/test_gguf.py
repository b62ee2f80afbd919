"""Tests reading GGUF files, valid and false ones."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.test_gguf_families import DEEP, PLAIN, TOKENS, of_transformers, write
from transformer import CheckpointError, load_pretrained
from transformer.checkpoints.gguf_tokenizer import tokenizer_of

SMALL = {**DEEP, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "rope_parameters": PLAIN}


@pytest.fixture(scope="module")
def llama():
    return of_transformers("llama", SMALL)


@pytest.fixture(scope="module")
def small(llama, tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write(path, "llama", llama, {})
    return path


def test_a_folder_of_one_such_file_will_do_and_so_will_capitals(small, tmp_path):
    (tmp_path / "M.GGUF").write_bytes(small.read_bytes())
    assert load_pretrained(tmp_path / "M.GGUF").card.title == load_pretrained(tmp_path).card.title == "M"
    (tmp_path / "other.gguf").write_bytes(small.read_bytes())
    with pytest.raises(CheckpointError, match=r"It has 2 \.gguf files; name one of them, such as M\.GGUF"):
        load_pretrained(tmp_path)


def test_its_tokenizer_joins_bytes_as_the_file_says(small):
    tokenizer = load_pretrained(small).tokenizer
    ids = tokenizer.encode("the cat the ñ 12")
    assert [TOKENS[each] for each in ids] == ["t", "he", "Ġ", "ca", "t", "Ġthe", "Ġ", "Ã", "±", "Ġ", "1", "2"]
    assert tokenizer.decode(ids) == "the cat the ñ 12"
    assert tokenizer.special_id("<|end|>") == len(TOKENS) - 1
    assert len(tokenizer.encode("<|end|>")) > 1  # in a text it is letters


@pytest.mark.parametrize(
    "said, words",
    [
        ({"called": "mamba"}, "GGUF files of 'mamba' can't be read: layers carry a state from token to token"),
        ({"called": "parrot"}, "GGUF files of 'parrot' can't be read; those of llama, qwen2, .*bloom can"),
        ({"called": "qwen2"}, "weights of blk.0.attn_q.bias are missing"),
        ({"tokenizer": "bert"}, "Its tokenizer, of the kind 'bert', can't be built; those of SentencePiece"),
        ({"tokenizer": "llama"}, "lacks tokens or scores"),
        ({"expert_count": 8}, "It can't be read: a router picks a few"),
        ({"rope.scaling.type": "spiral"}, "scaled in a way that isn't known, 'spiral'"),
        ({"rope.scaling.attn_factor": 4.0}, "scaled in a way that isn't known"),
        ({"rope.dimension_count": 4}, "turns a part of each head, where all of it is known"),
        ({"attention.head_count": 0}, "head_count is '0', where a whole number"),
        ({"attention.value_length": 4}, "value_length is 4, where each head has 8"),
        ({"logit_scale": 0.5}, "says logit_scale, which isn't known, and may change"),
        ({"split.count": 3}, "one of 3 parts of a model; llama-gguf-split --merge"),
    ],
)
def test_what_isn_t_known_is_said(llama, said, words, tmp_path):
    write(tmp_path / "small.gguf", "llama", llama, said)
    with pytest.raises(CheckpointError, match=f"small.gguf: .*{words}"):
        load_pretrained(tmp_path / "small.gguf")


def test_fields_that_change_nothing_are_read_over(llama, tmp_path):
    said = {"rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.dimension_count": 8, "expert_count": 0}
    said["tokenizer.ggml.eot_token_id"] = 3
    write(tmp_path / "small.gguf", "llama", llama, said)
    assert load_pretrained(tmp_path / "small.gguf").card.stop_tokens == (len(TOKENS) - 1, 3)


def test_a_damaged_file_is_refused_in_a_sentence(small, tmp_path):
    """Cut off anywhere, with counts or a list that claim more than there is, or for other machines."""
    content, name = small.read_bytes(), b"tokenizer.ggml.tokens"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(name)) + name
    big_endian = content[:4] + content[4:8][::-1] + content[8:]
    counts = [(at, struct.pack("<Q", count)) for at in (8, 16) for count in (2**63, 2**40, 10**6)]
    for damaged in (
        *(content[:length] for length in (*range(0, 400, 31), len(content) // 2, len(content) - 200)),
        *(content[:at] + count + content[at + 8 :] for at, count in counts),
        *(head + struct.pack("<IIQ", 9, of, 2**61) for of in (8, 4, 9)),
        big_endian,
    ):
        (tmp_path / "small.gguf").write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"^small.gguf: \S.*\.$") as caught:
            load_pretrained(tmp_path / "small.gguf")
        assert damaged is not big_endian or "big-endian" in str(caught.value)


@given(changes=st.dictionaries(st.integers(0, 3_000), st.integers(0, 255), min_size=1, max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_changed_in_it_it_is_read_or_refused_in_a_sentence(small, tmp_path, changes):
    content = bytearray(small.read_bytes())
    for place, byte in changes.items():
        content[place] = byte
    path = tmp_path / "small.gguf"
    path.write_bytes(bytes(content))
    try:
        load_pretrained(path)
    except CheckpointError as error:
        assert str(error).startswith("small.gguf: ") and "\n" not in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": ["a", "a"], "token_type": [1, 1]},
        {"tokens": ["a"], "merges": ["a b"]},
        {"tokens": "a"},
        {"tokens": ["a"], "token_type": [1, 1]},
    ],
)
def test_a_tokenizer_that_doesn_t_hold_together_is_refused(fields):
    told = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a"], "merges": [], **fields}
    with pytest.raises(CheckpointError, match="Its tokenizer"):
        tokenizer_of({f"tokenizer.ggml.{name}": value for name, value in told.items()})
