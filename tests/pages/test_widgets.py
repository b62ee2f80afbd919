"""Tests that a widget shows a valid choice whatever the browser reports."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.host.exchange import Exchange
from pages.ui.host.page_state import DEFAULT_MODEL
from tests.app_driver import (
    checked,
    go,
    link_of,
    look_at,
    looked_at,
    named,
    open_folds,
    overview,
    page_state,
    said,
    start,
    type_prompt,
)

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("folder")


# One mechanism for all


TYPED = """selectbox multiselect slider select_slider segmented_control pills radio toggle checkbox text_area text_input
number_input color_picker date_input time_input datetime_input chat_input data_editor feedback camera_input audio_input
pagination""".split()  # noqa: SIM905
"""Streamlit's widgets whose value counts; buttons, menus and uploads have none that could be wrong."""


def around_the_mechanism(source: str) -> list[str]:
    """Calls of Streamlit's widgets, and of charts that report what was clicked, in a module's source."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            ours = isinstance(node.func.value, ast.Name) and node.func.value.id == "widgets"
            reports = {"on_select", "selection_mode", "bind"} & {keyword.arg for keyword in node.keywords}
            if not ours and (node.func.attr in TYPED or reports):
                found.append(node.func.attr)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "streamlit":
            found += [alias.name for alias in node.names if alias.name in TYPED]
    return found


def test_no_widget_is_called_around_the_mechanism():
    for source in ("left.slider('x', 0, 1)", "st.plotly_chart(f, on_select=g)", "from streamlit import toggle"):
        assert around_the_mechanism(source)
    modules = [path for path in (ROOT / "pages").rglob("*.py") if path.name != "widgets.py"]
    assert len(modules) > 20
    for path in (ROOT / "app.py", *modules):
        assert not around_the_mechanism(path.read_text(encoding="utf-8")), path


# What a browser may report


PAGE = """
import streamlit as st
from pages.ui.frame import state, widgets
from pages.ui.frame.widgets import Binding

state.begin_run("Test")
options = st.session_state.get("options", ["a", "b", "c"])
if st.session_state.get("drawn", True):
    st.session_state["got"] = widgets.{call}
state.end_run()
"""


def page(call, **choices):
    """A page of one widget, of a visitor with these choices."""
    at = AppTest.from_string(PAGE.replace("{call}", call), default_timeout=120)
    exchange = at.session_state["exchange"] = Exchange(texts={"model": DEFAULT_MODEL}, readings=1)
    exchange.change(choices)
    return checked(at.run())


def offering(at, *options):
    """The same page, where these can be chosen from now on."""
    at.session_state["options"] = list(options)
    return checked(at.run())


def got(at):
    return at.session_state["got"]


def field(at, name):
    return getattr(page_state(at), name)


def control(at):
    kinds = (at.selectbox, at.get("button_group"), at.select_slider, at.slider, at.number_input, at.text_area)
    (found,) = [each for kind in (*kinds, at.multiselect) for each in kind]
    return found


def report(at, value):
    """The browser's report of a new value."""
    control(at).set_value(value)
    return checked(at.run())


def report_late(at, element, value):
    """What a browser reports that hasn't heard yet what the last run drew."""
    element.set_value(value)
    states = at._tree.get_widget_states()
    states.widgets.append(element._widget_state)
    at._run(states)
    return checked(at)


@pytest.mark.parametrize("kind", ["selectbox", "segmented_control", "select_slider"])
def test_a_choice_is_taken_and_one_of_other_options_is_not(kind):
    at = page(f'{kind}("W", options, "room")')
    assert got(at) == "a"  # the field holds nothing that can be chosen
    report(at, "b")
    assert got(at) == field(at, "room") == "b"
    old = control(at)
    offering(at, "x", "b")
    report_late(at, old, "c")
    assert got(at) == field(at, "room") == "b"
    assert got(offering(at, "x", "y")) == "x"
    report(at, "y")
    assert got(at) == field(at, "room") == "y"


def test_labels_that_change_with_the_text_bring_no_label_of_the_old_one():
    at = page('selectbox("W", range(len(options)), Binding("head"), labels=lambda at: f"{at}: {options[at]}")')
    assert got(report(at, 2)) == 2
    for options in (["k"], ["k", "l", "m", "n"], ["a", "b", "c"]):
        old = control(at)
        at.session_state["options"] = options
        for _ in range(2):
            report_late(at, old, len(old.options) - 1)
        assert type(got(at)) is int and 0 <= got(at) < len(options)


def test_a_report_from_before_the_choice_was_changed_elsewhere_is_discarded():
    at = report(page('slider("W", 0, 9, "position")'), 2)
    old = control(at)
    at.session_state["exchange"].change({"position": 7})  # a click on a picture, say
    checked(at.run())
    assert got(report_late(at, old, 3)) == 7
    report(at, 3)
    assert got(at) == field(at, "position") == 3


@pytest.mark.parametrize(
    ("call", "name", "given", "shown"),
    [
        ('slider("W", 0, 9, "head")', "head", 50, 9),
        ('number_input("W", 2.0, 9.0, "base")', "base", 1e4, 9.0),
        ('selectbox("W", range(3), "head")', "head", 5, 0),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (1, 9), (1,)),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (8, 9), (0, 1)),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (), ()),
    ],
)
def test_a_field_out_of_range_is_shown_within_it_and_kept(call, name, given, shown):
    at = page(call, **{name: given})
    assert got(at) == shown and field(at, name) == given


@pytest.mark.parametrize(
    ("call", "value"),
    [('slider("W", 0, 9, "position")', 4), ('text_area("W", Binding("prompt", default="d"))', "typed")],
)
def test_a_widget_that_was_away_comes_back_with_the_choice(call, value):
    at = report(page(call), value)
    for is_drawn in (False, True):
        at.session_state["drawn"] = is_drawn
        checked(at.run())
    assert got(at) == value == control(at).value


def test_a_default_that_is_chosen_is_no_choice():
    at = page('text_area("W", Binding("batch", default="suggested"))')
    for value, chosen in (("suggested", None), ("mine", "mine"), ("suggested", None)):
        report(at, value)
        assert got(at) == value and field(at, "batch") == chosen


def test_a_slider_whose_options_grow_stays_the_widget_it_is():
    at = page('select_slider("W", [*options, "newest"], Binding("batch", default="newest"), grows=True)')
    assert got(at) == "newest" and field(at, "batch") is None
    key = control(at).key
    assert got(offering(at, "a", "b", "c", "d")) == "newest"
    for value, chosen in (("d", "d"), ("newest", None)):
        assert control(at).key == key
        report(at, value)
        assert field(at, "batch") == chosen


# The pages


def test_prompts_of_any_length_follow_one_another_on_every_page():
    at = start("Attention")
    for typed in ("Hello world", "the king", "the king!", "my lord of York", "T", "To be, or not"):
        type_prompt(at, typed)
        about, chosen = overview(at).metadata, looked_at(at)
        assert about["queries"] == about["keys"] == len(typed)
        assert all(chosen[place] is None or chosen[place] < len(typed) for place in ("query", "key"))
        checked(look_at(at, query=len(typed) - 1, key=0).run())
        go(at, "Generate")
        go(at, "Attention")
        assert looked_at(at)["query"] == len(typed) - 1 and not said(at)


def test_texts_that_get_shorter_or_can_t_be_read_leave_the_dials_of_the_page_alone():
    at = open_folds(start("Masks", prompt="ROMEO:", filler=5, pad_side="left"))
    for lines in ("one\ntwo\nthree\nfour", "one\ntwo", "one\ntwo\nthree", "😀", "one"):
        checked(named(at.text_area, "Prompts, one per line").set_value(lines).run())
        if at.selectbox and "😀" not in lines:
            row = named(at.selectbox, "Masks of")
            checked(row.set_value(len(lines.split("\n")) - 1).run())
    for typed in ("😀", "ROMEO:"):
        type_prompt(at, typed)
    link = link_of(at)
    assert (link["batch"], link["filler"], link["pad_side"]) == ("one", "5", "left")
