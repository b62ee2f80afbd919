"""QK and OV circuits: the effect of one head's weights on every pair of tokens in the vocabulary.

They use weights alone, without a text: the stream is taken to hold nothing but a token's embedding. They include a
norm's gain, but not its divisor, its shift and biases, which depend on the rest of the stream or on no token at all.
Source: Elhage et al. 2021, "A mathematical framework for transformer circuits", *QK and OV circuits*.
Dimensions: vocab, d_head, d_model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..choice_checks import check_index, checked_tokens
from ..config import ModelConfig
from ..model.equations import Equation, equations
from ..model.models import Model
from ..model.positions import rotate
from .inputs import parameters_of
from .tracing import Trace

ROWS_AT_ONCE = 4096
"""Rows of a table to hold in float64 at once."""
Weights = Model | Trace
"""A source of weights: a model, or a trace of one."""


@dataclass(frozen=True)
class Circuit:
    """A matrix over pairs of tokens: first · enters · leaves · lastᵀ. As the product of two narrow matrices, `left` and
    `right`, it takes little memory, and shows that its rank is at most d_head. All but the tables are float64."""

    first: Tensor
    """(vocab, d_model): the embedding of each token, as the model has it."""
    enters: Tensor
    """(d_model, d_head): a norm's gain, then W_Q, divided by √d_head, or W_V."""
    leaves: Tensor
    """(d_head, d_model): the transpose of W_K, or W_O, and the gain of the norm before the last table."""
    last: Tensor
    """(vocab, d_model): the key token's embedding, or the row of the unembedding."""

    @cached_property
    @torch.inference_mode(False)
    def left(self) -> Tensor:
        """(vocab, d_head)."""
        return _product(self.first, self.enters)

    @cached_property
    @torch.inference_mode(False)
    def right(self) -> Tensor:
        """(vocab, d_head)."""
        return _product(self.last, self.leaves.T)

    def full(self, rows: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        """(vocab, vocab), or of some tokens, by the d_model × d_model matrix between them instead of narrow ones.

        For a large vocabulary this takes a lot of memory: use `row`. Raises: ValueError for an unknown token.
        """
        rows, columns = (None if ids is None else checked_tokens(ids, len(self.first)) for ids in (rows, columns))
        first = self.first if rows is None else self.first[rows]
        last = self.last if columns is None else self.last[columns]
        return first.double() @ (self.enters @ self.leaves) @ last.double().T

    def row(self, token: int) -> Tensor:
        """One token's row, (vocab,). Raises: ValueError for an unknown token."""
        check_index("token", token, len(self.first))
        return self.right @ self.left[token]

    def strongest(self, most: int, among: Iterable[int] = ()) -> tuple[Tensor, Tensor]:
        """The tokens whose rows, and those whose columns, are the longest, in the order of the vocabulary.

        most: the number of each, if there are as many. among: tokens to include in any case, as far as they fit.
        """
        first = checked_tokens(sorted(set(among)), len(self.first)).tolist()[:most]
        kept = []
        for vectors, others in ((self.left, self.right), (self.right, self.left)):
            # |row i|² = Σ_j (l_i · r_j)² = l_i · (RᵀR) · l_i, without the row itself.
            lengths = ((vectors @ (others.T @ others)) * vectors).sum(-1)
            lengths[first] = torch.inf
            kept.append(lengths.topk(min(most, len(lengths))).indices.sort().values)
        return kept[0], kept[1]


def circuits_of(config: ModelConfig, attention: str) -> tuple[str, ...]:
    """Which circuits the heads of an attention have: "qk" where they compare, "ov" where they write to the logits."""
    if config.qkv_clip is not None or f"{attention}.hook_v" not in equations(config):
        return ()
    has_products = f"{attention}.hook_q" in equations(config) and not _normalises_queries(config, attention)
    kinds = {"qk": has_products, "ov": not attention.startswith("encoder.") and not config.masked_word_head}
    return tuple(kind for kind, is_there in kinds.items() if is_there)


@torch.no_grad()
def qk_circuit(model: Weights, attention: str, head: int, distance: int = 0) -> Circuit:
    """The dot product of one token's query with another's key: a row is the query's token, a column the key's.

    attention: as in `attention_modules`, such as "blocks.0.attn". distance: from the key to the query in positions,
    which matters only to rotary positions. Divided by √d_head, like scores.
    Raises: ValueError for an attention that the model doesn't have, one without queries or with norms on them, a model
        that clips them, or a head it doesn't have.
    """
    _refuse_clipped(model.config)
    if distance < 0:
        raise ValueError(f"The distance is {distance}; a key stands 0 positions before the query, or more.")
    table = equations(model.config)
    if _normalises_queries(model.config, attention):
        raise ValueError("This model normalises queries and keys: how well two fit is no product of two tables.")
    q, k = (_equation(model.config, table, f"{attention}.hook_{name}", head) for name in "qk")
    (first, query), (last, key) = (_read(model, table, equation, head) for equation in (q, k))
    if f"{attention}.hook_rot_q" in table:  # rotating each column rotates the product with any vector
        turns = table[f"{attention}.hook_rot_q"].constants
        scale = turns.get("scale", 1.0)  # and of keys
        query = rotate(query.T[:, None, None], start=distance, **turns)[:, 0, 0].T * scale
    divisor = model.config.d_head**0.5 if model.config.attention_scale else 1.0
    return Circuit(first, query.T / divisor, key, last)


@torch.no_grad()
def ov_circuit(model: Weights, attention: str, head: int) -> Circuit:
    """How attending to one token changes each logit: a row is the attended token, a column a logit.

    Raises: ValueError for an attention that the model doesn't have, an encoder's, which writes no logits, a model that
        clips values, or a head that it doesn't have.
    """
    _refuse_clipped(model.config)
    if attention.startswith("encoder."):
        raise ValueError("An encoder's heads write to the memory, not to the logits; take a decoder's.")
    if model.config.masked_word_head:
        raise ValueError("Between this model's heads and its logits stands a layer that isn't linear.")
    table = equations(model.config)
    first, value = _read(model, table, _equation(model.config, table, f"{attention}.hook_v", head), head)
    parameters = _parameters(model)
    out = parameters[f"{attention}.out.weight"].double().unflatten(-1, (model.config.n_heads, -1))[:, head]
    norms = []
    if model.config.norms_what_is_added:
        norms.append(f"{attention.rpartition('.')[0]}.ln1_post.weight")
    if model.config.has_final_norm:
        norms.append(f"{'decoder.' if model.config.architecture == 'encoder-decoder' else ''}ln_final.weight")
    for norm in norms:
        out = _centred(model, out.T).T * parameters[norm].double()[:, None]
    return Circuit(first, value.T, out.T, parameters["unembed.weight"])


def _refuse_clipped(config: ModelConfig) -> None:
    if config.qkv_clip is not None:
        raise ValueError("This model clips queries, keys and values: what a head does is no product of two tables.")


def _normalises_queries(config: ModelConfig, attention: str) -> bool:
    return f"{attention}.q_norm.hook_out" in equations(config)


def _equation(config: ModelConfig, table: Mapping[str, Equation], name: str, head: int) -> Equation:
    if name not in table:
        raise ValueError(f"This model computes no {name}.")
    if not 0 <= head < config.n_heads:
        raise ValueError(f"Head {head} isn't there; this model has heads 0 to {config.n_heads - 1}.")
    return table[name]


def _parameters(model: Weights) -> Mapping[str, Tensor]:
    return model.tensors if isinstance(model, Trace) else parameters_of(model)


def _read(model: Weights, table: Mapping[str, Equation], equation: Equation, head: int) -> tuple[Tensor, Tensor]:
    """The table of embeddings, (vocab, d_model), and the matrix that a head reads them with, (d_head, d_model): a norm
    and a scale, which are the same for every token, are part of it, so that no table is copied."""
    parameters, config = _parameters(model), model.config
    reads = equation.operands["x"][0].name
    prefix = next((side for side in ("encoder.", "decoder.") if reads.startswith(side)), "")
    embeddings = parameters[table[f"{prefix}hook_embed"].operands["table"][0].name]
    operand = equation.operands["weight"][0]
    heads = parameters[operand.name].double().reshape(-1, config.d_head, config.d_model)
    is_shared = "kv_head" in operand.cells
    first, which = operand.shift, operand.cells[0]
    if isinstance(which, int):
        first = which * (config.kv_heads if is_shared else config.n_heads)
    own = head * config.kv_heads // config.n_heads if is_shared else head
    matrix = heads[first + own]
    norms = [operand.name for operand in table[reads].operands.get("gain", ())[:1]] if config.norms_before else []
    norms += [f"{prefix}ln_embed.weight"] if config.embed_norm else []
    for norm in norms:
        matrix = _centred(model, matrix * parameters[norm].double())
    return embeddings, matrix * (config.d_model**0.5 if config.scale_embeddings else 1.0)


def _product(table: Tensor, matrix: Tensor) -> Tensor:
    """A table, (vocab, d_model), times a narrow matrix, in float64, a few rows at a time: the table may be large."""
    return torch.cat([rows.double() @ matrix for rows in table.split(ROWS_AT_ONCE)])


def _centred(model: Weights, vectors: Tensor) -> Tensor:
    """Subtract the mean, as a layer norm does."""
    return vectors if model.config.norm_kind == "rms" else vectors - vectors.mean(-1, keepdim=True)
