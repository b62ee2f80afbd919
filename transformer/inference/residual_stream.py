"""The residual stream as a sum: the logit lens by depth, and direct logit attribution by part.

Dimensions: part, depth, pos, d_model, vocab; there is no batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..choice_checks import check_count, checked_tokens
from ..config import ModelConfig
from ..model.equations import Equation, equations, unembedding_equation
from ..model.layers import ACTIVATIONS, widened
from .inputs import Ids
from .tracing import Trace, recompute

CELLS_AT_ONCE = 250_000
"""Logits to hold at once while reading all depths: 2 MB, which is also the fastest."""
LARGE_UNEMBEDDING = 8_000_000
"""Weights of the smallest large unembedding, which is read in the model's own type of numbers: in float64 its products
would take minutes, and its copies hundreds of megabytes."""
CELLS_OF_LARGE = 4_000_000
"""Logits to hold at once for a large one, all of whose weights are read again for each piece."""


@dataclass(frozen=True)
class LogitLens:
    """The predictions at each depth of the stream, as if the model ended there."""

    points: tuple[str, ...]
    """By depth, the points that sum to the stream, joined by “+”: from the embedding to the last block's output."""
    logits: Tensor
    """(depth, pos, vocab); the last depth's are the model's own."""

    def of(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Probability and rank (1: the likeliest) of one token at each position. tokens: (pos,).

        Returns: (depth, pos) each. Equal logits rank by token id.
        Raises: ValueError for more tokens than positions, fewer, or one that isn't in the vocabulary.
        """
        check_count(tokens, self.logits.shape[1])
        chosen = checked_tokens(tokens, self.logits.shape[-1]).expand(len(self.logits), -1)
        return _standing(self.logits, chosen)


@dataclass(frozen=True)
class LogitLensSummary:
    """The predictions at each depth of the stream, without all the logits of a large vocabulary."""

    points: tuple[str, ...]
    """As in `LogitLens`."""
    likeliest: Tensor
    """(depth, pos), token ids; the first of equal logits."""
    likeliest_probability: Tensor
    """(depth, pos), float64."""
    probability: Tensor
    """(depth, pos), float64, of the given token."""
    rank: Tensor
    """(depth, pos), of the given token; 1 for the likeliest."""


@dataclass(frozen=True)
class Share:
    """One part's contribution to the stream."""

    name: str
    """The hook point's or parameter's name; `blocks.0.attn.hook_result[3]` for a head."""
    vectors: Tensor
    """(pos, d_model), as it arrives at the unembedding."""


@dataclass(frozen=True)
class Attribution:
    """A logit as the sum of each part's contribution."""

    names: tuple[str, ...]
    """Hook points and parameters, in the order of the pass."""
    values: Tensor
    """(part, pos), float64; they sum to the logit over all parts."""


def logit_lens(trace: Trace) -> LogitLens:
    """Read every depth of the stream as if the unembedding followed at once (nostalgebraist 2020).

    The last norm, if the model has one, uses the statistics of that depth. Between the blocks of a post-norm model the
    stream is normalised already.
    """
    names, read = _read_out(trace)
    logits = torch.cat(list(_logits(trace, read.flatten(0, 1))))
    return LogitLens(names, logits.unflatten(0, read.shape[:2]))


def logit_lens_summary(trace: Trace, tokens: Ids, last: int | None = None) -> LogitLensSummary:
    """Summarise `logit_lens`, a few logits at a time: all those of a large vocabulary would fill the memory.

    tokens: (pos,), the token to rank at each position. last: how many of the last positions to read, if not all;
    elsewhere the likeliest token is −1, the rank 0, and probabilities are NaN.
    """
    names, read = _read_out(trace)
    positions = read.shape[1]
    unread = max(positions - last, 0) if last is not None else 0
    read = read[:, unread:]
    wanted = torch.as_tensor(tokens)[unread:].expand(read.shape[:2])
    likeliest, rank = torch.empty(wanted.numel(), dtype=torch.long), torch.empty(wanted.numel(), dtype=torch.long)
    of_likeliest, probability = (torch.empty(wanted.numel(), dtype=torch.float64) for _ in range(2))
    # Filled in place: small tensors that stay would keep the memory of large ones from being reused.
    done = 0
    for logits in _logits(trace, read.flatten(0, 1)):
        rows = slice(done, done + len(logits))
        largest, likeliest[rows] = logits.max(-1)
        total = logits.logsumexp(-1)
        of_likeliest[rows] = (largest - total).exp()
        probability[rows], rank[rows] = _standing(logits, wanted.flatten()[rows], total)
        done += len(logits)
    columns = ((likeliest, -1), (of_likeliest, torch.nan), (probability, torch.nan), (rank, 0))
    pad = torch.nn.functional.pad
    return LogitLensSummary(
        names, *(pad(column.reshape(wanted.shape), (unread, 0), value=blank) for column, blank in columns)
    )


def stream_points(config: ModelConfig, prefix: str = "") -> list[tuple[str, ...]]:
    """The points that sum to the stream before the first block, and after each block.

    prefix: the stack, "encoder." or "decoder.", and empty for a model that has only one.
    """
    table = equations(config)
    first = ("ln_embed.hook_out",) if config.embed_norm else ("hook_embed", "hook_pos_embed", "hook_segment_embed")
    points = [tuple(name for name in (f"{prefix}{each}" for each in first) if name in table)]
    for layer in range(config.n_encoder_layers if prefix == "encoder." else config.n_layers):
        of_block = [name for name in table if name.startswith(f"{prefix}blocks.{layer}.")]
        points.append((of_block[-1],))
    return points


def direct_logit_attribution(trace: Trace, tokens: Sequence[int], against: Sequence[int] | None = None) -> Attribution:
    """Each part's contribution to a token's logit: embeddings, heads, feed-forward layers, biases and shifts.

    Norms keep their divisors of this pass: the rest is then linear, and the parts sum to the logit before any cap. An
    encoder's head isn't linear, so its output is one part. Under post-norm a part goes through every later norm.

    tokens: (pos,), the token at each position. against: other tokens, whose logits are subtracted.
    Raises: ValueError for more tokens than positions, fewer, or one that isn't in the vocabulary.
    Source: Elhage et al. 2021, "A mathematical framework for transformer circuits".
    """
    unembedding = trace.tensors["unembed.weight"]
    for given in (tokens, tokens if against is None else against):
        check_count(given, len(trace.tokens))
        checked_tokens(given, len(unembedding))
    direction = unembedding[torch.as_tensor(tokens)].double()  # (pos, d_model)
    if against is not None:
        direction = direction - unembedding[torch.as_tensor(against)].double()
    parts = [(share.name, (share.vectors * direction).sum(-1)) for share in shares(trace)]
    if bias := unembedding_equation(trace.config).operands.get("bias"):
        values = trace.tensors[bias[0].name].double()
        own = values[torch.as_tensor(tokens)]
        parts.append((bias[0].name, own if against is None else own - values[torch.as_tensor(against)]))
    names, columns = zip(*parts, strict=True)
    return Attribution(names, torch.stack(columns))


def shares(trace: Trace) -> list[Share]:
    """The parts of the unembedding's input, which sum to it, in the order of the pass."""
    table = equations(trace.config)
    return _shares(trace, table, tuple(operand.name for operand in unembedding_equation(trace.config).operands["x"]))


def _shares(trace: Trace, table: Mapping[str, Equation], names: tuple[str, ...]) -> list[Share]:
    return [share for name in names for share in _shares_of(trace, table, table[name])]


def _shares_of(trace: Trace, table: Mapping[str, Equation], equation: Equation) -> list[Share]:
    """The parts of one point: sums, and norms of sums, are split; anything else is one part."""
    terms = tuple(operand.name for operand in equation.operands.get("x", ()))
    if equation.operation == "add" and all(term in table for term in terms):
        return _shares(trace, table, terms)
    if equation.operation == "normalise":
        names = {role: equation.operands[role][0].name for role in ("spread", "gain", "shift")}
        spread, gain, shift = (trace.tensors[name].double() for name in names.values())
        parts = _shares(trace, table, terms)
        scaled = [replace(part, vectors=_centred(part.vectors) / spread * gain) for part in parts]
        return [*scaled, Share(names["shift"], shift.expand(len(spread), -1))]
    if equation.operation == "shorten":
        spread, gain = (trace.tensors[equation.operands[role][0].name].double() for role in ("spread", "gain"))
        parts = _shares(trace, table, terms)
        return [replace(part, vectors=part.vectors / spread * gain) for part in parts]
    if equation.operation != "multiply":
        return [Share(equation.name, trace.tensors[equation.name].double())]
    out = recompute(trace, equation)
    bias = equation.operands.get("bias")
    extra = [Share(bias[0].name, trace.tensors[bias[0].name].double().expand_as(out))] if bias else []
    if equation.name.endswith(("attn_out", "attn.hook_out")):
        result = terms[0].replace("hook_z", "hook_result")
        heads = recompute(trace, table[result]).unbind(1)  # (pos, d_model) each
        return [*(Share(f"{result}[{head}]", vectors) for head, vectors in enumerate(heads)), *extra]
    return [Share(equation.name, out - extra[0].vectors if extra else out), *extra]


def _centred(vectors: Tensor) -> Tensor:
    return vectors - vectors.mean(-1, keepdim=True)


def _read_out(trace: Trace) -> tuple[tuple[str, ...], Tensor]:
    """The name of each depth, and the unembedding's input there, (depth, pos, d_model), float64.

    That is the stream after the last norm, if there is one, with that depth's own statistics.
    """
    prefix = "decoder." if trace.config.architecture == "encoder-decoder" else ""
    points = stream_points(trace.config, prefix)
    x = torch.stack([torch.stack([trace.tensors[name].double() for name in depth]).sum(0) for depth in points])
    if trace.config.has_final_norm:
        x = _normed(trace, f"{prefix}ln_final", x)
    if trace.config.masked_word_head:
        weight, bias = (trace.tensors[f"head.dense.{each}"].double() for each in ("weight", "bias"))
        x = _normed(trace, "head.ln", ACTIVATIONS[trace.config.activation](x @ weight.T + bias))
    return tuple(" + ".join(depth) for depth in points), x


def _normed(trace: Trace, norm: str, x: Tensor) -> Tensor:
    """Apply a norm, by its dotted name, to vectors with their own statistics."""
    is_rms, eps = trace.config.norm_kind == "rms", trace.config.layer_norm_eps
    x = x if is_rms else _centred(x)
    x = x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * trace.tensors[f"{norm}.weight"].double()
    return x if is_rms else x + trace.tensors[f"{norm}.bias"].double()


def _logits(trace: Trace, read: Tensor) -> Iterator[Tensor]:
    """The logits (row, vocab) of the unembedding's input (row, d_model), a few rows at a time.

    In float64, unless the unembedding is too large for that.
    """
    unembedding, bias = trace.tensors["unembed.weight"], unembedding_equation(trace.config).operands.get("bias")
    vocab, d_model = unembedding.shape
    if unembedding.numel() >= LARGE_UNEMBEDDING:
        shift = None if bias is None else trace.tensors[bias[0].name]
        for rows in read.type_as(unembedding).split(max(1, CELLS_OF_LARGE // vocab)):
            yield _capped(trace, widened(torch.nn.functional.linear(rows, unembedding, shift)))
        return
    pieces = unembedding.split(max(1, CELLS_AT_ONCE // d_model))  # without all of it in float64
    for rows in read.split(max(1, CELLS_AT_ONCE // vocab)):
        logits = torch.cat([rows @ piece.double().T for piece in pieces], dim=-1)
        yield _capped(trace, logits if bias is None else logits + trace.tensors[bias[0].name].double())


def _capped(trace: Trace, logits: Tensor) -> Tensor:
    cap = trace.config.logit_cap
    return logits if cap is None else cap * (logits / cap).tanh()


def _standing(logits: Tensor, tokens: Tensor, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Probability and rank of one token in each row. logits: (…, vocab); tokens: (…); total: the logarithm of each
    row's summed exponentials, (…), where that is known. Returns: (…) each."""
    own = logits.gather(-1, tokens[..., None])
    before = torch.arange(logits.shape[-1]) < tokens[..., None]
    rank = ((logits > own) | ((logits == own) & before)).sum(-1) + 1
    total = logits.logsumexp(-1) if total is None else total
    return (own[..., 0] - total).exp(), rank
