"""Recordings: the tensors of one forward pass, to save and to send.

A recording's bytes are a safetensors file: eight bytes that hold the header's length, a JSON header, aligned arrays.
Python reads it with `safetensors.numpy.load`, and a browser in twenty lines.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save
from torch import Tensor

from ..hooks import NamesFilter
from ..model.layers import widened
from ..model.models import Model
from ..model.registry import hook_points
from .http_client import open_url
from .interventions import Intervention, hooks_of
from .overwritten_values import overwritten_records

RESERVED = "__metadata__"
"""The name that the format reserves."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Named tensors of one forward pass, and their metadata."""

    tensors: Mapping[str, np.ndarray]
    """By hook point or parameter, without the batch dimension; a part of one has its index in brackets."""
    metadata: Mapping[str, Any]
    """JSON values: configuration, labels, names."""

    def to_bytes(self) -> bytes:
        """The recording as a safetensors file, each metadata value as a JSON text.

        Data starts at a multiple of eight bytes, and wider types come first, so that every array is aligned. Equal
        recordings are equal bytes.
        Raises: ValueError for a tensor of a type that the format lacks, or for metadata that JSON can't hold.
        """
        if RESERVED in self.tensors:
            raise ValueError(f"No tensor of a recording can be called {RESERVED!r}; the file format uses that name.")
        arrays = {name: np.asarray(array, order="C") for name, array in self.tensors.items()}
        texts = {name: _as_json(name, value) for name, value in self.metadata.items()}
        try:
            return _in_order(save(arrays, texts or None))
        except SafetensorError as error:
            types = ", ".join(sorted({str(array.dtype) for array in arrays.values()}))
            raise ValueError(f"A recording can't hold tensors of these types: {types}.") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> Recording:
        """Read what `to_bytes` wrote. The bytes are untrusted: ValueError, saying why, if they are no recording."""
        try:
            tensors = load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        except KeyError as error:
            raise ValueError(f"This recording holds numbers of a type that can't be read here: {error}.") from error
        except (SafetensorError, ValueError) as error:
            raise ValueError("This is no recording: it isn't a whole safetensors file.") from error
        texts = header.get(RESERVED) or {}
        return cls(tensors, {name: _from_json(name, text) for name, text in texts.items()})

    @classmethod
    def from_url(cls, url: str) -> Recording:
        """Fetch a recording from the API: http://localhost:8501/api/tensors?model=…&text=…&names=…

        Raises: ValueError with the server's sentence for an error; OSError where it can't be reached.
        """
        with open_url(url) as response:
            return cls.from_bytes(response.read())


@torch.no_grad()
def record(
    model: Model,
    inputs: Tensor | Sequence[Tensor],
    names: NamesFilter,
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    interventions: Sequence[Intervention] = (),
    parameters: Sequence[str] = (),
) -> Recording:
    """Run one forward pass over one text, and record the chosen hook points.

    inputs: tokens (1, pos); for an encoder–decoder the source and the target.
    names: as in `run_with_cache`: None for all points, a name, a list of names, or a predicate.
    labels: printable tokens, as {"text": […], "source": […]}.
    interventions: those of the pass; the recording has the changed tensors.
    parameters: names of parameters to add, such as `blocks.0.attn.out.weight`.
    Returns: tensors by hook point, without the batch dimension; metadata `config` and `labels`, and, if anything was
        changed, `changed`, the records of what `overwritten_values` finds. Put the model into
        evaluation mode first.
    Raises: ValueError for a batch of several texts, or a name that this model doesn't have.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if several := [len(tokens) for tokens in inputs if len(tokens) != 1]:
        raise ValueError(f"A recording is of one text; this batch has {several[0]}.")
    cache = model.run_until_recorded(*inputs, names_filter=names, fwd_hooks=hooks_of(interventions, model))
    points = hook_points(model.config)
    tensors = {name: as_array(tensor, points[name].shape) for name, tensor in cache.items()}
    tensors |= {name: plain_array(model.effective_weight(name)).copy() for name in parameters}
    words = {text: list(labels_of_text) for text, labels_of_text in (labels or {}).items()}
    changed = overwritten_records(interventions, model.config)
    about = {"config": model.config.to_dict(), "labels": words, **({"changed": changed} if changed else {})}
    return Recording(tensors, about)


def as_array(tensor: Tensor, shape: Sequence[str]) -> np.ndarray:
    """One text's tensor as a NumPy array, a copy, without the batch dimension and in a type that NumPy has.

    shape: the names of its dimensions, as in the registry. A mask gets dimensions for batch and head where
    padding makes it differ; these go as well.
    """
    one = tensor[0] if shape[0] == "batch" else tensor.reshape(tensor.shape[-len(shape) :])
    return plain_array(one).copy()


def rounding_of(dtype: torch.dtype) -> float:
    """The relative spacing of a type's numbers: the rounding error to allow in a recomputation."""
    return torch.finfo(dtype).eps


def plain_array(tensor: Tensor) -> np.ndarray:
    """A tensor as a NumPy array, 16-bit numbers as float32. It may share the tensor's memory."""
    return widened(tensor).numpy(force=True)


def _in_order(file: bytes) -> bytes:
    """Sort a safetensors file's header, so that equal recordings are equal bytes, as caches need."""
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8:end]), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + file[end:]


def _as_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"JSON can't hold the recording's {name}: {error}.") from error


def _plain(value: object) -> object:
    """Convert a value of a type that JSON lacks."""
    if isinstance(value, Mapping):  # a read-only mapping
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"there is no JSON for a {type(value).__name__}")


def _from_json(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no recording: its {name[:40]!r} isn't written as JSON.") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
