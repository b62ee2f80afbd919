"""What a server does before its first visitor needs it, and what it had better leave alone."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest
from streamlit.web.server.app_discovery import discover_asgi_app

from pages.ui import serving

ROOT = Path(__file__).parents[1]
FIRST_PAGE = """
import sys
from pages.ui import serving
serving.prepare_first_page()
from transformer.training import cost
from pages.ui.models import library
cost.parameter_count(library.config("shakespeare"))
cost.CALIBRATION_SECONDS = 0
cost.machine()  # trains a few steps
print([name for name in ("torch._dynamo", "sympy", "streamlit.emojis") if name in sys.modules])
"""

# Threads that all hold memory at once, and how many pools it came from; large pieces that are taken, given back, and
# taken again, and how many of them lie outside of the pools; whether most of 40 free MB go back to the system.
POOLS = """
import ctypes, os, tempfile, threading
from pages.ui import serving
libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    print("another C library")
    raise SystemExit
serving.share_memory()
libc.fopen.restype = libc.malloc.restype = ctypes.c_void_p
class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]
libc.mallinfo2.restype = Mallinfo
before = libc.mallinfo2().hblks
for piece in [libc.malloc(4 * serving.LARGE) for _ in range(3)]: libc.free(ctypes.c_void_p(piece))
taken = [libc.malloc(serving.LARGE) for _ in range(3)]
outside = libc.mallinfo2().hblks - before
together = threading.Barrier(8)
def hold():
    libc.malloc(50_000)
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
small = [libc.malloc(40_000) for _ in range(1000)]
for piece in small: ctypes.memset(ctypes.c_void_p(piece), 1, 40_000)
for piece in small[:-1]: libc.free(ctypes.c_void_p(piece))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
before = resident()
serving.give_back_memory()
given = before - resident()
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr"), outside, given > 25)
"""


def test_threads_share_a_few_pools_of_memory_what_is_large_lies_outside_and_what_is_free_goes_back():
    found = subprocess.run([sys.executable, "-c", POOLS], cwd=ROOT, capture_output=True, text=True, timeout=100)
    few = [f"{number} 3 True" for number in range(1, serving.ARENAS + 1)]
    assert found.stdout.strip() in (*few, "another C library"), found.stdout + found.stderr


def test_what_is_written_to_a_visitor_leaves_at_once():
    """As Streamlit makes its socket: one that doesn't name its protocol, of which asyncio doesn't take care."""
    with socket.socket(socket.AF_INET) as listening, socket.socket(socket.AF_INET) as other:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        serving.answer_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not other.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "it isn't one that listens"


def test_neither_the_first_page_nor_a_training_needs_the_compiler_or_a_table_of_emojis():
    """PyTorch's compiler takes a second and 80 MB to import; the emojis a quarter of a second."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST_PAGE], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert found.stdout.splitlines()[-1:] == ["[]"], found.stderr


def test_streamlit_finds_the_app_in_the_file_that_is_the_first_page():
    assert discover_asgi_app(ROOT / "app.py").import_string == "app:app"


def test_who_wants_pages_run_waits_until_the_first_page_is_prepared(monkeypatch):
    prepared = threading.Event()
    monkeypatch.setattr(serving, "_prepared", prepared)
    let_in = []

    async def app(scope, receive, send):
        let_in.append(scope["type"])

    async def visit():
        door = serving.WaitUntilPrepared(app)
        waiting = asyncio.create_task(door({"type": "websocket"}, None, None))
        await door({"type": "http"}, None, None)
        await asyncio.sleep(0.05)
        assert let_in == ["http"]
        prepared.set()
        await waiting
        assert let_in == ["http", "websocket"]

    asyncio.run(visit())


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/plain"])
@pytest.mark.parametrize("accept", ["text/html,*/*", "*/*"])
def test_a_document_says_where_the_server_is_and_nothing_else_does(kind, accept):
    document, asked, sent = b"<html><head><title>A</title></head><head></head></html>", [], []

    async def app(scope, receive, send):
        asked.append(dict(scope["headers"]))
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(document)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": document[:30], "more_body": True})
        await send({"type": "http.response.body", "body": document[30:]})

    async def note(message):
        sent.append(message)

    headers = [(b"accept", accept.encode()), (b"accept-encoding", b"gzip")]
    asyncio.run(serving.SayWhereTheServerIs(app)({"type": "http", "headers": headers}, None, note))
    body = b"".join(message.get("body", b"") for message in sent)
    is_told = kind.startswith("text/html") and accept.startswith("text/html")
    assert body == (document.replace(b"<head>", b"<head>" + serving._SERVER, 1) if is_told else document)
    assert int(dict(sent[0]["headers"])[b"content-length"]) == len(body)
    assert (b"accept-encoding" in asked[0]) == (accept == "*/*"), "what is compressed can't be told anything"


def test_what_can_not_be_prepared_keeps_nobody_waiting(monkeypatch, caplog):
    collected = []

    def fail():
        collected.append(gc.isenabled())
        raise OSError("no disk")

    monkeypatch.setattr(serving, "_prepared", threading.Event())
    monkeypatch.setattr(serving, "prepare_first_page", fail)
    monkeypatch.setattr(serving, "prepare_other_pages", fail)
    monkeypatch.setattr(serving, "REST", 0.0)
    before = sys.getswitchinterval()
    serving._prepare()
    assert serving._prepared.is_set()
    assert sys.getswitchinterval() == before
    assert collected == [False, False] and gc.isenabled()
    assert "Not everything could be prepared" in caplog.text


@pytest.mark.parametrize(
    ("thread", "is_warned"), [("preparing", False), ("asyncio_0", False), ("ScriptRunner.scriptThread", True)]
)
def test_only_what_prepares_or_files_is_not_warned_that_no_visitor_is_there(thread, is_warned, monkeypatch):
    monkeypatch.setattr(serving, "_prepared", threading.Event())
    for name in ("prepare_first_page", "prepare_other_pages"):
        monkeypatch.setattr(serving, name, lambda: None)
    monkeypatch.setattr(serving, "REST", 0.0)
    serving._prepare()
    heard = []
    monkeypatch.setattr(serving._NO_VISITOR, "callHandlers", heard.append)
    monkeypatch.setattr(serving._NO_VISITOR, "disabled", False)
    warning = threading.Thread(target=serving._NO_VISITOR.warning, args=["missing"], name=thread)
    warning.start()
    warning.join()
    assert bool(heard) == is_warned


def test_other_pages_can_be_prepared():
    serving.prepare_other_pages()


class Runner:
    """Of a session, with Streamlit's own account of what it is asked for."""

    def __init__(self, *, has_ended):
        self._requests = ScriptRequests()
        if has_ended:
            self._requests.on_scriptrunner_ready()


@pytest.mark.parametrize(
    ("fragment", "has_ended", "waits"), [("part", True, True), ("part", False, False), ("", True, False)]
)
def test_a_part_is_asked_for_once_the_end_of_the_run_before_was_heard(monkeypatch, fragment, has_ended, waits):
    asked = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda session, state: asked.append(session._scriptrunner))
    serving.hear_runs_out()

    async def ask():
        ended = Runner(has_ended=has_ended)
        session = SimpleNamespace(_scriptrunner=ended, _event_loop=asyncio.get_running_loop())
        AppSession.request_rerun(session, ClientState(fragment_id=fragment))
        await asyncio.sleep(10 * serving.HEARD_AFTER)
        assert asked == ([] if waits else [ended])
        session._scriptrunner = None  # as Streamlit does once it has heard the end
        await asyncio.sleep(10 * serving.HEARD_AFTER)
        assert asked == [None if waits else ended]

    asyncio.run(ask())


def two_presses_in_quick_succession():
    """A page on which something is pressed; while that is taken in, the next request comes."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def press():
        get_script_run_ctx().script_requests.request_rerun(RerunData())
        st.session_state["first"] = True
        st.session_state["second"] = True

    if st.session_state.get("first"):  # the two belong together
        assert st.session_state["second"]
    st.button("Press", on_click=press)


def test_what_a_press_causes_is_done_to_its_end_though_the_next_request_has_come(monkeypatch):
    monkeypatch.setattr(SafeSessionState, "__init__", SafeSessionState.__init__)  # put back at the end
    serving.cut_only_where_drawn()
    at = AppTest.from_function(two_presses_in_quick_succession).run()
    at.button[0].click().run()
    assert not at.exception
    assert at.session_state["first"] and at.session_state["second"]


def test_a_session_is_asked_without_a_state_as_ever(monkeypatch):
    asked = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda session, state: asked.append(state))
    serving.hear_runs_out()
    AppSession.request_rerun(SimpleNamespace(_scriptrunner=Runner(has_ended=True)), None)
    assert asked == [None]
