"""Opens the page Learn in tests, on a lesson with every kind of question, and answers them."""

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import streamlit as st

from pages.ui.lessons import rooms
from pages.ui.views.learn import room_membership
from tests import app_driver
from tests.app_driver import checked, components, start, tell_page
from tests.frontend_calls import frontend

SAMPLES = Path(__file__).with_name("lessons")
LESSON = "01-every-kind"
STEP = "lessons/step.js"
CHOOSE, NUMBER, TOKEN, CELL, ORDER = range(1, 6)


def forget_rooms(monkeypatch):
    """No room is open, nobody has tried a code, and visitors are told apart by their sessions alone."""
    rooms.all_rooms.cache_clear()
    room_membership.attempts.cache_clear()
    context = SimpleNamespace(cookies={}, ip_address=None, headers=SimpleNamespace(get_all=lambda name: []), url="")
    monkeypatch.setattr(room_membership, "st", SimpleNamespace(context=context, session_state=st.session_state))


def open_step(number, **more):
    return start("Learn", lesson=LESSON, lesson_step=number, **more)


def button(at, key):
    (found,) = [each for each in at.button if each.key == key]
    return found


def has(at, key):
    return any(each.key == key for each in at.button)


def click(at, *keys):
    for key in keys:
        at = checked(button(at, key).click().run())
    return at


def step_of(at):
    """The step's document, and the state that the visitor is in."""
    told = [json.loads(each.json) for each in components(at, "headsup_lesson_step")]
    return told[0]["step"], told[0]["state"]


def reads(at, *, changing=False):
    """All that a student reads of the step, as the browser draws it."""
    step, state = step_of(at)
    question = step["question"] or {"text": "", "options": [], "problem": ""}
    shown = [step["title"], step["words"], question["problem"] or question["text"], *question["options"]]
    shown.append(frontend(STEP, "said", step, state, changing)["sentence"])
    if frontend(STEP, "stateOf", step, state, changing)["isRevealed"]:
        shown += [step["reveal"], step["problems"], step["toTry"]]
    return unescape(re.sub("<[^>]+>", "", " ".join(shown)))


def offers(at, *, changing=False):
    """The labels of the buttons below the question."""
    return [each["label"] for each in frontend(STEP, "buttonsOf", *step_of(at), changing)]


def answer(at, draft, label="Answer", *, changing=False):
    """Press a button below the question, with what has been put in; changing: after *Change my answer*."""
    _, state = step_of(at)
    again = label if label != "Answer" or not state["answered"] else "Answer again"
    assert again in offers(at, changing=changing)
    draft = state["answered"]["first"] if label == "Keep my answer" else draft
    how = {"discusses": label == "Discuss first", "isChange": changing, "isSecond": state["phase"] == "second"}
    return tell_answer(at, **frontend("lessons/questions.js", "withAnswer", state["answered"], draft, how))


def tell_answer(at, **answered):
    """What a browser says that was answered, and the run of the page that follows."""
    return checked(tell_page(at, "headsup_lesson_step", "answered", {"id": step_of(at)[1]["id"], **answered}, 0).run())


def said(at):
    """Whatever the page says in a box, or of an answer, without what keeps Markdown away."""
    told = reads(at) if components(at, "headsup_lesson_step") else ""
    return f"{app_driver.said(at)} {told} {' '.join(box.value for box in at.success)}"


def captions(at):
    return " ".join(each.value for each in at.caption)


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"))))
