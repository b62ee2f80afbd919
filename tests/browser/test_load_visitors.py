"""Tests the simulated visitors of the load benchmark."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks.visitors import PAGES, TOKENS, Log, Visitor


def on(server, lesson):
    """Let a visitor of a server's, with a log of their own, go through a lesson; nothing may fail."""
    log = Log()

    async def attend():
        visitor = Visitor(server.url, 1, log)
        async with visitor.tab:
            await visitor.open()
            await lesson(visitor)

    with ThreadPoolExecutor(1) as elsewhere:  # Playwright's own loop runs on this thread
        elsewhere.submit(lambda: asyncio.run(attend())).result()
    assert not log.failures
    assert not server.has_traceback()
    return {kind: len(answers) for kind, answers in log.answers.items()}


def test_they_see_each_page_and_nothing_of_the_one_before(app_server):
    async def lesson(visitor):
        for name in (*PAGES[1:], PAGES[0]):
            await visitor.change_page(name)
            (heading,) = [found for found in visitor.tab.elements("heading") if found.heading.tag == "h1"]
            assert heading.heading.body == name
            assert visitor.tab.labelled("selectbox", "Model").default == 0  # the link's model stays
            assert visitor.tab.has("headsup_attention") == (name == "Attention")
            assert visitor.tab.has("headsup_writing") == (name == "Generate")
            assert visitor.tab.has("headsup_inside") == (name == "Inside")

    answers = on(app_server, lesson)
    assert answers["page"] == 1 + len(PAGES)
    assert answers["overview"] == answers["outline"] == 1
    assert answers["ahead"] >= 1


def test_a_text_is_seen_at_its_pace_and_goes_on_after_what_was_written(app_server):
    async def lesson(visitor):
        for count in (20, TOKENS):
            first, rate = await visitor.write(count, anew=False)
            assert first > 0
            assert rate <= 26  # tokens a second
        about = visitor.tab.data("headsup_writing")
        known = visitor.tab.data("headsup_tab")["knows"]["written"]
        assert len(known.split(".")) == 20 + TOKENS  # the page knows what was written
        await visitor.lengthen()
        assert len(visitor._text()) == about["context"] + 1
        assert len(visitor.log.stalls) == 2

    assert on(app_server, lesson)["text"] == 2


def test_another_prompt_and_another_head_are_answered(app_server):
    async def lesson(visitor):
        await visitor.type_prompt()
        await visitor.look_at_head()
        await visitor.change_page("Attention")
        await visitor.look_at_head()  # which was fetched ahead

    answers = on(app_server, lesson)
    assert answers["prompt"] == answers["head"] == 1


def test_a_block_is_opened_and_its_numbers_come_once(app_server):
    async def lesson(visitor):
        await visitor.change_page("Inside")
        for _ in range(30):
            await visitor.look()

    assert 1 <= on(app_server, lesson)["block"] <= 2 * 6  # of each block in one or two answers
