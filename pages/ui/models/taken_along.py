"""The numbers of a view of the page Inside as a visitor takes them along: a file for Python, or a page of its own.

Asked for as in `transformer.api.tensors`. Both are made from a pass of their own, and not remembered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pages.ui.models.library import OpenModel
from transformer import Recording, record_pass
from transformer.api.tensors import Interventions, Tokens, infos_of, of_parameters, one_at_a_time
from transformer.frontend.saved_page import inside_page
from transformer.inference.outline import TensorInfo, tensors_of
from transformer.inference.recompute import whole_pass

MOST_BYTES = 64_000_000
"""Of a file: the numbers are in memory twice while it is made, and the server keeps it until it is fetched."""
OUTPUTS = frozenset({"logits", "probabilities"})


def too_much(model: OpenModel, tokens: Tokens, source: Tokens, place: str) -> str | None:
    """Why the numbers of a view, as `file_of` takes it, don't go into a file, and what would; None where they do."""
    size = _size(model, len(tokens), len(source), place)
    if size <= MOST_BYTES:
        return None
    infos = infos_of(model.checkpoint.model.config, len(tokens), len(source))
    said = f"All numbers of this view take {size / 1e6:,.0f} MB, and a file holds at most {MOST_BYTES / 1e6:,.0f} MB."
    if place in infos and infos[place].kind == "parameter":
        return f"{said} They are weights, and all in the model's own file, `model.safetensors`."
    ways = []
    if longest := _longest(model, len(tokens), len(source), place):
        ways.append("take a text of one token" if longest == 1 else f"take a text of at most {longest} tokens")
    if place not in infos:
        ways.append("open a part of it in the picture above, such as a sublayer or a tensor")
    return f"{said} {' or '.join(ways).capitalize()}." if ways else said


def _longest(model: OpenModel, tokens: int, source: int, place: str) -> int:
    """How many tokens a text may have at most, so that the numbers of a view go into a file; 0 where none does."""
    low, high = 0, tokens
    while low < high:
        middle = (low + high + 1) // 2
        fits = _size(model, middle, source, place) <= MOST_BYTES
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _size(model: OpenModel, tokens: int, source: int, place: str) -> int:
    """Bytes of the numbers of a view, of a text of so many tokens."""
    infos = tensors_of(model.checkpoint.model.config, tokens, source)
    return sum(math.prod(info.sizes) * (1 if name.endswith("hook_mask") else 4)
               for name, info in infos.items() if _is_in_view(name, info, place))  # fmt: skip


def file_of(
    model: OpenModel, tokens: Tokens, source: Tokens, place: str, interventions: Interventions = ()
) -> Recording:  # fmt: skip
    """The numbers of a view, for a file that a visitor takes along, named and laid out as the engine has them.

    place: what is open: a tensor, or a module, whose points and parameters they are. Of the whole model, which is "",
    they are what its picture is drawn of: the residual stream and what is added to it, the attention weights, the
    logits and probabilities.
    Raises: ValueError, saying what would do, for a view of more than `MOST_BYTES`.
    """
    if problem := too_much(model, tokens, source, place):
        raise ValueError(problem)
    infos = infos_of(model.checkpoint.model.config, len(tokens), len(source))
    chosen = [name for name, info in infos.items() if _is_in_view(name, info, place)]
    known = of_parameters(model.checkpoint).tensors
    points = [name for name in chosen if name not in known]
    with one_at_a_time:
        found = whole_pass(model.checkpoint.model, tokens, source, names=frozenset(points).__contains__,
                           interventions=interventions, outputs=not OUTPUTS.isdisjoint(chosen))  # fmt: skip
    labels = model.checkpoint.tokenizer.labels
    return Recording(
        {name: found.tensors[name].detach().numpy() for name in chosen},
        {
            "config": found.config.to_dict(),
            "labels": {"text": labels(tokens), "source": labels(source)},
            "ids": {"text": tokens, "source": source},
        },
    )


def page_of(
    model: OpenModel, tokens: Tokens, source: Tokens, interventions: Interventions = (), *,
    options: Mapping[str, Any],
) -> str:  # fmt: skip
    """A pass as an HTML page that needs no server. options: what else `inside_page` takes.

    Raises: ValueError for a pass that is too large.
    """
    checkpoint = model.checkpoint
    with one_at_a_time:
        found = record_pass(checkpoint.model, tokens, source, labels=checkpoint.tokenizer.labels,
                            interventions=interventions)  # fmt: skip
        return inside_page(found, **options).html


def _is_in_view(name: str, info: TensorInfo, place: str) -> bool:
    if place:
        return name == place or name.startswith(f"{place}.")
    return info.kind == "output" or name.endswith("hook_pattern") or (
        info.kind == "point" and info.dims == ("pos", "d_model")
    )
