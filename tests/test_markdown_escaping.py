"""Tests that texts of visitors and models are escaped in Markdown."""

import re
from html import escape, unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pages.ui.markdown import JOINER, architecture, code, counted, passage, plain, unmarked
from tests.helpers import tiny_config
from transformer.data.token_text import printable

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
texts = st.text("ab1 `\\*_.+-=#|~!<>&$^[](){}:/@\n", max_size=40) | st.text("htpsw:/.@a-<>=~ \\", max_size=40)


@given(texts)
@example("4. + three blocks")
@example("http://a.b HTTPS://a.b www.a.b WWW.a.b me@a.b mailto:me@a.b")
@example(":material/info: :streamlit: -> <- -- >= <= ~= --> <-->")
def test_a_plain_text_is_shown_as_it_is(text):
    shown, same = MARKDOWN.render(plain(text)), " ".join(text.split())
    assert shown.replace(JOINER, "") == (f"<p>{escape(same, quote=False)}</p>\n" if same else "")
    assert unmarked(plain(text)) == same
    assert not re.search(r"(?<!\\)(\\\\)*[$:]", plain(text)), "Streamlit's formulas, colours and icons"
    # What Streamlit makes links, icons and arrows of, once Markdown has been read.
    later = r"https?://|www(?=\.)|[-.\w+]@[-\w]|:(?:material|streamlit)|[-<>~=][-<>=]"
    assert not re.search(later, unescape(shown[3:-5]), re.IGNORECASE)


@given(st.text(alphabet="`a ![]()\n", min_size=1, max_size=30))
@example("``![x](http://a/b.png)``")
@example("echo `rm`")
def test_code_is_shown_as_it_is(text):
    assert MARKDOWN.renderInline(code(text)) == f"<code>{escape(printable(text))}</code>"
    assert unmarked(code(text)) == printable(text)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (code("abcdef", 4), "`abc…`"),
        (plain("abcdef", 4), "abc…"),
        (passage(" come!\nLook,  my "), "`␣come!↵Look,␣␣my␣`"),
        (passage("a ``b"), "``` a ``b ```"),
        (unmarked(f"“After {code('a th')}”, {passage('b `c` d')}"), "“After a␣th”, b `c` d"),
        (", ".join(counted(number, "token") for number in (0, 1, 2000)), "no tokens, 1 token, 2,000 tokens"),
        (architecture(tiny_config(n_layers=1)), "1 layer × 2 heads, 8 wide, sinusoidal positions, context 8"),
        (architecture(tiny_config(n_layers=0, positions="none")), "no layers, 8 wide, no positions, context 8"),
        (
            architecture(tiny_config(architecture="encoder-decoder", n_encoder_layers=1, n_heads=1)),
            "1 encoder layer + 2 decoder layers × 1 head, 8 wide, sinusoidal positions, context 8",
        ),
    ],
)
def test_texts_are_shortened_counted_and_put_into_words(shown, expected):
    assert shown == expected
