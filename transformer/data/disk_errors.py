"""Says in words that a disk takes nothing more, whichever library the error comes from."""

import errno
import re

FULL = {
    errno.ENOSPC: "there is no room left on the disk",
    getattr(errno, "EDQUOT", -1): "the disk's quota is used up",
    errno.EROFS: "the disk can only be read",
}
_OF_RUST = re.compile(r"\(os error (\d+)\)")
"""How libraries that are written in Rust tell of a system's error."""
_NO_FOLDER = "No usable temporary directory"
"""What Python makes of it when no folder for temporary files takes any, be it that each is full."""


def disk_problem(error: BaseException) -> str:
    """Why a disk took nothing more, in a few words; empty for another error."""
    found = _OF_RUST.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(found[1]) if found else None
    if _NO_FOLDER in str(error):
        return "no folder for temporary files has room left"
    return FULL.get(number, "")
