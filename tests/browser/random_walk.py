"""Walks through the app at random in a real browser: types, clicks, selects, opens pages.

    python -m tests.browser.random_walk --seeds 10 --steps 100

Nothing on a page is listed here: whatever can be used is found by its role, so a new widget is walked over as well.
What a step does follows from the walk's seed, the step's number and what is on the page, so a seed walks the same
way again. After each step the app has to come to rest with a heading, without an exception, without a traceback in
the server's log and without an error in the browser.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.browser.interactive_elements import DESCRIBE, DRAWN, FIND
from tests.browser.server_log import has_traceback
from tests.browser.visitor_texts import FILES, LINKS, NUMBERS, texts_for
from tests.tiny_models import save_encoder, save_pair, save_tiny, save_translator

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

    from tests.browser.servers import Server

WEIGHTS = {
    "write": 26,
    "turn to": 18,
    "select": 12,
    "press": 12,
    "choose": 6,
    "look at": 6,
    "slide": 6,
    "back": 4,
    "steer": 4,
    "pick": 3,
    "click": 3,
    "open": 3,
    "switch": 2,
    "count": 2,
    "forward": 2,
    "reload": 1,
    "follow": 1,
    "upload": 1,
}
"""How often each kind of step is taken where it can be. Texts and pages come first: a text that replaces another, and
what a page leaves in the session, are what the other browser tests see least of."""
ALWAYS = ("back", "forward", "reload", "follow")
"""The kinds that need nothing of the page."""
AGAIN = 0.4
"""How likely one text is followed by another in the same place."""
STAYS_FLOATING = 0.6
"""How likely the next step is inside an open popover."""
OF_THE_PAGE = 3
"""How many times as often something on the page is used as a link of the navigation."""

START = "?shape=dials&steps=50"
"""Where visitors arrive: on the page Train they find a training that is short enough to be started."""
SHORT_TRAINING = 100
"""Steps of a training that may be started."""

STEERING = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "+", "-", "0")
"""Keys for what is steered from cell to cell."""
PATIENCE_MS = 10_000
"""For one click. What is covered, or goes away meanwhile, isn't worth more."""
DEBOUNCE_MS = {"slide": 250, "look at": 150}
"""How long what was used waits before it tells the server, where it does."""
# Streamlit looks after each file that a button offers, when it draws the button; the next run may have replaced it.
BENIGN = re.compile(
    r"Failed to load resource: .* 404 .*/media/\w+\.csv\)|Client Error: Download Button source error - 404 .*"
    r"|Failed to load resource: .* 404 .*/\w+/_stcore/(health|host-config)\)"  # Streamlit asks below the page first
)
HEADING = "[data-testid=stMain] h1"


@dataclass(frozen=True)
class Finding:
    """What went wrong, and the way there."""

    seed: int
    number: int
    """The step, counted from 1; 0 is the arrival."""
    what: str
    steps: tuple[str, ...]
    """Since this visitor came; the last one went wrong."""

    @property
    def gist(self) -> str:
        """One line, the same for the same fault: the app's innermost frame, if there is one, and the last line."""
        own = "\n".join(line for line in self.what.splitlines() if "site-packages" not in line)
        frames = re.findall(r'File "[^"]*?([^"/]+/[^"/]+\.py)", line (\d+), in (\S+)', own)
        message = self.what.strip().splitlines()[-1][:200]
        return f"{frames[-1][0]}:{frames[-1][1]} in {frames[-1][2]}: {message}" if frames else message

    def __str__(self) -> str:
        way = "\n".join(f"  {number:3d}. {step}" for number, step in enumerate(self.steps, 1))
        return f"seed {self.seed}, step {self.number}: {self.gist}\n{self.what}\nthe way there:\n{way}"


class Walk:
    """One seed's walk.

    visit: opens a tab of a new visitor. wait_ready: as the fixture of that name. server: whose log is read, if it is
    at hand. errors: what the browser has reported, as it grows; emptied here. hurry: how often a step is taken before
    the app has answered the one before, from 0 to 1; above 0, open popovers aren't closed first either, and a walk is
    never quite the same again.
    """

    def __init__(
        self,
        visit: "Callable[[], Page]",
        url: str,
        seed: int,
        *,
        wait_ready: Callable[..., None],
        server: "Server | None" = None,
        errors: list[str] | None = None,
        hurry: float = 0.0,
    ) -> None:
        self.visit, self.url, self.seed, self.hurry = visit, url, seed, hurry
        self.wait_ready, self.server, self.errors = wait_ready, server, [] if errors is None else errors
        self.page: Page | None = None
        self.steps: list[str] = []
        """All that was done, in words: on which page, what, and with which text."""
        self.headings: set[str] = set()
        """The pages seen."""
        self.missed = 0
        """Steps that came to nothing: what was to be used went away, or was covered."""
        self._on = ""  # the page's heading
        self._last = ("", "")  # kind and label of the last step
        self._came = 0  # the present visitor's first step
        self._read = len(server.log()) if server else 0

    def run(self, steps: int, *, stop_at_first: bool = False) -> list[Finding]:
        """Walk; after a finding as a new visitor, unless that ends the walk. Returns the findings."""
        findings: list[Finding] = []
        self._arrive()
        for number in range(steps + 1):
            rng = Random(f"{self.seed}:{number}")
            if number:
                self._step(rng)
            if rng.random() < self.hurry:
                continue
            if problem := self._problem():
                findings.append(Finding(self.seed, number, problem, tuple(self.steps[self._came :])))
                if stop_at_first or (self.server and self.server.process.poll() is not None):
                    break
                self._arrive()
                self._problem()  # what the last visitor left behind is reported already
        return findings

    def _arrive(self) -> None:
        self._came = len(self.steps)
        self.page = self.visit()
        self.page.on("dialog", lambda dialog: dialog.dismiss())
        self.page.goto(f"{self.url}/{START}")

    def _step(self, rng: Random) -> None:
        """Take a step at random, and note what it was."""
        from playwright.sync_api import Error

        self.steps.append(f"{self._on}: ")
        try:
            found = self.page.evaluate_handle(FIND)
            kind, label, index = self._choose(found.evaluate(DESCRIBE), rng)
            self._last = kind, label
            self.steps[-1] += f"{kind} “{label}”" if label else kind
            if index is None:
                self.steps[-1] += f" {self._go(kind, rng)}"
            else:
                element = found.evaluate_handle("(found, index) => found[index].element", index).as_element()
                self.steps[-1] += f" {self._use(kind, label, element, rng)}"
            self.page.wait_for_timeout(DEBOUNCE_MS.get(kind, 0))
        except (AssertionError, Error) as error:  # what the app itself shows is found once it has come to rest
            self.missed += 1
            self.steps[-1] += f" (missed: {str(error).splitlines()[0]})"

    def _choose(self, found: list[list[str]], rng: Random) -> tuple[str, str, int | None]:
        """Kind and label of the next step, and what of all that is found it uses."""
        things = [(*thing, index) for index, thing in enumerate(found) if self._is_short(thing[1])]
        if floating := [thing for thing in things if thing[2] == "stPopoverBody"]:
            if rng.random() < STAYS_FLOATING:
                return (thing := rng.choice(floating))[0], thing[1], thing[3]
            things = [thing for thing in things if thing not in floating]
            if not self.hurry:
                self.page.keyboard.press("Escape")
                self.wait_ready(self.page, settled=0.15)  # closing it may run the page
        same = [thing for thing in things if thing[:2] == self._last]
        if same and self._last[0] == "write" and rng.random() < AGAIN:
            return *self._last, same[0][3]
        there = {thing[0] for thing in things} | set(ALWAYS)
        kinds = [kind for kind in WEIGHTS if kind in there]
        kind = rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        if kind in ALWAYS:
            return kind, "", None
        alike = [thing for thing in things if thing[0] == kind]
        weights = [OF_THE_PAGE if thing[2] == "stMain" else 1 for thing in alike]
        _, label, _, index = rng.choices(alike, weights)[0]
        return kind, label, index

    def _is_short(self, label: str) -> bool:
        """Whether what is pressed takes seconds: not a training of minutes, nor one that begins with a download."""
        if label != "Train":
            return True
        chosen = {name: values[-1] for name, values in parse_qs(urlsplit(self.page.url).query).items()}
        steps = int(chosen.get("steps", 500)) if chosen.get("shape") == "dials" else 500
        return chosen.get("learn") != "text" and steps <= SHORT_TRAINING

    def _go(self, kind: str, rng: Random) -> str:
        """Go where the browser's own buttons lead, or a link; returns the address."""
        if kind == "follow":
            self.page.goto(f"{self.url}/{rng.choice(LINKS)}")
        elif kind == "reload":
            self.page.reload()
        elif kind == "forward":
            self.page.go_forward(wait_until="commit")
        else:
            before = self.page.url
            self.page.go_back(wait_until="commit")
            if not self.page.url.startswith(self.url):  # out of the app, to the empty tab
                self.page.goto(before)  # forward is refused while the tab is being emptied
        return self.page.url.removeprefix(self.url)

    def _use(self, kind: str, label: str, element: "ElementHandle", rng: Random) -> str:
        """Do what is done with such a thing; returns the particulars."""
        keyboard, patience = self.page.keyboard, {"timeout": PATIENCE_MS}
        if kind == "write":
            text = rng.choice(texts_for(label))
            element.fill(text, **patience)
            keyboard.press("Tab" if rng.random() < 0.25 else "Control+Enter")
            return repr(text if len(text) <= 60 else f"{text[:57]}...")
        if kind == "count":
            number = rng.choice(NUMBERS)
            element.fill(number, **patience)
            keyboard.press("Enter")
            return repr(number)
        if kind == "slide":
            key = rng.choice(("Home", "End", "ArrowLeft", "ArrowRight", "PageDown", "PageUp"))
            element.focus()
            for _ in range(1 if key in ("Home", "End") else rng.randint(1, 4)):
                keyboard.press(key)
            return f"to {element.input_value()}"
        if kind == "select":
            element.scroll_into_view_if_needed(**patience)  # while the page scrolls, a menu would close again
            self.page.wait_for_timeout(50)
            element.click(**patience)
            menu = self.page.locator(f"[id='{element.get_attribute('aria-controls')}']").get_by_role("option")
            menu.first.wait_for(**patience)
            option = menu.nth(rng.randrange(menu.count()))
            words = option.inner_text(**patience)
            option.click(**patience)
            return repr(words)
        if kind == "upload":
            file = rng.choice(FILES)
            element.set_input_files(file, **patience)
            return file["name"]
        if kind == "click":
            box = element.bounding_box() or {"width": 2, "height": 2}
            place = {"x": int(rng.random() * box["width"]), "y": int(rng.random() * box["height"])}
            element.click(position=place, **patience)
            return f"at {place['x']}, {place['y']}"
        if kind == "pick":
            option = rng.randrange(element.evaluate("(select) => select.options.length"))
            element.select_option(index=option, **patience)
            return f"the option {option}"
        if kind == "steer":
            keys = [rng.choice(STEERING) for _ in range(rng.randint(1, 6))]
            if rng.random() < 0.5:
                element.focus()
            else:
                element.click(position={"x": int(rng.random() * 200), "y": int(rng.random() * 40)}, **patience)
            for key in keys:
                keyboard.press(key)
            return f"with {' '.join(keys)}"
        if kind == "switch":
            element.evaluate("(input) => input.closest('label').click()")
            return ""
        element.click(**patience)
        if kind == "turn to" and not self.hurry:
            self.page.get_by_role("heading", level=1, name=label, exact=True).wait_for(timeout=60_000)
        return ""

    def _problem(self) -> str:
        """What is wrong once the app has come to rest; empty if nothing is."""
        from playwright.sync_api import Error

        problems = []
        try:
            self.page.locator(HEADING).first.wait_for(timeout=60_000)
            self.wait_ready(self.page, settled=0.05)
            self.page.evaluate(DRAWN)
            self.wait_ready(self.page, settled=0)  # what was drawn last may be an exception
            self._on = self.page.locator(HEADING).first.inner_text(timeout=PATIENCE_MS)
            self.headings.add(self._on)
        except (AssertionError, Error) as error:
            problems.append(str(error))
        problems += [f"in the browser: {error}" for error in self.errors if not BENIGN.search(error)]
        self.errors.clear()
        if self.server:
            log = self.server.log()[self._read :]
            if has_traceback(log) or self.server.process.poll() is not None:
                problems.append(log.strip())
                self._read += len(log)
                self.server.forget_tracebacks()
        return "\n".join(problems)


def save_models(folder: Path) -> None:
    """Tiny models of every sort: two that write, one that reads far, one without a layer, a translator."""
    save_pair(folder)
    save_tiny(folder, "far-reader", title="Far reader", context_length=96, n_layers=1)
    save_tiny(folder, "bigram", title="Bigram", group="The ladder", n_layers=0)
    save_translator(folder)
    save_encoder(folder)


def main(arguments: list[str] | None = None) -> int:
    """Walk, print a line for each seed and everything found; returns 1 if that is anything."""
    from tests.browser.at_rest import wait_until_ready
    from tests.browser.standalone import own_browser, own_server

    parser = argparse.ArgumentParser(prog="python -m tests.browser.random_walk", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many walks (default: 10)")
    parser.add_argument("--steps", type=int, default=100, help="steps of each (default: 100)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument("--hurry", type=float, default=0.0, metavar="SHARE", help="of the steps taken without waiting")
    parser.add_argument("--shipped", action="store_true", help="on the shipped models instead of tiny ones")
    parser.add_argument("--url", help="of an app that runs already; its log can't be read")
    parser.add_argument("--verbose", action="store_true", help="print every step")
    options = parser.parse_args(arguments)
    findings: list[Finding] = []
    errors: list[str] = []
    with ExitStack() as stack:
        server, url = None, (options.url or "").rstrip("/")
        if not url:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            save_models(folder)
            server = stack.enter_context(own_server(None if options.shipped else folder))
            url = server.url
        visit = stack.enter_context(own_browser(errors))
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            began = time.monotonic()
            walk = Walk(
                visit, url, seed, wait_ready=wait_until_ready, server=server, errors=errors, hurry=options.hurry
            )
            found = walk.run(options.steps)
            findings += found
            print(
                f"seed {seed}: {len(walk.steps)} steps in {time.monotonic() - began:.0f} s, {walk.missed} missed, "
                f"{len(walk.headings)} pages, {len(found)} found",
                flush=True,
            )
            for finding in found:
                print(f"  step {finding.number}: {finding.gist}", flush=True)
            if options.verbose:
                print("\n".join(f"  {number:3d}. {step}" for number, step in enumerate(walk.steps, 1)), flush=True)
    first = {finding.gist: finding for finding in reversed(findings)}
    for gist, finding in first.items():
        times = sum(other.gist == gist for other in findings)
        print(f"\n{'=' * 80}\nfound {times} times, first by {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
