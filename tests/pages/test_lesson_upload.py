"""Tests a teacher's own lesson by upload: hostile files, and that it is shown to its session and its room alone."""

import json

import pytest

from pages.ui.lessons import lesson_files, own_lessons, rooms
from pages.ui.lessons.lesson import LONGEST_FILE
from pages.ui.lessons.own_lessons import name_of
from pages.ui.models import session_store
from pages.ui.views.learn import lesson_upload, visitor_lessons
from pages.ui.views.learn.handout import handout
from tests.app_driver import checked, component, link_of, start, tell_page
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


def measures(count, what):
    """A step that asks for the same kind of measure again and again."""
    calls = "\n".join(f"[m{at}]\n{what.format(at=at)}" for at in range(count))
    return f"## Step\n```measure\n{calls}\n```\n"


HEAVY = HEADER + "".join(
    measures(
        24,
        f'what = "accuracy"\nmodel = "sort-letters"\nexamples = {100 - each}\nchanges = "scale~blocks.0.'
        'attn.hook_z~0~~0.{at:02}"',
    )
    for each in range(3)
)
HOSTILE = {
    "a loop": (f"{HEADER}## A\n{{[x for x in [1]][0]}}", "can be used here; what can is|is no expression"),
    "a template": (f"{HEADER}## A\n{{range(9)|length}}", "can't be used here|is no expression"),
    "an attribute": (f"{HEADER}## A\n{{min.__globals__}}", "can't be used here"),
    "a class": (f"{HEADER}## A\n```claim\n''.__class__.__mro__\n```", "can't be used here"),
    "a power": (f"{HEADER}## A\n{{9 ** 9 ** 9 ** 9}}", "can't be used here"),
    "thousands of steps": (HEADER + "## A\nb\n" * 5_000, "a lesson has 1 to 40 steps"),
    "thousands of numbers": (f"{HEADER}## A\n" + "{1}" * 5_000, "at most 200 numbers to be measured"),
    "a long output": (
        f'{HEADER}## A\n{"{w}" * 190}\n```measure\n[w]\nwhat = "written"\ntokens = 200\nprompt = "To be"\n'
        "```\n## B\n{w}",
        None,
    ),
    "nesting": (f"{HEADER}## A\n```question\nx = {'[' * 20_000}\n```", "this isn't TOML"),
    "a prompt of its own size": (
        f'{HEADER}## A\n{{p}}\n```measure\n[p]\nwhat = "likeliest"\nprompt = "{"a" * 5_000}"\n```',
        "has 1 to 1000 tokens",
    ),
}
FILES = {
    "no UTF-8": ("+++ é".encode("latin-1"), "Expected a lesson, a text in UTF-8"),
    "another kind": (b"\x89PNG\r\n\x1a\n\xff", "found a PNG picture"),
    "size": (b"+++" + b"a" * LONGEST_FILE, "A lesson has at most 100,000 characters"),
}


@pytest.fixture
def in_this_process(monkeypatch):
    """The check itself, without the second or two that a process takes to start."""
    monkeypatch.setattr(
        lesson_upload,
        "answer_of",
        lambda program, request, **limits: json.loads(json.dumps(lesson_upload.answer(request))),
    )


@pytest.fixture
def learn(monkeypatch, quick_app_test, in_this_process):
    forget_rooms(monkeypatch)


def upload(at, text):
    (box,) = at.get("file_uploader")
    return checked(box.upload("mine.md", text.encode(), "text/markdown").run())


def teacher(text=SHORT):
    return click(upload(start("Learn", lesson="for-teachers"), text), "open_own_lesson")


def kept(at, name):
    return json.loads(component(at, f"headsup_{name}").json)


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_lessons_are_sentences_at_their_lines(what, in_this_process):
    text, sentence = HOSTILE[what]
    found = lesson_upload.checked(text.encode())
    if sentence is None:  # what the models write is short enough, or it is said that it isn't
        assert found.opens and len(found.findings) <= 1
        return
    assert any(pytest_match(sentence, str(finding)) for finding in found.findings), found
    assert not found.problem and len(str(found.findings)) < 5_000
    assert found.opens == (what == "a prompt of its own size"), "a lesson with one number missing can be shown"


def pytest_match(sentence, text):
    return any(part in text for part in sentence.split("|"))


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_no_lesson_are_refused_before_anything_runs(what, monkeypatch):
    monkeypatch.setattr(lesson_upload, "answer_of", None)
    content, sentence = FILES[what]
    found = lesson_upload.checked(content)
    assert sentence in found.problem and not found.opens and not found.text


def test_a_lesson_is_checked_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(lesson_upload, "DEADLINE", 500.0)  # a busy machine starts processes slowly
    broken = SAMPLE.replace("model=stories", "model=storys")
    found = lesson_upload.checked(broken.replace("\n", "\r\n").encode())
    assert any("write “stories”" in finding.what for finding in found.findings) and found.text == broken


def test_what_takes_too_long_or_too_much_is_a_sentence(in_this_process, monkeypatch):
    found = lesson_upload.checked(HEAVY.encode(), seconds=1)
    assert any("the models need more than 1 seconds" in finding.what for finding in found.findings) and not found.opens
    monkeypatch.setattr(lesson_upload, "SECONDS_TO_READ", -1)
    found = lesson_upload.checked(SHORT.encode())
    assert "reading this file alone takes" in str(found.findings[0]) and not found.opens

    def ended(*_, **__):
        raise ProgramError("it takes too much memory")

    monkeypatch.setattr(lesson_upload, "answer_of", ended)
    found = lesson_upload.checked(SHORT.encode())
    assert found.problem.startswith("This lesson can't be opened: it takes too much memory. Ask the models for less")
    assert not found.opens and not found.text


def test_words_that_come_to_too_much_are_not_shown():
    words = own_lessons.own_lesson(
        f'{HEADER}## A\n{"{w}" * 190}\n```measure\n[w]\nwhat = "token_at"\nposition = 0\n```'
    )
    with pytest.raises(ValueError, match="more than 50,000 characters"):
        words.steps[0].words.filled({"w": "a" * 1_000}, str)


def test_nothing_in_a_lesson_becomes_an_element():
    printed = handout(own_lessons.own_lesson(SHORT))
    assert "<script>" not in printed and "href" not in printed and "&lt;script&gt;" in printed


def test_it_opens_with_its_steps_for_its_session_alone_and_outlives_a_reload(learn):
    at = teacher()
    assert at.main.header[0].value == "One" and link_of(at)["lesson"] == NAME
    assert not any(each.allow_html for each in at.main.markdown if "script" in each.value)
    at = click(answer(at, 0), "learn_next")
    at = click(at, "learn_next")
    assert "Your own lesson" in " ".join(each.value for each in at.main.markdown) and has(at, f"lesson_{NAME}")

    other = start("Learn", lesson=NAME, lesson_step=1)
    assert "was uploaded, and is shown to its teacher and in a room alone" in said(other)
    assert not has(other, f"lesson_{NAME}")

    again = start("Learn", lesson=NAME, lesson_step=0)
    again = tell_page(again, "headsup_session_token", "found", kept(at, "session_token")["value"])
    assert again.main.header[0].value == "One" and "Correct" in f"{said(again)} {again.main.success}"

    listed = click(again, "learn_list")
    listed = click(listed, "lesson_remove")
    assert not has(listed, f"lesson_{NAME}")


def test_it_outlives_its_server_where_there_is_a_redis(learn, monkeypatch, tmp_path):
    with RedisServer(tmp_path) as redis:
        monkeypatch.setenv("HEADSUP_REDIS", redis.address)
        tab = kept(teacher(), "session_token")["value"]
        session_store.session_store.clear()  # what the killed server had

        again = start("Learn", lesson=NAME, lesson_step=1)
        assert not has(again, "learn_next")
        again = tell_page(again, "headsup_session_token", "found", tab)
        assert again.main.header[0].value == "Two", "at the step where it was"
        third = tell_page(start("Learn", lesson=NAME), "headsup_session_token", "found", f"{'0' * 32}")
        assert not has(third, "learn_next"), "a token that can't be guessed has it, and no other"
        redis.kill()
        upload(start("Learn", lesson="for-teachers"), SHORT)  # goes on without it


def test_a_file_that_cannot_be_opened_leaves_the_lesson_before_it(learn):
    at = click(teacher(), "learn_list")
    at = upload(click(at, "for_teachers"), HOSTILE["thousands of steps"][0])
    assert "a lesson has 1 to 40 steps" in said(at) and not has(at, "open_own_lesson")
    assert has(click(at, "teachers_back"), f"lesson_{NAME}")


def test_a_room_has_its_teacher_s_lesson_which_students_follow_and_vote_on(learn):
    at = click(teacher(), "room_open")
    code, key = at.session_state["room_membership"][:2]
    student = tell_page(start("Learn", room=code), "headsup_room_membership", "found", "")
    assert student.main.header[0].value == "One"
    student = answer(student, 0)
    at = click(checked(at.run()), "room_reveal")
    assert "Correct" in f"{said(checked(student.run()))} {student.main.success}"

    click(at, "room_free")
    student = click(checked(student.run()), "learn_list")
    assert "Your teacher's own lesson" in " ".join(each.value for each in student.main.markdown)
    assert has(student, f"lesson_{NAME}") and not has(student, "lesson_remove")

    back = start("Learn", room=code, room_key=key)  # by the private link, elsewhere
    assert checked(back.run()) and visitor_lessons.name_of(rooms.all_rooms().lesson(code, key)) == NAME
    assert has(back, f"lesson_{NAME}") or back.main.header[0].value == "One"

    student = click(student, "room_leave")
    assert not has(student, f"lesson_{NAME}"), "it goes with the room"
    assert button(student, "for_teachers")


def test_the_course_s_own_words_are_far_from_the_limits():
    for lesson in lesson_files.available_lessons():
        for step in lesson.steps:
            assert sum(not isinstance(part, str) for part in step.words.parts) < 100
