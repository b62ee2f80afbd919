"""Converts the Markdown of lessons to printable HTML.

Headings, paragraphs, lists, tables, indented and fenced code, **strong**, *emphasis*, `code`, $formulas$ and
$$formulas$$. Everything else is text. Nothing in a text can become an element: a lesson's file may be anybody's.
"""

from __future__ import annotations

import re
from html import escape

from pages.ui.formulas import formula

SPAN = re.compile(
    r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)|\$\$(?P<block>[^$]+)\$\$|\$(?P<formula>[^$\n]+)\$"
    r"|\*\*(?P<strong>\S(?:[^\n]*?\S)?)\*\*|\*(?P<emphasis>[^\s*](?:[^*\n]*?[^\s*])?)\*|\\(?P<escaped>[!-/:-@\[-`{-~])",
    re.DOTALL,
)
HEADING = re.compile(r"(#{1,3}) +(.+)")
BULLET = re.compile(r"(?:[-*]|\d+\.) +")
STYLE = """
:root { color-scheme: light; --line: #b9b9c3; --faint: #5c5c68; }
* { box-sizing: border-box; }
body { font: 11pt/1.45 "Source Sans 3", "Source Sans Pro", system-ui, sans-serif; color: #111; background: #fff;
  max-width: 19cm; margin: 0 auto; padding: 1cm; }
h1 { font-size: 1.7em; line-height: 1.15; margin: 0 0 .2em; break-after: avoid; }
p { orphans: 3; widows: 3; } p:has(> strong:only-child) { break-after: avoid; } .last { break-after: page; }
h2 { font-size: 1.25em; margin: 1.6em 0 .3em; break-after: avoid; }
h3 { font-size: 1em; margin: 1em 0 .2em; break-after: avoid; }
p, ul, ol, pre, figure { margin: .5em 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em; background: #f1f1f5;
  padding: .05em .25em; border-radius: 3px; overflow-wrap: anywhere; print-color-adjust: exact; }
pre { white-space: pre-wrap; } pre code { display: block; padding: .5em; }
math[display="block"] { margin: .6em 0; }
.faint { color: var(--faint); }
.question { border: 1px solid var(--line); border-radius: 6px; padding: .5em .9em; margin: .8em 0;
  break-inside: avoid; }
.question > p:first-child { font-weight: 600; }
.options { list-style: none; padding: 0; } .options li { margin: .25em 0; }
.options li::before { content: "☐"; margin-right: .6em; }
.to-order li::before { content: "___"; }
.lines { height: 2.6em; border-bottom: 1px solid var(--line); margin-top: .2em; }
.new-page { break-before: page; }
.together, figure { break-inside: avoid; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2em .5em; text-align: left;
  vertical-align: top; }
svg { max-width: min(100%, 9cm); height: auto; }
.last + h2 { margin-top: 0; }
@page { size: A4; margin: 16mm; }
@media print { body { padding: 0; max-width: none; font-size: 10.5pt; } a { color: inherit; } }
"""


def document(title: str, body: str) -> str:
    """A whole page. body: HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def as_html(markdown: str) -> str:
    """A text of several paragraphs."""
    return "\n".join(map(_block, _blocks(markdown)))


def inline(markdown: str) -> str:
    """A text of one paragraph, without the paragraph around it."""
    parts, end = [], 0
    for found in SPAN.finditer(markdown):
        parts += [escape(markdown[end : found.start()], quote=False), _span(found)]
        end = found.end()
    return "".join([*parts, escape(markdown[end:], quote=False)])


def _blocks(markdown: str) -> list[list[str]]:
    """The lines of each block: what is parted by empty lines, or by the marks of a fence."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            blocks[-1].append(line)
            if line.strip() == fence:
                fence = ""
                blocks.append([])
        elif line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
            blocks.append([line])
        elif line.strip():
            begins_list = BULLET.match(line) and blocks[-1] and not BULLET.match(blocks[-1][0])
            blocks.append([line]) if begins_list else blocks[-1].append(line)
        else:
            blocks.append([])
    return [block for block in blocks if block]


def _block(lines: list[str]) -> str:
    if lines[0].startswith("```"):
        inside = lines[1:-1] if lines[-1].startswith("```") and len(lines) > 1 else lines[1:]
        return f"<pre><code>{escape(chr(10).join(inside))}</code></pre>"
    if all(line.startswith("    ") for line in lines):
        return f"<pre><code>{escape(chr(10).join(line[4:] for line in lines))}</code></pre>"
    if heading := HEADING.fullmatch(lines[0]):
        level = len(heading[1])
        rest = _block(lines[1:]) if lines[1:] else ""
        return f"<h{level}>{inline(heading[2])}</h{level}>{rest}"
    if all(line.startswith("|") for line in lines) and len(lines) > 1:
        return _table([[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines])
    if BULLET.match(lines[0]):
        kind = "ol" if lines[0][0].isdigit() else "ul"
        items: list[str] = []
        for line in lines:
            if mark := BULLET.match(line):
                items.append(line[mark.end() :])
            else:
                items[-1] += f" {line.strip()}"
        return f"<{kind}>{''.join(f'<li>{inline(item)}</li>' for item in items)}</{kind}>"
    return f"<p>{inline(' '.join(line.strip() for line in lines))}</p>"


def _table(rows: list[list[str]]) -> str:
    """The first row is the heading, the second the line below it."""
    head = "".join(f"<th>{inline(cell)}</th>" for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{inline(cell)}</td>' for cell in row)}</tr>" for row in rows[2:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _span(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "code":
            return f"<code>{escape(found['code'])}</code>"
        case "block":
            return formula(found["block"], block=True)
        case "formula":
            return formula(found["formula"])
        case "strong":
            return f"<strong>{inline(found['strong'])}</strong>"
        case "emphasis":
            return f"<em>{inline(found['emphasis'])}</em>"
    return escape(found["escaped"])
