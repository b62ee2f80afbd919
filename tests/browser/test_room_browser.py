"""Tests a room in browsers: a student's phone and a teacher's screen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import found

IN_SIGHT = """(selectors) => selectors.every((selector) => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return box && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
})"""
SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"


@pytest.fixture
def teacher(app_url, new_page, wait_ready):
    page = new_page(width=1280, height=720)
    page.goto(f"{app_url}/Learn?lesson=01-every-kind&lesson_step=2")
    page.get_by_role("button", name="Room for a class").click()
    page.get_by_role("button", name="Open a room").click()
    page.get_by_role("img", name="QR code of the address").wait_for()
    wait_ready(page)
    return page


def test_a_phone_joins_by_its_link_and_a_projector_shows_question_and_votes(teacher, app_url, new_page, wait_ready):
    code = teacher.locator(".st-key-room_teacher h3").inner_text().split()[1]
    assert teacher.get_by_role("img", name="QR code of the address").bounding_box()["width"] > 200
    assert found(teacher) == []
    phone = new_page(width=420, height=860, apart=True)
    sent = []
    phone.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    phone.goto(f"{app_url}/Learn?room={code}")
    phone.get_by_role("button", name="Leave the room").wait_for()  # nothing was pressed
    wait_ready(phone)

    expect(teacher.locator(".st-key-room_teacher")).to_contain_text("1 student ")
    sent.clear()
    phone.wait_for_timeout(4_000)
    assert sent == [], "a page whose room is idle asks for nothing"
    teacher.get_by_role("button", name="Start a minute").click()
    expect(phone.locator(".st-key-room_member")).to_contain_text(re.compile(r"0:[1-5]\d left\."))

    answer = phone.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_disabled()
    slider = phone.get_by_role("slider")
    slider.focus()
    for moved in range(1, 6):  # each step is drawn before the next: the focus stays where it is
        phone.keyboard.press("ArrowRight")
        expect(phone.get_by_test_id("stSliderThumbValue")).to_have_text(re.compile(rf"^{4 + moved / 2:.1f} "))
        wait_ready(phone)
    answer.click()
    expect(phone.get_by_role("button", name="Change my answer")).to_be_visible()

    teacher.get_by_role("slider").scroll_into_view_if_needed()
    box = teacher.get_by_role("slider").bounding_box()
    # What a hand has clicked keeps no arrow from the page.
    teacher.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = teacher.get_by_role("slider").get_attribute("aria-valuenow")
    teacher.keyboard.press("p")
    teacher.get_by_test_id("presenting").wait_for()
    wait_ready(teacher)
    places = [teacher.evaluate(SCROLLED)]
    for _ in range(12):
        teacher.keyboard.press("ArrowRight")
        places.append(teacher.evaluate(SCROLLED))
    assert places == sorted(places) and places[-1] > places[0]
    assert teacher.get_by_role("slider").get_attribute("aria-valuenow") == before
    expect(teacher.get_by_role("heading", name="Number")).to_be_attached()  # the class was taken nowhere

    parts = [".st-key-lesson_question", ".st-key-room_votes"]
    teacher.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    teacher.get_by_role("button", name="Show the votes").click()
    teacher.wait_for_function(IN_SIGHT, arg=parts)
    expect(phone.get_by_role("button", name="Change my answer")).to_have_count(0)
    teacher.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    teacher.get_by_role("button", name="Reveal").click()
    teacher.wait_for_function(IN_SIGHT, arg=parts)
    expect(phone.get_by_test_id("stAlert").filter(has_text="Your answer: 6.5 nats. Correct: 3.06 nats")).to_be_visible()

    wait_ready(teacher)
    teacher.keyboard.press("n")
    expect(phone.get_by_role("heading", name="Token")).to_be_visible()


def test_what_opens_from_the_end_of_a_page_begins_at_its_top(app_url, new_page, wait_ready):
    page = new_page(width=420, height=500)
    page.goto(f"{app_url}/Learn")
    page.get_by_role("button", name="For teachers").scroll_into_view_if_needed()
    wait_ready(page)
    page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTo(0, 1e6)")
    page.wait_for_function(f"() => ({SCROLLED})() > 100")
    page.get_by_role("button", name="For teachers").click()
    expect(page.get_by_role("heading", name="A room for your class")).to_be_visible()
    page.wait_for_function(f"() => ({SCROLLED})() === 0")
