"""Reads the events that components send from the browser, which can send anything."""

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import streamlit as st
from pydantic import Field, TypeAdapter, ValidationError

T = TypeVar("T")
Text = Annotated[str, Field(max_length=100_000)]
Texts = Annotated[dict[Text, Text], Field(max_length=100)]
"""Parameters of an address, or of a selection."""
_adapter = functools.cache(TypeAdapter)


def event_value(key: str, event: str) -> Any:
    """The value of an event in this run; None if there is none.

    Nor is there one if the component has gone with its page before its event came to be read: a callback that failed
    on that would take the next page with it.
    """
    component = st.session_state.get(key)
    return component.get(event) if component else None


def parsed(kind: Any, value: Any) -> Any:
    """A value as Pydantic reads it strictly for a type; None if it isn't of that type."""
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return None


def listener(key: str, event: str, kind: Any, act: Callable[[Any], None]) -> Callable[[], None]:
    """A component's callback: calls `act` with the value of an event, if it is of this type."""

    def listen() -> None:
        if (value := parsed(kind, event_value(key, event))) is not None:
            act(value)

    return listen
