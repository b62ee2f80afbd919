"""When the app in a tab has come to rest: what was asked for is done, and nothing more is asked for."""

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocket

IDLE = "[data-testid='stApp'][data-test-connection-state='CONNECTED'][data-test-script-state='notRunning']"
EXCEPTION = "[data-testid='stException']"
BEAT = 0.03  # seconds between two looks at a page that isn't at rest
ASKED, RUNNING = "a run is asked for", "a run has begun"
_busy: "WeakKeyDictionary[Page, str]" = WeakKeyDictionary()
"""Pages whose last request for a run is not done with."""
_stirred: "WeakKeyDictionary[Page, float]" = WeakKeyDictionary()
"""When each page's last run ended, on the monotonic clock."""


def follow_reruns(page: "Page") -> None:
    """Keep `_busy` and `_stirred` up to date: after a click the app looks at rest until the server starts a rerun."""

    def sent(frame: bytes | str) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            _busy[page] = ASKED

    def received(frame: bytes | str) -> None:
        kind = ForwardMsg.FromString(frame).WhichOneof("type") if isinstance(frame, bytes) else ""
        if kind == "new_session":
            _busy[page] = RUNNING
        elif kind == "script_finished":
            _stirred[page] = time.monotonic()
            if _busy.get(page) == RUNNING:  # else another run is asked for
                del _busy[page]

    def follow(socket: "WebSocket") -> None:
        if "/_stcore/stream" in socket.url:
            _busy.pop(page, None)  # what an earlier connection asked for is forgotten
            socket.on("framesent", sent)
            socket.on("framereceived", received)

    page.on("websocket", follow)


def wait_until_ready(page: "Page", timeout: float = 30.0, settled: float = 0.25) -> None:
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
