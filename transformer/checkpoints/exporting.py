"""Exports a checkpoint as a folder in Hugging Face layout, for use in other programs.

If a family lacks a switch, an equivalent model often has the same logits: zeros for a missing bias, a learned table for
a sinusoidal one, rotated halves for rotated neighbours, and scaled embeddings for a factor on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from ..data.chat import Chat
from ..model.effective_weights import merged
from ..model.models import Model, shapes_alone
from ..model.positions import sinusoidal_encoding
from .atomic_folders import replacing
from .families import FAMILIES
from .families.family import Family, Fields, UnsupportedError, write_weight
from .folder import Checkpoint, CheckpointError, reason
from .weight_numbers import name_of

State = dict[str, Tensor]
_TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
_STARTS = ("decoder_start_token_id", "forced_bos_token_id")
_PADS = ("[PAD]", "<pad>", "[pad]")
FILES = (
    *(".bin", ".ckpt", ".ggml", ".gguf", ".gz", ".h5", ".json", ".npz", ".onnx", ".pickle", ".pkl", ".pt", ".pth"),
    *(".safetensors", ".tar", ".tgz", ".zip"),
)
"""Endings of file names, which are no folder names."""


def export_pretrained(path: str | Path, checkpoint: Checkpoint) -> Family:
    """Write a checkpoint as a folder in Hugging Face layout, atomically; returns its family.

    Raises: CheckpointError for a model that no family can express, a folder that can't be written, or a file name.
    """
    path = Path(path)
    if (kind := path.suffix.lower()) in FILES:
        how = "; llama.cpp's convert_hf_to_gguf.py makes a .gguf file of it" if kind == ".gguf" else ""
        raise CheckpointError(
            f"{path.name} is the name of a {kind} file, and a model is written as a folder in Hugging Face layout: "
            f"name a folder, such as {path.stem or 'model'}{how}."
        )
    if blocking := [each for each in path.parents if each.is_file()]:
        raise CheckpointError(f"{path.name} can't be written: {blocking[-1].name} is a file, not a folder.")
    family, fields, written = _expressed(checkpoint)
    about = {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "dtype": name_of(checkpoint.model.W_U.dtype),
        **fields,
    }
    if ends := checkpoint.card.stop_tokens:
        about["eos_token_id"] = ends[0] if len(ends) == 1 else list(ends)
    if family.shape == "encoder-decoder":
        about |= dict(zip(_STARTS, checkpoint.card.start_tokens, strict=False))
        about["pad_token_id"] = _padding(checkpoint)
    try:
        with replacing(path) as folder:
            save_file(written, folder / "model.safetensors", {"format": "pt"})
            checkpoint.tokenizer.save(folder / "tokenizer.json")
            for name, value in (("config.json", about), ("tokenizer_config.json", _about_tokenizer(checkpoint))):
                (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            for file in folder.iterdir():
                file.chmod(0o644)  # temporary files are created private
            folder.chmod(0o755)
    except Exception as error:  # the writing libraries have their own errors
        raise CheckpointError(f"{path.name} can't be written: {reason(error)}.") from error
    return family


def _padding(checkpoint: Checkpoint) -> int | None:
    """The padding token, if there is one."""
    pads = (checkpoint.model.config.pad_token_id, *map(checkpoint.tokenizer.special.get, _PADS))
    return next((each for each in pads if each is not None), None)


def _about_tokenizer(checkpoint: Checkpoint) -> dict[str, Any]:
    """tokenizer_config.json: the roles of special tokens, and the chat template."""
    config, tokenizer, card = checkpoint.model.config, checkpoint.tokenizer, checkpoint.card
    names = {token_id: name for name, token_id in tokenizer.special.items()}
    before, after = tokenizer.around
    first, last = ("cls", "sep") if config.architecture == "encoder-only" else ("bos", "eos")
    ids = {"mask": card.mask_token_id, "pad": _padding(checkpoint), first: before[0] if before else None}
    ids[last] = after[-1] if after else card.end_token_id
    if config.architecture == "decoder-only":
        named = {f"{kind}_token": names[token_id] for kind, token_id in ids.items() if token_id in names}
        return {**_TOKENIZER, **named, **({"chat_template": Chat(**card.chat).template()} if card.chat else {})}
    inputs = ["input_ids", *(["token_type_ids"] if config.n_segments > 1 else []), "attention_mask"]
    named = {f"{kind}_token": names[token_id] for kind, token_id in ids.items() if token_id in names}
    return {**_TOKENIZER, **named, "model_input_names": inputs}


def _prefixed(family: Family, name: str) -> str:
    return name if name.startswith(family.head) else family.prefix + name


def _expressed(checkpoint: Checkpoint) -> tuple[Family, dict[str, Any], State]:
    """The first family that can express the model, starting with its own: family, configuration and weights."""
    own = (checkpoint.card.training or {}).get("family")
    ways = list(_ways_to_say(checkpoint.model))
    known = [family for family in FAMILIES.values() if family.shape == checkpoint.model.config.architecture]
    first = [family for family in known if family.name == own]
    reasons: dict[str, str] = {}
    for (config, state), families in [(way, first) for way in ways] + [(way, known) for way in ways[1:]]:
        for family in families:
            try:
                fields = family.write_config(config)
                if _resolved(family.read_config(Fields(fields))) == _resolved(config):
                    return family, fields, _written(family, config, fields, state)
                reasons.pop(family.name, None)
            except UnsupportedError as error:
                reasons[family.name] = f" ({error})"
            except ValueError:
                continue
    names = ", ".join(family.name + reasons.get(family.name, "") for family in known or FAMILIES.values())
    raise CheckpointError(f"No family that is known has models of this shape; known are {names}.")


def _written(family: Family, config: ModelConfig, fields: dict[str, Any], state: State) -> State:
    """The weights in a family's layout. Raises: UnsupportedError for weights that it can't store."""
    written: State = {}
    places: set[int] = set()
    for weight in family.weights(config, Fields(fields)):
        for name, tensor in write_weight(weight, config, state[weight.ours].detach()).items():
            before = written.get(name)
            if weight.layout == "second half" and before is not None:
                tensor = torch.cat((before, tensor))
            elif before is not None and not torch.equal(before, tensor):
                raise UnsupportedError(f"one {name} can't be two")
            if tensor.data_ptr() in places:  # a file stores no tensor twice
                tensor = tensor.clone()
            written[name] = tensor
            places.add(tensor.data_ptr())
    return {_prefixed(family, name): tensor for name, tensor in written.items()}


def _ways_to_say(model: Model) -> Iterator[tuple[ModelConfig, State]]:
    """Equivalent configurations and weights, the model's own first."""
    config, state = merged(model)
    stacks = ("encoder.", "decoder.") if config.architecture == "encoder-decoder" else ("",)
    yield config, state  # only for its own family
    if config.positions == "rotary" and config.rotary_pairs == "neighbours":
        config, state = _in_halves(config, state)
    if config.positions == "sinusoidal":
        table = sinusoidal_encoding(config.context_length, config.d_model)
        config, state = replace(config, positions="learned"), dict(state)
        state |= {f"{stack}pos_embed.weight": table for stack in stacks}
    if config.scale_embeddings and config.architecture != "encoder-decoder":  # whose families can say it
        table = state["embed.weight"] * config.d_model**0.5
        config, state = replace(config, scale_embeddings=False, tie_embeddings=False), {**state, "embed.weight": table}
    yield config, state
    all_biases: dict[str, Any] = {"mlp_bias": True, "attention_bias": True, "attention_out_bias": True}
    if config.architecture != "decoder-only":
        all_biases["unembed_bias"] = True
    if not config.is_causal:
        all_biases["n_segments"] = max(config.n_segments, 1)
    for biases in ({"mlp_bias": True}, all_biases):
        with_biases = replace(config, **biases)
        needed = shapes_alone(with_biases).state_dict()
        zeros = {name: torch.zeros(tensor.shape) for name, tensor in needed.items() if name not in state}
        yield with_biases, {**state, **zeros}


def _in_halves(config: ModelConfig, state: State) -> tuple[ModelConfig, State]:
    """Permute the rows of W_Q and W_K alike, which leaves every q · k the same."""
    turned, rest = torch.arange(config.rotated_dims), torch.arange(config.rotated_dims, config.d_head)
    order = torch.cat((turned[0::2], turned[1::2], rest))
    moved = dict(state)
    for name in [name for name in state if ".attn.qkv." in name]:
        heads = state[name].unflatten(0, (-1, config.d_head))
        of_both = config.n_heads + config.kv_heads  # queries and keys are rotated, values aren't
        moved[name] = torch.cat((heads[:of_both, order], heads[of_both:])).flatten(0, 1)
    return replace(config, rotary_pairs="halves"), moved


def _resolved(config: ModelConfig) -> ModelConfig:
    """The configuration with explicit defaults, without fields for training or batches."""
    near = tuple(config.window(layer) for layer in range(config.n_layers))
    return replace(
        config,
        n_kv_heads=config.kv_heads,
        head_width=config.d_head,
        attention_out_bias=config.has_out_bias,
        attention_windows=near if any(near) else (),
        rotary_dims=config.rotated_dims if config.positions == "rotary" else None,
        separator_token_id=None,
        dropout=0.0,
        share_embeddings=False,  # the files decide that
        pad_token_id=None,
    )
