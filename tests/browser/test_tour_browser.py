"""Tests the tour in a browser: it covers nothing it explains, and changes nothing."""

import re

import pytest

STATE = """() => {
  const { start } = headsupGuide;
  const rects = (elements) => elements.filter(Boolean).map((each) => each.getBoundingClientRect());
  const [card] = rects([start.parts.card]);
  const overlaps = (other) => Math.min(card.right, other.right) - Math.max(card.left, other.left) > 1
    && Math.min(card.bottom, other.bottom) - Math.max(card.top, other.top) > 1;
  const tips = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
    .flatMap(({ shadowRoot }) => [...(shadowRoot?.querySelectorAll("[role=tooltip]:popover-open") ?? [])]);
  const subject = rects([start.target])[0];
  return {
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


def on_tour(page):
    page.wait_for_function("() => globalThis.headsupGuide")
    page.get_by_role("button", name="Tour", exact=True).click()
    card = page.get_by_test_id("start")
    card.wait_for()
    return card


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (420, 860)])
def test_the_tour_is_gone_through_and_covers_nothing_that_it_is_about(app_url, new_page, wait_ready, width, height):
    page = new_page(width=width, height=height)
    page.goto(app_url)
    wait_ready(page, timeout=90)
    card = on_tour(page)

    def look(is_done=False):
        page.wait_for_function("(isDone) => headsupGuide.start.isDone === isDone", arg=is_done, timeout=60_000)
        page.wait_for_timeout(1_500)  # longer than it is scrolled to
        state = page.evaluate(STATE)
        assert state.pop("veil") < 20
        assert state == CLEAR

    def go_on(title):
        card.get_by_role("button", name="Next").click()
        card.get_by_role("heading", name=title).wait_for()
        look()

    look()
    page.get_by_role("button", name="Generate", exact=True).click()
    look(is_done=True)
    go_on("Attention")
    page.get_by_test_id("live-text-token").and_(page.locator(".written")).first.click()
    look(is_done=True)
    go_on("Ablate a head")
    layer, head = (page.get_by_label(dial, exact=True).input_value().split()[-1] for dial in ("Layer", "Head"))
    page.get_by_role("button", name="Changes", exact=True).click()
    page.get_by_text(f"Layer {layer}, head {head} ablated.").wait_for()
    look()
    page.get_by_role("button", name="Change this").click()
    look(is_done=True)
    assert page.evaluate(CHANGED) == [f"scale~blocks.{layer}.attn.hook_z~{head}~~0.0"]
    go_on("Another head")
    page.wait_for_function(f"() => ({CHANGED})().length === 0")
    page.get_by_role("button", name="Changes", exact=True).wait_for()
    page.get_by_label("Layer", exact=True).select_option(index=1)
    look(is_done=True)
    go_on("Follow a logit")
    page.get_by_role("button", name="Open in Inside").click()
    look(is_done=True)
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    go_on("What next?")
    card.get_by_role("button", name="Learn").click()
    page.get_by_role("heading", level=1, name="Learn").wait_for(timeout=60_000)
    assert card.is_hidden()


@pytest.mark.parametrize("way", ["Escape", "Skip", "Back"])
def test_what_a_step_has_changed_is_undone_however_it_is_left_and_nothing_else(tiny_server, new_page, wait_ready, way):
    page = new_page()
    own = "scale~blocks.1.attn.hook_z~1~~0.0"
    page.goto(f"{tiny_server.url}/?model=shakespeare&changes={own}")
    wait_ready(page, timeout=90)
    card = on_tour(page)
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
    assert page.evaluate(CHANGED) == [own]


def test_the_tour_is_gone_through_by_keyboard(tiny_server, new_page, wait_ready):
    page = new_page(width=420)
    page.goto(f"{tiny_server.url}/?seed=3")
    wait_ready(page, timeout=90)
    page.wait_for_function("() => globalThis.headsupGuide")
    page.get_by_role("button", name="Tour", exact=True).press("Enter")
    card = page.get_by_test_id("start")
    card.wait_for()
    assert card.evaluate("(card) => card.getRootNode().activeElement === card")
    assert card.get_attribute("role") == "dialog" and card.get_attribute("aria-modal") is None
    page.get_by_label("Number of tokens").fill("30")  # the page can be used beside the card
    card.focus()

    def is_done(number):
        page.wait_for_function(
            "(number) => headsupGuide.start.step === number - 1 && headsupGuide.start.isDone", arg=number
        )

    def go_there():
        card.get_by_role("button", name="Take me there").press("Enter")

    def go_on(title):
        page.keyboard.press("Enter")  # "Next" has had the focus since the step was done
        card.get_by_role("heading", name=title).wait_for()

    go_there()
    page.keyboard.press("Enter")
    is_done(1)
    page.get_by_text(re.compile("tokens written")).wait_for(timeout=60_000)
    go_on("Attention")
    go_there()
    page.keyboard.press("ArrowLeft")
    is_done(2)
    go_on("Ablate a head")
    go_there()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.closest('.st-key-change_this')")
    wait_ready(page)
    page.keyboard.press("Enter")
    is_done(3)
    go_on("Another head")
    wait_ready(page)
    go_there()
    page.keyboard.press("ArrowUp")
    page.wait_for_timeout(400)  # longer than between two looks at what is done; of two layers, one of the keys leads on
    page.keyboard.press("ArrowDown")
    is_done(4)
    go_on("Follow a logit")
    go_there()
    page.keyboard.press("Enter")
    is_done(5)
    page.get_by_role("heading", level=1, name="Inside").wait_for()
    wait_ready(page, timeout=60)
    go_on("What next?")
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")
