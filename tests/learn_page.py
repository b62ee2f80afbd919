"""Opens the page Learn in tests, on a lesson with every kind of question, and answers them."""

import csv
import io
from pathlib import Path
from types import SimpleNamespace

import streamlit as st

from pages.ui.lessons import rooms
from pages.ui.views.learn import room_membership
from tests import app_driver
from tests.app_driver import checked, named, start, tell

SAMPLES = Path(__file__).with_name("lessons")
LESSON = "01-every-kind"
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


def choose(at, option):
    (radio,) = at.main.radio
    return checked(radio.set_value(option).run())


def answer(at, option):
    return click(choose(at, option), "lesson_answer")


def slide(at, value):
    (slider,) = at.main.slider
    return click(checked(slider.set_value(value).run()), "lesson_answer")


def pick_token(at, pos):
    pills = named(at.main.get("button_group"), "Choose a token. The small number is its position.")
    return click(checked(pills.set_value(pos).run()), "lesson_answer")


def tell_answer(at, name, value):
    """What a component of the question reports, and the run of the page that follows."""
    return checked(tell(at, name, "chosen", value).run())


def said(at):
    """Whatever the page says in a box, without what keeps Markdown away."""
    return f"{app_driver.said(at)} {' '.join(box.value for box in at.success)}"


def captions(at):
    return " ".join(each.value for each in at.caption)


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"))))
