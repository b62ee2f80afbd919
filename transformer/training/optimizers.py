"""The optimisers: AdamW for vectors and embeddings, Muon for the matrices inside blocks.

PyTorch has a Muon of its own; it orthogonalises in bfloat16, which a CPU without bfloat16 units emulates some
hundred times slower than float32. This one keeps the weights' own precision.
"""

from __future__ import annotations

from collections import defaultdict
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
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._update(weights, group)

    def _update(self, weights: list[Tensor], group: dict) -> None:
        gradients = [weight.grad for weight in weights]
        momenta = [self._momentum(weight) for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        directions = torch._foreach_lerp(gradients, momenta, group["momentum"])  # Nesterov's look ahead
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])

        alike = defaultdict(list)  # what has one shape is made orthogonal in one go
        for weight, direction in zip(weights, directions, strict=True):
            matrices = _parts(direction)
            alike[matrices.shape[1:]].append((weight, matrices))
        for shape, pairs in alike.items():
            updates = orthogonalise(torch.cat([matrices for _, matrices in pairs]))
            updates = updates.split([len(matrices) for _, matrices in pairs])
            size = 0.2 * max(shape) ** 0.5
            for (weight, _), update in zip(pairs, updates, strict=True):
                weight.add_(update.reshape(weight.shape), alpha=-group["lr"] * size)

    def _momentum(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        return state["momentum"]


def orthogonalise(matrices: Tensor, iterations: int = 5) -> Tensor:
    """The nearest matrix whose singular values are all about one, by Newton–Schulz iteration.

    matrices: (…, rows, columns). The quintic's coefficients are Jordan's, for speed rather than precision:
    singular values end between about 0.7 and 1.2.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    wide = matrices.mT if tall else matrices
    x = wide.reshape(-1, *wide.shape[-2:])  # (matrix, rows, columns)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        factor = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)  # −4.7750 gram + 2.0315 gram²
        x = torch.baddbmm(x, factor, x, beta=3.4445)  # 3.4445 x + factor · x
    x = x.view(wide.shape)
    return x.mT if tall else x


def _parts(weight: Tensor) -> Tensor:
    """The matrices that one weight holds, (matrix, rows, columns): the q, k and v of one layer are three."""
    rows, columns = weight.shape
    return weight.view(rows // columns if rows % columns == 0 else 1, -1, columns)


def make_optimizers(
    model: nn.Module,
    *,
    muon: bool,
    learning_rate: float,
    betas: tuple[float, float],
    weight_decay: float,
    momentum: float = 0.95,
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
    return [Muon(by_muon.values(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay), adamw]
