"""Tests that a visitor's tab is back, with all it had, when the copy of the app that it was on has been killed."""

import re
import shutil

import pytest

from deploy.replicas import Replicas, free_port
from tests.browser.at_rest import CONNECTED
from tests.browser.attention_page import parameters, pick, turn_to, until
from tests.browser.generate_page import expect, main_button, tokens, until_at_rest, until_written
from tests.browser.test_restart_browser import SMALL


def server_of(page):
    """The name of the copy that the visitor is on."""
    (found,) = [each["value"] for each in page.context.cookies() if each["name"] == "headsup_server"]
    return found


@pytest.fixture
def replicas(tiny_folder, tmp_path, monkeypatch):
    if shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is None:
        pytest.skip("nginx is not installed")
    monkeypatch.setenv("HEADSUP_CHECKPOINTS", str(tiny_folder))
    monkeypatch.setenv("HEADSUP_START", "off")
    with Replicas(tmp_path, 2, free_port()) as started:
        started.start_all()
        yield started


@pytest.mark.timeout(300)
def test_a_tab_is_back_with_its_own_model_when_its_server_is_killed(replicas, new_window, wait_ready, browser_errors):
    page = new_window()
    page.goto(f"{replicas.url}/Train{SMALL}")
    wait_ready(page)
    main_button(page, "Train").click()
    expect(page.get_by_text("is now one of your models").first).to_be_visible()
    turn_to(page, "Generate")
    wait_ready(page)
    pick(page, "^Model$", re.compile("^Yours · "))
    wait_ready(page)
    tokens(page).first.wait_for()
    before = tokens(page).count()
    main_button(page, "Generate").click()
    until_written(page, before + 1)
    until_at_rest(page, wait_ready)
    shown, address = tokens(page).all_inner_texts(), parameters(page)

    cookie = server_of(page)
    replicas.kill(replicas.app_of(cookie))
    until(page, lambda: server_of(page) != cookie)
    page.locator(CONNECTED).wait_for()
    wait_ready(page)
    browser_errors.clear()  # that nobody answered

    until(page, lambda: (parameters(page), tokens(page).all_inner_texts()) == (address, shown))
    expect(page.get_by_role("combobox", name="Model")).to_have_value(re.compile("^Yours · "))
    turn_to(page, "Attention")
    expect(page.get_by_role("heading", name="Layer 0, head 0")).to_be_visible()
    assert page.get_by_text("was deleted").count() == 0 and parameters(page)["model"] == address["model"]
