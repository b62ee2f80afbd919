"""Tests the page Generate: its text is the engine's, and other pages show the same text."""

import pytest

from tests import app_driver as app
from tests.app_driver import checked, dials, given, ids_of, link_of, start, step, text_of, turn, write
from tests.tiny_models import EXAMPLES

pytestmark = pytest.mark.usefixtures("folder")


def written_by_the_engine(prompt, tokens, **sampling):
    return app.decoded("shakespeare", app.generated("shakespeare", app.ids(prompt), tokens, **sampling))


def test_generate_writes_as_many_tokens_as_the_dial_says_and_what_the_engine_says():
    at = write(start(tokens=30, seed=3, temperature=1.1, top_k=20, top_p=0.9))
    wanted = written_by_the_engine(EXAMPLES[0], 30, seed=3, temperature=1.1, top_k=20, top_p=0.9)
    assert text_of(at) == wanted
    write(at)
    assert text_of(at).startswith(wanted) and len(text_of(at)) == 60


def test_a_step_writes_the_first_token_of_generate():
    stepwise, at_once = start(seed=9), write(start(seed=9, tokens=4))
    for tokens in range(1, 5):
        step(stepwise)
        assert text_of(stepwise) == text_of(at_once)[:tokens]


def test_an_old_link_has_its_characters_translated_to_tokens_once():
    text = written_by_the_engine(EXAMPLES[0], 7, seed=1, temperature=0.8)
    at = start(text=text)
    assert text_of(at) == text and "text" not in link_of(at)
    app.type_prompt(at, "KING: ")
    assert text_of(at) == "" and text_of(checked(at.run())) == ""


def test_another_page_keeps_what_was_written():
    at = write(start(tokens=5))
    text, ids = text_of(at), ids_of(at)
    app.go(at, "Positions")
    assert ids_of(at) == ids
    app.go(at, "Attention")
    assert ids_of(at) == ids
    checked(at.get("button_group")[-1].set_value("all").run())
    assert "".join(app.overview(at).metadata["labels"]["text"]).endswith(text.replace(" ", "␣").replace("\n", "↵"))
    app.go(at, "Generate")
    assert text_of(at) == text and ids_of(at) == list(at.session_state["visitor"].written)
    app.show_text(at, [])
    assert text_of(at) == "" and app.prompt(checked(at.run())) == EXAMPLES[0] and "written" not in link_of(at)


def test_what_a_tab_has_told_begins_nothing_anew_and_what_is_brought_does():
    at = start(tokens=5)
    before = given(at)
    turn(write(at), layer=1, head=0, temperature=0.5)
    assert given(checked(at.run())) == before and at.session_state["visitor"].layer == 1
    again = start(**link_of(at))
    assert given(again)["written"] == link_of(at)["written"] and given(again)["opening"] == {"layer": 1, "head": 0}


def test_another_prompt_begins_without_what_was_written_after_the_former():
    at = write(start(tokens=5))
    before = given(at)["id"]
    app.type_prompt(at, "KING: ")
    assert text_of(at) == "" and given(at)["written"] == "" and given(at)["id"] != before
    app.wish(at, "text", {"written": "1.2.3", "for": before, "at": 0})  # of the other prompt, too late
    assert at.session_state["visitor"].written == () and given(at)["written"] == ""


def test_what_a_tab_tells_that_is_no_text_changes_nothing():
    at = write(start(tokens=3))
    before = at.session_state["visitor"].written
    strange = {"written": [1]}, {"written": "1.-2"}, {"written": "9" * 99}, {"written": "x"}, {}
    for told in (None, 5, "1.2", *strange, {"written": "1.2"}):
        app.wish(at, "text", {**told, "for": given(at)["id"]} if isinstance(told, dict) else told)
        assert at.session_state["visitor"].written in (before, (1, 2) if told == {"written": "1.2"} else before)


def test_tokens_of_a_link_that_the_model_does_not_have_are_left_out_with_a_sentence():
    at = start(written="1.2.99999")
    assert "it has tokens that this model doesn't know" in app.said(at) and text_of(at) == ""
    app.press(at, "OK")
    assert not app.said(at)


def test_a_step_of_a_link_where_nothing_is_written_is_said():
    at = start(step=99)
    assert "The text has no predicted token at position 99; the last one is shown." in app.said(
        at
    ) and "step" not in link_of(at)


def test_dials_are_the_tab_s_and_in_the_link():
    at = turn(start(tokens=5), temperature=1.5, pace="slow")
    assert link_of(at).items() >= {"temperature": "1.5", "pace": "slow", "tokens": "5"}.items()
    assert dials(checked(at.run()))["temperature"] == 1.5
    turn(at, temperature=0.8)  # as it is at first
    assert "temperature" not in link_of(at)
    turn(at, seed=9)
    assert at.session_state["visitor"].seed == 9


def test_two_visitors_do_not_see_each_other():
    one, other = start(tokens=8, seed=1), start(tokens=8, seed=2)
    write(one)
    assert text_of(checked(other.run())) == ""
    write(other)
    assert text_of(one) != text_of(other)
    assert text_of(checked(one.run())) == written_by_the_engine(EXAMPLES[0], 8, seed=1, temperature=0.8)
