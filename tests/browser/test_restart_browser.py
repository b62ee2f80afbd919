"""Tests that a visitor's work survives a restart of the server."""

from urllib.parse import parse_qsl, urlsplit

from tests.browser.address_bar import come_to
from tests.browser.at_rest import CONNECTED, DISCONNECTED
from tests.browser.attention_page import all_equal, expect_model_of, head, parameters, turn_to, until, until_shown
from tests.browser.generate_page import expect, inspect, labels, look_at, main_button, picture, tokens, write, written

PROMPT = "KING: I am"
SMALL = "?learn=task&task=sort-letters&shape=dials&n_layers=1&n_heads=2&d_model=32&steps=50"


class Visitors:
    """Each is a generator. It yields the tab that is open while the server is away, if one is, and once more when it
    has done what it does first, the moment that the server is there again."""

    def __init__(self, server, store, new_page, wait_ready):
        self.server, self.store, self.url = server, store, server.url
        self.new_page, self.wait_ready = new_page, wait_ready

    def visit(self, path, **options):
        page = self.new_page(**options)
        page.goto(f"{self.url}/{path}")
        page.get_by_role("heading", level=1).wait_for()
        self.wait_ready(page)
        return page

    def write(self, page, count):
        tokens(page).first.wait_for()
        write(page, self.wait_ready, count)
        until(page, lambda: len(written(page)) == count)

    def one_who_has_trained(self):
        """Their model is in the server's folder, and a link shares it."""
        before = set(self.store.iterdir())
        page = self.visit(f"Train{SMALL}")
        main_button(page, "Train").click()
        expect(page.get_by_text("is now one of your models").first).to_be_visible()
        yield page
        yield
        turn_to(page, "Masks")
        self.wait_ready(page)  # a run of the page closes the list
        expect_model_of(page, "Yours")
        (folder,) = {*self.store.iterdir()} - before
        other = self.visit(f"Masks?model={folder.name}", apart=True)
        expect_model_of(other, "Shared with you")
        assert other.get_by_text("was deleted a day after its last use").count() == 0
        assert folder.name not in self.server.log()

    def one_who_turns_a_page(self):
        """Which is asked for without parameters."""
        page = self.visit("?tokens=6&layer=1")
        box = page.get_by_role("textbox", name="Prompt", exact=True)
        box.fill(PROMPT)
        box.press("Control+Enter")
        self.wait_ready(page)
        self.write(page, 6)
        before, shown_text = parameters(page), tokens(page).all_inner_texts()
        assert len(shown_text) == len(PROMPT) + 6
        yield page
        turn_to(page, "Attention")
        yield
        self.wait_ready(page)
        expect(box).to_have_value(PROMPT)
        expect(page.get_by_role("heading", name="Layer 1, head 0")).to_be_visible()
        until(page, lambda: parameters(page) == before)
        turn_to(page, "Generate")
        self.wait_ready(page)
        until(page, lambda: tokens(page).all_inner_texts() == shown_text)

    def one_who_chooses_a_head(self):
        """Which is told to what is gone with the session."""
        page = self.visit(f"?prompt={PROMPT}&tokens=6&layer=1")
        self.write(page, 6)
        before, shown_text = parameters(page), tokens(page).all_inner_texts()
        yield page
        page.get_by_label("Head", exact=True).select_option("head 1")
        yield
        self.wait_ready(page)  # until then the picture of before may stand beside the new one
        expect(picture(page)).to_contain_text(" looks most at ")
        until(page, lambda: tokens(page).all_inner_texts() == shown_text)
        look_at(page, "Head", "head 1")
        until(page, lambda: parameters(page) == before | {"head": "1"})

    def one_who_looks_at_attention(self):
        page = self.visit("Attention?model=far-reader&prompt=To be, or not&query=7&key=3")
        until_shown(page, (0, 0, 7, 3))
        yield page
        yield
        self.wait_ready(page)
        until_shown(page, (0, 0, 7, 3))
        head(page, 2, 1).click()
        until_shown(page, (2, 1, 7, 3))
        all_equal(page)
        chosen = {"layer": "2", "head": "1", "query": "7", "key": "3"}
        until(page, lambda: chosen.items() <= parameters(page).items())
        turn_to(page, "Generate")
        expect(picture(page)).to_contain_text("layer 2, head 1")

    def one_who_types(self):
        """And hasn't applied it yet."""
        page = self.visit("?prompt=ROMEO")
        page.wait_for_function("globalThis.headsupInputDrafts?.session")
        box = page.get_by_role("textbox", name="Prompt", exact=True)
        box.fill("A horse")
        yield page
        yield
        self.wait_ready(page)
        expect(box).to_have_value("A horse")

    def one_who_sends_a_link(self):
        """It opens the same view for somebody else, on a server that knows nothing of the one before."""
        page = self.visit(f"?prompt={PROMPT}&tokens=9&temperature=1.3")
        self.write(page, 9)
        look_at(page, "Layer", "layer 1")
        look_at(page, "Head", "head 1")
        self.wait_ready(page)
        place = len(PROMPT) + 4
        inspect(page, place)
        shown_labels, looked = labels(page), picture(page).inner_text()
        candidates = page.get_by_test_id("live-text-candidates").inner_text()
        page.get_by_role("button", name="Share").click()
        link = page.get_by_test_id("stPopoverBody").locator("code").filter(has_text="?model=").inner_text()
        link = urlsplit(link).query
        sent = dict(parse_qsl(link))
        until(page, lambda: parameters(page) == sent)
        page.goto("about:blank")
        yield None
        yield
        page = self.visit(f"?{link}", apart=True)
        until(page, lambda: labels(page) == shown_labels)
        expect(tokens(page).nth(place)).to_have_attribute("aria-selected", "true")
        until(page, lambda: page.get_by_test_id("live-text-candidates").inner_text() == candidates)
        until(page, lambda: picture(page).inner_text() == looked)
        assert "layer 1, head 1" in looked
        until(page, lambda: parameters(page) == sent)
        for name in ("Attention", "Positions"):
            come_to(page, f"/{name}?{link}")
            expect(page.get_by_role("heading", level=1)).to_have_text(name)
            self.wait_ready(page)
            expect(page.get_by_role("link", name="Generate")).to_be_visible()
            expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(PROMPT)
            until(page, lambda: parameters(page) == sent)
            if name == "Attention":
                expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()


def test_what_visitors_had_is_there_when_the_server_was_away(
    tiny_server, tiny_store, new_page, wait_ready, browser_errors
):
    they = Visitors(tiny_server, tiny_store, new_page, wait_ready)
    visitors = [
        they.one_who_has_trained(),
        they.one_who_chooses_a_head(),
        they.one_who_turns_a_page(),
        they.one_who_looks_at_attention(),
        they.one_who_types(),
        they.one_who_sends_a_link(),
    ]
    waiting = {visitor: page for visitor in visitors if (page := next(visitor))}
    with tiny_server.away():
        for page in waiting.values():
            page.locator(DISCONNECTED).wait_for()
    for visitor in visitors:
        if visitor in waiting:
            waiting[visitor].locator(CONNECTED).wait_for()
        next(visitor)
    browser_errors.clear()  # that nobody answered
    for visitor in visitors:
        assert list(visitor) == []  # goes on to its end
