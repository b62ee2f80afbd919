"""The app without a browser: open a page as a visitor does, press, choose and type, and read what is shown."""

import base64
import functools
import json
import re
import time
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.testing.v1 import AppTest, local_script_runner

from pages.ui.markdown import JOINER
from pages.ui.models import library
from pages.ui.shell import sidebar
from transformer import Recording

ROOT = Path(__file__).parents[1]
MAIN = ROOT / "pages" / "main.py"
FILES = {title: file for file, title, _ in sidebar.PAGES}
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
    elsewhere = False


def start(page="Generate", **link):
    """A visitor who opens a page, perhaps by a link."""
    return checked(visitor(page, **link).run())


def visitor(page="Generate", **link):
    """A visitor who is about to open a page, perhaps by a link."""
    at = AppTest.from_file(str(MAIN), default_timeout=120)
    if page != "Generate":  # which opens first, and has no address of its own
        at.switch_page(FILES[page])
    for name, value in link.items():
        at.query_params[name] = str(value)
    return at


def go(at, page):
    """Follow a link in the sidebar, which has no parameters."""
    at.query_params.clear()
    at.switch_page(FILES[page])
    return checked(at.run())


def come_back(at, page, link):
    """Go back, or forward, to a page whose address has these parameters."""
    at.query_params.clear()
    at.query_params.update(link)
    at.switch_page(FILES[page])
    return checked(at.run())


def checked(at):
    assert not at.exception, [error.message for error in at.exception]
    return at


def named(elements, label):
    (found,) = [element for element in elements if element.label == label]
    return found


def press(at, label):
    return checked(named(at.button, label).click().run())


def choose(at, label, value):
    return checked(named(at.selectbox, label).set_value(value).run())


def dials(at):
    """The dials of the page Generate."""
    return writing(at).metadata["controls"]


def open_drawers(at):
    """Open every drawer whose table or code is made only then."""
    for drawer in at.expander:
        _, _, key = drawer.proto.id.partition("-drawer_")
        if key:
            at.session_state[f"drawer_{key}"] = True
    return checked(at.run())


def type_prompt(at, text):
    return checked(at.sidebar.text_area[0].set_value(text).run())


def prompt(at):
    return at.sidebar.text_area[0].value


def said(at):
    """All sentences that inform, warn or report an error, without what keeps Markdown away."""
    boxes = [*at.info, *at.warning, *at.error, *at.sidebar.warning, *at.sidebar.error]
    return re.sub(rf"\\(?=[^\w\s])|{JOINER}", "", " ".join(box.value for box in boxes))


def link_of(at):
    """The parameters that the page has put into the address bar."""
    written = [json.loads(c.proto.json) for c in at.get("bidi_component")
               if c.proto.component_name == "headsup_tab"]  # fmt: skip
    newest = max(written, key=lambda data: data["at"])
    return dict(parse_qsl(newest["query"], keep_blank_values=True))


def link_to_copy(at):
    """The whole address, as it stands under *Link to this view* once that is opened."""
    (room,) = at.sidebar.code
    assert not room.value.strip(f"{JOINER}\u00a0")  # what is shown first would be the link of a moment ago
    at.session_state["popover_link"] = True
    (block,) = checked(at.run()).sidebar.code
    assert len(room.value) == len(block.value) + 2
    return block.value


def text_of(at):
    return link_of(at).get("text", "")


def write(at):
    """Press Generate, see all that is written, and then the page as it is drawn again."""
    length = writing(at).metadata["length"]
    goal = length + writing(at).metadata["controls"]["tokens"]
    deadline = time.monotonic() + 100
    act(at, "write", goal=goal)
    while not is_written(at):
        assert time.monotonic() < deadline
        act(at, "write", goal=goal, seen=min(have(at), goal))
    act(at, "rest", seen=min(have(at), goal))
    return checked(at.run())


def is_written(at):
    """Whether all that was to be written has come."""
    about = writing(at).metadata
    return about["goal"] is None or about["ended"] or have(at) >= about["goal"]


def step(at):
    """Press Step: the token that comes next is seen, and one more is computed. Then the page is drawn again."""
    return checked(act(at, "rest", seen=writing(at).metadata["length"] + 1).run())


def writing(at):
    """What the page Generate was sent last."""
    return Recording.from_bytes(component(at, "headsup_writing_feed").bytes)


def have(at):
    """The place after the last token that the browser has, those that weren't seen yet included."""
    shown = writing(at)
    return shown.metadata["first"] + len(shown.tensors["ids"])


def act(at, act, *, seen=None, dials=None, **details):
    """What the instrument of the page Generate tells, and the run of its fragment.

    seen: the length that was revealed, by default what is known of it; dials: those that were turned.
    """
    about = writing(at).metadata
    event = {
        "id": about["id"], "branch": about["branch"], "count": about["heard"] + 1, "act": act,
        "seen": about["length"] if seen is None else seen, "have": have(at),
        "controls": {**about["controls"], **(dials or {})}, "step": about["step"], **details,
    }  # fmt: skip
    return tell(at, "headsup_writing_feed", "tell", event)


def turn(at, **dials):
    """Turn dials of the page Generate, and let the hand rest."""
    return act(at, "rest", dials=dials)


def component(at, name):
    (found,) = [c.proto for c in at.get("bidi_component") if c.proto.component_name == name]
    return found


def tell_page(at, name, event, value):
    """What a component's script in the browser reports, and the run of the page that this causes."""
    states = at._tree.get_widget_states()
    state = states.widgets.add()
    state.id = _make_trigger_id(component(at, name).id, "events")
    state.json_trigger_value = json.dumps([{"event": event, "value": value}])
    at._run(states)
    return checked(at)


def tell(at, name, event, value):
    """What a component's script in the browser reports, and the run that this causes: of the page, or of its fragment.

    Only what the fragment draws can be read afterwards; another run brings back the rest of the page.
    """
    states = at._tree.get_widget_states()
    state = states.widgets.add()
    state.id = _make_trigger_id(component(at, name).id, "events")
    state.json_trigger_value = json.dumps([{"event": event, "value": value}])
    storage = at._fragment_storage
    fragments = [name for name in storage._fragments if storage._target_key_by_id.get(name) != "heartbeat"]
    if not fragments:
        at._run(states)
        return checked(at)
    (fragment,) = fragments
    with pytest.MonkeyPatch.context() as patch:
        rerun = functools.partial(local_script_runner.RerunData, fragment_id=fragment)
        patch.setattr(local_script_runner, "RerunData", rerun)
        at._run(states)
    return checked(at)


def overview(at):
    """The outline of a pass that the page Attention shows, as it goes to the browser."""
    return Recording.from_bytes(component(at, "headsup_attention").bytes)


def parts(at):
    """The parts of the pass that go with it, or that were asked for last."""
    return Recording.from_bytes(component(at, "headsup_attention_feed").bytes)


def looked_at(at):
    """What the page Attention shows first; queries and keys are counted from the first that the model reads."""
    return parts(at).metadata["chosen"]


def outline(at):
    """The outline of a pass that the page Inside shows, as it goes to the browser."""
    return Recording.from_bytes(component(at, "headsup_inside").bytes)


def fed(at):
    """What the page Inside was fed last: the parts asked for, and what is looked at."""
    return Recording.from_bytes(component(at, "headsup_inside_feed").bytes)


def look_at(at, **changes):
    """Look at something else, as a click in the instrument does."""
    return tell(at, "headsup_attention_feed", "chosen", {**looked_at(at), **changes})


def figure(at, key):
    (spec,) = [chart.proto.spec for chart in at.get("plotly_chart") if chart.proto.id.endswith(f"-{key}")]
    return json.loads(spec)


def numbers(trace):
    """A trace's z as an array, whether Plotly packed it or not."""
    z = trace["z"]
    if isinstance(z, list):
        return np.array(z, dtype=float)
    shape = [int(size) for size in z["shape"].split(",")]
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(shape)


def drawn(at, key, name):
    """The numbers of a figure's trace; NaN where nothing is drawn."""
    (trace,) = [t for t in figure(at, key)["data"] if (t["type"], t.get("name")) == ("heatmap", name)]
    return numbers(trace)


def markdown_with(at, words):
    (found,) = [element.value for element in at.markdown if words in element.value]
    return found


def cache_of(name, text):
    """The model's own tensors for a text, not by way of the app."""
    checkpoint = library.model(name)
    tokens = library.window(name, tuple(checkpoint.tokenizer.encode(text)))
    with torch.no_grad():
        return checkpoint.model.run_with_cache(torch.tensor([tokens]))[1]
