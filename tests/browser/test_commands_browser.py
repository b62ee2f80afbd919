"""Tests what goes through the app by itself: a random walk, what opens each tensor, the load benchmark's visitors."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.benchmarks.protocol import SHELL
from tests.benchmarks.visitors import Log, Visitor
from tests.browser.random_walk import BENIGN, Walk
from tests.browser.reach_everything import reach

pytest.importorskip("playwright.sync_api")

STEPS, SEED = 3, 4


def test_a_random_walk_takes_its_steps_and_finds_nothing(tiny_server, new_page, wait_ready, browser_errors):
    walk = Walk(new_page, tiny_server, SEED, wait_ready=wait_ready, errors=browser_errors)
    findings = walk.run(STEPS)
    browser_errors[:] = [error for error in browser_errors if not BENIGN.search(error)]
    assert not findings, findings[0]
    assert len(walk.steps) == STEPS and walk.missed <= 1, "\n".join(walk.steps)


def test_any_tensor_is_four_clicks_from_the_first_view_and_found_by_name(tiny_server, tiny_folder, new_page):
    folder = tiny_folder / "translator"
    names, problems = reach(new_page(), tiny_server.url, folder, lambda names: Random(SEED).sample(names, 1))
    assert len(names) == 1 and not problems


def test_a_visitor_of_the_load_benchmark_goes_through_a_lesson(tiny_server):
    log = Log()

    async def attend():
        visitor = Visitor(tiny_server.url, 1, log)
        async with visitor.tab:
            await visitor.open()
            for name in ("Attention", "Inside", "Masks", "Positions", "Generate"):
                await visitor.change_page(name)
                assert visitor.tab.data(SHELL)["page"]["title"] == name
                if name == "Positions":
                    await visitor.type_prompt()
                    assert not visitor.tab.data(SHELL)["drawn"], "what is folded needs no run"
                await visitor.look()
            first, rate = await visitor.write(20, anew=False)
            assert first > 0 and rate < 30  # tokens a second, at a pace of 25
            assert len(visitor.written) == 20

    with ThreadPoolExecutor(1) as elsewhere:  # Playwright's own loop runs on this thread
        elsewhere.submit(lambda: asyncio.run(attend())).result()
    assert not log.failures
    answers = {kind: len(times) for kind, times in log.answers.items()}
    assert answers["page"] == 6 and answers["overview"] == answers["outline"] == 1
    assert "prompt" not in answers and answers["predictions"] == 2 + 2 * 3
    assert answers["text"] == 1 and 1 <= answers["block"] <= 2 and answers["head"] >= 1
