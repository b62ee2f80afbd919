"""Tests a room on the page Learn, with a teacher and two students."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from streamlit.components.v2.bidi_component.main import _make_trigger_id

from pages.ui.lessons import lesson_files, rooms
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.models.lesson_answers import StepId
from pages.ui.views.learn import room_membership, room_teacher
from tests.app_driver import checked, come_back, component, link_of, markdown_with, named, start
from tests.pages.test_learn_page import CHOOSE, LESSON, NUMBER, SAMPLES, button, choose, click, open_step, said
from tests.tiny_models import save_pair


@pytest.fixture(autouse=True)
def learn(monkeypatch, quick_app_test):
    monkeypatch.setattr(lesson_files, "FOLDER", SAMPLES)
    room_membership.all_rooms.clear()


@pytest.fixture
def teacher():
    return click(open_step(CHOOSE), "room_open")


@pytest.fixture
def code(teacher):
    return teacher.session_state["room_membership"].code


def student(code):
    at = start("Learn", room=code.lower())
    return tab_has(at, "")


def has(at, key):
    return any(each.key == key for each in at.button)


def votes(at):
    """The bars: label, the count of each round, whether it is right."""
    return json.loads(component(at, "headsup_votes").json)["bars"]


def again(at):
    """The run that a page asks for when its room has moved."""
    return checked(at.run())


def test_a_class_votes_twice_and_sees_the_answer_when_the_teacher_reveals_it(teacher, code):
    one, two = student(code), student(code)
    assert all("Choose" in at.main.header[0].value for at in (one, two))  # to the step that the teacher shows
    assert not has(one, "lesson_discuss") and button(one, "learn_next").disabled
    one, two = (click(choose(at, option), "lesson_answer") for at, option in ((one, 0), (two, 0)))
    assert any("The right one is shown when your teacher reveals it" in each.value for each in one.markdown)
    teacher = again(teacher)
    markdown_with(teacher, "**2** of 2 have answered")
    assert not has(teacher, "lesson_answer") and "headsup_votes" not in str(teacher.main)

    teacher = click(teacher, "room_again")
    one, two = again(one), again(two)
    one = click(choose(one, 1), "lesson_answer")
    two = click(two, "lesson_keep_first")
    teacher = click(teacher, "room_reveal")
    assert "Correct: “Hardly”." in said(teacher)
    markdown_with(teacher, "Without it, 6.4% are left.")
    assert votes(teacher) == [["As before", [2, 1], False], ["Hardly", [0, 1], True]]
    assert any("1 changed to the correct answer, 0 away from it" in c.value for c in teacher.caption)
    one, two = again(one), again(two)
    assert "Correct: “As before”, then “Hardly”." in said(one)
    assert "Your answer: “As before”. Correct: “Hardly”." in said(two)

    teacher = click(teacher, "learn_next")
    assert "Number" in again(one).main.header[0].value
    teacher = click(teacher, "room_end")
    one = again(one)
    assert "This room has ended" in said(one)
    assert has(one, "room_open") and not button(one, "learn_next").disabled  # and the step is still there


def test_who_joins_before_the_teacher_leads_reads_that_and_follows_then():
    teacher = click(start("Learn"), "room_open")
    one = student(teacher.session_state["room_membership"].code)
    (waits,) = [each.value for each in one.caption if "teacher" in each.value]
    assert waits.startswith("Look around.") and "this page follows" in waits
    click(teacher, "learn_go_on")
    assert "First vote: each on their own." in [each.value for each in again(one).caption]


def test_votes_are_shown_before_the_reveal_if_asked_for_and_follow_what_comes_in(teacher, code):
    one, two = student(code), student(code)
    click(choose(one, 1), "lesson_answer")
    teacher = click(teacher, "room_show_votes")
    markdown_with(teacher, "**1** of 2 has answered")
    assert votes(teacher) == [["As before", [0], False], ["Hardly", [1], False]]
    click(choose(two, 0), "lesson_answer")
    teacher = again(teacher)
    assert votes(teacher) == [["As before", [1], False], ["Hardly", [1], False]]
    teacher = click(teacher, "room_show_votes")
    assert "headsup_votes" not in str(teacher.main)


def test_votes_are_told_without_the_signs_of_markdown(teacher, code):
    teacher = click(click(teacher, "learn_next"), "learn_next")
    one = student(code)
    pills = named(one.main.get("button_group"), "Choose a token. The small number is its position.")
    click(checked(pills.set_value(5).run()), "lesson_answer")
    assert votes(click(teacher, "room_reveal")) == [["q at position 5", [1], True]]


@pytest.mark.parametrize("answers", [True, False])
def test_who_has_trained_nothing_reads_the_explanation_when_it_is_revealed(monkeypatch, answers):
    monkeypatch.setattr(lesson_files, "FOLDER", Path(lesson_files.__file__).parent)
    teacher = click(start("Learn", lesson="16-induction", lesson_step=1), "room_open")
    one = student(teacher.session_state["room_membership"].code)
    if answers:
        one = click(choose(one, 2), "lesson_answer")
    click(teacher, "room_reveal")
    one = again(one)
    assert "isn't known yet: nothing has been trained yet" in said(one) and "can't be asked" not in said(one)
    assert markdown_with(one, "Before the cliff there is a plateau") and not has(one, "lesson_change")
    assert not any("In **your** training" in each.value for each in one.markdown)


def test_who_has_not_answered_sees_the_answer_too(teacher, code):
    one = student(code)
    teacher = click(teacher, "room_reveal")
    one = again(one)
    assert "Correct: “Hardly”." in said(one) and not has(one, "lesson_answer")


def test_a_model_that_is_taken_away_takes_the_answer_along_and_not_the_votes(teacher, code, monkeypatch, tmp_path):
    one, two = student(code), student(code)
    click(choose(one, 1), "lesson_answer")
    save_pair(tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    teacher = click(teacher, "room_reveal")
    assert votes(teacher) == [["As before", [0], False], ["Hardly", [1], False]]
    one, two = again(one), again(two)
    assert "The correct one can't be computed: probability can't be measured: there is no model “induction”" in said(
        one
    )
    assert all("there is no model “induction”" in said(at) for at in (teacher, two))


def test_a_vote_for_a_token_of_a_model_that_is_taken_away_breaks_no_page(teacher, code, monkeypatch, tmp_path):
    teacher = click(click(teacher, "learn_next"), "learn_next")
    one = student(code)
    pills = named(one.main.get("button_group"), "Choose a token. The small number is its position.")
    one = click(checked(pills.set_value(5).run()), "lesson_answer")
    save_pair(tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    assert all("There is no model “induction” here" in said(at) for at in (click(teacher, "room_reveal"), again(one)))


@pytest.mark.parametrize("over", ["room_free", "room_end"])
def test_an_answer_that_was_revealed_before_the_second_vote_stands(teacher, code, over):
    one = click(choose(student(code), 0), "lesson_answer")
    teacher = click(teacher, "room_again")
    assert has(again(one), "lesson_keep_first")
    teacher = click(teacher, "room_reveal")
    assert "Your answer: “As before”. Correct: “Hardly”." in said(again(one))
    click(teacher, over)
    assert "Your answer: “As before”. Correct: “Hardly”." in said(again(one)) and not has(one, "lesson_keep_first")
    assert one.session_state["session_record"].answers.answered(LESSON) == 1


def test_who_stays_with_an_answer_is_not_asked_again_after_a_reload(teacher, code):
    one = click(choose(student(code), 0), "lesson_answer")
    teacher = click(teacher, "room_again")
    one = click(again(one), "lesson_keep_first")
    new = start("Learn")
    new.session_state["session_record"] = one.session_state["session_record"]  # as a reloaded tab finds them
    new = tab_has(new, kept(one)["membership"])
    assert not has(new, "lesson_keep_first") and not new.warning
    markdown_with(again(teacher), "**1** of 1 has answered")


def test_who_answers_first_after_the_discussion_is_asked_once(teacher, code):
    one = student(code)
    click(teacher, "room_again")
    one = click(choose(again(one), 0), "lesson_answer")
    assert not has(again(one), "lesson_keep_first")
    markdown_with(again(teacher), "**1** of 1 has answered")


def test_an_answer_from_before_the_room_counts_in_it_and_can_be_talked_over(teacher, code):
    alone = click(choose(open_step(CHOOSE), 0), "lesson_answer")
    alone.text_input(key=next(box.key for box in alone.text_input if "Join a room" in box.label)).set_value(code)
    one = click(alone, "room_join")
    assert "counts in the room, too" in said(one)
    assert said(again(one)).count("counts in the room") == 1
    markdown_with(again(teacher), "**1** of 1 has answered")
    teacher = click(teacher, "room_again")
    one = click(choose(again(one), 1), "lesson_answer")
    assert said(one).count("counts in the room") == 1
    teacher = click(teacher, "room_reveal")
    assert votes(teacher) == [["As before", [1, 0], False], ["Hardly", [0, 1], True]]


def test_who_leaves_and_joins_again_is_counted_once(teacher, code):
    one = click(choose(student(code), 0), "lesson_answer")
    one = click(one, "room_leave")
    named(one.text_input, "Join a room with its code").set_value(code)
    one = click(one, "room_join")
    markdown_with(again(teacher), "**1** of 1 has answered")


def test_a_link_to_another_room_says_which_one_has_to_be_left(teacher, code):
    memberships = [kept(at)["membership"] for at in (student(code), teacher)]
    for each, what in zip(memberships, ("leave", "end"), strict=True):
        at = tab_has(start("Learn", room="zzzzz"), each)
        assert f"You are in room {code}. To join room ZZZZZ, {what} this one first." in said(at)
        assert "To join room" not in said(tab_has(start("Learn", room=code.lower()), each))


def test_who_goes_back_after_the_teacher_went_on_sees_the_step_as_it_is(teacher, code, monkeypatch):
    teacher = click(teacher, "learn_next")
    one = student(code)
    before = link_of(one)
    click(teacher, "learn_previous")
    one = again(one)
    one = come_back(one, "Learn", before)
    assert "Choose" in one.main.header[0].value and "Answer first" not in said(one)


def test_students_navigate_freely_until_the_teacher_leads_again(teacher, code):
    one = student(code)
    teacher = click(teacher, "room_free")
    one = again(one)
    assert not button(one, "learn_next").disabled and has(one, "lesson_discuss")
    one = click(choose(one, 1), "lesson_answer")
    assert "Correct: “Hardly”." in said(one)
    one = click(one, "learn_next")
    teacher = click(teacher, "room_lead")
    assert "Choose" in again(one).main.header[0].value


def test_a_link_joins_in_a_tab_that_is_no_member_and_a_code_by_the_button_or_enter(teacher, code):
    at = start("Learn", room=code)
    assert has(at, "room_join")  # until the tab has said whether it is a member
    assert has(tab_has(at, ""), "room_leave")
    at = start("Learn")
    assert not button(at, "room_join").disabled
    named(at.text_input, "Join a room with its code").set_value(f" {code.lower()} ")
    assert has(click(at, "room_join"), "room_leave")
    assert (
        room_membership.all_rooms()
        .tally(code, teacher.session_state["room_membership"].key, StepId(LESSON, CHOOSE))
        .here
        == 2
    )


def test_the_teacher_comes_back_by_the_private_link_votes_and_all(teacher, code):
    click(choose(student(code), 1), "lesson_answer")
    (link,) = [each.value for each in teacher.code if "room_key" in each.value]
    query = dict(parse_qsl(link.partition("?")[2]))
    back = start("Learn", **query)
    assert "Choose" in back.main.header[0].value and not {"room", "room_key"} & link_of(back).keys()
    markdown_with(back, "**1** of 1 has answered")
    assert has(back, "room_end")
    thief = start("Learn", room=code, room_key="0" * 32)
    assert "Only the teacher" in said(thief) and not has(thief, "room_end")


def test_a_vote_can_be_changed_until_it_is_shown(teacher, code):
    one = click(choose(student(code), 0), "lesson_answer")
    one = click(one, "lesson_change")
    one = click(choose(one, 1), "lesson_answer")
    assert any("Your answer: “Hardly”" in each.value for each in one.markdown)
    one = click(one, "lesson_change")  # and is still at it when the votes are shown
    teacher = click(teacher, "room_show_votes")
    assert votes(teacher) == [["As before", [0], False], ["Hardly", [1], False]]
    one = again(one)
    assert not has(one, "lesson_change") and not has(one, "lesson_keep")
    assert any("Your answer: “Hardly”" in each.value for each in one.markdown)
    click(teacher, "room_reveal")
    assert "Correct: “Hardly”." in said(again(one))


def test_numbers_are_counted_on_a_line_and_an_untouched_slider_is_no_vote(teacher, code):
    teacher = click(teacher, "learn_next")
    one, two = student(code), student(code)
    assert button(two, "lesson_answer").disabled
    (slider,) = one.main.slider
    click(checked(slider.set_value(3.0).run()), "lesson_answer")
    teacher = click(teacher, "room_reveal")
    drawn = json.loads(component(teacher, "headsup_votes").json)
    assert drawn["points"] == [["Votes", [[3.0, "3 nats", 1]]]]
    low, high, _, _, right = drawn["line"]
    assert (low, high) == (0, 8) and right[0] == pytest.approx(3.06, abs=0.01) and right[1] == "3.06 nats"


def test_the_teacher_sees_who_still_thinks_and_gives_them_time(teacher, code):
    one, _ = student(code), student(code)
    one = click(choose(one, 1), "lesson_answer")
    teacher = click(teacher, "room_time")
    markdown_with(teacher, "**1** of 2 has answered, 1 still thinking.")
    assert any("1:00** left" in each.value for each in teacher.markdown)
    assert any("left" in each.value for each in again(one).caption)


def test_the_votes_are_a_file_in_words(teacher, code):
    click(choose(student(code), 1), "lesson_answer")
    teacher = click(click(teacher, "learn_next"), "learn_next")
    one = student(code)
    pills = named(one.main.get("button_group"), "Choose a token. The small number is its position.")
    click(checked(pills.set_value(5).run()), "lesson_answer")
    rows = list(csv.DictReader(io.StringIO(room_teacher.votes_csv(teacher.session_state["room_membership"]))))
    assert [(row["vote"], row["answer"], row["count"]) for row in rows] == [
        ("first", "Hardly", "1"),
        ("first", "q at position 5", "1"),
    ]
    assert not any("{" in text for row in rows for text in row.values())


@pytest.mark.parametrize("local", [True, False])
def test_the_way_in_is_an_address_and_its_qr_code(teacher, code, monkeypatch, local):
    host = "localhost:8501" if local else "heads.example"
    monkeypatch.setattr(room_teacher, "address", lambda **query: f"http://{host}/Learn?{urlencode(query)}")
    teacher = again(teacher)
    markdown_with(teacher, f"## {plain(f'{host}/Learn')}")
    (drawn,) = [each.proto.body for each in teacher.get("html") if "QR code" in each.proto.body]
    assert 'src="data:image/svg+xml' in drawn  # and nothing is fetched for it
    assert any("this computer only" in each.value for each in teacher.caption) == local


@pytest.mark.parametrize("typed", ["zzzzz", "a", "🦉🦉🦉🦉🦉x"])
def test_a_wrong_code_gets_a_sentence_and_a_way_back(teacher, typed):
    at = student(typed)
    assert "This room has ended" in said(at) and has(at, "room_join") and has(at, "room_open")


def test_a_full_server_says_so(monkeypatch):
    monkeypatch.setattr(rooms, "MAX_ROOMS", 0)
    at = click(start("Learn"), "room_open")
    assert "open rooms. Try again later" in said(at) and has(at, "room_open")


def kept(at):
    """What the browser's tab was told to keep."""
    return json.loads(component(at, "headsup_membership").json)


def tab_has(at, text):
    """The tab tells what it kept before it was reloaded."""
    states = at._tree.get_widget_states()
    state = states.widgets.add()
    state.id = _make_trigger_id(component(at, "headsup_membership").id, "events")
    state.json_trigger_value = json.dumps([{"event": "found", "value": text}])
    return checked(at._run(states))


def test_a_reloaded_tab_finds_its_membership(teacher, code):
    one = student(code)
    memberships = [kept(at) for at in (teacher, one)]
    assert not any(each["asks"] for each in memberships)
    new = start("Learn")
    assert kept(new) == {"membership": "", "asks": True}
    new = tab_has(new, memberships[0]["membership"])
    assert has(new, "room_end") and kept(new) == memberships[0]
    another = tab_has(start("Learn"), memberships[1]["membership"])
    assert "Choose" in another.main.header[0].value and kept(another) == memberships[1]
    assert len(room_membership.all_rooms()) == 1


@pytest.mark.parametrize("text", ["", "x", "[]", "[1, 2, 3]", '["BCDFG", "key", true]', "x" * 1000])
def test_what_is_no_membership_is_none(text):
    at = tab_has(start("Learn"), text)
    assert has(at, "room_open")


def test_what_is_kept_can_be_read_again():
    own = room_membership.Membership("BCDFG", "key", is_teacher=True)
    assert room_membership.Membership.from_text(own.as_text()) == own


def test_whose_room_moves_is_drawn_anew(teacher, code, monkeypatch):
    one = student(code)
    found, own = room_membership.all_rooms(), teacher.session_state["room_membership"]
    asked, state = [], found.state

    def moving(*args):
        asked.append(args)
        if len(asked) == 2:  # by the part of the page that follows the room
            found.move(own.code, own.key, StepId(LESSON, NUMBER))
        return state(*args)

    monkeypatch.setattr(found, "state", moving)
    one = again(one)
    assert "Number" in one.main.header[0].value
