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

    def do(self, step, part=""):
        """A message to the server or from it, or a connection."""
        if step == "connect":
            self.heard["websocket"](self)
            return
        message = BackMsg() if step == "ask" else ForwardMsg()
        match step:
            case "ask":
                message.rerun_script.fragment_id = part
            case "begin":
                message.new_session.SetInParent()
                message.metadata.run.fragment_ids.extend([part] if part else [])
            case "draw":
                message.hash, message.delta.fragment_id = f"of {part}", part
            case "draw_as_before":
                message.ref_hash = f"of {part}"
            case "end":
                message.script_finished = ENDS[part or "whole"]
        self.heard["framesent" if step == "ask" else "framereceived"](message.SerializeToString())


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
    tab.do("connect")
    for step in steps.split(", "):
        if step in ("rests", "works"):
            assert (tab in at_rest._busy) == (step == "works")
        else:
            tab.do(*step.split())
