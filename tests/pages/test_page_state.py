"""Tests the round trip of the page state through a link, and invalid links."""

import math
import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages.ui.host.link_values import Number, OneOf, SomeOf, Text
from pages.ui.host.page_state import PARAMETERS, PARSERS, PageState, as_text
from transformer import MEASURES, TASKS
from transformer.data.corpora import SOURCES
from transformer.training.presets import LADDERS, RUNGS

DEFAULTS = PageState.of({})
TEXTS = st.text(max_size=200) | st.sampled_from(
    ["", " ", "\n", "a\r\nb", "á😀\u200d", "<script>alert(1)</script>", "a&b=c?d#e%20+f", "\x00", "None"]
)
PLACES = st.integers(0, 10**6)
SPANS = st.tuples(PLACES, PLACES).filter(lambda span: span[0] != span[1]).map(sorted)
NUMBERS = {name: parser for name, parser in PARSERS.items() if isinstance(parser, Number)}
WRITTEN_OTHERWISE = {
    "zoom": st.tuples(SPANS, SPANS).map(lambda spans: (*spans[0], *spans[1])),
    "cell": st.lists(PLACES, min_size=1, max_size=4).map(tuple),
    "circuit": st.just(("qk", "blocks.0.attn", 1, 3)) | st.just(("ov", "decoder.blocks.1.cross_attn", 0, 2, 4, 5)),
    "waves": st.lists(st.integers(0, 511), unique=True, max_size=6).map(tuple),
    "written": st.lists(PLACES, max_size=30).map(tuple),
    "branches": st.sampled_from(["", "0_1.2*"]),
    "inside": st.sampled_from(["", "blocks.0.hook_mlp_out"]),
    "answers": st.sampled_from(["", "01-counting-pairs~0~0"]),
    "width": st.integers(1, 256).map(lambda half: 2 * half),
}
"""Values of the fields that more than their parser's kind has to do with."""
STRANGE = r"""abc nan NaN -nan inf -inf Infinity 1e999 -1e999 1e 0x10 1;2 [1] None true ½ ∞ 💥 ../../etc/passwd
<script>alert(1)</script> {0.__class__} %s%n ${7*7}"""
HUGE = ("9" * 5000, "-" + "9" * 5000, "1" + "0" * 400)
HOSTILE = ("", " ", "\x00", "a\nb", "' OR 1=1 --", *re.findall(r"\S+", STRANGE), *HUGE)


def _values(name: str) -> st.SearchStrategy:
    """Values that a field may have."""
    match parser := PARSERS[name]:
        case _ if name in WRITTEN_OTHERWISE:
            found = WRITTEN_OTHERWISE[name]
        case Number(kind=kind, low=low, high=high):
            found = st.floats(low, high) if kind is float else st.integers(int(low), int(high))
        case OneOf():
            found = st.sampled_from(parser.choices)
        case SomeOf():
            found = st.sets(st.sampled_from(parser.choices)).map(lambda chosen: parser(",".join(chosen)))
        case Text():
            found = TEXTS.map(lambda text: text[: parser.longest])
    return found if getattr(DEFAULTS, name) is not None else st.none() | found


STATES = st.fixed_dictionaries({name: _values(name) for name in PARSERS}).map(lambda values: PageState(**values))


def _through_an_address(current: PageState) -> dict[str, str]:
    return dict(parse_qsl(urlencode(current.texts), keep_blank_values=True, max_num_fields=100))


def _assert_refused(name: str, text: str) -> None:
    found = PageState.of({name: text})
    assert getattr(found, name) == getattr(DEFAULTS, name)
    (notice,) = found.notices
    assert f"The link has {name} = “{text[:40]}”" in notice
    assert "The default is used instead." in notice
    assert len(notice) < 800


# What a link brings back


@given(STATES)
@example(replace(DEFAULTS, base=12345.678, temperature=0.1 + 0.2, top_p=math.nextafter(1, 0)))
@example(replace(DEFAULTS, prompt="", batch="\n\n", step=0, query=0, key=0))
def test_a_link_brings_back_the_same_page_state(current):
    assert PageState.of(_through_an_address(current)) == current


def test_every_default_can_be_read_from_a_link():
    for name, parse in PARSERS.items():
        value = getattr(DEFAULTS, name)
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert value is None or parse(text) == value


@pytest.mark.parametrize(
    ("values", "parameters"),
    [
        ({}, {}),
        ({"base": 10000.0, "temperature": 1.0, "layer": 3}, {"temperature": "1", "layer": "3"}),
        ({"zoom": (3, 9, 0, 4)}, {"zoom": "3,9,0,4"}),
        ({"without": ("mask", "scale")}, {"without": "mask,scale"}),
        ({"waves": ()}, {"waves": ""}),
        ({"task": "stories"}, {"task": "stories"}),
    ],
)
def test_a_link_is_short_and_written_as_it_is_read(values, parameters):
    assert replace(DEFAULTS, **values).texts == {"model": "shakespeare", **parameters}
    assert PageState.of(parameters) == replace(DEFAULTS, **values)


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ({"without": "scale,mask,scale"}, {"without": ("mask", "scale")}),
        ({"without": ""}, {}),
        ({"waves": "7,0,7"}, {"waves": (7, 0)}),
        ({"shown": "60", "source_shown": "x", "all_layers": "true", "layer": "1"}, {"layer": 1}),  # of older pages
        ({"utm_source": "x", "__class__": "y", "notices": "z", "tokens_": "1"}, {}),  # which mean nothing here
    ],
)
def test_other_ways_of_writing_a_link_are_no_mistakes(parameters, values):
    assert PageState.of(parameters) == replace(DEFAULTS, **values)


REGISTRIES = {
    "task": TASKS,
    "corpus": SOURCES,
    "ladder": LADDERS,
    "rung": [preset.name for rungs in RUNGS.values() for preset in rungs],
    "order": ["", *(measure.name for measure in MEASURES)],
}


@pytest.mark.parametrize("name", REGISTRIES)
def test_the_table_offers_what_there_is(name):
    assert PARAMETERS[name]["options"] == [*REGISTRIES[name]]


def test_values_that_were_renamed_are_read_under_their_new_names():
    renamed = [(name, *pair) for name, row in PARAMETERS.items() for pair in row.get("aliases", {}).items()]
    assert renamed
    for name, former, now in renamed:
        found = PageState.of({name: former})
        assert as_text(name, getattr(found, name)) == now and not found.notices


# What is wrong in a link


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_outside_its_range_is_named_and_the_default_kept_and_both_ends_will_do(name):
    number = NUMBERS[name]
    beyond = [int(number.low) - 1, int(number.high) + 1, -(10**9), 10**12, 10**400]
    if number.kind is float:
        beyond[:2] = [math.nextafter(number.low, -math.inf), math.nextafter(number.high, math.inf)]
    for text in (*map(str, beyond), *HOSTILE):
        _assert_refused(name, text)
    for value in (number.low, number.high):
        found = PageState.of({name: str(number.kind(value))})
        assert getattr(found, name) == value and not found.notices


REFUSED = {
    "zoom": "0,4,0 0,4,0,4,0 4,0,0,4 0,4,3,3 0,0,0,1 -1,4,0,4 0,4,0,1000001 0,4,0,x 0,4,,4",
    "without": "masks mask, , mask;scale Mask mask,x",
    "order": "sharpness PREVIOUS 0",
    "waves": f"a 1, , 1,x 512 -1 0,1,2,3,4,5,6 1.5 {HUGE[0]}",
    "cell": "a,b 1,2,3,4,5 -1 1,",
    "circuit": "qk qk,blocks.0.attn qk,blocks.0.attn,1 qk,blocks.0.attn,1,2,3 ov,blocks.0.attn,-1,0",
    "written": "a 1,2 1..2 .1 12345678 -1",
    "answers": "x~y~z",
}


def test_garbage_is_named_and_the_default_kept():
    chosen = [name for name, parser in PARSERS.items() if isinstance(parser, OneOf | SomeOf)]
    for name in (*chosen, "zoom", "circuit", "cell"):
        takes_nothing = isinstance(PARSERS[name], SomeOf) or "" in getattr(PARSERS[name], "choices", ())
        for text in HOSTILE[takes_nothing:]:
            _assert_refused(name, text)
    for name, texts in REFUSED.items():
        for text in texts.split(" "):
            _assert_refused(name, text)
    found = PageState.of({"width": "33"})
    assert found.width == 34 and len(found.notices) == 1 and "34" in found.notices[0]
    (notice,) = PageState.of({"seed": "-1"}).notices
    assert "2,147,483,647" in notice, "a range is said in whole numbers"


def test_any_text_is_kept_as_it_is_unless_it_is_too_long():
    for name, parser in PARSERS.items():
        if isinstance(parser, Text) and not parser.pattern:
            longest = "é" * parser.longest
            _assert_refused(name, longest + "é")
            for text in (longest, *(text[: parser.longest] for text in HOSTILE)):
                found = PageState.of({name: text})
                assert getattr(found, name) == text and not found.notices


@given(st.dictionaries(st.text() | st.sampled_from(sorted(PARSERS)), st.text() | st.sampled_from(HOSTILE)))
def test_no_link_is_too_strange_to_be_read(parameters):
    found = PageState.of(parameters)
    assert len(found.notices) <= sum(name in PARSERS for name in parameters) + 1
    for name, number in NUMBERS.items():
        value = getattr(found, name)
        assert value is None or (type(value) is number.kind and number.low <= value <= number.high)
    assert PageState.of(_through_an_address(found)) == replace(found, notices=())
