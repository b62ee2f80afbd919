"""Loads pretrained weights, from a folder in Hugging Face layout or a .gguf file, as a checkpoint.

Files are untrusted. Sizes are compared with the headers before anything is read, and no pickle and no code is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ..config import ModelConfig
from ..data.chat import Chat, ChatTemplateError, chat_of
from ..data.tokenizers import Tokenizer
from ..model.models import shapes_alone
from .families import FAMILIES
from .families.family import Family, Fields, Weight, read_weight, their_shapes
from .file_checks import checked, read_json
from .folder import Checkpoint, CheckpointError, reason, with_weights
from .model_card import ModelCard
from .safetensors_folder import SafetensorsFolder
from .tokenizer_files import TheirTokenizer, read_tokenizer

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
    theirs: TheirTokenizer
    end_token_ids: tuple[int, ...] = ()
    """After each of them a text ends."""
    chat_template: object = None
    """The program that the files bring."""

    def checkpoint(self) -> Checkpoint:
        """Read the weights, one after another, as float32; the model is in evaluation mode.

        Raises: CheckpointError for weights that are missing, too many, of another shape, or no finite numbers.
        """
        config = self._with_own_unembedding()
        state = {}
        for weight, names in self._found(config):
            tensors = [self.tensors.read(name) for name in names]
            state[weight.ours] = read_weight(weight, config, tensors)
            if not state[weight.ours].isfinite().all():
                raise CheckpointError(f"{names[0][:100]} holds numbers that are infinite or not numbers at all.")
        model = with_weights(config, state).eval()
        chat, unusable = self._chat()
        card = ModelCard(
            title=self.name,
            summary=f"A {self.family.name} model, imported.{unusable}",
            group="Imported",
            parameters=model.parameter_count(),
            examples=[*(CHAT_EXAMPLES if chat else ()), *EXAMPLES],
            end_token_id=self.end_token_ids[0] if self.end_token_ids else None,
            more_end_token_ids=list(self.end_token_ids[1:]),
            training={"family": self.family.name},
            chat=None if chat is None else dataclasses.asdict(chat),
        )
        return Checkpoint(model, self.theirs.tokenizer, card)

    def _chat(self) -> tuple[Chat | None, str]:
        """What stands around a person's words, and a sentence on a template that can't be used."""
        if not self.chat_template:
            return None, ""
        try:
            return chat_of(self.chat_template, self.theirs.tokenizer, self.theirs.named), ""
        except ChatTemplateError as error:
            return None, f" Its chat template can't be used ({reason(error)}), so it reads plain text."

    def _with_own_unembedding(self) -> ModelConfig:
        """The configuration, untied where the files have another W_U than the embeddings, whatever they say."""
        names, tied = self._real_names(), self.config.tie_embeddings
        embedding, unembedding = (self.family.weights(self._untied)[index].theirs[0] for index in (0, -1))
        if not tied or unembedding not in names or embedding not in names:
            return self.config
        both = (self.tensors.read(names[name]) for name in (embedding, unembedding))
        return self.config if torch.equal(*both) else self._untied

    @property
    def _untied(self) -> ModelConfig:
        return replace(self.config, tie_embeddings=False)

    def _real_names(self) -> dict[str, str]:
        """The names that the files have, by those without the family's prefix."""
        return {name.removeprefix(self.family.prefix): name for name in self.tensors.shapes}

    def _found(self, config: ModelConfig) -> list[tuple[Weight, list[str]]]:
        """Where each weight stands, under the names that the files have, once all shapes are right."""
        shapes, real = self.tensors.shapes, self._real_names()
        ours = {name: tuple(tensor.shape) for name, tensor in shapes_alone(config).state_dict().items()}
        weights = self.family.weights(config)
        for weight in weights:
            for name, shape in zip(weight.theirs, their_shapes(weight, config, ours[weight.ours]), strict=True):
                if name not in real:
                    raise CheckpointError(f"The weights of {name} are missing.")
                if shapes[real[name]] != shape:
                    raise CheckpointError(
                        f"{name} is {_by(shapes[real[name]])} in the file; the configuration needs {_by(shape)}."
                    )
        used = {name for weight in [*weights, *self.family.weights(self._untied)[-1:]] for name in weight.theirs}
        if left := sorted(name for name in real if name not in used and not re.fullmatch(self.family.ignored, name)):
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
    if is_gguf(path):
        from .gguf_file import open_gguf  # the package is needed for nothing else

        return open_gguf(path)
    if not path.is_dir():
        raise CheckpointError("There is no such folder with a config.json, and no such .gguf file.")
    if (path / "config.json").is_file():
        return _folder(path)
    found = sorted(each for each in path.iterdir() if is_gguf(each))
    if len(found) > 1:
        raise CheckpointError(f"It has {len(found)} .gguf files; name one of them, such as {found[0].name}.")
    if not found:
        raise CheckpointError("config.json is missing; a folder in Hugging Face layout has one.")
    return open_pretrained(found[0])


def is_gguf(path: Path) -> bool:
    """Whether this is the path of a `.gguf` file that is there."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def _folder(path: Path) -> Pretrained:
    fields = read_json(path / "config.json")
    family = family_of(fields.get("model_type"))
    _check_use(family, fields)
    config = config_of(family, fields)
    theirs = read_tokenizer(path)
    check_vocabulary(theirs.tokenizer, config)
    settings = path / "generation_config.json"
    ends = (read_json(settings) if settings.is_file() else {}).get("eos_token_id") or fields.get("eos_token_id")
    ends = token_ids(ends if isinstance(ends, list) else [ends], config)
    return Pretrained(path.name, family, config, SafetensorsFolder(path), theirs, ends, _template(path))


def _check_use(family: Family, fields: Mapping[str, Any]) -> None:
    """Raise CheckpointError for a model that isn't for language modelling, or whose weights are packed."""
    for name in fields.get("architectures") or ():
        if "For" in str(name) and name != family.architecture:
            raise CheckpointError(f"It is a {str(name)[:60]}; of this family, a {family.architecture} can be read.")
    if packed := fields.get("quantization_config"):
        how = packed.get("quant_method") if isinstance(packed, Mapping) else None
        raise CheckpointError(
            f"Its weights are quantised ({str(how)[:20]}); name the model that they were made of, or a .gguf file."
        )


def _template(path: Path) -> object:
    """The chat template of a folder, which stands in a file of its own or among the tokenizer's settings."""
    if (own := path / "chat_template.jinja").is_file():
        return checked(own).read_text(encoding="utf-8", errors="replace")
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
        asked = Fields(fields)
        config = family.read_config(asked)
        if asked.get("is_causal", True) is not True:
            raise ValueError("it sets is_causal to something else than true: its tokens see what follows them")
        asked.refuse_unread()
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


def token_ids(found: Iterable[object], config: ModelConfig) -> tuple[int, ...]:
    """Those of them that are ids of tokens, each once."""
    ids = (each for each in found if isinstance(each, int) and not isinstance(each, bool))
    return tuple(dict.fromkeys(each for each in ids if 0 <= each < config.vocab_size))


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"
