"""Tests that texts of visitors and models are escaped in Markdown."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages.ui.frame.model_picker import _duration, _size
from pages.ui.markdown import JOINER, architecture, code, command, counted, passage, plain, unmarked
from tests.helpers import tiny_config


@given(st.text(alphabet="`a ![]()\n", max_size=30))
def test_nothing_in_code_ends_it(text):
    shown = code(text)
    fence = re.match("`+", shown)[0]
    inside = shown[len(fence) : -len(fence)]
    assert shown == f"{fence}{inside}{fence}"
    assert all(len(run) < len(fence) for run in re.findall("`+", inside))


def test_a_picture_behind_backticks_stays_code():
    assert code("``![x](http://a/b.png)``") == "``` ``![x](http://a/b.png)`` ```"
    assert code("`") == "`` ` ``"
    assert code("plain") == "`plain`"
    assert code("abcdef", 4) == "`abc…`"


def test_a_passage_keeps_the_spaces_between_its_words_and_shows_all_others():
    assert passage("dos cientos") == "`dos cientos`"
    assert passage(" come!\nLook,  my ") == "`␣come!↵Look,␣␣my␣`"
    assert passage(" ") == "`␣`" and passage("a ``b") == "``` a ``b ```"


@given(st.text(max_size=40))
def test_whatever_markdown_reads_is_escaped(text):
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]!<>$~:#|]", plain(text))


@given(st.text(alphabet="ab `\\*_.+<:/@", max_size=30))
@example("4. + three blocks")
def test_a_plain_text_is_itself_again_where_no_markdown_is_read(text):
    assert unmarked(plain(text)) == " ".join(text.split())


def test_code_is_its_text_where_no_markdown_is_read():
    assert unmarked(f"“After {code('a th')}”, {passage('b `c` d')}") == "“After a␣th”, b `c` d"


def test_one_of_something_is_one():
    assert [counted(n, "token") for n in (0, 1, 2, 2000)] == ["no tokens", "1 token", "2 tokens", "2,000 tokens"]
    assert [_size(1), _size(1_234), _duration(0.4), _duration(1.2), _duration(89)] == [
        "1 parameter",
        "1,234 parameters",
        "1 second",
        "1 second",
        "89 seconds",
    ]


ADDRESSES = re.compile(r"https?://|www(?=\.)|[-.\w+]@[-\w]", re.IGNORECASE)
"""What Streamlit makes a link of, once Markdown has been read."""
SIGNS = re.compile(r":(?:material|streamlit)|[-<>~=][-<>=]")
"""What it makes icons and arrows of."""


@given(st.text(alphabet="htpsw:/.@a-<>=~ \\", max_size=40))
@example("http://a.b HTTPS://a.b www.a.b WWW.a.b me@a.b mailto:me@a.b")
@example(":material/info: :streamlit: -> <- -- >= <= ~= --> <-->")
def test_no_address_icon_or_arrow_is_found_in_a_plain_text(text):
    shown = re.sub(r"\\([^\w\s])", r"\1", plain(text))  # as Markdown reads it
    assert not ADDRESSES.search(shown)
    assert not SIGNS.search(shown)
    assert shown.replace(JOINER, "") == " ".join(text.split())


def test_a_command_can_be_copied():
    assert command("python  -m transformer\ntrain x") == "`python -m transformer train x`"
    assert command("echo `rm` ![x](http://a/b.png)").startswith("`` echo `rm` ![x]")
    assert command("a b c d", 4) == "`a b…`"


def test_a_long_text_is_cut():
    assert plain("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n_layers": 1, "n_heads": 2, "positions": "rotary"}, "1 layer × 2 heads, 8 wide, rotary positions"),
        ({"n_layers": 0, "positions": "none"}, "no layers, 8 wide, no positions"),
        (
            {"architecture": "encoder-decoder", "n_layers": 2, "n_encoder_layers": 1, "n_heads": 1},
            "1 encoder layer + 2 decoder layers × 1 head, 8 wide",
        ),
    ],
)
def test_an_architecture_in_words(fields, words):
    assert architecture(tiny_config(**fields)).startswith(words)
