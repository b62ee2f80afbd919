"""From a place on one page to the same place on another: what the visitor's fields have to hold for it to open there.

Places count the tokens of the whole text. offset: the place of the first token that the model reads of it; what is
before that has no numbers, which a notice says.
"""

from __future__ import annotations

from pages.ui.shell.choices import Visitor

TO_INSIDE = ("inside", "place", "source_place", "cell", "heads", "moment")
"""The fields that the way to the page Inside sets."""


def to_logit(current: Visitor, place: int, token: int, offset: int) -> None:
    """To what speaks for a token at a place of the text: a logit, which is computed one place before it."""
    current.inside, current.moment = "logits", None
    _look_at(current, place - 1, offset)
    current.cell = None if place - 1 < offset else (place - 1 - offset, token)


def _look_at(current: Visitor, place: int, offset: int) -> None:
    current.place = place if place >= offset else None
    if place < offset:
        current.notices.append(
            f"The model reads this text from place {offset} on, so nothing was computed at place {place}; the newest "
            "token is shown."
        )
