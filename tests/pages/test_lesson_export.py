"""Tests lessons as one HTML file, and the still pictures of views that such a page doesn't compute."""

import json
import re
from dataclasses import replace

import pytest

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, View, read_lesson
from pages.ui.lessons.measure_setup import DEFAULT_MODEL
from pages.ui.views.learn import site_lessons
from pages.ui.views.learn.site_lessons import as_data, file_bytes, lesson_file, lesson_named, on_site, too_large
from pages.ui.views.learn.still_view import still_view
from tests.app_driver import start
from tests.pages.test_handouts import LESSON, Elements

SHORT = "06-queries-keys-values"


def held(page):
    """The lesson that a file holds, and the models."""
    about = re.search(r'<script type="application/json" data-part="about">(.*?)</script>', page, re.DOTALL)
    assert about
    return json.loads(about[1])["lesson"], re.findall(r'id="model-([\w-]+)"', page)


def test_a_file_holds_the_lesson_with_its_models_and_its_size_is_known_before(quick_app_test):
    lesson = lesson_named(SHORT)
    page = lesson_file(lesson)
    data, models = held(page)
    assert [step["title"] for step in data["steps"]] == [step["title"] for step in as_data(lesson)["steps"]]
    assert "stories" in models and "note" not in data
    assert file_bytes(lesson) == pytest.approx(len(page.encode()), rel=0.2)
    at = start("Learn", lesson=SHORT, lesson_step=len(lesson.steps) - 1)
    labels = [each.proto.label for each in at.get("download_button")]
    assert labels[0] == "Download the handout"
    assert re.fullmatch(r"This lesson as one file \(1\.\d MB\)", labels[1])


def test_where_its_models_would_make_it_too_large_it_says_so_and_has_pictures(monkeypatch):
    lesson = lesson_named(SHORT)
    monkeypatch.setattr(site_lessons, "MOST_OF_FILE", 750_000)
    assert "this lesson would take 1." in (too_large(lesson) or "")
    page = lesson_file(lesson)
    data, models = held(page)
    assert data["note"] == too_large(lesson) and models == []
    assert all("<img" in step["view"]["picture"] or "<svg" in step["view"]["picture"] for step in data["steps"])
    assert file_bytes(lesson) == pytest.approx(len(page.encode()), rel=0.3)


def test_every_view_of_the_course_is_live_or_a_picture():
    views = [
        (lesson.name, step.view)
        for lesson in lesson_files.all_lessons()
        if isinstance(lesson, Lesson) and not lesson.needs
        for step in lesson.steps
        if step.view and not step.view.needs
    ]
    assert len({view.page for _, view in views}) == 7
    for name, view in views:
        assert site_lessons.is_live(view) or re.search("<svg|<img|<table", still_view(view)), (name, view)


def test_a_picture_of_what_isn_t_there_is_left_out_and_no_text_becomes_an_element():
    for link in ("model=nothing", "model=induction&prompt=a&layer=9", "model=induction&prompt=ñandú"):
        assert still_view(View("Attention", link, "before")) == ""
    drawn = still_view(View("What if", "model=shakespeare&prompt=%26amp%3B&changes=without~mask~", "before"))
    found = Elements(drawn)
    assert "&amp;" in found.text and "img" not in {tag for tag, _ in found.found}


def test_a_lesson_of_one_s_own_goes_into_a_file():
    data, models = held(lesson_file(read_lesson("own", LESSON)))
    assert data["name"] == "own" and models == ["induction"]
    assert "<script>" not in data["steps"][0]["words"]
    assert [step["question"]["right"] for step in data["steps"]] == [0, [5], [2, 0]]
    assert data["steps"][1]["question"]["options"][5] == "<code>q</code>"
    assert data["steps"][2]["question"]["options"]["key"] == [["0: k", 0], ["1: R", 1], ["2: 7", 2]]


def test_a_site_shows_pictures_of_a_model_that_it_lacks_and_without_these_says_what_is_needed():
    lesson = replace(lesson_named(SHORT), needs="stories", get="See *The models*.")
    live, pictures = (on_site(lesson, models) for models in (["stories", DEFAULT_MODEL], [DEFAULT_MODEL]))
    of_views = [[step["view"]["picture"] for step in data["steps"] if step["view"]] for data in (live, pictures)]
    assert set(of_views[0]) == {None} and all("<svg" in picture for picture in of_views[1])
    assert "note" not in live and "“stories” isn't on this site" in pictures["note"]
    listed = on_site(replace(lesson, needs="away"), ["stories"])
    assert listed["steps"] == [] and "“away”, which isn't on this site" in listed["note"]
    assert listed["title"] == live["title"] and listed["note"].endswith("See <em>The models</em>.")
