"""Puts an instrument into one HTML page: scripts, styles, what it draws, and a still picture where no script runs."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..inference.pattern_pooling import pool, quantise
from ..inference.recording import Recording
from . import FOLDER, sheets
from .html_scripts import policy, script_in_html
from .module_bundle import bundle
from .startup import SCRIPT, WITHOUT_SCRIPTS
from .static_image import still

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{policy}
<title>{title}</title>
<style>{style}</style>
<script>{startup}</script>
</head>
<body>
{main}
{elements}
<script type="module">{script}</script>
</body>
</html>
"""
STYLES = {
    "generation": ("generation/generation.css", "filling/filling.css"),
    "attention": ("head_overview.css", "attention/attention.css"),
    "inside": ("inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
}
STARTS = {
    "hosts/recorded_attention.js": ("attention", "showAttention"),
    "hosts/recorded_inside.js": ("inside", "showInside"),
    "hosts/saved_attention.js": ("attention", "showAttention"),
    "hosts/saved_inside.js": ("inside", "showInside"),
    "hosts/saved_generation.js": ("generation", "showGeneration"),
}
"""Scripts that draw an instrument from what lies in a page: of `STYLES` which, and the function that each exports."""

STILL = """<figure class="headsup-still" style="margin: 0; max-width: 40rem; font-family: system-ui, sans-serif">
<img src="data:image/png;base64,{png}" alt="{seen}" style="width: {width}px; max-width: 100%; \
image-rendering: pixelated">
<figcaption>{seen} Here it stands still: scripts are needed to explore it. Trust the notebook, or open the saved \
page in a browser that runs scripts.</figcaption>
</figure>"""
HEADS = "The attention of every head, a row for each layer: in each square rows are queries, columns are keys."
PREDICTIONS = "The probability of each token: a row for each of the text, a column for each of the vocabulary."
WIDTH = 480
"""Pixels of a still picture, about."""


@dataclass(frozen=True, repr=False)
class SavedPage:
    """A page that shows an instrument. At the end of a notebook's cell it appears below it."""

    html: str
    """The whole page, scripts and numbers included."""
    what: str = "A page"
    """What it shows, in a few words."""
    picture: str = ""
    """What is seen of it where no script runs, as HTML: a still picture and a sentence."""

    def save(self, path: str | Path) -> None:
        """Write the page to a file, which any browser opens."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<SavedPage: {self.what}, {in_words(len(self.html.encode()))} of HTML>"

    def _repr_html_(self) -> str:
        """The page in a frame; a host that takes the frame out leaves the picture, which else isn't shown.

        The frame's scripts reach nothing of the notebook: it has an origin of its own.
        """
        frame = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{frame}" class="headsup-frame" style="width: 100%; height: 900px; border: 0" '
            'sandbox="allow-scripts allow-downloads" title="HeadsUp"></iframe>'
            f"<style>.headsup-frame ~ .headsup-still {{ display: none }}</style>{self.picture}"
        )


def in_words(size: int) -> str:
    """A number of bytes as people say it."""
    return f"{size / 1e6:.1f} MB" if size >= 999_500 else f"{size / 1e3:.0f} kB"


def assembled(
    script: str, title: str, elements: Mapping[str, Recording | bytes | str], what: str, picture: str, note: str = ""
) -> SavedPage:
    """The page of a script of `STARTS`, which puts an instrument in the picture's place.

    elements: what the script finds in the page, by id: recordings and bytes in base64, and texts, which are scripts of
    ours or as `html_scripts` writes JSON. what, picture: as in `SavedPage`. note: a sentence below the instrument.
    """
    instrument, start = STARTS[script]
    text = f"{script_in_html(bundle(FOLDER / script))}\n{start}();"
    styles = ("standalone.css", "type_scale.css", "tooltip.css", "save.css", "intervention_controls.css")
    style = sheets(*styles, "page/shell.css", "page/changes_menu.css", "paper.css", *STYLES[instrument])
    noted = f'\n<p class="note">{html.escape(note)}</p>' if note else ""
    main = f"<main>{picture or WITHOUT_SCRIPTS}</main>{noted}"
    return SavedPage(in_one_file(title, style, text, main, elements), what, picture)


def in_one_file(title: str, style: str, script: str, main: str, elements: Mapping[str, Recording | bytes | str]) -> str:
    """A page that needs no other file. main: what is seen before its script has run, as HTML; elements: as in
    `assembled`."""
    before, after = PAGE.split("{elements}")
    about = {"title": html.escape(title), "policy": policy([SCRIPT, script]), "startup": SCRIPT}
    pieces = [before.format(**about, style=style, main=main)]
    for name, part in elements.items():
        body = [script_in_html(part)] if isinstance(part, str) else _in_base64(part)
        pieces += [f'<script type="text/plain" id="{html.escape(name)}">', *body, "</script>\n"]
    pieces.append(after.format(script=script))
    return "".join(pieces)


def picture_of_pass(outlined: Recording, probabilities: np.ndarray | None) -> str:
    """All heads; of a model that has none the probabilities (pos, vocab)."""
    if arcs := [array for name, array in outlined.tensors.items() if name.startswith("arcs.")]:
        return picture_of(arcs, HEADS)
    return "" if probabilities is None else picture_of([quantise(*pool(probabilities[None], None))], PREDICTIONS)


def picture_of(rows: Sequence[np.ndarray], seen: str) -> str:
    """A still picture, as `still` draws it, and a sentence. seen: what is on it."""
    png, width, _ = still(rows)
    return STILL.format(png=base64.b64encode(png).decode(), seen=seen, width=width * max(1, round(WIDTH / width)))


def _in_base64(part: Recording | bytes, length: int = 3 * 2**18) -> Iterator[str]:
    """Piece by piece, for many megabytes aren't needed twice. length: bytes of a piece, a multiple of three."""
    data = part if isinstance(part, bytes) else part.to_bytes()
    for start in range(0, len(data), length):
        yield base64.b64encode(data[start : start + length]).decode()
