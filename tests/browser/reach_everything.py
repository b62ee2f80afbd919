"""Opens every tensor and parameter of a model on the page Inside, by clicks and by name.

    python -m tests.browser.reach_everything --model shakespeare --model next-vowel

Without a model named, of every shipped one. The way is found as a visitor finds it: whatever can be clicked in the
picture is clicked, from the page's first view on, until every name has been seen. Then each is opened by its way, in
at most four clicks, once more with the arrow keys and Enter alone, and once more by typing its name; each time the
extremes that the page says are those of a pass that is computed here.
"""

import argparse
import re
import sys
import time
from urllib.parse import urlencode

import numpy as np

from tests.browser.servers import ROOT
from transformer import Sampling, generate, load_checkpoint, trace_pass
from transformer.inference.context_windows import window_start
from transformer.inference.pass_outline import array_of, tensors_of

SHIPPED = ROOT / "checkpoints"
MOST_CLICKS = 4
HELD_FIRST = ("part", "head", "kv_head")
"""Of a tensor of more than two dimensions, those of which the page shows the first place, until two are left."""
ENOUGH = 1e-3
"""How far an extreme may be from its own, as a share of the tensor's largest absolute value: it is said in four
digits."""
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

TARGETS = """(root) => [...root.querySelectorAll(".names [data-open]")]
  .filter((each) => each.checkVisibility()).map((each) => each.dataset.open)"""
STEPS = """(root, target) => {
  const all = [...root.querySelectorAll(".names [data-open]")];
  const at = all.indexOf(root.getRootNode().activeElement);
  return all.findIndex((each) => each.dataset.open === target) - (at < 0 ? -1 : at);
}"""
"""How many names up the target is from the one that has the focus; from the stage, one press leads to the first."""
SHOWN = """([root, name]) => {
  const tensor = root.querySelector(".numbers.tensor");
  const isOpen = root.dataset.open === name && tensor.querySelector("h2").lastChild.textContent === name;
  return isOpen && tensor.dataset.state === "shown";
}"""


def expected_of(checkpoint, prompt):
    """What the page is to say of every tensor and parameter, by name: the smallest and the largest of the finite
    numbers that are drawn at first. Of an encoder–decoder's pass over the words that it would write."""
    model, card = checkpoint.model.eval(), checkpoint.card
    text, source = list(checkpoint.tokenizer.encode(prompt)), []
    if model.config.architecture == "encoder-decoder":
        text, source = [card.start_token_id], text
        most = model.config.context_length - 1
        sampling, stops = Sampling(temperature=0), [card.end_token_id]
        steps = generate(model, text, source=source, max_new_tokens=most, sampling=sampling, stop_tokens=stops)
        text += [step.token_id for step in steps if step.token_id != card.end_token_id]
    text = text[window_start(len(text), model.config.context_length) :]
    found = trace_pass(model, text, source)
    infos = tensors_of(model.config, len(text), len(source))
    missing = {*model.hook_names(), *(name for name, _ in model.named_parameters())} - infos.keys()
    assert not missing, f"the registry doesn't tell of {sorted(missing)}"
    return {name: _extremes(array_of(found, info), list(info.dims)) for name, info in infos.items()}


def _extremes(array, dims):
    if "pair" in dims:  # the two sides of each stand in one row
        at = dims.index("pair")
        array = array.reshape(*array.shape[:at], -1, *array.shape[at + 2 :])
        dims[at : at + 2] = ["d_head"]
    while len(dims) > 2:
        at = next((dims.index(dim) for dim in HELD_FIRST if dim in dims), 0)
        array = array.take(0, at)
        del dims[at]
    finite = array[np.isfinite(array)]
    return float(finite.min()), float(finite.max())


class Explorer:
    """A visitor of the page Inside, on one model."""

    def __init__(self, page, url, model, prompt):
        self.page = page
        page.goto(f"{url}/Inside?{urlencode({'model': model, 'prompt': prompt})}")
        self.root = page.get_by_test_id("inside")
        self.root.locator(".names [data-open]").first.wait_for(timeout=60_000)
        self.ways = {}
        """What has to be clicked for each thing that can be opened, one after the other."""

    def go(self, way):
        """Click one thing after the other, from the page's first view on, where nothing is open."""
        if self.root.get_attribute("data-open"):
            self.root.get_by_role("navigation").get_by_role("button", name="model").click()
        assert self.root.get_attribute("data-open") == ""
        for target in way:
            self.root.locator(f'.names [data-open="{target}"]').first.click()

    def look_for(self, wanted):
        """Click what there is, the likeliest first, until ways to all are known; those to which there is none."""
        reached = [[]]
        for clicks in range(MOST_CLICKS):
            ways = [way for way in reached if len(way) == clicks]
            for way in sorted(ways, key=lambda way: not _may_lead_to(way, wanted)):
                if wanted <= self.ways.keys():
                    return set()
                self.go(way)
                for target in self.root.evaluate(TARGETS):
                    if target not in self.ways:
                        self.ways[target] = [*way, target]
                        reached.append(self.ways[target])
        return wanted - self.ways.keys()

    def reach_by_clicks(self, name):
        self.go(self.ways[name])

    def reach_by_keys(self, name):
        """Go the same way with the arrow keys and Enter."""
        keyboard = self.page.keyboard
        self.root.get_by_role("group", name="The forward pass").focus()
        while self.root.get_attribute("data-open"):
            keyboard.press("Escape")
        for target in self.ways[name]:
            steps = self.root.evaluate(STEPS, target)
            for _ in range(abs(steps)):
                keyboard.press("ArrowUp" if steps > 0 else "ArrowDown")
            keyboard.press("Enter")

    def reach_by_name(self, name):
        self.go([])
        box = self.root.get_by_role("combobox", name="Find a tensor")
        box.fill(name)
        box.press("Enter")

    def problem(self, name, expected):
        """What is wrong with the tensor that is open; None if it is this one, with these extremes."""
        try:
            self.page.wait_for_function(SHOWN, arg=[self.root.element_handle(), name], timeout=60_000)
        except Exception:  # Playwright's own, which isn't at hand without a browser
            return f"{name} isn't shown, but {self.root.get_attribute('data-open')!r}"
        facts = self.root.locator(".numbers.tensor .facts")
        for fact, own in zip(("smallest", "largest"), expected, strict=True):
            said = facts.get_by_role("button", name=re.compile(f"^{fact} ")).inner_text()
            if abs(number_in(said) - own) > ENOUGH * max(map(abs, expected)):
                return f"{name}: its {fact} number is said to be {said}, and is {own}"
        return None


def _may_lead_to(way, wanted):
    """Whether the way ends in a module that one of these belongs to: what a visitor clicks first."""
    return any(name.startswith(f"{way[-1]}.") for name in wanted) if way else True


def number_in(said):
    """A number as the page says it: "−0.5", "1.2 × 10⁻⁷"."""
    mantissa, _, power = said.replace("−", "-").partition(" × 10")
    return float(mantissa) * 10.0 ** int(power.translate(SUPERSCRIPTS) or 0)


def reach(page, url, folder, choose=list):
    """Reach the tensors and parameters of a model in a folder; returns their names, and what is wrong.

    choose: takes some of all names.
    """
    checkpoint = load_checkpoint(folder)
    prompt = checkpoint.card.examples[0]
    expected = expected_of(checkpoint, prompt)
    chosen = choose(list(expected))
    explorer = Explorer(page, url, folder.name, prompt)
    lost = explorer.look_for(set(chosen))
    problems = [f"{name} can't be reached in {MOST_CLICKS} clicks" for name in sorted(lost)]
    for name in chosen:
        by_way = () if name in lost else (explorer.reach_by_clicks, explorer.reach_by_keys)
        for go in (*by_way, explorer.reach_by_name):
            go(name)
            if problem := explorer.problem(name, expected[name]):
                problems.append(f"{go.__name__.replace('_', ' ')}: {problem}")
    return chosen, problems


def main(arguments=None):
    """Reach everything, print a line for each model and each problem; returns 1 if there is any."""
    from tests.browser.standalone import own_browser, own_server

    about = __doc__.split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.browser.reach_everything", description=about)
    shipped = sorted(path.name for path in SHIPPED.iterdir())
    parser.add_argument("--model", action="append", choices=shipped, help="may be given several times")
    options = parser.parse_args(arguments)
    count = 0
    with own_server(None) as server, own_browser([]) as visit:
        for model in options.model or shipped:
            began = time.monotonic()
            names, problems = reach(visit(), server.url, SHIPPED / model)
            count += len(problems)
            took = time.monotonic() - began
            print(f"{model}: {len(names)} tensors and parameters in {took:.0f} s, {len(problems)} problems", flush=True)
            print("".join(f"  {problem}\n" for problem in problems), end="", flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
