"""Tests the page Learn in a browser: a whole lesson by keyboard, and a teacher's own by upload."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.attention_page import Traffic
from tests.browser.test_accessibility import found
from tests.pages.test_lesson_upload import SHORT

# Streamlit looks for its server below the page's address first, in vain.
ACTIVE = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (!at?.matches("button, input, td, a")) return "";  // what scrolls can have the focus, too
  return (at.getAttribute("aria-label") || at.closest("label")?.textContent || at.textContent).trim();
}"""
MOST_TABS = 200


@pytest.fixture
def page(app_url, new_page, wait_ready):
    page = new_page()
    page.traffic = Traffic(page)
    page.goto(f"{app_url}/Learn?prompt=To%20be&model=shakespeare")
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    wait_ready(page)
    yield page
    page.traffic.stop()


@pytest.fixture
def reach(page, wait_ready):
    """`reach(words, key="Enter")`: go on with Tab to what has these words, and press a key there."""

    def go_on(words, key="Enter"):
        for _ in range(MOST_TABS):
            page.keyboard.press("Tab")
            if re.search(words, page.evaluate(ACTIVE)):
                break
        else:
            pytest.fail(f"Tab doesn't come to {words}")
        if key:
            page.keyboard.press(key)
            wait_ready(page)

    return go_on


def test_a_lesson_is_taken_along_as_one_file_that_needs_no_network(app_url, new_page, new_window, wait_ready, tmp_path):
    page = new_page()
    page.goto(f"{app_url}/Learn?lesson=01-every-kind&lesson_step=5")  # the last
    page.get_by_role("button", name="This lesson as one file").wait_for()
    rows = page.get_by_test_id("answer-inputs").locator("li")
    words = rows.locator(".words").all_inner_texts()
    box = rows.first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 2.5 * box["height"], steps=8)  # two rows further down
    page.mouse.up()
    expect(rows.locator(".words")).to_have_text([words[1], words[2], words[0], words[3]])
    wait_ready(page)  # each run of the page makes the button another file
    with page.expect_download() as download:
        page.get_by_role("button", name="This lesson as one file").click()
    assert download.value.suggested_filename == "01-every-kind-lesson.html"
    download.value.save_as(tmp_path / "lesson.html")
    page = new_window()
    page.context.set_offline(True)
    page.goto((tmp_path / "lesson.html").as_uri())
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_role("heading", name="Layer 0, head 0")).to_be_visible()
    page.get_by_role("radio", name="Hardly").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Correct.")).to_be_visible()
    with page.expect_download() as answers:
        page.get_by_role("button", name="Save my answers").click()
    answers.value.save_as(tmp_path / "answers.csv")
    assert "2,Choose,Hardly,yes" in (tmp_path / "answers.csv").read_text(encoding="utf-8")


def test_an_answer_opens_the_view_beside_words_that_stay_where_they_were(app_url, new_page, wait_ready):
    page = new_page(height=720)
    page.goto(f"{app_url}/Learn?lesson=01-every-kind&lesson_step=1")
    heading = page.get_by_role("heading", name="Choose", exact=True)
    heading.wait_for()
    wait_ready(page)
    before = heading.bounding_box()
    page.get_by_text("Hardly", exact=True).click()
    wait_ready(page)
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".st-key-lesson_live").get_by_role("textbox", name="Prompt")).to_be_visible()
    wait_ready(page)
    assert heading.bounding_box() == before
    expect(page.get_by_test_id("stAlert").filter(has_text="Correct")).to_be_in_viewport(ratio=1)


def test_an_uploaded_lesson_is_checked_and_opened_and_is_there_after_a_reload(app_url, new_page, wait_ready):
    page = new_page()
    page.goto(f"{app_url}/Learn?lesson=for-teachers")
    uploader = page.get_by_test_id("stFileUploader").filter(has_text="Upload a lesson")
    alert = page.get_by_test_id("stAlert")
    opens = page.get_by_role("button", name=re.compile("^Open (the lesson|it all)"))

    expect(opens).to_have_count(0)
    content = {"name": "mine.md", "mimeType": "text/markdown", "buffer": SHORT.encode()}
    uploader.locator("input[type=file]").set_input_files(content)
    expect(alert.filter(has_text="No problems found.")).to_be_visible()
    wait_ready(page)
    opens.click()
    expect(page.get_by_role("heading", name="One", exact=True)).to_be_visible()
    expect(page.get_by_text("<script>alert(1)</script>")).to_be_visible()
    wait_ready(page)
    page.get_by_text("Yes", exact=True).click()
    expect(page.get_by_role("radio", name="Yes")).to_be_checked()
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    wait_ready(page)
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(alert.filter(has_text="Correct")).to_be_visible()
    wait_ready(page)
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_role("heading", name="Two", exact=True)).to_be_visible()
    wait_ready(page)
    page.reload()
    expect(page.get_by_role("heading", name="Two", exact=True)).to_be_visible()


@pytest.fixture
def answer(page, reach, wait_ready):
    """`answer(words)`: give the answer that was put in, read what becomes of it, and go on."""

    def give(words):
        reach("^Answer$")
        expect(page.get_by_test_id("stAlert").filter(has_text=words)).to_be_visible()
        reach("Next$|Finish$")

    return give


def test_a_lesson_is_taken_with_the_keyboard_alone(page, reach, answer, wait_ready):
    reach("Start with lesson 1")
    expect(page.get_by_role("heading", name="Only words")).to_be_visible()
    reach("Next$")

    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_disabled()
    page.traffic.forget()
    reach("As before|Hardly", key="ArrowDown")  # the radio has one stop for all
    page.get_by_role("radio", name="Hardly").press("Space")
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    wait_ready(page)
    assert page.traffic.page_runs == page.traffic.fragment_runs > 0  # the view below stays as it is
    answer("Correct: “Hardly”.")

    page.get_by_role("slider").focus()
    for value in ("3.5", "3.0"):  # each step is drawn before the next: the focus stays where it is
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_test_id("stSliderThumbValue")).to_have_text(re.compile(rf"^{value} nats"))
        wait_ready(page)
    reach("^Answer$")
    expect(page.get_by_test_id("stAlert").filter(has_text="close enough")).to_be_visible()
    assert found(page) == []
    page.reload()
    page.get_by_role("heading", name="Number").wait_for()
    expect(page.get_by_test_id("stAlert").filter(has_text="Your answer: 3 nats. Correct: 3.06 nats")).to_be_visible()
    wait_ready(page)
    reach("Next$")

    reach("k₀", key=None)
    for key in (*["ArrowRight"] * 5, "Enter"):
        page.keyboard.press(key)
    wait_ready(page)
    answer("Correct: q at position 5.")

    reach(r"Z looks at k$", key=None)
    for key in ("ArrowUp", *["ArrowRight"] * 4, "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_test_id("answer-inputs").get_by_role("status")).to_have_text("Chosen: w (13) looks at Z (4).")
    wait_ready(page)
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    answer("Correct: w (13) looks at Z (4).")

    rows = page.get_by_test_id("answer-inputs").locator("li .words")
    right = ["q · k", "÷ √d_head", "mask", "softmax"]
    for place, words in enumerate(right):
        for _ in range(rows.all_inner_texts().index(words) - place):
            reach(f"^Move up: {words}$")
    expect(rows).to_have_text(right)
    reach("^Answer$")
    expect(page.get_by_test_id("stAlert").filter(has_text="Correct: ")).to_be_visible()
    reach("Finish$")
    expect(page.get_by_text("1 of 1 lesson done, 5 minutes in all.")).to_be_visible()
    wait_ready(page)
    assert found(page) == []
    page.wait_for_function("() => location.search.includes('To+be')")  # the visitor's own prompt is back

    reach("For teachers$")
    expect(page.get_by_role("heading", name="With a class")).to_be_visible()
    sizes = [
        page.get_by_role("heading", name=name).evaluate("each => parseFloat(getComputedStyle(each).fontSize)")
        for name in ("With a class", "Before class")
    ]
    assert sizes[0] > sizes[1]
