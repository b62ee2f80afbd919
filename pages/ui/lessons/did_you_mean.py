"""Suggests a known name for an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 80


def did_you_mean(word: str, known: Iterable[str], what: str = "there are") -> str:
    """The end of a sentence on an unknown word: the known one that is spelt alike, or all that there are.

    >>> did_you_mean("storys", ["stories", "induction"])
    'write “stories”'
    >>> did_you_mean("x", ["stories", "induction"])
    'there are induction, stories'
    """
    listed = sorted(set(known))
    names = {name.lower(): name for name in listed}
    if close := get_close_matches(word.lower(), names, n=1, cutoff=0.7):
        return f"write “{names[close[0]]}”"
    rest = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return f"{what} {', '.join(listed[:MAX_LISTED]) or 'none'}{rest}"
