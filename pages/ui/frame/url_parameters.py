"""Converts a visitor's choices to URL parameters, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pages.ui.frame import visitor_choices
from pages.ui.frame.visitor_choices import BESIDE, EFFECTS, HEADS, LONGEST, PACES, QUESTIONS, READS, Visitor
from pages.ui.models import changes, lesson_answers
from pages.ui.models.selection import DERIVATIONS, DIRECTIONS, FARTHEST, FOLDS, LATEST, RULES, SHARES, STAGES
from transformer import MEASURES, TASKS
from transformer.data.corpora import SOURCES
from transformer.training.presets import LADDERS, RUNGS

LONGEST_QUERY = 7_500
"""Characters of a link's parameters, percent-encoded. Many servers in front of an app refuse a line over 8,000."""
LIMITS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_k": (0, 100),
    "top_p": (0.05, 1.0),
    "seed": (0, 2**31 - 1),
    "tokens": (1, 500),
}
"""The numbers that dials go from and to; whole ones where both ends are."""
MAX_WAVES = 6
MAX_DIMENSIONS = 4
SELECTION_FIELDS = (
    "layer",
    "head",
    "query",
    "key",
    "stage",
    "zoom",
    "without",
    "order",
    "direction",
    "share",
    "derivation",
    "inside",
    "place",
    "source_place",
    "cell",
    "heads",
    "moment",
    "folds",
    "candidate",
    "circuit",
    "step",
    "written",
    "branches",
    "temperature",
    "top_k",
    "top_p",
    "seed",
    "tokens",
    "pace",
    "attention",
)
"""What the browser holds: the view, a text, and how it is generated; the same names as in `frontend/view_state.js`."""
TRAINED = {
    "task",
    "corpus",
    "shape",
    "rung",
    "n_layers",
    "n_heads",
    "d_model",
    "context",
    "positions",
    "norm",
    "steps",
    "snapshot",
}
"""What the page Train has beside what it learns from, which stands in a link wherever one of these does."""
TOO_LONG = {
    "written": "what was written",
    "branches": "its branches",
    "batch": "the batch",
    "prompt": "the prompt",
    "other_prompt": "the other prompt",
    "answers": "your answers",
    "changes": "the changes of the model",
}
"""The texts that a link may have no room for, and what they are called."""
_VIEWS = (
    (),
    ("written",),
    ("batch",),
    ("written", "batch"),
    ("other_prompt",),
    ("written", "other_prompt"),
    ("written", "batch", "other_prompt"),
    ("written", "prompt"),
    ("written", "prompt", "other_prompt"),
    ("written", "batch", "prompt", "other_prompt"),
    ("written", "batch", "prompt", "other_prompt", "changes"),
)
SACRIFICES = ((), ("branches",), *(("branches", "answers", *names) for names in _VIEWS))
"""What is left out of a link that would be too long: the first of these that makes it short enough."""
BELONGS_TO = {
    "prompt": ("query", "key", "zoom", "place", "source_place", "cell", "candidate"),
    "written": ("step", "query", "key", "zoom", "place", "cell", "candidate"),
    "branches": (),
    "batch": ("batch_row",),
    "other_prompt": ("own_token", "other_token"),
    "changes": (),
    "answers": (),
}
"""What means nothing without a text that was left out."""


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


def _text(name: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if len(text) > LONGEST[name]:
            raise ValueError(f"it can have at most {LONGEST[name]:,} characters")
        return text

    return parse


def _waves(text: str) -> tuple[int, ...]:
    dimension = Number(int, 0, 511, "each dimension")
    chosen = tuple(dict.fromkeys(dimension(part) for part in text.split(","))) if text else ()
    if len(chosen) > MAX_WAVES:
        raise ValueError(f"at most {MAX_WAVES} waves can be drawn")
    return chosen


def _answers(text: str) -> str:
    lesson_answers.from_text(text)
    return text


def _zoom(text: str) -> tuple[int, ...]:
    place = Number(int, 0, 10**6, "each place")
    found = tuple(map(place, text.split(",")))
    if len(found) != 4 or found[0] >= found[1] or found[2] >= found[3]:
        raise ValueError("it needs the first query, the one after the last, and the same of the keys")
    return found


def _cell(text: str) -> tuple[int, ...]:
    place = Number(int, 0, 10**6, "each number")
    found = tuple(map(place, text.split(",")))
    if len(found) > MAX_DIMENSIONS:
        raise ValueError(f"a tensor has at most {MAX_DIMENSIONS} dimensions")
    return found


def _circuit(text: str) -> tuple[str | int, ...]:
    kind, _, rest = text.partition(",")
    attention, _, numbers = rest.partition(",")
    places = tuple(map(Number(int, 0, FARTHEST - 1, "each number"), numbers.split(",")))
    if len(text) > LONGEST["inside"] or len(places) not in (2, 4):
        raise ValueError("it needs a kind, an attention, a head, a distance, and perhaps a row and a column")
    return kind, attention, *places


def _written(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(\d{1,7}(\.\d{1,7})*)?", text, re.ASCII):
        raise ValueError("it needs the tokens' numbers with dots between them")
    found = tuple(map(int, text.split("."))) if text else ()
    if len(found) > LONGEST["text"]:
        raise ValueError(f"it can have at most {LONGEST['text']:,} tokens")
    return found


def _branches(text: str) -> str:
    if len(text) > LONGEST["branches"] or not re.fullmatch(r"[\d._*]*", text, re.ASCII):
        raise ValueError("it isn't what this app writes")
    return text


def _some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        chosen = set(map(_one_of(*choices), text.split(","))) if text else set()
        return tuple(choice for choice in choices if choice in chosen)

    return parse


PARSERS: dict[str, Callable[[str], Any]] = {
    "model": _text("model"),
    "prompt": _text("prompt"),
    "reads": _one_of(*READS),
    "text": _text("text"),
    "written": _written,
    "branches": _branches,
    "changes": changes.from_text,
    "temperature": Number(float, *LIMITS["temperature"], "the temperature"),
    "top_k": Number(int, *LIMITS["top_k"], "top-k"),
    "top_p": Number(float, *LIMITS["top_p"], "top-p"),
    "seed": Number(int, *LIMITS["seed"], "the seed"),
    "tokens": Number(int, *LIMITS["tokens"], "the number of tokens"),
    "pace": _one_of(*PACES),
    "attention": _one_of("encoder", "decoder", "cross"),
    "layer": Number(int, 0, 1000, "the layer"),
    "head": Number(int, 0, 1000, "the head"),
    "step": Number(int, 0, 10**6, "the step"),
    "scope": _one_of("prompt", "all"),
    "stage": _one_of(*STAGES),
    "query": Number(int, 0, 10**6, "the query's position"),
    "key": Number(int, 0, 10**6, "the key's position"),
    "zoom": _zoom,
    "without": _some_of(*sorted(RULES)),
    "order": _one_of("", *(measure.name for measure in MEASURES)),
    "direction": _one_of(*DIRECTIONS),
    "share": _one_of(*SHARES),
    "derivation": _one_of("", *DERIVATIONS),
    "inside": _text("inside"),
    "place": Number(int, 0, 10**6, "the token's position"),
    "source_place": Number(int, 0, 10**6, "the position in the source"),
    "cell": _cell,
    "heads": _one_of(*HEADS),
    "moment": Number(float, 0, LATEST, "the moment"),
    "folds": _some_of(*FOLDS),
    "candidate": Number(int, 0, 10**6, "the token"),
    "circuit": _circuit,
    "question": lambda text: _one_of(*QUESTIONS)(visitor_choices.EARLIER_QUESTIONS.get(text, text)),
    "effect": _one_of(*EFFECTS),
    "token": Number(int, 0, 10**6, "the token"),
    "other_prompt": _text("other_prompt"),
    "own_token": Number(int, 0, 10**6, "the prompt's token"),
    "other_token": Number(int, 0, 10**6, "the other prompt's token"),
    "ladder": _one_of(*LADDERS),
    "beside": _one_of(*BESIDE),
    "other_model": _text("other_model"),
    "length": Number(int, 2, 512, "the length of the table"),
    "width": Number(int, 2, 512, "the width of the table"),
    "base": Number(float, 2, 1e6, "the base"),
    "position": Number(int, 0, 511, "the position"),
    "dimension": Number(int, 0, 511, "the dimension"),
    "waves": _waves,
    "shift": Number(int, 0, 511, "the shift"),
    "filler": Number(int, 0, 8, "the number of padding tokens"),
    "masks_shown": Number(int, 8, 10**4, "the number of tokens shown"),
    "positions_shown": Number(int, 8, 10**4, "the number of tokens shown"),
    "batch": _text("batch"),
    "batch_row": Number(int, 0, 7, "the prompt of the batch"),
    "pad_side": _one_of("right", "left"),
    "learn": _one_of("task", "text", "own"),
    "task": _one_of(*TASKS),
    "corpus": _one_of(*SOURCES),
    "shape": _one_of("quick", "rung", "dials"),
    "rung": _one_of(*(preset.name for rungs in RUNGS.values() for preset in rungs)),
    "n_layers": Number(int, 1, 6, "the number of layers"),
    "n_heads": _one_number_of(1, 2, 4, 8),
    "d_model": _one_number_of(16, 32, 48, 64, 96, 128, 192),
    "context": _one_number_of(8, 16, 32, 64, 128),
    "positions": _one_of("sinusoidal", "learned", "rotary", "none"),
    "norm": _one_of("pre", "post"),
    "steps": Number(int, 50, 3000, "the number of steps"),
    "snapshot": Number(int, 0, 10**6, "the step of the training"),
    "room": _text("room"),
    "room_key": _text("room_key"),
    "lesson": _text("lesson"),
    "lesson_step": Number(int, 0, lesson_answers.MAX_STEPS, "the step of the lesson"),
    "answers": _answers,
}
"""How each field is read from the URL. A ValueError says what would do; what the model decides is checked later."""


def from_query(parameters: Mapping[str, str]) -> Visitor:
    """Read a link. What can't be used keeps its default, and a notice says so."""
    found = Visitor()
    for name, parse in PARSERS.items():
        if name in parameters:
            try:
                setattr(found, name, parse(parameters[name]))
            except changes.PartlyInvalidError as error:
                setattr(found, name, error.kept)
                found.notices.append(str(error))
            except ValueError as error:
                shown = parameters[name][:40]
                found.notices.append(f"The link has {name} = “{shown}”, but {error}. The default is used instead.")
    if "learn" not in parameters and not TRAINED.isdisjoint(parameters):
        found.learn = "task"  # which is what links left out when it was what the page began with
    if "effect" not in parameters and parameters.get("question") == "needed":
        found.effect = "loss"  # for the same reason
    if found.width % 2:
        found.width += 1
        found.notices.append(f"A sinusoidal table has an even width, so {found.width} is used.")
    return found


def to_query(current: Visitor) -> dict[str, str]:
    """The link's parameters: everything that differs from the default, less what makes it too long."""
    return _without(_everything(current), left_out(current))


def selection_in_query(current: Visitor) -> dict[str, str]:
    """Of those the ones that are looked at, which the browser writes into the address by itself."""
    return {name: value for name, value in _everything(current).items() if name in SELECTION_FIELDS}


def left_out_parameters(current: Visitor) -> dict[str, str]:
    """The parameters that the link has no room for, those that mean nothing without them among them."""
    everything = _everything(current)
    return {name: value for name, value in everything.items() if name not in _without(everything, left_out(current))}


def left_out(current: Visitor) -> list[str]:
    """The texts that the link has no room for, of those in `TOO_LONG`."""
    parameters = _everything(current)
    fitting = (names for names in SACRIFICES if len(urlencode(_without(parameters, names))) <= LONGEST_QUERY)
    return [name for name in next(fitting, SACRIFICES[-1]) if parameters.get(name)]  # one that is empty takes no room


def _without(parameters: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    gone = {part for name in names if parameters.get(name) for part in (name, *BELONGS_TO[name])}
    return {name: value for name, value in parameters.items() if name not in gone}


def _everything(current: Visitor) -> dict[str, str]:
    defaults = Visitor()
    changed = {name: getattr(current, name) for name in PARSERS if getattr(current, name) != getattr(defaults, name)}
    if not TRAINED.isdisjoint(changed):
        changed["learn"] = current.learn
    return {name: _as_text(name, value) for name, value in {"model": current.model, **changed}.items()}


def _as_text(name: str, value: Any) -> str:
    if name == "written":
        return ".".join(map(str, value))
    if isinstance(value, tuple) and value and isinstance(value[0], changes.Change):
        return changes.as_text(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    # The shortest decimal that reads back as the same float: 0.8, and 10000 without its ".0".
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
