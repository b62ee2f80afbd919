"""Opens the page Learn in tests, on a lesson with every kind of question, and answers them."""

import csv
import io
import json
import re
import secrets
from html import unescape
from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient

from pages.ui.lessons import rooms
from pages.ui.lessons.room_events import HEADER, RoomEvents
from pages.ui.views.learn import room_api
from tests import app_driver
from tests.app_driver import checked, component, components, start, tell_page
from tests.frontend_calls import frontend

SAMPLES = Path(__file__).with_name("lessons")
LESSON = "01-every-kind"
STEP = "lessons/step.js"
CHOOSE, NUMBER, TOKEN, CELL, ORDER = range(1, 6)


def forget_rooms():
    """No room is open, and nobody has tried a code."""
    rooms.all_rooms.cache_clear()
    room_api.attempts.cache_clear()


def rooms_client():
    """A browser that asks the API of rooms, as beside the app."""
    everywhere = rooms.all_rooms
    return TestClient(room_api.app_of(everywhere, RoomEvents(everywhere)))


def join(code, key="", browser=None):
    """What the API answers to a browser that joins a room, which is another one each time."""
    body, headers = {"browser": browser or secrets.token_hex(16)}, {HEADER: key} if key else {}
    return rooms_client().post(f"/{quote(code)}/members", headers=headers, json=body)


def tab_has(at, kept="", browser=None):
    """The script of a tab's membership does what the page asks for: tells what the tab kept before it was reloaded, or
    joins the room that a link or the visitor names."""
    told = json.loads(component(at, "headsup_room_membership").json)
    try:
        code, key, is_teacher = json.loads(kept)
    except ValueError:
        code, key, is_teacher = "", "", True
    if told["joins"] or not code:
        code, key, is_teacher = (told["joins"] or {"code": told["link"]})["code"], "", False
    if not code or is_teacher:
        return tell_page(at, "headsup_room_membership", "found", {"membership": kept, "problem": ""})
    response = join(code, key, browser)
    answer, found = response.json(), {"membership": "", "problem": ""}
    if response.status_code == 200:
        found["membership"] = json.dumps([answer["code"], answer["key"], False])
    elif response.status_code == 503 and key:
        found["membership"] = json.dumps([code, key, False])
    else:
        found["problem"] = answer["error"]
    return tell_page(at, "headsup_room_membership", "found", found)


def student(code, browser=None):
    return tab_has(start("Learn", room=code.lower()), "", browser)


def drawn(at, part="line"):
    """What the page tells the browser of a part of a student's room; nothing where it draws none."""
    told = [json.loads(each.json) for each in components(at, "headsup_room")]
    return next((each for each in told if each["part"] == part), {})


def ask(at, method="GET", path="", **more):
    """What a student's browser asks of the room."""
    own = drawn(at)["membership"]
    return rooms_client().request(method, f"/{own['code']}{path}", headers={HEADER: own["key"]}, **more)


def seen(at):
    """What the API tells a student's browser."""
    step = drawn(at)["step"]
    response = ask(at, params={"lesson": step[0], "step": step[1]} if step else None)
    assert response.status_code == 200, response.text
    return response.json()


def vote(at, answer):
    """A student's browser votes on the step on screen; returns the status."""
    lesson, step = drawn(at)["step"]
    return ask(at, "POST", "/votes", json={"lesson": lesson, "step": step, "answer": answer}).status_code


def leave(at):
    """Press *Leave the room*, which is the browser's."""
    ask(at, "DELETE", "/members")
    return tell_page(at, "headsup_room", "left", True, 0)


def cards(at):
    """The lessons that are listed, by name."""
    return {card["name"]: card for card in json.loads(component(at, "headsup_lesson_list").json)["cards"]}


def open_lesson(at, name):
    return tell_page(at, "headsup_lesson_list", "opened", name)


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
