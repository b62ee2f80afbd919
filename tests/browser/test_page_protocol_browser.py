"""Tests the protocol between shell and Python in a tiny app, `page_protocol_app`: what runs when, and what is kept.

Python draws model, prompt and a dial on its page Masks, and nothing of them on Generate.
"""

import pytest
from playwright.sync_api import expect

from tests.browser.at_rest import CONNECTED, DISCONNECTED
from tests.browser.framing_pages import learning_platform
from tests.browser.servers import ROOT

APP = ROOT / "tests" / "browser" / "page_protocol_app" / "main.py"
LINK = "Masks?model=shakespeare&prompt=ROMEO&positions_shown=100"


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A file; while it is there, runs of Masks don't end."""
    return tmp_path_factory.mktemp("gate") / "closed"


@pytest.fixture(scope="module")
def server(serve, gate):
    return serve(APP, env={"GATE": str(gate), "PYTHONPATH": str(ROOT)})


@pytest.fixture
def tab(server, new_page, browser_errors):
    page = new_page()
    page.goto(f"{server.url}/{LINK}")
    drawn(page, "Run 1: shakespeare, ROMEO, 100")
    return page


def drawn(page, text):
    """Python has drawn this, and of what the shell holds now."""
    expect(page.get_by_test_id("stText")).to_have_text(text)
    expect(page.locator("[data-part=stale]")).to_have_text("")


def fill(page, name, text):
    page.get_by_label(name, exact=True).fill(text)
    page.get_by_label(name, exact=True).press("Enter")


def link_to(page, name):
    return page.get_by_test_id("stTopNavLink").filter(has_text=name)


def turn_dial(page):
    page.get_by_role("slider", name="Tokens").press("ArrowRight")


def holds(page, path):
    """The address bar has come to hold this."""
    page.wait_for_function("(path) => (location.pathname + location.search).endsWith(path)", arg=path)


def test_python_runs_once_for_what_it_draws_and_never_for_anything_else(tab):
    fill(tab, "Layer", "2")
    holds(tab, f"{LINK}&layer=2")
    fill(tab, "Prompt", "JULIET")
    drawn(tab, "Run 2: shakespeare, JULIET, 100")  # and the layer ran nothing
    turn_dial(tab)
    drawn(tab, "Run 3: shakespeare, JULIET, 101")
    turn_dial(tab)
    drawn(tab, "Run 4: shakespeare, JULIET, 102")
    holds(tab, "/Masks?model=shakespeare&prompt=JULIET&positions_shown=102&layer=2")


def test_pages_change_with_one_entry_in_the_history_and_one_run_each_and_back_brings_each_as_it_was(tab):
    shell = tab.get_by_label("Prompt", exact=True).element_handle()
    entries = tab.evaluate("history.length")
    turn_dial(tab)
    drawn(tab, "Run 2: shakespeare, ROMEO, 101")
    link_to(tab, "Generate").click()
    drawn(tab, "Run 3")
    holds(tab, "/?model=shakespeare&prompt=ROMEO&positions_shown=101")
    fill(tab, "Prompt", "HAMLET")  # which runs nothing here
    holds(tab, "/?model=shakespeare&prompt=HAMLET&positions_shown=101")
    tab.go_back()
    drawn(tab, "Run 4: shakespeare, ROMEO, 101")
    tab.go_forward()
    drawn(tab, "Run 5")
    assert tab.evaluate("history.length") == entries + 1
    link_to(tab, "Masks").click()
    link_to(tab, "Generate").click()
    link_to(tab, "Masks").click()
    expect(tab.get_by_test_id("stText")).to_contain_text(": shakespeare, HAMLET, 101")
    assert shell.is_visible(), "the shell's element is the same on all pages"


def test_a_command_is_obeyed_once_and_never_overwrites_what_is_typed_afterwards(tab):
    tab.get_by_role("button", name="Another model").click()
    drawn(tab, "Run 2: induction, A B A, 100")  # one run: Python knows what the tab will hold
    fill(tab, "Prompt", "B C B")
    drawn(tab, "Run 3: induction, B C B, 100")
    turn_dial(tab)
    drawn(tab, "Run 4: induction, B C B, 101")
    tab.get_by_role("button", name="A lesson's view").click()
    drawn(tab, "Run 5: stories, Once, 8")
    turn_dial(tab)
    drawn(tab, "Run 6: stories, Once, 9")
    holds(tab, "/Masks?model=stories&prompt=Once&positions_shown=9")


def test_what_is_typed_while_a_run_is_under_way_stays_and_is_drawn_next(tab, gate):
    gate.touch()
    try:
        fill(tab, "Prompt", "first")
        tab.locator("[data-testid=stApp][data-test-script-state=running]").wait_for()
        fill(tab, "Layer", "3")
        fill(tab, "Prompt", "second")
        tab.get_by_label("Prompt", exact=True).fill("third")
    finally:
        gate.unlink()
    expect(tab.get_by_test_id("stText")).to_contain_text("shakespeare, second, 100")
    holds(tab, "/Masks?model=shakespeare&prompt=second&positions_shown=100&layer=3")
    expect(tab.get_by_label("Prompt", exact=True)).to_have_value("third")


def test_a_view_outlives_a_restart_of_the_server(tab, server, browser_errors):
    fill(tab, "Layer", "3")
    turn_dial(tab)
    drawn(tab, "Run 2: shakespeare, ROMEO, 101")
    link_to(tab, "Generate").click()
    drawn(tab, "Run 3")
    fill(tab, "Prompt", "HAMLET")
    holds(tab, "/?model=shakespeare&prompt=HAMLET&positions_shown=101&layer=3")
    with server.away():
        tab.locator(DISCONNECTED).wait_for()
    tab.locator(CONNECTED).wait_for()
    browser_errors.clear()  # that nobody answered
    link_to(tab, "Masks").click()
    expect(tab.get_by_test_id("stText")).to_contain_text("shakespeare, HAMLET, 101")
    holds(tab, "/Masks?model=shakespeare&prompt=HAMLET&positions_shown=101&layer=3")
    turn_dial(tab)
    expect(tab.get_by_test_id("stText")).to_contain_text("shakespeare, HAMLET, 102")


def test_an_address_without_parameters_and_a_text_that_is_too_long_for_one(server, new_page, browser_errors):
    page = new_page()
    page.goto(server.url)
    holds(page, "/?model=stories")
    long = "long " * 900 + "prompt"
    page.goto(f"{server.url}/Masks?model=shakespeare&batch={'b' * 3500}")
    fill(page, "Prompt", long)
    drawn(page, f"Run 2: shakespeare, {long}, 32")
    page.reload()
    expect(page.get_by_test_id("stText")).to_contain_text(long)


def test_a_frame_below_a_path_whose_browser_stores_nothing(serve, gate, framed_tab):
    """Community Cloud frames its apps at /~/+/."""
    options = ["--server.baseUrlPath", "~/+"]
    env = {"GATE": str(gate), "PYTHONPATH": str(ROOT)}
    with learning_platform() as platform, serve(APP, env=env, options=options) as own:
        framed_tab.goto(f"{platform}/?{own.url}/{LINK}&embed=true")
        frame = framed_tab.frame_locator("iframe")
        expect(frame.get_by_test_id("stText")).to_have_text("Run 1: shakespeare, ROMEO, 100")
        fill(frame, "Prompt", "JULIET")
        expect(frame.get_by_test_id("stText")).to_have_text("Run 2: shakespeare, JULIET, 100")
        framed_tab.wait_for_function(
            "() => window.told?.includes('prompt=JULIET') && window.told.includes('embed=true')"
        )
        link_to(frame, "Generate").click()
        expect(frame.get_by_test_id("stText")).to_have_text("Run 3")
