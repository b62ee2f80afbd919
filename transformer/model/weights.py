"""A stack's weights as formulas have them, cut into heads, by the names and in the shapes of TransformerLens.

Shapes: layer, head, d_model, d_head, d_ff, vocab, pos. Matrices are copies of those that the modules multiply by, also
if somebody replaced the modules; vectors multiply from the left: x · W_Q + b_Q. Weights that a configuration lacks are
no attributes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from .effective_weights import weight_of
from .equations import parameter_names


class FormulaWeights:
    """The weights of a stack of blocks. Heads that share keys and values each have their group's."""

    config: ModelConfig
    embed: nn.Embedding
    blocks: nn.ModuleList
    position_rows: Callable[..., Tensor]

    @property
    def W_E(self) -> Tensor:
        """(vocab, d_model); with `scale_embeddings`, the model multiplies its rows by √d_model."""
        return weight_of(self, "embed.weight")

    @property
    def W_pos(self) -> Tensor:
        """(pos, d_model), the table that is added to embeddings, learned or sinusoidal."""
        if self.config.positions not in ("learned", "sinusoidal"):
            raise AttributeError
        return self.position_rows(0, self.config.context_length, self.W_E.device)

    @property
    def W_Q(self) -> Tensor:
        """(layer, head, d_model, d_head)."""
        return self._of_heads("weight", 0).mT

    @property
    def W_K(self) -> Tensor:
        """(layer, head, d_model, d_head)."""
        return self._of_heads("weight", 1).mT

    @property
    def W_V(self) -> Tensor:
        """(layer, head, d_model, d_head)."""
        return self._of_heads("weight", 2).mT

    @property
    def W_O(self) -> Tensor:
        """(layer, head, d_head, d_model)."""
        return self._stacked("attn.out.weight").mT.unflatten(1, (self.config.n_heads, -1))

    @property
    def W_in(self) -> Tensor:
        """(layer, d_model, d_ff)."""
        return self._stacked("mlp.up.weight").mT

    @property
    def W_gate(self) -> Tensor:
        """(layer, d_model, d_ff)."""
        return self._stacked("mlp.gate.weight").mT

    @property
    def W_out(self) -> Tensor:
        """(layer, d_ff, d_model)."""
        return self._stacked("mlp.down.weight").mT

    @property
    def b_Q(self) -> Tensor:
        """(layer, head, d_head), zeros where there is no bias; and so the others."""
        return self._of_heads("bias", 0)

    @property
    def b_K(self) -> Tensor:
        """(layer, head, d_head)."""
        return self._of_heads("bias", 1)

    @property
    def b_V(self) -> Tensor:
        """(layer, head, d_head)."""
        return self._of_heads("bias", 2)

    @property
    def b_O(self) -> Tensor:
        """(layer, d_model)."""
        return self._stacked("attn.out.bias")

    @property
    def b_in(self) -> Tensor:
        """(layer, d_ff)."""
        return self._stacked("mlp.up.bias")

    @property
    def b_out(self) -> Tensor:
        """(layer, d_model)."""
        return self._stacked("mlp.down.bias")

    def _of_heads(self, name: str, kind: int) -> Tensor:
        """(layer, head, …): the rows of queries (0), keys (1) or values (2) in the matrix or bias that holds them."""
        config = self.config
        if kind == 2 and config.attention == "uniform":  # which has nothing else
            return self._stacked(f"attn.v.{name}").unflatten(1, (-1, config.d_head))
        heads = (config.n_heads, config.kv_heads, config.kv_heads)
        rows = self._stacked(f"attn.qkv.{name}").unflatten(1, (-1, config.d_head)).split_with_sizes(heads, 1)[kind]
        return rows.repeat_interleave(config.n_heads // heads[kind], 1)

    def _stacked(self, name: str) -> Tensor:
        """(layer, …): a matrix or bias of every block, by its name there. Raises: ValueError as `weight_of`."""
        has = parameter_names(self.config)  # under these names or, in one of two stacks, longer ones
        if not any(each.endswith(f"blocks.0.{name.rpartition('.')[0]}.weight") for each in has):
            raise AttributeError
        return torch.stack([weight_of(self, f"blocks.{layer}.{name}") for layer in range(len(self.blocks))])
