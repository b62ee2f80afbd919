"""What belongs to one visitor: the choices every page shares, kept in the session and in the URL.

Streamlit drops a widget's state when its page is left, so the choices live in an object of our own, and each
widget is tied to one of its fields. The URL is read once, when the session begins, and written after each run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from transformer import TASKS
from transformer.data.corpora import SOURCES
from transformer.training.presets import PRESETS, Group

DEFAULT_MODEL = "shakespeare"
LONGEST_TEXT = 20_000
"""Characters of a prompt or a written text that a link may carry."""
PACES = {"slow": 2.0, "steady": 8.0, "fast": 25.0, "unbounded": float("inf")}
"""Tokens per second."""


@dataclass
class Visitor:
    """One visitor's choices. `None` stands for the default that the model or the text decides."""

    model: str = DEFAULT_MODEL
    prompt: str | None = None
    """None: the model's first example."""
    text: str = ""
    """What has been written after the prompt."""
    temperature: float = 0.8
    top_k: int = 0
    """0: off."""
    top_p: float = 1.0
    seed: int = 1
    tokens: int = 200
    """How many tokens *Generate* writes."""
    pace: str = "fast"
    attention: str = "cross"
    """Which attention of an encoder–decoder is shown."""
    layer: int = 0
    head: int = 0
    step: int | None = None
    """The token that is inspected, by its place in the whole text; None follows the newest."""
    scope: str = "prompt"
    query: int | None = None
    """The cell whose arithmetic is shown; None: the last query and its heaviest key."""
    key: int | None = None
    length: int = 64
    """Rows of the sinusoidal table."""
    width: int = 64
    base: float = 10000.0
    position: int = 5
    dimension: int = 4
    shift: int = 6
    filler: int = 3
    """Padding tokens after the prompt, on the page Masks."""
    batch: str | None = None
    """Prompts of unequal length, one a line; None: made from the model's examples."""
    batch_row: int = 0
    """The prompt of the batch whose masks are shown."""
    pad_side: str = "right"
    learn: str = "task"
    """What the page Train learns from: a task, a text that ships, or the visitor's own."""
    task: str = "induction"
    corpus: str | None = None
    """None until a text is asked for: then one that is on this machine."""
    own_text: str = ""
    """A text that was pasted; not part of any link."""
    shape: str = "quick"
    rung: str = "ladder-8-blocks"
    n_layers: int = 2
    n_heads: int = 4
    d_model: int = 64
    context: int = 32
    positions: str = "sinusoidal"
    norm: str = "pre"
    steps: int = 500
    notices: list[str] = field(default_factory=list)
    """What was wrong in the link, to be said once."""


@dataclass(frozen=True)
class Number:
    """A number in the URL, and the range it must lie in."""

    kind: type
    low: float
    high: float
    meaning: str

    def __call__(self, text: str) -> int | float:
        try:
            value = self.kind(text)
        except ValueError:
            value = float("nan")
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.meaning} must be a number from {self.low:,.12g} to {self.high:,.12g}")
        return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it can be {', '.join(choices)}")
        return text

    return parse


def _one_number_of(*choices: int) -> Callable[[str], int]:
    return lambda text: int(_one_of(*map(str, choices))(text))


def _short_text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a text in a link can have at most {LONGEST_TEXT:,} characters")
    return text


PARSERS: dict[str, Callable[[str], Any]] = {
    "model": _short_text,
    "prompt": _short_text,
    "text": _short_text,
    "temperature": Number(float, 0, 2, "the temperature"),
    "top_k": Number(int, 0, 100, "top-k"),
    "top_p": Number(float, 0.05, 1, "top-p"),
    "seed": Number(int, 0, 2**31 - 1, "the seed"),
    "tokens": Number(int, 1, 500, "the number of tokens"),
    "pace": _one_of(*PACES),
    "attention": _one_of("encoder", "decoder", "cross"),
    "layer": Number(int, 0, 1000, "the layer"),
    "head": Number(int, 0, 1000, "the head"),
    "step": Number(int, 0, 10**6, "the step"),
    "scope": _one_of("prompt", "all"),
    "query": Number(int, 0, 10**6, "the query's position"),
    "key": Number(int, 0, 10**6, "the key's position"),
    "length": Number(int, 2, 512, "the length of the table"),
    "width": Number(int, 2, 512, "the width of the table"),
    "base": Number(float, 2, 1e6, "the base"),
    "position": Number(int, 0, 511, "the position"),
    "dimension": Number(int, 0, 511, "the dimension"),
    "shift": Number(int, 0, 511, "the shift"),
    "filler": Number(int, 0, 8, "the number of padding tokens"),
    "batch": _short_text,
    "batch_row": Number(int, 0, 7, "the prompt of the batch"),
    "pad_side": _one_of("right", "left"),
    "learn": _one_of("task", "text", "own"),
    "task": _one_of(*TASKS),
    "corpus": _one_of(*SOURCES),
    "shape": _one_of("quick", "rung", "dials"),
    "rung": _one_of(*(preset.name for preset in PRESETS.values() if preset.group == Group.LADDER)),
    "n_layers": Number(int, 1, 6, "the number of layers"),
    "n_heads": _one_number_of(1, 2, 4, 8),
    "d_model": _one_number_of(16, 32, 48, 64, 96, 128, 192),
    "context": _one_number_of(8, 16, 32, 64, 128),
    "positions": _one_of("sinusoidal", "learned", "rotary", "none"),
    "norm": _one_of("pre", "post"),
    "steps": Number(int, 50, 3000, "the number of steps"),
}
"""How each field is read from the URL. A ValueError says what would do; what the model decides is checked later."""


def visitor() -> Visitor:
    """This session's visitor; made from the URL when the session begins."""
    if "visitor" not in st.session_state:
        st.session_state["visitor"] = from_query(st.query_params.to_dict())
    return st.session_state["visitor"]


def from_query(parameters: Mapping[str, str]) -> Visitor:
    """Read a link. What can't be used keeps its default, and a notice says so."""
    found = Visitor()
    for name, parse in PARSERS.items():
        if name in parameters:
            try:
                setattr(found, name, parse(parameters[name]))
            except ValueError as error:
                shown = parameters[name][:40]
                found.notices.append(f"The link has {name} = “{shown}”, but {error}. The default is used instead.")
    if found.width % 2:
        found.width += 1
        found.notices.append(f"A sinusoidal table has an even width, so {found.width} is used.")
    return found


def to_query(current: Visitor) -> dict[str, str]:
    """The link's parameters: everything that differs from the default."""
    defaults = Visitor()
    changed = {name: getattr(current, name) for name in PARSERS if getattr(current, name) != getattr(defaults, name)}
    values = {"model": current.model, **changed}
    # The shortest decimal that reads back as the same float: 0.8, and 10000 without its ".0".
    return {name: str(value).removesuffix(".0") if isinstance(value, float) else str(value)
            for name, value in values.items()}  # fmt: skip


def write_url() -> None:
    """Bring the address bar up to date; called at the end of each page."""
    parameters = to_query(visitor())
    if st.query_params.to_dict() != parameters:
        st.query_params.from_dict(parameters)


def link() -> str:
    """The address that opens this page in this state on any server that runs the app."""
    address = (st.context.url or "").split("?")[0]
    return f"{address}?{urlencode(to_query(visitor()))}"


def tied(name: str, after: Callable[[], None] | None = None) -> dict[str, Any]:
    """Keyword arguments that tie a widget to a field of the visitor, across pages.

    after: called once the field has taken the widget's new value, before the page runs.
    """
    key = f"tied_{name}"
    value = getattr(visitor(), name)
    # Another page's widget of this key has left its value, but only one that is set anew reaches this page's widget.
    page, drawn_on = st.session_state.get("page"), st.session_state.setdefault("tied_drawn_on", {})
    if st.session_state.get(key) != value or drawn_on.get(name) != page:
        st.session_state[key] = value
        drawn_on[name] = page

    def take() -> None:
        setattr(visitor(), name, st.session_state[key])
        if after:
            after()

    return {"key": key, "on_change": take}


def within(name: str, choices: int, what: str) -> int:
    """A field that counts something of the model's, such as layers; beyond the last one, the last, with a notice."""
    current = visitor()
    value = getattr(current, name)
    if value >= choices:
        current.notices.append(f"There is no {what} {value} here; the last one, {choices - 1}, is shown.")
        setattr(current, name, choices - 1)
    return getattr(current, name)


def fields() -> list[str]:
    """The names of the visitor's fields, notices left out."""
    return [entry.name for entry in dataclasses.fields(Visitor) if entry.name != "notices"]
