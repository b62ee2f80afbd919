"""Reads the page state: what a link holds, as the table of parameters says.

from pages.ui.host.page_state import PageState
state = PageState.of({"model": "induction", "layer": "1"})
state.layer, state.prompt, state.notices     # 1, None, ()
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.host import link_values as read
from transformer.frontend import FOLDER
from transformer.inference.intervention_kinds import MOST_CHARACTERS

_TABLE = json.loads((FOLDER / "parameters.json").read_text(encoding="utf-8"))
FILES = "files"
"""Stands for a view's files and lines of Python, where a page says which parameters it draws something of."""
PARAMETERS: Mapping[str, Mapping[str, Any]] = {row["name"]: row for row in _TABLE["parameters"]}
"""The rows of the table by name, in the order of a link."""
LONGEST_ADDRESS: int = _TABLE["longest_address"]
"""Characters of a link's parameters, percent-encoded."""
FIRST_MODEL: str = PARAMETERS["model"]["first"]
"""The model of an address without parameters."""
DEFAULT_MODEL: str = PARAMETERS["model"]["default"]
"""The model of a link that names none."""


def _parser(row: Mapping[str, Any]) -> Callable[[str], Any]:
    """What reads the value of a parameter from a link. It raises a ValueError that says what would do."""
    match row["kind"]:
        case "text" | "hook":
            return read.Text(row["longest"], row.get("pattern", ""))
        case "integer" | "number" as kind:
            return read.Number(int if kind == "integer" else float, row["low"], row["high"], row["called"])
        case "option":
            return read.OneOf(*row["options"])
        case "options":
            return read.SomeOf(tuple(row["options"]))
        case "integers":
            return read.Integers(row["low"], row["high"], row["most"], row["called"], row.get("distinct", False))
        case "tokens":
            return read.written(row["longest"])
        case kind:
            changes = read.Text(MOST_CHARACTERS)
            return {"zoom": read.zoom, "circuit": read.circuit, "changes": changes, "answers": read.answers}[kind]


PARSERS = {name: _parser(row) for name, row in PARAMETERS.items()}
"""What reads each parameter from a link."""


def _default(row: Mapping[str, Any]) -> Any:
    """A parameter's default as its parser would give it."""
    if row["kind"] in ("options", "tokens"):
        return ()
    return float(row["default"]) if row["kind"] == "number" and row["default"] is not None else row["default"]


_DEFAULTS = {name: _default(row) for name, row in PARAMETERS.items()}


@dataclass(frozen=True)
class PageState:
    """What a link holds, parsed; the table says what each parameter means.

    None and an empty tuple stand for what the model or the text decides.
    """

    model: str
    prompt: str | None
    reads: str
    changes: str
    scope: str
    question: str
    effect: str
    token: int | None
    other_prompt: str | None
    own_token: int | None
    other_token: int | None
    ladder: str
    beside: str
    other_model: str | None
    length: int
    width: int
    base: float
    position: int
    dimension: int
    waves: tuple[int, ...] | None
    shift: int
    filler: int
    masks_shown: int
    positions_shown: int
    batch: str | None
    batch_row: int
    pad_side: str
    learn: str
    room: str
    lesson: str
    lesson_step: int
    answers: str
    written: tuple[int, ...]
    branches: str
    temperature: float
    top_k: int
    top_p: float
    seed: int
    tokens: int
    pace: str
    attention: str
    layer: int | None
    head: int | None
    step: int | None
    stage: str
    query: int | None
    key: int | None
    zoom: tuple[int, int, int, int] | None
    without: tuple[str, ...]
    order: str
    direction: str
    derivation: str
    inside: str
    place: int | None
    source_place: int | None
    cell: tuple[int, ...] | None
    heads: str
    moment: float | None
    folds: tuple[str, ...]
    candidate: int | None
    circuit: tuple[str | int, ...] | None
    task: str
    corpus: str | None
    shape: str
    rung: str
    n_layers: int
    n_heads: int
    d_model: int
    context: int
    positions: str
    norm: str
    steps: int
    snapshot: int | None
    notices: tuple[str, ...] = ()
    """What couldn't be used, a sentence each."""

    @classmethod
    def of(cls, link: Mapping[str, str]) -> "PageState":
        """Read a link's parameters. Where a value can't be used, the default is, and a notice says so."""
        values, notices = dict(_DEFAULTS), []
        for name in [name for name in PARAMETERS if name in link]:
            text = link[name]
            try:
                values[name] = PARSERS[name](renamed(name, text))
            except ValueError as error:
                notices.append(f"The link has {name} = “{text[:40]}”, but {error}. The default is used instead.")
        if values["width"] % 2:
            values["width"] += 1
            notices.append(f"A sinusoidal table has an even width, so {values['width']} is used.")
        return cls(**values, notices=tuple(notices))

    @property
    def texts(self) -> dict[str, str]:
        """As a link has it: the model always, others where they aren't the default."""
        texts = {name: as_text(name, getattr(self, name)) for name in PARAMETERS}
        return {"model": self.model} | {name: text for name, text in texts.items() if text is not None}


def renamed(name: str, text: str) -> str:
    """A parameter's value as it is called today."""
    return PARAMETERS[name].get("aliases", {}).get(text, text)


def as_text(name: str, value: Any) -> str | None:
    """A value as a link has it; None for the default, which a link leaves out."""
    if value is None or value == _DEFAULTS[name]:
        return None
    if isinstance(value, tuple):
        return ("." if PARAMETERS[name]["kind"] == "tokens" else ",").join(map(str, value))
    # The shortest decimal that reads back as the same float: 0.8, and 10000 without its ".0".
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def drawn_by(page: str, view: str = "") -> tuple[str, ...]:
    """The parameters of which Python draws something on a page that may embed another's view.

    A file or lines of Python (`FILES`) may hold anything.
    """
    return tuple(name for name, row in PARAMETERS.items() if view == FILES or not {page, view}.isdisjoint(row["pages"]))
