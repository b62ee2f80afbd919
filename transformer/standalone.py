"""An instrument as one HTML page, for a notebook, a slide or a handout: it needs no server and no network.

    tokens = checkpoint.tokenizer.encode("To be, or")
    labels = {"text": checkpoint.tokenizer.labels(tokens)}
    show(record(checkpoint.model, torch.tensor([tokens]), checkpoint.model.hook_names(), labels=labels))
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import instrument
from .config import ModelConfig
from .inference.attention_outline import outline, outline_of_layer
from .inference.recording import Recording
from .model.registry import attention_modules

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
showAttention();</script>
</body>
</html>
"""
STYLES = ("standalone.css", "tip.css", "save.css", "overview.css", "attention/attention.css")


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


def show(recording: Recording, kind: str | None = None, *, title: str = "attention", **chosen: Any) -> Shown:
    """Attention as the app shows it, from a recording of one pass.

    recording: of at least `hook_pattern`, `hook_mask`, `hook_v` and, where they exist, queries and keys (rotated ones,
        for rotary positions) of every layer; whatever else it has is compared with what the page derives.
    kind: as in `attention_modules`; None for the model's first. chosen: what is looked at first: layer=1, head=0.
    title: what files that are saved from the page are called.
    Raises: ValueError for a recording that lacks what is needed, or a model without attention of this kind.
    """
    config = ModelConfig.from_dict(recording.metadata["config"])
    kinds = attention_modules(config)
    kind = kind or next(iter(kinds), None)
    if kind not in kinds:
        asked = f"attention {kind}" if kind else "attention"
        raise ValueError(f"This model has no {asked}; it has {', '.join(kinds) or 'none'}.")
    beginning = _outline(recording, config, kind)
    return page(beginning, recording, title=title, **chosen)


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
    script = instrument.bundle(instrument.FOLDER / "attention" / "standalone.js")
    return Shown(
        PAGE.format(
            title=html.escape(title),
            style="\n".join((instrument.FOLDER / name).read_text(encoding="utf-8") for name in STYLES),
            recordings="\n".join(
                f'<script type="text/plain" id="{name}">{base64.b64encode(part.to_bytes()).decode()}</script>'
                for name, part in {"outline": Recording(beginning.tensors, about), "whole": whole}.items()
            ),
            script=script.replace("</script", "<\\/script"),
        )
    )


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
