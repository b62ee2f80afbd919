"""The texts that one visitor's model writes: computed ahead in short turns, kept as far as they were seen.

Places count the tokens of the decoder's text from 0, prompt included. Dimensions: vocab, layer, head, query, key.
"""

from __future__ import annotations

import itertools
import time

from pages.ui.models import activations, drawing
from pages.ui.models.branches import LOGITS, Shelf, Tree, Written
from pages.ui.models.library import OpenModel, opened
from pages.ui.models.shown_text import Looked, ShownText
from transformer import GenerationStep, Intervention, Sampling, attention_modules
from transformer.inference.generation import DecodeState
from transformer.inference.sampling import random_points
from transformer.inference.scheduler import schedulers

FORMER = 8
"""Prompts and models of before whose texts are kept."""


class Writer(ShownText):
    """A text on the page, and how it is written on: together with the texts of others, by its model's scheduler.

    It keeps the model it began with: one that is replaced meanwhile doesn't change a text half-way. `stop` is heeded
    after the token in progress.
    """

    def __init__(
        self, opened: OpenModel | None = None, prompt: tuple[int, ...] = (), source: tuple[int, ...] = ()
    ) -> None:
        """As in `ShownText`."""
        super().__init__(opened, prompt, source)
        self.goal: int | None = None
        """The length at which the present writing ends; None at rest."""
        self._former = Shelf(FORMER)
        self._text: DecodeState | None = None
        """The text on screen, what is computed ahead included, as the model goes on from it."""
        self._drawn_with: Sampling | None = None

    # Which text

    def begin(
        self, model: str, prompt: tuple[int, ...], source: tuple[int, ...] = (),
        interventions: tuple[Intervention, ...] = (),
    ) -> bool:  # fmt: skip
        """Take up a prompt, with what was written after it before; returns whether another text may be on screen now.

        A model that is changed writes texts of its own. While it has none, it goes on from the one that is on screen.
        Raises: CheckpointError if there is no such model.
        """
        found = opened(model)
        now = found.version, prompt, source, interventions
        if self._key() == now:
            return False
        self.stop()  # so that a run that writes lets go after its token
        with self.lock:
            is_other = self._key()[:3] != now[:3]
            text = () if is_other else self.tokens[len(prompt) :]
            self._former.put(self._key(), self.tree)
            self.opened, self.prompt, self.source, self.interventions = found, prompt, source, interventions
            kept = self._former.take(now)
            self.tree = kept or Tree(len(prompt))
            self.goal, self._text = None, None
            if text and kept is None:
                self.restore(text)
                self.tree.carried = len(text)
            return is_other or kept is not None

    def restore(self, tokens: tuple[int, ...], sampling: Sampling | None = None) -> None:
        """Take over a text that was written elsewhere, with the model's own statistics for each token.

        A branch that has this text is gone over to; any other text on screen stays as a branch of its own. sampling:
        with which it may have been drawn; a token that it doesn't lead to was drawn in a way that isn't known.
        """
        with self.lock:
            self.stop()
            same = [branch for branch in self.tree.branches if tuple(token.id for token in branch.written) == tokens]
            if same:
                self.switch(same[-1].id)
                return
            ids = self.prompt + tokens
            known = activations.scored_one_by_one(self.opened, ids, self.source, self.interventions)
            points = random_points(sampling, len(self.prompt)) if sampling else iter(())
            known = itertools.islice(known, len(self.prompt) - 1, None)
            restored = [drawing.found(token, statistics, logits, self._kept(logits), points, sampling)
                        for token, (logits, statistics) in zip(tokens, known, strict=True)]  # fmt: skip
            if self.written:
                self.tree.grow(restored)
            else:
                self.branch.tokens, self.branch.seen = restored, len(restored)
            self._text = None

    def clear(self) -> None:
        """Begin an empty text; the one on screen stays as a branch."""
        with self.lock:
            self.stop()
            if self.written:
                self.tree.grow([], self._drawn_anew(self.branch.tokens[:1]))
                self._text = None

    def pick(self, place: int, token_id: int) -> None:
        """Put a token of the visitor's choice at a place: in a branch of its own where another was seen there."""
        with self.lock:
            index = place - len(self.prompt)
            seen, tokens = self.branch.seen, self.branch.tokens
            if not 0 <= index <= seen or (index == seen and self.finished):
                return
            self.stop()
            if index < len(tokens) and tokens[index].id == token_id:
                self.commit(place + 1)
                return
            logits = self.logits([place])[0]
            there = tokens[index] if index < len(tokens) else None
            picked = drawing.picked(token_id, logits, there.computed if there else self._kept(logits), there)
            if index < seen:
                self.tree.grow([*tokens[:index], picked])
            else:
                self.branch.tokens, self.branch.seen = [*tokens[:index], picked], index + 1
            self._text = None

    def undo(self) -> None:
        """Go back to the branch that this one was begun from."""
        with self.lock:
            self.stop()
            self.tree.take_back()
            self._text = None

    def switch(self, branch_id: int) -> None:
        """Go over to another branch; to none if there is none with this number."""
        with self.lock:
            if (found := self.tree.find(branch_id)) and found is not self.branch:
                self.stop()
                self.tree.current, self._text = found, None

    # How far

    def commit(self, length: int, branch_id: int | None = None) -> None:
        """Count as seen what is computed up to a length, of the text on screen or another branch.

        A length that isn't computed is of a text that isn't known here, and nothing of it is taken.
        """
        with self.lock:
            branch = self.branch if branch_id is None else self.tree.find(branch_id)
            if branch and branch.length < length <= branch.end:
                branch.seen = length - branch.begin
            if self.goal is not None and (self.length >= self.goal or self.finished):
                self.stop()

    def aim(self, goal: int) -> None:
        """Begin to write, or write on, up to this length."""
        with self.lock:
            self.goal = goal if goal > self.length and not self.finished else None

    def stop(self) -> None:
        """Compute no more, from now on; what is computed and wasn't seen stays ahead.

        The keys and values of the text are let go: two megabytes of a context, which one pass computes again.
        """
        self.goal = None
        if self.lock.acquire(blocking=False):  # else a run writes its last token, and lets go of them then
            self._text = None
            self.lock.release()

    # What is computed

    def prepare(self, sampling: Sampling) -> None:
        """Have at least one token ahead, drawn like this, unless the text has ended."""
        with self.lock:
            self.redraw(sampling)
            if not self.branch.ahead and not self.finished:
                logits, rows = activations.next_token(self.opened, self.tokens, self.source, self.interventions)
                computed = self._kept(logits)
                for kind, layers in rows.items():
                    for layer, row in enumerate(layers):
                        self._rows_kept.put(computed, (kind, layer), row.copy())
                self.branch.tokens.append(drawing.drawn(logits, computed, sampling, self.length))
                self._text = None

    def redraw(self, sampling: Sampling) -> bool:
        """Draw the token ahead anew, from what the model computed for it, if others were drawn with another sampling.

        Those after it are dropped. Returns whether any were.
        """
        with self.lock:
            ahead = self.branch.ahead
            if not ahead or all(token.sampling == sampling for token in ahead):
                return False
            (logits,), computed = self.logits([self.length]), ahead[0].computed
            self.branch.tokens[self.branch.seen :] = [drawing.drawn(logits, computed, sampling, self.length)]
            self._text = None
            return True

    def write(self, sampling: Sampling, looked: Looked | None, seconds: float, ahead: float = float("inf")) -> None:
        """Write for about `seconds` seconds: at least one token, unless so many are ahead.

        It ends with the goal, and the one token after it that may come next, or with the end token. looked: whose
        rows are recorded on the way.
        """
        deadline = time.monotonic() + seconds

        def is_wanted() -> bool:
            end, goal = self.branch.end, self.goal
            return goal is not None and not self.ended and end <= goal and end - self.branch.length < ahead

        def take(step: GenerationStep) -> bool:
            self._take(step, sampling, looked)
            return is_wanted() and time.monotonic() < deadline

        with self.lock:
            self.redraw(sampling)
            if is_wanted():
                try:
                    text = self._text_to_write(sampling, looked)
                    schedulers.of(text.model).submit(text, on_step=take).wait()
                except BaseException:
                    self._text = None
                    raise
            if self.goal is None or self.ended:
                self._text = None

    def _text_to_write(self, sampling: Sampling, looked: Looked | None) -> DecodeState:
        if self._text is None:
            self._text = DecodeState(
                self.opened.checkpoint.model,
                self.prompt + tuple(token.id for token in self.branch.tokens),
                source=self.source or None,
                interventions=self.interventions,
            )
            self._drawn_with = None
        if self._drawn_with != sampling:
            self._text.draw(sampling)
            self._drawn_with = sampling
        self._text.record(self._point(looked) or ())
        return self._text

    def _take(self, step: GenerationStep, sampling: Sampling, looked: Looked | None) -> None:
        """Add a token that was written. The thread is the scheduler's, while the visitor's holds the lock and waits."""
        computed = self._kept(step.logits.numpy())
        if point := self._point(looked):
            self._rows_kept.put(computed, tuple(looked), step.cache[point][0, :, -1].numpy().copy())
        statistics = step.probability, step.rank, step.entropy
        self.branch.tokens.append(Written(step.token_id, *statistics, False, step.point, sampling, computed))

    def _point(self, looked: Looked | None) -> str:
        """The hook point whose rows are recorded; empty for none."""
        if looked is None:
            return ""
        return f"{attention_modules(self.opened.checkpoint.model.config)[looked.kind][looked.layer]}.hook_pattern"

    def _drawn_anew(self, first: list[Written]) -> list[Written]:
        """The first token of a text, to stand ahead in another, where it can be drawn without the model."""
        token = next(iter(first), None)
        if token is None or token.sampling is None or LOGITS not in token.computed:
            return []
        return [drawing.drawn(token.computed[LOGITS], token.computed, token.sampling, len(self.prompt))]
