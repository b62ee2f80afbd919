"""Tests the HTML of Markdown and formulas, handouts, and the page for teachers."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.formulas import formula
from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, read_lesson
from pages.ui.paper import as_html, document, inline
from pages.ui.views.learn.attention_svg import pattern_svg
from pages.ui.views.learn.handout import handout
from pages.ui.views.learn.teachers_page import GUIDE, sheet
from tests.app_driver import markdown_with, named, start

ELEMENTS = {
    "p",
    "ul",
    "ol",
    "li",
    "pre",
    "code",
    "strong",
    "em",
    "h1",
    "h2",
    "h3",
    "table",
    "thead",
    "tbody",
    "tr",
    "td",
    "th",
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mtext",
    "mspace",
    "mfrac",
    "msqrt",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
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
        assert as_html("One **bold *and slanted* `x<y`**,\ngoes on.\n\n- a\n- b\n  more\n\n    code") == (
            "<p>One <strong>bold <em>and slanted</em> <code>x&lt;y</code></strong>, goes on.</p>\n"
            "<ul><li>a</li><li>b more</li></ul>\n<pre><code>code</code></pre>"
        )
        assert as_html("## Two\n| a | b |\n| --- | --- |\n| 1 | *2* |").startswith("<h2>Two</h2><table>")
        assert as_html("1. one\n2. two") == "<ol><li>one</li><li>two</li></ol>"

    @given(st.lists(st.sampled_from(SIGNS), max_size=60).map("".join))
    def test_no_text_becomes_another_element_or_an_attribute(self, text):
        for tag, attributes in Elements(as_html(text) + inline(text)).found:
            assert tag in ELEMENTS
            assert attributes.keys() <= {"display", "mathvariant", "width"}

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

    def test_words_keep_their_spaces(self):
        assert "<mtext>what came</mtext>" in formula(r"p(\text{what came})")

    @pytest.mark.parametrize("tex", [r"\unknown", "{", "}", "a_", r"\frac{1}", "^", "{" * 50 + "}" * 50])
    def test_what_is_no_formula_is_shown_as_it_is(self, tex):
        assert formula(tex).startswith("<code>")

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


@pytest.fixture(scope="module")
def page():
    return handout(read_lesson("small", LESSON))


class TestHandout:
    def test_what_is_right_stands_at_the_end_and_nowhere_before(self, page):
        asked, told = page.split('<h1 class="new-page">')
        assert "Sure &lt;i&gt;indeed&lt;/i&gt;" in asked and "Not at all" in asked
        assert "At place 5." in told and "At place 5." not in asked
        assert "Not at all" not in told and "<svg" in told and "<svg" not in asked[: asked.index("Third")]

    def test_what_a_later_step_tells_stands_on_a_later_page_and_what_is_to_be_tried_at_the_end(self, page):
        asked, told = page.split('<h1 class="new-page">')
        for title in ("Second", "Third"):
            assert asked.index("Answer before you turn the page", asked.index("How sure")) < asked.index(title)
        assert asked.count('class="faint last"') == 2 and ".last { break-after: page; }" in asked
        (lesson,) = [each for each in lesson_files.all_lessons() if each.name == "16-induction"]
        asked, told = handout(lesson).split('<h1 class="new-page">')
        assert "Try it" in told and "Try it" not in asked

    def test_a_cell_is_marked_in_an_empty_picture_and_told_by_its_tokens(self, page):
        asked, told = page.split('<h1 class="new-page">')
        (svg,) = re.findall(r"<svg.*?</svg>", asked[asked.index("Third") :])
        cells = [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("rect")]
        assert len(cells) == 6 and {each.get("fill") for each in cells} == {"#ffffff"}
        assert "<code>7</code> (2) looks at <code>k</code> (0)" in told

    def test_what_is_measured_is_filled_in(self, page):
        assert "It says 99.95%." in page

    def test_a_lesson_s_text_stays_text(self, page):
        assert not {"script", "img", "b", "i"} & {tag for tag, _ in Elements(page).found}
        assert "<script>alert(1)</script>" in Elements(page).text

    def test_an_order_is_told_as_a_list(self):
        (lesson,) = [each for each in lesson_files.all_lessons() if each.name == "19-the-whole-pass"]
        told = handout(lesson).split('<h1 class="new-page">')[1]
        assert told.count("<ol>") == 3 and "<li>look up an embedding for each token</li>" in told

    def test_what_waits_for_the_visitor_says_so(self):
        (lesson,) = [each for each in lesson_files.all_lessons() if each.name == "16-induction"]
        assert handout(lesson).count("This depends on your own training") == 1

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
        lessons = [each for each in lesson_files.all_lessons() if isinstance(each, Lesson)]
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
        titles = [each.title for each in lesson_files.all_lessons()]
        assert named_there and set(named_there) <= set(titles)

    def test_the_sheet_has_all_that_a_teacher_needs(self):
        lessons = lesson_files.all_lessons()
        page = sheet(lessons)
        for lesson in lessons:
            assert f"<h2>{inline(lesson.title)}</h2>" in page
        assert page.count("The surprise.") == len(lessons) and "<script" not in page
