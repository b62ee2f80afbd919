"""Tests that a short random walk through the app raises no exception."""

import pytest

from tests.browser.random_walk import BENIGN, Walk

pytest.importorskip("playwright.sync_api")

STEPS, SEED = 14, 4


def test_whatever_a_visitor_tries_no_page_fails(tiny_server, new_page, wait_ready, browser_errors):
    walk = Walk(new_page, tiny_server.url, SEED, wait_ready=wait_ready, server=tiny_server, errors=browser_errors)
    findings = walk.run(STEPS, stop_at_first=True)
    browser_errors[:] = [error for error in browser_errors if not BENIGN.search(error)]
    assert not findings, str(findings[0])
    assert len(walk.headings) >= 3, f"the walk came to {walk.headings} alone"
    assert walk.missed <= 2, "\n".join(walk.steps)
