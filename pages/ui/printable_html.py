"""Converts the Markdown of lessons to printable HTML, and its TeX to MathML, which browsers draw without a script.

Headings, paragraphs, lists, tables, indented and fenced code, **strong**, *emphasis*, `code`, $formulas$ and
$$formulas$$. Everything else is text. Nothing in a text can become an element: a lesson's file may be anybody's.
"""

from __future__ import annotations

from html import escape, unescape
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

RULES = ("table", "code", "fence", "heading", "list", "backticks", "emphasis", "escape")
MAX_BRACES = 60
"""Braces of a formula."""
ATTRIBUTES = {"display", "mathvariant", "width", "stretchy", "displaystyle", "scriptlevel"}
"""What an element of a formula keeps; a link or a style is none of its parts."""
STYLE = """
:root { color-scheme: light; --line: #b9b9c3; --faint: #5c5c68; }
* { box-sizing: border-box; }
body { font: 11pt/1.45 "Source Sans 3", "Source Sans Pro", system-ui, sans-serif; color: #111; background: #fff;
  max-width: 19cm; margin: 0 auto; padding: 1cm; }
h1 { font-size: 1.7em; line-height: 1.15; margin: 0 0 .2em; break-after: avoid; }
p { orphans: 3; widows: 3; } p:has(> strong:only-child) { break-after: avoid; }
h2 { font-size: 1.25em; margin: 1em 0 .3em; break-after: avoid; }
h3 { font-size: 1em; margin: 1em 0 .2em; break-after: avoid; }
p, ul, ol, pre, figure { margin: .5em 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em; background: #f1f1f5;
  padding: .05em .25em; border-radius: 3px; overflow-wrap: anywhere; print-color-adjust: exact; }
pre { white-space: pre-wrap; } pre code { display: block; padding: .5em; }
math[display="block"] { margin: .6em 0; }
.faint { color: var(--faint); }
.part { min-height: 80mm; display: flex; flex-direction: column; padding-top: .6em; break-inside: avoid; }
.part > :first-child { margin-top: 0; } .part > :not(h1, h2, .question) { margin-block: .25em; }
.part:last-of-type { min-height: 0; } .part > .fold { border-bottom: 1px dashed var(--faint); padding-bottom: .4em; }
.question { border: 1px solid var(--line); border-radius: 6px; padding: .5em .9em; margin: .4em 0;
  break-inside: avoid; flex: 1; display: flex; flex-direction: column; }
.question > p:first-child { font-weight: 600; } .question > * { margin: .2em 0; }
.options { list-style: none; padding: 0; } .options li { margin: .25em 0; }
.options li::before { content: "☐"; margin-right: .6em; }
.to-order li::before { content: "___"; }
.lines { flex: 1; min-height: 2.6em; print-color-adjust: exact;
  background: linear-gradient(to top, var(--line) 1px, transparent 1px) 0 100% / 100% 2.6em repeat-y; }
.new-page { break-before: page; }
.together, figure { break-inside: avoid; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2em .5em; text-align: left;
  vertical-align: top; }
svg { max-width: min(100%, 7cm); height: auto; }
@page { size: A4; margin: 14mm 16mm; }
@media print { body { padding: 0; max-width: none; font-size: 10pt; line-height: 1.36; }
  h3 { margin-top: .8em; } a { color: inherit; } }
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
    return _MARKDOWN.render(markdown).strip()


def inline(markdown: str) -> str:
    """A text of one paragraph, without the paragraph around it."""
    return _MARKDOWN.renderInline(markdown)


def formula(tex: str, *, block: bool = False) -> str:
    """A formula as an element `math`; one that can't be read, as its source. block: on a line of its own."""
    try:
        if tex.count("{") > MAX_BRACES:
            raise ValueError
        math = convert_to_element(tex, "", "block" if block else "inline")
    except Exception:  # the converter has no error that all of its own derive from
        return f"<code>{escape(tex)}</code>"
    for part in math.iter():
        part.text = unescape(part.text or "")
        part.attrib = {name: value for name, value in part.attrib.items() if name in ATTRIBUTES}
    return ElementTree.tostring(math, encoding="unicode")


_MARKDOWN = MarkdownIt("zero").enable(RULES)
_MARKDOWN.use(dollarmath_plugin, allow_labels=False, allow_space=False, double_inline=True)
for _name in ("math_inline", "math_inline_double", "math_block"):
    _MARKDOWN.add_render_rule(
        _name, lambda self, tokens, at, *_: formula(tokens[at].content, block=tokens[at].type != "math_inline")
    )
