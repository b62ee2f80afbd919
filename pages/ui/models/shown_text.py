"""A text on the page: the model and the prompt that it belongs to, its branches, and what the model computed for them.

Places count the tokens of the decoder's text from 0, prompt included. Dimensions: vocab, layer, head, query, key.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pages.ui.models import activations, drawing
from pages.ui.models.activations import LARGEST_VOCABULARY
from pages.ui.models.branches import LOGITS, TOP, Branch, Computed, Memory, Tree, Written
from pages.ui.models.library import OpenModel
from transformer import Intervention
from transformer.inference.windows import by_window, in_window, looks_ahead

LOGITS_BYTES, ROWS_BYTES = 4_000_000, 1_000_000
"""What is remembered of a visitor's texts: of a small vocabulary, thousands of tokens."""
MOST_WINDOWS = 5
"""Past the context a quarter of it has a window, and a pass, of its own; where changes let a token see those after it,
each place has. As many are answered at once."""


class Looked(NamedTuple):
    """An attention of one layer, as in `attention_modules`; its heads are recorded together."""

    kind: str
    layer: int


class ShownText:
    """A prompt, what was written after it, branch by branch, and the numbers that go with each token.

    Two script runs of one visitor can overlap for a moment; the lock lets one of them at it at a time.
    """

    def __init__(
        self, opened: OpenModel | None = None, prompt: tuple[int, ...] = (), source: tuple[int, ...] = ()
    ) -> None:
        """opened: None before the first prompt. prompt: for an encoder–decoder, its start token. source: what the
        encoder reads; empty for a model that has none."""
        self.opened, self.prompt, self.source = opened, prompt, source
        self.interventions: tuple[Intervention, ...] = ()
        """What is changed in the model."""
        self.mark = secrets.token_hex(4)
        """No other text's: a browser may still speak of one that went with its session."""
        self.tree = Tree(len(prompt))
        self.lock = threading.RLock()
        self._logits_kept, self._rows_kept = Memory(LOGITS_BYTES), Memory(ROWS_BYTES)

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

        Those that aren't remembered are computed, of the last few windows, unless only what is kept is asked for.
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
            missing = [place for place in places if place not in found]
            if any(map(looks_ahead, self.interventions)):  # so that an earlier token would see those after it
                for place in missing[-MOST_WINDOWS:]:
                    rows = activations.next_token(self.opened, ids[:place], self.source, self.interventions)[1]
                    found[place] = rows[looked.kind][looked.layer]
                return dict(sorted(found.items()))
            for start, lengths in by_window(missing, context)[-MOST_WINDOWS:]:
                pattern = activations.pattern(self.opened, ids[start : start + context], self.source, *looked,
                                              interventions=in_window(self.interventions, start))  # fmt: skip
                found |= {place: pattern[:, place - 1 - start, : None if looked.kind == "cross" else place - start]
                          for place in lengths}  # fmt: skip
            return dict(sorted(found.items()))

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
