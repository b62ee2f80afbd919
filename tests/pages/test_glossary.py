"""Tests that the glossary is complete, and true of code and pages."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.components.assets import glossary_terms
from pages.ui.frame.page import PAGES
from pages.ui.glossary import entries, glossary, read_glossary
from transformer import ModelConfig, hook_points
from transformer.inference.head_measures import MEASURES

ROOT = Path(__file__).parents[2]
TERMS = {term.name: term for term in glossary().values()}
CODE = "\n".join(
    file.read_text(encoding="utf-8") for folder in ("transformer", "pages") for file in (ROOT / folder).rglob("*.py")
)
SOURCES = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]
TECHNICAL = re.compile(
    r"""\b(tokens?|prompts?|logits?|softmax|entropy|cross-entropy|nats?|quer(?:y|ies)|keys?|values?|scores?|heads?|layers?
    |blocks?|masks?|causal\ mask|padding|embeddings?|unembedding|residual\ stream|residual\ connections?|layer\ norm
    |feed-forward|attention|cross-attention|encoder|decoder|memory|vocabulary|temperature|top-[kp]|seed|loss
    |validation|parameters?|bigram|rung|context|positions?|dimensions?|d_model|batch|probability|rank)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words that a student may have to look up, wherever they stand in a caption or on a dial."""

DIALS = {*re.findall(r"\w+", "header subheader metric slider select_slider selectbox segmented_control number_input")}
LABELS = DIALS | {"multiselect", "checkbox", "pills", "button", "text_area", "expander", "side_by_side"}
"""What has a label as its first argument."""
DRAWN_LABEL = re.compile(
    r"""title:\ "([^"]+)" | aria-label="([^"$]+)" | <(?:h2|button|summary|figcaption|b)[^>]*>([^<$]+)<
    | (?:slider\(|number\(|\[)"[a-z_]+",\ "([A-Z÷][^"]+)" """,
    re.VERBOSE,
)
"""Labels as the scripts and the markup of the components and instruments have them."""
PLAIN = set(
    """
    attends characters data during maximum per restore training unknown
    a about added adds after again alike all along an and angle another answer answers are around as at
    average away back bars be before begin bring by can change changed choose class clear close code column comes
    compare compute cosines csv deviation did discuss divides does down drawn each end enter enters escape estimated
    every example examples excerpt export factor files finish first fits fixed follow for forget form forms
    found from generate generated glossary go goes grows hand has have height here hidden hide how if in included input
    inside into is it its itself join keep kind last lead learn leave left length lesson lessons let likeliest
    line lines link longer look looked looks makes matter may me mean measured minute minutes models more my
    name needed next no nothing number numbers of offers ok on one only open opens or order other output over
    own page pair part parts passes paste pause picked picture plays png pointer predicts present presentation
    previous put python qr question read remove rest resume reveal right room row s said same save says see six
    shape share show shown sines size skip something space standard stay stop suggest sums swap t table take talk terms
    text that the their them there these this three time to together tour train trained true trying turned two
    type unchanged undo unequal up uses view vote votes was weighted well were what when where which whole
    whose with without words worth would write writes writing written yet you your
    add check continue fill filled filling freely navigate reset review start students cap
""".split()  # noqa: SIM905
)
"""Words of labels that are everybody's. A label with any other word needs an entry for it, or its word a place here."""


def labels() -> dict[str, str]:
    """Every label of the interface, and where it is from: pages, measures, hook points, widgets, what is drawn."""
    found = {title: "a page" for title in PAGES} | {measure.title: "a measure" for measure in MEASURES}
    for architecture in ("decoder-only", "encoder-decoder"):
        for norm, positions in (("pre", "rotary"), ("post", "learned"), ("pre", "sinusoidal")):
            sizes = {"vocab_size": 4, "context_length": 4, "n_layers": 1, "n_heads": 1, "d_model": 2}
            shape = ModelConfig(**sizes, norm=norm, positions=positions, architecture=architecture)
            found |= {info.meaning: "the registry" for info in hook_points(shape).values()}
    for folder in (ROOT / "transformer" / "frontend", ROOT / "pages" / "ui" / "components"):
        for file in (*folder.rglob("*.js"), *folder.rglob("*.html")):
            for match in DRAWN_LABEL.finditer(file.read_text(encoding="utf-8")):
                found[next(filter(None, match.groups()))] = file.name
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LABELS:
                for part in ast.walk(node.args[0]) if node.args else ():
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        found[part.value] = file.name
    return found


def unexplained(label: str) -> set[str]:
    """The words of a label that are neither explained nor everybody's."""
    known = sorted(glossary(), key=len, reverse=True)
    terms = "|".join(rf"(?<![\w-]){re.sub('y$', '(?:y|ie)', re.escape(word))}(?:e?s)?(?![\w-])" for word in known)
    left = re.sub(terms, " ", label.lower())
    return {word for word in re.findall(r"[^\W\d_][\w√-]*", left) if word not in PLAIN and not word.startswith("hook_")}


def test_every_word_of_a_label_is_explained_or_everybodys():
    found = labels()
    assert len(found) > 150 and {"What if", "Induction", "Logits", "Temperature"} <= found.keys()
    assert not {(label, where): words for label, where in found.items() if (words := unexplained(label))}


def test_a_label_with_a_word_that_nobody_explains_is_found():
    assert unexplained("Likelihood of each head") == {"likelihood"}
    assert unexplained("Queries of each head") == set()


def said_in(file: Path) -> list[str]:
    """The texts that a file gives to captions, headings, dials and measures."""
    saying = DIALS | {"caption", "multiselect", "toggle", "pills", "info"}
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


def test_it_is_found_by_any_word_for_it():
    assert {"token", "softmax", "temperature", "top-p", "queries", "logits", "d_model", "blocks"} <= glossary().keys()


def test_what_heads_do_and_how_positions_are_given_is_explained():
    named = {"previous", "induction", "spread"}
    assert {measure.title.lower() for measure in MEASURES if measure.name in named} <= glossary().keys()
    assert {"sinusoidal", "learned", "rotary"} <= glossary().keys()


def test_an_entry_is_short_and_what_it_names_is_there():
    for term in TERMS.values():
        assert 20 < len(term.meaning) < 260 and term.meaning.endswith(".") and "!" not in term.meaning, term
        assert re.search(r"\b(19|20)\d\d\b", term.source), term
        assert term.page in PAGES, term
        assert all(re.search(rf"\b{re.escape(part)}\b", CODE) for part in term.code.split(".")), term


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

    def test_a_word_in_parentheses_counts_alone(self):
        (term,) = read_glossary("## (A) | b | (c d)\nwords\nsource: a 2017 | code: b | page: c\n")
        assert (term.name, term.others, term.alone) == ("A", ("b", "c d"), ("A", "c d"))

    def test_two_entries_for_one_word_are_refused(self):
        entry = "## {}\nwords\nsource: a | code: b | page: c\n"
        with pytest.raises(ValueError, match="more than one entry for a"):
            read_glossary(entry.format("A") + entry.format("B | a"))


def test_the_browser_gets_every_entry_with_all_words_for_it():
    messages = glossary_terms()
    assert [message["name"] for message in messages] == [term.name for term in entries()]
    assert all(message["words"][0] == message["name"] for message in messages)
    assert {word.lower() for message in messages for word in message["words"]} == set(glossary())
