"""Tests the page Learn: answers before results, saved and restored views, kept answers."""

import shutil

import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as some

from pages.ui.lessons import lesson_files
from pages.ui.session.lesson_answers import MAX_CHARACTERS, Answers, Response, StepId, from_text
from pages.ui.session.session_store import SessionStore
from pages.ui.views.learn.lesson_list import COLUMNS, results_csv
from tests import app_driver as app
from tests import learn_page as learning
from tests.app_driver import checked, go, link_of, markdown_with, named, prompt, sentence, start, told_of, type_prompt
from tests.learn_page import CHOOSE, LESSON, NUMBER, ORDER, TOKEN, button, captions, click, has, offers, open_step, said

PROMPT = "kR7wZq3xB kR7wZ"
PARTS = ["q · k", "÷ √d_head", "mask", "softmax"]


@pytest.fixture(autouse=True)
def learn(monkeypatch, quick_app_test):
    monkeypatch.setattr(lesson_files, "FOLDER", learning.SAMPLES)


def shown(at):
    """The page whose view is on screen, and has a place there; none before the answer."""
    assert bool(app.components(at, "headsup_step_view")) == bool(told_of(at)["view"])
    return told_of(at)["view"]


def own_answers(at):
    return at.session_state["session_record"].answers


def test_a_lesson_from_the_list_to_its_end_tells_no_answer_before_there_is_one():
    at = start("Learn", prompt="KING:\nAye")
    assert learning.cards(at)[LESSON]["title"] == "1. Every kind of question"
    assert "A lesson can't be used. 02-broken.md, line 6: a question's kind is one of choose" in said(at)
    at = click(at, "learn_go_on")
    assert link_of(at)["lesson"] == LESSON and "step 1 of 6" in sentence(at)
    assert told_of(at)["is_bare"] and told_of(at)["is_linked"]
    own, store = at.session_state["session_record"], SessionStore()
    assert not own.is_empty and own.saved_view["prompt"] == "KING:\nAye"
    store.put(own)  # where a reloaded tab finds it
    assert store.claim(own.token).answers.last == StepId(LESSON, 0)

    at = click(at, "learn_next")
    assert offers(at) == ["Answer", "Discuss first"] and "You can continue without an answer" in captions(at)
    assert "are left" not in said(at) and "Correct" not in said(at)
    at = learning.answer(at, 0)
    wrong = "Your answer: “As before”. Correct: “Hardly”."
    assert wrong in said(at) and "without an answer" not in captions(at)
    assert "Without it, 6.4% are left." in said(at) and "Silence another one." in said(at)
    at = click(at, "learn_next", "learn_previous")
    assert wrong in said(at) and not offers(at), "an answer stays"

    at = click(at, "learn_next")
    assert "Your answer: 3 nats. Correct: 3.06 nats, close enough." in said(learning.answer(at, 3.0))
    at = click(at, "learn_next")
    assert not shown(at), "the picture would tell"
    assert learning.step_of(at)[0]["question"]["options"][:4] == ["k", "R", "7", "w"]
    at = click(at, "learn_next")
    for wrong in ([1], [-1, 0], ["x", 0], [10_000, 0]):
        at = learning.tell_answer(at, first=wrong, second=None, discussing=False)
        assert offers(at) == ["Answer", "Discuss first"], "the browser may say anything"
    assert "Correct: w (13) looks at Z (4)." in said(learning.answer(at, [13, 4]))
    at = click(at, "learn_next")
    items = learning.step_of(at)[0]["question"]["options"]
    at = learning.answer(at, [items.index(each) for each in PARTS])
    assert items != PARTS and f"Correct: {' → '.join(PARTS)}." in said(at)

    markdown_with(at, "**You can now**\n\n- ")
    markdown_with(at, "1 question is still open.")
    at = click(at, "lesson_skipped")
    assert link_of(at)["lesson_step"] == str(TOKEN)
    at = learning.answer(at, 4)
    assert "Your answer: Z at position 4. Correct: q at position 5." in said(at)
    assert shown(at) == "Attention"
    at = click(at, "learn_next", "learn_next")
    assert not has(at, "lesson_skipped")
    at = click(at, "learn_next")
    assert learning.cards(at)[LESSON]["isDone"] and not has(at, "learn_go_on")

    (saved,) = [each for each in at.get("download_button") if each.proto.label == "Download my results"]
    rows = learning.rows_of(results_csv(own.answers, [lesson_files.lesson(LESSON)]))
    assert not saved.proto.disabled and list(rows[0]) == list(COLUMNS)
    assert [(row["first answer"], row["first is right"]) for row in rows[:3]] == [
        ("As before", "no"),
        ("3 nats", "yes"),
        ("Z at position 4", "no"),
    ]
    at = click(at, f"forget_{LESSON}")
    assert not own.answers.responses and button(at, "learn_go_on").label == "Continue with lesson 1"


def test_before_the_answer_the_view_stays_as_the_step_shows_it_and_a_link_tells_answers_only_if_asked():
    at = open_step(CHOOSE, model="induction", prompt="kR7wZ")
    assert prompt(at) == PROMPT and shown(at) == "Attention" and told_of(at)["is_fixed"]
    assert "Answer first: model, prompt and changes are fixed until then." in said(at)
    at = learning.answer(at, 1)
    assert "Correct: “Hardly”." in said(at) and not told_of(at)["is_fixed"]
    at = type_prompt(at, "kR7wZkR7wZ")
    link = link_of(at)
    assert prompt(at) == "kR7wZkR7wZ" == link["prompt"] and "answers" not in link and link["lesson_step"] == "1"
    alone = start("Learn", lesson=LESSON, lesson_step="1")  # brings no view, so the step's is shown
    assert prompt(alone) == PROMPT and "Answer first" not in said(alone)
    other = start("Learn", **link)  # carries the step and the view, and no answer
    assert "step 2 of 6" in sentence(other) and offers(other) == ["Answer", "Discuss first"]
    at = click(at, "lesson_reset")
    assert prompt(at) == PROMPT
    at = checked(named(click(at, "learn_list").main.checkbox, "Put my answers into the link").check().run())
    answers = link_of(checked(at.run()))["answers"]
    assert answers == f"{LESSON}~1~1"
    other = open_step(CHOOSE, answers=answers)
    assert "Correct: “Hardly”." in said(other) and "The answers in this link were added" in said(other)


def test_an_answer_that_was_talked_over_can_be_changed_once():
    at = learning.answer(open_step(CHOOSE), 0, "Discuss first")
    assert "Your answer:" not in said(at) and "Compare reasons with somebody" in said(at)
    at = learning.answer(at, 1)
    assert "Correct: “As before”, then “Hardly”." in said(at)
    for change in (0, 1):  # which no button offers
        at = learning.tell_answer(at, first=change, second=None, discussing=False)
        assert "Correct: “As before”, then “Hardly”." in said(at)
    kept = learning.answer(learning.answer(open_step(CHOOSE), 0, "Discuss first"), None, "Keep my answer")
    assert "Your answer: “As before”. Correct: “Hardly”." in said(kept)


def test_a_lesson_whose_model_is_gone_says_what_it_cant_do(folder):
    gone = "there is no model “induction” here"
    for number in range(CHOOSE, ORDER + 1):
        at = open_step(number)
        assert "Answer first" not in said(at)
        if number == NUMBER:
            later = f"The correct one can't be computed: loss can't be measured: {gone}"
            assert later in said(learning.answer(at, 3.0))
        elif number != ORDER:
            assert gone in said(at)
    st.cache_resource.clear()


def test_a_visitor_finds_their_own_view_again_and_can_take_the_lesson_s_along():
    at = start(prompt="KING:\nAye", temperature=1.5)
    before = link_of(app.look_at(at, written="3.7", layer=1, head=0))  # of which Python draws nothing
    at = click(go(at, "Learn"), "learn_go_on", "learn_next")
    assert prompt(at) == PROMPT and link_of(at)["model"] == "induction" and "written" not in link_of(at)
    at = go(at, "Generate")
    assert before.items() <= link_of(at).items()
    at = go(at, "Learn")
    assert link_of(at)["lesson_step"] == "1" and prompt(at) == PROMPT
    at = learning.answer(at, 1)
    button(at, "lesson_open").click()  # which counts though it comes in one message with an event of the view
    at = go(app.look_at(at, head=1), "Attention")
    assert prompt(at) == PROMPT and link_of(at)["head"] == "1"
    at = click(at, "give_back")
    assert prompt(at) == "KING:\nAye" and not has(at, "give_back")
    at = app.tell_page(go(at, "Learn"), "headsup_shell", "navigate", "Inside")
    assert told_of(at)["page"]["title"] == "Inside" and prompt(at) == PROMPT
    at = click(go(at, "Learn"), "learn_list")
    assert before.items() <= link_of(at).items()


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"lesson": "../../etc/passwd"}, "There is no lesson “../../etc/passwd” here"),
        ({"lesson": "02-broken"}, "There is no lesson “02-broken” here"),
        ({"lesson": LESSON, "lesson_step": "77"}, "This lesson has 6 steps; the last one is shown."),
        ({"lesson": LESSON, "answers": f"{LESSON}~1~[[[["}, "answers are numbers"),
        ({"lesson": LESSON, "answers": "x" * (MAX_CHARACTERS + 1)}, "answers have at most 4,000 characters"),
    ],
)
def test_a_link_that_cant_be_followed_says_why(link, words):
    assert words in said(start("Learn", **link))


@pytest.mark.parametrize("answers", ["99 [1,2] 99999 99 [1,2]", "-3 1e8 0.5 [1,2,3] 0.5"])
def test_an_answer_of_a_link_that_fits_no_question_is_left_out(answers):
    text = "!".join(f"{LESSON}~{number}~{each}" for number, each in enumerate(answers.split(), 1))
    assert not own_answers(open_step(CHOOSE, answers=f"{text}!{LESSON}~0~1!{LESSON}~99~1")).responses


def test_after_a_lesson_the_next_one_is_offered_there_and_in_the_list(monkeypatch, tmp_path):
    for name in ("01-every-kind.md", "02-again.md"):
        shutil.copy(learning.SAMPLES / "01-every-kind.md", tmp_path / name)
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path)
    assert link_of(click(open_step(ORDER), "learn_next"))["lesson"] == "02-again"
    at = open_step(ORDER)
    own = own_answers(at)
    own.opened[LESSON] = {*range(6)}
    own.responses |= {StepId(LESSON, number): Response(1) for number in range(1, 6)}
    at = click(at, "learn_list")
    assert button(at, "learn_go_on").label == "Continue with lesson 2"
    assert link_of(click(at, "learn_go_on"))["lesson"] == "02-again"


@given(some.lists(some.integers(0, 99) | some.floats(0, 1) | some.permutations(range(4)), max_size=5))
def test_a_link_brings_the_answers_that_it_was_made_of(answers):
    own = Answers()
    for number, each in enumerate(answers):
        own.responses[StepId("04-a-lesson", number)] = Response(each, 2 if number == 0 else None)
    found = from_text(own.as_text())
    assert [(key, each.first, each.second) for key, each in found.items()] == [
        (key, each.first, each.second) for key, each in own.responses.items()
    ]
    own.responses |= {StepId("04-a-lesson", number): Response(number) for number in range(900)}
    found = from_text(own.as_text())
    assert len(own.as_text()) <= MAX_CHARACTERS and StepId("04-a-lesson", 899) in found, "of too many the latest"
