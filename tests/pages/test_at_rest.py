"""Tests when the browser tests consider a tab to be at rest."""

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser import at_rest

ENDS = {
    "whole": ForwardMsg.FINISHED_SUCCESSFULLY,
    "part": ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
    "early": ForwardMsg.FINISHED_EARLY_FOR_RERUN,
}


class Tab:
    """What a browser's page tells of its connection, and the connection."""

    url = "ws://127.0.0.1/_stcore/stream"

    def __init__(self):
        self.heard = {}

    def on(self, event, listener):
        self.heard[event] = listener

    def send(self, event, message):
        self.heard[event](message.SerializeToString())

    def connect(self):
        self.heard["websocket"](self)

    def ask(self, part=""):
        message = BackMsg()
        message.rerun_script.fragment_id = part
        self.send("framesent", message)

    def begin(self, *parts):
        message = ForwardMsg()
        message.new_session.SetInParent()
        message.metadata.run.fragment_ids.extend(parts)
        self.send("framereceived", message)

    def draw(self, part=""):
        message = ForwardMsg(hash=f"of {part}")
        message.delta.fragment_id = part
        self.send("framereceived", message)

    def draw_as_before(self, part):
        self.send("framereceived", ForwardMsg(ref_hash=f"of {part}"))

    def end(self, how="whole"):
        self.send("framereceived", ForwardMsg(script_finished=ENDS[how]))

    def rests(self):
        assert self not in at_rest._busy

    def works(self):
        assert self in at_rest._busy


RUN = "ask, begin, draw feed, draw chart, end"
DURING_A_RUN = f"{RUN}, ask, begin, ask"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("rests, ask, works, begin, works, end, rests", id="until what was asked for last has been run"),
        pytest.param(f"{DURING_A_RUN}, draw feed, end, works, begin, end, rests", id="asked for during a run"),
        pytest.param(f"{DURING_A_RUN} feed, draw feed, end, works, begin feed, end part, rests", id="and a part of it"),
        pytest.param(f"{DURING_A_RUN} feed, draw_as_before feed, end, works", id="a part that is sent as a reference"),
        # Its script stops a moment later.
        pytest.param(f"{DURING_A_RUN} feed, draw, works, end, rests, ask feed, rests", id="a part that has gone"),
        pytest.param(f"{DURING_A_RUN} feed, end early, works", id="a run cut short says nothing of what is there"),
        pytest.param(f"{RUN}, ask feed, begin feed, draw feed, ask chart, end part, works", id="two parts"),
        pytest.param(f"{RUN}, ask feed, begin feed, draw feed, end part, rests, ask chart, works", id="others stay"),
        pytest.param("ask, begin, end, connect, ask feed, works", id="a new connection is asked for all it has"),
    ],
)
def test_a_tab_works_until_all_that_was_asked_for_and_is_still_there_has_been_run(steps):
    tab = Tab()
    at_rest.follow_reruns(tab)
    tab.connect()
    for step in steps.split(", "):
        name, *part = step.split()
        getattr(tab, name)(*part)
