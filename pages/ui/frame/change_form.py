"""Draws the form that changes a model: a part, a rule, or one weight."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.frame import changes, widgets
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code, counted, plain
from pages.ui.models import activations, library
from pages.ui.models.attention_kinds import shown_kind
from pages.ui.models.changes import LARGEST_FACTOR
from transformer import (
    Averaged,
    Intervention,
    ModelConfig,
    Replaced,
    Scaled,
    Steered,
    Weighed,
    Without,
    attention_modules,
    hook_points,
)
from transformer.inference.interventions import RULES
from transformer.inference.places_in_words import part_in_words, place_in_words

PARTS = {
    "head": ("A head", ("hook_z",)),
    "attention": ("An attention", ("hook_attn_out", "hook_cross_attn_out")),
    "feed-forward": ("A feed-forward layer", ("hook_mlp_out",)),
    "stream": ("The residual stream", ("hook_resid_pre", "hook_resid_mid", "hook_resid_cross", "hook_resid_post")),
    "embedding": ("The embedding", ("hook_embed", "hook_pos_embed")),
}
"""What can be changed, and the endings of its hook points."""
RULE, WEIGHT = "rule", "weight"
WHAT = {**{name: title for name, (title, _) in PARTS.items()}, RULE: "A rule", WEIGHT: "A weight of a head"}
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
"""What the form says at first; a place and a head that aren't chosen are those that are looked at."""


@dataclass(frozen=True)
class _Other:
    """Another prompt, as interventions take it."""

    tokens: tuple[int, ...]
    source: tuple[int, ...]


def show(name: str, prompt: str) -> None:
    """The form. name: of the model; prompt: what is in its box."""
    shape = library.config(name)
    offered = [what for what in WHAT if places(shape, what)]
    what = widgets.selectbox("What", offered, _tie("what"), WHAT.get)
    if what == RULE:
        wanted: Intervention | None = _rule(shape)
    elif what == WEIGHT:
        wanted = _weight(shape)
    else:
        wanted = _part(name, shape, what, prompt)
    # One that can't be pressed would say nothing of why; what is missing is said above it.
    if wanted is not None:
        st.caption(f"{plain(changes.sentence(wanted))}")
        st.button(
            "Change this", type="primary", width="stretch", key="change_this", on_click=changes.add, args=(wanted,)
        )


def close() -> None:
    """Let the form, when it opens next, be of the head that is looked at then."""
    _draft().update(where=None, head=None)


def _part(name: str, shape: ModelConfig, what: str, prompt: str) -> Intervention | None:
    """A part that is ablated, scaled or replaced; None while something is missing."""
    points = places(shape, what)
    where = _of(
        "Where",
        points,
        lambda point: part_in_words(Scaled(point)) if what != "head" else _of_attention(point),
        looked_at(shape, points),
    )
    head = _head(shape) if what == "head" else None
    how = widgets.selectbox("How", HOW, _tie("how"), HOW.get)
    position = None
    if widgets.checkbox("At one position only", _tie("one")):
        position = widgets.number_input("Position", 0, LAST_POSITION, _tie("position"))
    match how:
        case "silence":
            return Scaled(where, head, position)
        case "mean":
            return Averaged(where, head, position)
        case "scale":
            return Scaled(where, head, position, _factor())
    factor = _factor() if how == "steer" else 0.0
    other = _other(name, shape, "toward", "The other prompt" if how == "replace" else "Towards")
    against = _other(name, shape, "against", "Away from") if how == "steer" else other
    if other is None or against is None:
        return None
    if how == "steer":
        return Steered(where, head, position, other.tokens, against.tokens, other.source, factor, against.source)
    _compare_lengths(name, prompt, other)
    return Replaced(where, head, position, other.tokens, other.source)


def _rule(shape: ModelConfig) -> Intervention:
    """A pass without one of its rules."""
    rules = [rule for rule in RULES if wheres(shape, rule)]
    rule = widgets.selectbox("Which", rules, _tie("rule"), lambda rule: f"Without {RULES[rule]}")
    where = _of("Where", wheres(shape, rule), lambda where: place_in_words(where) if where else "everywhere", 0)
    return Without(rule, where)


def _weight(shape: ModelConfig) -> Intervention:
    """One weight of a head, set by hand."""
    points = places(shape, WEIGHT)
    where = _of("Where", points, _of_attention, looked_at(shape, points))
    head = _head(shape)
    query = widgets.number_input("Query: its position", 0, LAST_POSITION, _tie("query"))
    key = widgets.number_input("Key: its position", 0, LAST_POSITION, _tie("key"))
    weight = widgets.slider("Weight", 0.0, 1.0, _tie("weight"), step=0.01)
    shares = widgets.checkbox("The other keys share the rest", _tie("renormalised"))
    return Weighed(where, head, query, key, weight, shares)


def places(shape: ModelConfig, what: str) -> list[str]:
    """The hook points of what can be changed; for a rule, the rules that the model has."""
    if what == RULE:
        return [rule for rule in RULES if wheres(shape, rule)]
    if what == WEIGHT:
        return [f"{module}.hook_pattern" for modules in attention_modules(shape).values() for module in modules]
    endings = PARTS[what][1]
    return [point for point in hook_points(shape) if point.rpartition(".")[2] in endings]


def looked_at(shape: ModelConfig, points: list[str]) -> int:
    """Which of some hook points is of the attention that is looked at, or else of its layer; the first if none is."""
    current = visitor()
    kind = shown_kind(shape, current.attention)
    if kind is None:
        return 0
    modules = attention_modules(shape)[kind]
    module = modules[min(current.layer or 0, len(modules) - 1)]
    found = (
        at
        for begin in (module, module.rpartition(".")[0])
        for at, point in enumerate(points)
        if point.startswith(f"{begin}.")
    )
    return next(found, 0)


def alike(shape: ModelConfig, point: str) -> list[str]:
    """The hook points of what is of one kind with this one, which is among them."""
    ending = point.rpartition(".")[2]
    endings = next((endings for _, endings in PARTS.values() if ending in endings), (ending,))
    return [each for each in hook_points(shape) if each.rpartition(".")[2] in endings]


def wheres(shape: ModelConfig, rule: str) -> list[str]:
    """Where a model can go without a rule: everywhere, in a side of it, in a layer."""
    points = hook_points(shape)
    sides = [side for side in ("encoder.", "decoder.") if shape.architecture == "encoder-decoder"]
    within = (re.match(r"(.+\.)?blocks\.\d+\.", point) for point in points)
    layers = dict.fromkeys(found[0] for found in within if found)
    found = []
    for where in ("", *sides, *layers):
        try:
            Without(rule, where).check(shape)
        except ValueError:
            continue
        found.append(where)
    return found


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
    if shape.architecture == "decoder-only":
        return _Other(tokens, ())
    start = (card.start_token_id,)
    written = start + activations.answer(name, start, tokens)
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


def _factor() -> float:
    return widgets.number_input("Factor", -LARGEST_FACTOR, LARGEST_FACTOR, _tie("factor"), step=0.1)


def _head(shape: ModelConfig) -> int:
    return _of("Head", range(shape.n_heads), str, visitor().head or 0, "head")


def _of(label: str, options: Iterable[Any], labels: Any, first: int, field: str = "where") -> Any:
    """One of several places, which is remembered by its number. first: the one that is chosen at first."""
    options, chosen = list(options), _draft()[field]
    at = min(first if chosen is None else chosen, len(options) - 1)
    chosen = widgets.selectbox(label, range(len(options)), _tie(field, at), lambda place: labels(options[place]))
    return options[chosen]


def _of_attention(point: str) -> str:
    return place_in_words(point.rpartition(".")[0])


def _tie(field: str, value: Any = None) -> Binding:
    """A widget of the form, to what the form says."""
    draft = _draft()
    shown = draft[field] if value is None else value
    return Binding(f"change_{field}", value=shown, take=lambda found: draft.update({field: found}))


def _draft() -> dict[str, Any]:
    return st.session_state.setdefault("change_draft", dict(FIRST))
