"""Tests that a file of another kind than was expected is named, and refused in one sentence."""

import json
import zipfile
from io import BytesIO

import pytest

from transformer import CheckpointError, CorpusError
from transformer.checkpoints.archive import unpack_checkpoint
from transformer.data.corpora import text_corpus
from transformer.data.file_kinds import file_kind

ZIP = BytesIO()
with zipfile.ZipFile(ZIP, "w") as archive:
    archive.writestr("a.txt", "a")
FILES = {
    "a PNG picture": b"\x89PNG\r\n\x1a\n" + bytes(2_000),
    "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" * 100,
    "an empty file": b"",
    'a text that begins with “{"a": [1, 2, 3, 1, 2, 3,…”': json.dumps({"a": [1, 2, 3] * 500}).encode(),
    "a text that begins with “a,b,c 1,2,3 1,2,3 1,2,3 …”": b"a,b,c\n" + b"1,2,3\n" * 500,
    "a zip file": ZIP.getvalue(),
    "a text that begins with “Once upon a time. Once u…”": b"Once upon a time. " * 100,
    "a file of zeros": bytes(50_000_000),
    "binary data or a text in an older encoding": "café ".encode("latin-1") * 500,
}


@pytest.mark.parametrize(("kind", "content"), FILES.items(), ids=list(FILES))
def test_what_a_file_holds_is_said_where_something_else_was_expected(kind, content):
    assert file_kind(content) == kind
    with pytest.raises(CheckpointError, match=r"^Expected a model saved by HeadsUp.*; found ") as refusal:
        unpack_checkpoint(content)
    assert kind in str(refusal.value) or content.startswith(b"PK")
    if kind.startswith("a text"):
        assert text_corpus(content, "Mine").text
        return
    with pytest.raises(CorpusError, match=r"^Expected .* text.*; found .*[.]$"):
        text_corpus(content, "Mine")
