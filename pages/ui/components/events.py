"""Reads the events that components send from the browser, which can send anything.

Each event counts once, whatever runs. Streamlit's triggers don't promise that: of two in one run only the later one is
delivered, and one just before a change of page isn't. So a component's events are a state of its own, which holds all
that the server isn't known to have heard, numbered; what a page left behind is sent again from the next one
(`event_queue.js`).
"""

import functools
import itertools
import secrets
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import streamlit as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

T = TypeVar("T")
Text = Annotated[str, Field(max_length=100_000)]
Texts = Annotated[dict[Text, Text], Field(max_length=100)]
"""Parameters of an address, or of a selection."""
Listener = tuple[Any, Callable[[Any], None]]
"""The type of an event's value, and what is called with it."""
EVENTS = "events"
"""The state of a component that holds its events."""
MOST = 100
"""Events that a browser sends again until it is told that they were heard."""
_HEARD, _LISTENERS, _COUNT = "events_heard", "event_listeners", "event_count"
_adapter = functools.cache(TypeAdapter)


class _Event(BaseModel):
    number: int
    component: str
    """The key of the component that it comes from."""
    name: str
    value: Any = None


class _Sent(BaseModel):
    session: str
    events: Annotated[list[_Event], Field(max_length=MOST)]


def session_id() -> str:
    """An identifier that distinguishes this session from earlier ones of the same tab."""
    return st.session_state.setdefault("session_id", secrets.token_hex(4))


def sent_by(key: str) -> Any:
    """What a component has sent; None if it has gone with its page, or has sent nothing."""
    component = st.session_state.get(key)
    return component.get(EVENTS) if component else None


def parsed(kind: Any, value: Any) -> Any:
    """A value as Pydantic reads it strictly for a type; None if it isn't of that type."""
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return None


def listening(key: str, **listeners: Listener) -> dict[str, Any]:
    """Arguments of a component's mount that have its events heard, in their order. listeners: by event.

    The component's data have its key as `key`.
    """
    st.session_state.setdefault(_LISTENERS, {})[key] = listeners
    return {"key": key, f"on_{EVENTS}_change": functools.partial(to_its_end, _hear, key)}


def to_its_end(act: Callable[..., None], *args: Any) -> None:
    """Call what answers an event, to its end. Streamlit breaks a callback off at its next use of the session if the
    browser has sent something more by then, and calls it no more: what was done would be lost."""
    try:
        act(*args)
    except Exception:
        raise
    except BaseException:
        act(*args)
        raise


def hear_all() -> None:
    """Hear what all components have sent; called where something takes effect that was done after it."""
    for key in list(st.session_state.get(_LISTENERS, {})):
        _hear(key)


def _hear(key: str) -> None:
    sent = parsed(_Sent, sent_by(key))
    if sent is None or sent.session != session_id():
        return
    heard, listeners = _heard(), st.session_state[_LISTENERS]
    for event in sent.events:
        if event.number not in heard:
            heard[event.number] = None
            to_its_end(_answer, listeners.get(event.component, {}), event)


def _answer(listeners: dict[str, Listener], event: _Event) -> None:
    count_report()
    kind, act = listeners.get(event.name, (None, None))
    if act and (value := parsed(kind, event.value)) is not None:
        act(value)


def heard() -> list[int]:
    """The numbers of the events that needn't be sent again."""
    return list(_heard())


def count_report() -> None:
    """Note that the browser has reported something."""
    st.session_state[_COUNT] = reports() + 1


def reports() -> int:
    """How often the browser has reported something in this session."""
    return st.session_state.get(_COUNT, 0)


def _heard() -> dict[int, None]:
    """The numbers of the events that were heard last, oldest first."""
    heard: dict[int, None] = st.session_state.setdefault(_HEARD, {})
    for number in list(itertools.islice(heard, max(0, len(heard) - 2 * MOST))):
        del heard[number]
    return heard
