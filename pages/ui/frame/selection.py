"""Defines what can be selected on the pages Attention and Inside, and checks it against a pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer import ModelConfig, attention_modules
from transformer.inference.circuits import circuits_of

STAGES = ("raw", "scaled", "capped", "biased", "masked", "weights")
RULES = ("mask", "scale")
"""What one head's picture can be redrawn without."""
DIRECTIONS = ("from", "to")
DERIVATIONS = ("open", "closed")
"""Whether it is seen how the weights come about."""
FOLDS = ("lens", "who", "checks", "circuits")
"""What can be unfolded below the picture of the page Inside."""
LATEST = 1e6
"""The last moment that Play can be at."""
FARTHEST = 10**6
"""What the distance and the cell of a circuit are below; the browser knows how much of it there is."""


@dataclass(frozen=True)
class Selection:
    """What is looked at. Tokens are counted from the first that the model reads."""

    open: str = ""
    """A tensor or a module, "blocks.1.attn" for example; empty: the whole model."""
    token: int | None = None
    """In the text of the stack that writes; None: the newest."""
    source: int | None = None
    """In the text that an encoder reads; None: none of them."""
    head: int | None = None
    """None: all of a layer, or their mean."""
    cell: tuple[int, ...] | None = None
    """A cell of the tensor that is open, by its indices."""
    moment: float | None = None
    """Where Play stands; None: it isn't being played."""
    folds: tuple[str, ...] = ()
    """What is unfolded below the picture, of `FOLDS`."""
    candidate: int | None = None
    """The token of the vocabulary that is asked about there; None: the likeliest next one."""
    circuit: tuple[str | int, ...] | None = None
    """A circuit: its kind, attention, head, the distance from query to key, and perhaps row and column of a cell; None:
    of what is looked at above."""


def is_cell(cell: Any, sizes: Sequence[int]) -> bool:
    """Whether a tensor of these sizes has this cell."""
    return isinstance(cell, tuple) and 0 < len(cell) == len(sizes) and all(map(_is_within, cell, sizes))


def is_circuit(circuit: Any, config: ModelConfig) -> bool:
    """Whether a model has this circuit, and its matrix may have this cell."""
    modules = [module for of_kind in attention_modules(config).values() for module in of_kind]
    match circuit:
        case (str(kind), str(attention), head, *positions) if attention in modules and kind in circuits_of(
            config, attention
        ):
            return (
                _is_within(head, config.n_heads)
                and len(positions) in (1, 3)
                and all(_is_within(position, FARTHEST) for position in positions)
            )
    return False


def _is_within(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count
