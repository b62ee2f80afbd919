"""Waits until the app in a tab is at rest: every request answered, none pending."""

import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

CONNECTED = "[data-testid='stApp'][data-test-connection-state='CONNECTED']"
DISCONNECTED = "[data-testid='stApp']:not([data-test-connection-state='CONNECTED'])"
IDLE = f"{CONNECTED}[data-test-script-state='notRunning']"
EXCEPTION = "[data-testid='stException']"
BEAT = 0.03  # seconds between two looks at a page that isn't at rest
RUNNING = "a run has begun"
ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
_busy = WeakKeyDictionary()
"""Pages whose last request for a run is not done with, each with what was asked, or `RUNNING`."""
_stirred = WeakKeyDictionary()
"""When each page's last run ended, on the monotonic clock."""


@dataclass(frozen=True)
class Asked:
    """A run is asked for. fragment: of which part of the page; empty for all of it."""

    fragment: str


@dataclass
class _Run:
    """The run in progress, or the last one."""

    is_of_page: bool = False
    fragments: set[str] = field(default_factory=set)
    """Parts of the page that it has drawn."""
    there: set[str] | None = None
    """Those that the server knows at rest; None until a whole page has been drawn."""

    def ends(self, is_successful):
        if is_successful:
            self.there = self.fragments | (set() if self.is_of_page else self.there or set())


def follow_reruns(page):
    """Keep `_busy` and `_stirred` up to date: after a click the app looks at rest until the server starts a rerun.

    A request for a part of the page that has just gone is never answered: Streamlit drops it, or runs nothing for it.
    Once the whole page has been drawn without that part, it isn't waited for.
    """
    run = _Run()
    parts = {}  # of the messages that may come again as a mere reference

    def sent(frame):
        message = BackMsg.FromString(frame) if isinstance(frame, bytes) else BackMsg()
        if message.WhichOneof("type") == "rerun_script":
            asked = Asked(message.rerun_script.fragment_id)
            if page in _busy or run.there is None or asked.fragment in {"", *run.there}:
                _busy[page] = asked

    def received(frame):
        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        kind = message.WhichOneof("type")
        if kind == "new_session":
            run.is_of_page, run.fragments = not message.metadata.run.fragment_ids, set()
            _busy[page] = RUNNING
        elif kind == "delta":
            run.fragments.add(message.delta.fragment_id)
            parts[message.hash] = message.delta.fragment_id
        elif kind == "ref_hash":
            run.fragments.add(parts.get(message.ref_hash, ""))
        elif kind == "script_finished":
            _stirred[page] = time.monotonic()
            asked = _busy.get(page)
            run.ends(message.script_finished in ENDS)
            is_whole = run.is_of_page and message.script_finished in ENDS
            is_dropped = isinstance(asked, Asked) and asked.fragment not in {"", *run.fragments}
            if asked == RUNNING or (is_whole and is_dropped):  # else another run is asked for
                _busy.pop(page, None)

    def follow(socket):
        if "/_stcore/stream" in socket.url:
            _busy.pop(page, None)  # what an earlier connection asked for is forgotten
            run.there = None
            socket.on("framesent", sent)
            socket.on("framereceived", received)

    page.on("websocket", follow)


def wait_until_ready(page, timeout=120.0, settled=0.25):
    """Wait until the app is connected and idle, no rerun is asked for, and that has lasted `settled` seconds.

    Both times are in seconds; `settled` covers widgets that wait a moment before they ask for a rerun.
    AssertionError if the app does not come to rest, or if it then shows an exception.
    """
    began = time.monotonic()
    left = 0.0
    while True:
        page.wait_for_timeout(1000 * max(left, BEAT))  # lets Playwright hand over the frames that have come in
        left = 0.0
        if page not in _busy:
            left = max(began, _stirred.get(page, 0.0)) + settled - time.monotonic()
            if left <= 0 and page.locator(IDLE).count() and page not in _busy:
                break
        if time.monotonic() > began + timeout:
            raise AssertionError(f"{page.url} did not come to rest in {timeout} s")
    exceptions = page.locator(EXCEPTION).all_inner_texts()
    if exceptions:
        raise AssertionError("the page shows an exception:\n" + "\n".join(exceptions))
