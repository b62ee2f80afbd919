"""A tensor, a cell by hand, and the search for a name, in a page of their own: every operation is drawn.

The passes are those of shipped models; the views are the shipped scripts, in Chromium, without Streamlit.
"""

import base64

import pytest

from tests.browser.servers import ROOT
from tests.inside_outlines import outline_of, parts_of, pass_of
from transformer import load_checkpoint
from transformer.instrument import FOLDER, bundle
from transformer.model.equations import equations

ENTRY = """
import { InsidePass } from "%(folder)s/inside/pass.js";
import { CellView } from "%(folder)s/inside/cell_view.js";
import { Search } from "%(folder)s/inside/search.js";
import { TensorView } from "%(folder)s/inside/tensor_view.js";
import { readRecording } from "%(folder)s/recording.js";

const read = (text) => readRecording(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)));

export function start(outline, sent) {
  const parts = sent ? read(sent) : { metadata: {}, tensors: {} };
  const place = document.querySelector("main");
  place.replaceChildren();
  const state = (window.state = { pass: new InsidePass(read(outline)), parts, name: null, head: null, cell: null, token: null, opened: [] });
  // What a host does: it remembers what is looked at, and brings what is asked for.
  const show = (window.show = (change = {}) => {
    Object.assign(state, change);
    const { pass, name, head, cell, token } = state;
    tensor.show(pass, name, { head, cell, token });
    hand.show(pass, name, cell);
  });
  window.fetchAll = () => {
    state.pass.add(state.parts);
    show();
  };
  const open = (name, cell = null) => {
    state.opened.push([name, cell]);
    show({ name, cell, head: null });
  };
  const search = (window.search = new Search(place, state.pass.names, open));
  const tensor = (window.tensor = new TensorView(place, { cell: (cell) => show({ cell }), slice: (head) => show({ head, cell: null }), open }));
  const hand = (window.hand = new CellView(place, { open }));
}
"""
PAGE = """<!doctype html><body style="margin: 12px; background: var(--paper); --ink: %s; --paper: %s; --line: #8888;
  --accent: #0072b2; --radius: 6px; --font: sans-serif"><main></main></body>"""
LIGHT, DARK = ("#222", "#fff"), ("#eee", "#0e1117")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    entry = folder / "entry.js"
    entry.write_text(ENTRY % {"folder": "./" + "../" * len(folder.parts[1:]) + str(FOLDER)[1:]}, encoding="utf-8")
    return bundle(entry)


@pytest.fixture(scope="module")
def recorded():
    """`recorded(name)`: a model's pass over an example, its outline and its parts as the browser gets them."""
    kept = {}

    def record(name, most=24):
        if name not in kept:
            checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
            found = pass_of(checkpoint, checkpoint.card.examples[0], most)
            messages = (outline_of(found, checkpoint, name), parts_of(found))
            kept[name] = (found, *(base64.b64encode(each.to_bytes()).decode() for each in messages))
        return kept[name]

    return record


@pytest.fixture
def views(new_page, script, recorded):
    """`views(model)`: a page with the views of a model's pass, all of which has come unless `fetched` is false."""

    def open_page(model, colours=LIGHT, fetched=True, **options):
        page = new_page(**options)
        page.set_content(PAGE % colours)
        for sheet in ("tip.css", "inside/tensors.css"):
            page.add_style_tag(content=(FOLDER / sheet).read_text(encoding="utf-8"))
        page.evaluate("""async (source) => {
          Object.assign(window, await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))));
        }""", script)  # fmt: skip
        _, outline, parts = recorded(model)
        page.evaluate("([outline, parts]) => start(outline, parts)", [outline, parts])
        if fetched:
            page.evaluate("state.pass.add(state.parts)")
        return page

    return open_page
