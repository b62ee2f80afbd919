"""Exports a checkpoint as a folder in Hugging Face layout, for use in other programs.

What a family has no switch for can often be said another way, with the same logits: a bias that isn't there as one of
zeros, a sinusoidal table as a learned one, turned neighbours as turned halves, a factor of embeddings in their table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from ..model.models import DecoderOnly, EncoderDecoder, shapes_alone
from ..model.positions import sinusoidal_encoding
from .atomic_folders import replacing
from .families import FAMILIES
from .families.family import Family, Fields, write_weight
from .folder import Checkpoint, CheckpointError, reason

State = dict[str, Tensor]
_TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}


def export_pretrained(path: str | Path, checkpoint: Checkpoint) -> Family:
    """Write a checkpoint as a folder in Hugging Face layout, whole or not at all; returns the family that it is of.

    Raises: CheckpointError for a model that no family can express, or a folder that can't be written.
    """
    path = Path(path)
    family, config, state = _expressed(checkpoint.model)
    written = {}
    for weight in family.weights(config):
        tensors = write_weight(weight, config, state[weight.ours].detach())
        written |= {_prefixed(family, name): tensor for name, tensor in tensors.items()}
    about = {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "dtype": "float32",
        **family.write_config(config),
    }
    if ends := checkpoint.card.stop_tokens:
        about["eos_token_id"] = ends[0] if len(ends) == 1 else list(ends)
    try:
        with replacing(path) as folder:
            save_file(written, folder / "model.safetensors", {"format": "pt"})
            checkpoint.tokenizer.save(folder / "tokenizer.json")
            for name, value in (("config.json", about), ("tokenizer_config.json", _TOKENIZER)):
                (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            for file in folder.iterdir():
                file.chmod(0o644)  # a temporary folder and the weights in it start out private
            folder.chmod(0o755)
    except Exception as error:  # the libraries that write have errors of their own
        raise CheckpointError(f"{path.name} can't be written: {reason(error)}.") from error
    return family


def _prefixed(family: Family, name: str) -> str:
    return name if name in ("lm_head.weight", "embed_out.weight") else family.prefix + name


def _expressed(model: DecoderOnly | EncoderDecoder) -> tuple[Family, ModelConfig, State]:
    """The first family that has models of this shape, and the model as that family would say it."""
    for config, state in _ways_to_say(model):
        for family in FAMILIES.values():
            try:
                again = family.read_config(Fields(family.write_config(config)))
            except ValueError:
                continue
            if _resolved(again) == _resolved(config):
                return family, config, state
    known = ", ".join(family.name for family in FAMILIES.values())
    raise CheckpointError(f"No family that is known has models of this shape; known are {known}.")


def _ways_to_say(model: DecoderOnly | EncoderDecoder) -> Iterator[tuple[ModelConfig, State]]:
    """Configurations and weights with the same logits, the model's own first."""
    config, state = model.config, dict(model.state_dict())
    if config.architecture != "decoder-only":
        return
    if config.positions == "rotary" and config.rotary_pairs == "neighbours":
        config, state = _in_halves(config, state)
    if config.positions == "sinusoidal":
        table = sinusoidal_encoding(config.context_length, config.d_model)
        config, state = replace(config, positions="learned"), {**state, "pos_embed.weight": table}
    if config.scale_embeddings:
        table = state["embed.weight"] * config.d_model**0.5
        config, state = replace(config, scale_embeddings=False, tie_embeddings=False), {**state, "embed.weight": table}
    yield config, state
    for biases in ({"mlp_bias": True}, {"mlp_bias": True, "attention_bias": True, "attention_out_bias": True}):
        with_biases = replace(config, **biases)
        needed = shapes_alone(with_biases).state_dict()
        zeros = {name: torch.zeros(tensor.shape) for name, tensor in needed.items() if name not in state}
        yield with_biases, {**state, **zeros}


def _in_halves(config: ModelConfig, state: State) -> tuple[ModelConfig, State]:
    """Rows of W_Q and W_K change places, which no product of a query and a key can tell."""
    turned, rest = torch.arange(config.rotated_dims), torch.arange(config.rotated_dims, config.d_head)
    order = torch.cat((turned[0::2], turned[1::2], rest))
    moved = dict(state)
    for name in [name for name in state if ".attn.qkv." in name]:
        heads = state[name].unflatten(0, (-1, config.d_head))
        of_both = config.n_heads + config.kv_heads  # queries and keys are turned, values aren't
        moved[name] = torch.cat((heads[:of_both, order], heads[of_both:])).flatten(0, 1)
    return replace(config, rotary_pairs="halves"), moved


def _resolved(config: ModelConfig) -> ModelConfig:
    """The same shape with everything said, without what is for training or for batches alone."""
    is_rotary = config.positions == "rotary"
    near = tuple(config.window(layer) for layer in range(config.n_layers))
    return replace(
        config,
        n_kv_heads=config.kv_heads,
        head_width=config.d_head,
        attention_out_bias=config.has_out_bias,
        attention_windows=near if any(near) else (),
        rotary_dims=config.rotated_dims if is_rotary else None,
        rotary_base=config.rotary_base if is_rotary else 10000.0,
        dropout=0.0,
        n_encoder_layers=0,
        pad_token_id=None,
        rotary_pairs=config.rotary_pairs if is_rotary else "neighbours",
    )
