"""Recognises that a disk is full or read-only, whichever library raised the error."""

import errno
import re

FULL = {
    errno.ENOSPC: "there is no room left on the disk",
    getattr(errno, "EDQUOT", -1): "the disk's quota is used up",
    errno.EROFS: "the disk can only be read",
}
_OF_RUST = re.compile(r"\(os error (\d+)\)")
"""How Rust libraries write a system's error number."""
_NO_FOLDER = "No usable temporary directory"
"""Python's message if it can write to none of the folders for temporary files."""


def disk_problem(error: BaseException) -> str:
    """Why the disk refused to write, in a few words; empty for any other error."""
    found = _OF_RUST.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(found[1]) if found else None
    if _NO_FOLDER in str(error):
        return "no folder for temporary files has room left"
    return FULL.get(number, "")
