"""What the page Inside would send of one pass, made with the engine alone: for tests of the scripts that read it."""

import numpy as np
import torch

from transformer import Checkpoint, Pass, Recording, generate, hook_points, whole_pass
from transformer.inference.recompute import viewed
from transformer.inference.sampling import Sampling
from transformer.model.equations import Equation, equations

SLICED = 100_000
"""Cells above which a tensor with heads comes head by head."""


def pass_of(checkpoint: Checkpoint, prompt: str, most: int | None = None) -> Pass:
    """What a model computes when a visitor types this prompt. most: tokens that are read."""
    model, card = checkpoint.model, checkpoint.card
    tokens = checkpoint.tokenizer.encode(prompt)[-min(most or 10**6, model.config.context_length) :]
    if model.config.architecture == "decoder-only":
        return whole_pass(model, tokens)
    steps = generate(model, (card.start_token_id,), source=tuple(tokens), max_new_tokens=8,
                     sampling=Sampling(temperature=0), stop_tokens=(card.end_token_id,))  # fmt: skip
    written = [card.start_token_id, *(step.token_id for step in steps)]
    return whole_pass(model, written[:-1], tokens)


def dims_of(found: Pass) -> dict[str, tuple[str, ...]]:
    """By name the dimensions of each tensor: the registry's, and for parameters those that equations read them by."""
    registered = {name: info.shape[1:] if info.shape[0] == "batch" else info.shape
                  for name, info in hook_points(found.config).items()}  # fmt: skip
    table = equations(found.config)
    outputs = {name: equation.dims for name, equation in table.items() if name not in registered}
    read = {operand.name: operand.dims for equation in table.values() for operand in equation.sources}
    return registered | outputs | {name: dims for name, dims in read.items() if name not in registered | outputs}


def tensors_of(found: Pass) -> dict[str, np.ndarray]:
    """Every tensor in these dimensions."""
    operands = {operand.name: operand for equation in equations(found.config).values() for operand in equation.sources}
    arrays = {}
    for name, dims in dims_of(found).items():
        tensor = found.tensors[name]
        if tensor.dim() != len(dims):
            tensor = viewed(found, operands[name])
        arrays[name] = tensor.numpy() if tensor.dtype == torch.bool else tensor.float().numpy()
    return arrays


def outline_of(found: Pass, checkpoint: Checkpoint, name: str = "pass") -> Recording:
    """The first message of a text."""
    points, table, arrays = hook_points(found.config), equations(found.config), tensors_of(found)
    dims = dims_of(found)
    entries = []
    for each, array in arrays.items():
        kind = "point" if each in points else "output" if each in table else "parameter"
        entries.append({
            "name": each, "kind": kind, "dims": dims[each], "sizes": array.shape,
            "meaning": points[each].meaning if kind == "point" else f"The model's {each}.",
            "formula": points[each].formula if kind == "point" else "",
        })  # fmt: skip
    labels = [checkpoint.tokenizer.label(token) for token in range(found.config.vocab_size)]
    ids = {"text": found.tokens.tolist(), "source": found.source.tolist()}
    metadata = {
        "id": name, "name": name, "title": name, "config": found.config.to_dict(), "ids": ids, "vocabulary": labels,
        "labels": {which: [labels[token] for token in tokens] for which, tokens in ids.items()},
        "tensors": entries, "equations": [as_message(equation) for equation in table.values()],
        "stacks": [], "strip_limits": {},
    }  # fmt: skip
    statistics = np.array([statistics_of(array) for array in arrays.values()], np.float32)
    return Recording({"statistics": statistics}, metadata)


def as_message(equation: Equation) -> dict:
    return {
        "name": equation.name, "operation": equation.operation, "dims": equation.dims,
        "operands": {role: [{"name": each.name, "dims": each.dims, "cells": each.cells} for each in operands]
                     for role, operands in equation.operands.items()},
    }  # fmt: skip


def statistics_of(array: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, spread, smallest and largest of what is finite."""
    finite = array[np.isfinite(array)].astype(np.float64)
    return (finite.mean(), finite.std(), finite.min(), finite.max())


def parts_of(found: Pass) -> Recording:
    """Every tensor as it is sent: large ones with heads a head at a time."""
    tensors = {}
    for name, array in tensors_of(found).items():
        dims = dims_of(found)[name]
        if "head" in dims and array.size > SLICED:
            axis = dims.index("head")
            for head in range(array.shape[axis]):
                tensors[f"{name}[{head}]"] = np.ascontiguousarray(array.take(head, axis))
        else:
            tensors[name] = array.astype(np.uint8) if array.dtype == bool else array
    return Recording(tensors, {})
