"""Tests back, forward, typing and reconnecting in a browser."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.address_bar import address
from tests.browser.generate_page import expect, focused, look_at, picture, tokens


@pytest.fixture
def visit(tiny_server, new_page, wait_ready):
    def open_page(path="", **options):
        page = new_page(**options)
        page.goto(f"{tiny_server.url}/{path}")
        until_on(page, path.partition("?")[0] or "Generate", wait_ready)
        return page

    return open_page


def until_on(page, name, wait_ready):
    page.get_by_role("heading", level=1, name=name).wait_for(timeout=60_000)
    wait_ready(page, timeout=60)


def turn_to(page, name, wait_ready):
    """Go to another page by the navigation."""
    page.get_by_role("link", name=name).click()
    until_on(page, name, wait_ready)


def prompt_box(page):
    return page.get_by_role("textbox", name="Prompt", exact=True)


def type_prompt(page, typed, wait_ready):
    prompt_box(page).fill(typed)
    prompt_box(page).press("Control+Enter")
    wait_ready(page)


def entries(page):
    return page.evaluate("history.length")


def parameters(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(address(page)).query, keep_blank_values=True).items()}


def until(page, condition, seconds=30):
    """Wait for what the address says; it is written when the page has been drawn."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, address(page)
        page.wait_for_timeout(50)


def test_one_step_back_leaves_a_page_to_the_one_before_as_it_was(visit, wait_ready):
    page = visit()
    before = entries(page)
    for typed in ("To be", "To be, or", "KING: I am"):
        type_prompt(page, typed, wait_ready)
        until(page, lambda typed=typed: parameters(page).get("prompt") == typed)
    look_at(page, "Layer", "layer 1")
    until(page, lambda: parameters(page).get("layer") == "1")
    assert entries(page) == before
    turn_to(page, "Attention", wait_ready)
    assert entries(page) == before + 1
    page.get_by_role("button", name="Layer 1, head 1").click()
    until(page, lambda: parameters(page).get("head") == "1")
    attention = parameters(page)
    assert (attention["prompt"], attention["layer"], attention["head"]) == ("KING: I am", "1", "1")
    turn_to(page, "Masks", wait_ready)
    type_prompt(page, "Hello world", wait_ready)
    assert entries(page) == before + 2

    page.go_back()
    until_on(page, "Attention", wait_ready)
    until(page, lambda: urlsplit(address(page)).path == "/Attention" and parameters(page) == attention)
    expect(prompt_box(page)).to_have_value("KING: I am")
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    page.go_back()
    until_on(page, "Generate", wait_ready)
    assert urlsplit(address(page)).path == "/"
    until(page, lambda: parameters(page) == attention | {"head": "0"})
    expect(picture(page)).to_contain_text("layer 1, head 0")
    page.go_forward()
    until_on(page, "Attention", wait_ready)
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    page.go_forward()
    until_on(page, "Masks", wait_ready)
    expect(prompt_box(page)).to_have_value("Hello world")
    assert entries(page) == before + 2


def test_what_was_written_comes_back_with_its_page(visit, wait_ready):
    page = visit("?tokens=6")
    main = page.get_by_test_id("stMain")
    tokens(page).first.wait_for()
    given = tokens(page).count()
    main.get_by_role("button", name="Generate", exact=True).click()
    expect(tokens(page)).to_have_count(given + 6)
    wait_ready(page)
    until(page, lambda: parameters(page).get("written", "").count(".") == 5)
    written = parameters(page)["written"]
    turn_to(page, "Positions", wait_ready)
    type_prompt(page, "KING:", wait_ready)
    until(page, lambda: "written" not in parameters(page))
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(tokens(page)).to_have_count(given + 6)
    until(page, lambda: parameters(page).get("written") == written)


def test_prompts_of_any_length_follow_one_another(visit, wait_ready):
    page = visit("Attention")
    page.get_by_role("button", name="How it comes about").click()
    type_prompt(page, "Hello world", wait_ready)
    turn_to(page, "Generate", wait_ready)
    turn_to(page, "Attention", wait_ready)
    for typed in ("the king", "my lord of York", "Hello world", "the king", "the king#", "the king"):
        type_prompt(page, typed, wait_ready)
        expect(page.get_by_label("Query (row)").locator(":checked")).to_have_text(f"{len(typed) - 1}: {typed[-1]}")
    until(page, lambda: not {"query", "key"} & set(parameters(page)))


def test_batches_of_any_length_follow_one_another(visit, wait_ready):
    page = visit("Masks?batch=one")
    box = page.get_by_role("textbox", name="Prompts, one per line")
    for lines in ("one\ntwo\nthree\nfour", "one\ntwo", "one\ntwo\nthree"):
        box.fill(lines)
        box.press("Control+Enter")
        wait_ready(page)
    type_prompt(page, "😀", wait_ready)
    type_prompt(page, "ROMEO:", wait_ready)
    box.fill("four\nfive")
    box.press("Control+Enter")
    wait_ready(page)
    until(page, lambda: parameters(page).get("batch") == "four\nfive")
    found = parameters(page)
    assert found["batch"] == "four\nfive" and not {"filler", "pad_side", "scope"} & set(found)


def test_the_family_of_models_stays_marked_through_a_page_without_models(visit, wait_ready):
    page = visit()
    turn_to(page, "Train", wait_ready)
    turn_to(page, "Generate", wait_ready)


def test_what_is_typed_and_not_applied_outlives_a_reload(visit, wait_ready):
    page = visit("?prompt=ROMEO")
    wait_ready(page)
    page.wait_for_function("globalThis.headsupTyped?.session")
    prompt_box(page).fill("KING: I")
    page.reload()
    wait_ready(page)
    expect(prompt_box(page)).to_have_value("KING: I")
    assert parameters(page)["prompt"] == "ROMEO"  # as it was: it still waits to be applied
    page.keyboard.type(" am")  # where the cursor was
    page.keyboard.press("Control+Enter")
    until(page, lambda: parameters(page)["prompt"] == "KING: I am")

    page.reload()  # nothing waits any more
    wait_ready(page)
    expect(prompt_box(page)).to_have_value("KING: I am")
    expect(prompt_box(page)).not_to_be_focused()


CLICKABLE = (
    "http://example.org/x",
    "https://www.example.org",
    "www.example.org/a",
    "me@example.org",
    "mailto:me@example.org",
    ":material/info:",
    ":streamlit:",
    "![x](http://example.org/a.png)",
)
PARAMETERS = ("seed", "model", "pace", "temperature", "top_k", "top_p", "tokens", "layer")


@pytest.mark.parametrize("shift", [0, 3, 6])
def test_nothing_of_a_link_becomes_something_to_click(visit, shift):
    values = CLICKABLE[shift:] + CLICKABLE[:shift]
    page = visit("?" + "&".join(f"{name}={value}" for name, value in zip(PARAMETERS, values, strict=True)))
    alert = page.get_by_test_id("stMain").get_by_test_id("stAlert")
    said = alert.inner_text().replace("\u2060", "")
    assert [said.count(f"“{value}”") for value in values] == [1] * len(values)
    assert alert.locator("a, img, [data-testid=stIconMaterial]:not(:scope > *)").count() <= 1  # the alert's own icon
    assert page.get_by_test_id("stMain").locator("a").count() == 0


def test_a_prompt_too_long_for_a_link_is_left_out_and_the_page_can_be_opened_again(visit, wait_ready):
    page = visit("?seed=7")
    type_prompt(page, "😀" * 2_500, wait_ready)
    expect(page.get_by_text("Too long for the link: the prompt.")).to_be_visible()
    until(page, lambda: len(address(page)) < 8_000 and "prompt" not in parameters(page))
    turn_to(page, "Masks", wait_ready)
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("😀" * 2_500)
    page.reload()
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).to_have_value("😀" * 2_500)
    until(page, lambda: parameters(page).get("seed") == "7")
    page.goto(address(page).partition("?")[0])  # another view, to which the prompt doesn't belong
    until_on(page, "Generate", wait_ready)
    expect(prompt_box(page)).not_to_have_value("😀" * 2_500)
    prompt_box(page).fill("a" * 6_000)
    assert len(prompt_box(page).input_value()) <= 5_000


def test_what_is_looked_at_counts_in_a_tab_that_was_opened_by_a_link(visit, wait_ready):
    """Whose run is told that link by Streamlit, whatever the bar holds since."""
    page = visit("Attention?model=shakespeare&prompt=To be&layer=0&head=0")
    page.get_by_role("button", name="Layer 1, head 1").click()
    until(page, lambda: parameters(page).get("head") == "1")
    type_prompt(page, "KING: I am", wait_ready)
    until(page, lambda: parameters(page).get("prompt") == "KING: I am")
    assert (parameters(page)["layer"], parameters(page)["head"]) == ("1", "1")
    page.get_by_role("button", name="Share").click()
    link = page.get_by_test_id("stPopoverBody").locator("code").filter(has_text="?model=")
    expect(link).to_have_text(re.compile("prompt=KING%3A.*layer=1&head=1"))
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def test_a_page_that_frames_the_app_is_told_its_address(tiny_server, new_page):
    """As Community Cloud does, which keeps the address bar."""
    page = new_page()
    page.goto(tiny_server.url)  # from where the frame may be shown
    app = f"{tiny_server.url}/Masks?prompt=To+be&filler=5"
    page.set_content(f"""<iframe src="{app}" style="width: 1200px; height: 800px"></iframe>
      <script>addEventListener("message", ({{ data }}) => {{
        if (data.type === "SET_QUERY_PARAM") window.told = data.queryParams; }});</script>""")
    framed = page.frame_locator("iframe")
    framed.get_by_role("heading", level=1, name="Masks").wait_for(timeout=60_000)
    until(page, lambda: page.evaluate("window.told") == "?model=shakespeare&prompt=To+be&filler=5&layer=0&head=0")
    framed.get_by_role("textbox", name="Prompt", exact=True).fill("KING:")
    framed.get_by_role("textbox", name="Prompt", exact=True).press("Control+Enter")
    until(page, lambda: "prompt=KING%3A" in page.evaluate("window.told"))


def test_the_keyboard_stays_on_what_starts_and_stops_the_writing(visit, wait_ready):
    page = visit("?tokens=500&pace=steady")
    main = page.get_by_test_id("stMain")
    for key in ("Enter", "Space"):
        main.get_by_role("button", name="Generate", exact=True).focus()
        page.keyboard.press(key)
        until(page, lambda: focused(page) == "Stop")
        page.keyboard.press(key)
        until(page, lambda: focused(page) == "Generate")
        wait_ready(page)
        expect(main.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
        page.keyboard.press("Tab")
        assert focused(page) == "Step"
        page.keyboard.press(key)
        wait_ready(page)
        assert focused(page) == "Step"
        prompt_box(page).focus()
        wait_ready(page)
        expect(prompt_box(page)).to_be_focused()


def test_the_keyboard_comes_back_when_the_writing_ends_by_itself(visit, wait_ready):
    page = visit("?tokens=3&pace=unbounded")
    page.get_by_test_id("stMain").get_by_role("button", name="Generate", exact=True).focus()
    page.keyboard.press("Enter")
    until(page, lambda: parameters(page).get("written", "").count(".") == 2)
    until(page, lambda: focused(page) == "Generate")
    wait_ready(page)
    assert focused(page) == "Generate"
