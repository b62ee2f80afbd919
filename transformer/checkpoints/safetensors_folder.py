"""Reads the weights of a folder in Hugging Face layout, from one safetensors file or several."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from .file_checks import read_json, refuse_pointer
from .folder import CheckpointError, reason
from .weight_numbers import STORED_AS, Header, header_of

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


class SafetensorsFolder:
    """The weights of a folder. Raises: CheckpointError if there are none, or a file of them is missing or damaged."""

    def __init__(self, folder: Path, architecture: str = "AutoModel") -> None:
        """architecture: the class that opens it in transformers."""
        self.folder, self.architecture = folder, architecture
        self._file_of = self._files()

    @cached_property
    def headers(self) -> Mapping[str, Header]:
        """The shape and type of each tensor."""
        found = {}
        for name in sorted(set(self._file_of.values())):
            with self._open(name) as file:
                names = [each for each in file.keys() if self._file_of.get(each, name) == name]  # noqa: SIM118
                found |= {each: header_of(file, each) for each in names}
        if missing := sorted(set(self._file_of) - set(found) - {""}):
            raise CheckpointError(f"{INDEX} names {missing[0][:100]}, which is in no file.")
        return found

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """One tensor; if the file stores this type, it stays mapped until it is needed."""
        file_name = self._file_of.get(name) or self._file_of[""]
        with self._open(file_name) as file:
            tensor = file.get_tensor(name)
        if tensor.dtype not in STORED_AS.values():
            raise CheckpointError(f"{file_name} holds {tensor.dtype}, which no weights are stored as.")
        return tensor.to(dtype)

    def _files(self) -> dict[str, str]:
        """The file of each tensor; under "" the one file that has all of them."""
        if (self.folder / WEIGHTS).is_file():
            return {"": WEIGHTS}
        if not (self.folder / INDEX).is_file():
            raise CheckpointError(f"{WEIGHTS} is missing; {self._instead()}.")
        found = read_json(self.folder / INDEX).get("weight_map")
        if not isinstance(found, dict) or not all(isinstance(name, str) and name for name in found.values()):
            raise CheckpointError(f"{INDEX} doesn't say which file each tensor is in.")
        for name in sorted(set(found.values())):
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise CheckpointError(f"{INDEX} names {name[:100]!r}, which is no safetensors file of this folder.")
            if not (self.folder / name).is_file():
                raise CheckpointError(f"{name} is missing.")
        return found

    def _instead(self) -> str:
        """Advice for the kind of weights that the folder has."""
        if any(self.folder.glob("*.bin")):
            return (
                "weights in .bin files are pickles, which are never opened: where you trust them, "
                f"{self.architecture}.from_pretrained(FOLDER).save_pretrained(OTHER) of transformers writes safetensors"
            )
        return "weights are read from safetensors files alone"

    def _open(self, name: str) -> Any:
        try:
            return safe_open(refuse_pointer(self.folder / name), framework="pt")
        except CheckpointError:
            raise
        except Exception as error:
            raise CheckpointError(f"{name} is damaged ({reason(error)}).") from None
