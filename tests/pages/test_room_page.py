"""Tests a room on the page Learn, with a teacher and two students."""

import json
import re
import secrets
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pages.ui.lessons import lesson_files, room_attempts, rooms
from pages.ui.lessons.room import Phase
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn import room_membership, room_teacher, visitor_lessons
from tests import learn_page as learning
from tests.app_driver import (
    checked,
    come_back,
    component,
    components,
    link_of,
    markdown_with,
    named,
    start,
    tell,
    tell_page,
)
from tests.learn_page import CHOOSE, LESSON, NUMBER, SAMPLES, answer, button, captions, click, has, open_step, said
from tests.redis_server import RedisServer
from tests.tiny_models import save_pair
from transformer.api.limits import COOKIE

FIRST, CHANGED = "Your answer: “As before”. Correct: “Hardly”.", "Correct: “As before”, then “Hardly”."


@pytest.fixture(autouse=True)
def learn(monkeypatch, quick_app_test):
    monkeypatch.setattr(lesson_files, "FOLDER", SAMPLES)
    monkeypatch.setattr(rooms, "HERE", 3600.0)  # a busy machine draws pages slowly
    learning.forget_rooms(monkeypatch)


@pytest.fixture
def teacher():
    return click(open_step(CHOOSE), "room_open")


@pytest.fixture
def code(teacher):
    return membership(teacher).code


def membership(at):
    return at.session_state["room_membership"]


def answers(at):
    return at.session_state["session_record"].answers


def votes(at):
    """The bars: label, the count of each round, whether it is right."""
    return json.loads(component(at, "headsup_votes").json)["bars"]


def again(at):
    """The run that a page asks for when its room has moved."""
    return checked(at.run())


def title(at):
    return at.main.header[0].value


def kept(at):
    """What the browser's tab was told to keep."""
    told = json.loads(component(at, "headsup_room_membership").json)
    return {name: told[name] for name in ("membership", "asks")}


def tab_has(at, text, browser=None):
    """The tab tells what it kept before it was reloaded, of a browser that is another one each time."""
    return tell_page(at, "headsup_room_membership", "found", f"{browser or secrets.token_hex(16)} {text}")


def student(code, browser=None):
    return tab_has(start("Learn", room=code.lower()), "", browser)


def join(at, code):
    named(at.text_input, "Join a room with its code").set_value(code)
    return click(at, "room_join")


def test_a_class_votes_twice_and_sees_the_answer_when_the_teacher_reveals_it():
    teacher = click(start("Learn"), "room_open")
    code = membership(teacher).code
    one, two = student(code), student(code)
    assert "Look around. When your teacher opens a step, this page follows." in captions(one)
    teacher = click(teacher, "learn_go_on", "learn_next")  # to the step that the teacher shows
    one, two = again(one), again(two)
    assert "Choose" in title(one) and "First vote: each on their own." in captions(one)
    assert not has(one, "lesson_discuss") and button(one, "learn_next").disabled
    assert not one.main.text_area and not one.main.selectbox  # no prompt and no model, which nobody can change now
    one = answer(click(answer(one, 1), "lesson_change"), 0)
    markdown_with(one, "The right one is shown when your teacher reveals it")
    one = click(one, "lesson_change")  # and is still at it when the votes are shown
    teacher = click(again(teacher), "room_time")
    markdown_with(teacher, "**1** of 2 has answered, 1 still thinking.")
    assert not has(teacher, "lesson_answer") and "headsup_votes" not in str(teacher.main)
    assert re.search(r"each on their own\. \*\*[01]:\d\d\*\* left\.", captions(again(one)))

    teacher = click(teacher, "room_show_votes")
    assert votes(teacher) == [["As before", [1], False], ["Hardly", [0], False]]
    one = again(one)
    assert not has(one, "lesson_change") and not has(one, "lesson_keep"), "what was shown is no longer changed"
    assert "The votes are shown. Who hasn't answered still can." in captions(one)
    two = answer(again(two), 0)
    teacher = again(teacher)
    assert votes(teacher) == [["As before", [2], False], ["Hardly", [0], False]]
    teacher = click(teacher, "room_again")
    assert "headsup_votes" not in str(teacher.main), "a second vote is hidden as the first was"
    assert "Discuss it with your neighbours" in captions(again(one))
    one, two, late = answer(one, 1), click(again(two), "lesson_keep_first"), student(code)
    assert not has(again(two), "lesson_keep_first"), "nobody is asked again"
    markdown_with(again(teacher), "**2** of 3 have answered")
    teacher = click(teacher, "room_reveal")
    markdown_with(teacher, "Without it, 6.4% are left.")
    assert votes(teacher) == [["As before", [2, 1], False], ["Hardly", [0, 1], True]]
    assert "1 changed to the correct answer, 0 away from it" in captions(teacher)
    one, two, late = again(one), again(two), again(late)
    assert CHANGED in said(one) and FIRST in said(two) and "Correct: “Hardly”." in said(late)
    assert not has(late, "lesson_answer")

    teacher = click(teacher, "learn_next")
    assert "Number" in title(again(one))
    click(teacher, "room_end")
    one = again(one)
    assert f"Room {code} has ended. You can go on by yourself." in said(one)
    assert has(one, "room_open") and not button(one, "learn_next").disabled  # and the step is still there


def test_votes_are_in_words_on_a_line_for_numbers_and_outlive_the_model(teacher, code, monkeypatch, tmp_path):
    one, two = answer(student(code), 1), student(code)
    teacher = click(teacher, "learn_next")
    one = learning.slide(again(one), 3.0)
    assert button(again(two), "lesson_answer").disabled, "an untouched slider is no vote"
    teacher = click(teacher, "room_reveal")
    drawn = json.loads(component(teacher, "headsup_votes").json)
    assert drawn["points"] == [["Votes", [[3.0, "3 nats", 1]]]]
    low, high, _, _, right = drawn["line"]
    assert (low, high) == (0, 8) and right[0] == pytest.approx(3.06, abs=0.01) and right[1] == "3.06 nats"
    teacher = click(teacher, "learn_next")
    one = learning.pick_token(again(one), 5)
    rows = learning.rows_of(room_teacher.votes_csv(membership(teacher)))
    assert [f"{row['vote']} {row['answer']} {row['count']}" for row in rows] == [
        "first Hardly 1",
        "first 3 nats 1",
        "first q at position 5 1",
    ]
    save_pair(tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    teacher = click(teacher, "learn_previous", "learn_previous", "room_lead", "room_reveal")
    assert votes(teacher) == [["As before", [0], False], ["Hardly", [1], False]]
    gone = "there is no model “induction”"
    assert f"The correct one can't be computed: probability can't be measured: {gone}" in said(again(one))
    assert gone in said(teacher)


def test_who_has_trained_nothing_reads_the_explanation_when_it_is_revealed(monkeypatch):
    monkeypatch.setattr(lesson_files, "FOLDER", Path(lesson_files.__file__).parent)
    teacher = click(start("Learn", lesson="16-induction", lesson_step=1), "room_open")
    one = answer(student(membership(teacher).code), 2)
    click(teacher, "room_reveal")
    one = again(one)
    assert "isn't known yet: nothing has been trained yet" in said(one) and "can't be asked" not in said(one)
    assert markdown_with(one, "Before the cliff there is a plateau")
    assert not any("In **your** training" in each.value for each in one.markdown)


def test_an_answer_from_before_the_room_counts_in_it_and_stands_but_the_teacher_s_is_not_on_the_wall():
    teacher = click(answer(open_step(CHOOSE), 0), "room_open")
    one = join(answer(open_step(CHOOSE), 0), membership(teacher).code)
    assert said(one).count("counts in the room, too") == said(again(one)).count("counts in the room") == 1
    teacher = again(teacher)
    markdown_with(teacher, "**1** of 1 has answered")
    assert not any("Your answer" in each.value for each in teacher.markdown)
    teacher = click(teacher, "room_again")
    assert has(again(one), "lesson_keep_first")
    for over in ("room_reveal", "room_free", "room_end"):
        teacher = click(teacher, over)
        assert FIRST in said(again(one)) and not has(one, "lesson_keep_first"), over
    assert answers(one).answered(LESSON) == 1


def test_a_tab_tells_its_membership_which_outlives_a_reload_and_a_lost_session(teacher, code):
    at = again(again(start("Learn", room=code)))
    assert has(at, "room_join") and kept(at) == {"membership": "", "asks": True}, "until the tab has told it"
    for text in ("x", "[1, 2, 3]", '["BCDFG", "key", true]', "x" * 1000):
        assert has(tab_has(start("Learn"), text), "room_open"), text
    at = click(answer(join(tab_has(start("Learn"), ""), f" {code.lower()} "), 0), "room_leave")
    assert kept(at) == {"membership": "", "asks": False}, "what it keeps is removed"
    one = join(at, code)
    assert rooms.all_rooms().tally(code, membership(teacher).key, StepId(LESSON, CHOOSE)).here == 1, "counted once"

    memberships = [kept(at) for at in (teacher, one)]
    assert not any(each["asks"] for each in memberships)
    new = tab_has(start("Learn"), memberships[0]["membership"])
    assert has(new, "room_end") and kept(new) == memberships[0]
    two = tab_has(start("Learn"), memberships[1]["membership"])  # on another server, which has the tab's room alone
    assert two.session_state["session_record"].token != one.session_state["session_record"].token
    assert not has(two, "lesson_answer") and answers(two).answered(LESSON) == 1 and kept(two) == memberships[1]
    for each, what in zip(memberships, ("end", "leave"), strict=True):
        at = tab_has(start("Learn", room="zzzzz"), each["membership"])
        assert f"You are in room {code}. To join room ZZZZZ, {what} this one first." in said(at)


def test_all_tabs_of_a_browser_are_one_student_whose_vote_ends_with_them(teacher, code):
    browser = secrets.token_hex(16)
    one, other = student(code, browser), student(code, browser)
    answer(one, 0)
    other = answer(other, 1)
    count = rooms.all_rooms().tally(code, membership(teacher).key, StepId(LESSON, CHOOSE))
    assert (count.voted, count.here, count.first) == (1, 1, {"1": 1})
    for _ in range(5):  # and not one more each time
        other = join(click(other, "room_leave"), code)
    markdown_with(again(teacher), "**1** of 1 has answered")
    click(other, "room_leave")
    markdown_with(again(teacher), "**0** of 0 have answered")
    click(answer(student(code), 0), "room_leave")
    again(one)  # which stays
    teacher = click(again(teacher), "room_reveal")
    click(one, "room_leave")
    rooms.all_rooms().advance(code, membership(teacher).key, StepId(LESSON, CHOOSE), Phase.REVEALED)
    assert votes(again(teacher)) == [["As before", [0], False], ["Hardly", [1], True]], "what is revealed stays"
    assert membership(student(code, browser)).key != browser, "of which no room is told"


def test_a_page_that_has_lost_its_place_in_the_room_takes_it_again():
    code, key, _ = membership(click(start("Learn"), "room_open"))
    one = student(code)
    rooms.all_rooms().leave(code, membership(one).key)
    tell(one, "headsup_room_follower", "changed", True)
    assert rooms.all_rooms().tally(code, key, None).here == 1


def test_who_joins_too_often_is_refused_and_whoever_is_in_the_room_comes_back(code, monkeypatch):
    monkeypatch.setattr(room_attempts, "JOINS", (2, 1e-6))
    room_membership.st.context.cookies[COOKIE] = "me"
    one, _, third = (student(code) for _ in range(3))
    assert "has joined too often. Wait a minute" in said(third) and has(third, "room_join")
    assert has(tab_has(start("Learn"), kept(one)["membership"]), "room_leave")
    assert has(join(click(again(one), "room_leave"), code), "room_join"), "and who left is counted anew"
    room_membership.st.context.cookies[COOKIE] = "you"
    silent = [tell_page(start("Learn", room=code), "headsup_room_membership", "found", "") for _ in range(3)]
    assert len({membership(at).key for at in silent}) == 1, "who doesn't tell its browser has a cookie's"


def test_a_teacher_reads_how_many_pages_are_behind(teacher, code, monkeypatch):
    one, two = student(code), student(code)
    monkeypatch.setattr(rooms, "BEHIND", -1.0)
    assert "behind" not in captions(again(teacher))
    for behind, also in (("2 pages are behind.", one), ("1 page is behind.", two)):
        teacher = again(click(teacher, "room_time") if also is one else teacher)
        assert behind in captions(teacher)
        markdown_with(teacher, f"still thinking ({behind.removesuffix('.')}).")
        again(also)
    assert "behind" not in captions(again(teacher))


def test_a_class_goes_on_with_the_teacher_and_never_back_by_accident(teacher, code):
    one = student(code)
    teacher = click(teacher, "learn_next", "learn_previous")
    assert "Choose" in title(teacher) and "Number" in title(again(one))
    markdown_with(teacher, "The class stays at **Number**")
    assert not has(teacher, "room_reveal")  # of a question that nobody is asked now
    teacher = click(teacher, "room_back", "learn_next", "learn_list", f"lesson_{LESSON}")
    assert "Token" in title(again(one))  # and not where the teacher looks
    before = link_of(one)
    teacher = click(teacher, "room_lead")
    one = come_back(again(one), "Learn", before)
    assert title(one) == title(teacher) and "Answer first" not in said(one), "who goes back sees the step as it is"
    teacher = click(teacher, "learn_next")
    one = again(one)
    teacher = click(teacher, "room_free")
    one = again(one)
    assert not button(one, "learn_next").disabled and has(one, "lesson_discuss")
    one = click(answer(one, 1), "learn_next")
    teacher = click(teacher, "room_lead")
    assert "Choose" in title(again(one))
    beyond = StepId(LESSON, len(visitor_lessons.lesson(LESSON).steps))  # which the lesson no longer has
    rooms.all_rooms().move(code, membership(teacher).key, beyond)
    teacher = again(teacher)
    assert has(teacher, "room_lead") and not has(teacher, "room_back")


def test_the_way_in_is_an_address_with_its_qr_code_and_the_teacher_s_a_private_link(teacher, code, monkeypatch):
    copied = [json.loads(each.json) for each in components(teacher, "headsup_copy_button")]
    links = {each["label"]: each["text"] for each in copied}
    assert links["Copy link to embed"].endswith(f"?room={code}&embed=true")
    link, key = links["Copy private link"], membership(teacher).key  # which nothing on screen tells
    assert link == f"room#{code}.{key}"
    assert not any(key in each.value for each in [*teacher.code, *teacher.markdown])
    back = tab_has(start("Learn"), json.dumps([code, key, True]))  # which its page has made the tab's
    assert "Choose" in title(back) and has(back, "room_end") and "room" not in link_of(back)
    thief = tab_has(start("Learn"), json.dumps([code, "0" * 32, True]))
    assert "Only the teacher" in said(thief) and not has(thief, "room_end")
    for host, local in (("localhost:8501", True), ("heads.example", False)):
        monkeypatch.setattr(room_teacher, "address", lambda host=host, **query: f"http://{host}/?{urlencode(query)}")
        teacher = again(teacher)
        markdown_with(teacher, f"## {plain(f'{host}/')}")
        (drawn,) = [each.proto.body for each in teacher.get("html") if "QR code" in each.proto.body]
        assert 'src="data:image/svg+xml' in drawn  # and nothing is fetched for it
        assert ("this computer only" in captions(teacher)) == local


def test_a_room_and_a_server_take_so_many_and_say_so(monkeypatch):
    monkeypatch.setattr(rooms.all_rooms(), "size", 1)
    at = start("Learn")
    assert "a room takes 1 student." in captions(at)
    teacher = click(at, "room_open")
    code = membership(teacher).code
    student(code)
    assert "1 student (the room is full)" in markdown_with(again(teacher), f"### Room {code}")
    second = student(code)
    assert "This room is full: it takes 1 students. Ask your teacher" in said(second) and has(second, "room_join")
    monkeypatch.setattr(rooms.all_rooms(), "most", 0)
    at = click(start("Learn"), "room_open")
    assert "open rooms. Try again later" in said(at) and has(at, "room_open")


def test_too_many_wrong_codes_are_refused_and_who_is_in_a_room_stays_there(code, monkeypatch):
    member, one = student(code), student("🦉🦉🦉🦉🦉x")
    for typed in ["zzzzz"] * (room_attempts.VISITOR[0] - 1):
        assert "This room has ended" in said(one) and has(one, "room_open")
        one = join(one, typed)
    one = join(one, code)
    assert "Too many wrong codes were tried." in said(one) and has(one, "room_join")
    monkeypatch.setattr(room_attempts, "ADDRESS", (1, 1e-6))
    link = tab_has(start("Learn", room=code), "")
    kept = [tab_has(start("Learn"), json.dumps([code, "0" * 32, is_teacher])) for is_teacher in (True, False)]
    assert all("Too many wrong codes" in said(at) for at in (link, *kept))
    assert has(again(member), "room_leave")


def test_a_class_on_two_servers_outlives_their_redis_and_who_answers_meanwhile_is_counted_then(monkeypatch, tmp_path):
    with RedisServer(tmp_path) as redis:
        monkeypatch.setenv("HEADSUP_REDIS", redis.address)
        rooms.all_rooms.cache_clear()
        teacher = click(open_step(CHOOSE), "room_open", "room_again")
        rooms.all_rooms.cache_clear()  # another server, which has the Redis alone in common
        code, key, _ = membership(teacher)
        one, two, three = (student(code) for _ in range(3))
        redis.kill()
        teacher, one = again(teacher), click(answer(again(one), 0), "lesson_change")
        one = answer(one, 1)
        assert "Rooms can't be reached at the moment" in said(teacher) and not has(teacher, "room_end")
        assert said(one).count("Your room can't be reached at the moment. What you answer is sent when it is back") == 1
        two = again(answer(two, 0))  # it was drawn before
        new = answer(tab_has(open_step(CHOOSE), kept(one)["membership"]), 1)  # in a session that never saw the room
        known = tab_has(open_step(CHOOSE, answers=answers(two).as_text()), kept(two)["membership"])  # and has answered
        for at in (teacher, one, two, new, known):
            assert "Correct" not in said(at) and not has(at, "room_open"), "nothing is revealed before its vote is kept"
        for at in (one, two, new):
            markdown_with(at, "The right one is shown when your teacher reveals it")
            assert has(at, "room_leave") and answers(at).answered(LESSON) == 1
        assert button(one, "learn_next").disabled and button(two, "learn_next").disabled, "the teacher leads"
        redis.start()
        assert "Choose" in title(again(one))
        assert said(one).count("what you answered meanwhile counts in it") == 1 and "counts in it" in said(again(two))
        markdown_with(again(teacher), "**2** of 3 have answered")
        assert has(again(new), "room_leave") and not has(new, "lesson_answer"), "its vote is in the room"
        assert rooms.all_rooms().tally(code, key, StepId(LESSON, CHOOSE)).second == {"0": 1, "1": 1}
        redis.kill()
        three = answer(again(three), 0)
        redis.start()
        teacher = click(again(teacher), "room_reveal")
        assert "Voting on what you answered meanwhile is closed" in said(again(three))
        assert votes(again(teacher)) == [["As before", [0, 1], False], ["Hardly", [0, 1], True]]
        click(teacher, "room_free")
        one = click(again(one), "learn_next")
        redis.kill()
        one = learning.slide(again(one), 3.0)
        assert "Correct" not in said(one), "nor is it where everybody looks around"
        redis.start()
        assert "Correct: 3.06 nats" in said(again(one))
        assert rooms.all_rooms().tally(code, key, StepId(LESSON, NUMBER)).voted == 1
    rooms.all_rooms.cache_clear()
