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
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

from tests.tiny_models import save_encoder, save_pair, save_tiny, save_translator

FIND = """() => {
  const kinds = [
    ["turn to", "[data-testid=stTopNavLink]"], ["write", "textarea"], ["count", "input[type=number]"],
    ["slide", "input[type=range], [role=slider]"], ["upload", "input[type=file]"], ["switch", "input[type=checkbox]"],
    ["select", "[role=combobox]"], ["choose", "[role=radio], [role=tab]"], ["look at", "[role=option]"],
    ["pick", "select"], ["click", ".js-plotly-plot .nsewdrag"], ["steer", "canvas[role=application]"],
    ["open", "summary"], ["press", "button"],
  ];
  const any = kinds.map(([, selector]) => selector).join();
  const foreign = "[role=toolbar] *, [data-testid=stElementToolbar] *, [data-testid=stFileUploader] button, " +
    "[role=combobox] ~ button, button[aria-label^='Help for'], [data-testid=guide] *";
  const within = (root) => [...root.querySelectorAll(any), ...[...root.querySelectorAll("*")]
    .flatMap(({ shadowRoot }) => (shadowRoot ? within(shadowRoot) : []))];
  const found = [];
  for (const place of ["stTopNavLinkContainer", "stMain", "stPopoverBody"])
    for (const root of document.querySelectorAll(`[data-testid=${place}]`)) for (const element of within(root)) {
      let kind = kinds.find(([, selector]) => element.matches(selector))[0];
      if (element.disabled || element.matches(foreign) || element.pathname === location.pathname) continue;
      const hidden = kind === "switch" || kind === "upload";  // their inputs have no box of their own
      if (!(hidden ? element.parentElement : element).checkVisibility({ visibilityProperty: true })) continue;
      const menu = element.closest(".shell-menu");
      if (kind === "press" && element.getRootNode() !== document && !menu) kind = "look at";
      const text = element.querySelector("p") ?? element;  // without its icon
      const label = (element.getAttribute("aria-label") || text.textContent).trim();
      found.push({ element, kind, place: menu ? "menu" : place, label: label.replace(/\\s+/g, " ").slice(0, 40) });
    }
  return found;
}"""
"""Everything that can be used now, each with the kind of step it lends itself to. Components draw in shadow roots.
Left out are Streamlit's own: help, the tools of tables and figures, the arrows of select boxes; and the guide, which
covers the page and changes nothing of it."""
DRAWN = """() => new Promise((resolve) => {
  const observer = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 40); });
  const done = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); resolve(); };
  let timer = setTimeout(done, 40);
  const last = setTimeout(done, 600);
  observer.observe(document.body, { childList: true, subtree: true });
})"""
"""Waits until nothing is drawn any more: Streamlit says it is at rest before React has drawn the last of it."""
HEADING = "[data-testid=stMain] h1"

# How often each kind of step is taken where it can be. Texts and pages come first: a text that replaces another, and
# what a page leaves in the session, are what the other browser tests see least of.
WEIGHTS = {"write": 26, "turn to": 18, "select": 6, "press": 12, "choose": 6, "look at": 6, "slide": 6, "back": 4}
WEIGHTS |= {"steer": 4, "pick": 12, "click": 3, "open": 3, "switch": 2, "count": 2, "forward": 2, "reload": 1}
WEIGHTS |= {"follow": 1, "upload": 1}
ALWAYS = ("back", "forward", "reload", "follow")
"""The kinds that need nothing of the page."""
AGAIN = 0.4
"""How likely one text is followed by another in the same place."""
STAYS_FLOATING = 0.6
"""How likely the next step is inside an open menu or popover."""
FLOATING = ("menu", "stPopoverBody")
OF_THE_PAGE = 3
"""How many times as often something on the page is used as a link of the navigation."""
START = "?shape=dials&steps=50"
"""Where visitors arrive: on the page Train they find a training that is short enough to be started."""
SHORT_TRAINING = 100
"""Steps of a training that may be started."""
PATIENCE_MS = 10_000
"""For one click. What is covered, or goes away meanwhile, isn't worth more."""
DEBOUNCE_MS = {"slide": 250, "look at": 150}
"""How long what was used waits before it tells the server, where it does."""
# Streamlit looks after each file that a button offers, when it draws the button; the next run may have replaced it.
BENIGN = re.compile(
    r"Failed to load resource: .* 404 .*/media/\w+\.csv\)|Client Error: Download Button source error - 404 .*"
    r"|Failed to load resource: .* 404 .*/\w+/_stcore/(health|host-config)\)"  # Streamlit asks below the page first
    r"|Failed to load resource: .* 404 .*/api/rooms/[^/]*/members\)"  # somebody joins a room that isn't there
)

PROMPTS = ("Hello world", "the king", "To be, or not to be, that is the question", "a", "", "ROMEO:\nBut, soft", "\n")
PROMPTS += ("naïve café 😀", "<b>$x$</b> **`_", "forty-two", "hello=", "Aquí me pongo", "And so on, and on," * 12)
PROMPTS += ("two hundred and five", "nine thousand and nine", "To [mask]e")
TEXTS = {
    "a line": ("one\ntwo\nthree", "one", "", "To be\nor\n<b>é😀\nnot", "\n\nthe king\n\n", "a\nbb\nccc\nd\neeeee\nf"),
    "paste": ("", "Too short a text.", "Twinkle, twinkle, little star,\nHow I wonder what you are. 😀\n" * 30),
}
"""What is typed, by a word of the label; prompts elsewhere."""
NUMBERS = ("0", "1", "5", "63", "-3", "100000000000", "2.5", "")
KEYS = {
    "slide": ("Home", "End", "ArrowLeft", "ArrowRight", "PageDown", "PageUp"),
    "steer": ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "+", "-", "0"),
}
LINKS = (
    "",
    "?model=nobody&layer=9&head=x",
    "?text=,%20my%20love&scope=all&step=3",
    "Attention?prompt=Hello%20world&query=5&key=2&zoom=2,8,0,6&without=mask&order=itself&direction=to",
    "Attention?model=translator&prompt=forty-two&attention=encoder",
    "Masks?batch=To%20be%0Aor%0Anot&batch_row=2&pad_side=left",
    "Positions?length=12&position=11&dimension=7",
    "Inside?prompt=Hello%20world&inside=blocks.0.attn.hook_pattern&place=4&cell=1,4,2&heads=one&head=1&moment=1.5",
    "Inside?model=translator&prompt=forty-two&inside=decoder.blocks.0.cross_attn&source_place=1",
    "What_if?prompt=Hello%20world&changes=scale~blocks.0.attn.hook_z~1~~0!-without~mask~",
    "What_if?model=translator&prompt=forty-two&question=needed&effect=logit&token=7",
    "Train?shape=dials&steps=50&d_model=32",
)
FILES = (
    {"name": "notes.txt", "mimeType": "text/plain", "buffer": TEXTS["paste"][-1].encode()},
    {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""},
    {"name": "model.headsup.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04 and no more"},
)


class Walk:
    """One seed's walk.

    visit: opens a tab of a new visitor. wait_ready: as the fixture of that name. errors: what the browser has
    reported, as it grows; emptied here.
    """

    def __init__(self, visit, server, seed, *, wait_ready, errors):
        self.visit, self.server, self.seed = visit, server, seed
        self.wait_ready, self.errors = wait_ready, errors
        self.steps: list[str] = []
        """All that was done, in words: on which page, what, and with which text."""
        self.missed = 0
        """Steps that came to nothing: what was to be used went away, or was covered."""
        self._on = ""  # the page's heading
        self._last = ("", "")  # kind and label of the last step
        self._came = 0  # the present visitor's first step

    def run(self, steps):
        """Walk, after a finding as a new visitor. Returns what went wrong, each with the steps of its visitor."""
        findings = []
        self._arrive()
        for number in range(steps + 1):
            if number:
                self._step(Random(f"{self.seed}:{number}"))
            if problem := self._problem():
                way = "\n".join(f"  {at:3d}. {step}" for at, step in enumerate(self.steps[self._came :], 1))
                findings.append(f"seed {self.seed}, step {number}: {problem}\nthe way there:\n{way}")
                if self.server.process.poll() is not None:
                    break
                self._arrive()
                self._problem()  # what the last visitor left behind is reported already
        return findings

    def _arrive(self):
        self._came = len(self.steps)
        self.page = self.visit()
        self.page.on("dialog", lambda dialog: dialog.dismiss())
        self.page.goto(f"{self.server.url}/{START}")

    def _step(self, rng):
        """Take a step at random, and note what it was."""
        from playwright.sync_api import Error

        self.steps.append(f"{self._on}: ")
        try:
            found = self.page.evaluate_handle(FIND)
            kind, label, index = self._choose(
                found.evaluate("(all) => all.map((one) => ({ ...one, element: 0 }))"), rng
            )
            self._last = kind, label
            self.steps[-1] += f"{kind} “{label}” "
            if index is None:
                self.steps[-1] += self._go(kind, rng)
            else:
                element = found.evaluate_handle("(found, index) => found[index].element", index).as_element()
                self.steps[-1] += self._use(kind, label, element, rng)
            self.page.wait_for_timeout(DEBOUNCE_MS.get(kind, 0))
        except (AssertionError, Error) as error:  # what the app itself shows is found once it has come to rest
            self.missed += 1
            self.steps[-1] += f" (missed: {str(error).splitlines()[0]})"

    def _choose(self, found, rng):
        """Kind and label of the next step, and what of all that is found it uses."""
        things = [(thing["kind"], thing["label"], index) for index, thing in enumerate(found)]
        things = [thing for thing in things if self._is_short(thing[1])]
        if floating := [thing for thing in things if found[thing[2]]["place"] in FLOATING]:
            if rng.random() < STAYS_FLOATING:
                return rng.choice(floating)
            things = [thing for thing in things if thing not in floating]
            self.page.keyboard.press("Escape")
            self.wait_ready(self.page, settled=0.15)  # closing it may run the page
        same = [thing for thing in things if thing[:2] == self._last]
        if same and self._last[0] == "write" and rng.random() < AGAIN:
            return same[0]
        there = {thing[0] for thing in things} | set(ALWAYS)
        kinds = [kind for kind in WEIGHTS if kind in there]
        (kind,) = rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])
        if kind in ALWAYS:
            return kind, "", None
        alike = [thing for thing in things if thing[0] == kind]
        weights = [OF_THE_PAGE if found[thing[2]]["place"] == "stMain" else 1 for thing in alike]
        return rng.choices(alike, weights)[0]

    def _is_short(self, label):
        """Whether what is pressed takes seconds: not a training of minutes, nor one that begins with a download."""
        if label != "Train":
            return True
        chosen = {name: values[-1] for name, values in parse_qs(urlsplit(self.page.url).query).items()}
        steps = int(chosen.get("steps", 500)) if chosen.get("shape") == "dials" else 500
        return chosen.get("learn") != "text" and steps <= SHORT_TRAINING

    def _go(self, kind, rng):
        """Go where the browser's own buttons lead, or a link; returns the address."""
        if kind == "follow":
            self.page.goto(f"{self.server.url}/{rng.choice(LINKS)}")
        elif kind == "reload":
            self.page.reload()
        elif kind == "forward":
            self.page.go_forward(wait_until="commit")
        else:
            before = self.page.url
            self.page.go_back(wait_until="commit")
            if not self.page.url.startswith(self.server.url):  # out of the app, to the empty tab
                self.page.goto(before)  # forward is refused while the tab is being emptied
        return self.page.url.removeprefix(self.server.url)

    def _use(self, kind, label, element, rng):
        """Do what is done with such a thing; returns the particulars."""
        keyboard, patience, said = self.page.keyboard, {"timeout": PATIENCE_MS}, ""
        if kind in ("write", "count"):
            pool = next((texts for word, texts in TEXTS.items() if word in label.lower()), PROMPTS)
            said = rng.choice(NUMBERS if kind == "count" else pool)
            element.fill(said, **patience)
            keyboard.press("Tab" if rng.random() < 0.25 else "Control+Enter" if kind == "write" else "Enter")
        elif kind == "select":
            element.scroll_into_view_if_needed(**patience)  # while the page scrolls, a menu would close again
            self.page.wait_for_timeout(50)
            element.click(**patience)
            menu = self.page.locator(f"[id='{element.get_attribute('aria-controls')}']").get_by_role("option")
            menu.first.wait_for(**patience)
            option = menu.nth(rng.randrange(menu.count()))
            said = option.inner_text(**patience)
            option.click(**patience)
        elif kind == "upload":
            file = rng.choice(FILES)
            element.set_input_files(file, **patience)
            said = file["name"]
        elif kind == "pick":
            said = rng.randrange(element.evaluate("(select) => select.options.length"))
            element.select_option(index=said, **patience)
        elif kind in KEYS:
            said = [rng.choice(KEYS[kind]) for _ in range(rng.randint(1, 5))]
            element.focus()
            for key in said:
                keyboard.press(key)
        elif kind == "click":
            box = element.bounding_box() or {"width": 2, "height": 2}
            said = {"x": int(rng.random() * box["width"]), "y": int(rng.random() * box["height"])}
            element.click(position=said, **patience)
        elif kind == "switch":
            element.evaluate("(input) => input.closest('label').click()")
        else:
            element.click(**patience)
            if kind == "turn to":
                self.page.get_by_role("heading", level=1, name=label, exact=True).wait_for(timeout=60_000)
        return repr(said)[:60]

    def _problem(self):
        """What is wrong once the app has come to rest; empty if nothing is."""
        from playwright.sync_api import Error

        problems = []
        try:
            heading = self.page.locator(HEADING).first
            heading.wait_for(timeout=60_000)
            self.wait_ready(self.page, settled=0.05)
            self.page.evaluate(DRAWN)
            self.wait_ready(self.page, settled=0)  # what was drawn last may be an exception
            self._on = heading.inner_text(timeout=PATIENCE_MS)
        except (AssertionError, Error) as error:
            problems.append(str(error))
        problems += [f"in the browser: {error}" for error in self.errors if not BENIGN.search(error)]
        self.errors.clear()
        if self.server.has_traceback() or self.server.process.poll() is not None:
            problems.append(self.server.log_tail())
            self.server.forget_tracebacks()
        return "\n".join(problems)


def main(arguments=None):
    """Walk, print a line for each seed and everything found; returns 1 if that is anything."""
    from tests.browser.at_rest import wait_until_ready
    from tests.browser.standalone import own_browser, own_server

    parser = argparse.ArgumentParser(prog="python -m tests.browser.random_walk", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many walks (default: 10)")
    parser.add_argument("--steps", type=int, default=100, help="steps of each (default: 100)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    count, errors = 0, []
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_pair(folder)
        save_tiny(folder, "far-reader", title="Far reader", context_length=96, n_layers=1)
        save_tiny(folder, "bigram", title="Bigram", group="The ladder", n_layers=0)
        save_translator(folder)
        save_encoder(folder)
        with own_server(folder) as server, own_browser(errors) as visit:
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                began = time.monotonic()
                walk = Walk(visit, server, seed, wait_ready=wait_until_ready, errors=errors)
                found = walk.run(options.steps)
                count += len(found)
                took = time.monotonic() - began
                print(f"seed {seed}: {len(walk.steps)} steps in {took:.0f} s, {walk.missed} missed, {len(found)} found")
                print("".join(f"{finding}\n" for finding in found), end="", flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
