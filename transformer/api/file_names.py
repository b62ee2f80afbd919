"""Builds the file names of downloads, and the HTTP header that carries them."""

import unicodedata
from urllib.parse import quote


def slug(title: str) -> str:
    """A title as the name of a file."""
    words = "".join(letter if letter.isalnum() else " " for letter in title.lower()).split()
    return "-".join(words)[:60].strip("-") or "model"


def attachment(name: str) -> dict[str, str]:
    """The header of a response that a browser saves as a file (RFC 6266)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode() or "file"
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}
