"""An instrument as one HTML page, for a notebook, a slide or a handout: it needs no server and no network.

    tokens = checkpoint.tokenizer.encode("To be, or")
    recording = record_pass(checkpoint.model, tokens, labels=checkpoint.tokenizer.labels)
    show(recording)                           # the whole pass
    show(recording, "self", layer=1, head=3)  # where each token looks
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..config import ModelConfig
from ..inference.attention_outline import outline, outline_of_layer
from ..inference.outline import tensors_of
from ..inference.recording import Recording
from ..inference.whole_recording import Fit, circuit_bytes, fitted, is_whole, pass_of, whole_view
from ..model.registry import attention_modules
from . import FOLDER
from .inline import bundle

MOST_BYTES = 48_000_000
"""Of the numbers in a page, which then is a third larger; of larger passes a part is left out."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src blob: data:">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main></main>
{recordings}
<script type="module">{script}
{start}();</script>
</body>
</html>
"""
STYLES = {
    "attention": ("overview.css", "attention/attention.css"),
    "inside": ("inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
}
STARTS = {"attention": "showAttention", "inside": "showInside"}
"""What an instrument's script, `standalone.js` in its folder, exports."""


@dataclass(frozen=True)
class Shown:
    """A page that shows an instrument. At the end of a notebook's cell it appears below it."""

    html: str
    """The whole page, scripts and numbers included."""

    def save(self, path: str | Path) -> None:
        """Write the page to a file, which any browser opens."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        frame = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{frame}" style="width: 100%; height: 900px; border: 0" title="HeadsUp"></iframe>'


def show(recording: Recording, kind: str | None = None, *, title: str | None = None, **chosen: Any) -> Shown:
    """A pass as the app shows it: all of it, as on the page Inside, or its attention.

    recording: as `record_pass` makes it, for both. For attention it needs no more than `hook_pattern`, `hook_mask`,
        `hook_v` and, where they exist, queries and keys (rotated ones, for rotary positions) of every layer; whatever
        else it has is compared with what the page derives.
    kind: of attention, as in `attention_modules`; None for all of a whole pass, and for the model's first attention
        where the recording is of something less.
    chosen: what is looked at first. Of a pass: open="blocks.1.attn.hook_z", token=4, head=2, cell=(4, 2, 7), and what
        else `inside_page` names; of attention: layer=1, head=0.
    title: what files that are saved from the page are called.
    Raises: ValueError for a recording that lacks what is needed, a model without attention of this kind, or something
        to be looked at that isn't there.
    """
    if kind is None and is_whole(recording):
        return inside_page(recording, title=title or "inside", **chosen)
    config = ModelConfig.from_dict(recording.metadata["config"])
    kinds = attention_modules(config)
    kind = kind or next(iter(kinds), None)
    if kind not in kinds:
        asked = f"attention {kind}" if kind else "attention"
        raise ValueError(f"This model has no {asked}; it has {', '.join(kinds) or 'none'}.")
    beginning = _outline(recording, config, kind)
    return page(beginning, recording, title=title or "attention", **chosen)


def page(
    beginning: Recording, whole: Recording, *, title: str, offsets: Mapping[str, int] | None = None,
    next: Sequence[str] | None = None, **chosen: Any,
) -> Shown:  # fmt: skip
    """A page from an outline, as `inference.attention_outline` makes it, and the recording its parts are cut from.

    offsets: the places of the first of `queries` and `keys` in the text; None where it begins with them. next: the
    token that each query chose. title, chosen: as in `show`.
    """
    about = {"offsets": offsets or {"queries": 0, "keys": 0}, "next": next, "title": title, "chosen": chosen}
    about = {**beginning.metadata, **about, "complete": True}
    return _page("attention", title, Recording(beginning.tensors, about), whole)


def inside_page(
    recording: Recording, *, title: str, offset: int = 0, open: str = "", token: int | None = None,
    source: int | None = None, head: int | None = None, cell: Sequence[int] | None = None, moment: float | None = None,
    folds: Sequence[str] = (), candidate: int | None = None, circuit: Sequence[str | int] | None = None,
) -> Shown:  # fmt: skip
    """A whole pass as the page Inside shows it, from what `record_pass` recorded. title: as in `show`.

    offset: the place of the first token in the text. open: a tensor, a sublayer or a block, empty for all of the model;
    token, source, head: those that are looked at, None for the newest, none, and all; cell: a place in the tensor that
    is open; moment: where Play stands; folds: what is unfolded below, of "lens", "who", "checks" and "circuits";
    candidate: the token whose logit is asked about, None for the likeliest; circuit: ("qk", "blocks.1.attn", 2, 0) is
    that of head 2 at distance 0, with two more numbers for a cell of it.
    Of a large pass a part is left out, as `page_fit` says.
    Raises: ValueError for a recording of less than the whole pass, a module or tensor that the model doesn't have, a
        cell that the tensor doesn't have, or a pass that is too large.
    """
    found = pass_of(recording)
    infos = tensors_of(found.config, len(found.tokens), len(found.source))
    if open and not any(name == open or name.startswith(f"{open}.") for name in infos):
        raise ValueError(f"This model has no {open}; it has {', '.join(list(infos)[:3])} and so on.")
    sizes = infos[open].sizes if open in infos else ()
    if cell is not None and not _is_place(cell, sizes):
        raise ValueError(f"There is no cell {tuple(cell)} in {open or 'the model'}: its shape is {sizes}.")
    chosen = {"open": open, "token": token, "source": source, "head": head, "cell": cell, "moment": moment,
              "folds": folds, "candidate": candidate, "circuit": circuit}  # fmt: skip
    fit = page_fit(found.config, len(found.tokens), len(found.source))
    if fit is None:
        raise ValueError("This pass is too large for a page of its own; take a shorter text.")
    labels, changed = recording.metadata["vocabulary"], recording.metadata.get("changed", [])
    beginning, whole = whole_view(found, labels, fit.names, changed)
    about = {"id": title, "title": title, "offset": offset, "complete": True, "chosen": chosen}
    return _page("inside", title, Recording(beginning.tensors, {**beginning.metadata, **about}), whole)


def page_fit(config: ModelConfig, tokens: int, source: int = 0) -> Fit | None:
    """What `inside_page` leaves out of a pass over so many tokens; None where even the rest is too large for a page."""
    circuits = circuit_bytes(config)
    fit = fitted(tensors_of(config, tokens, source), MOST_BYTES - circuits)
    return replace(fit, size=fit.size + circuits) if fit.size + circuits <= MOST_BYTES else None


def _is_place(cell: Sequence[int], sizes: Sequence[int]) -> bool:
    return len(cell) == len(sizes) > 0 and all(at in range(size) for at, size in zip(cell, sizes, strict=True))


def _page(kind: str, title: str, beginning: Recording, whole: Recording) -> Shown:
    """kind: a folder of scripts. beginning, whole: what its script finds in the page as `outline` and `whole`."""
    script = bundle(FOLDER / kind / "standalone.js")
    styles = ("standalone.css", "tip.css", "save.css", "changing.css", *STYLES[kind])
    before, after = PAGE.split("{recordings}")
    pieces = [before.format(title=html.escape(title), style="\n".join(map(_sheet, styles)))]
    for name, part in {"outline": beginning, "whole": whole}.items():
        pieces += [f'<script type="text/plain" id="{name}">', *_in_base64(part.to_bytes()), "</script>\n"]
    pieces.append(after.format(script=script.replace("</script", "<\\/script"), start=STARTS[kind]))
    return Shown("".join(pieces))


def _sheet(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _in_base64(data: bytes, length: int = 3 * 2**18) -> Iterator[str]:
    """Piece by piece, for many megabytes aren't needed twice. length: bytes of a piece, a multiple of three."""
    for start in range(0, len(data), length):
        yield base64.b64encode(data[start : start + length]).decode()


def _outline(recording: Recording, config: ModelConfig, kind: str) -> Recording:
    labels = _labels(recording, config)
    words = labels["source" if kind == "encoder" else "text"]
    ids = None if kind == "cross" else torch.tensor([sorted(set(words)).index(word) for word in words])
    layers = []
    for module in attention_modules(config)[kind]:
        pattern, mask = (torch.tensor(_needed(recording, f"{module}.hook_{name}")) for name in ("pattern", "mask"))
        layers.append(outline_of_layer(pattern, mask, ids))
    cells, measures = zip(*layers, strict=True)
    beginning = outline(config, kind, labels, cells, measures)
    beginning = Recording(beginning.tensors, {**beginning.metadata, "changed": recording.metadata.get("changed", [])})
    for names in beginning.metadata["names"]:
        for name in (names["q"], names["k"], names["v"]):
            if name:
                _needed(recording, name)
    return beginning


def _labels(recording: Recording, config: ModelConfig) -> Mapping[str, list[str]]:
    """The printable tokens; where the recording has none, their places."""
    labels = {"text": [], "source": [], **recording.metadata.get("labels", {})}
    prefixes = {"text": ""} if config.architecture == "decoder-only" else {"text": "decoder.", "source": "encoder."}
    for text, prefix in prefixes.items():
        length = len(_needed(recording, f"{prefix}hook_embed"))
        if len(labels[text]) != length:
            labels[text] = [str(place) for place in range(length)]
    return labels


def _needed(recording: Recording, name: str) -> np.ndarray:
    if name not in recording.tensors:
        raise ValueError(f"The recording lacks {name}; record every point of the model, with names=None.")
    return recording.tensors[name]
