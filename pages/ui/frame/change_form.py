"""Draws the form that changes a model: a part, a rule, or one weight."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.computations import activations
from pages.ui.frame import changes, widgets
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code, counted, plain
from pages.ui.models import library
from pages.ui.models.attention_kinds import shown_kind
from pages.ui.models.changes import problem_of
from transformer import (
    Intervention,
    MeanAblate,
    ModelConfig,
    Patch,
    Scale,
    SetAttention,
    Steer,
    Without,
    attention_modules,
    hook_points,
)
from transformer.inference.intervention_kinds import FIELDS, PARTS, RULES
from transformer.inference.plain_names import describe_module, describe_part

RULE, WEIGHT = "rule", "weight"
WHAT = {**{name: part["title"] for name, part in PARTS.items()}, RULE: "A rule", WEIGHT: "A weight of a head"}
HOW = {
    "silence": "Ablate it",
    "mean": "Its mean over the text",
    "scale": "Times a factor",
    "replace": "As on another prompt",
    "steer": "Plus the difference between two prompts",
}
LAST_POSITION = 10**5
FIRST: dict[str, Any] = {
    "what": "head",
    "how": "silence",
    "where": None,
    "head": None,
    "one": False,
    "position": 0,
    "factor": 1.0,
    "toward": "",
    "against": "",
    "rule": "mask",
    "query": 0,
    "key": 0,
    "weight": 1.0,
    "renormalised": True,
}
"""What the form says at first; a hook point and a head that aren't chosen are those that are looked at."""


@dataclass(frozen=True)
class _Other:
    """Another prompt, as interventions take it."""

    tokens: tuple[int, ...]
    source: tuple[int, ...]


def show(name: str, prompt: str) -> None:
    """The form. name: of the model; prompt: what is in its box."""
    shape = library.config(name)
    offered = [what for what in WHAT if targets(shape, what)]
    what = widgets.selectbox("What", offered, _tie("what"), WHAT.__getitem__)
    if what == RULE:
        wanted: Intervention | None = _rule(shape)
    elif what == WEIGHT:
        wanted = _weight(shape)
    else:
        wanted = _part(name, shape, what, prompt)
    # One that can't be pressed would say nothing of why; what is missing is said above it.
    if wanted is not None:
        st.caption(f"The change: {plain(changes.sentence(wanted))}")
        widgets.button("Change this", changes.add, wanted, key="change_this", type="primary", width="stretch")


def close() -> None:
    """Let the form, when it opens next, be of the head that is looked at then."""
    _draft().update(where=None, head=None)


def _part(name: str, shape: ModelConfig, what: str, prompt: str) -> Intervention | None:
    """A part that is ablated, scaled or replaced; None while something is missing."""
    points = targets(shape, what)
    where = _of(
        "Where",
        points,
        lambda point: describe_part(Scale(point)) if what != "head" else _of_attention(point),
        looked_at(shape, points),
    )
    head = _head(shape) if what == "head" else None
    how = widgets.selectbox("How", HOW, _tie("how"), HOW.__getitem__)
    at = position(_tie("one"), _tie("position"))
    match how:
        case "silence":
            return Scale(where, head, at)
        case "mean":
            return MeanAblate(where, head, at)
        case "scale":
            return Scale(where, head, at, factor(_tie("factor")))
    strength = factor(_tie("factor")) if how == "steer" else 0.0
    other = _other(name, shape, "toward", "The other prompt" if how == "replace" else "Towards")
    against = _other(name, shape, "against", "Away from") if how == "steer" else other
    if other is None or against is None:
        return None
    if how == "steer":
        return Steer(where, head, at, other.tokens, against.tokens, other.source, strength, against.source)
    _compare_lengths(name, prompt, other)
    return Patch(where, head, at, other.tokens, other.source)


def _rule(shape: ModelConfig) -> Intervention:
    rules = [rule for rule in RULES if wheres(shape, rule)]
    rule = widgets.selectbox("Which", rules, _tie("rule"), lambda rule: f"Without {RULES[rule]['words']}")
    return Without(rule, _of("Where", wheres(shape, rule), in_words, 0))


def _weight(shape: ModelConfig) -> Intervention:
    """One weight of a head, set by hand."""
    points = targets(shape, WEIGHT)
    where = _of("Where", points, _of_attention, looked_at(shape, points))
    return SetAttention(where, _head(shape), *weight(_tie))


def weight(tie: Callable[[str], Binding]) -> tuple[int, int, float, bool]:
    """The fields of a weight that is set: query, key, the weight, whether the others share the rest."""
    query = widgets.number_input("Query: its position", 0, LAST_POSITION, tie("query"))
    key = widgets.number_input("Key: its position", 0, LAST_POSITION, tie("key"))
    set_to = widgets.slider("Weight", 0.0, 1.0, tie("weight"), step=0.01)
    return query, key, set_to, widgets.checkbox("The other keys share the rest", tie("renormalised"))


def position(only: Binding, binding: Binding) -> int | None:
    """The one position that is changed; None for all. only: of the box that says so."""
    if widgets.checkbox("At one position only", only):
        return widgets.number_input("Position", 0, LAST_POSITION, binding)
    return None


def factor(binding: Binding) -> float:
    dial = FIELDS["factor"]["dial"]
    return widgets.number_input("Factor", float(dial["from"]), float(dial["to"]), binding, step=dial["step"])


def in_words(where: str) -> str:
    """Where a rule is taken away."""
    return describe_module(where) if where else "everywhere"


def targets(shape: ModelConfig, what: str) -> list[str]:
    """The hook points of what can be changed; for a rule, the rules that the model has."""
    if what == RULE:
        return [rule for rule in RULES if wheres(shape, rule)]
    if what == WEIGHT:
        return [f"{module}.hook_pattern" for modules in attention_modules(shape).values() for module in modules]
    return [point for point in hook_points(shape) if point.rpartition(".")[2] in PARTS[what]["points"]]


def looked_at(shape: ModelConfig, points: list[str]) -> int:
    """Which of some hook points is of the attention that is looked at, or else of its layer; the first if none is."""
    current = visitor()
    kind = shown_kind(shape, current.attention)
    if kind is None:
        return 0
    modules = attention_modules(shape)[kind]
    module = modules[min(current.layer or 0, len(modules) - 1)]
    numbers = (
        at
        for begin in (module, module.rpartition(".")[0])
        for at, point in enumerate(points)
        if point.startswith(f"{begin}.")
    )
    return next(numbers, 0)


def alike(shape: ModelConfig, point: str) -> list[str]:
    """The hook points of what is of one kind with this one, which is among them."""
    ending = point.rpartition(".")[2]
    endings = next((part["points"] for part in PARTS.values() if ending in part["points"]), (ending,))
    return [other for other in hook_points(shape) if other.rpartition(".")[2] in endings]


def wheres(shape: ModelConfig, rule: str) -> list[str]:
    """Where a model can go without a rule: everywhere, in a side of it, in a layer."""
    points = hook_points(shape)
    sides = [side for side in ("encoder.", "decoder.") if shape.architecture == "encoder-decoder"]
    within = (re.match(r"(.+\.)?blocks\.\d+\.", point) for point in points)
    layers = dict.fromkeys(match[0] for match in within if match)
    return [where for where in ("", *sides, *layers) if not problem_of(Without(rule, where), shape)]


def _other(name: str, shape: ModelConfig, field: str, label: str) -> _Other | None:
    """Another prompt from its box; None, after saying why, while it can't be read."""
    text = widgets.text_area(label, _tie(field), height=80)
    tokenizer, card = library.tokenizer(name), library.model(name).card
    if not text:
        st.info(f"Type a prompt into “{label}”.")
        return None
    if unknown := tokenizer.unknown_pieces(text):
        st.error(f"This model has never seen {code(unknown[0].text)}. Remove it from “{label}”.")
        return None
    tokens = tuple(tokenizer.encode(text))
    if len(tokens) > shape.context_length:
        st.error(f"“{label}” has {len(tokens)} tokens, and this model reads at most {shape.context_length}.")
        return None
    if shape.architecture != "encoder-decoder":
        return _Other(tokens, ())
    written = card.start_tokens + activations.answer(name, card.start_tokens, tokens)
    return _Other((written[:-1] if written[-1] == card.end_token_id else written)[: shape.context_length], tokens)


def _compare_lengths(name: str, prompt: str, other: _Other) -> None:
    tokenizer = library.tokenizer(name)
    there = len(other.source or other.tokens)
    here = 0 if tokenizer.unknown_pieces(prompt) else len(tokenizer.encode(prompt))
    if here > there:
        st.caption(
            f"The other prompt has {counted(there, 'token')}, and yours {here}: what comes after stays as it "
            "is. With two prompts of one length all of it is replaced."
        )


def _head(shape: ModelConfig) -> int:
    return _of("Head", range(shape.n_heads), str, visitor().head or 0, "head")


def _of(label: str, options: Iterable[Any], labels: Any, first: int, field: str = "where") -> Any:
    """One of several, which is kept by its number. first: the one that is chosen at first."""
    options, chosen = list(options), _draft()[field]
    at = min(first if chosen is None else chosen, len(options) - 1)
    chosen = widgets.selectbox(label, range(len(options)), _tie(field, at), lambda number: labels(options[number]))
    return options[chosen]


def _of_attention(point: str) -> str:
    return describe_module(point.rpartition(".")[0])


def _tie(field: str, value: Any = None) -> Binding:
    """A widget of the form, to what the form says."""
    draft = _draft()
    shown = draft[field] if value is None else value
    return Binding(f"change_{field}", value=shown, take=lambda chosen: draft.update({field: chosen}))


def _draft() -> dict[str, Any]:
    return st.session_state.setdefault("change_draft", dict(FIRST))
