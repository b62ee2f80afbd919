"""Draws the menu of one change: its strength, its layer and head, and what it can become."""

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.ui.frame import change_form, changes, widgets
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import plain
from pages.ui.models.changes import Change
from transformer import Intervention, MeanAblate, ModelConfig, Patch, Scale, SetAttention, Steer, Without
from transformer.inference.plain_names import describe_module, describe_part


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
        _show_fields(index, change.intervention, shape)


def _show_fields(index: int, own: Any, shape: ModelConfig) -> None:
    """All that fits an intervention: each widget puts another in its place."""

    def become(**fields: Any) -> None:
        changes.replace(index, replace(own, **fields), shape)

    def tie(field: str) -> Binding:
        value = getattr(own, field)
        return Binding(f"change_{index}_{field}", value or 0, take=lambda chosen: become(**{field: chosen}))

    def named(point: str) -> str:
        return describe_part(Scale(point)) if own.head is None else describe_module(point)

    for words, other in others(own):
        key = f"turn_{index}_{words}"
        widgets.button(words, changes.replace, index, other, shape, key=key, width="stretch")
    if isinstance(own, Scale | Steer):
        change_form.factor(tie("factor"))
    if isinstance(own, Without):
        wheres = change_form.wheres(shape, own.rule)
        if len(wheres) > 1:
            widgets.selectbox("Where", wheres, tie("where"), change_form.in_words)
        return
    alike = change_form.alike(shape, own.point)
    if len(alike) > 1:
        widgets.selectbox("Where", alike, tie("point"), named)
    if own.head is not None and shape.n_heads > 1:
        widgets.selectbox("Head", range(shape.n_heads), tie("head"))
    if isinstance(own, SetAttention):
        change_form.weight(tie)
    else:
        is_one = own.position is not None
        only = Binding(f"change_{index}_one", is_one, take=lambda one: become(position=0 if one else None))
        change_form.position(only, tie("position"))


def others(own: Intervention) -> list[tuple[str, Intervention]]:
    """What an intervention can be turned into at one press, in words."""
    match own:
        case Scale() | MeanAblate() | Patch():
            site = {"point": own.point, "head": own.head, "position": own.position}
            factor = own.factor if isinstance(own, Scale) else 1.0
            options = [
                ("Ablate it", Scale(**site)),
                ("Its opposite", Scale(**site, factor=-factor or -1.0)),
                ("Its mean over the text", MeanAblate(**site)),
            ]
        case Steer():
            options = [("Its opposite", replace(own, factor=-own.factor))]
        case SetAttention():
            options = [("Its opposite", replace(own, weight=round(1 - own.weight, 6)))]
        case _:
            options = []
    return [(words, other) for words, other in options if other != own]
