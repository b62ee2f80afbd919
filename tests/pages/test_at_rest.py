"""Tests when the browser tests consider a tab to be at rest."""

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser import at_rest

WHOLE, PART = ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY


class Tab:
    """What a browser's page tells of its connection, and the connection."""

    url = "ws://127.0.0.1/_stcore/stream"

    def __init__(self):
        self.heard = {}

    def on(self, event, listener):
        self.heard[event] = listener

    def ask(self, part=""):
        message = BackMsg()
        message.rerun_script.fragment_id = part
        self.heard["framesent"](message.SerializeToString())

    def begin(self, *parts):
        message = ForwardMsg()
        message.new_session.SetInParent()
        message.metadata.run.fragment_ids.extend(parts)
        self.heard["framereceived"](message.SerializeToString())

    def draw(self, part="", as_before=False):
        message = ForwardMsg(hash=f"of {part}")
        if as_before:
            message = ForwardMsg(ref_hash=f"of {part}")
        else:
            message.delta.fragment_id = part
        self.heard["framereceived"](message.SerializeToString())

    def end(self, how=WHOLE):
        self.heard["framereceived"](ForwardMsg(script_finished=how).SerializeToString())

    def run(self, *drawn):
        self.ask()
        self.begin()
        for part in drawn:
            self.draw(part)
        self.end()

    @property
    def rests(self):
        return self not in at_rest._busy


@pytest.fixture
def tab():
    tab = Tab()
    at_rest.follow_reruns(tab)
    tab.heard["websocket"](tab)
    return tab


def test_a_tab_rests_once_what_was_asked_for_last_has_been_run(tab):
    assert tab.rests
    tab.ask()
    assert not tab.rests
    tab.begin()
    assert not tab.rests
    tab.end()
    assert tab.rests


@pytest.mark.parametrize("part", ["", "feed"])
def test_what_is_asked_for_during_a_run_is_waited_for(tab, part):
    tab.run("feed")
    tab.ask()
    tab.begin()
    tab.ask(part)
    tab.draw("feed")
    tab.end()
    assert not tab.rests
    tab.begin(*filter(None, [part]))
    tab.end(PART if part else WHOLE)
    assert tab.rests


def test_a_part_that_is_sent_as_a_reference_is_still_there(tab):
    tab.run("feed")
    tab.ask()
    tab.begin()
    tab.ask("feed")
    tab.draw("feed", as_before=True)
    tab.end()
    assert not tab.rests


def test_a_part_that_the_page_no_longer_has_is_not_waited_for(tab):
    tab.run("feed")
    tab.ask()
    tab.begin()
    tab.ask("feed")
    tab.draw()
    assert not tab.rests
    tab.end()
    assert tab.rests
    tab.ask("feed")  # its script stops a moment later
    assert tab.rests


def test_a_run_that_was_cut_short_says_nothing_about_what_is_there(tab):
    tab.run("feed")
    tab.ask()
    tab.begin()
    tab.ask("feed")
    tab.end(ForwardMsg.FINISHED_EARLY_FOR_RERUN)
    assert not tab.rests


def test_a_run_of_a_part_leaves_the_others_there(tab):
    tab.run("feed", "chart")
    tab.ask("feed")
    tab.begin("feed")
    tab.draw("feed")
    tab.ask("chart")
    tab.end(PART)
    assert not tab.rests


def test_a_new_connection_is_asked_for_all_it_has(tab):
    tab.run()
    tab.heard["websocket"](tab)
    tab.ask("feed")
    assert not tab.rests
