"""Keeps what a session and its tab have told each other of the page state: Python's half of the protocol."""

import functools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import streamlit as st
from pydantic import BaseModel, Field

from pages.ui.components.events import parsed
from pages.ui.host.page_state import DEFAULT_MODEL, FIRST_MODEL, PARAMETERS, PageState, as_text, drawn_by, renamed

KEY = "shell"
"""Of the component that every page draws first."""
MESSAGE = "page_state"
"""Its state, which holds the tab's last message."""
MOST_COMMANDS = 100
"""Commands that are sent until the tab says that it has obeyed them."""
OF_MODEL = [name for name, row in PARAMETERS.items() if "model" in row.get("of", ())]
"""What means something else with another model, such as its prompt and its changes."""
Texts = dict[Annotated[str, Field(max_length=40)], Annotated[str, Field(max_length=200_000)]]


class Message(BaseModel):
    """What a tab tells Python: its page state."""

    sent: int
    """Numbers the tab's messages."""
    agreed: str | None
    """The reading that the tab has agreed with; None: the tab holds another view, dials included."""
    session: str
    """The session that it has heard from."""
    obeyed: int
    """The last of this session's commands that it has obeyed."""
    values: Annotated[Texts, Field(max_length=200)]
    before: Annotated[Texts, Field(max_length=200)] | None = None
    """What it held before it held this view, where it was asked for."""


class Command(TypedDict):
    """A change of the page state that Python asks for.

    kind: "values" changes some, None for a default; "view" all. "model" chooses a model, as the shell's menu does: the
    tab puts the former model's changes away.
    """

    number: int
    kind: Literal["values", "model", "view"]
    values: dict[str, str | None]


@dataclass
class Exchange:
    """One session's side. texts: the page state as the session knows it, dials as they are."""

    session: str = field(default_factory=lambda: secrets.token_hex(4))
    texts: dict[str, str] = field(default_factory=dict)
    page: str = ""
    readings: int = 0
    """How often a whole view was read: from the address as the session began or after Back, or from the tab."""
    is_new: bool = False
    """Whether such a view hasn't been taken up by a run yet."""
    dials_read: dict[str, str] = field(default_factory=dict)
    """The dials of that view, as it was read."""
    sent: int = 0
    """The tab's last message that was read."""
    commands: list[Command] = field(default_factory=list)
    number: int = 0
    """Of the last command."""
    told_last: tuple[int, dict[str, str]] | None = None
    """The last command and the dials that a run has told the tab."""
    asks_before: bool = False
    """Whether the tab is asked what it held before it held this view: a lesson's view has taken that one's place."""
    before: dict[str, str] | None = None
    """Its answer."""

    @property
    def reading(self) -> str:
        """Names the view that was read."""
        return f"{self.session}:{self.readings}"

    def read(self, page: str, message: Message | None, query: Mapping[str, str]) -> None:
        """Take up what a run of a page is begun with: the tab's message if it is new, or the address."""
        is_other_page, self.page = bool(self.page) and page != self.page, page or self.page
        if message and message.sent > self.sent:
            is_whole, self.sent = message.agreed != self.reading, message.sent
            if message.before is not None and self.asks_before:
                self.asks_before, self.before = False, message.before
            if message.session == self.session:
                self.commands = [command for command in self.commands if command["number"] > message.obeyed]
            self._hold(message.values if is_whole else {**message.values, **dials_of(self.texts)}, is_whole)
            for command in self.commands:
                self._obey(command)
        elif not self.readings or (is_other_page and "model" in query):
            self._hold(query, is_whole=True)

    def _hold(self, texts: Mapping[str, str], is_whole: bool) -> None:
        given = {"model": DEFAULT_MODEL if texts else FIRST_MODEL, **texts}
        self.texts = {name: renamed(name, given[name]) for name in PARAMETERS if name in given}
        if is_whole:
            self.readings, self.is_new = self.readings + 1, True
            self.dials_read = dials_of(self.texts)

    def _obey(self, command: Command) -> None:
        is_whole = command["kind"] == "view"
        texts = {} if is_whole else dict(self.texts)
        texts |= {name: text for name, text in command["values"].items() if text is not None}
        for name, text in command["values"].items():
            if text is None:
                texts.pop(name, None)
        self._hold(texts, is_whole)

    def change(self, values: Mapping[str, Any]) -> None:
        """Give parameters other values: dials at once, others by a command to the tab."""
        texts = {name: as_text(name, value) for name, value in values.items()}
        if "model" in texts:
            texts["model"] = values["model"]  # an address names it always, the default, too
        for name, text in texts.items():
            if is_dial(name):
                self.texts.pop(name, None)
                if text is not None:
                    self.texts[name] = text
        if commanded := {name: text for name, text in texts.items() if not is_dial(name)}:
            self._command("values", commanded)

    def open(self, view: Mapping[str, str]) -> None:
        """Have the tab hold another view, given as a link has it."""
        self._command("view", dict(view))
        self.is_new = False

    def choose_model(self, name: str) -> None:
        """Have the tab turn to another model."""
        self._command("model", {**dict.fromkeys(OF_MODEL), "model": name})

    def has_untold_changes(self) -> bool:
        """Whether Python has changed something since a run told the tab, as a fragment may."""
        return self.told_last != (self.number, dials_of(self.texts))

    def _command(self, kind: Literal["values", "model", "view"], values: dict[str, str | None]) -> None:
        self.number += 1
        command = Command(number=self.number, kind=kind, values=values)
        self.commands = [*self.commands[1 - MOST_COMMANDS :], command]
        self._obey(command)

    def told(self, page: str, view: str = "") -> dict[str, Any]:
        """What the tab is told of a run of a page: what it draws, and the commands. view: as `drawn_by` takes it."""
        self.told_last = self.number, dials_of(self.texts)
        return {
            "session": self.session,
            "sent": self.sent,
            "reading": self.reading,
            "dials_read": self.dials_read,
            "dials": dials_of(self.texts),
            "drawn": {name: self.texts.get(name) for name in drawn_by(page, view) if not is_dial(name)},
            "commands": self.commands,
            "asks_before": self.asks_before,
        }


def is_dial(name: str) -> bool:
    """Whether a parameter is the value of a widget that Streamlit draws."""
    return PARAMETERS[name]["owner"] == "widget"


def dials_of(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if is_dial(name)}


def exchange(page: str = "") -> Exchange:
    """This session's, with all that the run that is under way was begun with. page: its title, where it is known."""
    own: Exchange = st.session_state.setdefault("exchange", Exchange())
    component = st.session_state.get(KEY)
    message = parsed(Message, component.get(MESSAGE)) if component else None
    own.read(page or own.page, message, st.query_params.to_dict())
    return own


def page_state() -> PageState:
    """The page state as it is now: the tab's, with what Python has changed in it."""
    return _state_of(tuple(exchange().texts.items()))


@functools.lru_cache(maxsize=32)
def _state_of(texts: tuple[tuple[str, str], ...]) -> PageState:
    """A run asks for the same state some ten times, and reading one takes up to a millisecond."""
    return PageState.of(dict(texts))


def change(**values: Any) -> None:
    """Give parameters of the page state other values, parsed as `PageState` has them; None for a default."""
    exchange().change(values)


def choose_model(name: str) -> None:
    """Turn to another model, without what belonged to the one before."""
    exchange().choose_model(name)
