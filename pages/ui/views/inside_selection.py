"""Says what is selected on the page Inside, as its pass has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pages.ui.frame.page import Session
from transformer import ModelConfig, attention_modules
from transformer.api.pass_inputs import PassInputs
from transformer.api.tensors import infos_of
from transformer.inference.circuits import circuits_of

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
    """What is unfolded below the picture, as `folds` in `parameters.json` lists it."""
    candidate: int | None = None
    """The token of the vocabulary that is asked about there; None: the likeliest next one."""
    circuit: tuple[str | int, ...] | None = None
    """A circuit: its kind, attention, head, the distance from query to key, and perhaps row and column of a cell; None:
    of what is looked at above."""


def selection_of(session: Session, inputs: PassInputs) -> Selection:
    """What the visitor looks at, in tokens of this pass; what it doesn't have is left out."""
    current, config = session.state, inputs.model.checkpoint.model.config
    infos = infos_of(config, len(inputs.tokens), len(inputs.source))
    is_here = not current.inside or any(f"{name}.".startswith(f"{current.inside}.") for name in infos)
    sizes = infos[current.inside].sizes if current.inside in infos else ()
    place = None if current.place is None else current.place - inputs.begin
    return Selection(
        open=current.inside if is_here else "",
        token=place if _is_within(place, len(inputs.tokens)) else None,
        source=current.source_place if _is_within(current.source_place, len(inputs.source)) else None,
        head=current.head if current.heads == "one" and attention_modules(config) else None,
        cell=current.cell if _is_cell(current.cell, sizes) else None,
        moment=current.moment if is_here else None,
        folds=current.folds,
        candidate=current.candidate if _is_within(current.candidate, config.vocab_size) else None,
        circuit=current.circuit if _is_circuit(current.circuit, config) else None,
    )


def _is_cell(cell: Any, sizes: Sequence[int]) -> bool:
    """Whether a tensor of these sizes has this cell."""
    return isinstance(cell, tuple) and 0 < len(cell) == len(sizes) and all(map(_is_within, cell, sizes))


def _is_circuit(circuit: Any, config: ModelConfig) -> bool:
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
