"""Converts a visitor's choices to URL parameters, and back."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from pages.ui.frame.visitor_choices import PARSERS, Selection, Training, Visitor, fields
from pages.ui.models import changes

LONGEST_QUERY = 7_500
"""Characters of a link's parameters, percent-encoded. Many servers in front of an app refuse a line over 8,000."""
SELECTION_FIELDS = tuple(fields(Selection))
"""What the browser holds."""
TRAINED = set(fields(Training))
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


def embedded(link: str) -> str:
    """A link for a frame in another page: it opens the app without what a frame has no room for."""
    return f"{link}{'&' if '?' in link else '?'}embed=true"


def from_query(parameters: Mapping[str, str]) -> Visitor:
    """Read a link. What can't be used keeps its default, and a notice says so."""
    visitor = Visitor()
    for name, parse in PARSERS.items():
        if name in parameters:
            try:
                setattr(visitor, name, parse(parameters[name]))
            except changes.PartlyInvalidError as error:
                setattr(visitor, name, error.kept)
                visitor.notices.append(str(error))
            except ValueError as error:
                shown = parameters[name][:40]
                visitor.notices.append(f"The link has {name} = “{shown}”, but {error}. The default is used instead.")
    if "learn" not in parameters and not TRAINED.isdisjoint(parameters):
        visitor.learn = "task"  # which is what links left out when it was what the page began with
    if "effect" not in parameters and parameters.get("question") == "needed":
        visitor.effect = "loss"  # for the same reason
    if visitor.width % 2:
        visitor.width += 1
        visitor.notices.append(f"A sinusoidal table has an even width, so {visitor.width} is used.")
    return visitor


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
