"""Drives the app without a browser: opens pages, clicks, types, and reads what they show."""

import base64
import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import streamlit as st
import torch
from starlette.testclient import TestClient
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest, local_script_runner

from pages.ui.host.page_state import DEFAULT_MODEL, FIRST_MODEL, PARAMETERS, PageState
from pages.ui.markdown import JOINER
from pages.ui.models import library
from tests.component_events import sent
from tests.frontend_calls import Looked, frontend
from transformer import Recording, Sampling, generate
from transformer.api import cache
from transformer.api.app import create_app
from transformer.api.model_store import model_store
from transformer.api.responses import OWN_HEADER
from transformer.inference.interventions import hooks_of

ROOT = Path(__file__).parents[1]
MAIN = ROOT / "pages" / "main.py"
PAGES = ("Generate", "Attention", "Masks", "Positions", "Inside", "What if")
every_page = pytest.mark.parametrize("page", PAGES)


elsewhere = False
"""Whether what is remembered may be of models in another folder."""


def use(monkeypatch, folder):
    """Let the app find its models in this folder; `conftest.py` sees to it that they are forgotten."""
    global elsewhere
    monkeypatch.setattr(library, "FOLDER", folder)
    forget_models()
    elsewhere = True


def forget_models():
    """Forget what is remembered of models."""
    global elsewhere
    st.cache_resource.clear()
    library._library.cache_clear()
    cache.clear()
    elsewhere = False


def start(page="Generate", **link):
    """A visitor who opens a page, perhaps by a link."""
    at = visitor(page, **link)
    tab_of(at)  # which holds the link before the page is run
    return checked(at.run())


def visitor(page="Generate", **link):
    """A visitor who is about to open a page, perhaps by a link; else on the model of a link that names none."""
    at = AppTest.from_file(str(MAIN), default_timeout=120)
    if page != "Generate":  # which opens first, and has no address of its own
        at.switch_page(f"{page.replace(' ', '_')}.py")
    for name, value in (link or {"model": DEFAULT_MODEL}).items():
        at.query_params[name] = str(value)
    return at


def go(at, page):
    """Follow a link of the navigation, which has no parameters."""
    at.query_params.clear()
    at.switch_page(f"{page.replace(' ', '_')}.py")
    return checked(at.run())


def come_back(at, page, link):
    """Go back, or forward, to a page whose address has these parameters."""
    tab = tab_of(at)
    tab.values, tab.agreed = dict(link), None
    at.query_params.clear()
    at.query_params.update(link)
    at.switch_page(f"{page.replace(' ', '_')}.py")
    return checked(at.run())


def checked(at):
    """Nothing has gone wrong, and the tab has told Python what it draws something of."""
    assert not at.exception, [error.message for error in at.exception]
    tab = tab_of(at)
    if not components(at, SHELL):
        return at
    if page := tab.draw(told_of(at)):
        return go(at, page)
    if message := tab.message():
        states = at._tree.get_widget_states()
        state = states.widgets.add()
        state.id, state.json_value = component(at, SHELL).id, json.dumps({"page_state": message})
        at._run(states)
        return checked(at)
    return at


SHELL = "headsup_shell"
DIALS = [name for name, row in PARAMETERS.items() if row["owner"] == "widget"]


@dataclass
class Tab:
    """What a visitor's browser tab holds: `exchange.js` in Python."""

    values: dict
    told: dict = field(default_factory=dict)
    agreed: str | None = None
    sent: int = 0
    obeyed: int = 0
    before: dict = field(default_factory=dict)
    changes_of: dict = field(default_factory=dict)

    def draw(self, told):
        """Hear what a run tells; returns the page that it opens."""
        if told["session"] != self.told.get("session"):
            self.obeyed = 0
        self.told = told
        self.values.setdefault("model", DEFAULT_MODEL if self.values else FIRST_MODEL)
        for command in told["commands"]:
            if command["number"] > self.obeyed:
                self.obeyed = command["number"]
                if command["kind"] == "model":
                    self.choose("model", command["values"]["model"])
                    continue
                if command["kind"] == "view":
                    self.before, self.values, self.agreed = self.values, {}, None
                self.set(command["values"])
        if all(self.values.get(name) == told["dials_read"].get(name) for name in DIALS):
            self.agreed = told["reading"]
        if self.agreed == told["reading"]:
            self.set({name: told["dials"].get(name) for name in DIALS})
        return told["next_page"]

    def set(self, values):
        """Have other values; None for a default."""
        self.values = {name: text for name, text in {**self.values, **values}.items() if text is not None}

    def choose(self, name, value):
        """Another model or prompt, without what belonged to the one before; a model's changes come back with it."""
        reset = {other: None for other, row in PARAMETERS.items() if name in row.get("of", ())}
        if name == "model":
            self.changes_of[self.values["model"]] = self.values.get("changes")
            reset["changes"] = self.changes_of.get(value)
        self.set({**reset, name: value})

    def message(self):
        """What is to be sent, if anything."""
        asks = self.told["asks_before"]
        if (
            not asks
            and self.agreed == self.told["reading"]
            and all(self.values.get(name) == text for name, text in self.told["drawn"].items())
        ):
            return None
        self.sent += 1
        about = {"sent": self.sent, "agreed": self.agreed, "session": self.told["session"], "obeyed": self.obeyed}
        return {**about, "values": self.values, "before": self.before if asks else None}


_tabs: WeakKeyDictionary[AppTest, Tab] = WeakKeyDictionary()


def told_of(at):
    """What the run has told the tab."""
    (told,) = json.loads(component(at, SHELL).json)
    return told


def page_state(at):
    """The page state as Python has it."""
    return PageState.of(at.session_state["exchange"].texts)


def sentence(at):
    """What stands below the page's title."""
    return told_of(at)["page"]["sentence"]


def tab_of(at):
    aliases = {name: row.get("aliases", {}) for name, row in PARAMETERS.items()}
    held = {name: aliases[name].get(text, text) for name, text in at.query_params.items() if name in PARAMETERS}
    return _tabs.setdefault(at, Tab(held))


def look_at(at, **changes):
    """Look at something else: by the names that links have, None for as at first. It runs pages that draw it."""
    tab_of(at).set({name: None if value is None else str(value) for name, value in changes.items()})
    return checked(at)


def named(elements, label):
    (found,) = [element for element in elements if element.label == label]
    return found


def press(at, label):
    return checked(named(at.button, label).click().run())


def choose(at, label, value):
    if label == "Model":  # in the shell
        tab_of(at).choose("model", value)
        return checked(at)
    return checked(named(at.selectbox, label).set_value(value).run())


def _open(at, kind):
    for drawer in at.expander:
        _, _, name = drawer.proto.id.partition(f"-{kind}_")
        if name:
            at.session_state[f"{kind}_{name}"] = True
    return checked(at.run())


def open_drawers(at):
    """Open every drawer whose table or code is made only then."""
    return _open(at, "drawer")


def open_folds(at):
    """Open every part of a page that is folded at first."""
    return _open(at, "fold")


def type_prompt(at, text):
    tab_of(at).choose("prompt", text)
    return checked(at)


def prompt(at):
    values = tab_of(at).values
    return values.get("prompt", (library.model(values.get("model", DEFAULT_MODEL)).card.examples or [""])[0])


def said(at):
    """All sentences that inform, warn or report an error, without what keeps Markdown away; the shell's among them."""
    told = told_of(at)["notices"] if components(at, SHELL) else []
    boxes = " ".join(box.value for box in [*at.info, *at.warning, *at.error])
    found = shown(at)
    sentences = [re.sub(rf"\\(?=[^\w\s])|{JOINER}", "", boxes), found["problem"]]
    return " ".join(filter(None, dict.fromkeys([*sentences, *told, *found["notices"]])))


def dismiss_notices(at):
    """Press OK beside the shell's notices."""
    return tell_page(at, SHELL, "notices_read", True)


def link_of(at):
    """The parameters that the address bar holds."""
    return dict(tab_of(at).values)


def dials(at):
    """What the dials of the page Generate say: what the tab holds, else what they begin with."""
    return frontend("generation/view_params.js", "selectionFrom", Looked(urlencode(tab_of(at).values)), given(at))


def turn(at, **dials):
    """Turn dials of the page Generate."""
    return look_at(at, **frontend("generation/view_params.js", "paramsFrom", dials))


def _sampling(at):
    chosen = dials(at)
    return {
        "temperature": chosen["temperature"],
        "top_k": chosen["top_k"] or None,
        "top_p": chosen["top_p"],
        "seed": chosen["seed"],
    }


def ids_of(at):
    """The tokens that were written, as the tab's address has them."""
    return [int(each) for each in tab_of(at).values.get("written", "").split(".") if each]


def text_of(at):
    """What was written."""
    return library.tokenizer(link_of(at).get("model", DEFAULT_MODEL)).decode(ids_of(at))


def show_text(at, ids):
    """Have this text on screen, as one does that was written, or goes on with another candidate."""
    return look_at(at, written=".".join(map(str, ids)) or None)


def write(at, tokens=None):
    """Press Generate and see all that is written. tokens: how many, if not as the dial says."""
    about, written = given(at), ids_of(at)
    response = asked(
        at,
        "generate",
        tokens=",".join(map(str, [*about["prompt"], *written])),
        **_sampling(at),
        max_new_tokens=tokens or dials(at)["tokens"],
    )
    assert response.status_code == 200, response.text
    for block in response.text.split("\n\n"):
        if block.startswith("event: token\n"):
            written.append(json.loads(block.partition("data: ")[2])["id"])
    return show_text(at, written)


def step(at):
    """Press Step."""
    return write(at, 1)


def writing(at):
    """What the page Generate's instrument knows of the text on screen: by place, from the first that was written to the
    one after the text; `ids` of those that were written."""
    about, written = given(at), ids_of(at)
    found = answered(
        at,
        "scores",
        tokens=",".join(map(str, [*about["prompt"], *written])),
        first=len(about["prompt"]),
        **_sampling(at),
    )
    return Recording({**found.tensors, "ids": np.array(written, np.int32)}, {**found.metadata, **about})


def components(at, *names):
    """What the browser gets of all components of these names, in the order of the page."""
    return [c.proto for c in at.get("bidi_component") if c.proto.component_name in names]


def component(at, *names):
    (found,) = components(at, *names)
    return found


def _told(at, proto, event, value):
    """The widgets' states once a component's script in the browser has reported something."""
    states = at._tree.get_widget_states()
    state = states.widgets.add()
    state.id = proto.id
    _, _, key = proto.id.split("-", 2)
    state.json_value = json.dumps({"events": sent(key, (event, value), session=at.session_state["session_id"])})
    return states


def tell_page(at, name, event, value, which=None):
    """What a component reports, and the run of the page that this causes. which: of several, by their order."""
    proto = component(at, name) if which is None else components(at, name)[which]
    at._run(_told(at, proto, event, value))
    return checked(at)


def tell(at, name, event, value):
    """What a component's script in the browser reports, and the run that this causes: of the page, or of its fragment.

    Only what the fragment draws can be read afterwards; another run brings back the rest of the page.
    """
    storage = at._fragment_storage
    fragments = [name for name in storage._fragments if storage._target_key_by_id.get(name) != "heartbeat"]
    if not fragments:
        return tell_page(at, name, event, value)
    (fragment,) = fragments
    with pytest.MonkeyPatch.context() as patch:
        rerun = functools.partial(local_script_runner.RerunData, fragment_id=fragment)
        patch.setattr(local_script_runner, "RerunData", rerun)
        at._run(_told(at, component(at, name), event, value))
    return checked(at)


DRAWN = ("Generate", "Attention", "Inside", "Masks", "Positions", "What if")
"""The pages whose views the frontend draws whole."""


def shown(at):
    """What the shell shows of the page: what its view is told, the sentences that it says, and what went wrong."""
    told = told_of(at)
    page = told["view"] or at.session_state["page"]
    if not told["uses_model"]:
        return {"about": None, "effect": None, "notices": [], "problem": ""}
    state = Looked(urlencode(tab_of(at).values))
    return frontend(
        "../../tests/frontend/shown_page.mjs",
        "shownPage",
        page,
        state,
        told["own"],
        page in DRAWN,
        told["catalogue"],
        ask=ask,
    )


def ask(request):
    """The API's answer to what the frontend asks; its small models aren't computed by the frontend itself."""
    cast(Any, api().app).state.responder.forget()
    content = request["body"] and request["body"].encode()
    address = request["asks"].replace("/api/", "/", 1)
    found = api().request(request["method"], address, headers=request["headers"], content=content)
    return found.status_code, found.content.replace(b'"in_browser":true', b'"in_browser":false')


def given(at):
    """What the view of the page is told, with the parameters of its requests as `request`."""
    found, own = shown(at), told_of(at)["own"]
    name = tab_of(at).values.get("model", DEFAULT_MODEL)
    return {**found["about"], "request": found["request"], "token": name if name in own else None}


@functools.cache
def api():
    """The API as the app has it, without its limits: a test asks faster than a visitor."""
    return TestClient(create_app(lambda: library.shared(), model_store().get, limits=lambda app: app))


def asked(at, path, **details):
    """The API's response to what the instrument on the page asks. details: the parameters of this question alone."""
    about = given(at)
    query = {name: value for name, value in {**about["request"], **details}.items() if value is not None}
    cast(Any, api().app).state.responder.forget()
    return api().get(f"/{path}", params=query, headers={OWN_HEADER: about["token"]} if about["token"] else {})


def answered(at, path, **details):
    """The recording that it is answered with."""
    response = asked(at, path, **details)
    assert response.status_code == 200, response.text
    return Recording.from_bytes(response.content)


def request_of(name, tokens, source=(), begin=None):
    """The parameters of the request about a pass of a model that nothing is changed in."""
    tokens, source = (",".join(map(str, ids)) for ids in (tokens, source))
    version = library.opened(name).version
    return {
        "model": name,
        "version": version,
        "tokens": tokens,
        "source": source or None,
        "changes": None,
        "begin": begin,
    }


def overview(at):
    """What the page Attention's instrument begins with."""
    about = given(at)
    found = answered(at, "overview", kind=about["kind"])
    return Recording(found.tensors, {**found.metadata, **about})


def outline(at):
    """What the page Inside's instrument begins with."""
    found = answered(at, "outline")
    return Recording(found.tensors, {**found.metadata, **given(at)})


def looked_at(at):
    """What an instrument looks at first; on Attention queries and keys, on Inside tokens are counted from the first
    that the model reads."""
    about = given(at)
    which, metadata = ("attention", overview(at).metadata) if "kind" in about else ("inside", outline(at).metadata)
    return frontend(f"{which}/view_params.js", "selectionFrom", Looked(urlencode(tab_of(at).values)), about, metadata)


def parts(at, *more):
    """The head that Attention looks at, and `more` parts, as its instrument asks for them."""
    about, chosen = overview(at).metadata, looked_at(at)
    wanted = [["head", chosen["layer"], chosen["head"]], *more]
    return answered(at, "tensors", names=frontend("attention/tensor_names.js", "namesOf", about, wanted))


def figure(at, key):
    (spec,) = [chart.proto.spec for chart in at.get("plotly_chart") if chart.proto.id.endswith(f"-{key}")]
    return json.loads(spec)


def numbers(packed):
    """An array in a figure, whether Plotly packed it or not."""
    if isinstance(packed, list):
        return np.array(packed)
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def run_lines(at, folder, which="load_checkpoint"):
    """Run the lines of Python that a page shows, those with these words. Returns their names."""
    (code,) = [block.value for block in open_drawers(at).code if which in block.value]
    names = {}
    exec(code.replace("checkpoints/", f"{folder}/"), names)
    return names


def ids(text, name="shakespeare"):
    return tuple(library.tokenizer(name).encode(text))


def logits(name, tokens, *interventions, source=()):
    """(pos, vocab): those of a changed model, not by way of the app."""
    model = library.model(name).model
    inputs = [torch.tensor([list(each)]) for each in (source, tokens) if len(each)]
    with torch.no_grad():
        return model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, model))[0]


def generated(name, begin, count, *, source=None, interventions=(), **sampling):
    """The steps of what a model writes after some tokens, not by way of the app."""
    checkpoint = library.model(name)
    options = {"source": source, "max_new_tokens": count, "interventions": interventions}
    ends = checkpoint.card.stop_tokens if source else ()
    return list(generate(checkpoint.model, begin, **options, sampling=Sampling(**sampling), stop_tokens=ends))


def decoded(name, steps):
    return library.tokenizer(name).decode([step.token_id for step in steps])


def downloads(monkeypatch):
    """What the buttons that save make at the press, by file, of pages that are opened from now on."""
    made = {}

    def add(manager, make, mimetype, coordinates, file_name=None, **more):
        made[file_name] = make
        return ""

    monkeypatch.setattr(MediaFileManager, "add_deferred", add)
    return made


def markdown_with(at, words):
    (found,) = [element.value for element in at.markdown if words in element.value]
    return found


def cache_of(name, text):
    """The model's own tensors for a text, not by way of the app."""
    checkpoint = library.model(name)
    tokens = library.window(name, tuple(checkpoint.tokenizer.encode(text)))
    with torch.no_grad():
        return checkpoint.model.run_with_cache(torch.tensor([tokens]))[1]
