"""Tests the API of rooms by HTTP: who may join, see and vote, and what is limited."""

import secrets

import pytest

from pages.ui.lessons import lesson_files, room_attempts, rooms
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.room import Phase
from pages.ui.lessons.room_events import HEADER
from pages.ui.session.lesson_answers import StepId
from tests.learn_page import CHOOSE, LESSON, SAMPLES, forget_rooms, join, rooms_client

NOT_HERE = "You are not in this room, or it has ended."
CHOOSES = {"lesson": LESSON, "step": CHOOSE}


@pytest.fixture(autouse=True)
def learn(monkeypatch):
    monkeypatch.setattr(lesson_files, "FOLDER", SAMPLES)
    forget_rooms()


@pytest.fixture
def room():
    """Its code, and its teacher's key."""
    return rooms_client().post("/", json=CHOOSES).json().values()


def ask(method, path, key="", **more):
    response = rooms_client().request(method, path, headers={HEADER: key}, **more)
    return response.status_code, response.json()


def test_a_room_is_opened_joined_seen_voted_in_and_left(room):
    code, key = room
    member = join(code.lower()).json()["key"]
    status, seen = ask("GET", f"/{code}", member, params=CHOOSES)
    assert (status, seen["step"], seen["phase"], seen["votes"]) == (200, [LESSON, CHOOSE], 0, [None, None])
    assert ask("POST", f"/{code}/votes", member, json={**CHOOSES, "answer": 1, "phase": 0}) == (200, {})
    rooms.all_rooms().advance(code, key, StepId(LESSON, CHOOSE), Phase.SECOND)
    status, error = ask("POST", f"/{code}/votes", member, json={**CHOOSES, "answer": 1, "phase": 0})
    assert (status, error["error"]) == (409, "The class is voting again by now.")
    assert ask("GET", f"/{code}", member)[1]["document"]["reveal"] == ""
    rooms.all_rooms().advance(code, key, StepId(LESSON, CHOOSE), Phase.REVEALED)
    seen = ask("GET", f"/{code}", member)[1]
    assert seen["votes"] == [1, None] and seen["document"]["question"]["right"] == 1 and seen["document"]["reveal"]
    assert ask("DELETE", f"/{code}/members", member) == (200, {})
    for path in (f"/{code}", f"/{code}/events"):
        assert ask("GET", path, member)[1]["error"] == NOT_HERE


def test_what_is_no_answer_is_refused_and_strangers_learn_nothing(room):
    code, _ = room
    member = join(code).json()["key"]
    for wrong in (
        {"answer": 2},
        {"answer": "1"},
        {"answer": [1, 2]},
        {"answer": 1, "step": 99},
        {"answer": 1, "more": 1},
    ):
        assert ask("POST", f"/{code}/votes", member, json={**CHOOSES, **wrong})[0] == 400, wrong
    for lesson in ("none", "own-lesson-" + "0" * 32):
        assert ask("POST", f"/{code}/votes", member, json={"lesson": lesson, "step": 0, "answer": 0})[0] == 400
    for where, stranger in ((code, "0" * 32), ("ZZZZZ", member), (code, "")):
        for request in (("GET", f"/{where}"), ("GET", f"/{where}/events"), ("POST", f"/{where}/votes")):
            body = {"json": {**CHOOSES, "answer": 1}} if request[0] == "POST" else {}
            status, error = ask(*request, stranger, **body)
            assert (status, error["error"]) == (404, NOT_HERE)


def test_the_teacher_s_own_lesson_is_seen_and_voted_on_in_its_room_alone(room):
    code, key = room
    text = (SAMPLES / f"{LESSON}.md").read_text(encoding="utf-8")
    own = StepId(name_of(text), CHOOSE)
    member, stranger = join(code).json()["key"], join(rooms_client().post("/", json=CHOOSES).json()["code"]).json()
    rooms.all_rooms().carry(code, key, text)
    rooms.all_rooms().move(code, key, own)
    assert ask("GET", f"/{code}", member)[1]["document"]["title"] == "Choose"
    vote = {"lesson": own.lesson, "step": own.step, "answer": 1}
    assert ask("POST", f"/{code}/votes", member, json=vote)[0] == 200
    assert ask("POST", f"/{stranger['code']}/votes", stranger["key"], json=vote)[0] == 400


def test_all_tabs_of_a_browser_are_one_student_and_no_room_is_told_which_browser(room):
    code, key = room
    browser = secrets.token_hex(16)
    keys = {join(code, browser=browser).json()["key"] for _ in range(3)}
    assert len(keys) == 1 and browser not in keys
    assert join(code, keys.pop()).status_code == 200
    assert rooms.all_rooms().tally(code, key, StepId(LESSON, CHOOSE)).here == 1
    client = rooms_client()  # which doesn't tell a number, and has a cookie
    assert client.get(f"/{code}").status_code == 404
    assert len({client.post(f"/{code}/members", json={}).json()["key"] for _ in range(3)}) == 1


def test_wrong_codes_joins_and_openings_are_limited_by_visitor(room, monkeypatch):
    code, _ = room
    monkeypatch.setattr(room_attempts, "JOINS", (2, 1e-6))
    monkeypatch.setattr(room_attempts, "VISITOR", (3, 1e-6))
    me = rooms_client()
    me.get("/ZZZZZ")  # whose answer brings the cookie

    def joins(code):
        response = me.post(f"/{code}/members", json={"browser": secrets.token_hex(16)})
        return response.status_code, response.json().get("error", "")

    assert [joins(code)[0] for _ in range(3)] == [200, 200, 429] and "joined too often" in joins(code)[1]
    assert me.post("/", json={}).status_code == 429
    assert [joins("ZZZZZ")[0] for _ in range(4)] == [404, 404, 404, 429]
    assert "Too many wrong codes" in joins(code)[1]
    assert join(code).status_code == 200, "nobody else is kept out"


def test_an_address_alone_limits_whoever_shows_no_cookie_and_a_member_comes_back(room, monkeypatch):
    code, _ = room
    member = join(code).json()["key"]
    monkeypatch.setattr(rooms.all_rooms(), "size", 1)
    assert join(code).status_code == 409, "it is full"
    assert join(code).status_code == 429, "twice a class has come from here"
    assert join(code, member).status_code == 200
