"""The visitor's choices as a link: there and back unchanged, and garbage answered with a sentence."""

import math
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages.ui.shell.state import LONGEST_TEXT, PACES, PARSERS, Number, Visitor, fields, from_query, to_query

TEXTS = st.text(max_size=200) | st.sampled_from(
    ["", " ", "\n", "a\r\nb", "á😀\u200d", "<script>alert(1)</script>", "a&b=c?d#e%20+f", "\x00", "None"]
)
CHOICES = {
    "model": TEXTS, "prompt": st.none() | TEXTS, "text": TEXTS, "batch": st.none() | TEXTS,
    "pace": st.sampled_from(sorted(PACES)), "scope": st.sampled_from(["prompt", "all"]),
    "pad_side": st.sampled_from(["right", "left"]),
}  # fmt: skip
OPTIONAL = ("step", "query", "key")
NUMBERS = {name: parser for name, parser in PARSERS.items() if isinstance(parser, Number)}
HOSTILE = (
    "", " ", "abc", "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999", "-1e999", "1e", "0x10", "1;2", "[1]",
    "None", "true", "9" * 5000, "-" + "9" * 5000, "1" + "0" * 400, "½", "∞", "💥", "\x00", "../../etc/passwd",
    "<script>alert(1)</script>", "' OR 1=1 --", "{0.__class__}", "%s%n", "${7*7}", "a\nb",
)  # fmt: skip


def _values(number: Number) -> st.SearchStrategy:
    if number.kind is float:
        return st.floats(number.low, number.high)
    return st.integers(int(number.low), int(number.high))


def _visitors() -> st.SearchStrategy[Visitor]:
    choices = CHOICES | {name: _values(number) for name, number in NUMBERS.items()}
    choices |= {name: st.none() | choices[name] for name in OPTIONAL}
    choices["width"] = st.integers(1, 256).map(lambda half: 2 * half)
    return st.builds(Visitor, **choices)


def _through_an_address(current: Visitor) -> dict[str, str]:
    return dict(parse_qsl(urlencode(to_query(current)), keep_blank_values=True, max_num_fields=100))


def _outside(number: Number) -> list[str]:
    beyond = [number.low - 1, number.high + 1, -(10**9), 10**12, 10**400]
    if number.kind is float:
        beyond[:2] = [math.nextafter(number.low, -math.inf), math.nextafter(number.high, math.inf)]
        return [str(value) for value in beyond]
    return [str(int(value)) for value in beyond]


def test_every_field_of_a_visitor_is_in_the_link():
    assert sorted(PARSERS) == sorted(set(fields()) - {"own_text"})  # a text of up to 5 MB is too long for one


def test_every_default_can_be_read_from_a_link():
    defaults = Visitor()
    for name, parse in PARSERS.items():
        value = getattr(defaults, name)
        assert value is None or parse(str(value)) == value


@given(_visitors())
@example(Visitor(base=12345.678, temperature=0.1 + 0.2, top_p=math.nextafter(1, 0)))
@example(Visitor(seed=2**31 - 1, base=1e6, temperature=0.0))
@example(Visitor(prompt="", text="\n\n", step=0, query=0, key=0))
def test_a_link_brings_back_the_same_visitor(current):
    assert from_query(_through_an_address(current)) == current


@given(_visitors())
def test_a_link_of_a_link_is_the_same_link(current):
    parameters = to_query(current)
    assert to_query(from_query(parameters)) == parameters


def test_a_short_visit_has_a_short_link():
    assert to_query(Visitor()) == {"model": "shakespeare"}
    assert to_query(Visitor(base=10000.0, temperature=1.0, layer=3)) == {
        "model": "shakespeare",
        "temperature": "1",
        "layer": "3",
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_outside_its_range_is_named_and_the_default_kept(name):
    number = NUMBERS[name]
    for text in _outside(number):
        _assert_refused(name, text)


@pytest.mark.parametrize("name", NUMBERS)
def test_both_ends_of_a_range_will_do(name):
    number = NUMBERS[name]
    for value in (number.low, number.high):
        found = from_query({name: str(number.kind(value))})
        assert getattr(found, name) == value
        assert not found.notices


@pytest.mark.parametrize("name", [*NUMBERS, "pace", "scope", "pad_side"])
def test_garbage_is_named_and_the_default_kept(name):
    for text in HOSTILE:
        _assert_refused(name, text)


@pytest.mark.parametrize("name", ["model", "prompt", "text", "batch"])
def test_a_text_that_is_too_long_is_refused(name):
    longest = "é" * LONGEST_TEXT
    assert getattr(from_query({name: longest}), name) == longest
    _assert_refused(name, longest + "é")


@pytest.mark.parametrize("name", ["model", "prompt", "text", "batch"])
def test_any_text_is_kept_as_it_is(name):
    for text in HOSTILE:
        found = from_query({name: text})
        assert getattr(found, name) == text
        assert not found.notices


def test_an_odd_width_becomes_even():
    found = from_query({"width": "33"})
    assert found.width == 34
    assert len(found.notices) == 1 and "34" in found.notices[0]


@given(st.dictionaries(st.text() | st.sampled_from(sorted(PARSERS)), st.text() | st.sampled_from(HOSTILE)))
def test_no_link_is_too_strange_to_be_read(parameters):
    found = from_query(parameters)
    known = [name for name in parameters if name in PARSERS]
    assert len(found.notices) <= len(known) + 1
    for name, number in NUMBERS.items():
        value = getattr(found, name)
        assert value is None or (type(value) is number.kind and number.low <= value <= number.high)
    assert from_query(_through_an_address(found)) == Visitor(**{name: getattr(found, name) for name in fields()})


def test_parameters_that_mean_nothing_here_are_passed_over():
    assert from_query({"utm_source": "x", "__class__": "y", "notices": "z", "tokens_": "1"}) == Visitor()


def test_a_range_is_said_in_whole_numbers():
    (notice,) = from_query({"seed": "-1"}).notices
    assert "2,147,483,647" in notice


def _assert_refused(name: str, text: str) -> None:
    found = from_query({name: text})
    assert getattr(found, name) == getattr(Visitor(), name)
    (notice,) = found.notices
    assert f"The link has {name} = “{text[:40]}”" in notice
    assert "The default is used instead." in notice
    assert len(notice) < 250
