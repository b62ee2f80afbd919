"""What a head would do with any pair of tokens: its QK and OV circuits over the whole vocabulary.

Weights alone, without a text: what a token's embedding, and nothing else in the stream, makes a head look for and
write. A norm's gain is taken into account; what it divides by, its shift, and biases, which depend on what else is
there or on no token at all, are left out.
Source: Elhage et al. 2021, "A mathematical framework for transformer circuits", *QK and OV circuits*.
Dimensions: vocab, d_head, d_model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..model.equations import Equation, equations
from ..model.models import DecoderOnly, EncoderDecoder
from ..model.positions import rotate, rotation


@dataclass(frozen=True)
class Circuit:
    """A matrix over pairs of tokens, as the product of two narrow ones: its rank is at most d_head."""

    left: Tensor
    """(vocab, d_head), float64."""
    right: Tensor
    """(vocab, d_head), float64."""

    def full(self) -> Tensor:
        """(vocab, vocab); of a large vocabulary it takes much memory: use `row`."""
        return self.left @ self.right.T

    def row(self, token: int) -> Tensor:
        """What one token does with each other, (vocab,)."""
        return self.right @ self.left[token]


@torch.no_grad()
def qk_circuit(model: DecoderOnly | EncoderDecoder, attention: str, head: int, distance: int = 0) -> Circuit:
    """How well the query of one token fits the key of another: a row is a query's token, a column a key's.

    attention: as in `attention_modules`, such as "blocks.0.attn". distance: positions that the key stands before the
    query, which matters to rotary positions alone. Divided by √d_head, as scores are.
    Raises: ValueError for an attention that the model doesn't have, one without queries, or a head it doesn't have.
    """
    table = equations(model.config)
    q, k = (_equation(model, table, f"{attention}.hook_{name}", head) for name in "qk")
    left, right = (_read(model, table, equation, head) for equation in (q, k))
    if f"{attention}.hook_rot_q" in table:
        turn = rotation(model.config)
        left = rotate(left[:, None, None], start=distance, **turn)[:, 0, 0]
        right = rotate(right[:, None, None], **turn)[:, 0, 0]
    return Circuit(left / model.config.d_head**0.5 if model.config.attention_scale else left, right)


@torch.no_grad()
def ov_circuit(model: DecoderOnly | EncoderDecoder, attention: str, head: int) -> Circuit:
    """What a head that looks at one token says for each next token: a row is the token looked at, a column a logit.

    Raises: ValueError for an attention that the model doesn't have, an encoder's, which writes no logits, or a head
        that it doesn't have.
    """
    if attention.startswith("encoder."):
        raise ValueError("An encoder's heads write to the memory, not to the logits; take a decoder's.")
    table = equations(model.config)
    values = _read(model, table, _equation(model, table, f"{attention}.hook_v", head), head)
    parameters = model.state_dict()
    out = parameters[f"{attention}.out.weight"].double().unflatten(-1, (model.config.n_heads, -1))[:, head]
    unembedding = parameters["unembed.weight"].double()
    if model.config.norm == "pre":
        prefix = "decoder." if model.config.architecture == "encoder-decoder" else ""
        unembedding = _centred(model, unembedding * parameters[f"{prefix}ln_final.weight"].double())
    return Circuit(values, unembedding @ out)


def _equation(model: DecoderOnly | EncoderDecoder, table: dict[str, Equation], name: str, head: int) -> Equation:
    if name not in table:
        raise ValueError(f"This model computes no {name}.")
    if not 0 <= head < model.config.n_heads:
        raise ValueError(f"Head {head} isn't there; this model has heads 0 to {model.config.n_heads - 1}.")
    return table[name]


def _read(model: DecoderOnly | EncoderDecoder, table: dict[str, Equation], equation: Equation, head: int) -> Tensor:
    """What each token's embedding becomes as a query, key or value of one head, (vocab, d_head)."""
    parameters = model.state_dict()
    config = model.config
    reads = equation.operands["x"][0].name
    prefix = next((side for side in ("encoder.", "decoder.") if reads.startswith(side)), "")
    embeddings = parameters[table[f"{prefix}hook_embed"].operands["table"][0].name].double()
    if config.scale_embeddings:
        embeddings = embeddings * config.d_model**0.5
    if config.norm == "pre":
        gain = parameters[table[reads].operands["gain"][0].name].double()
        embeddings = _centred(model, embeddings) * gain
    operand = equation.operands["weight"][0]
    heads = parameters[operand.name].double().reshape(-1, config.d_head, config.d_model)
    is_shared = "kv_head" in operand.cells
    first = operand.shift
    if operand.dims[0] == "part":
        first = operand.cells[0] * (config.kv_heads if is_shared else config.n_heads)
    own = head * config.kv_heads // config.n_heads if is_shared else head
    return embeddings @ heads[first + own].T


def _centred(model: DecoderOnly | EncoderDecoder, vectors: Tensor) -> Tensor:
    """Without their mean, which a layer norm takes away."""
    return vectors if model.config.norm_kind == "rms" else vectors - vectors.mean(-1, keepdim=True)
