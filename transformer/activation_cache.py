"""The activation cache: the tensors of one forward pass, by hook point."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from .choice_checks import checked_tokens

ON_REQUEST = ("attn.hook_result",)  # cross_attn.hook_result among them
"""Endings of points that cost too much to compute unless someone asks for them by name."""


class ActivationCache(Mapping[str, Tensor]):
    """The tensors that one forward pass recorded, by hook point, in the order they were computed.

    Read-only, and detached from the graph. `cache["pattern", 0]` is short for the one recorded point of block
    0 whose name ends in `hook_pattern`; where several do, a third part tells them apart:
    `cache["scale", 0, "ln1"]`. Layer −1 is the last of the model.

    depths: how many blocks each stack of the model has, by what its points' names begin with; without it, as many as
        have recorded something. model: the one that computed them, whose weights some of what follows needs.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], depths: Mapping[str, int] | None = None, model: Any = None
    ) -> None:
        self._tensors = dict(tensors)
        self._model = model
        self.depths = depths_of(self._tensors) if depths is None else depths

    def __copy__(self) -> ActivationCache:
        return ActivationCache(self._tensors, self.depths, self._model)

    def __deepcopy__(self, memo: dict[int, Any]) -> ActivationCache:
        """Its tensors are copied, the model isn't."""
        return ActivationCache(copy.deepcopy(self._tensors, memo), self.depths, self._model)

    def __reduce__(self) -> tuple[type[ActivationCache], tuple[Any, ...]]:
        """Pickled, a cache has its tensors alone: no model, nor the rest of what one of them is a part of."""
        tensors = {
            name: tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
            for name, tensor in self._tensors.items()
        }
        return ActivationCache, (tensors, self.depths)

    def __getitem__(self, key: str | tuple[str, int] | tuple[str, int, str]) -> Tensor:
        match key:
            case str():
                if (name := key if key in self._tensors else f"hook_{key}") in self._tensors:
                    return self._tensors[name]
                raise KeyError(_missing(key) or f"{key!r} was not recorded.{suggested(key, self._tensors)}")
            case (str(short), int(layer)):
                return self._tensors[self._resolve(short, layer)]
            case (str(short), int(layer), str(module)):
                return self._tensors[self._resolve(short, layer, module)]
        raise KeyError(
            f"{key!r} is no name; ask for cache['blocks.0.attn.hook_pattern'], or, for short, cache['pattern', 0]."
        )

    def _resolve(self, short: str, layer: int, module: str = "") -> str:
        blocks = (f"{stack}blocks.{layer if layer >= 0 else depth + layer}" for stack, depth in self.depths.items())
        pattern = re.compile(rf"({'|'.join(map(re.escape, blocks))})\.(.*\.)?(hook_)?{re.escape(short)}")
        names = [name for name in self._tensors if pattern.fullmatch(name) and _has_parts(name, module)]
        wanted = (short, layer, module) if module else (short, layer)
        if not names:
            raise KeyError(_missing(short) or f"{wanted!r} matches nothing that was recorded.")
        if len(names) > 1:
            raise KeyError(f"{wanted!r} may mean {', '.join(names)}; say which as a third part.")
        return names[0]

    def stack_head_results(self, layer: int = -1, *, return_labels: bool = False) -> Tensor | tuple[Tensor, list[str]]:
        """Each head's addition to the stream in the first `layer` layers, all with −1, without the output bias.

        Returns: (layer · head, batch, pos, d_model), and with `return_labels` their names, such as "L0H3".
        Raises: ValueError where there are fewer layers, or for an encoder–decoder; KeyError for z that wasn't recorded.
        """
        model = self._of_one_stack()
        n_layers, n_heads = model.config.n_layers, model.config.n_heads
        if model.config.norms_what_is_added:
            raise ValueError("After the heads of this model comes a norm; direct_logit_attribution follows it.")
        if not n_layers:
            raise ValueError("This model has no layer, and so no head.")
        if not (layer == -1 or 1 <= layer <= n_layers):
            raise ValueError(f"layer is {layer}; it must be from 1 to {n_layers}, or -1 for all.")
        weights = model.W_O[: n_layers if layer == -1 else layer]
        results = [torch.einsum("bphd,hdo->hbpo", self["z", at], weight) for at, weight in enumerate(weights)]
        labels = [f"L{at}H{head}" for at in range(len(weights)) for head in range(n_heads)]
        return (torch.cat(results).detach(), labels) if return_labels else torch.cat(results).detach()

    def logit_attrs(
        self, residual_stack: Tensor, tokens: Tensor | int, incorrect_tokens: Tensor | int | None = None
    ) -> Tensor:
        """How much each part of the stream says for a token, over another if that is given.

        The last norm divides by what it divided by in this pass; its shift and b_U belong to no part. What sums to a
        logit, with every bias: `direct_logit_attribution`.

        residual_stack: (part, batch, pos, d_model), as `stack_head_results` gives it. tokens: ids, one for all
        positions, or (batch, 1) or (batch, pos).
        Returns: (part, batch, pos).
        Raises: ValueError for a token that isn't there, a model with norms on its stream or a layer before its
            unembedding, and for an encoder–decoder; KeyError for a scale that wasn't recorded.
        """
        model = self._of_one_stack()
        if model.config.masked_word_head:
            raise ValueError("Between the stream and this model's logits stands a layer that isn't linear.")
        if model.config.norm == "post":
            raise ValueError("After each part of a post-norm model come norms; direct_logit_attribution follows them.")
        unembed = model.W_U.T.detach()
        direction = unembed[checked_tokens(tokens, len(unembed)).to(unembed.device)]
        if incorrect_tokens is not None:
            direction = direction - unembed[checked_tokens(incorrect_tokens, len(unembed)).to(unembed.device)]
        if model.config.has_final_norm:
            if model.config.norm_kind == "layer":
                residual_stack = residual_stack - residual_stack.mean(-1, keepdim=True)
            residual_stack = (
                residual_stack / self["ln_final.hook_scale"] * model.effective_weight("ln_final.weight").detach()
            )
        return (residual_stack * direction).sum(-1)

    def _of_one_stack(self) -> Any:
        if self._model is None:
            raise ValueError("This needs weights, which this cache doesn't carry: ActivationCache(cache, model=model).")
        if self._model.config.architecture == "encoder-decoder":
            raise ValueError("This needs what run_with_cache recorded of a decoder-only or an encoder-only model.")
        return self._model

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"ActivationCache({len(self)} tensors: {', '.join(self._tensors)})"


def depths_of(names: Iterable[str]) -> dict[str, int]:
    """How many blocks each stack has, by what the names of its points begin with."""
    counts: dict[str, int] = {}
    for name in names:
        stack, of_block, rest = name.partition("blocks.")
        if of_block:
            counts[stack] = max(counts.get(stack, 0), int(rest.partition(".")[0]) + 1)
    return counts


def suggested(name: str, known: Iterable[str]) -> str:
    """A question after what may have been meant by a name that is none of those known; empty if nothing comes near."""
    known = sorted(known)
    short = [other for other in known if other.endswith(f".hook_{name.rpartition('.')[2].removeprefix('hook_')}")]
    close = difflib.get_close_matches(name, known, n=3) or short[:1]
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _missing(name: str) -> str:
    """Why a point that is recorded only on request was not; empty for any other."""
    if not f"attn.hook_{name.rpartition('.')[2].removeprefix('hook_')}".endswith(ON_REQUEST):
        return ""
    return f"{name!r} is recorded only on request, because it is large: give its full name in names_filter."


def _has_parts(name: str, module: str) -> bool:
    """True if the dotted `module` stands in the dotted `name` as whole parts."""
    return not module or f".{module}." in f".{name}."
