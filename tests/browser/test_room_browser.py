"""Tests a room in browsers: a student's phone and a teacher's screen."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from pages.ui.components import room
from pages.ui.lessons import lesson_files, room_events
from pages.ui.lessons.room import Phase
from pages.ui.lessons.room_events import RoomEvents
from pages.ui.lessons.rooms import Rooms
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn.room_api import app_of
from tests.browser.address_bar import come_to
from tests.browser.attention_page import until
from tests.browser.test_accessibility import found
from tests.pages.test_room_events import Follower, served
from tests.redis_server import within
from transformer.frontend import bundle

IN_SIGHT = """(selectors) => selectors.every((selector) => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return box && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
})"""
SCROLLED = "() => document.querySelector('[data-testid=stMain]').scrollTop"
SCROLL = "(top) => document.querySelector('[data-testid=stMain]').scrollTo(0, top)"


def test_a_phone_joins_by_its_link_and_a_projector_shows_question_and_votes(app_url, new_page, wait_ready):
    teacher = new_page(width=420, height=400)
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
    second = phone.context.new_page()
    second.goto(f"{app_url}/Learn?room={code}")
    second.get_by_role("button", name="Leave the room").wait_for()
    memberships = [json.loads(each.evaluate("sessionStorage.headsup_membership")) for each in (phone, second, teacher)]
    assert memberships[0] == memberships[1], "all tabs of a browser are one student"
    entries = second.evaluate("history.length")
    second.goto(f"{app_url}/room#{code}.{memberships[2][1]}")  # as the teacher's private link does
    second.get_by_role("button", name="End the room").wait_for()
    expect(second.get_by_role("heading", name="Number")).to_be_visible()
    assert memberships[2][1] not in second.url, "the key leaves the address bar, and the history"
    assert second.evaluate("history.length") == entries + 1
    second.close()
    sent.clear()

    # The class is taken nowhere by the keys that scroll the teacher's page.
    slider = teacher.get_by_role("slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    # What a hand has clicked keeps no arrow from the page.
    teacher.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = slider.input_value()
    teacher.keyboard.press("p")
    teacher.get_by_test_id("presenting").wait_for()
    wait_ready(teacher)
    places = [teacher.evaluate(SCROLLED)]
    for _ in range(12):
        teacher.keyboard.press("ArrowRight")
        places.append(teacher.evaluate(SCROLLED))
    assert places == sorted(places) and places[-1] > places[0]
    assert slider.input_value() == before
    expect(teacher.get_by_role("heading", name="Number")).to_be_attached()
    assert sent == [], "a page whose room is idle asks for nothing"

    teacher.get_by_role("button", name="Start a minute").click()
    expect(phone.locator(".st-key-room_member")).to_contain_text(re.compile(r"0:[1-5]\d left\."))
    answer = phone.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_disabled()
    sent.clear()
    phone.get_by_role("slider").focus()
    for _ in range(3):
        phone.keyboard.press("ArrowRight")
    answer.click()
    expect(phone.get_by_role("button", name="Change my answer")).to_be_visible()
    assert sent == [], "no run of the page is needed for a vote"
    parts = [".st-key-lesson_question", ".st-key-room_votes"]
    for button in ("Show the votes", "Reveal"):
        teacher.evaluate(SCROLL, 0)
        teacher.get_by_role("button", name=button).click()
        until(teacher, lambda: teacher.evaluate(IN_SIGHT, parts))
        expect(phone.get_by_role("button", name="Change my answer")).to_have_count(0)
    expect(phone.get_by_role("status").filter(has_text="Your answer: 5.5 nats. Correct: 3.06 nats")).to_be_visible()
    wait_ready(teacher)
    teacher.keyboard.press("n")
    expect(phone.get_by_role("heading", name="Token")).to_be_visible()
    phone.get_by_role("button", name="Leave the room").click()
    expect(teacher.locator(".st-key-room_teacher")).to_contain_text("no students ")
    phone.goto(f"{app_url}/Learn?room={code}")
    expect(phone.get_by_role("heading", name="Token")).to_be_visible()
    expect(teacher.locator(".st-key-room_teacher")).to_contain_text("1 student ")


ROUNDS, MEMBERS, IN_BROWSERS = 10, 30, 3
ROUND = """
## Round {0}

In this round.

```question
kind = "order"
text = "Which comes first?"
right = ["a", "b"]
```

```reveal
It is a.
```
"""
PAGE = """async (membership) => {
  const { mountRoom } = await import("/student.js");
  const fetched = window.fetch;
  window.events = 0;
  window.fetch = async (...request) => {
    const response = await fetched(...request);
    if (!`${request[0]}`.endsWith("/events")) return response;
    const counted = new TransformStream({ transform(chunk, out) { window.events += 1; out.enqueue(chunk); } });
    return new Response(response.body.pipeThrough(counted), response);
  };
  window.takeOff = () => window.place?.remove();
  window.draw = async () => {
    const room = await (await fetched("drawn", { headers: { "HeadsUp-Room": membership.key } })).json();
    window.takeOff();
    window.place = document.body.appendChild(document.createElement("div"));
    place.innerHTML = markup;
    const data = { membership, part: "step", room, step: room.step, answer: null, document: null, opens: true };
    mountRoom({ data, parentElement: place, setTriggerValue: draw });
  };
  await window.draw();
}"""
"""A page that does as Streamlit does: each run takes the room's part off the page, and puts it there anew. It counts
what comes of the room's events, too."""


def test_thirty_members_see_every_reveal_of_ten_rounds(new_page, monkeypatch, tmp_path):
    """Three of them are in browsers: the room's part is taken off before an event, and mounted anew after it."""
    (tmp_path / "rounds.md").write_text(
        '+++\ntitle = "Rounds"\n+++\n' + "".join(map(ROUND.format, range(ROUNDS))), encoding="utf-8"
    )
    monkeypatch.setattr(lesson_files, "FOLDER", tmp_path)
    monkeypatch.setattr(room_events, "GATHER", 0.0)
    monkeypatch.setattr("pages.ui.lessons.room.HERE", 3600.0)  # the teacher is there, however long it takes
    rooms = Rooms()
    code, key = rooms.open(StepId("rounds", 0))
    members = [rooms.join(code)[1] for _ in range(MEMBERS)]

    def draw(request):
        state = rooms.state(code, request.headers["HeadsUp-Room"])
        place = [state.step_id.lesson, state.step_id.step]
        return JSONResponse({"step": place, "lesson": "", "is_revealed": state.phase is Phase.REVEALED})

    folder = Path(room.__file__).parent
    script = bundle(folder / "room.js")
    markup = json.dumps((folder / "room.html").read_text())
    html = f'<!doctype html><title>A room</title><link rel="icon" href="data:,"><script>markup = {markup}</script>'
    app = Starlette(
        routes=[
            Mount("/api/rooms", app_of(lambda: rooms, RoomEvents(lambda: rooms))),
            Route("/student.js", lambda request: Response(script, media_type="text/javascript")),
            Route("/drawn", draw),
            Route("/", lambda request: HTMLResponse(html)),
        ]
    )
    with served(app) as url, ThreadPoolExecutor(MEMBERS) as pool:
        pages = [new_page() for _ in range(IN_BROWSERS)]
        for each, member in zip(pages, members, strict=False):
            each.goto(url)
            each.evaluate(PAGE, {"code": code, "key": member})
        followers = [Follower(f"{url}/api/rooms", code, member) for member in members[IN_BROWSERS:]]
        for number in range(ROUNDS):
            step = StepId("rounds", number)

            def vote(member, step=step):
                rooms.vote(code, member, step, "[0,1]")

            happenings = (
                lambda step=step: rooms.move(code, key, step),
                lambda: list(pool.map(vote, members)),
                lambda step=step: rooms.show(code, key, step),
                lambda step=step: rooms.give_time(code, key, step, 60),
                lambda step=step: rooms.advance(code, key, step, Phase.REVEALED),
            )
            for at, happens in enumerate(happenings):
                away = [each for place, each in enumerate(pages) if (place + at + number) % IN_BROWSERS]
                before = [each.evaluate("() => { takeOff(); return events; }") for each in away]
                happens()
                if at != 1:  # a vote is nothing that students' pages show
                    for each, count in zip(away, before, strict=True):
                        each.wait_for_function("(count) => events > count", arg=count, polling=20)
                for each in away:
                    each.evaluate("draw()")
            tally = rooms.tally(code, key, step)
            assert (tally.voted, tally.here) == (MEMBERS, MEMBERS)
            for each in pages:
                expect(each.get_by_role("heading", name=f"Round {number}")).to_be_visible()
                expect(each.get_by_text("It is a.")).to_be_visible()
            now = rooms.versions(code).of(members[0])
            assert within(60, lambda now=now: all(each.versions[-1:] == [now] for each in followers))
        for each in pages:
            each.goto("about:blank")  # or its stream would end as an error
        rooms.end(code, key)
        assert within(60, lambda: all(each.ended for each in followers))
