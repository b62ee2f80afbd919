"""Tests what the server prepares before its first visitor."""

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

from streamlit.web.server.app_discovery import discover_asgi_app

from pages.ui import serving

ROOT = Path(__file__).parents[2]
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


def test_neither_the_first_page_nor_a_training_needs_the_compiler_or_a_table_of_emojis():
    """PyTorch's compiler takes a second and 80 MB to import; the emojis a quarter of a second."""
    found = subprocess.run([sys.executable, "-c", FIRST_PAGE], cwd=ROOT, capture_output=True, text=True, timeout=100)
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


def test_other_pages_can_be_prepared():
    serving.prepare_other_pages()
