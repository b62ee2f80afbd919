"""Writes PNG files: a still picture of all attention heads, for places where scripts don't run.

Shapes: row (a layer, say), head, query, key.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..inference.pattern_pooling import HIDDEN, pool, quantise

MOST_PIXELS = 20_000
"""Of a picture, a byte each, if that leaves a cell for every head: as text in a page it takes 30 kB at most."""
LARGEST = 64
"""Pixels of one head's picture, in width and height."""
_COLOURS = Path(__file__).with_name("colours.js")


def still(rows: Sequence[np.ndarray]) -> tuple[bytes, int, int]:
    """A PNG of several rows of heads, a pixel a cell, what the mask hides transparent.

    rows: (head, query, key) each, uint8 as `quantise` makes them.
    Returns: the file's bytes, its width and its height.
    """
    across = max(map(len, rows))
    side = min(LARGEST, max(1, int((MOST_PIXELS / (len(rows) * across)) ** 0.5) - 1))
    tiles = [quantise(*pool(cells / (HIDDEN - 1), cells == HIDDEN, side)) for cells in rows]
    tall, wide = (max(tile.shape[axis] for tile in tiles) + 1 for axis in (1, 2))  # a pixel apart
    picture = np.full((len(rows) * tall - 1, across * wide - 1), HIDDEN, dtype=np.uint8)
    for row, tile in enumerate(tiles):
        for column, head in enumerate(tile):
            picture[row * tall :, column * wide :][: head.shape[0], : head.shape[1]] = head
    return png(picture, _palette()), picture.shape[1], picture.shape[0]


def png(picture: np.ndarray, palette: np.ndarray | None = None) -> bytes:
    """A PNG file (https://www.w3.org/TR/png/) of colours, uint8 (height, width, 3).

    With a palette (256, 3), the picture is of its bytes, (height, width), of which HIDDEN is transparent.
    """
    height, width = picture.shape[:2]
    rows = picture.reshape(height, -1)
    lines = np.pad(rows, ((0, 0), (1, 0))).tobytes()  # each begins with its filter, which is none
    chunks = {b"IHDR": struct.pack(">2I5B", width, height, 8, 2 if palette is None else 3, 0, 0, 0)}
    if palette is not None:
        chunks |= {b"PLTE": palette.tobytes(), b"tRNS": bytes([255] * HIDDEN + [0])}
    chunks |= {b"IDAT": zlib.compress(lines, 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )


def _palette() -> np.ndarray:
    """The colours of weights, as colours.js has them, by byte: (256, 3)."""
    scale = re.findall(r"SEQUENTIAL = \[(.*?)\];", _COLOURS.read_text(encoding="utf-8"), re.DOTALL)[0]
    stops = [(float(at), *bytes.fromhex(colour)) for at, colour in re.findall(r"\[([\d.]+), \"#(\w+)\"\]", scale)]
    stops_at, *channels = np.array(stops).T
    at = np.arange(HIDDEN + 1) / (HIDDEN - 1)
    return np.rint(np.stack([np.interp(at, stops_at, channel) for channel in channels], axis=1)).astype(np.uint8)
