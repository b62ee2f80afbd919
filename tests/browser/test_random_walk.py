"""Tests that a seeded random walk through the app raises no exception."""

import pytest

from tests.browser.random_walk import BENIGN, Walk, save_models

pytest.importorskip("playwright.sync_api")

STEPS, SEED = 60, 4


@pytest.mark.timeout(300)
def test_whatever_a_visitor_tries_no_page_fails(serve, new_page, wait_ready, browser_errors, tmp_path):
    save_models(tmp_path)
    env = {"HEADSUP_CHECKPOINTS": str(tmp_path), "HEADSUP_TRAININGS": "1"}
    with serve("app.py", env=env) as server:
        walk = Walk(new_page, server.url, SEED, wait_ready=wait_ready, server=server, errors=browser_errors)
        findings = walk.run(STEPS, stop_at_first=True)
    browser_errors[:] = [error for error in browser_errors if not BENIGN.search(error)]
    assert not findings, str(findings[0])
    assert len(walk.headings) == 8, f"the walk came to {walk.headings} alone"
    assert walk.missed <= STEPS / 10, "\n".join(walk.steps)
