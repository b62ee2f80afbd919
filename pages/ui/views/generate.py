"""The page Generate: what the visitor's writer computes, handed to the instrument that shows it, and back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import streamlit as st

from pages.ui.components.writing import LIMITS, Event, Extent, writing
from pages.ui.models import passages, places
from pages.ui.models.branches import Written
from pages.ui.models.writer import Looked, Writer
from pages.ui.shell import instruments
from pages.ui.shell.choices import PACES, Visitor
from pages.ui.shell.sidebar import Session
from pages.ui.shell.state import REWRITE_EVERY, write_address
from transformer import Recording

KEY = "writing"
FIRST_TURN, TURN = 0.1, 0.4
"""Seconds of computing, at most, before what there is goes to the browser: when writing begins, and later."""
AHEAD = 2.4
"""Seconds of text that are computed ahead."""
CONTROLS = ("temperature", "top_k", "top_p", "seed", "tokens", "pace", "attention", "layer", "head")
TIED = (*CONTROLS, "step")
"""What the instrument and the link agree on: fields of the visitor."""
LOOKS_AT = {"cross": "at the source", "decoder": "at its own words"}
"""The attentions of an encoder–decoder that choose the next token."""


@dataclass
class _Owed:
    """What the next message answers."""

    whole: bool = True
    branch: int = 0
    has: list[Written] = field(default_factory=list)
    """The tokens that the browser has of this branch."""
    seconds: float = 0.0
    """For which it is to be written on."""
    rows: list[tuple[int, int]] = field(default_factory=list)
    logits: int | None = None
    compared: int | None = None


def show(session: Session) -> None:
    """The instrument."""
    current, writer, config = session.visitor, session.writer, session.config
    kind = _kind(session)
    choosable = tuple(LOOKS_AT) if kind and kind != "self" else ()
    extent = Extent(choosable, places.depth(config, kind) if kind else 0, config.n_heads if kind else 0, tuple(PACES))
    elsewhere = instruments.elsewhere(current, (*TIED, "text"))
    _owed().whole = True

    def follow() -> None:
        # What another widget tells in the same moment comes in one message with an event of the instrument, and
        # Streamlit takes both for the fragment's: the widget's callback has been called, but its page isn't drawn.
        if instruments.elsewhere(current, (*TIED, "text")) != elsewhere:
            st.rerun()
        write_address("address_writing", at_most_every=0.0 if writer.goal is None else REWRITE_EVERY)

    writing(
        key=KEY,
        name=passages.identity(writer),
        title=session.name.replace("/", "-"),
        extent=extent,
        choices={
            "layers": extent.layers,
            "heads": extent.heads,
            "attentions": [[value, words] for value, words in LOOKS_AT.items() if value in choosable],
            "paces": [[pace, _pace_in_words(pace)] for pace in PACES],
        },
        serial=instruments.serial(KEY, current, TIED),
        take=lambda event: _take(event, writer, current),
        answer=lambda: _answer(writer, current, session),
        after=follow,
        patient=st.session_state["begins"],
    )


def _take(event: Event, writer: Writer, current: Visitor) -> None:
    """Take over what the browser tells; what is left to compute is owed."""
    with writer.lock:
        branch, owed = writer.tree.find(event.branch), _owed()
        if branch is not None and event.seen <= event.have <= branch.end:
            writer.commit(event.seen, branch.id)
            owed.whole, owed.branch = False, branch.id
            owed.has = branch.tokens[: max(event.have - branch.begin, 0)]
        for name, value in event.controls.items():
            setattr(current, name, value)
        current.step = event.step
        instruments.told(KEY, current, TIED)
        if branch is writer.branch and not owed.whole:
            _act(event, writer, owed)
        if writer.redraw(current.sampling):
            owed.seconds = TURN


def _act(event: Event, writer: Writer, owed: _Owed) -> None:
    asked = event.asked
    match event.act:
        case "write":
            owed.seconds = FIRST_TURN if writer.goal is None else TURN
            writer.aim(min(asked["goal"], writer.length + int(LIMITS["tokens"][1])))
        case "stop":
            writer.stop()
        case "clear":
            writer.clear()
        case "undo":
            writer.undo()
        case "pick" if asked["token"] < writer.opened.checkpoint.model.config.vocab_size:
            writer.pick(asked["place"], asked["token"])
        case "branch":
            writer.switch(asked["to"])
        case "rows":
            owed.rows.append((asked["first"], asked["last"]))
        case "logits":
            owed.logits = asked["place"]
        case "compare":
            owed.compared = asked["with"]
        case "again":
            owed.whole = True


def _answer(writer: Writer, current: Visitor, session: Session) -> Recording:
    """Compute what is owed, and what the browser doesn't have of the text."""
    owed = st.session_state.pop(f"{KEY}_owed", _Owed())
    looked, head = _looked(session), current.head or 0
    with writer.lock:
        if owed.seconds:
            writer.write(current.sampling, looked, owed.seconds, AHEAD * PACES[current.pace])
        writer.prepare(current.sampling)
        begin, branch = len(writer.prompt), writer.branch
        if current.step is not None and not begin <= current.step < branch.length:
            current.step = None
        whole, has = owed.whole or owed.branch != branch.id, zip(owed.has, branch.tokens, strict=False)
        same = 0 if whole else sum(1 for _ in itertools.takewhile(lambda both: both[0] is both[1], has))
        if whole:
            selected = branch.length if current.step is None else current.step
            owed.rows.append((selected, selected))
        found = passages.passage(writer, begin + same, whole=whole, looked=looked, head=head, places=owed.rows)
        tensors, about = {**found.tensors}, {**found.metadata}
        if owed.logits is not None and begin <= owed.logits < branch.end:
            tensors["logits_at"], about["logits_place"] = writer.logits([owed.logits])[0], owed.logits
        if (other := writer.tree.find(owed.compared)) and other is not branch:
            beside = passages.compared(writer, other)
            tensors |= beside.tensors
            about |= {**beside.metadata, "kinds": about["kinds"] | beside.metadata["kinds"]}
        current.text = writer.opened.checkpoint.tokenizer.decode([token.id for token in branch.written])
    about["step"] = current.step
    about["controls"] = {name: getattr(current, name) for name in CONTROLS} | {
        "attention": looked.kind if looked else None, "layer": current.layer or 0, "head": head,
    }  # fmt: skip
    return Recording(tensors, about)


def _looked(session: Session) -> Looked | None:
    """The attention and layer whose rows are drawn; the encoder's has none."""
    kind = _kind(session)
    return Looked(kind, min(session.visitor.layer or 0, places.depth(session.config, kind) - 1)) if kind else None


def _kind(session: Session) -> str | None:
    return places.chosen_attention(session.config, session.visitor.attention, among=("self", *reversed(LOOKS_AT)))


def _pace_in_words(pace: str) -> str:
    return "as fast as it can" if PACES[pace] == float("inf") else f"{PACES[pace]:.0f} tokens a second"


def _owed() -> _Owed:
    return st.session_state.setdefault(f"{KEY}_owed", _Owed())
