"""Tests the HTML of Markdown and formulas, handouts, and the page for teachers."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import read_lesson
from pages.ui.printable_html import ATTRIBUTES, as_html, document, formula, inline
from pages.ui.views.learn.handout import handout
from pages.ui.views.learn.teachers_page import GUIDE, sheet
from tests.app_driver import markdown_with, named, start

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
        (
            r"$\frac{1}{i}$",
            '<p><math display="inline"><mrow><mfrac><mrow><mn>1</mn></mrow><mrow><mi>i',
        ),
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
    return handout(lesson).split('<h1 class="new-page">')


def test_what_is_right_stands_at_the_end_of_a_handout_and_nowhere_before():
    asked, told = sheets(read_lesson("small", LESSON))
    assert "Sure &lt;i&gt;indeed&lt;/i&gt;" in asked and "Not at all" in asked and "It says 99.95%." in asked
    assert "At place 5." in told and "At place 5." not in asked
    assert "Not at all" not in told and told.count("<svg") == 2, "the same picture isn't drawn twice"
    first, second, third = (part for part in asked.split('<section class="part">') if "<h2>" in part)
    assert "fold the sheet here" in first and "fold the sheet here" in second and "fold the sheet" not in third
    assert "<svg" not in first + second and "<code>R</code>" in second
    assert re.findall(r'<rect[^>]* fill="(.*?)"', third) == ["#ffffff"] * 6, "an empty picture, to be marked"
    (seen,) = {svg.count("<rect") for svg in re.findall("<svg.*?</svg>", told)[:1]}
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
    assert lessons[0].steps[0].title in [each.value for each in at.header]
    at = named(at.button, "All lessons").click().run()
    assert named(at.button, "For teachers").click().run() and markdown_with(at, "Forty-five minutes")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sum(int(minutes) for minutes, _ in rows) == 45
    planned = {title for _, what in rows for title in re.findall(r"\*([A-Z][^*]+)\*", what)}
    assert planned and planned <= {each.title for each in lessons}
    page = sheet(lessons)
    assert all(f"<h2>{inline(lesson.title)}</h2>" in page for lesson in lessons)
    assert page.count("The surprise.") == len(lessons) and "<script" not in page
