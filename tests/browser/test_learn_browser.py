"""Tests the page Learn in a browser: a whole lesson by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.attention_page import Traffic
from tests.browser.test_accessibility import found
from tests.browser.test_readers_browser import SMALL, drag

ACTIVE = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (!at?.matches("button, input, td, a")) return "";  // what scrolls can have the focus, too
  return (at.getAttribute("aria-label") || at.closest("label")?.textContent || at.textContent).trim();
}"""
MOST_TABS = 200
RIGHT = ["q · k", "÷ √d_head", "mask", "softmax"]


def test_a_lesson_is_taken_with_the_keyboard_alone(app_url, new_page, wait_ready):
    page = new_page(height=720)
    traffic, step = Traffic(page), page.get_by_test_id("lesson-step")
    page.goto(f"{app_url}/Learn?prompt=To%20be&model=shakespeare")
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    wait_ready(page)

    def reach(words, *keys):
        """Go on with Tab to what has these words, and press keys there."""
        for _ in range(MOST_TABS):
            page.keyboard.press("Tab")
            if re.search(words, page.evaluate(ACTIVE)):
                break
        else:
            pytest.fail(f"Tab doesn't come to {words}")
        for key in keys:
            page.keyboard.press(key)
        wait_ready(page)

    def answer(words):
        """Give the answer that was put in, and read what becomes of it."""
        reach("^Answer$", "Enter")
        expect(step.get_by_role("status").filter(has_text=words)).to_be_visible()

    reach("Start with lesson 1", "Enter")
    expect(page.get_by_role("heading", name="Only words")).to_be_visible()
    reach("Next$", "Enter")

    heading = page.get_by_role("heading", name="Choose", exact=True)
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_disabled()
    traffic.forget()
    reach("As before|Hardly", "ArrowDown")  # the radio has one stop for all
    page.get_by_role("radio", name="Hardly").press("Space")
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    wait_ready(page)
    assert traffic.page_runs == 0  # a choice is the browser's
    before = heading.bounding_box()
    answer("Correct: “Hardly”.")
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_be_visible()
    wait_ready(page)
    assert heading.bounding_box() == before  # the words stay where they were
    expect(step.get_by_role("status")).to_be_in_viewport(ratio=1)
    reach("Next$", "Enter")

    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(step.locator("output")).to_have_text("3.0 nats")
    answer("Your answer: 3 nats. Correct: 3.06 nats, close enough.")
    assert found(page) == []
    reach("Next$", "Enter")

    reach(r"^k\s*0$", *["ArrowRight"] * 5)
    answer("Correct: q at position 5.")
    reach("Next$", "Enter")

    reach(r"Z looks at k$", "ArrowUp", *["ArrowRight"] * 4, "Enter")
    expect(step.get_by_role("status")).to_have_text("Chosen: w (13) looks at Z (4).")
    answer("Correct: w (13) looks at Z (4).")
    reach("Next$", "Enter")

    rows = page.get_by_test_id("lesson-step").locator(".order li")
    order = rows.locator(".words")
    words = order.all_inner_texts()
    box = rows.first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 2.5 * box["height"], steps=8)  # two rows further down
    page.mouse.up()
    expect(order).to_have_text([words[1], words[2], words[0], words[3]])
    for place, words in enumerate(RIGHT):
        for _ in range(order.all_inner_texts().index(words) - place):
            reach(f"^Move up: {words}$", "Enter")
    expect(order).to_have_text(RIGHT)
    answer("Correct: ")
    reach("Finish$", "Enter")
    expect(page.get_by_text("1 of 1 lesson done, 5 minutes in all.")).to_be_visible()
    page.wait_for_function("() => location.search.includes('To+be')")  # the visitor's own prompt is back
    traffic.stop()


def test_a_finger_drags_an_order_and_beside_its_words_scrolls_the_page(app_url, new_window, wait_ready):
    page = new_window(width=390, height=700, has_touch=True, is_mobile=True)
    page.goto(f"{app_url}/Learn?lesson=01-every-kind&lesson_step=5")
    rows = page.get_by_test_id("lesson-step").locator(".order li")
    rows.first.wait_for()
    wait_ready(page)
    first, *others = rows.locator(".words").all_inner_texts()
    height = rows.nth(1).bounding_box()["y"] - rows.first.bounding_box()["y"]
    for by, order in ((3 * height, [*others, first]), (-3 * height, [first, *others])):
        drag(page, rows.first if by > 0 else rows.last, by)
        expect(rows.locator(".words")).to_have_text(order)
        wait_ready(page)
    drag(page, rows.first, -2 * height, part="button")
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 0")
    expect(rows.locator(".words")).to_have_text([first, *others])
    assert page.locator("input, textarea, select").evaluate_all(SMALL) == 0


def test_the_view_of_a_step_is_the_page_s_own_fixed_before_the_answer_and_then_free(app_url, new_page, wait_ready):
    page = new_page(height=720)
    traffic, prompt = Traffic(page), page.get_by_role("textbox", name="Prompt", exact=True)
    page.goto(f"{app_url}/Learn?lesson=01-every-kind&lesson_step=1")
    view = page.locator("[data-part=root][data-state=shown]")
    tokens = view.get_by_test_id("attention")
    tokens.wait_for()
    wait_ready(page)
    expect(prompt).to_be_disabled()
    expect(page.get_by_role("combobox", name="Model")).to_be_disabled()
    page.get_by_role("radio", name="Hardly").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(prompt).to_be_enabled()
    own = prompt.input_value()
    wait_ready(page)

    traffic.forget()
    prompt.fill("abcabc")
    prompt.press("Enter")
    expect(tokens).to_contain_text("“c” at position 5")
    wait_ready(page)
    assert traffic.page_runs == 0, "the step says nothing of the prompt"
    page.get_by_role("button", name="Reset the view").click()
    expect(prompt).to_have_value(own)
    prompt.fill("abcabc")
    prompt.press("Enter")
    expect(tokens).to_contain_text("“c” at position 5")

    page.get_by_role("button", name="Open in Attention").click()
    page.get_by_role("heading", level=1, name="Attention").wait_for()
    expect(prompt).to_have_value("abcabc")
    page.get_by_role("link", name="Back to the lesson").click()
    page.get_by_role("heading", name="Choose", exact=True).wait_for()
    expect(tokens).to_contain_text("“c” at position 5")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(tokens).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    traffic.stop()
