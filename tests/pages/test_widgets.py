"""Tests that a widget shows a valid choice whatever the browser reports."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests import app_driver as app
from tests.app_driver import checked, go, link_of, look_at, looked_at, named, open_folds, overview, start, type_prompt

ROOT = Path(__file__).parents[2]
TYPED = """selectbox multiselect slider select_slider segmented_control pills radio toggle checkbox text_area text_input
number_input color_picker date_input time_input datetime_input chat_input data_editor feedback camera_input audio_input
pagination""".split()  # noqa: SIM905
"""Streamlit's widgets whose value counts; buttons, menus and uploads have none that could be wrong."""


pytestmark = pytest.mark.usefixtures("folder")


# One mechanism for all


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
    modules = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
    assert len(modules) > 20
    guilty = {
        path.name: calls
        for path in modules
        if path.name != "widgets.py" and (calls := around_the_mechanism(path.read_text(encoding="utf-8")))
    }
    assert not guilty


AROUND = """st.selectbox('x', [1])
left.slider('x', 0, 1)
st.sidebar.text_area('x')
st.plotly_chart(f, on_select=g)
from streamlit import toggle
st.container().pills('x', [])"""


@pytest.mark.parametrize("source", AROUND.splitlines())
def test_a_call_around_the_mechanism_is_found(source):
    assert around_the_mechanism(source)


# What a browser may report


PAGE = """
import streamlit as st
from pages.ui.frame import state, widgets
from pages.ui.frame.widgets import Binding

current = state.begin_run("Test")
options = st.session_state.get("options", ["a", "b", "c"])
if st.session_state.get("drawn", True):
    st.session_state["got"] = widgets.{call}
state.end_run()
"""


def page(call, **session):
    at = AppTest.from_string(PAGE.replace("{call}", call), default_timeout=120)
    for name, value in session.items():
        at.session_state[name] = value
    return checked(at.run())


def field(at, name):
    return getattr(at.session_state["visitor"], name)


def report(at, element, value):
    """A browser's report for a widget, whatever else has changed meanwhile."""
    element.set_value(value)
    return checked(at.run())


def report_late(at, element, value):
    """What a browser reports that hasn't heard yet what the last run drew."""
    element.set_value(value)
    states = at._tree.get_widget_states()
    states.widgets.append(element._widget_state)
    at._run(states)
    return checked(at)


CALLS = {
    "selectbox": 'selectbox("W", options, "pace")',
    "segmented": 'segmented_control("W", options, "pace")',
    "select_slider": 'select_slider("W", options, "pace")',
}


def control(at):
    kinds = (at.selectbox, at.get("button_group"), at.select_slider, at.slider, at.number_input, at.text_area)
    (found,) = [each for kind in (*kinds, at.multiselect) for each in kind]
    return found


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_choice_is_taken_and_one_of_other_options_is_not(call):
    at = page(call)
    assert at.session_state["got"] == "a"  # the field holds nothing that can be chosen
    report(at, control(at), "b")
    assert at.session_state["got"] == field(at, "pace") == "b"
    old = control(at)
    at.session_state["options"] = ["x", "b"]
    checked(at.run())
    report_late(at, old, "c")
    assert at.session_state["got"] == field(at, "pace") == "b"
    at.session_state["options"] = ["x", "y"]
    checked(at.run())
    assert at.session_state["got"] == "x"
    report(at, control(at), "y")
    assert at.session_state["got"] == field(at, "pace") == "y"


def test_labels_that_change_with_the_text_bring_no_label_of_the_old_one():
    call = 'selectbox("W", range(len(options)), Binding("head"), labels=lambda at: f"{at}: {options[at]}")'
    at = page(call)
    report(at, control(at), 2)
    assert at.session_state["got"] == 2
    for options in (["k"], ["k", "l", "m", "n"], ["a", "b", "c"]):
        old = control(at)
        at.session_state["options"] = options
        report_late(at, old, len(old.options) - 1)
        report_late(at, old, len(old.options) - 1)
        got = at.session_state["got"]
        assert type(got) is int and 0 <= got < len(options)


def test_a_report_from_before_the_choice_was_changed_elsewhere_is_discarded():
    at = page('slider("W", 0, 9, "position")')
    report(at, control(at), 2)
    old = control(at)
    at.session_state["visitor"].position = 7  # a click on a picture, say
    checked(at.run())
    report_late(at, old, 3)
    assert at.session_state["got"] == 7
    report(at, control(at), 3)
    assert at.session_state["got"] == field(at, "position") == 3


@pytest.mark.parametrize(
    ("call", "name", "given", "shown"),
    [
        ('slider("W", 0, 9, "head")', "head", 50, 9),
        ('number_input("W", 2.0, 9.0, "base")', "base", 1e4, 9.0),
        ('selectbox("W", range(3), "head")', "head", 5, 0),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (1, 9), (1,)),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (8, 9), (0, 1)),
        ('multiselect("W", range(4), Binding("waves", default=(0, 1)), most=2)', "waves", (), ()),
        ('text_area("W", "prompt")', "prompt", "x" * 6000, "x" * 5000),
    ],
)
def test_a_field_out_of_range_is_shown_within_it_and_kept(call, name, given, shown):
    at = AppTest.from_string(PAGE.replace("{call}", call), default_timeout=120)
    at.session_state["visitor"] = visitor = field_of(name, given)
    checked(at.run())
    assert at.session_state["got"] == shown
    assert getattr(visitor, name) == given


def field_of(name, value):
    from pages.ui.frame.visitor_choices import Visitor

    return Visitor(**{name: value})


def test_a_widget_that_was_away_comes_back_with_the_choice():
    for call, value in (
        ('slider("W", 0, 9, "position")', 4),
        ('text_area("W", Binding("prompt", default="d"))', "typed"),
    ):
        at = page(call)
        report(at, control(at), value)
        at.session_state["drawn"] = False
        checked(at.run())
        at.session_state["drawn"] = True
        checked(at.run())
        assert at.session_state["got"] == value == control(at).value


def test_a_default_that_is_chosen_is_no_choice():
    at = page('text_area("W", Binding("batch", default="suggested"))')
    assert at.session_state["got"] == "suggested" and field(at, "batch") is None
    report(at, control(at), "mine")
    assert field(at, "batch") == "mine"
    report(at, control(at), "suggested")
    assert field(at, "batch") is None and at.session_state["got"] == "suggested"


# The pages


def test_prompts_of_any_length_follow_one_another_on_every_page():
    at = start("Attention")
    for typed in ("Hello world", "the king", "the king!", "the king", "my lord of York", "T", "To be, or not"):
        type_prompt(at, typed)
        about, chosen = overview(at).metadata, looked_at(at)
        assert about["queries"] == about["keys"] == len(typed)
        assert all(chosen[place] is None or chosen[place] < len(typed) for place in ("query", "key"))
        checked(look_at(at, query=len(typed) - 1, key=0).run())
        go(at, "Generate")
        go(at, "Attention")
        assert looked_at(at)["query"] == len(typed) - 1 and not app.said(at)


def test_a_shorter_batch_after_a_longer_one():
    at = open_folds(start("Masks", prompt="ROMEO:"))
    for lines in ("one\ntwo\nthree\nfour", "one\ntwo", "one\ntwo\nthree", "😀", "one"):
        checked(named(at.text_area, "Prompts, one per line").set_value(lines).run())
        if at.selectbox and "😀" not in lines:
            row = named(at.selectbox, "Masks of")
            checked(row.set_value(len(lines.split("\n")) - 1).run())
    link = link_of(at)
    assert link["batch"] == "one" and "pad_side" not in link and "filler" not in link


def test_a_prompt_that_can_t_be_read_leaves_the_dials_of_the_page_alone():
    at = start("Masks", filler=5, pad_side="left")
    for typed in ("😀", "ROMEO:"):
        type_prompt(at, typed)
    checked(named(at.text_area, "Prompts, one per line").set_value("a\nbc").run())
    assert link_of(at)["filler"] == "5" and link_of(at)["pad_side"] == "left"
    assert named(at.slider, "Padding tokens after the prompt").value == 5


def test_a_slider_whose_options_grow_stays_the_widget_it_is():
    call = 'select_slider("W", [*options, "newest"], Binding("rung", value=None, default="newest"), grows=True)'
    at = page(call, visitor=field_of("rung", None))
    assert at.session_state["got"] == "newest" and field(at, "rung") is None
    key = control(at).key
    at.session_state["options"] = ["a", "b", "c", "d"]
    checked(at.run())
    assert control(at).key == key and at.session_state["got"] == "newest"
    report(at, control(at), "d")
    assert control(at).key == key and field(at, "rung") == "d"
    report(at, control(at), "newest")
    assert field(at, "rung") is None
