"""The texts that one visitor's model writes: computed ahead in short turns, kept as far as they were seen.

Places count the tokens of the decoder's text from 0, prompt included. Dimensions: vocab, layer, head, query, key.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from pages.ui.models import activations, drawing
from pages.ui.models.activations import LARGEST_VOCABULARY
from pages.ui.models.branches import LOGITS, TOP, Branch, Computed, Memory, Shelf, Tree, Written
from pages.ui.models.library import OpenModel, opened
from pages.ui.models.turns import Turns
from transformer import GenerationStep, Intervention, Sampling, attention_modules, generate
from transformer.inference.sampling import random_points
from transformer.inference.windows import looks_ahead

FORMER = 8
"""Prompts and models of before whose texts are kept."""
LOGITS_BYTES, ROWS_BYTES = 4_000_000, 1_000_000
"""What is remembered of a visitor's texts: of a small vocabulary, thousands of tokens."""
MOST_WINDOWS = 4
"""Past the context each place has a window, and a pass, of its own: as many are answered at once."""
_TURNS = Turns()
"""All writers write one token each in turn."""


class Looked(NamedTuple):
    """An attention of one layer, as in `attention_modules`; its heads are recorded together."""

    kind: str
    layer: int


class Writer:
    """A prompt, what was written after it, branch by branch, and the iterator that writes on.

    It keeps the model it began with: one that is replaced meanwhile doesn't change a text half-way. Two script runs
    of one visitor can overlap for a moment; the lock lets one of them write at a time, and `stop` is heeded after the
    token in progress.
    """

    def __init__(
        self, opened: OpenModel | None = None, prompt: tuple[int, ...] = (), source: tuple[int, ...] = ()
    ) -> None:
        """opened: None before the first prompt. prompt: for an encoder–decoder, its start token. source: what the
        encoder reads; empty for a model that has none."""
        self.opened, self.prompt, self.source = opened, prompt, source
        self.interventions: tuple[Intervention, ...] = ()
        """What is changed in the model."""
        self.goal: int | None = None
        """The length at which the present writing ends; None at rest."""
        self.mark = secrets.token_hex(4)
        """No other writer's: a browser may still speak of a text that went with its session."""
        self.tree = Tree(len(prompt))
        self._former = Shelf(FORMER)
        self._logits_kept, self._rows_kept = Memory(LOGITS_BYTES), Memory(ROWS_BYTES)
        self._steps: Iterator[GenerationStep] | None = None
        self._steps_are: tuple[Sampling, Looked | None] | None = None
        self._points: Iterator[float] = iter(())
        self.lock = threading.RLock()

    @property
    def model(self) -> str:
        """The name of the model that writes; empty before the first prompt."""
        return self.opened.name if self.opened else ""

    @property
    def branch(self) -> Branch:
        """The text on screen."""
        return self.tree.current

    @property
    def written(self) -> list[Written]:
        """What was seen of the text on screen."""
        return self.branch.written

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and what was seen."""
        return self.prompt + tuple(token.id for token in self.written)

    @property
    def length(self) -> int:
        """The place after the last token that was seen."""
        return self.branch.length

    @property
    def finished(self) -> bool:
        """True once it was seen that the model has said, with its end token, that nothing follows."""
        return self._ends(self.written)

    @property
    def ended(self) -> bool:
        """The same of what is computed."""
        return self._ends(self.branch.tokens)

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
            self.goal, self._steps = None, None
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
            self._steps = None

    def clear(self) -> None:
        """Begin an empty text; the one on screen stays as a branch."""
        with self.lock:
            self.stop()
            if self.written:
                self.tree.grow([], self._drawn_anew(self.branch.tokens[:1]))
                self._steps = None

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
            self._steps = None

    def undo(self) -> None:
        """Go back to the branch that this one was begun from."""
        with self.lock:
            self.stop()
            self.tree.take_back()
            self._steps = None

    def switch(self, branch_id: int) -> None:
        """Go over to another branch; to none if there is none with this number."""
        with self.lock:
            if (found := self.tree.find(branch_id)) and found is not self.branch:
                self.stop()
                self.tree.current, self._steps = found, None

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
            self._steps = None
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
                self._steps = None

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
            self._steps = None
            return True

    def write(self, sampling: Sampling, looked: Looked | None, seconds: float, ahead: float = float("inf")) -> None:
        """Write for about `seconds` seconds: at least one token, unless so many are ahead.

        It ends with the goal, and the one token after it that may come next, or with the end token. looked: whose
        rows are recorded on the way.
        """
        deadline = time.monotonic() + seconds
        with self.lock:
            self.redraw(sampling)
            while (goal := self.goal) is not None and not self.ended:
                branch = self.branch
                if branch.end > goal or branch.end - branch.length >= ahead:
                    break
                self._one_step(sampling, looked)
                if time.monotonic() >= deadline:
                    break
            if self.goal is None or self.ended:
                self._steps = None

    def logits(self, places: Iterable[int]) -> list[np.ndarray]:
        """Of each place, up to the first that isn't computed: the logits (vocab,) that its token is chosen from."""
        with self.lock:
            tokens, begin, places = self.branch.tokens, len(self.prompt), list(places)
            ids = self.prompt + tuple(token.id for token in tokens)
            kept = [tokens[place - begin].computed.get(LOGITS) if place < len(ids) else None for place in places]
            missing = [place for place, logits in zip(places, kept, strict=True) if logits is None]
            within = [place for place in missing if place < len(ids)]
            computed: dict[int, np.ndarray] = {}
            if len(within) > 1:
                scored = activations.scored(
                    self.opened, ids[: max(within) + 1], self.source, self.interventions
                ).logits
                computed = {place: scored[place - 1] for place in within}
            for place in set(missing) - computed.keys():
                computed[place] = activations.next_token(self.opened, ids[:place], self.source, self.interventions)[0]
            for place in within:
                self._keep_logits(tokens[place - begin].computed, computed[place])
            return [computed[place] if logits is None else logits for place, logits in zip(places, kept, strict=True)]

    def likeliest(self, places: Iterable[int]) -> list[np.ndarray]:
        """Of each place that is computed: the top of the distribution that its token is chosen from, as in `top_of`.

        Of a large vocabulary it is kept where logits aren't, and those of a text that aren't known any more come of one
        pass.
        """
        with self.lock:
            tokens, begin, places = self.branch.tokens, len(self.prompt), list(places)
            ids = self.prompt + tuple(token.id for token in tokens)
            missing = [place for place in places if place < len(ids) and TOP not in tokens[place - begin].computed]
            if len(missing) > 1 and self.opened.checkpoint.model.config.vocab_size > LARGEST_VOCABULARY:
                known = activations.scored_one_by_one(
                    self.opened, ids[: max(missing) + 1], self.source, self.interventions
                )
                for place, (logits, _) in enumerate(known, start=1):
                    if place in missing:
                        self._keep_logits(tokens[place - begin].computed, logits)
            found = []
            for place in places:
                top = tokens[place - begin].computed.get(TOP) if place < len(ids) else None
                found.append(drawing.top_of(self.logits([place])[0]) if top is None else top)
            return found

    def rows(self, looked: Looked, first: int, last: int, *, only_kept: bool = False) -> dict[int, np.ndarray]:
        """Where the token before each of these places looked to choose the one there, by place: (head, key) each.

        Those that aren't remembered are computed: up to the context in one pass, past it only the last few, unless
        only what is kept is asked for.
        """
        with self.lock:
            tokens, begin = self.branch.tokens, len(self.prompt)
            places = range(max(first, begin), min(last + 1, begin + len(tokens)))
            found = {place: row for place in places
                     if (row := tokens[place - begin].computed.get(tuple(looked))) is not None}  # fmt: skip
            if only_kept:
                return found
            ids = self.prompt + tuple(token.id for token in tokens)
            context = self.opened.checkpoint.model.config.context_length
            # One pass has all rows of the context, unless an earlier token would see those after it.
            together = 0 if any(map(looks_ahead, self.interventions)) else context
            missing = [place for place in places if place not in found]
            if any(place <= together for place in missing):
                pattern = activations.pattern(
                    self.opened, ids[:context], self.source, *looked, interventions=self.interventions
                )
                found |= {place: pattern[:, place - 1, : None if looked.kind == "cross" else place]
                          for place in missing if place <= together}  # fmt: skip
            for place in [place for place in missing if place > together][-MOST_WINDOWS:]:
                rows = activations.next_token(self.opened, ids[:place], self.source, self.interventions)[1]
                found[place] = rows[looked.kind][looked.layer]
            return dict(sorted(found.items()))

    # Within

    def _one_step(self, sampling: Sampling, looked: Looked | None) -> None:
        branch, model = self.branch, self.opened.checkpoint.model
        module = attention_modules(model.config)[looked.kind][looked.layer] if looked else ""
        if self._steps is None or self._steps_are != (sampling, looked):
            self._steps_are = sampling, looked
            self._steps = generate(
                model,
                self.prompt + tuple(token.id for token in branch.tokens),
                source=self.source or None,
                max_new_tokens=10**9,
                sampling=sampling,
                names_filter=[f"{module}.hook_pattern"] if looked else (),
                interventions=self.interventions,
            )
            ahead = 16 if branch.end < model.config.context_length else 1
            self._points = random_points(sampling, branch.end, ahead)
        with _TURNS:
            step = next(self._steps)
        computed = self._kept(step.logits.numpy())
        if looked:
            self._rows_kept.put(computed, tuple(looked), step.cache[f"{module}.hook_pattern"][0, :, -1].numpy().copy())
        statistics = step.probability, step.rank, step.entropy
        branch.tokens.append(Written(step.token_id, *statistics, False, next(self._points), sampling, computed))
        if branch.end > model.config.context_length:
            self._steps = None  # nothing is cached any more, so it would only hold on to what it recorded last

    def _drawn_anew(self, first: list[Written]) -> list[Written]:
        """The first token of a text, to stand ahead in another, where it can be drawn without the model."""
        token = next(iter(first), None)
        if token is None or token.sampling is None or LOGITS not in token.computed:
            return []
        return [drawing.drawn(token.computed[LOGITS], token.computed, token.sampling, len(self.prompt))]

    def _kept(self, logits: np.ndarray) -> Computed:
        computed: Computed = {}
        self._keep_logits(computed, logits)
        return computed

    def _keep_logits(self, computed: Computed, logits: np.ndarray) -> None:
        if len(logits) <= LARGEST_VOCABULARY:
            self._logits_kept.put(computed, LOGITS, logits.copy())
        else:
            self._logits_kept.put(computed, TOP, drawing.top_of(logits))

    def _ends(self, tokens: list[Written]) -> bool:
        return bool(tokens) and tokens[-1].id == self.opened.checkpoint.card.end_token_id

    def _key(self) -> tuple:
        return self.opened.version if self.opened else "", self.prompt, self.source, self.interventions
