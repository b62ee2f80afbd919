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

PROMPT = "ROMEO:"

# Everything that is to stay the same node from the first token to the last: tagged once, counted at the end.
TAG = """(root) => {
  window.tagged = [root, ...root.querySelectorAll("*")];
  for (const node of window.tagged) node.tagged = true;
}"""
LOST = "() => window.tagged.filter((node) => !node.isConnected).length"
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
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    """`visit(query, page=None, **options)`: a visitor of Generate that has come to rest."""

    def open_page(query="", page=None, **options):
        page = page or new_page(**options)
        page.goto(f"{tiny_server.url}/?prompt={PROMPT}&pace=unbounded&{query}")
        until_shown(page)
        wait_ready(page)
        return page

    return open_page


KEEPS_WASH = """(span) => {
  const apart = span.cloneNode();
  span.after(apart);
  const [here, there] = [span, apart].map((each) => getComputedStyle(each).backgroundColor);
  apart.remove();
  return Boolean(span.style.backgroundColor) && here === there;
}"""
"""Whether a token that was touched has the colour that its attention weight gives it."""
SIGN = """([strip, opacity]) => {
  const sign = getComputedStyle(strip, "::after");
  return strip.dataset.dim === "true" && sign.content === '"▍"' && sign.opacity === opacity;
}"""
"""Whether the sign after the last token is shown this strongly in the second half of its beat."""


def nothing_moves_while(page, write_on):
    """Every node stays, at its place, from the first token to the last."""
    live_text(page).evaluate(TAG)
    live_text(page).evaluate(FOLLOW)
    write_on()
    assert page.evaluate(LOST) == 0
    first, *others = [json.loads(place) for place in page.evaluate("[...window.places]")]
    assert [[moved for moved in zip(first, other, strict=True) if moved[0] != moved[1]] for other in others] == []


def test_all_that_writes_is_in_the_first_screen_nothing_moves_and_what_is_used_keeps_the_focus(visit, wait_ready):
    page = visit("tokens=30&pace=fast")
    for width, height in ((420, 860), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        until_drawn(page)
        expect(candidates(page).first).to_contain_text("%")
        for element in (main_button(page, "Generate"), part(page, "strip"), part(page, "largest")):
            box = element.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
        if width < 600:
            assert main_button(page, "Generate").bounding_box()["y"] <= 310
        face = "(node) => getComputedStyle(node).fontFamily"
        assert part(page, "strip").evaluate(face) == page.get_by_test_id("stApp").evaluate(face)
        if width > 1000:
            assert candidates(page).nth(9).bounding_box()["y"] + 20 <= height
    assert not part(page, "drawn").is_visible()
    expect(page.get_by_label("Temperature")).to_be_hidden()
    canvas = sampling_opened(page).locator("canvas").first
    expect(page.get_by_label("Temperature")).to_be_visible()
    canvas.scroll_into_view_if_needed()  # while the page scrolls, a card would go
    until_drawn(page)
    canvas.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("logit")
    said = canvas.get_attribute("aria-label")
    assert tip.inner_text().replace("\n", ", ") in said
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    main_button(page, "Sampling").click()
    expect(page.get_by_label("Temperature", exact=True)).to_be_hidden()

    # Nothing moves.
    page.set_viewport_size({"width": 1280, "height": 700})
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 90)")
    main_button(page, "Step").click()
    until_written(page, len(PROMPT) + 1)
    wait_ready(page)
    nothing_moves_while(page, lambda: write(page, wait_ready, 30))

    strongest = set()
    for place in range(len(PROMPT), len(PROMPT) + 8):
        tokens(page).nth(place).click()
        expect(part(page, "largest")).to_contain_text(re.compile(f": token {place - 1} .* looks most at token"))
        largest = float(part(page, "largest").inner_text().rpartition(", ")[2].strip("%")) / 100
        washes = tokens(page).evaluate_all(
            "(all) => all.map(({ style }) => +(style.backgroundColor.match(/(\\d+)%/)?.[1] ?? 0))"
        )
        bars = (
            part(page, "columns")
            .locator(".column:not([hidden]) i")
            .evaluate_all("(all) => all.map(({ style }) => parseFloat(style.backgroundSize.split(' ')[1]))")
        )
        assert max(bars) == pytest.approx(100 * largest, abs=0.51)
        assert max(washes) == pytest.approx(55 * largest, abs=1.4)
        strongest.add(max(washes))
    assert len(strongest) > 1

    page.get_by_text("Attention as bars").click()
    columns = part(page, "columns").locator(".column:not([hidden])").all()
    columns.sort(key=lambda column: column.bounding_box()["x"])
    assert [column.inner_text() for column in columns] == [
        label.split(", ")[0] for label in labels(page)[: len(columns)]
    ]

    # A token of the prompt shows what the model predicts after it.
    tokens(page).nth(2).click()
    expect(tokens(page).nth(2)).to_have_attribute("aria-selected", "true")
    words = f"Token 3 “{PROMPT[3]}” stands in the prompt after “{PROMPT[2]}”: probability "
    words = re.compile(re.escape(words) + "[<>.0-9]+%, rank [0-9]+, entropy ")
    expect(part(page, "details")).to_have_text(words)
    expect(part(page, "largest")).to_contain_text(f"token 2 “{PROMPT[2]}” looks most at token")
    expect(part(page, "title")).to_have_text(f"Candidates for token 3, after “{PROMPT[2]}”")
    expect(part(page, "position")).to_have_text("token 3")
    expect(candidates(page).first).to_have_attribute("aria-disabled", "true")
    expect(page).to_have_url(re.compile("step=3"))
    page.keyboard.press("Home")
    assert focused(page) == PROMPT[0]
    expect(part(page, "title")).to_have_text(f"Candidates for token 1, after “{PROMPT[0]}”")
    page.keyboard.press("End")
    expect(tokens(page).last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowLeft")
    expect(part(page, "position")).to_have_text(f"token {len(PROMPT) + 29}")
    assert page.get_by_test_id("live-text-strip").locator("[aria-selected=true]").count() == 1

    for name, end in (("Next token", f"token {len(PROMPT) + 31}"), ("Previous token", f"token {len(PROMPT) + 26}")):
        button = page.get_by_role("button", name=name)
        button.focus()
        for _ in range(5):
            page.keyboard.press("Enter")
        expect(part(page, "position")).to_have_text(end)
        assert button.evaluate("(button) => button.matches(':focus')")
    candidate = candidates(page).nth(2)
    candidate.focus()
    page.keyboard.press("Enter")
    expect(branches(page)).to_have_count(2)
    assert candidate.evaluate("(button) => button.matches(':focus')")

    sampling_opened(page)
    page.get_by_label("Number of tokens").fill("500")  # which are not all there before it is stopped
    main_button(page, "Generate").click()
    until_written(page, tokens(page).count() + 2)
    strip = page.get_by_test_id("live-text-strip")
    page.wait_for_function(SIGN, arg=[strip.element_handle(), "0.15"])
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_function(SIGN, arg=[strip.element_handle(), "1"])
    main_button(page, "Stop").click()
    until(page, lambda: strip.evaluate("(strip) => getComputedStyle(strip, '::after').content") == "none")


def test_a_step_out_of_sight_is_drawn_once_it_comes_in_sight_and_the_box_follows_the_end(visit, wait_ready):
    page = visit("tokens=12&seed=2", height=500)
    write(page, wait_ready, 12)
    last = live_text(page).locator("[data-drawn=probabilities] canvas")
    late = last.evaluate(PICTURE)
    last.scroll_into_view_if_needed()
    page.wait_for_function(f"([canvas, late]) => ({PICTURE})(canvas) !== late", arg=[last.element_handle(), late])
    until_drawn(page)
    drawn = last.evaluate(PICTURE)
    page.set_viewport_size({"width": 1280, "height": 2400})
    page.reload()  # where it is in sight from the first
    until_written(page, len(PROMPT) + 12)
    wait_ready(page)
    until(page, lambda: last.evaluate(PICTURE) == drawn)

    page = visit(f"tokens=500&pace=fast&text={'ROME' * 150}", page)
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


def test_tokens_are_underlined_by_their_probability_and_one_that_is_cut_off_has_none(visit):
    page = visit("temperature=2&text=,%20my%20lord.%0AZounds%20Q")
    levels = tokens(page).evaluate_all("(all) => all.map(({ style }) => +(style.boxShadow.match(/(\\d+)%/)?.[1] ?? 0))")
    known = [label.rpartition(", ")[2] for label in labels(page)[len(PROMPT) :]]
    colour = "(token) => getComputedStyle(token).color"
    unlooked = page.locator(".token.prompt:not([style*='--ink'])").first
    assert unlooked.evaluate(colour) != page.locator(".token.written").last.evaluate(colour)
    assert levels[: len(PROMPT)] == [0] * len(PROMPT) and all(share.endswith("%") for share in known)
    shares = [float(share.strip("<> %")) for share in known]
    rising = [level for _, level in sorted(zip(shares, levels[len(PROMPT) :], strict=True))]
    assert rising == sorted(rising) and rising[0] < rising[-1]

    page = visit("text=x&temperature=1&top_k=1&step=6", page)
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
