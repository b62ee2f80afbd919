"""Tests a room on the page Learn: what Python draws for a teacher and two students.

What the browser draws for students is tested in tests/frontend/room.test.mjs.
"""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pages.ui.lessons import lesson_files, room, room_attempts, rooms
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn import room_teacher, visitor_lessons
from tests import learn_page as learning
from tests.app_driver import checked, come_back, component, components, link_of, markdown_with, named, start, tell_page
from tests.learn_page import (
    CHOOSE,
    LESSON,
    NUMBER,
    SAMPLES,
    answer,
    ask,
    button,
    captions,
    click,
    drawn,
    has,
    leave,
    offers,
    open_step,
    said,
    seen,
    student,
    tab_has,
    vote,
)
from tests.redis_server import RedisServer
from tests.tiny_models import save_pair

AS_BEFORE, HARDLY = 0, 1


@pytest.fixture(autouse=True)
def learn(monkeypatch, quick_app_test):
    monkeypatch.setattr(lesson_files, "FOLDER", SAMPLES)
    monkeypatch.setattr(room, "HERE", 3600.0)  # a busy machine draws pages slowly
    learning.forget_rooms()


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
    return learning.step_of(at)[0]["title"]


def kept(at):
    """What the browser's tab was told to keep."""
    told = json.loads(component(at, "headsup_room_membership").json)
    return {name: told[name] for name in ("membership", "asks")}


def join(at, code):
    named(at.text_input, "Join a room with its code").set_value(code)
    return tab_has(click(at, "room_join"))


def test_a_class_votes_twice_and_sees_the_answer_when_the_teacher_reveals_it():
    teacher = click(start("Learn"), "room_open")
    code = membership(teacher).code
    one, two = student(code), student(code)
    assert drawn(one)["step"] is None and not drawn(one, "step")
    teacher = click(teacher, "learn_go_on", "learn_next")  # to the step that the teacher shows
    one, two = again(one), again(two)
    assert drawn(one, "step")["step"] == [LESSON, CHOOSE] and not components(one, "headsup_lesson_step")
    assert button(one, "learn_next").disabled
    assert not one.main.text_area and not one.main.selectbox  # no prompt and no model, which nobody can change now
    assert vote(one, HARDLY) == vote(one, AS_BEFORE) == 200
    assert seen(one)["votes"] == [AS_BEFORE, None] and seen(one)["document"]["question"]["right"] is None
    teacher = click(again(teacher), "room_time")
    markdown_with(teacher, "**1** of 2 has answered, 1 still thinking.")
    assert not offers(teacher) and "headsup_votes" not in str(teacher.main)
    assert 0 < seen(one)["left"] <= 60

    teacher = click(teacher, "room_show_votes")
    assert votes(teacher) == [["As before", [1], False], ["Hardly", [0], False]]
    assert seen(one)["shown"] and vote(one, HARDLY) == 409, "what was shown is no longer changed"
    assert vote(two, AS_BEFORE) == 200
    teacher = again(teacher)
    assert votes(teacher) == [["As before", [2], False], ["Hardly", [0], False]]
    teacher = click(teacher, "room_again")
    assert "headsup_votes" not in str(teacher.main), "a second vote is hidden as the first was"
    assert vote(one, HARDLY) == vote(two, AS_BEFORE) == 200
    late = student(code)
    markdown_with(again(teacher), "**2** of 3 have answered")
    teacher = click(teacher, "room_reveal")
    assert "Without it, 6.4% are left." in said(teacher)
    assert votes(teacher) == [["As before", [2, 1], False], ["Hardly", [0, 1], True]]
    assert "1 changed to the correct answer, 0 away from it" in captions(teacher)
    for at, both in ((one, [AS_BEFORE, HARDLY]), (two, [AS_BEFORE, AS_BEFORE]), (late, [None, None])):
        assert seen(at)["votes"] == both and "6.4% are left" in seen(at)["document"]["reveal"]
    assert drawn(one)["opens"] and not drawn(one)["room"]["is_revealed"], "so it asks for a run"
    assert drawn(again(one))["room"]["is_revealed"]
    assert (answers(one).responses[StepId(LESSON, CHOOSE)].second, answers(one).answered(LESSON)) == (HARDLY, 1)

    teacher = click(teacher, "learn_next")
    assert drawn(again(one), "step")["step"] == [LESSON, NUMBER]
    click(teacher, "room_end")
    one = again(one)
    assert f"Room {code} has ended. You can go on by yourself." in said(one)
    assert has(one, "room_open") and not button(one, "learn_next").disabled  # and the step is still there


def test_votes_are_in_words_on_a_line_for_numbers_and_outlive_the_model(teacher, code, monkeypatch, tmp_path):
    one = student(code)
    vote(one, HARDLY)
    teacher = click(teacher, "learn_next")
    one = again(one)
    assert vote(one, 3.0) == 200
    teacher = click(teacher, "room_reveal")
    told = json.loads(component(teacher, "headsup_votes").json)
    assert told["points"] == [["Votes", [[3.0, "3 nats", 1]]]]
    low, high, _, _, right = told["line"]
    assert (low, high) == (0, 8) and right[0] == pytest.approx(3.06, abs=0.01) and right[1] == "3.06 nats"
    teacher = click(teacher, "learn_next")
    one = again(one)
    vote(one, 5)
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
    assert f"The correct one can't be computed: probability can't be measured: {gone}" in str(seen(again(one)))
    assert gone in said(teacher)


def test_who_has_trained_nothing_reads_the_explanation_when_it_is_revealed(monkeypatch):
    monkeypatch.setattr(lesson_files, "FOLDER", Path(lesson_files.__file__).parent)
    teacher = click(start("Learn", lesson="16-induction", lesson_step=1), "room_open")
    one = student(membership(teacher).code)
    vote(one, 2)
    click(teacher, "room_reveal")
    document = seen(again(one))["document"]
    assert "isn't known yet: nothing has been trained yet" in document["question"]["later"]
    assert "Before the cliff there is a plateau" in document["reveal"] and "In <strong>your" not in document["reveal"]
    assert drawn(one, "step")["document"] is None, "and a page on which something was trained brings what it measures"


def test_an_answer_from_before_the_room_is_offered_to_it_and_the_teacher_s_is_not_on_the_wall():
    teacher = click(answer(open_step(CHOOSE), AS_BEFORE), "room_open")
    one = join(answer(open_step(CHOOSE), AS_BEFORE), membership(teacher).code)
    assert drawn(one)["answer"] == AS_BEFORE
    vote(one, drawn(one)["answer"])  # as the browser does
    teacher = again(teacher)
    markdown_with(teacher, "**1** of 1 has answered")
    assert "Your answer" not in said(teacher)
    for over in ("room_again", "room_reveal", "room_free", "room_end"):
        teacher = click(teacher, over)
        one = again(one)
        assert answers(one).answered(LESSON) == 1
    assert "Your answer: “As before”. Correct: “Hardly”." in said(one)


def test_a_tab_tells_its_membership_which_outlives_a_reload_and_a_lost_session(teacher, code):
    at = again(again(start("Learn", room=code)))
    assert has(at, "room_join") and kept(at) == {"membership": "", "asks": True}, "until the tab has told it"
    for text in ("x", "[1, 2, 3]", '["BCDFG", "key", true]'):
        told = {"membership": text, "problem": ""}
        assert has(tell_page(start("Learn"), "headsup_room_membership", "found", told), "room_open"), text
    at = again(join(tab_has(start("Learn")), f" {code.lower()} "))
    vote(at, AS_BEFORE)
    at = leave(at)
    assert kept(at) == {"membership": "", "asks": False}, "what it keeps is removed"
    one = join(at, code)
    assert rooms.all_rooms().tally(code, membership(teacher).key, StepId(LESSON, CHOOSE)).here == 1
    vote(one, AS_BEFORE)

    memberships = [kept(at) for at in (teacher, one)]
    assert not any(each["asks"] for each in memberships)
    new = tab_has(start("Learn"), memberships[0]["membership"])
    assert has(new, "room_end") and kept(new) == memberships[0]
    two = tab_has(start("Learn"), memberships[1]["membership"])  # on another server, which has the tab's room alone
    assert two.session_state["session_record"].token != one.session_state["session_record"].token
    assert answers(two).answered(LESSON) == 1 and kept(two) == memberships[1]
    for each, what in zip(memberships, ("end", "leave"), strict=True):
        at = tab_has(start("Learn", room="zzzzz"), each["membership"])
        assert f"You are in room {code}. To join room ZZZZZ, {what} this one first." in said(at)


def test_a_page_that_has_lost_its_place_waits_for_its_browser_to_take_it_again(teacher, code):
    one = student(code)
    rooms.all_rooms().leave(code, membership(one).key)
    one = again(one)
    assert drawn(one)["room"] is None and not has(one, "room_open")
    assert ask(one).status_code == 404 and learning.join(code, membership(one).key).status_code == 200
    assert drawn(again(one))["room"]["step"] == [LESSON, CHOOSE]
    for problem, sentence in (("This room is full.", "This room is full."), ("", f"Room {code} has ended.")):
        at = tell_page(student(code), "headsup_room", "lost", problem, 0)
        assert sentence in said(at) and has(at, "room_open")


def test_a_teacher_reads_how_many_pages_are_behind(teacher, code, monkeypatch):
    one, two = student(code), student(code)
    monkeypatch.setattr(room, "BEHIND", -1.0)
    assert seen(one) == seen(two) and "behind" not in captions(again(teacher))
    teacher = again(click(teacher, "room_time"))
    for behind, at in (("2 pages are behind.", one), ("1 page is behind.", two)):
        assert behind in captions(again(teacher))
        markdown_with(teacher, f"still thinking ({behind.removesuffix('.')}).")
        seen(at)
    assert "behind" not in captions(again(teacher))
    click(teacher, "learn_next")
    seen(one)
    assert "2 pages are behind." in captions(again(teacher)), "what is on screen is the step before"
    seen(again(one))
    assert "1 page is behind." in captions(again(teacher))


def test_a_class_goes_on_with_the_teacher_and_never_back_by_accident(teacher, code):
    one = student(code)
    teacher = click(teacher, "learn_next", "learn_previous")
    assert "Choose" in title(teacher) and drawn(again(one), "step")["step"] == [LESSON, NUMBER]
    markdown_with(teacher, "The class stays at **Number**")
    assert not has(teacher, "room_reveal")  # of a question that nobody is asked now
    teacher = learning.open_lesson(click(teacher, "room_back", "learn_next", "learn_list"), LESSON)
    assert seen(again(one))["document"]["title"] == "Token"  # and not where the teacher looks
    before = link_of(one)
    teacher = click(teacher, "room_lead")
    one = come_back(again(one), "Learn", before)
    assert seen(one)["document"]["title"] == title(teacher) and "Answer first" not in said(one)
    teacher = click(teacher, "learn_next")
    one = again(one)
    teacher = click(teacher, "room_free")
    one = again(one)
    assert not button(one, "learn_next").disabled and "Discuss first" in offers(one)
    one = answer(one, HARDLY)
    assert drawn(one)["answer"] == HARDLY, "which the browser sends"
    one = click(one, "learn_next")
    teacher = click(teacher, "room_lead")
    assert drawn(again(one), "step")["step"] == [LESSON, CHOOSE]
    beyond = StepId(LESSON, len(visitor_lessons.lesson(LESSON).steps))  # which the lesson no longer has
    rooms.all_rooms().move(code, membership(teacher).key, beyond)
    teacher = again(teacher)
    assert has(teacher, "room_lead") and not has(teacher, "room_back")
    assert seen(one)["document"] is None


def test_the_way_in_is_an_address_with_its_qr_code_and_the_teacher_s_a_private_link(teacher, code, monkeypatch):
    copied = [json.loads(each.json) for each in components(teacher, "headsup_copy_button")]
    links = {each["label"]: each["text"] for each in copied}
    assert links["Copy link to embed"].endswith(f"?room={code}&embed=true")
    link, key = links["Copy private link"], membership(teacher).key  # which nothing on screen tells
    assert link == f"room#{code}.{key}"
    assert not any(key in each.value for each in [*teacher.code, *teacher.markdown])
    back = tab_has(start("Learn"), json.dumps([code, key, True]))  # which its page has made the tab's
    assert "Choose" in title(back) and has(back, "room_end") and "room" not in link_of(back)
    for tried in (code, "ZZZZZ"):
        thief = tab_has(start("Learn"), json.dumps([tried, "0" * 32, True]))
        assert "no room has this code" in said(thief) and not has(thief, "room_end"), "nor whether there is one"
    for host, local in (("localhost:8501", True), ("heads.example", False)):
        monkeypatch.setattr(room_teacher, "address", lambda host=host, **query: f"http://{host}/?{urlencode(query)}")
        teacher = again(teacher)
        markdown_with(teacher, f"## {plain(f'{host}/')}")
        (drawn,) = [each.proto.body for each in teacher.get("html") if "QR code" in each.proto.body]
        assert 'src="data:image/svg+xml' in drawn  # and nothing is fetched for it
        assert ("this computer only" in captions(teacher)) == local


def test_what_a_room_or_a_server_refuses_is_said_beside_the_form(monkeypatch):
    monkeypatch.setattr(rooms.all_rooms(), "size", 1)
    at = start("Learn")
    assert "a room takes 1 student." in captions(at)
    teacher = click(at, "room_open")
    code = membership(teacher).code
    member = student(code)
    assert "1 student (the room is full)" in markdown_with(again(teacher), f"### Room {code}")
    for typed, sentence in ((code, "This room is full: it takes 1 students. Ask your teacher"), ("..", "has ended")):
        at = join(student("🦉"), typed)
        assert sentence in said(at) and has(at, "room_join")
    monkeypatch.setattr(room_attempts, "ADDRESS", (1, 1e-6))
    assert "Too many wrong codes" in said(student(code))
    assert drawn(again(member))
    monkeypatch.setattr(rooms.all_rooms(), "most", 0)
    at = click(start("Learn"), "room_open")
    assert "open rooms. Try again later" in said(at) and has(at, "room_open")


def test_a_class_on_two_servers_outlives_their_redis_and_nothing_is_revealed_before_its_vote_is_kept(
    monkeypatch, tmp_path
):
    with RedisServer(tmp_path) as redis:
        monkeypatch.setenv("HEADSUP_REDIS", redis.address)
        rooms.all_rooms.cache_clear()
        teacher = click(open_step(CHOOSE), "room_open")
        rooms.all_rooms.cache_clear()  # another server, which has the Redis alone in common
        code, key, _ = membership(teacher)
        one, two = student(code), student(code)
        vote(two, AS_BEFORE)
        one, two = again(one), again(two)
        redis.kill()
        teacher, one = again(teacher), again(one)
        assert "Rooms can't be reached at the moment" in said(teacher) and not has(teacher, "room_end")
        assert drawn(one)["room"] is None and drawn(one, "step"), "the browser goes on with what it has"
        assert ask(one).status_code == vote(one, HARDLY) == 503 and "can't be reached" in ask(one).text
        new = answer(tab_has(open_step(CHOOSE), kept(one)["membership"]), HARDLY)  # a session that never saw the room
        known = tab_has(open_step(CHOOSE, answers=answers(two).as_text()), kept(two)["membership"])  # and has answered
        for at in (teacher, one, new, known):
            assert "Correct" not in said(at) and not has(at, "room_open")
        for at in (new, known):
            assert "The right one is shown when your teacher reveals it" in said(at)
        assert drawn(new)["answer"] == HARDLY and button(one, "learn_next").disabled, "the teacher leads"
        redis.start()
        assert vote(one, HARDLY) == 200
        one, new = again(one), again(new)
        markdown_with(again(teacher), "**2** of 2 have answered")
        assert answers(one).answered(LESSON) == answers(new).answered(LESSON) == 1
        click(again(teacher), "room_free")
        one = click(again(one), "learn_next")
        redis.kill()
        one = answer(one, 3.0)
        assert "Correct" not in said(one), "nor is it where everybody looks around"
        redis.start()
        assert drawn(one)["answer"] == 3.0 and vote(one, 3.0) == 200
        assert "Correct: 3.06 nats" in said(again(one))
        assert rooms.all_rooms().tally(code, key, StepId(LESSON, NUMBER)).voted == 1
    rooms.all_rooms.cache_clear()
