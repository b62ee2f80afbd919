"""Draws Streamlit's widgets, each bound to a parameter of the page state, and validates what browsers report.

A browser reports what its widgets hold: the label of an option that was drawn for another text, the first option of a
widget that was away for a run, the value from before the last answer reached it, or whatever a hand-written message
says. So a widget never decides what is on screen. The visitor's choice does; the widget shows it, and changes it when
it reports something that can be chosen now. Two rules keep old reports out:

- A widget is drawn anew, under a new key, when what it offers changes, when it was away, and when its choice was
  changed by anything but itself. What the old one still reports belongs to a key that nobody asks for.
- A box for text keeps its key, so that what is being typed isn't lost, and is told its text instead. A text is the
  same text whenever it is reported.

A press counts for what the visitor sees. If something else was reported since a button was drawn, what it would do may
be out of date: a number was typed, and the button pressed at once. Then the button acts as it is drawn anew.

No other module calls Streamlit's widgets, plain buttons and uploads aside.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.components.events import count_report, hear_all, reports, to_its_end
from pages.ui.frame.state import completed_runs, has_returned
from pages.ui.host.exchange import change, page_state
from pages.ui.host.page_state import PARAMETERS
from transformer.data.corpora import LONGEST_TEXT

Labels = Callable[[Any], str]
LONGEST = {name: row["longest"] for name, row in PARAMETERS.items() if row["kind"] == "text"}
LONGEST["own_text"] = LONGEST_TEXT
"""Characters that a box for a text takes."""
_PRESSED = "pressed"
"""Key of the session: the button that was pressed and acts once it is drawn anew; its name, act and arguments."""


@dataclass
class _Drawn:
    """A widget as it was drawn last: where, after how many completed runs, what it offered, what it holds."""

    key: str
    page: str
    run: int
    offered: Hashable
    value: Any


@dataclass(frozen=True)
class Binding:
    """What binds a widget to a parameter.

    name: the parameter's. value: shown instead of its own. default: shown where it is None, and what makes it None
    again. take: called with a new choice instead of changing it.
    """

    name: str
    value: Any = None
    default: Any = None
    take: Callable[[Any], None] | None = None

    def shown(self) -> Any:
        """What the widget should show."""
        value = getattr(page_state(), self.name) if self.value is None else self.value
        return self.default if value is None else value

    def choose(self, value: Any) -> None:
        """Take over what the visitor has chosen."""
        if self.take:
            self.take(value)
        else:
            change(**{self.name: None if value == self.default else value})


def selectbox(label: str, options: Iterable[Any], binding: str | Binding, labels: Labels = str, **look: Any) -> Any:
    """One of several, from a list; returns it. labels: what an option is called; look: passed on to Streamlit."""
    return _choice(st.selectbox, "index", label, options, binding, labels, look)


def segmented_control(
    label: str, options: Iterable[Any], binding: str | Binding, labels: Labels = str, **look: Any
) -> Any:
    """One of a few, side by side; returns it."""
    return _choice(st.segmented_control, "default", label, options, binding, labels, {"required": True, **look})


def select_slider(
    label: str,
    options: Iterable[Any],
    binding: str | Binding,
    labels: Labels = str,
    *,
    grows: bool = False,
    **look: Any,
) -> Any:
    """One of several in order; returns it. grows: options are added while it is in use, and none changes its label."""
    offered = "grows" if grows else None
    return _choice(st.select_slider, "value", label, options, binding, labels, look, offered=offered)


def multiselect(label: str, options: Iterable[Any], binding: str | Binding, *, most: int, **look: Any) -> tuple:
    """At most `most` of several; returns them in the order in which they were chosen."""
    binding, options = _binding_of(binding), list(options)

    def allows(value: Any) -> bool:
        several = isinstance(value, list | tuple) and len(value) <= most
        return several and all(_is_one(part, options) for part in value)

    shown = binding.shown()
    kept = tuple(part for part in shown if _is_one(part, options))[:most]
    value = kept if kept or not shown else tuple(binding.default)
    widget = _widget(binding, ("several", tuple(options), most), value, allows, read=tuple)
    return widget.settle(
        st.multiselect(label, options, list(value), max_selections=most, **widget.kwargs, **look), tuple
    )


def slider(
    label: str, low: float, high: float, binding: str | Binding, *, step: float | None = None, **look: Any
) -> Any:
    """A number from low to high; returns it. Whole numbers if low is one."""
    widget = _number(low, high, binding)
    return widget.settle(st.slider(label, low, high, widget.value, step, **widget.kwargs, **look))


def number_input(label: str, low: float, high: float, binding: str | Binding, **look: Any) -> Any:
    """A number from low to high that can be typed; returns it. Whole numbers if low is one."""
    widget = _number(low, high, binding)
    return widget.settle(st.number_input(label, low, high, widget.value, **widget.kwargs, **look))


def checkbox(label: str, binding: str | Binding, **look: Any) -> bool:
    """On or off; returns which."""
    binding = _binding_of(binding)
    widget = _widget(binding, ("on or off", label), bool(binding.shown()), lambda value: type(value) is bool)
    return widget.settle(st.checkbox(label, widget.value, **widget.kwargs, **look))


def text_area(label: str, binding: str | Binding, *, help: str = "", **look: Any) -> str:
    """A box for a text of at most as many characters as its parameter may have; returns the text."""
    applied = "What you type counts once you leave the box, or press Ctrl + Enter."
    return _text(st.text_area, label, binding, {"help": f"{help} {applied}".strip(), **look})


def text_input(label: str, binding: str | Binding, **look: Any) -> str:
    """A line for a short text, of as many characters; returns it."""
    return _text(st.text_input, label, binding, look)


def short_form(label: str, name: str, submit: str, take: Callable[[], None], *, key: str, **look: Any) -> None:
    """A line for a short text and the button that sends it, which Enter presses, too; nothing is told before.

    name: the parameter that the text becomes before `take` is called.
    """
    typed = f"{key}_typed"

    def send() -> None:
        hear_all()
        text = st.session_state.get(typed)
        if _is_text(text, LONGEST[name]):
            change(**{name: text})
            take()

    with st.form(f"{key}_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(label, getattr(page_state(), name), max_chars=LONGEST[name], key=typed, width=220, **look)
        st.form_submit_button(submit, type="primary", key=key, on_click=to_its_end, args=(send,))


def button(label: str, act: Callable[..., Any], *args: Any, icon: str = "", **look: Any) -> None:
    """A button that calls `act` with these arguments. icon: of Material Symbols; look: passed on to Streamlit."""
    name, drawn_after = look.get("key", label), reports()

    def press() -> None:
        hear_all()
        is_current = reports() == drawn_after
        count_report()
        if is_current:
            act(*args)
        else:
            st.session_state[_PRESSED] = name, act, args

    st.button(label, icon=_icon(icon), on_click=to_its_end, args=(press,), **look)
    if st.session_state.get(_PRESSED, ("",))[0] == name:
        del st.session_state[_PRESSED]
        if not look.get("disabled"):
            act(*args)
            st.rerun()


def act_if_pressed() -> None:
    """Let a button act that was pressed, and isn't drawn any more."""
    if pressed := st.session_state.pop(_PRESSED, None):
        _, act, args = pressed
        act(*args)
        st.rerun()


def download_button(
    label: str, content: Any, file_name: str, mime: str | None = None, icon: str = "download", **look: Any
) -> None:
    """A button that saves a file, and runs nothing. content: the file's, or what makes it at the press."""
    st.download_button(label, content, file_name, mime, icon=_icon(icon), on_click="ignore", **look)


def _icon(name: str) -> str | None:
    return f":material/{name}:" if name else None


@dataclass(frozen=True)
class _Widget:
    """A widget that is about to be drawn. has_value: its value has been put into Streamlit's session."""

    value: Any
    kwargs: dict[str, Any]
    report: Callable[[Any], bool]
    has_value: bool = False

    def settle(self, reported: Any, read: Callable[[Any], Any] = lambda reported: reported) -> Any:
        """The choice that is in force once the widget is drawn.

        It can differ from the visitor's if this session is new to a tab that is open: after a server has slept, say.
        """
        reported = read(reported)
        return reported if reported != self.value and not has_returned() and self.report(reported) else self.value


def _binding_of(binding: str | Binding) -> Binding:
    return Binding(binding) if isinstance(binding, str) else binding


def _choice(
    draw: Callable[..., Any],
    start: str,
    label: str,
    options: Iterable[Any],
    binding: str | Binding,
    labels: Labels,
    look: Mapping[str, Any],
    *,
    offered: Hashable = None,
) -> Any:
    """One of several. start: what `draw` calls its first choice."""
    binding, options = _binding_of(binding), list(options)
    shown = binding.shown()
    value = shown if _is_one(shown, options) else options[0]
    offered = offered or (tuple(options), tuple(map(labels, options)))
    widget = _widget(binding, offered, value, lambda choice: _is_one(choice, options))
    begun = options.index(value) if start == "index" else value
    return widget.settle(draw(label, options, **{start: begun}, format_func=labels, **widget.kwargs, **look))


def _text(draw: Callable[..., str], label: str, binding: str | Binding, look: dict[str, Any]) -> str:
    binding = _binding_of(binding)
    longest = LONGEST[binding.name]
    widget = _widget(
        binding, longest, binding.shown()[:longest], lambda value: _is_text(value, longest), keeps_key=True
    )
    start = {} if widget.has_value else {"value": widget.value}
    return widget.settle(draw(label, max_chars=longest, **start, **widget.kwargs, **look))


def _number(low: float, high: float, binding: str | Binding) -> _Widget:
    binding, kind = _binding_of(binding), type(low)
    value = kind(min(max(binding.shown(), low), high))
    return _widget(binding, (low, high), value, lambda number: type(number) is kind and low <= number <= high)


def _widget(
    binding: Binding,
    offered: Hashable,
    value: Any,
    allows: Callable[[Any], bool],
    *,
    read: Callable[[Any], Any] = lambda value: value,
    keeps_key: bool = False,
) -> _Widget:
    """Decide under which key a widget is drawn, and what becomes of what it reports."""
    drawn: dict[str, _Drawn] = st.session_state.setdefault("drawn_widgets", {})
    page, run, last = st.session_state["page"], completed_runs(), drawn.get(binding.name)
    stays = last is not None and last.page == page and last.run >= run - 1 and last.offered == offered
    has_value = False
    if keeps_key:
        key = f"tied_{binding.name}"
        has_value = last is not None and not (stays and st.session_state.get(key) == value)
        if has_value:
            st.session_state[key] = value
    elif last is not None and stays and last.value == value:
        key = last.key
    else:
        number = st.session_state["widgets_drawn"] = st.session_state.get("widgets_drawn", 0) + 1
        key = f"tied_{binding.name}_{number}"
    drawn[binding.name] = _Drawn(key, page, run, offered, value)

    def report(reported: Any) -> bool:
        now = drawn.get(binding.name)
        if now is None or now.key != key:  # of a widget that is no longer drawn
            return False
        if not allows(reported):
            now.offered = None  # so that it is drawn anew
            return False
        now.value = read(reported)
        count_report()
        binding.choose(now.value)
        return True

    def heard() -> None:
        report(st.session_state.get(key))

    return _Widget(value, {"key": key, "on_change": to_its_end, "args": (heard,)}, report, has_value)


def _is_one(value: Any, options: Sequence[Any]) -> bool:
    """Whether a value is one of the options, and of the same type: True is no 1."""
    return any(type(value) is type(option) and value == option for option in options)


def _is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest
