"""The outline of a pass as the page Inside gets it, and its parts, made from the engine alone: for tests of the picture.

Dimensions: pos, head, query, key, height, cell.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import torch

from transformer import Recording, load_checkpoint
from transformer.inference.overview import pool, quantise
from transformer.inference.recompute import Pass, deviations, viewed, whole_pass
from transformer.inference.residual import direct_logit_attribution, logit_lens
from transformer.model.equations import LOGITS, PROBABILITIES, Equation, equations
from transformer.model.registry import attention_modules, hook_points

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
CELLS = 48


class Inside:
    """One shipped model's pass over one text. prompt: what its encoder reads, or what its decoder begins with."""

    def __init__(self, name: str, prompt: str, written: int = 0) -> None:
        checkpoint = load_checkpoint(CHECKPOINTS / name)
        model, card = checkpoint.model, checkpoint.card
        model.eval()
        config = model.config
        tokens, source = checkpoint.tokenizer.encode(prompt), ()
        if config.architecture == "encoder-decoder":
            tokens, source = [card.start_token_id], tokens
        tokens = list(tokens)
        for _ in range(written):
            logits = model(*(torch.tensor([each]) for each in (source, tokens) if len(each)))
            tokens.append(int(logits[0, -1].argmax()))
        self.name, self.checkpoint, self.config = name, checkpoint, config
        self.table = equations(config)
        self.found = whole_pass(model, tokens, source)
        with torch.no_grad():
            self.outline = Recording(self.tensors(), self.metadata())

    def metadata(self) -> dict:
        labels = self.checkpoint.tokenizer.labels
        text, source = (each.tolist() for each in (self.found.tokens, self.found.source))
        return {
            "id": f"{self.name}-{len(text)}", "name": "inside", "title": self.name, "config": self.config.to_dict(),
            "labels": {"text": labels(text), "source": labels(source)}, "ids": {"text": text, "source": source},
            **shape(self.config, self.found),
            "vocabulary": labels(range(self.config.vocab_size)),
            "strip_limits": {name: limit_of(self.found.tensors[name]) for name in self.strips()},
        }  # fmt: skip

    def strips(self) -> list[str]:
        return [name for name, each in self.table.items() if each.dims == ("pos", "d_model")]

    def tensors(self) -> dict[str, np.ndarray]:
        found = self.found
        tensors = {"statistics": np.array([statistics(found.tensors[each]) for each in names(self.table)], np.float32)}
        for name in self.strips():
            tensors[f"strip.{name}"] = strip(found.tensors[name].numpy())
        for modules in attention_modules(self.config).values():
            for module in modules:
                mask = found.tensors[f"{module}.hook_mask"].numpy().astype(bool)
                tensors[f"arcs.{module}"] = quantise(*pool(found.tensors[f"{module}.hook_pattern"].numpy(), ~mask))
        probabilities = found.tensors[PROBABILITIES]
        best = probabilities.topk(3)
        lens = logit_lens(found)
        likeliest = lens.logits.softmax(-1).max(-1)
        right, rank = lens.of([*found.tokens.tolist()[1:], 0])
        right[:, -1], rank[:, -1] = float("nan"), 0
        return {
            **tensors, "next": best.indices.int().numpy(), "next.probability": best.values.numpy(),
            "lens": likeliest.indices.int().numpy(), "lens.probability": likeliest.values.float().numpy(),
            "lens.right": right.float().numpy(), "lens.rank": rank.int().numpy(),
        }  # fmt: skip

    def parts(self, wanted: list[list]) -> Recording:
        """What the browser asks for."""
        tensors, metadata = {}, {}
        for kind, *what in wanted:
            if kind == "tensor":
                tensors[what[0]] = self.dressed(what[0])
            elif kind == "slice":
                dims = dims_of(self.table, what[0])
                tensors[f"{what[0]}[{what[1]}]"] = self.dressed(what[0]).take(what[1], dims.index("head"))
            elif kind == "who":
                pos, token = what
                given = direct_logit_attribution(self.found, [token] * len(self.found.tokens))
                tensors[f"who[{pos}, {token}]"] = given.values[:, pos].float().numpy()
                metadata["who"] = {"names": list(given.names)}
            elif kind == "checks":
                metadata["checks"] = [dataclasses.asdict(each) for each in deviations(self.found)]
        return Recording(tensors, metadata)

    def dressed(self, name: str) -> np.ndarray:
        dims = dims_of(self.table, name)
        tensor = self.found.tensors[name]
        shaped = dataclasses.replace(next(iter(self.table.values())), dims=dims)
        array = viewed(self.found, _Named(name, shaped.dims)).numpy() if tensor.dim() != len(dims) else tensor.numpy()
        return array.astype(np.uint8) if array.dtype == bool else np.ascontiguousarray(array)


@dataclasses.dataclass(frozen=True)
class _Named:
    name: str
    dims: tuple[str, ...]


def shape(config, found: Pass | None = None) -> dict:
    """What of an outline's metadata follows from the configuration. found: whose sizes are told; none: no sizes."""
    table = equations(config)
    points = hook_points(config)
    tensors = []
    for name in names(table):
        kind = "output" if name in (LOGITS, PROBABILITIES) else "point" if name in points else "parameter"
        info = points.get(name)
        dims = dims_of(table, name)
        tensors.append({
            "name": name, "kind": kind, "meaning": info.meaning if info else "What it is.",
            "formula": info.formula if info else "", "dims": list(dims),
            "sizes": sizes_of(found, name, dims) if found else [],
        })  # fmt: skip
    return {
        "tensors": tensors,
        "equations": [
            {"name": each.name, "operation": each.operation, "dims": list(each.dims),
             "operands": {role: [dataclasses.asdict(one) for one in operands] for role, operands in each.operands.items()}}
            for each in table.values()
        ],
        "stacks": stacks(config, table),
    }  # fmt: skip


def stacks(config, table: dict[str, Equation]) -> list[dict]:
    wanted = [("", "text", config.n_layers)]
    if config.architecture == "encoder-decoder":
        wanted = [("encoder.", "source", config.n_encoder_layers), ("decoder.", "text", config.n_layers)]
    found = []
    for prefix, tokens, layers in wanted:
        heights = [[name for name in (f"{prefix}hook_embed", f"{prefix}hook_pos_embed") if name in table]]
        for layer in range(layers):
            heights.append([[name for name in table if name.startswith(f"{prefix}blocks.{layer}.")][-1]])
        found.append({"prefix": prefix, "tokens": tokens, "layers": layers, "heights": heights})
    return found


def names(table: dict[str, Equation]) -> list[str]:
    """Points and outputs in the order of the pass, then the parameters."""
    parameters = dict.fromkeys(operand.name for each in table.values() for operand in each.sources)
    return [*table, *(name for name in parameters if name not in table)]


def dims_of(table: dict[str, Equation], name: str) -> tuple[str, ...]:
    if name in table:
        return table[name].dims
    return next(operand.dims for each in table.values() for operand in each.sources if operand.name == name)


def sizes_of(found: Pass, name: str, dims: tuple[str, ...]) -> list[int]:
    tensor = found.tensors[name]
    return list((viewed(found, _Named(name, dims)) if tensor.dim() != len(dims) else tensor).shape)


def statistics(tensor: torch.Tensor) -> list[float]:
    values = tensor.double()[tensor.double().isfinite()]
    return [float(values.mean()), float(values.std(correction=0)), float(values.min()), float(values.max())]


def limit_of(tensor: torch.Tensor) -> float:
    return float(tensor.abs().max())


def strip(values: np.ndarray) -> np.ndarray:
    """(pos, cells): of neighbours the one that stands out most, as a byte."""
    count = min(CELLS, values.shape[1])
    starts = np.arange(count) * values.shape[1] // count
    high, low = (np.array(each.reduceat(values, starts, axis=1)) for each in (np.maximum, np.minimum))
    most = np.where(high >= -low, high, low)
    return np.rint(128 + 127 * most / (np.abs(values).max() or 1)).astype(np.uint8)
