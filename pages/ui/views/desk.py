"""Between the instrument of the page Generate and the visitor's writer: what the one tells, the other does."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from pages.ui.components.writing import LIMITS, Event
from pages.ui.models import passages, places
from pages.ui.models.branches import Written
from pages.ui.models.shown_text import Looked
from pages.ui.models.writer import Writer
from pages.ui.shell.borrowed import take_along
from pages.ui.shell.choices import PACES, Visitor
from pages.ui.shell.crossings import to_logit
from transformer import Recording
from transformer.inference.scheduler import schedulers
from transformer.inference.windows import window_start

FIRST_TURN, TURN, TURN_ALONE = 0.1, 0.75, 0.95
"""Seconds of computing, at most, before what there is goes to the browser: when writing begins, later, and later for
who writes alone. The browser asks once a second: where tokens take long, in a full room, past the context, or from a
large model, most of that second is computed in."""
AHEAD = 2.4
"""Seconds of text that are computed ahead."""
LOOKS_AT = {"cross": "at the source", "decoder": "at its own words"}
"""The attentions of an encoder–decoder that choose the next token."""
CONTROLS = ("temperature", "top_k", "top_p", "seed", "tokens", "pace", "attention", "layer", "head")
"""The instrument's dials: fields of the visitor."""


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


class Desk:
    """Where one visitor's text is written."""

    def __init__(self, visitor: Visitor, writer: Writer) -> None:
        self.visitor, self.writer = visitor, writer
        self._owed = _Owed()

    @property
    def kind(self) -> str | None:
        """The attention whose rows are drawn; the encoder's has none."""
        shape = self.writer.opened.checkpoint.model.config
        return places.chosen_attention(shape, self.visitor.attention, among=("self", *reversed(LOOKS_AT)))

    def forget(self) -> None:
        """Assume nothing of what the browser has."""
        self._owed.whole = True

    def take(self, event: Event) -> None:
        """Take over what the browser tells. What takes long is left to `answer`."""
        visitor, writer, owed = self.visitor, self.writer, self._owed
        with writer.lock:
            branch = writer.tree.find(event.branch)
            if branch is not None and event.seen <= event.have <= branch.end:
                writer.commit(event.seen, branch.id)
                owed.whole, owed.branch = False, branch.id
                owed.has = branch.tokens[: max(event.have - branch.begin, 0)]
            for name, value in event.controls.items():
                setattr(visitor, name, value)
            visitor.step = event.step
            if branch is writer.branch and not owed.whole:
                self._act(event)
            if writer.redraw(visitor.sampling):
                owed.seconds = TURN

    def answer(self) -> Recording:
        """Compute what is owed, and return it with what the browser doesn't have of the text."""
        visitor, writer = self.visitor, self.writer
        owed, self._owed = self._owed, _Owed()
        looked, head = self._looked(), visitor.head or 0
        with writer.lock:
            if owed.seconds:
                writer.write(visitor.sampling, looked, owed.seconds, AHEAD * PACES[visitor.pace])
            writer.prepare(visitor.sampling)
            branch = writer.branch
            if visitor.step is not None and not branch.begin <= visitor.step < branch.length:
                visitor.step = None
            whole, has = owed.whole or owed.branch != branch.id, zip(owed.has, branch.tokens, strict=False)
            same = 0 if whole else sum(1 for _ in itertools.takewhile(lambda both: both[0] is both[1], has))
            if whole:
                selected = branch.length if visitor.step is None else visitor.step
                owed.rows.append((selected, selected))
            found = passages.passage(writer, branch.begin + same, whole=whole, looked=looked, head=head,
                                     places=owed.rows)  # fmt: skip
            tensors, about = {**found.tensors}, {**found.metadata}
            if owed.logits is not None and branch.begin <= owed.logits < branch.end:
                tensors["logits_at"], about["logits_place"] = writer.logits([owed.logits])[0], owed.logits
            if (other := writer.tree.find(owed.compared)) and other is not branch:
                beside = passages.compared(writer, other)
                tensors |= beside.tensors
                about |= {**beside.metadata, "kinds": about["kinds"] | beside.metadata["kinds"]}
            visitor.text = writer.opened.checkpoint.tokenizer.decode([token.id for token in branch.written])
        controls = {name: getattr(visitor, name) for name in CONTROLS}
        controls |= {"attention": looked.kind if looked else None, "layer": visitor.layer or 0, "head": head}
        return Recording(tensors, {**about, "controls": controls, "step": visitor.step})

    def _act(self, event: Event) -> None:
        writer, owed, asked = self.writer, self._owed, event.asked
        match event.act:
            case "write":
                later = TURN if schedulers.texts else TURN_ALONE
                owed.seconds = FIRST_TURN if writer.goal is None else later
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
            case "inside" if asked["token"] < writer.opened.checkpoint.model.config.vocab_size:
                take_along()
                context = writer.opened.checkpoint.model.config.context_length
                to_logit(self.visitor, asked["place"], asked["token"], window_start(len(writer.tokens), context))
            case "again":
                owed.whole = True

    def _looked(self) -> Looked | None:
        depth = places.depth(self.writer.opened.checkpoint.model.config, self.kind or "")
        return Looked(self.kind, min(self.visitor.layer or 0, depth - 1)) if self.kind else None
