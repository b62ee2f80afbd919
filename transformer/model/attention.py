"""Attention: the paper's equation, then self-attention, cross-attention and uniform attention as modules.

Shapes: batch, pos (or query, key), head, kv_head, d_head, d_model. There are as many kv_heads as heads, unless heads
share keys and values in groups.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .caches import KeyValues
from .dropout import dropout
from .effective_weights import linear_map
from .layers import HeadNorm, widened
from .masks import causal_mask, full_mask
from .modes import is_true, rounds_products
from .positions import Start, alibi, relative_buckets, rotate


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention: softmax(Q Kᵀ / √d_head) V.

    Each query's average of the values, weighted by how well the query fits their keys. The modules below compute the
    same, in PyTorch's fused kernel or step by step with a hook point after each step.

    q: (…, query, d_head); k: (…, key, d_head); v: (…, key, d_head).
    mask: boolean, broadcastable to (…, query, key), True where a key may be seen; None if every query sees every key.
    Returns: (…, query, d_head); zeros for a query that sees no key at all.
    Source: Vaswani et al. 2017, eq. 1; the mask, §3.2.3.

    >>> q, k, v = torch.tensor([[1.0]]), torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [3.0]])
    >>> attention(q, k, v, mask=torch.tensor([[True, False]]))
    tensor([[1.]])
    """
    q, k, values = widened(q), widened(k), widened(v)  # 16-bit products can exceed 16 bits
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (…, query, key)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    return (safe_softmax(scores) @ values).type_as(v)


def safe_softmax(scores: Tensor) -> Tensor:
    """Softmax over keys, where a query that sees no key at all gets zeros instead of 0 / 0.

    scores: (…, query, key), −∞ where a key is hidden.
    """
    pattern = scores.softmax(-1)
    if not is_true(pattern[..., :1].sum().isnan(), if_unknown=True):  # 0 / 0 would show in every column
        return pattern
    sees_nothing = scores.amax(-1, keepdim=True) == -math.inf
    return scores.masked_fill(sees_nothing, 0.0).softmax(-1).masked_fill(sees_nothing, 0.0)


class Attention(nn.Module):
    """The base of all multi-head attention: heads side by side, a mask, and the projection of what they found.

    MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O (Vaswani et al. 2017, §3.2.2).
    """

    def __init__(self, config: ModelConfig, *, causal: bool, window: int = 0) -> None:
        super().__init__()
        self.n_heads, self.d_head = config.n_heads, config.d_head
        self.causal, self.window = causal, window
        self.out = nn.Linear(config.n_heads * config.d_head, config.d_model, bias=config.has_out_bias)
        self.dropout = config.dropout
        self.hook_v, self.hook_mask, self.hook_pattern = HookPoint(), HookPoint(), HookPoint()
        self.hook_z, self.hook_result = HookPoint(), HookPoint()
        self.has_output_point = config.norms_what_is_added
        if self.has_output_point:
            self.hook_out = HookPoint()

    def split_heads(self, x: Tensor) -> Tensor:
        """(batch, pos, head · d_head) → (batch, pos, head, d_head)."""
        return x.unflatten(-1, (-1, self.d_head))

    def visible(self, query: int, key: int, padding: Tensor | None, device: torch.device) -> Tensor:
        """The attention mask: (query, key), or (batch, 1, query, key) where texts are padded differently."""
        mask = (causal_mask if self.causal else full_mask)(query, key, device, self.window)
        return self.hook_mask(mask if padding is None else mask & padding)

    def project(self, z: Tensor) -> Tensor:
        """Concat(head_1, …, head_h) W_O: (batch, pos, head, d_head) → (batch, pos, d_model)."""
        out = self.out(z.flatten(-2))
        if self.hook_result.is_watched:
            out = self.sum_of_heads(z, out)
        if self.has_output_point:
            out = self.hook_out(out)
        return dropout(out, self.dropout, self.training)  # before the residual sum (§5.4)

    def sum_of_heads(self, z: Tensor, out: Tensor) -> Tensor:
        """`out`, computed head by head if a hook changes a head's result; each result can be recorded."""
        name = self.hook_result.name.replace("hook_result", "out")
        weight, bias = linear_map(self.out, self.n_heads * self.d_head, name)
        per_head = weight.unflatten(-1, (self.n_heads, -1))  # (d_model, head, d_head)
        result = self.hook_result(torch.einsum("bphd,ohd->bpho", widened(z), widened(per_head)))
        if not self.hook_result.is_edited:
            return out
        return (result.sum(2) if bias is None else result.sum(2) + bias).type_as(z)


class SoftmaxAttention(Attention):
    """`attention` in every head: in one fused call, or step by step as soon as one of the steps is looked at.

    The steps skip the mask if every key is visible, as for a text's newest token, unless somebody records it. Capped
    scores always go step by step: the fused call can't cap. In a 16-bit model scores and weights are float32, as inside
    the fused call: before the division a score may not fit into 16 bits.
    If there are fewer heads of keys and values than of queries, neighbours share one (Ainslie et al. 2023, §2.2).
    """

    hook_position_bias: HookPoint
    """The hook point of the position bias, in models that have one."""

    def __init__(self, config: ModelConfig, *, causal: bool, window: int = 0) -> None:
        super().__init__(config, causal=causal, window=window)
        self.group = config.n_heads // config.kv_heads
        self.divisor = math.sqrt(config.d_head) if config.attention_scale else 1.0
        self.hook_q, self.hook_k = HookPoint(), HookPoint()
        self.hook_raw_scores, self.hook_scaled_scores = HookPoint(), HookPoint()
        self.hook_attn_scores = HookPoint()
        self.cap = config.score_cap
        if self.cap:
            self.hook_capped_scores = HookPoint()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Each query's average of the values, weighted by how well it fits their keys.

        q: (batch, query, head, d_head); k, v: (batch, key, kv_head, d_head); padding: (batch, 1, 1, key) or None.
        bias: added to the scores by distance, (batch, head, query, key), or None.
        Returns: z, (batch, query, head, d_head).
        """
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # (batch, head or kv_head, pos, d_head)
        z = (self._steps if self.cap or self._scores_are_looked_at() else self._fused)(q, k, v, padding, bias)
        return self.hook_z(z.transpose(1, 2))

    def _steps(self, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, bias: Tensor | None) -> Tensor:
        query, key, values = q.shape[-2], k.shape[-2], widened(v)
        q, k = widened(q), widened(k)
        scores = self.hook_raw_scores(self._product(q, k.transpose(-2, -1)))  # (batch, head, query, key)
        scores = self.hook_scaled_scores(scores / self.divisor)
        if self.cap:
            scores = self.hook_capped_scores(self.cap * (scores / self.cap).tanh())
        if bias is not None:
            scores = scores + self.hook_position_bias(bias)
        hides_nothing = padding is None and self._sees_all(query, key)
        if hides_nothing and not (self.hook_mask.is_watched or self.hook_attn_scores.is_watched):
            pattern = scores.softmax(-1)
        else:
            mask = self.visible(query, key, padding, q.device)
            pattern = safe_softmax(self.hook_attn_scores(torch.where(mask, scores, -math.inf)))
        return self._product(self.hook_pattern(pattern).type_as(values), values).type_as(v)

    def _product(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y for every head, with the y of its group. x: (batch, head, query, m); y: (batch, kv_head, m, n)."""
        if rounds_products(x.device):  # autocast would narrow them to 16 bits
            with torch.autocast(x.device.type, enabled=False):
                return self._product(x, y)
        return x @ y if self.group == 1 else self._as_heads(self._as_queries(x) @ y)

    def _as_queries(self, x: Tensor) -> Tensor:
        """A group's heads as queries of one: (batch, head, query, m) → (batch, kv_head, group · query, m)."""
        return x if self.group == 1 else x.unflatten(1, (-1, self.group)).flatten(2, 3)

    def _as_heads(self, x: Tensor) -> Tensor:
        """The inverse: (batch, kv_head, group · query, n) → (batch, head, query, n)."""
        return x if self.group == 1 else x.unflatten(2, (self.group, -1)).flatten(1, 2)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, bias: Tensor | None) -> Tensor:
        query, key, scale = q.shape[-2], k.shape[-2], 1 / self.divisor
        needs_mask = padding is not None or bias is not None
        if not needs_mask and self._sees_all(query, key):
            return self._as_heads(_attention(self._as_queries(q), k, v, scale=scale))
        if self.group > 1:  # each head gets its group's
            k, v = k.repeat_interleave(self.group, 1), v.repeat_interleave(self.group, 1)
        if not needs_mask and self.causal and query == key and not self._is_cut(key):
            return _attention(q, k, v, is_causal=True, scale=scale)
        mask = self.visible(query, key, padding, q.device)
        added = mask if bias is None else self.hook_position_bias(bias).masked_fill(~mask, -math.inf)
        z = _attention(q, k, v, attn_mask=added, scale=scale)
        return z.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # as in safe_softmax

    def _sees_all(self, query: int, key: int) -> bool:
        """Whether every query sees every key, padding apart: true of one new token unless a window hides keys."""
        return (query == 1 or not self.causal) and not self._is_cut(key)

    def _is_cut(self, key: int) -> bool:
        """Whether the window hides keys from the last query; always assumed in compiled code, for any length."""
        return self.window > 0 and (torch.compiler.is_compiling() or self.window < key)

    def _scores_are_looked_at(self) -> bool:
        return (
            self.hook_pattern.is_watched
            or self.hook_attn_scores.is_watched
            or self.hook_mask.is_watched
            or self.hook_scaled_scores.is_watched
            or self.hook_raw_scores.is_watched
        )


class SelfAttention(SoftmaxAttention):
    """Queries, keys and values from one sequence."""

    def __init__(self, config: ModelConfig, *, causal: bool, layer: int = 0) -> None:
        super().__init__(config, causal=causal, window=config.window(layer))
        self.heads = (config.n_heads, config.kv_heads, config.kv_heads)  # of queries, keys and values
        self.qkv = nn.Linear(config.d_model, sum(self.heads) * config.d_head, bias=config.attention_bias)
        self.has_position_bias = config.positions in ("alibi", "relative")
        if self.has_position_bias:
            self.config, self.hook_position_bias = config, HookPoint()
            if config.positions == "relative":
                self.relative_bias = nn.Embedding(config.relative_buckets, config.n_heads)
        self.clip = config.qkv_clip
        self.has_norms = config.qk_norm != "none"
        if self.has_norms:
            self.q_norm, self.k_norm = HeadNorm(config, config.n_heads), HeadNorm(config, config.kv_heads)
        self.rotary = config.is_rotated(layer)
        if self.rotary:
            self.rotation = config.rotation(layer)
            self.hook_rot_q, self.hook_rot_k = HookPoint(), HookPoint()

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`, after what `past` holds."""
        qkv = self.qkv(x) if self.clip is None else self.qkv(x).clamp(-self.clip, self.clip)
        q, k, v = self.split_heads(qkv).split_with_sizes(self.heads, 2)  # (batch, pos, head or kv_head, d_head)
        q, k, v = self.hook_q(q), self.hook_k(k), self.hook_v(v)
        if self.has_norms:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary:
            q = self.hook_rot_q(rotate(q, start, **self.rotation))
            k = self.hook_rot_k(rotate(k, start, **self.rotation))
        if past is not None:
            k, v = past.append(k, v)
        bias = self.position_bias(q, k.shape[1]) if self.has_position_bias else None
        return self.project(self.attend(q, k, v, padding, bias))

    def position_bias(self, q: Tensor, key: int) -> Tensor:
        """The position bias of these queries' scores, (batch, head, query, key)."""
        query = q.shape[1]
        if self.config.positions == "alibi":
            bias = alibi(self.config, query, key, q.device).type_as(q)
        else:
            buckets = relative_buckets(self.config, query, key, self.causal, q.device)
            bias = self.relative_bias(buckets).permute(2, 0, 1)  # (head, query, key)
        return bias.expand(len(q), -1, -1, -1)


class CrossAttention(SoftmaxAttention):
    """Queries from the decoder, keys and values from the encoder's memory (Vaswani et al. 2017, §3.2.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, causal=False)
        self.q = nn.Linear(config.d_model, config.n_heads * config.d_head, bias=config.attention_bias)
        self.kv = nn.Linear(config.d_model, 2 * config.kv_heads * config.d_head, bias=config.attention_bias)

    def forward(
        self, x: Tensor, memory: Tensor, padding: Tensor | None = None, past: KeyValues | None = None
    ) -> Tensor:
        """x: (batch, pos, d_model); memory: (batch, key, d_model); padding: the memory's, (batch, 1, 1, key).

        past: keeps the memory's keys and values from the first call on, since they don't change.
        """
        q = self.hook_q(self.split_heads(self.q(x)))
        if past is None or not past.tensors:
            k, v = map(self.split_heads, self.kv(memory).chunk(2, dim=-1))
            if past is not None:
                past.append(k, v)
        else:
            k, v = past.known()
        return self.project(self.attend(q, self.hook_k(k), self.hook_v(v), padding))


class UniformAttention(Attention):
    """The plain average over the visible positions: attention before there are queries and keys."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.v = nn.Linear(config.d_model, config.n_heads * config.d_head, bias=config.attention_bias)

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`, after what `past` holds."""
        v = self.hook_v(self.split_heads(self.v(x)))
        if past is not None:
            _, v = past.append(v, v)
        mask = self.visible(x.shape[1], v.shape[1], padding, x.device)
        weights = mask / mask.sum(-1, keepdim=True).clamp(min=1)
        pattern = self.hook_pattern(weights.expand(x.shape[0], self.n_heads, -1, -1).type_as(v))
        return self.project(self.hook_z((pattern @ v.transpose(1, 2)).transpose(1, 2)))


def make_self_attention(config: ModelConfig, *, causal: bool, layer: int = 0) -> SelfAttention | UniformAttention:
    """Make the kind of attention that the configuration asks for."""
    if config.attention == "uniform":
        return UniformAttention(config, causal=causal)
    return SelfAttention(config, causal=causal, layer=layer)


def _attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, **how: Any) -> Tensor:
    """PyTorch's fused attention, in float32 where a CPU trains in bfloat16: it took half as long there and back."""
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        q, k, v = q.float(), k.float(), v.float()
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.float()
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(q, k, v, attn_mask, **how)
    return F.scaled_dot_product_attention(q, k, v, attn_mask, **how)
