"""Tests that a visitor's work survives a restart of the server."""

import re
import signal

from tests.browser.at_rest import CONNECTED, DISCONNECTED
from tests.browser.attention_page import expect_model_of, parameters, turn_to, type_prompt, until
from tests.browser.generate_page import expect, look_at, main_button, picture, tokens, write, written

PROMPT = "KING: I am"
LEARNING = "?learn=task&task=next-vowel&shape=dials&n_heads=1&d_model=16"


def write_text(page, wait_ready, count):
    tokens(page).first.wait_for()
    write(page, wait_ready, count)
    until(page, lambda: len(written(page)) == count)


# Visitors are generators. Each yields the tab that is open while the server is away, and once more when it has done
# what it does first, the moment that the server is there again.


def one_who_turns_a_page(visit, wait_ready):
    """Which is asked for without parameters."""
    page = visit("?tokens=6&layer=1")
    type_prompt(page, PROMPT)
    wait_ready(page)
    write_text(page, wait_ready, 6)
    before, shown_text = parameters(page), tokens(page).all_inner_texts()
    assert len(shown_text) == len(PROMPT) + 6
    yield page
    turn_to(page, "Attention")
    yield
    wait_ready(page)
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(PROMPT)
    expect(page.get_by_role("heading", name="Layer 1, head 0")).to_be_visible()
    until(page, lambda: parameters(page) == before | {"head": "0"})
    turn_to(page, "Generate")
    until(page, lambda: tokens(page).all_inner_texts() == shown_text)


def one_who_chooses_a_head(visit, wait_ready):
    """Which is told to what is gone with the session."""
    page = visit(f"?prompt={PROMPT}&tokens=6&layer=1")
    write_text(page, wait_ready, 6)
    before, shown_text = parameters(page), tokens(page).all_inner_texts()
    yield page
    picture(page).get_by_label("Head", exact=True).select_option("head 1")
    yield
    wait_ready(page)  # until then the picture of before may stand beside the new one
    expect(picture(page)).to_contain_text(" looks most at ")
    until(page, lambda: tokens(page).all_inner_texts() == shown_text)
    look_at(page, "Head", "head 1")
    until(page, lambda: parameters(page) == before | {"head": "1"})


def one_who_types(visit, wait_ready):
    """And hasn't applied it yet."""
    page = visit("?prompt=ROMEO")
    box = page.get_by_role("textbox", name="Prompt", exact=True)
    box.fill("A horse")
    yield page
    yield
    wait_ready(page)
    expect(box).to_have_value("A horse")


def one_who_trains(visit, wait_ready, store):
    """What is trained until then is in the server's folder."""
    before = set(store.iterdir())
    page = visit(f"Train{LEARNING}&n_layers=4&steps=1000")
    main_button(page, "Train").click()
    page.get_by_text(re.compile("^Training: step [1-9]")).first.wait_for()
    yield page
    yield
    turn_to(page, "Masks")
    wait_ready(page)
    expect_model_of(page, "Yours")
    assert len({*store.iterdir()} - before) == 1


def test_what_visitors_had_is_there_when_the_server_was_away(
    visit, tiny_server, tiny_store, wait_ready, browser_errors
):
    visitors = [act(visit, wait_ready) for act in (one_who_turns_a_page, one_who_chooses_a_head, one_who_types)]
    visitors.append(one_who_trains(visit, wait_ready, tiny_store))
    pages = [next(visitor) for visitor in visitors]
    with tiny_server.away():
        assert tiny_server.process.returncode == -signal.SIGTERM
        for page in pages:
            page.locator(DISCONNECTED).wait_for()
    for visitor, page in zip(visitors, pages, strict=True):
        page.locator(CONNECTED).wait_for()
        next(visitor)
    browser_errors.clear()  # that nobody answered
    for visitor in visitors:
        assert list(visitor) == []  # goes on to its end
