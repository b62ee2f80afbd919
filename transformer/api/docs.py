"""Generates the API's documentation page from its OpenAPI schema. It loads nothing from the network."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .csv_file import MOST_ROWS
from .exports import MOST_BYTES
from .limits import CLASSES, LARGEST_BODY, LONGEST_QUERY, STRANGERS
from .request_counts import AT_ONCE, BURST, PER_SECOND
from .request_parameters import MOST_CELLS, MOST_NAMES, MOST_NEW_TOKENS

STYLE = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem } h2 { margin-top: 2.5rem } td code { font-size: .9em }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-top: 1px solid #8886 }"""
BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}
LIMITS = (
    f"An address has at most {LONGEST_QUERY:,} bytes of parameters, a body {LARGEST_BODY:,}.",
    f"One answer has at most {MOST_CELLS:,} numbers, of {MOST_NAMES} names; a text gets {MOST_NEW_TOKENS} tokens.",
    f"A file has at most {MOST_BYTES / 1e6:,.0f} MB, a table {MOST_ROWS:,} rows. What would take a core more than "
    "about a minute is answered by 413.",
    f"A visitor may ask {PER_SECOND:g} times a second, {BURST} times at once after a pause, and have {AT_ONCE} "
    f"questions under way; clients at one address that send no cookie {STRANGERS} times as much together, and all at "
    f"one address {CLASSES} times. More is answered by 429, with Retry-After.",
)


def page_of(schema: Mapping[str, Any]) -> str:
    """An HTML page. schema: as OpenAPI has it."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{escape(schema['info']['title'])} API</title><style>{STYLE}</style>",
        f"<h1>{escape(schema['info']['title'])} API</h1><p>{escape(schema['info']['description'])}</p>",
        "<p>The same for machines: <a href='openapi.json'>openapi.json</a>.</p><h2>Limits</h2><ul>",
        *(f"<li>{escape(limit)}</li>" for limit in LIMITS),
        "</ul>",
    ]
    for path, methods in schema["paths"].items():
        parts += _address(path, methods)
    return "".join([*parts, "</html>"])


def _address(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    get = methods.get("get") or next(iter(methods.values()))
    also = " (or POST)" if "post" in methods else ""
    yield f"<h2><code>GET /api{escape(path)}</code>{also}</h2><p>{escape(get.get('summary', ''))}.</p>"
    if get.get("description"):
        yield f"<p>{escape(get['description'])}</p>"
    rows = get.get("parameters", [])
    if rows:
        yield "<table><tr><th>parameter<th>what<th>may be</tr>"
        for row in rows:
            needed = " (needed)" if row.get("required") else ""
            yield (
                f"<tr><td><code>{escape(row['name'])}</code>{needed}"
                f"<td>{escape(row.get('description') or row['schema'].get('description', ''))}"
                f"<td>{escape(_allowed(row['schema']))}</tr>"
            )
        yield "</table>"


def _allowed(schema: Mapping[str, Any]) -> str:
    """A parameter's type and bounds in words."""
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    schema = {**schema, **(options[0] if options else {})}
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    words = [str(schema.get("type", ""))]
    for name, word in BOUNDS.items():
        if name in schema:
            words.append(word.format(schema[name]) if "{}" in word else f"{word} {schema[name]}")
    if schema.get("default") not in (None, ""):
        words.append(f"(else {schema['default']})")
    return " ".join(words)
