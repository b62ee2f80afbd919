"""Converts one text's token ids into the tensors that a model takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..config import ModelConfig
from ..model.effective_weights import weights_of
from ..model.models import Model

Ids = Sequence[int] | Tensor
"""Token ids; as a tensor (pos,) or (1, pos)."""


def inputs_of(model: Model, tokens: Ids, source: Ids = (), segments: Ids = ()) -> list[Tensor]:
    """A model's inputs, on its device: the source, if it reads one, the tokens, and their segments if given, (1, pos)
    each.

    Raises: ValueError for no tokens, or a source that is missing, too long, or given to a model that reads none.
    """
    written, read = ids_of(tokens), source_of(model.config, source)
    if not written:
        raise ValueError("There are no tokens; a model reads at least one.")
    return [torch.tensor([ids], device=model.device) for ids in (read, written, ids_of(segments)) if ids]


def ids_of(tokens: Ids) -> list[int]:
    """A text's ids as a list. Raises: ValueError for several texts, TypeError for anything but ids."""
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
    if config.architecture != "encoder-decoder":
        if read:
            raise ValueError("This model reads no source; put all of it into the prompt.")
        return []
    if not read:
        raise ValueError("An encoder–decoder needs a source of at least one token.")
    if len(read) > config.context_length:
        raise ValueError(f"The source has {len(read)} tokens; this model reads at most {config.context_length}.")
    return read


def predicted_position(config: ModelConfig, tokens: Sequence[int], mask_token_id: int | None = None) -> int:
    """The position whose prediction is shown: an encoder's first mask, or else the last token."""
    is_filled = not config.is_causal and mask_token_id in tokens
    return tokens.index(mask_token_id) if is_filled else len(tokens) - 1


def parameters_of(model: Model) -> dict[str, Tensor]:
    """The parameters that a model's equations read, by name, on the CPU: the model's own tensors if they are there.

    For layers that were pruned, parametrised, quantised or wrapped, equivalent weights.
    Raises: ValueError for a layer that isn't linear.
    """
    return {name: tensor.cpu() for name, tensor in weights_of(model).items()}
