"""Tests the tour's offer, presentation mode, and what the browser may send."""

import numpy as np
import pytest
from plotly.graph_objects import Figure, Scatter
from streamlit.testing.v1 import AppTest

from pages.ui.components import events, guide
from pages.ui.figures.bars import loss_bars
from pages.ui.figures.lines import Line, lens_lines
from pages.ui.figures.presentation import enlarge_type
from pages.ui.frame import page_guide
from pages.ui.models.changes import Change, as_text
from tests.app_driver import checked, go, start, type_prompt, visitor
from transformer import from_code, to_code


def shown(page, parameters, monkeypatch):
    """What the guide of a page is given in its first run."""
    given = []
    monkeypatch.setattr(guide, "_mount", lambda **call: given.append(call))
    at = visitor(page, **parameters)
    at.query_params = parameters
    checked(at.run())
    return given[0]["data"]


@pytest.mark.parametrize(
    ("page", "parameters", "variable", "begins"),
    [
        ("Generate", {}, "", True),
        ("Generate", {}, "off", False),
        ("Generate", {"model": "induction"}, "", False),
        ("Generate", {"seed": "2"}, "", False),
        ("Masks", {}, "", False),
    ],
)
def test_the_tour_is_offered_where_a_visit_begins_and_never_over_a_link(
    monkeypatch, page, parameters, variable, begins
):
    monkeypatch.setenv(page_guide.VARIABLE, variable)
    data = shown(page, parameters, monkeypatch)
    assert data["begins"] is begins and data["tour_requests"] == 0


def test_what_the_guide_is_given_stays_the_same_from_run_to_run(monkeypatch):
    given = []
    monkeypatch.setattr(guide, "_mount", lambda **call: given.append(call["data"]))
    type_prompt(start(), "KING")
    assert len(given) > 1 and all(data == given[0] for data in given)


def test_only_yes_or_no_from_the_browser_counts(monkeypatch):
    for told in (True, False, "yes", None, 1):
        heard = []
        monkeypatch.setattr(events, "event_value", lambda key, event, told=told: told)
        monkeypatch.setattr(guide, "_mount", lambda **call: call["on_presenting_change"]())
        guide.guide(begins=False, tour_requests=0, changed=("", []), on_present=heard.append, on_undo=heard.append)
        assert heard == ([told] if type(told) is bool else [])


HEAD, OTHER = "scale~blocks.0.attn.hook_z~0~~0.0", "scale~blocks.1.attn.hook_z~1~~0.0"


def undo(monkeypatch, page, told):
    """The page after the browser has said that the tour takes something back."""
    monkeypatch.setattr(events, "event_value", lambda key, event: told)
    monkeypatch.setattr(guide, "_mount", lambda **call: call["on_undo_change"]())
    return page.run()


def test_the_tour_takes_back_what_it_has_changed_and_nothing_else(monkeypatch):
    page = start(model="induction", changes=as_text(Change(from_code(code)) for code in (HEAD, OTHER)))
    assert len(page.session_state["visitor"].changes) == 2
    undo(monkeypatch, page, {"model": "induction", "codes": [HEAD]})
    assert [to_code(change.intervention) for change in page.session_state["visitor"].changes] == [OTHER]


def test_it_takes_it_back_from_a_model_that_was_left_since(monkeypatch):
    page = start(model="induction", changes=HEAD)
    page.session_state["visitor"].model = "shakespeare"
    page.run()
    undo(monkeypatch, page, {"model": "induction", "codes": [HEAD]})
    monkeypatch.undo()
    page.session_state["visitor"].model = "induction"
    assert page.run().session_state["visitor"].changes == ()


def test_what_else_the_browser_may_say_takes_nothing_back(monkeypatch):
    page = start(model="induction", changes=HEAD)
    for told in (None, {}, {"codes": "x"}, {"model": [], "codes": [[]]}, {"model": "no", "codes": []}):
        undo(monkeypatch, page, told)
        assert not page.exception and len(page.session_state["visitor"].changes) == 1, told


def sizes(figure):
    """Every size of type in a figure, by its path."""
    found = {}

    def walk(part, path):
        if isinstance(part, dict):
            for name, value in part.items():
                if name.endswith("font") and isinstance(value, dict) and "size" in value:
                    found[(*path, name)] = value["size"]
                walk(value, (*path, name))
        elif isinstance(part, list | tuple):
            for at, each in enumerate(part):
                walk(each, (*path, at))

    walk(figure.to_dict(), ())
    return found


def test_all_type_of_a_presented_figure_is_larger_and_its_plot_as_high():
    before, after = (lens_lines({"a": Line(np.eye(4)[0], list("abcd"))}) for _ in range(2))
    enlarge_type(after, 1.5)
    assert sizes(before)
    assert sizes(after) == {path: 1.5 * size for path, size in sizes(before).items()}
    assert plot_height(after) == pytest.approx(plot_height(before))
    np.testing.assert_array_equal(after.data[-1].y, before.data[-1].y)


def plot_height(figure):
    return figure.layout.height - figure.layout.margin.t - figure.layout.margin.b


def test_bars_of_a_presented_figure_are_as_much_higher_as_the_type_beside_them():
    before, after = (loss_bars(["one", "two"], np.ones(2), np.ones(2), None) for _ in range(2))
    enlarge_type(after, 1.5)
    assert plot_height(after) == pytest.approx(1.5 * plot_height(before))


def test_a_figure_without_sizes_stays_as_it_is():
    assert enlarge_type(Figure(Scatter(x=[1], y=[2])), 2).to_dict()["layout"].get("height") is None


def test_until_a_lesson_was_opened_generate_leads_to_the_first():
    at = start(model="induction", prompt="KING")
    at.button(key="first_lesson").click().run()
    at = checked(at)
    visitor = at.session_state["visitor"]
    assert at.session_state["page"] == "Learn" and visitor.lesson == "01-counting-pairs"
    at = go(at, "Generate")
    assert visitor.prompt == "KING" and not [button for button in at.button if button.key == "first_lesson"]


def test_the_tour_can_be_asked_for_again_and_again(monkeypatch):
    monkeypatch.setattr(page_guide.state, "open_page", lambda name: None)

    def page():
        from pages.ui.frame import page_guide

        page_guide.offer_tour()

    at = AppTest.from_function(page).run()
    for asked in (1, 2):
        at.button(key="offer_start").click().run()
        assert at.session_state["tour_requests"] == asked
