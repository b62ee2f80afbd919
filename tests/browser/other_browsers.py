"""Drives Firefox and WebKit, by the protocols that they speak themselves: WebDriver BiDi and WebDriver.

Playwright needs builds of its own of both, or commands that a distribution's Firefox doesn't know yet.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

PATIENCE = 120.0
"""Seconds that a page or an answer is waited for."""
SIZE = {"width": 1280, "height": 900}
# What WebKit's driver doesn't tell: errors of a page, from its first script on.
LISTEN = """globalThis.headsupErrors = [];
addEventListener("error", (event) => event.error && headsupErrors.push(event.message));
addEventListener("unhandledrejection", ({ reason }) => headsupErrors.push(`unhandled: ${reason?.stack ?? reason}`));
console.error = (...said) => headsupErrors.push(said.join(" "));"""


class Browser(ABC):
    """One tab of a browser. `open`, then `evaluate` and `wait_for` expressions of JavaScript, which may be promises."""

    _process: subprocess.Popen

    def evaluate(self, expression):
        """What an expression gives, as JSON has it. Raises AssertionError with what it throws."""
        kept = "(value) => ({ value: value === undefined ? null : value })"
        caught = "(error) => ({ error: `${error}\\n${error?.stack}` })"
        found = json.loads(self._run(f"(async () => ({expression}))().then({kept}, {caught}).then(JSON.stringify)"))
        assert "error" not in found, found["error"]
        return found["value"]

    def wait_for(self, expression):
        """Ask until an expression is true, and return its value.

        One question that waits in the page would do, but Firefox never answers it if the page is left meanwhile.
        """
        deadline = time.monotonic() + PATIENCE
        seen = "`waited in vain on ${location.href}, where one reads: ${document.body.innerText}`"
        while True:
            is_true, found = self.evaluate(f"Promise.resolve({expression}).then((found) => [Boolean(found), found])")
            if is_true:
                return found
            assert time.monotonic() < deadline, self.evaluate(seen)
            time.sleep(0.05)

    @abstractmethod
    def _run(self, expression) -> str:
        """The text that a promise gives."""

    def _end(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(timeout=30)


class Firefox(Browser):
    """Firefox without a window, over WebDriver BiDi."""

    name = "Firefox"

    @staticmethod
    def missing():
        """The package that is missing, or None."""
        return None if shutil.which("firefox-esr") or shutil.which("firefox") else "firefox-esr"

    def __init__(self, folder: Path):
        self._errors: list[str] = []
        self._count = 0
        (folder / "profile").mkdir()
        binary = shutil.which("firefox-esr") or shutil.which("firefox")
        command = [binary, "--headless", "--no-remote", "--profile", folder / "profile", "--remote-debugging-port", "0"]
        log = folder / "firefox.log"
        with log.open("wb") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        address = _waited(lambda: re.search(r"ws://\S+", log.read_text(errors="replace")), self._process)[0]
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(f"{address}/session", max_size=None, proxy=None))
        self._call("session.new", capabilities={})
        self._tab = self._call("browsingContext.create", type="tab")["context"]
        self._call("session.subscribe", events=["log.entryAdded"])
        self._call("browsingContext.setViewport", context=self._tab, viewport=SIZE)

    def open(self, url):
        """Open an address."""
        self._call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def open_heard(self, url, beside):
        """The same: errors of a page are always known."""
        self.open(url)

    def errors(self):
        """Errors that pages have reported since this was asked last."""
        self.evaluate("null")
        found, self._errors = self._errors, []
        return found

    def close(self):
        """End the browser."""
        self._open.close()
        self._end()

    def _run(self, expression):
        found = self._call("script.evaluate", expression=expression, target={"context": self._tab}, awaitPromise=True)
        assert found["type"] == "success", found
        return found["result"]["value"]

    def _call(self, method, **parameters):
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE + 30))
            if message["type"] == "event":
                told = message["params"]
                if told.get("level") == "error" and "favicon.ico" not in told["text"]:  # which it asks for by itself
                    self._errors.append(told["text"])
            elif message["id"] == self._count:
                assert message["type"] == "success", f"{method}: {message}"
                return message["result"]


class WebKit(Browser):
    """WebKitGTK's own small browser on an invisible screen, over WebDriver."""

    name = "WebKit"

    @staticmethod
    def missing():
        """The packages that are missing, or None."""
        needed = {"WebKitWebDriver": "webkit2gtk-driver", "Xvfb": "xvfb", "xvfb-run": "xvfb"}
        lacking = [package for name, package in needed.items() if not shutil.which(name)]
        return " ".join(dict.fromkeys(lacking if _mini_browser() else [*lacking, "webkit2gtk-driver"])) or None

    def __init__(self, folder: Path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        screen = f"-screen 0 {SIZE['width'] + 100}x{SIZE['height'] + 200}x24"
        command = ["xvfb-run", "--auto-servernum", "--server-args", screen, "WebKitWebDriver", f"--port={port}"]
        with (folder / "webkit.log").open("wb") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        _waited(lambda: self._call("GET", "/status"), self._process)
        asked = {"webkitgtk:browserOptions": {"binary": str(_mini_browser()), "args": ["--automation"]}}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self._session = f"/session/{session['sessionId']}"
        self._call("POST", f"{self._session}/timeouts", {"script": int(1000 * PATIENCE) + 20_000})
        self._call("POST", f"{self._session}/window/rect", SIZE)

    def open(self, url):
        """Open an address."""
        self._call("POST", f"{self._session}/url", {"url": url})

    def open_heard(self, url, beside):
        """The same, and errors from the page's first script on are known. beside: another address of its host."""
        self.open(beside)
        there = f"history.replaceState(null, '', {json.dumps(url)})"
        write = f"document.open(); {LISTEN} document.write(text); document.close()"
        self.evaluate(f"fetch({json.dumps(url)}).then((found) => found.text()).then((text) => {{ {there}; {write}; }})")
        self.wait_for("document.readyState === 'complete'")

    def errors(self):
        """Errors that the page has reported since this was asked last; known of one that was opened by `open_heard`."""
        return self.evaluate("headsupErrors.splice(0)")

    def close(self):
        """End the browser."""
        self._call("DELETE", self._session)
        self._end()

    def _run(self, expression):
        script = f"const done = arguments[0]; {expression}.then(done);"
        return self._call("POST", f"{self._session}/execute/async", {"script": script, "args": []})

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, method=method, data=data)
        with self._direct.open(request, timeout=PATIENCE + 30) as answer:
            return json.load(answer)["value"]


def _mini_browser() -> Path | None:
    """WebKitGTK's browser, which comes with its library."""
    places = ("lib/*/webkit*gtk-*", "libexec/webkit*gtk-*")
    return next((path for place in places for path in Path("/usr").glob(f"{place}/MiniBrowser")), None)


def _waited(look, process):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if found := look():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    raise RuntimeError("the browser didn't start")
