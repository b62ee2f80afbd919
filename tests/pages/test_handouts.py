"""Tests the HTML of Markdown and formulas, handouts, and the page for teachers."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import read_lesson
from pages.ui.printable_html import ATTRIBUTES, as_html, document, formula, inline
from pages.ui.views.learn.attention_svg import pattern_svg
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


class TestPaper:
    def test_a_lesson_s_markdown_is_what_it_says(self):
        assert as_html("One **bold *and slanted* `x<y`**,\ngoes on.\n\n- a\n- b\n  more\n\nAnd:\n\n    code") == (
            "<p>One <strong>bold <em>and slanted</em> <code>x&lt;y</code></strong>,\ngoes on.</p>\n"
            "<ul>\n<li>a</li>\n<li>b\nmore</li>\n</ul>\n<p>And:</p>\n<pre><code>code\n</code></pre>"
        )
        assert as_html("## Two\n| a | b |\n| --- | --- |\n| 1 | *2* |").startswith("<h2>Two</h2>\n<table>")
        assert as_html("1. one\n2. two") == "<ol>\n<li>one</li>\n<li>two</li>\n</ol>"
        assert inline("It costs $5 or $x$, and $$y$$.").count("<math") == 2

    @given(st.lists(st.sampled_from(SIGNS), max_size=60).map("".join))
    def test_no_text_becomes_another_element_or_an_attribute(self, text):
        for tag, attributes in Elements(as_html(text) + inline(text)).found:
            assert tag in ELEMENTS
            assert attributes.keys() <= ATTRIBUTES

    def test_a_page_loads_nothing(self):
        page = document("A & B", "<p>x</p>")
        assert "<title>A &amp; B</title>" in page
        assert not re.search(r"<script|https?:|url\(|@import|<link", page)


class TestFormulas:
    def test_fractions_sums_and_scripts_have_their_parts(self):
        found = ElementTree.fromstring(formula(r"z_i = \frac{1}{i+1}\sum_{j=0}^{i} v_j^2", block=True))
        assert found.get("display") == "block"
        assert [len(found.findall(f".//{name}")) for name in ("mfrac", "munderover", "msubsup", "msub")] == [1, 1, 1, 1]
        assert "".join(found.find(".//mfrac").itertext()) == "1i+1"

        assert "<mtext>what\u00a0came</mtext>" in formula(r"p(\text{what came})")

    def test_what_is_no_formula_is_shown_as_it_is(self):
        for tex in (r"\unknown", "{", "}", "a_", r"\unknown{1}", "^", "{" * 500 + "}" * 500):
            assert "".join(ElementTree.fromstring(formula(tex)).itertext()) in (tex, r"\unknown1")
        for tex in (r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\text{<img src=x>}"):
            for tag, attributes in Elements(formula(tex)).found:
                assert tag in ELEMENTS and attributes.keys() <= ATTRIBUTES, "no link, style or element"

    @given(st.lists(st.sampled_from(TEX), max_size=40).map("".join))
    def test_whatever_is_drawn_is_well_formed(self, tex):
        ElementTree.fromstring(formula(tex))

    def test_every_formula_of_the_course_is_drawn(self):
        for path in lesson_files.FOLDER.glob("*.md"):
            for block, inside in re.findall(r"\$\$([^$]+)\$\$|\$([^$\n]+)\$", path.read_text(encoding="utf-8")):
                tex = re.sub(r"\{\w+:[^{}]*\}", "1", block or inside)
                assert formula(tex).startswith("<math"), tex


LESSON = """+++
title = "A <b>small</b> one"
aims = ["Say `one` thing"]
+++
## First <img src=x onerror=alert(1)>
It says {sure:%}. <script>alert(1)</script>
```measure
[sure]
what = "probability"
token = "q"
[place]
what = "heaviest_key"
layer = 1
head = 1
```
```view
page = "Attention"
link = "model=induction&prompt=kR7wZq3xB+kR7wZ&layer=1&head=1"
opened = "after"
```
```question
kind = "choose"
text = "How sure?"
options = ["Sure <i>indeed</i>", "Not at all"]
right = ["sure > 0.5", "sure <= 0.5"]
```
```reveal
At place {place}.
```
## Second
```question
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
```view
page = "Attention"
link = "model=induction&prompt=kR7&layer=1&head=1"
```
```question
kind = "cell"
text = "Which cell?"
right = "[2, first]"
```
"""


def course(name=None):
    lessons = lesson_files.all_lessons()
    return next(each for each in lessons if each.name == name) if name else lessons


def sheets(lesson):
    """What is asked, and what is told at the end."""
    return handout(lesson).split('<h1 class="new-page">')


class TestHandout:
    def test_what_is_right_stands_at_the_end_and_nowhere_before(self):
        asked, told = sheets(read_lesson("small", LESSON))
        assert "Sure &lt;i&gt;indeed&lt;/i&gt;" in asked and "Not at all" in asked and "It says 99.95%." in asked
        assert "At place 5." in told and "At place 5." not in asked
        assert "Not at all" not in told and "<svg" in told and "<svg" not in asked[: asked.index("Third")]
        parts = [part for part in asked.split('<section class="part">') if "<h2>" in part]
        assert [re.findall(r"<h2>(\d)\.", part) for part in parts] == [["1"], ["2"], ["3"]]
        assert ["fold the sheet here" in part for part in parts] == [True, True, False]
        (svg,) = re.findall(r"<svg.*?</svg>", asked[asked.index("Third") :])
        cells = [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("rect")]
        assert len(cells) == 6 and {each.get("fill") for each in cells} == {"#ffffff"}, "an empty picture, to be marked"
        assert "<code>7</code> (2) looks at <code>k</code> (0)" in told
        found = Elements(asked + told)
        assert not {"script", "img", "b", "i"} & {tag for tag, _ in found.found}
        assert "<script>alert(1)</script>" in found.text, "a lesson's text stays text"

    def test_what_is_to_be_tried_stands_at_the_end_and_what_waits_for_the_visitor_says_so(self):
        asked, told = sheets(course("16-induction"))
        assert "Try it" in told and "Try it" not in asked
        assert (asked + told).count("This depends on your own training") == 1
        _, told = sheets(course("19-the-whole-pass"))
        assert told.count("<ol>") == 3 and "<li>look up an embedding for each token</li>" in told

    def test_a_picture_has_a_cell_for_each_weight_that_the_mask_leaves(self):
        weights = np.tril(np.full((3, 3), 0.5))
        cells = [
            each
            for each in ElementTree.fromstring(pattern_svg(weights, "a<c", "a<c", causal=True)).iter()
            if each.tag.endswith("rect")
        ]
        assert len(cells) == 6 and len({each.get("fill") for each in cells}) == 1


@pytest.mark.usefixtures("quick_app_test")
class TestTeachers:
    def test_the_page_has_a_plan_and_every_lesson_and_leads_into_them_and_back(self):
        at = start("Learn", lesson="for-teachers")
        assert markdown_with(at, "Forty-five minutes")
        lessons = course()
        assert [each.label.split(" · ")[0] for each in at.expander][: len(lessons)] == [each.title for each in lessons]
        (opened,) = [each for each in at.button if each.key == f"teach_{lessons[0].name}"]
        at = opened.click().run()
        assert lessons[0].steps[0].title in [each.value for each in at.header]
        at = named(at.button, "All lessons").click().run()
        assert named(at.button, "For teachers").click().run() and markdown_with(at, "Forty-five minutes")

    def test_the_plan_is_forty_five_minutes_of_lessons_that_there_are(self):
        guide = GUIDE.read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| (.*?) \|", guide, re.MULTILINE)
        assert sum(int(minutes) for minutes, _ in rows) == 45
        named_there = [title for _, what in rows for title in re.findall(r"\*([A-Z][^*]+)\*", what)]
        titles = [each.title for each in course()]
        assert named_there and set(named_there) <= set(titles)

    def test_the_sheet_has_all_that_a_teacher_needs(self):
        lessons = course()
        page = sheet(lessons)
        for lesson in lessons:
            assert f"<h2>{inline(lesson.title)}</h2>" in page
        assert page.count("The surprise.") == len(lessons) and "<script" not in page
