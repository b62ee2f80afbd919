"""Starts Streamlit servers for the browser tests."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.server_log import has_traceback

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
LOG_TAIL_LINES = 60


class Server:
    """One `streamlit run` on a free port of 127.0.0.1. Also a context manager, which stops it at the end."""

    def __init__(self, script, *, log_path, cwd, env, options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = options[options.index("--server.baseUrlPath") + 1] if "--server.baseUrlPath" in options else ""
        self.url = f"http://127.0.0.1:{port}/{path}".rstrip("/")
        self._log_path = log_path
        self._forgotten = 0
        own = {"server.port": port, "server.address": "127.0.0.1", "server.headless": "true"}
        own |= {"browser.gatherUsageStats": "false"}
        own |= {"logger.enableRich": "false"}  # which would dress tracebacks so that none is found
        given = [word for name, value in own.items() for word in (f"--{name}", str(value))]
        self._command = [sys.executable, "-m", "streamlit", "run", str(script), *given, *options]
        usual = {"PYTHONUNBUFFERED": "1", "HEADSUP_START": "off", "HEADSUP_BROWSER_MODELS": "off"}
        self._where = {"cwd": cwd, "env": {**os.environ, **usual, **env}}
        self._start()

    def _start(self):
        self.stopped = False
        with self._log_path.open("ab") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen(self._command, **self._where, **pipes, start_new_session=True)

    def wait_until_healthy(self, seconds=START_SECONDS):
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with direct.open(f"{self.url}/_stcore/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.1)
        state = "did not answer" if self.process.poll() is None else f"ended with {self.process.returncode}"
        self.stop()
        pytest.fail(f"the server {state}; its log ends with\n{self.log_tail()}", pytrace=False)

    def log(self):
        """Everything the server has printed so far."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self, lines=LOG_TAIL_LINES):
        return "\n".join(self.log().splitlines()[-lines:])

    def has_traceback(self):
        """Whether a traceback was logged since the start, or since `forget_tracebacks`."""
        return has_traceback(self.log()[self._forgotten :])

    def forget_tracebacks(self):
        """What is in the log by now was expected."""
        self._forgotten = len(self.log())

    def stop(self):
        """End the server and whatever it started. Errors of pages still open on it no longer count."""
        self.stopped = True
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, sign)
                try:
                    self.process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    continue

    @contextmanager
    def away(self):
        """Stopped, and at the end started anew with what it was started with: its visitors' sessions are gone."""
        self.stop()
        try:
            yield
        finally:
            self._start()
            self.wait_until_healthy()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()
