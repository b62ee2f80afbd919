"""Thirty who write at once: the visitors' threads take turns, and whoever's is at it computes for all the others, too.

A thread that wants to write begins a round, or waits for the one that is at it. The first is the leader: token by token
it computes the next of every text that is there (`transformer.inference.together`), until its own is written far
enough, and then leaves the lead to whoever has waited longest. So no thread outlives the visitors' own, and who writes
alone waits for nobody. Texts that have outgrown their model's context are a round of their own: their passes take
twenty times as long.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

from transformer import DecoderOnly, EncoderDecoder, GenerationStep
from transformer.inference.generation import Text
from transformer.inference.together import Together, Windows

Take = Callable[[GenerationStep], bool]
"""Is given each token, perhaps on another visitor's thread, and says whether to write on."""


class Turns:
    """A lock that is handed on to whoever has waited longest.

    Threads that compute many small tensors at once spend most of their time waiting for the interpreter, and an
    ordinary lock would be taken again by the thread that has just released it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


_STEPS = Turns()
"""Of the models that are written with, each computes one token of all its texts in turn."""
_PASSES = Turns()
"""Whole passes, over a prompt or a window past the context, which are mostly large products that need no interpreter:
one of them runs beside those steps."""


class _Place:
    """A text that is being written, and the thread that waits for it."""

    def __init__(self, text: Text, take: Take) -> None:
        self.text, self.take = text, take
        self.leads = self.is_over = False
        self.goes_on = True
        """Whether to write on; if it is over nonetheless, in another round or in passes of its own."""
        self.error: Exception | None = None
        self.called = threading.Semaphore(0)
        """Released when it is over, or is to lead."""


class Round:
    """Texts of one model whose passes are alike, and that share them at this moment.

    several: which computes the next token of each. turns: of all rounds that compete for the same.
    """

    def __init__(self, several: Together | Windows, turns: Turns) -> None:
        self._several, self._turns = several, turns
        self._lock = threading.Lock()
        self._places: list[_Place] = []
        self._has_leader = False

    def shares(self, text: Text) -> bool:
        """Whether a text can be written in this round now."""
        return self._several.shares(text)

    def write(self, place: _Place) -> None:
        """Write on among the others, until this text is over, or has to go on elsewhere."""
        with self._lock:
            self._places.append(place)
            place.leads = not self._has_leader
            self._has_leader = True
        if not place.leads:
            place.called.acquire()
        if place.leads:
            try:
                while not place.is_over:
                    self._write_one_token_each()
            finally:
                self._hand_over(place)

    def _write_one_token_each(self) -> None:
        with self._lock:
            places = list(self._places)
        for place in places:
            self._several.join(place.text)
        with self._turns:
            steps = self._several.step()
        for place in places:
            step = steps[place.text]
            try:
                if isinstance(step, Exception):
                    raise step
                place.goes_on = place.take(step)
            except Exception as error:  # it is this visitor's, on whose thread it is raised
                place.goes_on, place.error = False, error
            if not place.goes_on or not self._several.shares(place.text):
                self._end(place)

    def _end(self, place: _Place) -> None:
        if place.is_over:
            return
        self._several.leave(place.text)
        with self._lock:
            self._places.remove(place)
            place.is_over = True
        place.called.release()

    def _hand_over(self, leader: _Place) -> None:
        try:
            self._end(leader)  # which it is already, unless something went wrong
        finally:
            with self._lock:
                self._has_leader = bool(self._places)
                if self._places:
                    self._places[0].leads = True
                    self._places[0].called.release()


class Room:
    """The texts of one model that are being written at this moment."""

    def __init__(self, model: DecoderOnly | EncoderDecoder) -> None:
        self.present = 0
        """How many threads are in here."""
        self._rounds = Round(Together(model), _STEPS), Round(Windows(model), _PASSES)

    def write(self, text: Text, take: Take) -> None:
        """Write on until `take` says that it is enough. Raises what this text's passes or `take` raise."""
        goes_on = True
        while goes_on:
            fitting = next((each for each in self._rounds if each.shares(text)), None)
            if fitting is None:
                with _PASSES:
                    step = text.step()
                goes_on = take(step)
                continue
            place = _Place(text, take)
            fitting.write(place)
            if place.error is not None:
                raise place.error
            goes_on = place.goes_on


_ROOMS: dict[DecoderOnly | EncoderDecoder, Room] = {}
_LOCK = threading.Lock()


def is_anybody_writing() -> bool:
    """Whether a text of any model is being written at this moment."""
    with _LOCK:
        return bool(_ROOMS)


def write(text: Text, take: Take) -> None:
    """Write a text on, together with those of its model that others write meanwhile, until `take` says it is enough.

    Raises what this text's passes or `take` raise, and nothing of another's.
    """
    with _LOCK:
        room = _ROOMS.setdefault(text.model, Room(text.model))
        room.present += 1
    try:
        room.write(text, take)
    finally:
        with _LOCK:
            room.present -= 1
            if not room.present:
                del _ROOMS[text.model]
