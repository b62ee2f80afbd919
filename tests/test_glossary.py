"""The glossary: every term of the interface is in it, and what it says of code and pages is so."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.glossary import glossary, read_glossary
from pages.ui.shell.sidebar import PAGES
from transformer.inference.head_measures import MEASURES

ROOT = Path(__file__).parents[1]
TERMS = {term.name: term for term in glossary().values()}
CODE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "transformer").rglob("*.py"))
SOURCES = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]
TECHNICAL = re.compile(
    r"""\b(tokens?|prompts?|logits?|softmax|entropy|cross-entropy|nats?|quer(?:y|ies)|keys?|values?|scores?|heads?|layers?
    |blocks?|masks?|causal\ mask|padding|embeddings?|unembedding|residual\ stream|residual\ connections?|layer\ norm
    |feed-forward|attention|cross-attention|encoder|decoder|memory|vocabulary|temperature|top-[kp]|seed|loss
    |validation|parameters?|bigram|rung|context|positions?|dimensions?|d_model|batch|probability|rank)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words that a student may have to look up, wherever they stand in a caption or on a dial."""


def said_in(file: Path) -> list[str]:
    """The texts that a file gives to captions, headings, dials and measures."""
    saying = {"caption", "header", "subheader", "metric", "slider", "select_slider", "selectbox", "segmented_control",
              "number_input", "multiselect", "toggle", "pills", "info"}  # fmt: skip
    return [
        part.value
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in saying
        for argument in node.args
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def test_every_technical_word_of_a_caption_or_a_dial_is_explained():
    words = {word.lower() for file in SOURCES for text in said_in(file) for word in TECHNICAL.findall(text)}
    assert len(words) > 25
    known = glossary()
    missing = {word for word in words if word not in known and word.removesuffix("s") not in known}
    assert not missing


@pytest.mark.parametrize("word", ["Token", "Softmax", "temperature", "Top-p", "queries", "logits", "d_model", "blocks"])
def test_it_is_found_by_any_word_for_it(word):
    assert word.lower() in glossary()


def test_what_heads_do_and_how_positions_are_given_is_explained():
    named = {"previous", "induction", "spread"}
    assert {measure.title.lower() for measure in MEASURES if measure.name in named} <= glossary().keys()
    assert {"sinusoidal", "learned", "rotary"} <= glossary().keys()


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_an_entry_is_short_and_what_it_names_is_there(term):
    assert 20 < len(term.meaning) < 260 and term.meaning.endswith(".") and "!" not in term.meaning
    assert re.search(r"\b(19|20)\d\d\b", term.source)
    assert term.page in {title for _, title, _ in PAGES}
    assert all(re.search(rf"\b{re.escape(part)}\b", CODE) for part in term.code.split(".")), term.code


class TestReading:
    @given(st.lists(st.text("abc é", min_size=1).map(str.strip).filter(bool), unique=True, max_size=4), st.text("xy. "))
    def test_what_is_written_is_read(self, names, meaning):
        text = "# Title\n" + "".join(
            f"\n## {name}\nIt is{meaning.rstrip()}\nand more.\nsource: A 2017 | code: b | page: C\n" for name in names
        )
        found = read_glossary(text)
        assert [term.name for term in found] == names
        assert all(term.meaning == f"It is{meaning.rstrip()} and more." for term in found)
        assert all((term.source, term.code, term.page) == ("A 2017", "b", "C") for term in found)

    @pytest.mark.parametrize(
        "entry",
        [
            "A",
            "A\nwords",
            "A\nsource: a | code: b | page: c",
            "A |\nwords\nsource: a | code: b | page: c",
            "A\nwords\nsource: a | page: c",
        ],
    )
    def test_an_entry_that_is_not_whole_is_named(self, entry):
        with pytest.raises(ValueError, match="The entry 'A"):
            read_glossary(f"## {entry}\n")

    def test_two_entries_for_one_word_are_refused(self):
        entry = "## {}\nwords\nsource: a | code: b | page: c\n"
        with pytest.raises(ValueError, match="more than one entry for a"):
            read_glossary(entry.format("A") + entry.format("B | a"))
