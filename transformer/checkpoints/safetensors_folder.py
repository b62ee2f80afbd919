"""A folder in Hugging Face layout: its weights in one safetensors file or several, its JSON files, its tokenizer."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from ..data.tokenizers import Tokenizer
from .folder import LARGEST_JSON, STORED_AS, CheckpointError, reason

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


class SafetensorsFolder:
    """The weights of a folder. Raises: CheckpointError if there are none, or a file of them is missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file_of = self._files()

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor, from the files' headers."""
        found = {}
        for name in sorted(set(self._file_of.values())):
            with self._open(name) as file:
                names = [each for each in file.keys() if self._file_of.get(each, name) == name]  # noqa: SIM118
                found |= {each: tuple(file.get_slice(each).get_shape()) for each in names}
        if missing := sorted(set(self._file_of) - set(found) - {""}):
            raise CheckpointError(f"{INDEX} names {missing[0][:100]}, which is in no file.")
        return found

    def read(self, name: str) -> Tensor:
        """One tensor, of numbers that weights are stored as."""
        file_name = self._file_of.get(name) or self._file_of[""]
        with self._open(file_name) as file:
            tensor = file.get_tensor(name)
        if tensor.dtype not in STORED_AS:
            raise CheckpointError(f"{file_name} holds {tensor.dtype}, which no weights are stored as.")
        return tensor

    def _files(self) -> dict[str, str]:
        """The file of each tensor; under "" the one file that has all of them."""
        if (self.folder / WEIGHTS).is_file():
            return {"": WEIGHTS}
        if not (self.folder / INDEX).is_file():
            raise CheckpointError(f"{WEIGHTS} is missing; weights are read from safetensors files alone.")
        found = read_json(self.folder / INDEX).get("weight_map")
        if not isinstance(found, dict) or not all(isinstance(name, str) and name for name in found.values()):
            raise CheckpointError(f"{INDEX} doesn't say which file each tensor is in.")
        for name in sorted(set(found.values())):
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise CheckpointError(f"{INDEX} names {name[:100]!r}, which is no safetensors file of this folder.")
            if not (self.folder / name).is_file():
                raise CheckpointError(f"{name} is missing.")
        return found

    def _open(self, name: str) -> Any:
        try:
            return safe_open(self.folder / name, framework="pt")
        except Exception as error:
            raise CheckpointError(f"{name} is damaged ({reason(error)}).") from None


def read_json(path: Path) -> dict[str, Any]:
    """The fields of a JSON file. Raises: CheckpointError for one that is too large or has none."""
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError(f"{path.name} is larger than any such file should be.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} can't be read ({reason(error)}).") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path.name} is no set of named values.")
    return found


def read_tokenizer(folder: Path) -> Tokenizer:
    """A folder's tokenizer. Raises: CheckpointError if it is missing, too large, or no tokenizer."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError("tokenizer.json is missing; the older vocab files can't be read.")
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError("tokenizer.json is larger than any such file should be.")
    try:
        return Tokenizer.from_file(path)
    except ValueError as error:
        raise CheckpointError(f"{reason(error).rstrip('.')}.") from None
