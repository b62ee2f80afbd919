"""Converts the Markdown of lessons to printable HTML, and its TeX to MathML, which browsers draw without a script.

Headings, paragraphs, lists, tables, indented and fenced code, **strong**, *emphasis*, `code`, $formulas$ and
$$formulas$$. Everything else is text. Nothing in a text can become an element: a lesson's file may be anybody's.
"""

import re
from html import escape, unescape
from pathlib import Path
from xml.etree import ElementTree

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

RULES = ("table", "code", "fence", "heading", "list", "backticks", "emphasis", "escape")
MAX_BRACES = 60
"""Braces of a formula."""
ATTRIBUTES = {"display", "mathvariant", "width", "stretchy", "displaystyle", "scriptlevel"}
"""What an element of a formula keeps; a link or a style is none of its parts."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""A page has no scripts, and nothing in one may become any."""
STYLE = Path(__file__).with_name("printable.css").read_text("utf-8")


DATA = re.compile(r"<(code|math|svg)\b.*?</\1>", re.DOTALL)
"""A token, a prompt, a name, a formula or a drawing of them."""


def document(title: str, body: str) -> str:
    """A whole page, in which browsers that translate pages leave what is data as it is. body: HTML."""
    body = DATA.sub(r'<span translate="no">\g<0></span>', body)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
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
