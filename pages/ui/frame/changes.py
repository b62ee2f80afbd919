"""Makes and takes back changes of a model that pages of Python ask for; the rest is the shell's.

Changes belong to the model that they were made on: its layers, its heads, the tokens of its vocabulary. With another
model they are put away, and they come back with their own. A link's changes belong to the link's model.
"""

from collections.abc import Iterable

import streamlit as st

from pages.ui.frame.state import visitor
from pages.ui.models.changes import Changes, in_force, problem_of, with_change
from transformer import Intervention, ModelConfig


def settle(name: str, config: ModelConfig) -> None:
    """Bring the visitor's changes to those of the model that is selected now; what it doesn't have is left out."""
    current = visitor()
    own = st.session_state.get("changed_model", name)
    if own != name:
        _put_away()[own] = current.changes
        current.changes = _put_away().get(name, ())
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
    visitor().changes = changes


def switch(intervention: Intervention) -> None:
    """Make a change; take it back if it is in force."""
    if intervention in in_force(visitor().changes):
        without([intervention])
    else:
        add(intervention)


def without(interventions: Iterable[Intervention]) -> None:
    """Take these back, of those that there are."""
    gone = set(interventions)
    visitor().changes = tuple(change for change in visitor().changes if change.intervention not in gone)


def _put_away() -> dict[str, Changes]:
    """The changes of the models that were shown before, by model."""
    return st.session_state.setdefault("changes_of_other_models", {})
