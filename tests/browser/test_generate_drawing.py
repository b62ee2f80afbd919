"""Tests how the page Generate looks in a browser: nothing flickers or moves."""

import json
import re

import pytest

from tests.browser.attention_page import until, until_drawn
from tests.browser.generate_page import (
    branches,
    candidates,
    expect,
    focused,
    labels,
    live_text,
    main_button,
    part,
    sampling_opened,
    tokens,
    until_at_rest,
    until_shown,
    until_written,
    write,
)
from tests.tiny_models import written

PROMPT = "ROMEO:"

# Everything that is to stay the same node from the first token to the last: tagged once, counted at the end.
TAG = """(root) => {
  window.tagged = [root, ...root.querySelectorAll("*")];
  for (const node of window.tagged) node.tagged = true;
}"""
LOST = "() => window.tagged.filter((node) => !node.isConnected).length"
SEEN = "() => { const seen = [...window.places]; window.places = undefined; return seen; }"
PICTURE = "(canvas) => canvas.toDataURL()"
# Where parts are, frame by frame, until the writing has ended.
FOLLOW = """(root) => {
  const parts = [root, ...root.querySelectorAll("[data-testid]:not(.token), button, canvas, select, .setting input")];
  const seen = (window.places = new Set());
  const look = () => {
    const scrolled = document.querySelector("[data-testid=stMain]").scrollTop;
    const boxes = parts.map((part) => part.getBoundingClientRect());
    const places = boxes.map(({ x, y, width, height }) => [x, y, width, height].map(Math.round));
    seen.add(JSON.stringify([...places, scrolled]));
    if (window.places === seen) requestAnimationFrame(look);
  };
  look();
}"""


KEEPS_WASH = """(span) => {
  const apart = span.cloneNode();
  span.after(apart);
  const [here, there] = [span, apart].map((each) => getComputedStyle(each).backgroundColor);
  apart.remove();
  return Boolean(span.style.backgroundColor) && here === there;
}"""
"""Whether a token that was touched has the colour that its attention weight gives it."""
SHARES = "(all, [style, share]) => all.map((each) => +(each.style[style].match(share)?.[1] ?? 0))"
"""How strong a colour each has in a style, in percent."""


def nothing_moves_while(page, write_on):
    """Every node stays, at its place, from the first token to the last."""
    live_text(page).evaluate(TAG)
    live_text(page).evaluate(FOLLOW)
    write_on()
    assert page.evaluate(LOST) == 0
    first, *others = [json.loads(place) for place in page.evaluate(SEEN)]
    assert [[moved for moved in zip(first, other, strict=True) if moved[0] != moved[1]] for other in others] == []


def test_on_a_screen_nothing_moves_the_keyboard_stays_and_what_is_shown_is_what_is_said(visit, wait_ready):
    page = visit(f"?prompt={PROMPT}&pace=unbounded&tokens=30")
    until_shown(page)
    what_writes_is_in_the_first_screen(page)
    canvas = sampling_opened(page).locator("canvas").first
    expect(page.get_by_label("Temperature")).to_be_visible()
    canvas.scroll_into_view_if_needed()  # while the page scrolls, a card would go
    until_drawn(page)
    canvas.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("logit")
    assert tip.inner_text().replace("\n", ", ") in canvas.get_attribute("aria-label")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    main_button(page, "Sampling").click()
    expect(page.get_by_label("Temperature", exact=True)).to_be_hidden()

    page.set_viewport_size({"width": 1280, "height": 700})
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 90)")
    main_button(page, "Step").click()
    until_written(page, len(PROMPT) + 1)
    wait_ready(page)
    nothing_moves_while(page, lambda: write(page, wait_ready, 30))
    weights_are_as_strong_as_they_are_said_to_be(page)
    a_token_of_the_prompt_shows_what_the_model_predicts_after_it(page)
    what_is_used_keeps_the_focus(page)
    the_keyboard_stays_on_what_starts_and_stops_the_writing(page, wait_ready)
    a_step_out_of_sight_is_drawn_once_it_comes_in_sight_and_the_box_follows_the_end(visit, page, wait_ready)
    tokens_are_underlined_by_their_probability_and_one_that_is_cut_off_has_none(visit, page)


def what_writes_is_in_the_first_screen(page):
    for width, height in ((420, 860), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        until_drawn(page)
        expect(candidates(page).first).to_contain_text("%")
        for element in (main_button(page, "Generate"), part(page, "strip"), part(page, "largest")):
            box = element.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
    assert candidates(page).nth(9).bounding_box()["y"] + 20 <= height
    assert not part(page, "drawn").is_visible()
    expect(page.get_by_label("Temperature")).to_be_hidden()


def weights_are_as_strong_as_they_are_said_to_be(page):
    strongest, columns = set(), part(page, "columns").locator(".column:not([hidden])")
    for place in range(len(PROMPT), len(PROMPT) + 4):
        tokens(page).nth(place).click()
        expect(part(page, "largest")).to_contain_text(re.compile(f": token {place - 1} .* looks most at token"))
        largest = float(part(page, "largest").inner_text().rpartition(", ")[2].strip("%"))
        washes = tokens(page).evaluate_all(SHARES, ["backgroundColor", r"(\d+)%"])
        bars = columns.locator("i").evaluate_all(SHARES, ["backgroundSize", r" ([\d.]+)"])
        assert max(bars) == pytest.approx(largest, abs=0.51)
        assert max(washes) == pytest.approx(0.55 * largest, abs=1.4)
        strongest.add(max(washes))
    assert len(strongest) > 1
    page.get_by_text("Attention as bars").click()
    said = [label.split(", ")[0] for label in labels(page)[: columns.count()]]
    assert [column.inner_text() for column in sorted(columns.all(), key=lambda one: one.bounding_box()["x"])] == said


def a_token_of_the_prompt_shows_what_the_model_predicts_after_it(page):
    tokens(page).nth(2).click()
    expect(tokens(page).nth(2)).to_have_attribute("aria-selected", "true")
    words = f"Token 3 “{PROMPT[3]}” stands in the prompt after “{PROMPT[2]}”: probability "
    expect(part(page, "details")).to_have_text(re.compile(re.escape(words) + "[<>.0-9]+%, rank [0-9]+, entropy "))
    expect(part(page, "title")).to_have_text(f"Candidates for token 3, after “{PROMPT[2]}”")
    expect(candidates(page).first).to_have_attribute("aria-disabled", "true")
    expect(page).to_have_url(re.compile("step=3"))
    page.keyboard.press("Home")
    assert focused(page) == PROMPT[0]
    expect(part(page, "title")).to_have_text(f"Candidates for token 1, after “{PROMPT[0]}”")
    page.keyboard.press("End")
    expect(tokens(page).last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowLeft")
    expect(part(page, "position")).to_have_text(f"token {len(PROMPT) + 29}")


def what_is_used_keeps_the_focus(page):
    for name, end in (("Next token", f"token {len(PROMPT) + 31}"), ("Previous token", f"token {len(PROMPT) + 26}")):
        button = page.get_by_role("button", name=name)
        button.focus()
        for _ in range(5):
            page.keyboard.press("Enter")
        expect(part(page, "position")).to_have_text(end)
        expect(button).to_be_focused()
    candidate = candidates(page).nth(2)
    candidate.focus()
    page.keyboard.press("Enter")
    expect(branches(page)).to_have_count(2)
    expect(candidate).to_be_focused()


def the_keyboard_stays_on_what_starts_and_stops_the_writing(page, wait_ready):
    sampling_opened(page)
    number, box = page.get_by_label("Number of tokens"), page.get_by_role("textbox", name="Prompt", exact=True)
    number.fill("500")  # which are not all there before it is stopped
    page.get_by_label("Pace").select_option("8 tokens a second")
    wait_ready(page)
    main_button(page, "Generate").focus()
    page.keyboard.press("Enter")
    until(page, lambda: focused(page) == "Stop")
    page.keyboard.press("Space")
    until(page, lambda: focused(page) == "Generate")
    wait_ready(page)
    expect(main_button(page, "Stop")).to_be_disabled()
    page.keyboard.press("Tab")
    until(page, lambda: focused(page) == "Step")
    page.keyboard.press("Enter")
    wait_ready(page)
    assert focused(page) == "Step"
    box.focus()
    wait_ready(page)
    expect(box).to_be_focused()
    page.get_by_label("Pace").select_option("as fast as it can")
    number.fill("3")
    wait_ready(page)
    main_button(page, "Generate").focus()
    before = tokens(page).count()
    page.keyboard.press("Enter")  # the keyboard comes back when the writing ends by itself
    expect(tokens(page)).to_have_count(before + 3)
    until(page, lambda: focused(page) == "Generate")
    wait_ready(page)
    assert focused(page) == "Generate"


def a_step_out_of_sight_is_drawn_once_it_comes_in_sight_and_the_box_follows_the_end(visit, page, wait_ready):
    visit(f"?model=shakespeare&prompt=KING:&tokens=500&pace=fast&written={written('ROME' * 150)}", page)
    expect(tokens(page)).to_have_count(len("KING:") + 600)
    until_shown(page)
    page.set_viewport_size({"width": 1280, "height": 500})
    sampling_opened(page)
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")
    main_button(page, "Step").click()
    until_at_rest(page, wait_ready)
    last = live_text(page).locator("[data-drawn=probabilities] canvas")
    late = last.evaluate(PICTURE)
    last.scroll_into_view_if_needed()
    until(page, lambda: last.evaluate(PICTURE) != late)

    page.set_viewport_size({"width": 1280, "height": 900})
    strip = page.get_by_test_id("live-text-strip")
    left = "(strip) => [strip.scrollHeight - strip.clientHeight, strip.scrollTop]"
    main_button(page, "Generate").click()
    until(page, lambda: strip.evaluate("(strip) => strip.scrollHeight >= strip.clientHeight + 60"))
    height, top = strip.evaluate(left)
    assert abs(height - top) < 40
    strip.evaluate("(strip) => { strip.scrollTop = 10; }")
    until_written(page, tokens(page).count() + 20)
    assert strip.evaluate(left)[1] == 10
    main_button(page, "Stop").click()
    until_at_rest(page, wait_ready)


def tokens_are_underlined_by_their_probability_and_one_that_is_cut_off_has_none(visit, page):
    prompt, text = "To be", ", my lord.\nZounds Q"
    visit(f"?model=shakespeare&prompt={prompt}&temperature=2&written={written(text)}", page)
    expect(tokens(page)).to_have_count(len(prompt) + len(text))
    until_shown(page)
    levels = tokens(page).evaluate_all(SHARES, ["boxShadow", r"(\d+)%"])
    known = [label.rpartition(", ")[2] for label in labels(page)[len(prompt) :]]
    colour = "(token) => getComputedStyle(token).color"
    unlooked = page.locator(".token.prompt:not([style*='--ink'])").first
    assert unlooked.evaluate(colour) != page.locator(".token.written").last.evaluate(colour)
    assert levels[: len(prompt)] == [0] * len(prompt) and all(share.endswith("%") for share in known)
    shares = [float(share.strip("<> %")) for share in known]
    rising = [level for _, level in sorted(zip(shares, levels[len(prompt) :], strict=True))]
    assert rising == sorted(rising) and rising[0] < rising[-1]
    visit(f"?model=shakespeare&prompt=ROMEO&written={written('x')}&temperature=1&top_k=1&step=5", page)
    expect(page.locator("[data-drawn=probabilities] .text")).to_have_text("“x” is cut off, and has 0.")
    expect(page.locator("[data-drawn=point] .text")).to_contain_text("No random number falls on “x”: it is cut off.")


def test_with_all_open_nothing_is_wider_than_a_phone_and_a_finger_will_do(new_window, tiny_server, wait_ready):
    page = new_window(width=360, height=640, has_touch=True)
    page.goto(f"{tiny_server.url}/?prompt={PROMPT}&tokens=40&pace=unbounded")
    tokens(page).first.wait_for()
    until_shown(page)
    nothing_moves_while(page, lambda: (main_button(page, "Generate").tap(), until_written(page, len(PROMPT) + 40)))
    until_at_rest(page, wait_ready)
    tokens(page).nth(2).tap()
    page.wait_for_function(KEEPS_WASH, arg=tokens(page).nth(2).element_handle())  # its weights may be on their way
    tokens(page).nth(len(PROMPT) + 2).tap()
    page.get_by_role("button", name="Next token").tap()
    expect(part(page, "position")).to_have_text(f"token {len(PROMPT) + 3}")
    tip = page.get_by_role("tooltip")
    expect(tip).to_be_hidden()
    for index in range(len(PROMPT), len(PROMPT) + 40, 13):
        tokens(page).nth(index).tap()
        expect(part(page, "details")).to_have_text(re.compile(f"^Token {index} “"))
        page.mouse.move(0, 0)
        expect(tip).to_be_hidden()  # what it says of the token that was clicked stands below the text
        tokens(page).nth(index).hover()
        expect(tip).to_have_text(re.compile(f"^token {index} “"))
        until_drawn(page)
        box = tip.bounding_box()
        assert box["x"] >= 0 and box["y"] >= 0
        assert box["x"] + box["width"] <= 360 and box["y"] + box["height"] <= 640
    tokens(page).nth(len(PROMPT) + 5).hover()
    for words in ("id ", "probability ", "rank ", "nats", "bits", "attention"):
        expect(tip).to_contain_text(words)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    candidates(page).nth(3).tap()
    page.get_by_role("button", name="Compare").first.tap()
    expect(page.get_by_test_id("live-text-compared")).to_be_visible()
    for name in ("Written tokens as a table", "Attention as bars", "Sampling"):
        page.get_by_text(name).last.tap()
    until_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") == 0
