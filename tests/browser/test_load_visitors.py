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


def test_they_go_through_a_lesson_and_see_nothing_of_the_page_before(app_server):
    async def lesson(visitor):
        for name in (*PAGES[1:], PAGES[0]):
            await visitor.change_page(name)
            (heading,) = [found for found in visitor.tab.elements("heading") if found.heading.tag == "h1"]
            assert heading.heading.body == name
            assert visitor.tab.labelled("selectbox", "Model").default == 0  # the link's model stays
            for page in ("Attention", "Inside"):
                assert visitor.tab.has(f"headsup_{page.lower()}") == (name == page)
            assert visitor.tab.has("headsup_generation") == (name == "Generate")
        for count in (20, TOKENS):
            first, rate = await visitor.write(count, anew=False)
            assert first > 0
            assert rate < 30  # tokens a second, at a pace of 25
        about = visitor.tab.data("headsup_generation")
        known = visitor.tab.data("headsup_address_bar")["known_selection"]["written"]
        assert len(known.split(".")) == 20 + TOKENS  # the page knows what was written
        await visitor.lengthen()
        assert len(visitor._text()) == about["context"] + 1
        assert len(visitor.log.stalls) == 2

    answers = on(app_server, lesson)
    assert answers["page"] == 1 + len(PAGES)
    assert answers["overview"] == answers["outline"] == 1
    assert answers["ahead"] >= 1 and answers["text"] == 2


def test_another_prompt_another_head_and_a_block_are_answered(app_server):
    async def lesson(visitor):
        await visitor.type_prompt()
        await visitor.look_at_head()
        await visitor.change_page("Attention")
        await visitor.look_at_head()  # which was fetched ahead
        await visitor.change_page("Inside")
        for _ in range(30):
            await visitor.look()

    answers = on(app_server, lesson)
    assert answers["prompt"] == answers["head"] == 1
    assert 1 <= answers["block"] <= 2 * 6  # each block's numbers come once, in one or two answers
