"""Checks a pretrained model's files before reading any weights, and makes a checkpoint of them.

Sizes are compared with the headers of the files, of either format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from ..config import ModelConfig
from ..data.chat import Chat, ChatTemplateError, chat_of
from ..data.tokenizers import Tokenizer
from ..model.models import shapes_alone
from .checkpoint import Checkpoint
from .families.family import Family, Fields, Weight, read_weight, their_shapes
from .folder import CheckpointError, number_of_weights, reason, shapes_of, with_weights
from .memory_limit import check_fits
from .model_card import ChatParts, ModelCard
from .tokenizer_files import TheirTokenizer
from .weight_numbers import Header, is_finite, name_of, weight_dtype

EXAMPLES = ("The capital of France is", "Once upon a time")
"""Example prompts, which pretrained files don't have."""
MASKED_EXAMPLES = ("The capital of France is {mask}.", "Once upon a {mask}, there was a king.")
"""For a model that fills masked words, with the name of its mask."""
PAIR_EXAMPLES = ("The house is wonderful.", "Where is the station?")
"""For a model that turns one text into another."""
CHAT_EXAMPLES = ("What is the capital of France?", "Why is the sky blue? Answer in one sentence.")
"""For a model that was tuned to answer."""
MASKS = ("[MASK]", "<mask>")
"""Names of the mask token, if the files don't tell."""
TABLES = ("embed.weight", "encoder.embed.weight", "decoder.embed.weight", "unembed.weight")
"""Tables that may be tied."""
LONGEST_PREFIX, MOST_PREFIXES = 100, 8
"""Longest task prefix in characters; most prefixes shown as examples."""
NEVER = 100.0
"""Subtracted from the logits of tokens that must never be written."""


class Tensors(Protocol):
    """Named tensors in files, with shapes and types known before reading."""

    @cached_property
    def headers(self) -> Mapping[str, Header]: ...

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Read one tensor in this type. Raises: CheckpointError if it can't be read."""
        ...


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model's files, checked, with no weights read yet."""

    name: str
    family: Family
    config: ModelConfig
    fields: Fields
    """The fields of the files' configuration."""
    tensors: Tensors
    theirs: TheirTokenizer
    end_token_ids: tuple[int, ...] = ()
    """Tokens that end a text."""
    chat_template: object = None
    """The files' chat template, a program."""
    start_token_ids: tuple[int, ...] = ()
    """The start tokens of an encoder–decoder's target."""
    never_token_ids: tuple[int, ...] = ()
    """Tokens that it must never write."""
    notes: tuple[str, ...] = ()
    """Sentences for the card."""

    def checkpoint(self) -> Checkpoint:
        """Read the weights one after another, in the type of `weight_dtype`; the model is in evaluation mode.

        Raises: CheckpointError for weights that are missing, too many, of another shape, or no finite numbers, and for
            more than there is memory for, before any is read.
        """
        config, dtype, mask = self.config, weight_dtype(self.tensors.headers.values()), self._mask()
        sources = self._sources(config, dtype)
        if (stored := self._as_stored(dtype)) != config:
            config = stored
            sources = self._sources(config, dtype)
        state, shapes = {}, shapes_of(config)
        for weight, names in sources:
            tensors = [self.tensors.read(name, dtype) for name in names]
            state[weight.ours] = read_weight(weight, config, tensors, shapes[weight.ours], dtype)
            if not is_finite(state[weight.ours]):
                raise CheckpointError(f"{names[0][:100]} holds numbers that are infinite or not numbers at all.")
        notes = [*self.family.notes(self.fields), *self.notes]
        if self.never_token_ids:
            notes.append(self._lower(state))
        model = with_weights(replace(config, separator_token_id=self._separator()), state).eval()
        ends = self.end_token_ids if config.is_causal else ()  # an encoder writes no text
        chat, unusable = self._chat()
        examples = [each.format(mask=mask) for each in MASKED_EXAMPLES] if mask else EXAMPLES
        if config.architecture == "encoder-decoder":
            examples = [prefix + PAIR_EXAMPLES[0] for prefix in self._prefixes()] or PAIR_EXAMPLES
        kind = f"{'An' if self.family.name[0] in 'AEIO' else 'A'} {self.family.name} model"
        kept = "" if dtype == torch.float32 else f" Its numbers are {name_of(dtype)}."
        card = ModelCard(
            title=self.name,
            summary=" ".join([f"{kind}, imported.{kept}{unusable}", *notes]),
            group="Imported",
            parameters=model.parameter_count(),
            examples=[*(CHAT_EXAMPLES if chat else ()), *examples],
            start_token_id=self.start_token_ids[0] if self.start_token_ids else None,
            more_start_token_ids=list(self.start_token_ids[1:]),
            end_token_id=ends[0] if ends else None,
            more_end_token_ids=list(ends[1:]),
            mask_token_id=self.theirs.tokenizer.special_id(mask) if mask else None,
            training={"family": self.family.name},
            chat=None if chat is None else _parts(chat),
        )
        return Checkpoint(model, self.theirs.tokenizer, card)

    def _mask(self) -> str | None:
        """The mask token; None for a model without one."""
        if self.config.is_causal:
            return None
        names = (self.theirs.named.get("mask_token", ""), *MASKS)
        found = next((name for name in names if name in self.theirs.tokenizer.special), None)
        if found is None:
            raise CheckpointError("Its tokenizer names no token that stands for a masked word, such as [MASK].")
        return found

    def _separator(self) -> int | None:
        """The token that ends a segment, for a model with several segments."""
        known = self.theirs.tokenizer.special if self.config.n_segments > 1 else {}
        return known.get(self.theirs.named.get("sep_token", "[SEP]"))

    def _lower(self, state: dict[str, Tensor]) -> str:
        """Lower the bias of tokens that must never be written; returns a sentence on it."""
        bias = state["unembed.bias"] = state["unembed.bias"].clone()
        bias[list(self.never_token_ids)] -= NEVER
        names = ", ".join(map(self.theirs.tokenizer.label, self.never_token_ids[:3]))
        return f"Its files forbid it to write {names}, so the logit of that is {NEVER:g} lower here."

    def _prefixes(self) -> list[str]:
        """The prefixes that tell a model with several tasks which one to do."""
        said = self.fields.get("task_specific_params")
        tasks = said.values() if isinstance(said, dict) else ()
        found = [each.get("prefix") for each in tasks if isinstance(each, dict)]
        return [each for each in found if isinstance(each, str) and len(each) <= LONGEST_PREFIX][:MOST_PREFIXES]

    def _chat(self) -> tuple[Chat | None, str]:
        """The chat of a template, and a sentence on a template that can't be used."""
        if not self.chat_template:
            return None, ""
        try:
            return chat_of(self.chat_template, self.theirs.tokenizer, self.theirs.named), ""
        except ChatTemplateError as error:
            return None, f" Its chat template can't be used ({reason(error)}), so it reads plain text."

    def _as_stored(self, dtype: torch.dtype) -> ModelConfig:
        """The configuration, with tables untied that differ in the files despite it."""
        config, real = self.config, self._real_names()
        if not config.has_one_table:
            return config
        found = {
            weight.ours: names[0]
            for weight in self.family.weights(self._apart, self.fields)
            if weight.ours in TABLES and (names := _names(weight, real))
        }
        if config.tie_embeddings and self._are_one(found.values(), dtype):
            return config
        sides = [name for ours, name in found.items() if ours != "unembed.weight"]
        is_shared = config.architecture == "encoder-decoder" and self._are_one(sides, dtype)
        return replace(self._apart, share_embeddings=is_shared)

    def _are_one(self, names: Iterable[str], dtype: torch.dtype) -> bool:
        """Whether all of these tensors are equal."""
        first, *others = dict.fromkeys(names)
        return all(torch.equal(self.tensors.read(first, dtype), self.tensors.read(name, dtype)) for name in others)

    @property
    def _apart(self) -> ModelConfig:
        return replace(self.config, tie_embeddings=False, share_embeddings=False)

    def _real_names(self) -> dict[str, str]:
        """The names in the files, by their present form without the family's prefix."""
        family, found = self.family, {}
        for name in self.tensors.headers:
            plain = name.removeprefix(family.prefix)
            former = next((each for each in family.former if plain.endswith(each)), "")
            found[plain.removesuffix(former) + family.former.get(former, "")] = name
        for names in family.either:
            if first := next((found[name] for name in names if name in found), None):
                found |= dict.fromkeys(names, first)
        return found

    def _sources(self, config: ModelConfig, dtype: torch.dtype) -> list[tuple[Weight, list[str]]]:
        """Each weight's names in the files, after checking all shapes and the memory for them."""
        real = self._real_names()
        shapes = {name: shape for name, (shape, _) in self.tensors.headers.items()}
        ours = shapes_of(config)
        weights = self.family.weights(config, self.fields)
        for weight in weights:
            names = _names(weight, real)
            if len(names) < len(weight.theirs) and not weight.missing:
                lost = next((name for name in weight.theirs if name not in real), weight.theirs[0])
                raise CheckpointError(f"The weights of {lost} are missing.")
            for name, shape in zip(names, their_shapes(weight, config, ours[weight.ours]), strict=False):
                if shapes[name] != shape:
                    raise CheckpointError(
                        f"{name} is {_by(shapes[name])} in the file; the configuration needs {_by(shape)}."
                    )
        used = {
            name
            for weight in [*weights, *self.family.weights(self._apart, self.fields)]
            for name in (*weight.theirs, *weight.instead)
        }
        if left := sorted(name for name in real if name not in used and not re.fullmatch(self.family.ignored, name)):
            raise CheckpointError(
                f"There are weights that no {self.family.name} model has, {left[0][:100]} the first of {len(left)}."
            )
        check_fits(dtype.itemsize * number_of_weights(config))
        return [(weight, _names(weight, real)) for weight in weights]


def _names(weight: Weight, real: Mapping[str, str]) -> list[str]:
    """A weight's names in the files; none for a weight that they leave out."""
    found = [real[name] for name in weight.theirs if name in real]
    return found or [real[name] for name in weight.instead if name in real][:1]


def config_of(family: Family, fields: Mapping[str, Any]) -> ModelConfig:
    """Our configuration from a family's. Raises: CheckpointError for one that the engine can't compute."""
    try:
        asked = Fields(fields)
        config = family.read_config(asked)
        if asked.get("is_causal", config.is_causal) is not config.is_causal:
            seen = "true: its tokens see" if config.is_causal else "false: its tokens don't see"
            raise ValueError(f"it sets is_causal to something else than {seen} what follows them")
        asked.refuse_unread()
        shapes_alone(replace(config, n_layers=1, unrotated_layers=()))
    except (RuntimeError, TypeError, OverflowError):
        raise CheckpointError("The configuration claims sizes that no model can have.") from None
    except ValueError as error:
        raise CheckpointError(f"The configuration can't be used: {reason(error).rstrip('.')}.") from None
    return config


def check_vocabulary(tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Raise CheckpointError if the tokenizer has more tokens than the model."""
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"The tokenizer has {tokenizer.vocab_size:,} tokens, but the model only {config.vocab_size:,}."
        )


def token_ids(found: Iterable[object], config: ModelConfig) -> tuple[int, ...]:
    """The valid token ids among them, without duplicates."""
    ids = (each for each in found if isinstance(each, int) and not isinstance(each, bool))
    return tuple(dict.fromkeys(each for each in ids if 0 <= each < config.vocab_size))


def _parts(chat: Chat) -> ChatParts:
    """A chat as cards have it."""
    found: ChatParts = {"before": chat.before, "after": chat.after}
    if chat.strip:
        found["strip"] = True
    if chat.dates:
        found["dates"] = list(chat.dates)
    return found


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"
