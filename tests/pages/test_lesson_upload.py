"""Tests a teacher's own lesson by upload: hostile files, and that it is shown to its session and its room alone."""

import json

import pytest

from pages.ui import upload_limits
from pages.ui.lessons import own_lessons, rooms
from pages.ui.lessons.lesson import LONGEST_FILE
from pages.ui.lessons.own_lessons import name_of
from pages.ui.session import session_store
from pages.ui.views.learn import lesson_upload, visitor_lessons
from pages.ui.views.learn.site_lessons import handout_document
from tests import learn_page as learning
from tests.app_driver import checked, component, link_of, start, tell_page
from tests.frontend_calls import frontend
from tests.learn_page import answer, button, click, forget_rooms, has, said
from tests.pages.test_lesson_checks import SAMPLE
from tests.redis_server import RedisServer
from transformer.data.limited_process import ProgramError

HEADER = '+++\ntitle = "Mine"\n+++\n'
SHORT = (
    f"{HEADER}## One\n<script>alert(1)</script> [x](javascript:alert(1)) and {{n}} heads\n"
    '```measure\n[n]\nwhat = "shape"\nfield = "n_heads"\n```\n'
    '```question\nkind = "choose"\ntext = "Many?"\noptions = ["Yes", "No"]\nright = ["n > 0", "n <= 0"]\n```\n'
    "## Two\nThe end\n"
)
NAME = name_of(SHORT)
TOO_LONG = HEADER + "## A\nb\n" * 5_000
NO_NUMBER = f'{HEADER}## A\n{{p}}\n```measure\n[p]\nwhat = "likeliest"\nprompt = "{"a" * 5_000}"\n```'
HOSTILE = [
    (f"{HEADER}## A\n{{min.__globals__}}", "can't be used here", False),
    (f"{HEADER}## A\n```claim\n9 ** 9 ** 9 ** 9\n```", "can't be used here", False),
    (TOO_LONG, "a lesson has 1 to 40 steps", False),
    (f"{HEADER}## A\n" + "{1}" * 5_000, "at most 200 numbers to be measured", False),
    (f"{HEADER}## A\n```question\nx = {'[' * 20_000}\n```", "this isn't TOML", False),
    (NO_NUMBER, "has 1 to 1000 tokens", True),
]
FILES = [
    ("+++ é".encode("latin-1"), "Expected a lesson, a text in UTF-8"),
    (b"\x89PNG\r\n\x1a\n\xff", "that begins with a line +++; found a PNG picture"),
    (b"+++" + b"a" * LONGEST_FILE, "A lesson has at most 100,000 characters"),
]


@pytest.fixture
def in_this_process(monkeypatch):
    """The check itself, without the second or two that a process takes to start."""

    monkeypatch.setattr(lesson_upload, "answer_of", lambda _, request, **limits: lesson_upload.answer(request))


@pytest.fixture
def learn(monkeypatch, quick_app_test, in_this_process):
    forget_rooms()


def upload(at, text):
    (box,) = at.get("file_uploader")
    return checked(box.upload("mine.md", text if isinstance(text, bytes) else text.encode(), "text/markdown").run())


def teacher():
    return click(upload(start("Learn", lesson="for-teachers"), SHORT), "open_own_lesson")


def kept(at, name):
    return json.loads(component(at, f"headsup_{name}").json)


@pytest.mark.parametrize(("text", "sentence", "opens"), HOSTILE)
def test_hostile_lessons_are_sentences_and_one_with_a_number_missing_can_be_shown(
    text, sentence, opens, in_this_process
):
    found = lesson_upload.checked(text.encode())
    assert any(sentence in str(finding) for finding in found.findings), found
    assert not found.problem and found.opens == opens and len(str(found.findings)) < 5_000


@pytest.mark.parametrize(("content", "sentence"), FILES)
def test_files_that_are_no_lesson_are_refused_before_anything_runs(content, sentence, monkeypatch):
    monkeypatch.setattr(lesson_upload, "answer_of", None)
    found = lesson_upload.checked(content)
    assert sentence in found.problem and not found.opens and not found.text


def test_a_lesson_is_checked_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(lesson_upload, "DEADLINE", 500.0)  # a busy machine starts processes slowly
    broken = SAMPLE.replace("model=stories", "model=storys")
    found = lesson_upload.checked(broken.replace("\n", "\r\n").encode("utf-8-sig"))  # as Notepad saves it
    assert any("write “stories”" in finding.what for finding in found.findings) and found.text == broken


def test_what_takes_too_long_or_too_much_is_a_sentence(in_this_process, monkeypatch):
    found = lesson_upload.checked(SHORT.encode(), seconds=0)
    assert "the models need more than 0 seconds" in str(found.findings) and not found.opens
    monkeypatch.setattr(lesson_upload, "SECONDS_TO_READ", -1)
    found = lesson_upload.checked(SHORT.encode())
    assert "reading this file alone takes" in str(found.findings[0]) and not found.opens

    def ended(*_, **__):
        raise ProgramError("it takes too much memory")

    monkeypatch.setattr(lesson_upload, "answer_of", ended)
    found = lesson_upload.checked(SHORT.encode())
    assert found.problem.startswith("This lesson can't be opened: it takes too much memory. Ask the models for less")
    assert not found.opens and not found.text


def test_a_teacher_reads_what_was_found_and_opens_the_lesson_which_outlives_a_reload_for_them_alone(learn):
    at = start("Learn", lesson="for-teachers")
    for text, words in ((SAMPLE, "No problems found."), (NO_NUMBER, "has 1 to 1000 tokens"), FILES[1]):
        at = upload(at, text)
        assert words in said(at), words
    printed = frontend("lessons/handout.js", "handout", handout_document(own_lessons.own_lesson(SHORT)))
    assert "<script>" not in printed and "href" not in printed and "&lt;script&gt;" in printed
    at = upload(at, SHORT)
    (box,) = at.get("file_uploader")
    upload_limits._lapsed.append(box.value.file_id)  # the server has deleted the file, and the page has its text
    at = click(checked(box.set_value(None).run()), "open_own_lesson")
    assert learning.step_of(at)[0]["title"] == "One" and link_of(at)["lesson"] == NAME
    assert not any(each.allow_html for each in at.main.markdown if "script" in each.value)
    at = click(answer(at, 0), "learn_next", "learn_next")
    assert learning.cards(at)[NAME]["whose"].startswith("Your own lesson")
    at = upload(click(at, "for_teachers"), TOO_LONG)
    assert "a lesson has 1 to 40 steps" in said(at) and not has(at, "open_own_lesson"), "the one before it stays"

    other = start("Learn", lesson=NAME, lesson_step=1)
    assert "was uploaded, and is shown to its teacher and in a room alone" in said(other)
    assert NAME not in learning.cards(other)

    again = start("Learn", lesson=NAME, lesson_step=0)
    again = tell_page(again, "headsup_session_token", "found", kept(at, "session_token")["value"])
    assert learning.step_of(again)[0]["title"] == "One" and "Correct" in said(again)
    again = tell_page(click(again, "learn_list"), "headsup_lesson_list", "removed", True)
    assert NAME not in learning.cards(again)


def test_it_outlives_its_server_where_there_is_a_redis(learn, monkeypatch, tmp_path):
    with RedisServer(tmp_path) as redis:
        monkeypatch.setenv("HEADSUP_REDIS", redis.address)
        tab = kept(teacher(), "session_token")["value"]
        session_store.session_store.clear()  # what the killed server had

        again = start("Learn", lesson=NAME, lesson_step=1)
        assert not has(again, "learn_next")
        again = tell_page(again, "headsup_session_token", "found", tab)
        assert learning.step_of(again)[0]["title"] == "Two", "at the step where it was"
        third = tell_page(start("Learn", lesson=NAME), "headsup_session_token", "found", f"{'0' * 32}")
        assert not has(third, "learn_next"), "a token that can't be guessed has it, and no other"
        redis.kill()
        upload(start("Learn", lesson="for-teachers"), SHORT)  # goes on without it


def test_a_room_has_its_teacher_s_lesson_which_students_follow_and_vote_on(learn):
    at = click(teacher(), "room_open")
    code, key = at.session_state["room_membership"][:2]
    one = learning.student(code)
    assert learning.seen(one)["document"]["title"] == "One" and learning.vote(one, 0) == 200
    at = click(checked(at.run()), "room_reveal")
    assert learning.seen(one)["document"]["question"]["right"] == 0

    click(at, "room_free")
    one = click(checked(one.run()), "learn_list")
    card = learning.cards(one)[NAME]
    assert card["whose"] == "Your teacher's own lesson" and not card["isRemovable"]

    kept = json.dumps([code, key, True])  # of which the private link makes the tab's, elsewhere
    back = learning.tab_has(start("Learn"), kept)
    assert checked(back.run()) and visitor_lessons.name_of(rooms.all_rooms().lesson(code, key)) == NAME
    assert NAME in learning.cards(back)

    one = learning.leave(one)
    assert NAME not in learning.cards(one), "it goes with the room"
    assert button(one, "for_teachers")
