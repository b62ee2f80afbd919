"""The optimizers: AdamW for vectors and embeddings, Muon for the matrices inside blocks.

PyTorch's classes import its compiler, which costs a second and 75 MB of a server's memory. These don't; AdamW calls
PyTorch's function. PyTorch's Muon also orthogonalises in bfloat16, which a CPU without bfloat16 units emulates a
hundred times slower than float32; this one keeps the weights' precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from ..model.models import Model

ITERATIONS = 5
"""Newton–Schulz iterations; with Jordan's coefficients, more don't bring singular values nearer to one."""


class Optimizer(ABC):
    """The base of both: groups of parameters with their settings, and the state of each parameter."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        """groups: `params`, a list of tensors, and the settings of their updates by name, `lr` among them."""
        self.param_groups = groups
        self.state: dict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    @abstractmethod
    def step(self) -> None:
        """Update every parameter that has a gradient."""

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters():
            parameter.grad = None

    def states(self) -> dict[int, dict[str, Tensor]]:
        """The state of each updated parameter, by its number, counted across groups."""
        numbered = enumerate(self._parameters())
        return {number: self.state[parameter] for number, parameter in numbered if parameter in self.state}

    def load_states(self, states: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Restore what `states` returned."""
        parameters = self._parameters()
        self.state.clear()
        for number, state in states.items():
            device = parameters[number].device
            self.state[parameters[number]] = {name: value.to(device, copy=True) for name, value in state.items()}

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2): PyTorch's function, fused."""

    def __init__(self, groups: Iterable[Mapping[str, Any]], *, lr: float, betas: tuple[float, float]) -> None:
        """groups: `params` and their `weight_decay`."""
        super().__init__([{**group, "lr": lr, "betas": betas} for group in groups])

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            updated = [parameter for parameter in group["params"] if parameter.grad is not None]
            states = [self._state(parameter) for parameter in updated]
            means, squares, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
            adamw(
                updated,
                [_gradient(parameter) for parameter in updated],
                means,
                squares,
                [],
                steps,
                fused=True,
                amsgrad=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=1e-8,
                maximize=False,
            )

    def _state(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state |= {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return state


class Muon(Optimizer):
    """Orthogonalised momentum: every direction of a matrix is updated by the same amount.

    If one weight holds the matrices of queries, keys and values, each is orthogonalised separately. The update is
    scaled to the typical size of AdamW's, so that both share one learning rate.
    Sources: Jordan et al. 2024, "Muon"; Liu et al. 2025, "Muon is scalable for LLM training", §2.2.
    """

    def __init__(
        self,
        parameters: Iterable[tuple[str, Tensor]],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        rows: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """rows: for weights that hold several matrices, by the end of their name, the rows of each from the top."""
        self._rows = dict(rows or {})
        names, weights = zip(*parameters, strict=True)
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([{"params": list(weights), "param_names": list(names), **settings}])

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            named = zip(group["param_names"], group["params"], strict=True)
            named = [(name, weight) for name, weight in named if weight.grad is not None]
            if named:
                self._update(named, group)

    def _update(self, named: list[tuple[str, Tensor]], group: dict) -> None:
        directions = []
        for _, weight in named:
            gradient, momentum = _gradient(weight), self._momentum(weight)
            momentum.lerp_(gradient, 1 - group["momentum"])
            directions.append(gradient.lerp(momentum, group["momentum"]))  # Nesterov's look ahead
            weight.mul_(1 - group["lr"] * group["weight_decay"])

        alike = defaultdict(list)  # matrices of one shape, or its transpose, are orthogonalised in one batch
        for (name, weight), direction in zip(named, directions, strict=True):
            rows = next((rows for ending, rows in self._rows.items() if name.endswith(ending)), [len(weight)])
            for matrix, towards in zip(weight.split(rows), direction.split(rows), strict=True):
                alike[_lying(matrix).shape].append((matrix, _lying(towards)))
        for (_, longer), pairs in alike.items():
            updates = orthogonalise(torch.stack([towards for _, towards in pairs]))
            size = 0.2 * longer**0.5
            for (matrix, _), update in zip(pairs, updates, strict=True):
                matrix.add_(update if matrix.shape == update.shape else update.mT, alpha=-group["lr"] * size)

    def _momentum(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        return state["momentum"]


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest matrix whose singular values are all about one, by Newton–Schulz iteration.

    matrices: (matrix, rows, columns). The quintic's coefficients are Jordan's, for speed rather than precision:
    singular values end between about 0.7 and 1.2.
    """
    x = _lying(matrices)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        factor = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)  # −4.7750 gram + 2.0315 gram²
        x = torch.baddbmm(x, factor, x, beta=3.4445)  # 3.4445 x + factor · x
    return x if x.shape == matrices.shape else x.mT


def _gradient(parameter: Tensor) -> Tensor:
    """The parameter's gradient, which must be there."""
    assert parameter.grad is not None
    return parameter.grad


def _lying(matrices: Tensor) -> Tensor:
    """Transpose matrices, (…, rows, columns), that are higher than wide."""
    return matrices.mT if matrices.shape[-2] > matrices.shape[-1] else matrices


def make_optimizers(
    model: Model, *, muon: bool, learning_rate: float, betas: tuple[float, float], momentum: float, weight_decay: float
) -> list[Optimizer]:
    """AdamW for all parameters, or, with `muon`, for all but the matrices inside blocks.

    Weight decay falls on matrices only.
    """
    parameters = dict(model.named_parameters())
    by_muon = {name: p for name, p in parameters.items() if muon and p.dim() == 2 and "blocks." in name}
    matrices = [p for name, p in parameters.items() if p.dim() == 2 and name not in by_muon]
    vectors = [p for p in parameters.values() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = AdamW([group for group in groups if group["params"]], lr=learning_rate, betas=betas)
    if not by_muon:
        return [adamw]
    config = model.config
    queries, keys = config.n_heads * config.d_head, config.kv_heads * config.d_head
    rows = {"attn.qkv.weight": (queries, keys, keys), "cross_attn.kv.weight": (keys, keys)}
    return [Muon(by_muon.items(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay, rows=rows), adamw]
