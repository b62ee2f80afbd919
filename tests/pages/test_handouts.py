"""Tests what is made of lessons: HTML, handouts, files of one lesson, pictures of views, the page for teachers."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, View, read_lesson
from pages.ui.lessons.measure_setup import DEFAULT_MODEL
from pages.ui.printable_html import ATTRIBUTES, as_html, document, formula, inline
from pages.ui.views.learn import site_lessons
from pages.ui.views.learn.site_lessons import (
    file_bytes,
    handout_document,
    lesson_file,
    lesson_named,
    on_site,
    site_document,
    too_large,
)
from pages.ui.views.learn.still_view import still_view
from pages.ui.views.learn.teachers_page import GUIDE, sheet
from tests import learn_page as learning
from tests.app_driver import markdown_with, named, start
from tests.frontend_calls import frontend

ELEMENTS = {*re.findall(r"\w+", "p br ul ol li pre code strong em h1 h2 h3 h4 h5 h6 table thead tbody tr td th")}
ELEMENTS |= {
    *re.findall(r"\w+", "math mrow mi mn mo mtext mspace mfrac msqrt msub msup msubsup munder mover munderover")
}
SIGNS = [*"ab <>&\"'`*$_^{}\\|#-\n 1.", "frac", "sum", "<script>", "<img src="]
TEX = [*r"ab1+-_^{}\<&", r"\frac", r"\sqrt", r"\text{", r"\sum"]


class Elements(HTMLParser):
    """Every element, in the order in which they begin."""

    def __init__(self, html):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold *and* `x<y`**,\nb", "<p><strong>bold <em>and</em> <code>x&lt;y</code></strong>,\nb</p>"),
        ("- a\n- b\n  more\n\nAnd:\n\n    c", "<ul>\n<li>a</li>\n<li>b\nmore</li>\n</ul>\n<p>And:</p>\n<pre><code>c\n"),
        ("## Two\n| a | b |\n| --- | --- |\n| 1 | *2* |", "<h2>Two</h2>\n<table>"),
        ("1. one\n2. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>"),
        ("It costs $5 or $\n", "<p>It costs $5 or $</p>"),
        ("$x$ and $$y$$", '<p><math display="inline">'),
        (r"$\frac{1}{i}$", '<p><math display="inline"><mrow><mfrac><mrow><mn>1</mn></mrow><mrow><mi>i'),
        (r"$v_j^2$", '<p><math display="inline"><mrow><msubsup>'),
        (r"$$\sum_{j=0}^{i} x$$", '<math display="block"><mrow><munderover>'),
        (r"$\text{what came}$", '<p><math display="inline"><mrow><mtext>what\u00a0came</mtext>'),
    ],
)
def test_a_lesson_s_markdown_is_what_it_says(markdown, html):
    assert as_html(markdown).startswith(html)


@given(st.lists(st.sampled_from(SIGNS), max_size=60).map("".join))
@example(r"$\href{javascript:alert(1)}{x}$ $\style{color:red}{x}$ $\text{<img src=x>}$")
def test_no_text_becomes_another_element_or_an_attribute(text):
    for tag, attributes in Elements(as_html(text) + inline(text)).found:
        assert tag in ELEMENTS and attributes.keys() <= ATTRIBUTES


@given(st.lists(st.sampled_from(TEX), max_size=40).map("".join))
def test_a_formula_is_well_formed_and_what_is_none_is_shown_as_it_is(tex):
    ElementTree.fromstring(formula(tex))
    for wrong in (r"\unknown", "{", "}", "a_", "^", "{" * 500 + "}" * 500):
        assert "".join(ElementTree.fromstring(formula(wrong)).itertext()) == wrong


def test_every_formula_of_the_course_is_drawn_and_a_page_loads_nothing():
    for path in lesson_files.FOLDER.glob("*.md"):
        for block, inside in re.findall(r"\$\$([^$]+)\$\$|\$([^$\n]+)\$", path.read_text(encoding="utf-8")):
            tex = re.sub(r"\{\w+:[^{}]*\}", "1", block or inside)
            assert formula(tex).startswith("<math"), tex
    page = document("A & B", "<p>x</p>")
    assert "<title>A &amp; B</title>" in page and not re.search(r"<script|https?:|url\(|@import|<link", page)


VIEW = '```view\npage = "Attention"\nlink = "model=induction&prompt={prompt}&layer=1&head=1"\n{opened}\n```\n'
LESSON = f"""+++
title = "A <b>small</b> one"
aims = ["Say `one` thing"]
+++
## First <img src=x onerror=alert(1)>
It says {{sure:%}}. <script>alert(1)</script>
```measure
[sure]
what = "probability"
token = "q"
[place]
what = "heaviest_key"
layer = 1
head = 1
```
{VIEW.format(prompt="kR7wZq3xB+kR7wZ", opened='opened = "after"')}```question
kind = "choose"
text = "How sure?"
options = ["Sure <i>indeed</i>", "Not at all"]
right = ["sure > 0.5", "sure <= 0.5"]
```
```reveal
At place {{place}}.
```
## Second
{VIEW.format(prompt="kR7wZq3xB+kR7wZ", opened='opened = "after"')}```question
kind = "token"
text = "Where?"
right = "place"
```
## Third
```measure
[first]
what = "heaviest_key"
layer = 1
head = 1
query = 0
```
{VIEW.format(prompt="kR7", opened="")}```question
kind = "cell"
text = "Which cell?"
right = "[2, first]"
```
"""


def sheets(lesson):
    """What is asked, and what is told at the end."""
    return frontend("lessons/handout.js", "handout", handout_document(lesson)).split('<h1 class="new-page">')


def test_what_is_right_stands_at_the_end_of_a_handout_and_nowhere_before():
    asked, told = sheets(read_lesson("small", LESSON))
    assert "Sure &lt;i&gt;indeed&lt;/i&gt;" in asked and "Not at all" in asked and "It says 99.95%." in asked
    assert "At place 5." in told and "At place 5." not in asked
    assert "Not at all" not in told and told.count("<figure") == 2, "the same picture isn't drawn twice"
    first, second, third = (part for part in asked.split('<section class="part">') if "<h2>" in part)
    assert "fold the sheet here" in first and "fold the sheet here" in second and "fold the sheet" not in third
    assert "<figure" not in first + second and "<code>R</code>" in second
    assert third.count('<td class="cell"></td>') == 6, "an empty picture, to be marked"
    (seen,) = {figure.count('class="cell"') for figure in re.findall("<figure.*?</figure>", told)[:1]}
    assert seen == 15 * 16 / 2, "a cell for each weight that the mask leaves"
    assert "<code>7</code> (2) looks at <code>k</code> (0)" in told
    found = Elements(asked + told)
    assert not {"script", "img", "b", "i"} & {tag for tag, _ in found.found}
    assert "<script>alert(1)</script>" in found.text, "a lesson's text stays text"


def test_what_is_to_be_tried_stands_at_the_end_and_what_waits_for_the_visitor_says_so():
    asked, told = sheets(lesson_files.lesson("16-induction"))
    assert "Try it" in told and "Try it" not in asked
    assert (asked + told).count("This depends on your own training") == 1
    _, told = sheets(lesson_files.lesson("19-the-whole-pass"))
    assert told.count("<ol>") == 3 and "<li>look up an embedding for each token</li>" in told


def test_the_page_for_teachers_has_a_plan_and_every_lesson_and_leads_into_them_and_back(quick_app_test):
    lessons = lesson_files.all_lessons()
    at = start("Learn", lesson="for-teachers")
    assert markdown_with(at, "Forty-five minutes")
    assert [each.label.split(" · ")[0] for each in at.expander][: len(lessons)] == [each.title for each in lessons]
    at = at.button(key=f"teach_{lessons[0].name}").click().run()
    assert lessons[0].steps[0].title in learning.reads(at)
    at = named(at.button, "All lessons").click().run()
    assert named(at.button, "For teachers").click().run() and markdown_with(at, "Forty-five minutes")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sum(int(minutes) for minutes, _ in rows) == 45
    planned = {title for _, what in rows for title in re.findall(r"\*([A-Z][^*]+)\*", what)}
    assert planned and planned <= {each.title for each in lessons}
    page = sheet(lessons)
    assert all(f"<h2>{inline(lesson.title)}</h2>" in page for lesson in lessons)
    assert page.count("The surprise.") == len(lessons) and "<script" not in page


SHORT = "06-queries-keys-values"


def held(page):
    """The lesson that a file holds, and the models."""
    about = re.search(r'<script type="text/plain" id="about">(.*?)</script>', page, re.DOTALL)
    assert about
    return json.loads(about[1])["lesson"], re.findall(r'id="model-([\w-]+)"', page)


def test_a_file_holds_the_lesson_with_its_models_and_its_size_is_known_before(quick_app_test):
    lesson = lesson_named(SHORT)
    page = lesson_file(lesson)
    data, models = held(page)
    assert [step["title"] for step in data["steps"]] == [step["title"] for step in site_document(lesson)["steps"]]
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
    assert all("<figure" in step["view"]["picture"] for step in data["steps"])
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
        assert site_lessons.is_live(view) or "<figure" in still_view(view), (name, view)


def test_a_picture_of_what_isn_t_there_is_left_out_and_no_text_becomes_an_element():
    for link in ("model=nothing", "model=induction&prompt=a&layer=9", "model=induction&prompt=ñandú"):
        assert still_view(View("Attention", link, "before")) == ""
    found = Elements(still_view(View("Attention", "model=shakespeare&prompt=%26amp%3B&layer=0&head=0", "before")))
    assert "&amp;" in found.text and "img" not in {tag for tag, _ in found.found}


def test_a_lesson_of_one_s_own_goes_into_a_file():
    data, models = held(lesson_file(read_lesson("own", LESSON)))
    assert data["name"] == "own" and models == ["induction"]
    assert "<script>" not in data["steps"][0]["words"]
    for step in [*data["steps"], *site_document(lesson_named("16-induction"))["steps"]]:
        trains = step["view"] is not None and step["view"]["page"] == "Train"
        assert ("Nothing can be trained on this page" in step["words"]) == trains
        assert not trains or step["view"]["opened"] == "after", "what came of a training tells the answer"
    assert [step["question"]["right"] for step in data["steps"]] == [0, [5], [2, 0]]
    assert data["steps"][1]["question"]["options"][5] == "q"
    assert data["steps"][2]["question"]["picture"]["keys"] == ["k", "R", "7"]


def test_a_site_shows_pictures_of_a_model_that_it_lacks_and_without_these_says_what_is_needed():
    lesson = replace(lesson_named(SHORT), needs="stories", get="See *The models*.")
    live, pictures = (on_site(lesson, models) for models in (["stories", DEFAULT_MODEL], [DEFAULT_MODEL]))
    of_views = [[step["view"]["picture"] for step in data["steps"] if step["view"]] for data in (live, pictures)]
    assert set(of_views[0]) == {None} and all("<figure" in picture for picture in of_views[1])
    assert "note" not in live and "“stories” isn't on this site" in pictures["note"]
    listed = on_site(replace(lesson, needs="away"), ["stories"])
    assert listed["steps"] == [] and "“away”, which isn't on this site" in listed["note"]
    assert listed["title"] == live["title"] and listed["note"].endswith("See <em>The models</em>.")
