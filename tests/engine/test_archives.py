"""Tests checkpoint archives: round trips, and refusal of anything else."""

import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from tests.helpers import tiny_config, tiny_model
from tests.saved_checkpoints import ALPHABET, CARD, FILES, checkpoint
from transformer import Checkpoint, CheckpointError, ModelCard, Tokenizer
from transformer.checkpoints import archive as archives
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint

CHARACTERS = Tokenizer.of_characters(ALPHABET)


GOOD = pack_checkpoint(checkpoint())


def members(content: bytes = GOOD) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


THREE = [*members().items()][:3]
"""All but the card."""


def packed(files: dict[str, bytes] | list[tuple[str, bytes]], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", kind) as archive:
        for name, member in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, member)
    return content.getvalue()


def changed(name: str, change: Callable[[dict], object] | bytes) -> bytes:
    """The good archive with one member replaced, or, if it is JSON, changed."""
    files = members()
    if isinstance(change, bytes):
        return packed(files | {name: change})
    content = json.loads(files[name])
    change(content)
    return packed(files | {name: json.dumps(content).encode()})


def refused(content: bytes, *words: str) -> str:
    with pytest.raises(CheckpointError) as caught:
        unpack_checkpoint(content)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message[0].isupper() and "Traceback" not in message and "/tmp" not in message
    return message


@contextmanager
def cheaply(largest: int = 20_000_000) -> Iterator[None]:
    """Fails if Python allocates more than so many bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < largest
    finally:
        tracemalloc.stop()


class TestRoundTrip:
    def test_the_same_model_gives_the_same_bytes(self):
        assert pack_checkpoint(checkpoint()) == GOOD
        assert pack_checkpoint(unpack_checkpoint(GOOD)) == GOOD

    @pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_it_is_an_ordinary_zip_of_the_four_files_and_somebody_elses_will_do(self, kind):
        files = members()
        assert sorted(files) == sorted(FILES)
        assert json.loads(files["card.json"])["summary"] == "ñandú 日 🙂"
        assert unpack_checkpoint(packed({name: files[name] for name in sorted(files)}, kind)).card == CARD


def encrypted() -> bytes:
    content = bytearray(GOOD)
    content[content.index(b"PK\1\2") + 8] |= 1
    return bytes(content)


def commented() -> bytes:
    content = BytesIO(GOOD)
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = b"hello"
    return content.getvalue()


class TestForeign:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            *((content, "") for content in (b"", b"x", bytes(5000), b"PK\3\4" + bytes(100), b"PK\5\6" + bytes(18))),
            *((content, "") for content in (GOOD[:-1], GOOD + b"\n", GOOD[100:], packed({}))),
            *((packed(members(), kind), "unusual way") for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
            (encrypted(), "encrypted"),
            (commented(), "cut off or packed by another program"),
            (GOOD[:-22] + b"PK\6\7" + bytes(16) + GOOD[-22:], "packed by another program"),  # the large format
        ],
        ids=range(14),
    )
    def test_what_is_no_archive_of_ours(self, content, words):
        refused(content, words)

    @pytest.mark.parametrize(
        "files",
        [
            [("readme.txt", b"hello")] * 4,
            THREE,
            [*THREE, ("card.json", b"{}"), ("extra.txt", b"")],
            [*THREE, ("card.json", b""), ("card.json", b"{}")],
            *([*THREE, (name, b"{}")] for name in ("config.json", "../card.json", "/card.json", "C:\\card.json")),
            *([*THREE, (name, b"{}")] for name in ("card.json/", "CARD.JSON")),
            [(f"model/{name}", content) for name, content in members().items()],
        ],
        ids=range(11),
    )
    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_other_files_than_the_four(self, files, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        refused(packed(files), "archive", *FILES)
        assert list(tmp_path.iterdir()) == []


class TestBombs:
    """What claims more than it holds, or holds more than it claims, costs next to nothing."""

    def test_a_file_too_large_to_look_at(self):
        content = bytes(archives.LARGEST_ARCHIVE + 1)
        with cheaply():
            refused(content, "64,000,001 bytes")

    @pytest.mark.parametrize("name", FILES)
    def test_a_member_that_unpacks_to_far_too_much(self, name):
        content = packed(members() | {name: bytes(archives.LARGEST[name] + 1)})
        assert len(content) < 100_000
        with cheaply():
            refused(content, name, "claims")

    def test_members_that_are_too_much_together(self):
        content = packed(members() | {"model.safetensors": bytes(63_999_000)})
        with cheaply():
            refused(content, "may hold 64,000,000")

    @pytest.mark.parametrize(("size", "claimed"), [(5 * 10**7, 0), (5 * 10**7, 10), (5 * 10**7, 10**5), (9, 2 * 10**5)])
    def test_a_member_that_claims_another_size_than_it_has(self, size, claimed):
        content = bytearray(packed(members() | {"card.json": bytes(size)}))
        assert len(content) < 200_000
        at = content.index(b"card.json", content.index(b"PK\1\2")) - 46
        content[at + 24 : at + 28] = struct.pack("<L", claimed)
        with cheaply():
            refused(bytes(content), "damaged" if size > claimed else "")

    def test_a_directory_of_a_million_entries(self):
        entry = b"PK\1\2" + bytes(42)
        for claimed in (4, 60_000):
            end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, claimed, claimed, 46 * 1_000_000, 0, 0)
            content = entry * 1_000_000 + end
            with cheaply():
                refused(content, "files")


class TestHostile:
    def test_weights_so_large_that_nothing_is_a_number(self):
        weights = load(members()["model.safetensors"])
        huge = save({name: tensor * 0 + 3e38 for name, tensor in weights.items()})
        refused(changed("model.safetensors", huge), "too large for the model")

    @pytest.mark.parametrize(
        "claims",
        [
            *({"n_layers": layers} for layers in (65, 10**9, 10**4290)),
            *({"context_length": length} for length in (4097, 10**4290)),
            *({"n_encoder_layers": 10**9}, {"n_heads": 10**4290, "d_model": 10**4290}),
            *({"context_length": 4000, "positions": "none"}, {"d_model": "wide"}, {"surprise": 1}),
        ],
        ids=lambda claims: " ".join(f"{key}={str(value)[:8]}" for key, value in claims.items()),
    )
    def test_a_shape_that_would_exhaust_the_machine(self, claims):
        with cheaply():
            refused(changed("config.json", lambda config: config.update(claims)), "config.json")

    def test_a_tokenizer_of_sentences_that_is_not_ours(self):
        """Its capital letters are patterns, which must be those of its words, and few."""

        def repacked(words, pattern=None):
            tokenizer = Tokenizer.of_sentences(words, ["[mask]"])
            good = Checkpoint(tiny_model(vocab_size=tokenizer.vocab_size), tokenizer, ModelCard(title="x"))
            files = members(pack_checkpoint(good))
            content = json.loads(files["tokenizer.json"])
            if pattern:
                content["normalizer"]["normalizers"][1]["pattern"] = {"Regex": pattern}
            return packed(files | {"tokenizer.json": json.dumps(content).encode()})

        opened = unpack_checkpoint(repacked(["Mary", "took", "."]))
        assert opened.tokenizer.labels(opened.tokenizer.encode("mary took.")) == ["Mary", "took", "."]
        no_patterns = "tokenizer.json is of a kind that HeadsUp doesn't write"
        for pattern in (r"\bmary\b|took", r"(a+)+$"):
            refused(repacked(["Mary", "took"], pattern), no_patterns)
        refused(repacked([f"{chr(65 + at % 26)}{chr(97 + at // 26)}" for at in range(101)]), no_patterns)
        refused(repacked(["M.ry"]), no_patterns)

    @pytest.mark.parametrize(
        "change",
        [
            lambda file: file["pre_tokenizer"]["pattern"].update(Regex="(a+)+$"),
            lambda file: file.update(normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 999}),
            lambda file: file.update(model={"type": "BPE", "vocab": {"a": 0}, "merges": []}),
            lambda file: file.update(added_tokens=[{"id": 3, "content": "x", "special": False}]),
            lambda file: file.update(added_tokens=3),
            lambda file: file.update(model=None),
            lambda file: file.update(truncation={"max_length": 1}),
            lambda file: file.clear(),
        ],
    )
    def test_a_tokenizer_that_is_none_of_ours(self, change, monkeypatch):
        """It isn't even handed to the library."""
        monkeypatch.setattr(tokenizers.Tokenizer, "from_file", None)
        refused(changed("tokenizer.json", change), "tokenizer.json is of a kind that HeadsUp doesn't write")


HOSTILE = [
    *("null", "true", "-1", "0", "1", "7", "1e999", "1e308", "0.5", "NaN", "1" * 4_000, "9" * 30, '""', '"\\ud800"'),
    *('"' + "x" * 60_000 + '"', "[]", "{}", "[" * 2_000 + "]" * 2_000, '["a"]', '{"a": 1}', f"[{'1,' * 20_000}1]"),
]
"""JSON that a value may be replaced by."""


def opened(content: bytes) -> None:
    """It is refused as it should be, or is a model that works."""
    try:
        loaded = unpack_checkpoint(content)
    except CheckpointError as error:
        assert 0 < len(str(error)) < 700
        str(error).encode()
        return
    tokens = torch.zeros(1, min(3, loaded.model.config.context_length), dtype=torch.long)
    assert loaded.model(tokens).isfinite().all()


class TestDamage:
    @given(st.binary(max_size=300), st.integers(0, len(GOOD) - 1))
    def test_random_bytes_and_an_archive_that_was_cut_off(self, content, length):
        for each in (content, content + GOOD, GOOD + content, GOOD[:length] + content + GOOD[length:]):
            opened(each)
        refused(GOOD[:length])

    @given(st.data())
    @settings(max_examples=40)
    def test_bits_that_flipped(self, data):
        """Most in the directory and the records, where most can go wrong."""
        directory = GOOD.index(b"PK\1\2")
        places = st.integers(0, len(GOOD) - 1) | st.integers(directory, len(GOOD) - 1) | st.integers(0, 60)
        content = bytearray(GOOD)
        for place, bit in data.draw(st.lists(st.tuples(places, st.integers(0, 7)), min_size=1, max_size=4)):
            content[place] ^= 1 << bit
        opened(bytes(content))

    @given(st.data())
    @settings(max_examples=20)
    def test_json_in_which_values_are_others(self, data):
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
        with cheaply():
            opened(changed(name, written.encode()))

    def test_nothing_is_left_behind(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        unpack_checkpoint(pack_checkpoint(checkpoint()))
        refused(GOOD[:-1])
        refused(changed("card.json", b"["))
        assert list(Path(tmp_path).iterdir()) == []


def test_a_model_as_large_as_may_be_packed_can_be_unpacked():
    """The limits leave room for what the dials of the page Train can make."""
    config = tiny_config(vocab_size=400, n_layers=6, n_heads=8, d_model=192, context_length=128)
    saved = Checkpoint(tiny_model(config), Tokenizer.of_characters(map(chr, range(32, 432))), ModelCard(title="Large"))
    assert unpack_checkpoint(pack_checkpoint(saved)).card.title == "Large"
