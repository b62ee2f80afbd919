"""Names the kind of an uploaded file, for the error message if it is the wrong kind."""

from __future__ import annotations

import codecs

SIGNATURES = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF",
    b"PK\3\4": "a zip file",
    b"PK\5\6": "an empty zip file",
    b"\x1f\x8b": "a gzip file",
    b"GGUF": "a GGUF model",
    b"\xff\xfe": "a text in UTF-16",
    b"\xfe\xff": "a text in UTF-16",
}
LOOKED_AT = 4096
"""Bytes to look at, to tell text from other data."""
QUOTED = 24


def file_kind(content: bytes) -> str:
    """The kind in a few words: `a PNG picture`, `an empty file`, `a text that begins with “a,b,c”`."""
    if not content:
        return "an empty file"
    if kind := next((kind for start, kind in SIGNATURES.items() if content.startswith(start)), None):
        return kind
    begin = content[:LOOKED_AT]
    if b"\0" in content:
        return "binary data" if begin.strip(b"\0") else "a file of zeros"
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(begin)
    except UnicodeDecodeError:
        return "binary data or a text in an older encoding"
    words = " ".join(text.split())
    return f"a text that begins with “{words[:QUOTED]}{'…' if len(words) > QUOTED else ''}”"
