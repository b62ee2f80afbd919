"""Tests a room in browsers: a student's phone and a teacher's screen."""

import re

from playwright.sync_api import expect

from tests.browser.address_bar import come_to
from tests.browser.attention_page import until
from tests.browser.test_accessibility import found

IN_SIGHT = """(selectors) => selectors.every((selector) => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return box && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
})"""
SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"
SCROLL = "(top) => document.querySelector('[data-testid=stMain]').scrollTo(0, top)"


def test_a_phone_joins_by_its_link_and_a_projector_shows_question_and_votes(app_url, new_page, wait_ready):
    teacher = new_page(width=420, height=500)
    teacher.goto(f"{app_url}/Learn")
    teacher.get_by_role("button", name="For teachers").scroll_into_view_if_needed()
    wait_ready(teacher)
    teacher.evaluate(SCROLL, 1e6)
    until(teacher, lambda: teacher.evaluate(SCROLLED) > 100)
    teacher.get_by_role("button", name="For teachers").click()
    expect(teacher.get_by_role("heading", name="A room for your class")).to_be_visible()
    until(teacher, lambda: teacher.evaluate(SCROLLED) == 0)

    wait_ready(teacher)
    teacher.set_viewport_size({"width": 1280, "height": 720})
    come_to(teacher, "/Learn?model=shakespeare&lesson=01-every-kind&lesson_step=2")
    teacher.get_by_role("button", name="Room for a class").click()
    teacher.get_by_role("button", name="Open a room").click()
    code_to_scan = teacher.get_by_role("img", name="QR code of the address")
    code_to_scan.wait_for()
    wait_ready(teacher)
    assert code_to_scan.bounding_box()["width"] > 200
    assert found(teacher) == []
    code = teacher.locator(".st-key-room_teacher h3").inner_text().split()[1]
    phone = new_page(width=420, height=860, apart=True)
    sent = []
    phone.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    phone.goto(f"{app_url}/Learn?room={code}")
    phone.get_by_role("button", name="Leave the room").wait_for()  # nothing was pressed
    wait_ready(phone)
    expect(teacher.locator(".st-key-room_teacher")).to_contain_text("1 student ")
    sent.clear()

    # The class is taken nowhere by the keys that scroll the teacher's page.
    slider = teacher.get_by_role("slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    # What a hand has clicked keeps no arrow from the page.
    teacher.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = slider.get_attribute("aria-valuenow")
    teacher.keyboard.press("p")
    teacher.get_by_test_id("presenting").wait_for()
    wait_ready(teacher)
    places = [teacher.evaluate(SCROLLED)]
    for _ in range(12):
        teacher.keyboard.press("ArrowRight")
        places.append(teacher.evaluate(SCROLLED))
    assert places == sorted(places) and places[-1] > places[0]
    assert slider.get_attribute("aria-valuenow") == before
    expect(teacher.get_by_role("heading", name="Number")).to_be_attached()
    assert sent == [], "a page whose room is idle asks for nothing"

    teacher.get_by_role("button", name="Start a minute").click()
    expect(phone.locator(".st-key-room_member")).to_contain_text(re.compile(r"0:[1-5]\d left\."))
    answer = phone.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_disabled()
    phone.get_by_role("slider").focus()
    for moved in range(1, 4):  # each step is drawn before the next: the focus stays where it is
        phone.keyboard.press("ArrowRight")
        expect(phone.get_by_test_id("stSliderThumbValue")).to_have_text(re.compile(rf"^{4 + moved / 2:.1f} "))
        wait_ready(phone)
    answer.click()
    expect(phone.get_by_role("button", name="Change my answer")).to_be_visible()
    parts = [".st-key-lesson_question", ".st-key-room_votes"]
    for button in ("Show the votes", "Reveal"):
        teacher.evaluate(SCROLL, 0)
        teacher.get_by_role("button", name=button).click()
        until(teacher, lambda: teacher.evaluate(IN_SIGHT, parts))
        expect(phone.get_by_role("button", name="Change my answer")).to_have_count(0)
    expect(phone.get_by_test_id("stAlert").filter(has_text="Your answer: 5.5 nats. Correct: 3.06 nats")).to_be_visible()
    wait_ready(teacher)
    teacher.keyboard.press("n")
    expect(phone.get_by_role("heading", name="Token")).to_be_visible()
