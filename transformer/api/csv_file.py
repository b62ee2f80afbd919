"""Writes a tensor as CSV for spreadsheets: index and token along each dimension, then the value."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeVar

import numpy as np

from .tensors import Part

T = TypeVar("T")
FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
"""The beginning of what a spreadsheet takes for a formula."""
MARK = "\ufeff"
"""The byte order mark, without which Excel doesn't read a file as UTF-8."""
MOST_ROWS = 500_000


def csv_file(
    part: Part, values: np.ndarray, texts: Mapping[str, Sequence[str]], vocabulary: Callable[[Sequence[int]], list[str]]
) -> bytes:
    """A row a cell: its index along each dimension, tokens along those that have some, and its value.

    values: of the part. texts: labels of "text" and "source". vocabulary: labels tokens by id.
    """
    info = part.info
    index = [*part.index, *[slice(None)] * (len(info.sizes) - len(part.index))]
    indices = [
        list(range(*chosen.indices(size))) if isinstance(chosen, slice) else [chosen]
        for chosen, size in zip(index, info.sizes, strict=True)
    ]
    labels: dict[int, list[str]] = {}
    for at, dim in enumerate(info.dims):
        if dim == "vocab":
            labels[at] = [_field(label) for label in vocabulary(indices[at])]
        elif dim in ("pos", "query", "key") and info.kind != "parameter":
            is_source = info.name.startswith("encoder.") or (dim == "key" and ".cross_attn." in info.name)
            labels[at] = [_field(texts["source" if is_source else "text"][index]) for index in indices[at]]
    written = [list(map(str, axis)) for axis in indices]
    lines = [",".join([*info.dims, *(f"{info.dims[at]} token" for at in labels), "value"])]
    for cell, value in zip(product(*(range(len(axis)) for axis in indices)), values.reshape(-1), strict=True):
        fields = [written[at][index] for at, index in enumerate(cell)] + [
            named[cell[at]] for at, named in labels.items()
        ]
        lines.append(",".join([*fields, str(value)]))
    return (MARK + "".join(f"{line}\r\n" for line in lines)).encode()


def as_text(value: T) -> T | str:
    """A text that a spreadsheet would take for a formula, with an apostrophe in front; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _field(label: str) -> str:
    """A text as a field (RFC 4180); of spaces at its ends, too, which some readers would take away."""
    text = str(as_text(label))
    return '"{}"'.format(text.replace('"', '""')) if re.search(r'[",\r\n]|^\s|\s$', text) else text
