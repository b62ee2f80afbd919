"""The optimisers: AdamW for vectors and embeddings, Muon for the matrices inside blocks.

PyTorch has a Muon of its own; it orthogonalises in bfloat16, which a CPU without bfloat16 units emulates some
hundred times slower than float32. This one keeps the weights' own precision.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal: every direction of a matrix is updated by the same amount.

    The update is scaled to the size AdamW's typically has, so that both share one learning rate.
    Sources: Jordan et al. 2024, "Muon"; Liu et al. 2025, "Muon is scalable for LLM training", §2.2.
    """

    def __init__(
        self, parameters: Iterable[Tensor], *, lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, group)

    def _update(self, weight: Tensor, group: dict) -> None:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
        direction = weight.grad.lerp(state["momentum"], group["momentum"])  # Nesterov's look ahead
        stacked = max(weight.shape[0] // weight.shape[1], 1) if weight.shape[0] % weight.shape[1] == 0 else 1
        squares = direction.view(stacked, -1, weight.shape[1])  # the q, k and v of one layer are three matrices
        update = orthogonalise(squares).view_as(weight)
        size = 0.2 * max(squares.shape[1:]) ** 0.5
        weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * size)


def orthogonalise(matrices: Tensor, iterations: int = 5) -> Tensor:
    """The nearest matrix whose singular values are all about one, by Newton–Schulz iteration.

    matrices: (…, rows, columns). The quintic's coefficients are Jordan's, for speed rather than precision:
    singular values end between about 0.7 and 1.2.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


def make_optimizers(
    model: nn.Module, *, muon: bool, learning_rate: float, betas: tuple[float, float], weight_decay: float
) -> list[torch.optim.Optimizer]:
    """AdamW for all parameters, or, with `muon`, for all but the matrices inside blocks.

    Weight decay falls on matrices only.
    """
    parameters = dict(model.named_parameters())
    by_muon = {name: p for name, p in parameters.items() if muon and p.dim() == 2 and "blocks." in name}
    matrices = [p for name, p in parameters.items() if p.dim() == 2 and name not in by_muon]
    vectors = [p for p in parameters.values() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW([group for group in groups if group["params"]], lr=learning_rate, betas=betas, fused=True)
    if not by_muon:
        return [adamw]
    return [Muon(by_muon.values(), lr=learning_rate, weight_decay=weight_decay), adamw]
