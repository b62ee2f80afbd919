"""Starts Streamlit servers for the browser tests."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.server_log import has_traceback

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
LOG_TAIL_LINES = 60


class Server:
    """One `streamlit run` on a free port of 127.0.0.1. Also a context manager, which stops it at the end."""

    def __init__(
        self, script: Path, *, log_path: Path, cwd: Path, env: Mapping[str, str], options: Sequence[str]
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = options[options.index("--server.baseUrlPath") + 1] if "--server.baseUrlPath" in options else ""
        self.url = f"http://127.0.0.1:{port}/{path}".rstrip("/")
        self._log_path = log_path
        self._forgotten = 0
        command = [sys.executable, "-m", "streamlit", "run", str(script)]
        command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
        command += ["--server.headless", "true", "--browser.gatherUsageStats", "false"]
        command += ["--logger.enableRich", "false", *options]  # which would dress tracebacks so that none is found
        self._command = command
        usual = {"PYTHONUNBUFFERED": "1", "HEADSUP_START": "off", "HEADSUP_BROWSER_MODELS": "off"}
        self._where = {"cwd": cwd, "env": {**os.environ, **usual, **env}}
        self._start()

    def _start(self) -> None:
        self.stopped = False
        with self._log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                **self._where,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_healthy(self, seconds: float = START_SECONDS) -> None:
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

    def log(self) -> str:
        """Everything the server has printed so far."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        return "\n".join(self.log().splitlines()[-lines:])

    def has_traceback(self) -> bool:
        """Whether a traceback was logged since the start, or since `forget_tracebacks`."""
        return has_traceback(self.log()[self._forgotten :])

    def forget_tracebacks(self) -> None:
        """What is in the log by now was expected."""
        self._forgotten = len(self.log())

    def stop(self) -> None:
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
    def away(self) -> Iterator[None]:
        """Stopped, and at the end started anew with what it was started with: its visitors' sessions are gone."""
        self.stop()
        try:
            yield
        finally:
            self._start()
            self.wait_until_healthy()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
