"""The residual stream as a sum: what each height would say next, and how much each part says of it.

Dimensions: part, height, pos, d_model, vocab; there is no batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..config import ModelConfig
from ..model.equations import LOGITS, Equation, equations
from .recompute import Pass, recompute


@dataclass(frozen=True)
class LogitLens:
    """What each height of the stream would have said next, had the model ended there."""

    heights: tuple[str, ...]
    """The points of which the stream consists there, joined by “+”: the embedding first, what leaves the last block at
    the end."""
    logits: Tensor
    """(height, pos, vocab); the last are the model's own."""

    def of(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Probability and rank (1: the likeliest) of one token at each position. tokens: (pos,).

        Returns: (height, pos) each. Equal logits rank by token id.
        """
        chosen = torch.as_tensor(tokens)[None, :, None].expand(len(self.logits), -1, -1)
        own = self.logits.gather(-1, chosen)
        before = torch.arange(self.logits.shape[-1]) < chosen
        rank = ((self.logits > own) | ((self.logits == own) & before)).sum(-1) + 1
        return self.logits.softmax(-1).gather(-1, chosen)[..., 0], rank


@dataclass(frozen=True)
class Share:
    """What one part of the model has put into the stream."""

    name: str
    """A hook point's or a parameter's; `blocks.0.attn.hook_result[3]` for a head's."""
    vectors: Tensor
    """(pos, d_model), as it arrives at the unembedding."""


@dataclass(frozen=True)
class Attribution:
    """A logit as the sum of what each part of the model says for it."""

    names: tuple[str, ...]
    """Hook points and parameters, in the order of the pass."""
    values: Tensor
    """(part, pos), float64; over all parts they sum to the logit."""


def logit_lens(found: Pass) -> LogitLens:
    """Read every height of the stream as if the unembedding followed at once (nostalgebraist 2020).

    The last norm, where the model has one, is applied with the statistics of that height. Between the blocks of a
    post-norm model what is read is normalised already.
    """
    table = equations(found.config)
    prefix = "decoder." if found.config.architecture == "encoder-decoder" else ""
    points = heights(found.config, prefix)
    logits = [_read_out(found, table, height) for height in points]
    return LogitLens(tuple(" + ".join(height) for height in points), torch.stack(logits))


def heights(config: ModelConfig, prefix: str = "") -> list[tuple[str, ...]]:
    """The points of which the stream consists before the first block, and after each.

    prefix: the stack, "encoder." or "decoder.", and empty for a model that has only one.
    """
    table = equations(config)
    found = [tuple(name for name in (f"{prefix}hook_embed", f"{prefix}hook_pos_embed") if name in table)]
    for layer in range(config.n_encoder_layers if prefix == "encoder." else config.n_layers):
        of_block = [name for name in table if name.startswith(f"{prefix}blocks.{layer}.")]
        found.append((of_block[-1],))
    return found


def direct_logit_attribution(found: Pass, tokens: Sequence[int], against: Sequence[int] | None = None) -> Attribution:
    """How much each part says for a token: embeddings, each head, each feed-forward layer, every bias and shift.

    Norms divide by what they divided by in this pass: then what follows is linear, and the parts sum to the logit.
    Under post-norm a part goes through every norm that comes after it.

    tokens: (pos,), the token whose logit is looked at, at each position. against: another, whose logit is taken off.
    Source: Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    table = equations(found.config)
    unembedding = found.tensors["unembed.weight"].double()
    direction = unembedding[torch.as_tensor(tokens)]  # (pos, d_model)
    if against is not None:
        direction = direction - unembedding[torch.as_tensor(against)]
    parts = [(share.name, (share.vectors * direction).sum(-1)) for share in shares(found)]
    if bias := table[LOGITS].operands.get("bias"):
        values = found.tensors[bias[0].name].double()
        own = values[torch.as_tensor(tokens)]
        parts.append((bias[0].name, own if against is None else own - values[torch.as_tensor(against)]))
    names, columns = zip(*parts, strict=True)
    return Attribution(names, torch.stack(columns))


def shares(found: Pass) -> list[Share]:
    """What reaches the unembedding, part by part; their sum is what it reads. In the order of the pass."""
    table = equations(found.config)
    return _shares(found, table, tuple(operand.name for operand in table[LOGITS].operands["x"]))


def _shares(found: Pass, table: dict[str, Equation], names: tuple[str, ...]) -> list[Share]:
    return [share for name in names for share in _shares_of(found, table, table[name])]


def _shares_of(found: Pass, table: dict[str, Equation], equation: Equation) -> list[Share]:
    """The parts of one point. What is a sum, or a norm of one, is taken apart; anything else is a part by itself."""
    terms = tuple(operand.name for operand in equation.operands.get("x", ()))
    if equation.operation == "add" and all(term in table for term in terms):
        return _shares(found, table, terms)
    if equation.operation == "normalise":
        names = {role: equation.operands[role][0].name for role in ("spread", "gain", "shift")}
        spread, gain, shift = (found.tensors[name].double() for name in names.values())
        parts = _shares(found, table, terms)
        scaled = [replace(part, vectors=_centred(part.vectors) / spread * gain) for part in parts]
        return [*scaled, Share(names["shift"], shift.expand(len(spread), -1))]
    if equation.operation == "shorten":
        spread, gain = (found.tensors[equation.operands[role][0].name].double() for role in ("spread", "gain"))
        parts = _shares(found, table, terms)
        return [replace(part, vectors=part.vectors / spread * gain) for part in parts]
    if equation.operation != "multiply":
        return [Share(equation.name, found.tensors[equation.name].double())]
    out = recompute(found, equation)
    bias = equation.operands.get("bias")
    extra = [Share(bias[0].name, found.tensors[bias[0].name].double().expand_as(out))] if bias else []
    if equation.name.endswith("attn_out"):
        result = terms[0].replace("hook_z", "hook_result")
        heads = recompute(found, table[result]).unbind(1)  # (pos, d_model) each
        return [*(Share(f"{result}[{head}]", vectors) for head, vectors in enumerate(heads)), *extra]
    return [Share(equation.name, out - extra[0].vectors if extra else out), *extra]


def _centred(vectors: Tensor) -> Tensor:
    return vectors - vectors.mean(-1, keepdim=True)


def _read_out(found: Pass, table: dict[str, Equation], height: tuple[str, ...]) -> Tensor:
    """Logits, (pos, vocab), from a height: through the last norm, with that height's own statistics."""
    x = torch.stack([found.tensors[name].double() for name in height]).sum(0)
    final = [operand.name for operand in table[LOGITS].operands["x"]]
    if found.config.norm == "pre" and found.config.norm_kind == "rms":
        gain = found.tensors[table[final[0]].operands["gain"][0].name].double()
        x = x / (x.square().mean(-1, keepdim=True) + found.config.layer_norm_eps).sqrt() * gain
    elif found.config.norm == "pre":
        gain, shift = (found.tensors[table[final[0]].operands[role][0].name].double() for role in ("gain", "shift"))
        spread = (x.var(-1, keepdim=True, correction=0) + found.config.layer_norm_eps).sqrt()
        x = _centred(x) / spread * gain + shift
    logits = x @ found.tensors["unembed.weight"].double().T
    bias = table[LOGITS].operands.get("bias")
    return logits if bias is None else logits + found.tensors[bias[0].name].double()
