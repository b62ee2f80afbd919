"""Draws the menu of one change: its strength, its layer and head, and what it can become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.ui.frame import change_form, changes, widgets
from pages.ui.frame.change_form import LAST_POSITION
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models.changes import LARGEST_FACTOR, Change
from transformer import Averaged, Intervention, ModelConfig, Replaced, Scaled, Steered, Weighed, Without
from transformer.inference.places_in_words import part_in_words, place_in_words


def show(index: int, change: Change, shape: ModelConfig) -> None:
    """The menu of the change of this number."""
    # Opening it runs the page: what it offers is made only then.
    opened = st.popover(
        "Menu of this change", icon=":material/tune:", type="tertiary", key=f"change_menu_{index}", on_change="rerun"
    )
    if not opened.open:
        return
    with opened:
        st.markdown(f"{plain(changes.sentence(change.intervention))}")
        _Menu(index, change.intervention, shape).show()


class _Menu:
    """What one intervention can be turned into: each widget puts another in its place."""

    def __init__(self, index: int, intervention: Any, shape: ModelConfig) -> None:
        self._index, self._own, self._shape = index, intervention, shape

    def show(self) -> None:
        """All that fits it."""
        own, shape = self._own, self._shape
        for words, other in others(own):
            st.button(words, key=f"turn_{self._index}_{words}", width="stretch", on_click=self._become, args=(other,))
        if isinstance(own, Scaled | Steered):
            widgets.number_input("Factor", -LARGEST_FACTOR, LARGEST_FACTOR, self._tie("factor"), step=0.1)
        if isinstance(own, Without):
            self._select(
                "Where",
                change_form.wheres(shape, own.rule),
                "where",
                lambda where: place_in_words(where) if where else "everywhere",
            )
            return
        self._select("Where", change_form.alike(shape, own.point), "point", self._named)
        if own.head is not None:
            self._select("Head", range(shape.n_heads), "head", str)
        if isinstance(own, Weighed):
            self._show_weight()
        else:
            self._show_position()

    def _show_weight(self) -> None:
        widgets.number_input("Query: its position", 0, LAST_POSITION, self._tie("query"))
        widgets.number_input("Key: its position", 0, LAST_POSITION, self._tie("key"))
        widgets.slider("Weight", 0.0, 1.0, self._tie("weight"), step=0.01)
        widgets.checkbox("The other keys share the rest", self._tie("renormalised"))

    def _show_position(self) -> None:
        position = self._own.position
        binding = Binding(
            f"change_{self._index}_one", position is not None, take=lambda one: self._set(position=0 if one else None)
        )
        if widgets.checkbox("At one position only", binding):
            widgets.number_input("Position", 0, LAST_POSITION, self._tie("position"))

    def _named(self, point: str) -> str:
        return part_in_words(Scaled(point)) if self._own.head is None else place_in_words(point)

    def _select(self, label: str, options: Any, field: str, labels: Any) -> None:
        if len(options) > 1:
            widgets.selectbox(label, options, self._tie(field), labels)

    def _tie(self, field: str) -> Binding:
        value = getattr(self._own, field)
        return Binding(
            f"change_{self._index}_{field}",
            0 if value is None else value,
            take=lambda chosen: self._set(**{field: chosen}),
        )

    def _set(self, **fields: Any) -> None:
        self._become(replace(self._own, **fields))

    def _become(self, other: Intervention) -> None:
        changes.replace(self._index, other, self._shape)


def others(own: Intervention) -> list[tuple[str, Intervention]]:
    """What an intervention can be turned into at one press, in words."""
    match own:
        case Scaled() | Averaged() | Replaced():
            place = {"point": own.point, "head": own.head, "position": own.position}
            factor = own.factor if isinstance(own, Scaled) else 1.0
            found = [
                ("Ablate it", Scaled(**place)),
                ("Its opposite", Scaled(**place, factor=-factor or -1.0)),
                ("Its mean over the text", Averaged(**place)),
            ]
        case Steered():
            found = [("Its opposite", replace(own, factor=-own.factor))]
        case Weighed():
            found = [("Its opposite", replace(own, weight=round(1 - own.weight, 6)))]
        case _:
            found = []
    return [(words, other) for words, other in found if other != own]
