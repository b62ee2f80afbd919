"""Runs the app and a browser for commands outside pytest."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import ConsoleMessage, Page, sync_playwright

from tests.browser.at_rest import follow_reruns
from tests.browser.conftest import CHROMIUM_ARGS, find_chromium
from tests.browser.servers import ROOT, Server


@contextmanager
def own_server(checkpoints: Path | None) -> Iterator[Server]:
    """The app on these models, or on the shipped ones."""
    env = {"HEADSUP_TRAININGS": "1"} | ({"HEADSUP_CHECKPOINTS": str(checkpoints)} if checkpoints else {})
    with TemporaryDirectory() as folder:
        server = Server(ROOT / "app.py", log_path=Path(folder, "log"), cwd=ROOT, env=env, options=())
        with server:
            server.wait_until_healthy()
            yield server


@contextmanager
def own_browser(errors: list[str]) -> Iterator[Callable[[], Page]]:
    """Opens tabs, each of a new visitor who replaces the one before; what they report is added to `errors`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(CHROMIUM_ARGS))

        def note(message: ConsoleMessage) -> None:
            if message.type == "error":
                errors.append(f"{message.text} ({message.location['url']})")

        def visit() -> Page:
            for context in browser.contexts:
                context.close()
            errors.clear()
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.on("console", note)
            context.on("weberror", lambda error: errors.append(f"uncaught: {error.error}"))
            context.on("page", follow_reruns)
            return context.new_page()

        yield visit
        browser.close()
