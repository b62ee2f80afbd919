"""The visitors of the benchmark of load do what a browser's would, and the server answers them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.benchmarks.protocol import Tab
from tests.benchmarks.visitors import PAGES, Log, Visitor
from transformer import Recording


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
    return log


def heading(tab: Tab) -> str:
    (element,) = [element for element in tab.elements("heading") if element.heading.tag == "h1"]
    return element.heading.body


def test_they_see_each_page_and_nothing_of_the_one_before(app_server):
    async def lesson(visitor):
        for name in (*PAGES[1:], PAGES[0]):
            await visitor.change_page(name)
            assert heading(visitor.tab) == name
            assert visitor.tab.has("headsup_attention") == (name == "Attention")
            assert visitor.tab.has("headsup_writing") == (name == "Generate")

    log = on(app_server, lesson)
    assert len(log.answers["page"]) == len(PAGES) + 1
    assert len(log.answers["ahead"]) >= 1


def test_a_text_is_seen_at_its_pace_up_to_its_goal(app_server):
    async def lesson(visitor):
        first, rate = await visitor.write(20, anew=True)
        assert first > 0
        assert rate <= 26  # tokens a second
        about = Recording.from_bytes(visitor.tab.component("headsup_writing_feed").bytes).metadata
        assert about["branches"][-1]["tokens"] == 20
        assert about["goal"] is None

    log = on(app_server, lesson)
    assert len(log.stalls) == 1


def test_another_prompt_and_another_head_are_answered(app_server):
    async def lesson(visitor):
        await visitor.type_prompt()
        await visitor.look_at_head()
        await visitor.change_page("Attention")
        await visitor.look_at_head()

    log = on(app_server, lesson)
    assert len(log.answers["prompt"]) == 1
    assert len(log.answers["head"]) >= 1


def test_a_message_that_was_sent_before_is_known_by_its_name_alone(app_server):
    """The server sends what a page shows again as a reference; the tab has it still."""
    references = []

    async def lesson(visitor):
        take = visitor.tab._take

        def note(message: ForwardMsg) -> None:
            references.append(message.WhichOneof("type") == "ref_hash")
            take(message)

        visitor.tab._take = note
        await visitor.type_prompt()
        await visitor.type_prompt()
        assert visitor.tab.has("headsup_writing")

    on(app_server, lesson)
    assert any(references)
