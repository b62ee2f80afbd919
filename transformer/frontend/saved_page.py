"""Saves a view as one HTML page, for a notebook, slides or a handout; it needs no server and no network.

    tokens = checkpoint.tokenizer.encode("To be, or")
    recording = record_pass(checkpoint.model, tokens, labels=checkpoint.tokenizer.labels)
    show(recording)                           # the whole pass
    show(recording, "self", layer=1, head=3)  # where each token looks

Where scripts don't run, a still picture is seen.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..config import ModelConfig
from ..inference.attention_outline import names_around, outline, outline_of_layer
from ..inference.inputs import predicted_position
from ..inference.pass_outline import tensors_of
from ..inference.pass_recording import Fit, circuit_bytes, fitted, is_whole, pass_of, view_bytes, whole_view
from ..inference.pattern_pooling import pool, quantise
from ..inference.recording import Recording
from ..model.equations import PROBABILITIES
from ..model.registry import attention_modules
from . import FOLDER
from .module_bundle import bundle
from .static_image import still

MOST_BYTES = 48_000_000
"""Of the numbers in a page, which then is a third larger; of larger passes a part is left out."""
COMPARED = (
    "hook_raw_scores",
    "hook_scaled_scores",
    "hook_capped_scores",
    "hook_attn_scores",
    "hook_pattern",
    "hook_z",
    "hook_result",
)
"""What a page derives of an attention, and compares with the model's own where that is there."""

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
<main>{picture}</main>
{recordings}
<script type="module">{script}
{start}();</script>
</body>
</html>
"""
STYLES = {
    "attention": ("head_overview.css", "attention/attention.css"),
    "inside": ("inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
}
CHOICES = ("layer", "head", "query", "key", "stage", "zoom", "without", "order", "direction", "derivation")
"""What an instrument of attention can be told to look at first."""
STARTS = {"attention": "showAttention", "inside": "showInside"}
"""What an instrument's script, `standalone.js` in its folder, exports."""


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
        """The page in a frame; a host that takes the frame out leaves the picture, which else isn't shown."""
        frame = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{frame}" class="headsup-frame" style="width: 100%; height: 900px; border: 0" '
            f'title="HeadsUp"></iframe><style>.headsup-frame ~ .headsup-still {{ display: none }}</style>{self.picture}'
        )


def in_words(size: int) -> str:
    """A number of bytes as people say it."""
    return f"{size / 1e6:.1f} MB" if size >= 999_500 else f"{size / 1e3:.0f} kB"


def show(recording: Recording, kind: str | None = None, *, title: str | None = None, **chosen: Any) -> SavedPage:
    """A pass as the app shows it: all of it, as on the page Inside, or its attention.

    recording: as `record_pass` makes it, for both. For attention it needs no more than `hook_pattern`, `hook_mask`,
        `hook_v` and, where they exist, queries and keys (rotated ones, for rotary positions) of every layer. Of a
        whole pass the page takes these alone; whatever else a smaller recording has of this attention, and of
        `attn.out.weight`, is compared with what the page derives, while there is room.
    kind: of attention, as in `attention_modules`; None for all of a whole pass, and for the model's first attention
        where the recording is of something less.
    chosen: what is looked at first. Of a pass: open="blocks.1.attn.hook_z", token=4, head=2, cell=(4, 2, 7), and what
        else `inside_page` names; of attention: layer=1, head=0.
    title: what files that are saved from the page are called.
    Raises: ValueError for a recording that lacks what is needed, a model without attention of this kind, or something
        to be looked at that isn't there; or a recording that is too large for a page.
    """
    if kind is None and is_whole(recording):
        return inside_page(recording, title=title or "inside", **chosen)
    config = ModelConfig.from_dict(recording.metadata["config"])
    kinds = attention_modules(config)
    kind = kind or next(iter(kinds), None)
    if kind not in kinds:
        pass_name = f"attention {kind}" if kind else "attention"
        raise ValueError(f"This model has no {pass_name}; it has {', '.join(kinds) or 'none'}.")
    beginning = _outline(recording, config, kind)
    _check_chosen(chosen, beginning)
    if is_whole(recording):
        recording = Recording(_cut(recording, attention_points(_sizes(recording), beginning.metadata)), {})
    return page(beginning, recording, title=title or "attention", **chosen)


def page(
    beginning: Recording,
    whole: Recording,
    *,
    title: str,
    offsets: Mapping[str, int] | None = None,
    next: Sequence[str] | None = None,
    **chosen: Any,
) -> SavedPage:
    """A page from an outline, as `inference.attention_outline` makes it, and the recording its parts are cut from.

    offsets: the positions of the first of `queries` and `keys` in the text; None where it begins with them. next: the
    token that each query chose. title, chosen: as in `show`.
    Raises: ValueError for more numbers than a page holds.
    """
    about = {"offsets": offsets or {"queries": 0, "keys": 0}, "next": next, "title": title, "chosen": chosen}
    about = {**beginning.metadata, **about, "complete": True}
    sizes, cells = _sizes(whole), beginning.tensors["overview"]
    points = _read_points(sizes, about)
    if sum(sizes[name] for name in points) > MOST_BYTES:
        points = attention_points(sizes, about)
    if (size := sum(sizes[name] for name in points)) > MOST_BYTES:
        raise ValueError(
            f"The queries, keys and values of this attention take {size / 1e6:,.0f} MB, and a page holds at most "
            f"{MOST_BYTES / 1e6:,.0f} MB; take a shorter text."
        )
    layers, heads = cells.shape[:2]
    what = f"attention ({about['kind']}) over {about['queries']} tokens, {layers} × {heads} heads"
    whole = Recording(_cut(whole, points), {})
    return _page("attention", title, Recording(beginning.tensors, about), whole, what, _picture(list(cells), HEADS))


def attention_fits(config: ModelConfig, kind: str, tokens: int, source: int = 0) -> bool:
    """Whether `page` has room for an attention over so many tokens."""
    sizes = {name: 4 * math.prod(info.sizes) for name, info in tensors_of(config, tokens, source).items()}
    modules = attention_modules(config)[kind]
    about = {"modules": modules, "names": [names_around(config, kind, layer) for layer in range(len(modules))]}
    return sum(sizes[name] for name in attention_points(sizes, about)) <= MOST_BYTES


def attention_points(sizes: Mapping[str, int], about: Mapping[str, Any]) -> list[str]:
    """What a page needs at least, of the tensors that there are: what the picture of an attention is derived from, and
    the model's own weights or z, whichever is smaller, to compare it with; both where something was set by hand.

    sizes: bytes by name. about: metadata of an outline.
    """
    points = []
    for module, around in zip(about["modules"], about["names"], strict=True):
        points += [around[name] for name in "qkv" if around[name]]
        points += [name for name in (f"{module}.relative_bias.weight",) if name in sizes]
        own = [name for name in (f"{module}.hook_pattern", f"{module}.hook_z") if name in sizes]
        is_set = any(change["point"].startswith(f"{module}.") for change in about.get("changed", ()))
        points += own if is_set else sorted(own, key=sizes.__getitem__)[:1]
    return points


def _read_points(sizes: Mapping[str, int], about: Mapping[str, Any]) -> list[str]:
    """All that a page can make use of, of the tensors that there are."""
    names = [
        f"{module}.{point}"
        for module in about["modules"]
        for point in (*COMPARED, "out.weight", "relative_bias.weight")
    ]
    names += [name for around in about["names"] for name in around.values()]
    return [name for name in dict.fromkeys(names) if name in sizes]


def _sizes(recording: Recording) -> dict[str, int]:
    return {name: array.nbytes for name, array in recording.tensors.items()}


def _cut(recording: Recording, names: Sequence[str]) -> dict[str, np.ndarray]:
    return {name: recording.tensors[name] for name in names}


def inside_page(
    recording: Recording,
    *,
    title: str,
    offset: int = 0,
    open: str = "",
    token: int | None = None,
    source: int | None = None,
    head: int | None = None,
    cell: Sequence[int] | None = None,
    moment: float | None = None,
    folds: Sequence[str] = (),
    candidate: int | None = None,
    circuit: Sequence[str | int] | None = None,
) -> SavedPage:
    """A whole pass as the page Inside shows it, from what `record_pass` recorded. title: as in `show`.

    offset: the position of the first token in the text. open: a tensor, a sublayer or a block, empty for the whole;
    token, source, head: those that are looked at, None for the predicted position, none, and all; cell: an index of the
    tensor that is open; moment: where Play stands; folds: what is unfolded below, of "lens", "who", "checks" and
    "circuits"; candidate: the token whose logit is asked about, None for the likeliest; circuit: ("qk",
    "blocks.1.attn", 2, 0) is that of head 2 at distance 0, with two more numbers for a cell of it.
    Of a large pass a part is left out, as `page_fit` says.
    Raises: ValueError for a recording of less than the whole pass, a module or tensor that the model doesn't have, a
        cell that the tensor doesn't have, or a pass that is too large.
    """
    trace = pass_of(recording)
    infos = tensors_of(trace.config, len(trace.tokens), len(trace.source))
    if open and not any(name == open or name.startswith(f"{open}.") for name in infos):
        raise ValueError(f"This model has no {open}; it has {', '.join(list(infos)[:3])} and so on.")
    _check_index("token", token, len(trace.tokens))
    _check_index("source", source, len(trace.source))
    _check_index("head", head, trace.config.n_heads)
    sizes = infos[open].sizes if open in infos else ()
    if cell is not None and not _is_cell(cell, sizes):
        raise ValueError(f"There is no cell {tuple(cell)} in {open or 'the model'}: its shape is {sizes}.")
    chosen = {
        "open": open,
        "token": token,
        "source": source,
        "head": head,
        "cell": cell,
        "moment": moment,
        "folds": folds,
        "candidate": candidate,
        "circuit": circuit,
    }
    fit = page_fit(trace.config, len(trace.tokens), len(trace.source))
    if fit is None:
        raise ValueError("This pass is too large for a page of its own; take a shorter text.")
    labels, changed = recording.metadata["vocabulary"], recording.metadata.get("changed", [])
    beginning, whole = whole_view(trace, labels, fit.names, changed, recording.metadata.get("mask_token_id"))
    about = {"id": title, "title": title, "offset": offset, "complete": True, "chosen": chosen}
    picture = _picture_of_pass(beginning, trace.tensors[PROBABILITIES].detach().float().numpy())
    what = f"a whole pass over {len(trace.tokens)} tokens, {len(infos)} tensors"
    outlined = Recording(beginning.tensors, {**beginning.metadata, **about})
    return _page("inside", title, outlined, whole, what, picture)


def page_fit(config: ModelConfig, tokens: int, source: int = 0) -> Fit | None:
    """What `inside_page` leaves out of a pass over so many tokens; None where even the rest is too large for a page."""
    circuits = circuit_bytes(config)
    fit = fitted(tensors_of(config, tokens, source), MOST_BYTES - circuits)
    return replace(fit, size=fit.size + circuits) if fit.size + circuits <= MOST_BYTES else None


def page_size(config: ModelConfig, outlined: Recording, fit: Fit) -> int:
    """Bytes of what `inside_page` makes of a pass, to about a hundredth, without making it.

    outlined: the outline of the pass, as `whole_view` has it. fit: as `page_fit` gives it.
    """
    ids = outlined.metadata["ids"]
    whole = view_bytes(config, len(ids["text"]), len(ids["source"]), fit)
    frame = _page("inside", "", outlined, Recording({}, {}), "", _picture_of_pass(outlined, None))
    return len(frame.html.encode()) + whole * 4 // 3


def _check_chosen(chosen: Mapping[str, Any], beginning: Recording) -> None:
    """Raise ValueError for what an instrument of attention doesn't ask for, or hasn't got. beginning: its outline."""
    if unknown := sorted(set(chosen) - set(CHOICES)):
        raise ValueError(f"{unknown[0]!r} is nothing that can be looked at first; that is {', '.join(CHOICES)}.")
    layers, heads = beginning.tensors["overview"].shape[:2]
    sizes = {"layer": layers, "head": heads, "query": beginning.metadata["queries"], "key": beginning.metadata["keys"]}
    for name, size in sizes.items():
        _check_index(name, chosen.get(name), size)


def _check_index(name: str, index: int | None, size: int) -> None:
    if index is not None and index not in range(size):
        there = f"from 0 to {size - 1}" if size else "none"
        raise ValueError(f"There is no {name} {index}; of those, this pass has {there}.")


def _is_cell(cell: Sequence[int], sizes: Sequence[int]) -> bool:
    return len(cell) == len(sizes) > 0 and all(at in range(size) for at, size in zip(cell, sizes, strict=True))


def _page(kind: str, title: str, beginning: Recording, whole: Recording, what: str, picture: str) -> SavedPage:
    """kind: a folder of scripts. beginning, whole: what its script finds in the page as `outline` and `whole`. what,
    picture: as in `SavedPage`; the script puts the instrument in the picture's place."""
    script = bundle(FOLDER / kind / "standalone.js")
    styles = ("standalone.css", "type_scale.css", "tooltip.css", "save.css", "intervention_controls.css", *STYLES[kind])
    before, after = PAGE.split("{recordings}")
    pieces = [before.format(title=html.escape(title), style="\n".join(map(_sheet, styles)), picture=picture)]
    for name, part in {"outline": beginning, "whole": whole}.items():
        pieces += [f'<script type="text/plain" id="{name}">', *_in_base64(part.to_bytes()), "</script>\n"]
    pieces.append(after.format(script=script.replace("</script", "<\\/script"), start=STARTS[kind]))
    return SavedPage("".join(pieces), what, picture)


def _picture_of_pass(outlined: Recording, probabilities: np.ndarray | None) -> str:
    """All heads; of a model that has none the probabilities (pos, vocab)."""
    if arcs := [array for name, array in outlined.tensors.items() if name.startswith("arcs.")]:
        return _picture(arcs, HEADS)
    return "" if probabilities is None else _picture([quantise(*pool(probabilities[None], None))], PREDICTIONS)


def _picture(rows: Sequence[np.ndarray], seen: str) -> str:
    """A still picture, as `still` draws it, and a sentence. seen: what is on it."""
    png, width, _ = still(rows)
    return STILL.format(png=base64.b64encode(png).decode(), seen=seen, width=width * max(1, round(WIDTH / width)))


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
    read, mask = recording.metadata.get("ids"), recording.metadata.get("mask_token_id")
    looks_first = predicted_position(config, read["text"], mask) if read and kind != "encoder" else None
    beginning = outline(config, kind, labels, cells, measures, predicted_position=looks_first)
    beginning = Recording(beginning.tensors, {**beginning.metadata, "changed": recording.metadata.get("changed", [])})
    for names in beginning.metadata["names"]:
        for name in (names["q"], names["k"], names["v"]):
            if name:
                _needed(recording, name)
    return beginning


def _labels(recording: Recording, config: ModelConfig) -> Mapping[str, list[str]]:
    """The printable tokens; where the recording has none, their positions."""
    labels = {"text": [], "source": [], **recording.metadata.get("labels", {})}
    prefixes = {"text": ""} if config.architecture != "encoder-decoder" else {"text": "decoder.", "source": "encoder."}
    for text, prefix in prefixes.items():
        length = len(_needed(recording, f"{prefix}hook_embed"))
        if len(labels[text]) != length:
            labels[text] = [str(position) for position in range(length)]
    return labels


def _needed(recording: Recording, name: str) -> np.ndarray:
    if name not in recording.tensors:
        raise ValueError(f"The recording lacks {name}; record every point of the model, with names=None.")
    return recording.tensors[name]
