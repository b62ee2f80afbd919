"""Tests the page Learn: answers before results, saved and restored views, kept answers."""

import csv
import io
import json
from pathlib import Path

import pytest
import streamlit as st

from pages.ui.frame import model_picker
from pages.ui.lessons import lesson_files, measure_calls
from pages.ui.models.lesson_answers import MAX_CHARACTERS, Answers, Response, StepId, from_text
from pages.ui.models.session_store import SessionStore
from pages.ui.views.learn import step as step_on_screen
from pages.ui.views.learn.lesson_list import COLUMNS, results_csv
from tests import app_driver
from tests.app_driver import (
    checked,
    component,
    go,
    link_of,
    look_at,
    looked_at,
    markdown_with,
    named,
    prompt,
    start,
    step,
    tell,
    text_of,
    type_prompt,
    wish,
)

SAMPLES = Path(__file__).parents[1] / "lessons"
LESSON = "01-every-kind"
CHOOSE, NUMBER, TOKEN, CELL, ORDER = range(1, 6)


@pytest.fixture(autouse=True)
def learn(monkeypatch, quick_app_test):
    monkeypatch.setattr(lesson_files, "FOLDER", SAMPLES)


@pytest.fixture
def taken(monkeypatch):
    """The measures that were taken, by name and changes."""
    found = []
    take = measure_calls.MeasureCall.result

    def watched(call):
        found.append((call.what, bool(call.setup.changes)))
        return take(call)

    monkeypatch.setattr(measure_calls.MeasureCall, "result", watched)
    return found


@pytest.fixture
def other_models(folder):
    """Tiny models instead of those that the lessons are about."""
    yield
    st.cache_resource.clear()


def open_step(number, **more):
    return start("Learn", lesson=LESSON, lesson_step=number, **more)


def button(at, key):
    (found,) = [each for each in at.button if each.key == key]
    return found


def click(at, key):
    return checked(button(at, key).click().run())


def choose(at, option):
    (radio,) = at.main.radio
    return checked(radio.set_value(option).run())


def said(at):
    """Whatever the page says in a box, without what keeps Markdown away."""
    return f"{app_driver.said(at)} {' '.join(box.value for box in at.success)}"


def shown(at):
    """Which view's instruments are on screen."""
    return {c.proto.component_name for c in at.get("bidi_component")} & {"headsup_attention", "headsup_inside"}


def test_the_list_has_lessons_aims_and_what_cant_be_used():
    at = start("Learn")
    markdown_with(at, "Every kind of question")
    assert "A lesson can't be used. 02-broken.md, line 6: a question's kind is one of choose" in said(at)
    assert markdown_with(at, "Answer each kind of question once")
    at = click(at, "learn_go_on")
    assert link_of(at)["lesson"] == LESSON
    assert any("step 1 of 6" in each.value for each in at.caption)


def test_nothing_that_would_tell_the_answer_is_computed_before_there_is_one(taken):
    at = open_step(CHOOSE)
    assert taken == [("probability", False)]  # which the words tell
    assert button(at, "lesson_answer").disabled and not named(at.main.radio, "Your answer").value
    at = choose(at, 0)
    assert taken and ("probability", True) not in taken and "lesson_reveal" not in str(at.main)
    at = click(at, "lesson_answer")
    assert ("probability", True) in taken
    assert "Your answer: “As before”. Correct: “Hardly”." in said(at)
    markdown_with(at, "Without it, 6.4% are left.")
    markdown_with(at, "Silence another one.")


def test_the_words_are_drawn_before_a_model_is_picked_and_the_view_after(monkeypatch):
    order = []
    for module, name in ((step_on_screen, "_words"), (model_picker, "pick_model"), (step_on_screen, "_live_view")):
        draw = getattr(module, name)

        def noted(*given, draw=draw, name=name, **look):
            order.append(name)
            return draw(*given, **look)

        monkeypatch.setattr(module, name, noted)
    open_step(CHOOSE)
    assert order == ["_words", "pick_model", "_live_view"]


@pytest.mark.parametrize(
    ("option", "words", "marks"),
    [
        (
            0,
            "Your answer: “As before”. Correct: “Hardly”.",
            ("As before :blue-badge[Your answer]", "Hardly :green-badge["),
        ),
        (1, "Correct: “Hardly”.", ("As before  \n", "Hardly :blue-badge[Your answer] :green-badge[Correct]")),
    ],
)
def test_an_answer_stays_and_so_do_the_options(option, words, marks):
    at = click(choose(open_step(CHOOSE), option), "lesson_answer")
    assert words in said(at)
    at = click(click(at, "learn_next"), "learn_previous")
    assert words in said(at) and not at.main.radio
    options = markdown_with(at, ":green-badge[Correct]")
    assert all(mark in options for mark in marks)


def test_an_answer_that_was_talked_over_can_be_changed_once(taken):
    at = click(choose(open_step(CHOOSE), 0), "lesson_discuss")
    assert ("probability", True) not in taken and not any("Your answer:" in each.value for each in at.main.info)
    at = click(choose(at, 1), "lesson_answer")
    assert "Correct: “As before”, then “Hardly”." in said(at)


def test_a_number_is_answered_with_a_slider():
    at = open_step(NUMBER)
    (slider,) = at.main.slider
    assert (slider.min, slider.max, slider.step) == (0.0, 8.0, 0.5)
    at = click(checked(slider.set_value(3.0).run()), "lesson_answer")
    assert "Your answer: 3 nats. Correct: 3.06 nats, close enough." in said(at)


def test_a_token_is_one_of_the_prompts(taken):
    at = open_step(TOKEN)
    assert not shown(at)  # the picture would tell
    pills = named(at.main.get("button_group"), "Choose a token. The small number is its position.")
    assert [option.content for option in pills.proto.options][:4] == ["k₀", "R₁", "7₂", "w₃"]
    assert not taken
    at = click(checked(pills.set_value(4).run()), "lesson_answer")
    assert "Your answer: `Z` at position 4. Correct: `q` at position 5." in said(at)
    assert ":blue-background[Z₄] :green-background[q₅]" in markdown_with(at, ":green-badge[Correct]")
    assert shown(at) == {"headsup_attention"}


@pytest.mark.parametrize(
    ("cell", "words"),
    [([13, 4], "Correct: `w` (13) looks at `Z` (4)."), ([13, 3], "Correct: `w` (13) looks at `Z` (4).")],
)
def test_a_cell_is_a_query_and_a_key(cell, words):
    at = tell_answer(open_step(CELL), "headsup_cells", cell)
    at = click(at, "lesson_answer")
    assert words in said(at)


@pytest.mark.parametrize("cell", [[2, 5], [99, 0], [1], "1,0", None, [True, 0], [-1, -1]])
def test_a_cell_that_isnt_there_is_no_answer(cell):
    at = tell_answer(open_step(CELL), "headsup_cells", cell)
    assert button(at, "lesson_answer").disabled


def test_things_are_put_in_order():
    at = open_step(ORDER)
    order = "headsup_order"
    items = json.loads(component(at, order).json)["items"]
    right = [items.index(each) for each in ("q · k", "÷ √d_head", "mask", "softmax")]
    assert right != [0, 1, 2, 3]
    for nonsense in ([0, 0, 1, 2], [0, 1, 2], "0123", [3, 2, 1, 4]):
        at = tell_answer(at, order, nonsense)
    at = click(tell_answer(at, order, right), "lesson_answer")
    assert "Correct: " in said(at)


def test_of_a_wrong_order_the_right_one_is_shown_once():
    at = click(open_step(ORDER), "lesson_answer")
    right = json.loads(component(at, "headsup_order").json)
    assert [right["items"][each] for each in right["order"]] == ["q · k", "÷ √d_head", "mask", "softmax"]
    assert any(each.value == "In the correct order" for each in at.main.caption)
    assert "The correct order is above." in said(at) and said(at).count("softmax") == 1


def tell_answer(at, name, value):
    """What a component of the question reports, and the run of the page that follows."""
    return checked(tell(at, name, "chosen", value).run())


def test_before_the_answer_the_view_stays_as_the_step_shows_it():
    at = open_step(CHOOSE)
    assert shown(at) == {"headsup_attention"}
    at = type_prompt(at, "kR7wZ")
    assert prompt(at) == "kR7wZq3xB kR7wZ"
    assert "Answer first: model, prompt and changes are fixed until then." in said(at)
    at = click(choose(at, 1), "lesson_answer")
    at = type_prompt(at, "kR7wZkR7wZ")
    assert prompt(at) == "kR7wZkR7wZ" == link_of(at)["prompt"]
    at = click(at, "lesson_reset")
    assert prompt(at) == "kR7wZq3xB kR7wZ"


@pytest.mark.parametrize("number", [CHOOSE, NUMBER, TOKEN, CELL, ORDER])
def test_a_lesson_whose_model_is_gone_says_what_it_cant_do(number, other_models):
    at = open_step(number)
    assert "Answer first" not in said(at)
    if number == ORDER:
        return
    if number == NUMBER:
        at = click(checked(at.main.slider[0].set_value(3.0).run()), "lesson_answer")
        assert "The correct one can't be computed: loss can't be measured: there is no model “induction” here" in said(
            at
        )
    else:
        assert "there is no model “induction” here" in said(at)


def test_a_visitor_finds_their_own_view_again_with_the_text_they_wrote():
    at = start(prompt="KING:\nAye", temperature=1.5)
    at = step(step(at))
    before = link_of(at)
    assert len(text_of(at)) == 2
    at = click(go(at, "Learn"), "learn_go_on")
    at = click(at, "learn_next")
    assert prompt(at) == "kR7wZq3xB kR7wZ" and link_of(at)["model"] == "induction" and "text" not in link_of(at)
    at = go(at, "Generate")
    after = link_of(at)
    assert {name: value for name, value in after.items() if not name.startswith("lesson")} == before
    at = go(at, "Learn")
    assert link_of(at)["lesson_step"] == "1" and prompt(at) == "kR7wZq3xB kR7wZ"
    at = click(at, "learn_list")
    assert link_of(at) == before and prompt(go(at, "Attention")) == "KING:\nAye"


def test_a_lessons_view_can_be_taken_along_and_given_back():
    at = start("Learn", prompt="KING:\nAye")
    at = click(click(at, "learn_go_on"), "learn_next")
    at = click(choose(at, 1), "lesson_answer")
    at = go(click(at, "lesson_open"), "Attention")
    assert at.title[0].value == "Attention" and prompt(at) == "kR7wZq3xB kR7wZ"
    assert looked_at(at)["head"] == 0
    at = click(at, "give_back")
    assert prompt(at) == "KING:\nAye" and "give_back" not in [each.key for each in at.button]


def test_an_instrument_takes_a_lessons_view_along_to_the_page_that_it_leads_to():
    at = wish(click(choose(open_step(CHOOSE), 1), "lesson_answer"), "turn", {"page": "Inside"})
    assert at.title[0].value == "Inside" and prompt(at) == "kR7wZq3xB kR7wZ"
    at = click(at, "give_back")
    assert prompt(at) != "kR7wZq3xB kR7wZ" and "give_back" not in [each.key for each in at.button]


def test_a_press_counts_though_it_comes_in_one_message_with_an_event_of_the_view():
    at = click(choose(open_step(CHOOSE), 1), "lesson_answer")
    button(at, "lesson_open").click()
    at = look_at(at, head=1)
    assert go(at, "Attention").button(key="give_back") and looked_at(at)["head"] == 1


def test_a_link_carries_the_place_and_the_view_as_it_was_turned():
    at = click(choose(open_step(CHOOSE), 1), "lesson_answer")
    link = link_of(type_prompt(at, "abcabc"))
    assert "answers" not in link and link["lesson_step"] == "1"
    other = start("Learn", **link)
    assert any("step 2 of 6" in each.value for each in other.caption)
    assert named(other.main.radio, "Your answer").value is None


def test_answers_are_in_the_link_if_asked_and_are_shown_to_whom_it_is_given():
    at = click(choose(open_step(CHOOSE), 1), "lesson_answer")
    at = click(at, "learn_list")
    assert "answers" not in link_of(at)
    at = checked(named(at.main.checkbox, "Put my answers into the link").check().run())
    link = link_of(checked(at.run()))
    assert link["answers"] == f"{LESSON}~1~1"
    other = open_step(CHOOSE, answers=link["answers"])
    assert "Correct: “Hardly”." in said(other)
    assert "The answers in this link were added" in said(other)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"lesson": "99-nothing"}, "There is no lesson “99-nothing” here"),
        ({"lesson": "../../etc/passwd"}, "There is no lesson “../../etc/passwd” here"),
        ({"lesson": "02-broken"}, "There is no lesson “02-broken” here"),
        ({"lesson": LESSON, "lesson_step": "77"}, "This lesson has 6 steps; the last one is shown."),
        ({"lesson": LESSON, "lesson_step": "-1"}, "the step of the lesson must be a number from 0"),
        ({"lesson": LESSON, "answers": "<script>"}, "answers are copied from the link"),
        ({"lesson": LESSON, "answers": f"{LESSON}~1~[[[["}, "answers are numbers"),
        ({"lesson": LESSON, "answers": "x" * (MAX_CHARACTERS + 1)}, "answers have at most 4,000 characters"),
    ],
)
def test_a_link_that_cant_be_followed_says_why(link, words):
    assert words in said(start("Learn", **link))


@pytest.mark.parametrize("answer", ["99", "[1,2]", "0.5", "-3", "1e300"])
@pytest.mark.parametrize("number", [CHOOSE, NUMBER, TOKEN, CELL, ORDER])
def test_an_answer_of_a_link_that_fits_no_question_breaks_nothing(number, answer):
    open_step(number, answers=f"{LESSON}~{number}~{answer}")


def test_what_was_answered_can_be_saved_and_forgotten():
    at = click(choose(open_step(CHOOSE), 0), "lesson_answer")
    at = click(at, "learn_list")
    (saved,) = [each for each in at.get("download_button") if each.proto.label == "Download my results"]
    assert not saved.proto.disabled
    own = at.session_state["session_record"].answers
    rows = list(csv.DictReader(io.StringIO(results_csv(own, [lesson_files.lesson(LESSON)]))))
    assert list(rows[0]) == list(COLUMNS) and len(rows) == 1
    assert rows[0]["first answer"] == "As before" and rows[0]["first is right"] == "no"
    at = click(at, f"forget_{LESSON}")
    assert not own.responses and button(at, "learn_go_on").label == "Continue with lesson 1"


def test_after_a_lesson_the_next_one_is_offered_there_and_in_the_list(monkeypatch, tmp_path):
    for name in ("01-every-kind.md", "02-again.md"):
        (tmp_path / name).write_text((SAMPLES / "01-every-kind.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path)
    at = click(open_step(ORDER), "learn_next")
    assert (link_of(at)["lesson"], link_of(at).get("lesson_step")) == ("02-again", None)
    at = open_step(ORDER)
    own = at.session_state["session_record"].answers
    for number, answer in {CHOOSE: 1, NUMBER: 1.0, TOKEN: 5, CELL: [13, 4], ORDER: [0, 1, 2, 3]}.items():
        own.give(StepId(LESSON, number), answer)
    own.opened[LESSON] = set(range(6))
    at = click(at, "learn_list")
    assert button(at, "learn_go_on").label == "Continue with lesson 2"
    assert link_of(click(at, "learn_go_on"))["lesson"] == "02-again"


def test_a_file_of_answers_has_words_and_no_numbers_of_options_or_places():
    own = Answers()
    own.give(StepId(LESSON, TOKEN), 5)
    own.give(StepId(LESSON, NUMBER), 3.0)
    open_step(0)
    (number, token) = csv.DictReader(io.StringIO(results_csv(own, [lesson_files.lesson(LESSON)])))
    assert (number["first answer"], token["first answer"]) == ("3 nats", "q at position 5")


def test_a_lesson_whose_steps_were_taken_is_done():
    at = open_step(0)
    answers = {CHOOSE: 1, NUMBER: 1.0, TOKEN: 5, CELL: [13, 4], ORDER: [0, 1, 2, 3]}
    own = at.session_state["session_record"].answers
    for number, answer in answers.items():
        own.give(StepId(LESSON, number), answer)
        at = click(at, "learn_next")
    at = click(at, "learn_next")
    assert any("check_circle: Done" in each.value for each in at.main.markdown)


def test_answers_and_what_was_put_away_lie_where_a_reloaded_tab_finds_them():
    at = start("Learn", prompt="KING:\nAye")
    own = click(at, "learn_go_on").session_state["session_record"]
    assert not own.is_empty and own.saved_visitor.prompt == "KING:\nAye"
    store = SessionStore()
    store.put(own)
    assert store.claim(own.token).answers.last == StepId(LESSON, 0)


class TestAnswers:
    def test_the_first_is_kept_beside_the_second(self):
        own, place = Answers(), StepId("a", 0)
        own.give(place, 1, discuss=True)
        own.give(place, 2)
        own.give(place, 3)
        own.discuss(place)
        own.give(place, 4)
        assert (own.responses[place].first, own.responses[place].second, own.responses[place].last) == (1, 2, 2)

    def test_a_link_brings_what_it_was_made_of(self):
        own = Answers()
        for number, answer in enumerate([1, 0.25, [3, 2, 1], 5]):
            own.give(StepId("04-a-lesson", number), answer, discuss=number == 0)
        own.give(StepId("04-a-lesson", 0), 2)
        found = from_text(own.as_text())
        assert {place: (each.first, each.second) for place, each in found.items()} == {
            place: (each.first, each.second) for place, each in own.responses.items()
        }

    def test_of_too_many_the_latest_are_in_the_link(self):
        own = Answers()
        for number in range(900):
            own.responses[StepId("04-a-lesson", number)] = Response(number)
        text = own.as_text()
        assert len(text) <= MAX_CHARACTERS
        found = from_text(text)
        assert StepId("04-a-lesson", 899) in found and StepId("04-a-lesson", 0) not in found
