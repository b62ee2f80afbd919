"""Tests the tour's offer, presentation mode, and what the browser may send."""

import re

import numpy as np
import pytest
from plotly.graph_objects import Figure, Scatter

from pages.ui.components import events, guide
from pages.ui.figures.lines import lines_by_position
from pages.ui.figures.presentation import enlarge_type
from pages.ui.frame import page_guide
from pages.ui.host import shell
from tests.app_driver import checked, go, link_of, press, start, visitor
from tests.component_events import sent


@pytest.mark.parametrize(
    ("page", "parameters", "variable", "begins"),
    [
        ("Generate", {}, "", True),
        ("Generate", {"seed": "2"}, "", False),
        ("Masks", {}, "", False),
        ("Generate", {}, "off", False),
    ],
)
def test_the_tour_is_offered_where_a_visit_begins_and_never_over_a_link(
    monkeypatch, page, parameters, variable, begins
):
    given = []
    monkeypatch.setenv(page_guide.VARIABLE, variable)
    mount = shell._mount
    monkeypatch.setattr(shell, "_mount", lambda **call: given.append(call["data"][0]["offers_tour"]) or mount(**call))
    at = visitor(page)
    at.query_params = parameters
    at = checked(at.run())
    assert given == [begins]
    if begins:
        checked(at.run())
        assert given == [True, True]


@pytest.mark.parametrize("told", [True, False, "yes", None, 1])
def test_only_what_the_guide_can_say_is_heard(monkeypatch, told):
    found = []
    monkeypatch.setattr(events, "sent_by", lambda key: sent(key, ("presenting", told)))
    monkeypatch.setattr(guide, "_mount", lambda **call: call["on_events_change"]())
    guide.guide(tour_requests=0, on_present=found.append)
    assert found == ([told] if isinstance(told, bool) else [])


def plot_height(figure):
    return figure.layout.height - figure.layout.margin.t - figure.layout.margin.b


def sizes(figure):
    """Every size of type in a figure."""
    return [float(size) for size in re.findall(r'font":\{[^{}]*"size":([\d.]+)', figure.to_json())]


def test_all_type_of_a_presented_figure_is_larger_and_its_plot_as_high():
    before, after = (lines_by_position({"a": np.eye(4)[0]}, list("abcd"), None, unit="nats") for _ in range(2))
    enlarge_type(after, 1.5)
    assert sizes(before) and sizes(after) == [1.5 * size for size in sizes(before)]
    assert plot_height(after) == pytest.approx(plot_height(before))
    np.testing.assert_array_equal(after.data[-1].y, before.data[-1].y)
    assert enlarge_type(Figure(Scatter(x=[1], y=[2])), 2).layout.height is None


def test_until_a_lesson_was_opened_generate_leads_to_the_first_and_the_list_to_the_tour():
    at = start(model="induction", prompt="KING")
    at.button(key="first_lesson").click().run()
    at = checked(at)
    assert at.session_state["page"] == "Learn" and link_of(at)["lesson"] == "01-counting-pairs"
    at = go(at, "Generate")
    assert link_of(at)["prompt"] == "KING" and not [button for button in at.button if button.key == "first_lesson"]
    at = press(go(at, "Learn"), "All lessons")
    for asked in (1, 2):
        at = go(at, "Learn")
        at.button(key="offer_start").click().run()
        at = checked(at)
        assert at.session_state["tour_requests"] == asked and at.session_state["page"] == "Generate"
