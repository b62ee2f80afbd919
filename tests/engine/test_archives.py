"""Tests checkpoint archives: round trips, and refusal of anything else, at next to no cost."""

import json
import struct
import tracemalloc
import warnings
import zipfile
from io import BytesIO

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from tests.helpers import tiny_config, tiny_model
from tests.saved_checkpoints import CARD, FILES, checkpoint
from transformer import Checkpoint, CheckpointError, ModelCard, Tokenizer
from transformer.checkpoints import archive as archives
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint

GOOD = pack_checkpoint(checkpoint())
NOT_OURS = "tokenizer.json is of a kind that HeadsUp doesn't write"


def members(content: bytes = GOOD) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes] | list[tuple[str, bytes]], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(content, "w", kind) as archive:  # of names twice
        for name, member in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, member)
    return content.getvalue()


def changed(name: str, content: bytes = GOOD, **fields) -> bytes:
    """An archive one of whose JSON files has other fields."""
    files = members(content)
    return packed(files | {name: json.dumps({**json.loads(files[name]), **fields}).encode()})


def refused(content: bytes, *words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        unpack_checkpoint(content)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert message[0].isupper() and "Traceback" not in message and "/tmp" not in message


def test_the_same_model_gives_the_same_bytes_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert pack_checkpoint(checkpoint()) == GOOD == pack_checkpoint(unpack_checkpoint(GOOD))
    refused(GOOD[:-1])
    refused(packed(members() | {"card.json": b"["}), "card.json")
    assert list(tmp_path.iterdir()) == []
    files = members()
    assert sorted(files) == sorted(FILES)
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # somebody else's program will do
        assert unpack_checkpoint(packed({name: files[name] for name in sorted(files)}, kind)).card == CARD


def patched(at: int, *new: int, content: bytes = GOOD) -> bytes:
    """With other bytes at a place of the directory."""
    at += content.index(b"PK\1\2")
    return content[:at] + bytes(new) + content[at + len(new) :]


THREE = [(name, content) for name, content in members().items() if name != "card.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *((content, "") for content in (b"", b"PK\5\6" + bytes(18), packed({}))),
        *((packed(members(), kind), "unusual way") for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
        (patched(8, 1), "encrypted"),
        (GOOD[:-2] + b"\5\0hello", "cut off or packed by another program"),  # a comment
        (GOOD[:-22] + b"PK\6\7" + bytes(16) + GOOD[-22:], "packed by another program"),  # the large format
        (packed(THREE), f"found an archive of {len(THREE)} files"),
        *(
            (packed(files), f"zip file of {', '.join(FILES[:3])} and card.json")
            for files in (
                [("readme.txt", b"hello")] * 4,
                [*THREE, ("card.json", b""), ("card.json", b"{}")],
                *([*THREE, (name, b"{}")] for name in ("config.json", "../card.json", "/card.json", "C:\\card.json")),
                *([*THREE, (name, b"{}")] for name in ("card.json/", "CARD.JSON")),
                [(f"model/{name}", content) for name, content in members().items()],
            )
        ),
        *((changed("config.json", **claims), "config.json") for claims in ({"d_model": "wide"}, {"surprise": 1})),
    ],
    ids=range(20),
)
def test_what_is_no_archive_of_ours(content, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(content, words)
    assert list(tmp_path.iterdir()) == []


def resized(size: int, claimed: int) -> bytes:
    """The card has one size, and claims another."""
    content = packed(members() | {"card.json": bytes(size)})
    directory = content.index(b"PK\1\2")
    at = content.index(b"card.json", directory) - directory - 46 + 24
    return patched(at, *struct.pack("<L", claimed), content=content)


def of_entries(claimed: int) -> bytes:
    """A directory of a million entries."""
    entries = (b"PK\1\2" + bytes(42)) * 1_000_000
    return entries + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, claimed, claimed, len(entries), 0, 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bytes(archives.LARGEST_ARCHIVE + 1), "64,000,001 bytes"),
        *(
            (lambda name=name: packed(members() | {name: bytes(archives.LARGEST[name] + 1)}), "claims")
            for name in FILES
        ),
        (lambda: packed(members() | {"model.safetensors": bytes(63_999_000)}), "may hold 64,000,000"),
        *((lambda claimed=claimed: resized(5 * 10**7, claimed), "damaged") for claimed in (0, 10, 10**5)),
        (lambda: resized(9, 2 * 10**5), ""),
        *((lambda claimed=claimed: of_entries(claimed), "files") for claimed in (4, 60_000)),
        *(
            (lambda claims=claims: changed("config.json", **claims), "config.json")
            for claims in (
                *({"n_layers": layers} for layers in (65, 10**9, 10**4290)),
                *({"context_length": length} for length in (4097, 10**4290)),
                *(
                    {"n_encoder_layers": 10**9, "architecture": "encoder-decoder"},
                    {"n_heads": 10**4290, "d_model": 10**4290},
                ),
                {"context_length": 4000, "positions": "none"},
            )
        ),
    ],
    ids=range(20),
)
def test_what_claims_more_than_it_holds_or_holds_more_than_it_claims_costs_next_to_nothing(make, words):
    content = make()
    tracemalloc.start()
    refused(content, words)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20_000_000


def test_weights_so_large_that_nothing_is_a_number():
    weights = load(members()["model.safetensors"])
    huge = save({name: tensor * 0 + 3e38 for name, tensor in weights.items()})
    refused(packed(members() | {"model.safetensors": huge}), "too large for the model")


def test_a_tokenizer_of_sentences_that_is_not_ours():
    """Its capital letters are patterns, which must be those of its words, and few."""

    def archived(words):
        tokenizer = Tokenizer.of_sentences(words, ["[mask]"])
        return pack_checkpoint(Checkpoint(tiny_model(vocab_size=tokenizer.vocab_size), tokenizer, ModelCard(title="x")))

    content = archived(["Mary", "took", "."])
    opened = unpack_checkpoint(content).tokenizer
    assert opened.labels(opened.encode("mary took.")) == ["Mary", "took", "."]
    normalizer = json.loads(members(content)["tokenizer.json"])["normalizer"]
    for pattern in (r"\bmary\b|took", r"(a+)+$"):
        normalizer["normalizers"][1]["pattern"] = {"Regex": pattern}
        refused(changed("tokenizer.json", content, normalizer=normalizer), NOT_OURS)
    refused(archived([f"{chr(65 + at % 26)}{chr(97 + at // 26)}" for at in range(101)]), NOT_OURS)
    refused(archived(["M.ry"]), NOT_OURS)


@pytest.mark.parametrize(
    "change",
    [
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}},
        {"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 999}},
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}},
        {"added_tokens": [{"id": 3, "content": "x", "special": False}]},
        *({name: 3} for name in ("added_tokens", "model", "truncation")),
    ],
)
def test_a_tokenizer_that_is_none_of_ours(change, monkeypatch):
    """It isn't even handed to the library."""
    monkeypatch.setattr(tokenizers.Tokenizer, "from_file", None)
    refused(changed("tokenizer.json", **change), NOT_OURS)


def opened(content: bytes) -> None:
    """It is refused as it should be, or is a model that works."""
    try:
        loaded = unpack_checkpoint(content)
    except CheckpointError as error:
        assert 0 < len(str(error).encode()) < 900
        return
    tokens = torch.zeros(1, min(3, loaded.model.config.context_length), dtype=torch.long)
    assert loaded.model(tokens).isfinite().all()


@given(st.data())
def test_an_archive_that_was_cut_off_or_mixed_with_random_bytes_or_whose_bits_flipped(data):
    """Most of them in the directory and the records, where most can go wrong."""
    length, directory = data.draw(st.integers(0, len(GOOD) - 1)), GOOD.index(b"PK\1\2")
    content = data.draw(st.binary(max_size=300))
    for each in (content, content + GOOD, GOOD + content, GOOD[:length] + content + GOOD[length:]):
        opened(each)
    refused(GOOD[:length])
    places = st.integers(0, len(GOOD) - 1) | st.integers(directory, len(GOOD) - 1) | st.integers(0, 60)
    flipped = bytearray(GOOD)
    for place, bit in data.draw(st.lists(st.tuples(places, st.integers(0, 7)), min_size=1, max_size=4)):
        flipped[place] ^= 1 << bit
    opened(bytes(flipped))


HOSTILE = [
    *("null", "true", "-1", "0", "1", "7", "1e999", "1e308", "0.5", "NaN", "1" * 4_000, "9" * 30, '""', '"\\ud800"'),
    *('"' + "x" * 60_000 + '"', "[]", "{}", "[" * 2_000 + "]" * 2_000, '["a"]', '{"a": 1}', f"[{'1,' * 20_000}1]"),
]
"""JSON that a value may be replaced by."""


@given(st.data())
@settings(max_examples=20)
def test_json_in_which_values_are_others(data):
    """Each is well-formed, so it gets further than a damaged file."""
    name = data.draw(st.sampled_from(FILES[1:]))
    content = json.loads(members()[name])
    for _ in range(data.draw(st.integers(1, 3))):
        inside = content
        while True:
            key = data.draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
            if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
                break
            inside = inside[key]
        inside[key] = "a value"
    written = json.dumps(content)
    while '"a value"' in written:
        written = written.replace('"a value"', data.draw(st.sampled_from(HOSTILE)), 1)
    opened(packed(members() | {name: written.encode()}))


def test_a_model_as_large_as_may_be_packed_can_be_unpacked():
    """The limits leave room for what the dials of the page Train can make."""
    config = tiny_config(vocab_size=400, n_layers=6, n_heads=8, d_model=192, context_length=128)
    saved = Checkpoint(tiny_model(config), Tokenizer.of_characters(map(chr, range(32, 432))), ModelCard(title="Large"))
    assert unpack_checkpoint(pack_checkpoint(saved)).card.title == "Large"
