"""Puts JSON and scripts into elements of an HTML page, which nothing in them can end, and says which scripts may run.

A browser ends an element `script` at `</script` in any case, and `<!--<script` makes it look past that for another end.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src {hashes} 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src blob: data:; "
    "base-uri 'none'; form-action 'none'\">"
)
_MARKUP = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)
_ESCAPES = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def as_json(data: Any) -> str:
    """Data as JSON for an element of HTML, or for a script. What means something there can only stand in the data's
    texts, where JSON has another way to write it."""
    return json_in_html(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def json_in_html(text: str) -> str:
    """The same of what is JSON already."""
    return re.sub("[<\u2028\u2029]", lambda found: _ESCAPES[found[0]], text)


def script_in_html(script: str) -> str:
    """A script of ours, which must not have what HTML reads as markup. Raises: ValueError for one that does."""
    if found := _MARKUP.search(script):
        raise ValueError(f"A script can't stand in a page that has {script[found.start() :][:20]!r}.")
    return script


def policy(scripts: Iterable[str]) -> str:
    """The element that lets these scripts run, and no other: no handler in an attribute, and no link to a script.

    scripts: the texts of the page's elements, to the letter.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return POLICY.format(hashes=" ".join(f"'sha256-{digest}'" for digest in digests))
