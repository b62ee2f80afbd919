"""Tests that the glossary is complete, and true of code and pages."""

import ast
import re
from pathlib import Path

import pytest

from pages.ui.components.assets import glossary_terms
from pages.ui.glossary import Term, entries, glossary, read_glossary
from transformer import ModelConfig, hook_points
from transformer.frontend.page_titles import SENTENCES
from transformer.inference.head_measures import MEASURES

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]
SHOWN = {*re.findall(r"\w+", "header subheader metric caption info multiselect checkbox toggle pills button expander")}
SHOWN |= {*re.findall(r"\w+", "slider select_slider selectbox segmented_control number_input text_area side_by_side")}
"""Functions whose arguments are read on a page."""
TECHNICAL = re.compile(
    r"""\b(tokens?|prompts?|logits?|softmax|entropy|cross-entropy|nats?|quer(?:y|ies)|keys?|values?|scores?|heads?|layers?
    |blocks?|masks?|causal\ mask|padding|embeddings?|unembedding|residual\ stream|residual\ connections?|layer\ norm
    |feed-forward|attention|cross-attention|encoder|decoder|memory|vocabulary|temperature|top-[kp]|seed|loss
    |validation|parameters?|bigram|rung|context|positions?|dimensions?|d_model|batch|probability|rank|sinusoidal
    |learned|rotary|induction|ablation|patching|logit\ lens|attribution)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words that a student may have to look up, wherever they stand on a page."""


def texts() -> set[str]:
    """What pages say: titles, measures, hook points, and what is given to captions, headings, dials and buttons."""
    found = {*SENTENCES, *(measure.title for measure in MEASURES)}
    for architecture in ("decoder-only", "encoder-decoder"):
        sizes = {"vocab_size": 4, "context_length": 4, "n_layers": 1, "n_heads": 1, "d_model": 2}
        found |= {info.meaning for info in hook_points(ModelConfig(**sizes, architecture=architecture)).values()}
    for folder in (ROOT / "transformer" / "frontend", ROOT / "pages" / "ui" / "components"):
        for file in (*folder.rglob("*.js"), *folder.rglob("*.html")):
            markup = file.read_text(encoding="utf-8")
            found |= {*re.findall(r"<(?:h2|button|summary|figcaption|b)[^>]*>([^<$]+)<", markup)}
            found |= {*re.findall(r"[\"`]([A-Z][^\"`$]* [^\"`$]*)", markup)}  # sentences
            found |= {*re.findall(r"(?:title: |aria-label=)\"([^\"$]+)\"", markup)}
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SHOWN:
                said = [part for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Constant)]
                found |= {part.value for part in said if isinstance(part.value, str)}
    return found


def test_every_technical_word_of_a_page_is_explained_under_any_word_for_it():
    words = {word.lower() for text in texts() for word in TECHNICAL.findall(text)}
    assert len(words) > 45
    assert not {word for word in words if word not in glossary() and word.removesuffix("s") not in glossary()}


def test_an_entry_is_short_and_what_it_names_is_there():
    code = "\n".join(
        file.read_text(encoding="utf-8")
        for folder in ("transformer", "pages")
        for file in (ROOT / folder).rglob("*.py")
    )
    names = {*re.findall(r"\w+", code)}
    for term in entries():
        assert 20 < len(term.meaning) < 260 and term.meaning.endswith(".") and "!" not in term.meaning, term
        assert re.search(r"\b(19|20)\d\d\b", term.source) and term.page in SENTENCES, term
        assert names >= {*re.findall(r"\w+", term.code)}, term


LAST = "source: A 2017, §3 | code: b | page: C"


def test_an_entry_is_read_as_it_is_written_and_one_that_is_not_whole_is_named():
    (term,) = read_glossary(f"# Title\n\n## (A) | b | (c d)\nIt is\nso.\n{LAST}\n")
    assert term == Term("A", ("b", "c d"), ("A", "c d"), "It is so.", "A 2017, §3", "b", "C")
    for entry in ("A", "A\nwords", f"A\n{LAST}", f"A |\nwords\n{LAST}", "A\nwords\nsource: a | page: c"):
        with pytest.raises(ValueError, match="The entry 'A"):
            read_glossary(f"## {entry}\n")
    with pytest.raises(ValueError, match="more than one entry for a"):
        read_glossary(f"## A\nwords\n{LAST}\n## B | a\nwords\n{LAST}\n")


def test_the_browser_gets_every_entry_with_all_words_for_it():
    messages = glossary_terms()
    assert [message["name"] for message in messages] == [term.name for term in entries()]
    assert all(message["words"][0] == message["name"] for message in messages)
    assert {word.lower() for message in messages for word in message["words"]} == set(glossary())
