"""Converts one text's token ids into the tensors that a model takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..config import ModelConfig
from ..model.models import DecoderOnly, EncoderDecoder

Ids = Sequence[int] | Tensor
"""Token ids; as a tensor (pos,) or (1, pos)."""


def inputs_of(model: DecoderOnly | EncoderDecoder, tokens: Ids, source: Ids = ()) -> list[Tensor]:
    """What a model is called with, on its device: the source, if it reads one, and the tokens, (1, pos) each.

    Raises: ValueError for no tokens, or a source that is missing, too long, or given to a model that reads none.
    """
    written, read = ids_of(tokens), source_of(model.config, source)
    if not written:
        raise ValueError("There are no tokens; a model reads at least one.")
    return [torch.tensor([ids], device=model.device) for ids in (read, written) if ids]


def ids_of(tokens: Ids) -> list[int]:
    """A text's ids as a list. Raises: ValueError for several texts, TypeError for what isn't ids."""
    if isinstance(tokens, str):
        raise TypeError(f"A model reads token ids, not text; give it tokenizer.encode({tokens[:20]!r}).")
    if isinstance(tokens, Tensor):
        if tokens.dim() == 2 and tokens.shape[0] != 1:
            raise ValueError(f"This takes one text at a time; tokens of shape {tuple(tokens.shape)} are several.")
        tokens = tokens.flatten().tolist()
    return [int(token) for token in tokens]


def source_of(config: ModelConfig, source: Ids | None) -> list[int]:
    """The source's ids; empty for a model that reads none. Raises: as `inputs_of`."""
    read = [] if source is None else ids_of(source)
    if config.architecture == "decoder-only":
        if read:
            raise ValueError("This model has no encoder, so it reads no source; put all of it into the prompt.")
        return []
    if not read:
        raise ValueError("An encoder–decoder needs a source of at least one token.")
    if len(read) > config.context_length:
        raise ValueError(f"The source has {len(read)} tokens; this model reads at most {config.context_length}.")
    return read


def parameters_of(model: DecoderOnly | EncoderDecoder) -> dict[str, Tensor]:
    """A model's parameters by name, on the CPU: the very same tensors where it is there."""
    return {name: tensor.cpu() for name, tensor in model.state_dict().items()}
