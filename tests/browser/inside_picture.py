"""Opens the instrument of the page Inside without Streamlit, and reads it."""

import base64
from functools import cache

from tests.inside_answers import Inside
from transformer.frontend import FOLDER, bundle

PAGE = """<!doctype html><body style="margin: 8px; --ink: #222; --paper: #fff; --line: #ccc; --accent: #0072b2;
  --radius: 4px; --font: sans-serif"><main></main></body>"""
IMPORT = """async (source) => {
  Object.assign(window, await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))));
}"""
BEGIN = """async ([bytes, chosen]) => {
  const read = (text) => readRecording(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)));
  Object.assign(window, { wanted: [], chosen: [], held: null });
  const want = async (parts) => {
    window.wanted.push(...parts);
    await window.held;
    window.instrument.add(read(await answer(parts)));
  };
  const select = (one) => window.chosen.push(one);
  window.instrument = new InsideInstrument(document.querySelector("main"), { select, want });
  window.instrument.begin(read(bytes), chosen);
}"""

passes = cache(Inside)
"""`passes(name, prompt, written)`: each is made once."""
bundled = cache(bundle)
"""A script and all that it imports: each is put together once."""
_answering = {}
"""The pass that each tab's page asks about; a tab keeps its way of asking from one test to the next."""


def shows(new_page):
    """`show(name, prompt, written=0, chosen={}, page=None, **options)` for a fixture: a page with this picture."""

    def open_page(name, prompt, written=0, chosen=None, page=None, **options):
        page = page or new_page(**{"width": 1100, "height": 900, **options})
        if page not in _answering:
            page.expose_function("answer", lambda parts: _text(_answering[page].parts(parts)))
        found = _answering[page] = passes(name, prompt, written)
        if not page.evaluate("() => Boolean(window.InsideInstrument)"):
            page.set_content(PAGE)
            for sheet in [*FOLDER.glob("*.css"), *(FOLDER / "inside").glob("*.css")]:
                page.add_style_tag(content=sheet.read_text(encoding="utf-8"))
            for script in ("recording.js", "inside/instrument.js"):
                page.evaluate(IMPORT, bundled(FOLDER / script))
        page.evaluate(BEGIN, [_text(found.outline), chosen or {}])
        return page

    return open_page


def _text(recording):
    return base64.b64encode(recording.to_bytes()).decode()


def opened(page):
    return page.evaluate("window.instrument.chosen.open")


def trail(page):
    return page.get_by_role("navigation").get_by_role("button").all_inner_texts()


def readout(page):
    return page.locator("[data-part=readout]").inner_text()
