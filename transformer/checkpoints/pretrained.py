"""Other people's weights: a folder in Hugging Face layout, or a .gguf file, as a checkpoint of ours.

Files are untrusted. Sizes are compared with the headers before anything is read, and no pickle and no code is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from ..config import ModelConfig
from ..data.chat import chat_of
from ..data.tokenizers import Tokenizer
from ..model.models import shapes_alone
from .card import Card
from .families import FAMILIES
from .families.family import Family, Fields, Weight, read_weight, their_shapes
from .folder import LARGEST_JSON, Checkpoint, CheckpointError, reason, with_weights
from .safetensors_folder import SafetensorsFolder, read_json, read_tokenizer

EXAMPLES = ("The capital of France is", "Once upon a time")
"""Prompts to begin with: a model's files bring none."""
CHAT_EXAMPLES = ("What is the capital of France?", "Why is the sky blue? Answer in one sentence.")
"""And of a model that was tuned to answer."""


class Tensors(Protocol):
    """Named tensors in files, of which the shapes are known before any is read."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    def read(self, name: str) -> Tensor:
        """One tensor. Raises: CheckpointError for one that can't be read."""
        ...


@dataclass(frozen=True)
class Pretrained:
    """What has been found in other people's files, checked, and none of its weights read."""

    name: str
    family: Family
    config: ModelConfig
    tensors: Tensors
    tokenizer: Tokenizer
    end_token_id: int | None = None
    chat_template: object = None
    """The program that the files bring; it is never run."""

    def checkpoint(self) -> Checkpoint:
        """Read the weights, one after another, as float32; the model is in evaluation mode.

        Raises: CheckpointError for weights that are missing, too many, of another shape, or no finite numbers.
        """
        found = self._found()
        state = {}
        for weight, names in found:
            tensors = [self.tensors.read(name) for name in names]
            state[weight.ours] = read_weight(weight, self.config, tensors)
            if not state[weight.ours].isfinite().all():
                raise CheckpointError(f"{names[0][:100]} holds numbers that are infinite or not numbers at all.")
        model = with_weights(self.config, state).eval()
        chat = chat_of(self.chat_template, self.tokenizer)
        unknown = " Its chat template is in no form that is known, so it reads plain text."
        card = Card(
            title=self.name,
            summary=f"A {self.family.name} model, imported.{unknown if self.chat_template and not chat else ''}",
            group="Imported",
            parameters=model.parameter_count(),
            examples=[*(CHAT_EXAMPLES if chat else ()), *EXAMPLES],
            end_token_id=self.end_token_id,
            training={"family": self.family.name},
            chat=None if chat is None else dataclasses.asdict(chat),
        )
        return Checkpoint(model, self.tokenizer, card)

    def _found(self) -> list[tuple[Weight, list[str]]]:
        """Where each weight stands, under the names that the files have, once all shapes are right."""
        shapes, prefix = self.tensors.shapes, self.family.prefix
        real = {name.removeprefix(prefix): name for name in shapes}
        ours = {name: tuple(tensor.shape) for name, tensor in shapes_alone(self.config).state_dict().items()}
        weights = self.family.weights(self.config)
        for weight in weights:
            for name, shape in zip(weight.theirs, their_shapes(weight, self.config, ours[weight.ours]), strict=True):
                if name not in real:
                    raise CheckpointError(f"The weights of {name} are missing.")
                if shapes[real[name]] != shape:
                    raise CheckpointError(
                        f"{name} is {_by(shapes[real[name]])} in the file; the configuration needs {_by(shape)}."
                    )
        used = {name for weight in weights for name in weight.theirs}
        unused = re.compile(f"{self.family.ignored}|lm_head.weight|embed_out.weight")
        if left := sorted(name for name in real if name not in used and not unused.fullmatch(name)):
            raise CheckpointError(
                f"There are weights that no {self.family.name} model has, {left[0][:100]} the first of {len(left)}."
            )
        return [(weight, [real[name] for name in weight.theirs]) for weight in weights]


def load_pretrained(path: str | Path) -> Checkpoint:
    """A checkpoint from a folder in Hugging Face layout, or from a `.gguf` file; nothing is written.

    Raises: CheckpointError, saying what would do, for anything else, an unknown family, or files that don't fit.
    """
    path = Path(path)
    try:
        return open_pretrained(path).checkpoint()
    except CheckpointError as error:
        raise CheckpointError(f"{path.name}: {error}") from None
    except Exception as error:  # a file that vanished or changed, and whatever the libraries that read it raise
        raise CheckpointError(f"{path.name}: it can't be read ({reason(error)}).") from None


def open_pretrained(path: Path) -> Pretrained:
    """What is in other people's files, without their weights."""
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".gguf" and path.is_file():
        from .gguf_file import open_gguf  # the package is needed for nothing else

        return open_gguf(path)
    raise CheckpointError("There is no such folder with a config.json, and no such .gguf file.")


def _folder(path: Path) -> Pretrained:
    if not (path / "config.json").is_file():
        raise CheckpointError("config.json is missing; a folder in Hugging Face layout has one.")
    fields = read_json(path / "config.json")
    family = family_of(fields.get("model_type"))
    config = config_of(family, fields)
    tokenizer = read_tokenizer(path)
    check_vocabulary(tokenizer, config)
    return Pretrained(
        path.name, family, config, SafetensorsFolder(path), tokenizer, _end(fields, config), _template(path)
    )


def _template(path: Path) -> object:
    """The chat template of a folder, which stands in a file of its own or among the tokenizer's settings."""
    if (own := path / "chat_template.jinja").is_file() and own.stat().st_size <= LARGEST_JSON:
        return own.read_text(encoding="utf-8", errors="replace")
    settings = path / "tokenizer_config.json"
    found = read_json(settings).get("chat_template") if settings.is_file() else None
    if isinstance(found, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
    return found


def family_of(model_type: object) -> Family:
    """The family that a file names. Raises: CheckpointError, with those that are known."""
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(f"{family.name} ({name})" for name, family in FAMILIES.items())
        raise CheckpointError(f"Models of the type {str(model_type)[:60]!r} can't be read; known are {known}.")
    return FAMILIES[model_type]


def config_of(family: Family, fields: Mapping[str, Any]) -> ModelConfig:
    """Our configuration from a family's. Raises: CheckpointError for one that the engine has no model for."""
    try:
        config = family.read_config(Fields(fields))
        shapes_alone(replace(config, n_layers=1))
    except (RuntimeError, TypeError, OverflowError):
        raise CheckpointError("The configuration claims sizes that no model can have.") from None
    except ValueError as error:
        raise CheckpointError(f"The configuration can't be used: {reason(error).rstrip('.')}.") from None
    return config


def check_vocabulary(tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Raise CheckpointError if there are tokens that the model has no row for."""
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"The tokenizer has {tokenizer.vocab_size:,} tokens, but the model only {config.vocab_size:,}."
        )


def _end(fields: Mapping[str, Any], config: ModelConfig) -> int | None:
    """The token after which a text ends, where config.json names one."""
    end = fields.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    is_token = isinstance(end, int) and not isinstance(end, bool) and 0 <= end < config.vocab_size
    return end if is_token else None


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"
