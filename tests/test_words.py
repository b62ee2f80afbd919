"""Texts of a visitor's or a model's stay texts inside a sentence that is Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.markdown import architecture, code, plain
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


@given(st.text(max_size=40))
def test_whatever_markdown_reads_is_escaped(text):
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]!<>$~:#|]", plain(text))


def test_a_long_text_is_cut():
    assert plain("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n_layers": 1, "n_heads": 2, "positions": "rotary"}, "1 layer × 2 heads, 8 wide, rotary positions"),
        ({"n_layers": 0, "positions": "none"}, "no layers, 8 wide, no positions"),
        ({"architecture": "encoder-decoder", "n_layers": 2, "n_encoder_layers": 1, "n_heads": 1},
         "1 encoder layer + 2 decoder layers × 1 head, 8 wide"),
    ],
)  # fmt: skip
def test_an_architecture_in_words(fields, words):
    assert architecture(tiny_config(**fields)).startswith(words)
