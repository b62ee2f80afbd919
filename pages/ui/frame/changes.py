"""Adds, removes and undoes the changes that a visitor makes to a model.

Changes belong to the model that they were made on: its layers, its heads, the tokens of its vocabulary. With another
model they are put away, and they come back with their own. A link's changes belong to the link's model.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models.changes import Change, Changes, in_force, problem_of, with_change, without_strength
from transformer import Intervention, ModelConfig, from_code, to_code
from transformer.inference.intervention_kinds import MOST_CHANGES, MOST_CHARACTERS

MAX_STEPS = 100
"""Steps that can be undone."""


@dataclass
class _ChangesOfModel:
    """What is put away with a model."""

    changes: Changes = ()
    before: list[Changes] = field(default_factory=list)
    """What it was changed to earlier, the latest last."""


def settle(name: str, config: ModelConfig) -> None:
    """Bring the visitor's changes to those of the model that is selected now; what it doesn't have is left out."""
    current = visitor()
    own = st.session_state.get("changed_model", name)
    if own != name:
        _changes_of(own).changes = current.changes
        current.changes = _changes_of(name).changes
    st.session_state["changed_model"] = name
    kept = []
    for change in current.changes:
        if problem := problem_of(change.intervention, config):
            current.notices.append(f"This change of the model is left out: {change}. Reason: {problem}.")
        else:
            kept.append(change)
    if len(kept) < len(current.changes):
        current.changes = tuple(kept)


def add(*interventions: Intervention) -> None:
    """Make changes, each in the place of one that differs from it by its dial alone; an equal one is turned on."""
    changes = visitor().changes
    for intervention in interventions:
        try:
            changes = with_change(changes, intervention)
        except ValueError as error:
            visitor().notices.append(f"This change wasn't added: {error}.")
            break
    _become(changes)


def take(wish: Mapping[str, Any], name: str, config: ModelConfig) -> None:
    """Do what an instrument in the browser asks for: `add` and `remove`, codes of interventions. They can be anything.

    name: of the model on screen; what was meant for another one isn't done.
    """
    if wish.get("model") != model_id(name):
        return
    wanted, unwanted = (_read(wish.get(name), config) for name in ("add", "remove"))
    if wanted:
        add(*wanted)
    if unwanted:
        without(unwanted)


def model_id(name: str) -> str:
    """What an instrument calls the model that it asks to change."""
    return name.replace("/", "-")


def listed(interventions: Iterable[Intervention]) -> list[dict[str, str]]:
    """Interventions as an instrument shows them: codes, and words."""
    return [{"code": to_code(intervention), "words": str(intervention)} for intervention in interventions]


def remove(change: Change) -> None:
    """Take a change back; nothing happens if it isn't there."""
    _become(tuple(other for other in visitor().changes if other != change))


def toggle(index: int) -> None:
    """Turn a change off, or on again."""
    changes = visitor().changes
    _become(tuple(Change(change.intervention, change.on != (at == index)) for at, change in enumerate(changes)))


def replace(index: int, intervention: Intervention, config: ModelConfig) -> None:
    """Put another in the place of a change; where that can't be, it stays as it is, and a notice says why."""
    changes = list(visitor().changes)
    if index >= len(changes):
        return
    problem = problem_of(intervention, config)
    others = {without_strength(change.intervention) for at, change in enumerate(changes) if at != index}
    if not problem and without_strength(intervention) in others:
        problem = "another change in the list affects the same part"
    if problem:
        visitor().notices.append(f"The change wasn't edited: {problem}.")
        return
    changes[index] = Change(intervention, changes[index].on)
    _become(tuple(changes))


def switch(intervention: Intervention) -> None:
    """Make a change; take it back if it is in force."""
    if intervention in in_force(visitor().changes):
        without([intervention])
    else:
        add(intervention)


def without(interventions: Iterable[Intervention]) -> None:
    """Take these back, of those that there are."""
    gone = set(interventions)
    _become(tuple(change for change in visitor().changes if change.intervention not in gone))


def clear() -> None:
    _become(())


def undo() -> None:
    """Go back to what was changed before the last step."""
    current, before = visitor(), _changes_of().before
    if before:
        current.changes = before.pop()


def show(menu: Callable[[int, Change], None]) -> None:
    """The list: each change in plain words, on or off, its menu, and what takes it back."""
    changes = visitor().changes
    if changes:
        st.caption("Changed in this model")
        with st.container(gap="xsmall", key="changes"):
            for index, change in enumerate(changes):
                _chip(index, change, menu)
    before = _changes_of().before
    if changes or before:
        with st.container(horizontal=True, gap="small"):
            widgets.button("Undo", undo, key="undo_change", icon="undo", type="tertiary", disabled=not before)
            if len(changes) > 1:
                widgets.button("Take all back", clear, key="clear_changes", type="tertiary")


def beyond(interventions: Iterable[Intervention], text: int, source: int) -> list[Intervention]:
    """Those of a position that a text of so many tokens, after a source of so many, doesn't have."""
    outside = []
    for intervention in interventions:
        of_source = getattr(intervention, "point", "").startswith("encoder.")
        position = getattr(intervention, "query", getattr(intervention, "position", None))
        # What a translator would write isn't written yet, and its pages show it all the same.
        if position is not None and (of_source or not source) and position >= (source if of_source else text):
            outside.append(intervention)
    return outside


def in_words(interventions: Iterable[Intervention]) -> str:
    """What is changed, in one sentence."""
    return f"Changed: {'; '.join(map(str, interventions))}."


def _read(codes: Any, config: ModelConfig) -> list[Intervention]:
    """Those of a browser's codes that say what can be done with this model."""
    interventions = []
    for code in codes[:MOST_CHANGES] if isinstance(codes, list) else ():
        if isinstance(code, str) and len(code) <= MOST_CHARACTERS:
            with contextlib.suppress(ValueError):
                intervention = from_code(code)
                intervention.check(config)
                interventions.append(intervention)
    return interventions


def sentence(intervention: Intervention) -> str:
    """One change as a sentence of its own."""
    words = str(intervention)
    return f"{words[0].upper()}{words[1:]}."


def _chip(at: int, change: Change, menu: Callable[[int, Change], None]) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        widgets.checkbox(
            plain(str(change)), Binding(f"change_{at}", value=change.on, take=lambda on: toggle(at)), width="stretch"
        )
        menu(at, change)
        widgets.button(
            "Remove this change", remove, change, key=f"remove_change_{hash(change)}", icon="close", type="tertiary"
        )


def _become(changes: Changes) -> None:
    current = visitor()
    if changes != current.changes:
        before = _changes_of().before
        before.append(current.changes)
        del before[:-MAX_STEPS]
        current.changes = changes


def _changes_of(name: str | None = None) -> _ChangesOfModel:
    """The changes of a model; without a name, of the one that is being changed."""
    by_model: dict[str, _ChangesOfModel] = st.session_state.setdefault("changes_of_other_models", {})
    return by_model.setdefault(st.session_state.get("changed_model", "") if name is None else name, _ChangesOfModel())
