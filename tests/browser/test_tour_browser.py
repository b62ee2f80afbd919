"""Tests the tour in a browser: it covers nothing it explains, and changes nothing."""

import re
import time

from tests.browser.address_bar import address
from tests.browser.attention_page import until

STATE = """() => {
  const { start } = headsupGuide;
  const rects = (elements) => elements.filter(Boolean).map((each) => each.getBoundingClientRect());
  const [card] = rects([start.parts.card]);
  const overlaps = (other) => Math.min(card.right, other.right) - Math.max(card.left, other.left) > 1
    && Math.min(card.bottom, other.bottom) - Math.max(card.top, other.top) > 1;
  const tips = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
    .flatMap(({ shadowRoot }) => [...(shadowRoot?.querySelectorAll("[role=tooltip]:popover-open") ?? [])]);
  const subject = rects([start.target])[0];
  const places = [card, subject].map((rect) => rect && [rect.left, rect.top, rect.right, rect.bottom].map(Math.round));
  return {
    places,
    covers: rects([start.target, ...document.querySelectorAll("[data-testid=stPopoverBody]"), ...tips])
      .filter(overlaps).length,
    isOutside: card.left < -1 || card.top < -1 || card.right > innerWidth + 1 || card.bottom > innerHeight + 1,
    isSeen: !subject || (subject.bottom > 0 && subject.top < innerHeight),
    veil: Math.max(...(getComputedStyle(start.parts.spot).boxShadow.match(/\\d+px/g) ?? ["0"]).map(parseFloat)),
  };
}"""
"""Of the tour's card: how much it covers of what it must not, and whether that can be seen."""
CLEAR = {"covers": 0, "isOutside": False, "isSeen": True}
CHANGED = "() => headsupGuide.start.changed.codes"
IS_DONE = "([isDone, title]) => headsupGuide.start.isDone === isDone && headsupGuide.start.record.title === title"


class Tour:
    """The tour on a page; after each step it lies still, covers nothing of what it is about, and is in the window."""

    def __init__(self, page):
        self.page, self.card, self.title = page, page.get_by_test_id("start"), ""
        self.card.wait_for()

    def look(self, is_done=False):
        self.title = self.card.get_by_role("heading").inner_text()
        self.page.wait_for_function(IS_DONE, arg=[is_done, self.title])
        deadline, before = time.monotonic() + 60, None
        while (state := self.page.evaluate(STATE)) != before or state | CLEAR != state:
            assert time.monotonic() < deadline, (self.title, state)
            before = state
            self.page.wait_for_timeout(250)  # longer than between two looks at where things are
        assert state["veil"] < 20

    def go_on(self, title, by_key=False):
        if by_key:
            self.page.keyboard.press("Enter")  # "Next" has had the focus since the step was done
        else:
            self.card.get_by_role("button", name="Next").click()
        self.card.get_by_role("heading", name=title).wait_for()
        self.look()


def test_the_tour_is_offered_once_gone_through_and_covers_nothing_that_it_is_about(app_url, new_page, wait_ready):
    page = new_page(width=1280, height=720)
    page.goto(app_url)
    wait_ready(page)
    offer, again = (page.get_by_role("button", name=name, exact=True) for name in ("New here? Take the tour", "Tour"))
    offer.wait_for()
    assert page.get_by_test_id("start").is_hidden()
    page.get_by_role("button", name="No tour").click()
    offer.wait_for(state="hidden")
    until(page, lambda: again.evaluate("(tour) => tour.getRootNode().activeElement === tour"))
    page.goto(address(page).partition("?")[0])
    wait_ready(page)
    again.wait_for()
    assert offer.is_hidden()

    page.wait_for_function("() => globalThis.headsupGuide")  # whose script comes after the page is at rest
    again.click()
    tour = Tour(page)
    tour.look()
    page.get_by_role("button", name="Generate", exact=True).click()
    tour.look(is_done=True)
    tour.go_on("Attention")
    page.get_by_test_id("live-text-token").and_(page.locator(".written")).first.click()
    tour.look(is_done=True)
    tour.go_on("Ablate a head")
    layer, head = (page.get_by_label(dial, exact=True).input_value().split()[-1] for dial in ("Layer", "Head"))
    page.get_by_role("button", name="Changes", exact=True).click()
    page.get_by_text(f"Layer {layer}, head {head} ablated.").wait_for()
    tour.look()
    page.get_by_role("button", name="Change this").click()
    tour.look(is_done=True)
    assert page.evaluate(CHANGED) == [f"scale~blocks.{layer}.attn.hook_z~{head}~~0.0"]
    page.get_by_role("region", name="Attention").get_by_text("(ablated: its output is set to zero)").wait_for()
    tour.go_on("Another head")
    page.wait_for_function(f"() => ({CHANGED})().length === 0")
    page.get_by_role("button", name="Changes", exact=True).wait_for()
    page.get_by_label("Layer", exact=True).select_option(index=1)
    tour.look(is_done=True)
    tour.go_on("Follow a logit")
    page.get_by_role("button", name="Open in Inside").click()
    tour.look(is_done=True)
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    tour.go_on("What next?")
    tour.card.get_by_role("button", name="Learn").click()
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    tour.card.wait_for(state="hidden")

    again.click()  # begun on another page
    tour.card.get_by_role("heading", name="Six steps on Generate").wait_for()
    page.get_by_role("heading", level=1, name="Learn").wait_for()
    tour.card.get_by_role("button", name="Next").click()
    page.get_by_role("heading", level=1, name="Generate").wait_for()
    tour.look(is_done=True)  # the text has ended: there is nothing to press


def test_the_tour_is_gone_through_by_keyboard_on_a_phone(visit, wait_ready):
    page = visit("?seed=3", width=420, height=860)
    page.get_by_role("button", name="Tour", exact=True).press("Enter")
    tour = Tour(page)
    card = tour.card
    until(page, lambda: card.evaluate("(card) => card.getRootNode().activeElement === card"))
    assert card.get_attribute("role") == "dialog" and card.get_attribute("aria-modal") is None
    page.get_by_label("Number of tokens").fill("30")  # the page can be used beside the card
    card.focus()

    def take(*keys):
        card.get_by_role("button", name="Take me there").press("Enter")
        for key in keys:
            page.keyboard.press(key)

    take("Enter")
    tour.look(is_done=True)
    page.get_by_text(re.compile("tokens written")).wait_for()
    tour.go_on("Attention", by_key=True)
    take("ArrowLeft")
    tour.look(is_done=True)
    tour.go_on("Ablate a head", by_key=True)
    take("Enter")
    page.wait_for_function("() => document.activeElement.closest('.st-key-change_this')")
    wait_ready(page)
    page.keyboard.press("Enter")
    tour.look(is_done=True)
    tour.go_on("Another head", by_key=True)
    wait_ready(page)
    is_first = page.get_by_label("Layer", exact=True).evaluate("(dial) => dial.selectedIndex === 0")
    take("ArrowDown" if is_first else "ArrowUp")
    tour.look(is_done=True)
    tour.go_on("Follow a logit", by_key=True)
    take("Enter")
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    tour.look(is_done=True)
    wait_ready(page)
    tour.go_on("What next?", by_key=True)
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")


def test_what_a_step_has_changed_is_undone_however_it_is_left_and_nothing_else(visit, wait_ready):
    own = "scale~blocks.1.attn.hook_z~1~~0.0"
    page = visit(f"?model=shakespeare&changes={own}")
    for way in ("Back", "Skip", "Escape"):
        page.get_by_role("button", name="Tour", exact=True).click()
        card = page.get_by_test_id("start")
        for title in ("Attention", "Ablate a head"):
            card.get_by_role("button", name="Next").click()
            card.get_by_role("heading", name=title).wait_for()
        page.get_by_role("button", name="1 change", exact=True).click()
        page.get_by_role("button", name="Change this").click()
        page.wait_for_function("() => headsupGuide.start.isDone")
        assert len(page.evaluate(CHANGED)) == 2
        if way == "Escape":
            page.keyboard.press("Escape")
        else:
            card.get_by_role("button", name=way).click()
        page.wait_for_function(f"() => ({CHANGED})().length === 1")
        assert page.evaluate(CHANGED) == [own], way
        wait_ready(page)
