"""Suggests pairs of prompts, and patches activations from one into the other.

Asked and answered as in `activations`. The text on screen is read, each time with one hook point at one position as it
is on the other text. Dimensions: site, layer, pos, vocab.
"""

import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pages.ui.computations.activations import Interventions, Tokens, greedy_answer, log_softmax, logits_after
from pages.ui.models.library import is_large, opened
from pages.ui.models.model_cache import cached
from transformer import TASKS, Checkpoint, patching
from transformer.inference.context_windows import window_start
from transformer.inference.patching import Patching
from transformer.jobs import progress

MAX_TOKENS = 96
"""Tokens that can be patched, from the first that differs: each takes three passes a layer."""
MAX_TOKENS_READ = 8_000
"""Tokens that the search for a suggestion may read."""
MAX_COMPUTE = 90_000_000_000
"""Parameters times tokens that it may read: fewer tokens for a large model."""
MAX_TRIED_TOKENS = 512
"""Tokens that are tried at a position, evenly spread over a larger vocabulary."""
LAST_TOKEN_WEIGHT = 0.05
"""Weight of a change of the last token, against one further back: that the last token matters is no surprise."""
_TEXTS = tomllib.loads(Path(__file__).with_name("prompt_pairs.toml").read_text("utf-8"))
PAIRS = {name: tuple((one, other) for one, other in pairs) for name, pairs in _TEXTS["pairs"].items()}
FACTS = tuple((one, other) for one, other in _TEXTS["facts"])
INTERCHANGEABLE_WORDS = tuple(_TEXTS["interchangeable"])
CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
"""One character stands in for another of its kind."""


@dataclass(frozen=True)
class PromptPair:
    """Two texts as the model reads them, the one on screen first."""

    tokens: tuple[Tokens, Tokens]
    sources: tuple[Tokens, Tokens]
    """What an encoder reads; empty for a model that has none."""
    logits: np.ndarray
    """(2, vocab): what comes after each, or stands at its mask."""
    position: int = -1
    """Whose logits these are: an encoder's first mask; of other models the last."""

    @property
    def answers(self) -> tuple[int, int]:
        """The likeliest next token of each; where that is the same, the tokens for which the other text does most
        harm and most good."""
        own, other = (int(row.argmax()) for row in self.logits)
        if own == other:
            moved = log_softmax(self.logits[1]) - log_softmax(self.logits[0])
            likely = np.exp(log_softmax(self.logits)).max(0)
            return int((moved * likely).argmin()), int((moved * likely).argmax())
        return own, other

    @property
    def differing(self) -> int:
        """Tokens from the first that differs on; 0 for equal texts."""
        length = len(self.tokens[0])
        pairs = enumerate(zip(*self.tokens, strict=True))
        return length - next((at for at, (one, other) in pairs if one != other), length)


@cached
def prompt_pair(
    checkpoint: Checkpoint, own: Tokens, other: Tokens, start: Tokens = (), *, interventions: Interventions = ()
) -> PromptPair:
    """Two texts of one length, and what comes after each, or stands at the mask that both have at one position.

    own, other: what a decoder reads, no more than the context holds; for an encoder–decoder the sources. start: what
    its decoder begins with, then; it goes on with what it would write to both alike, up to where they part.
    """
    if not start:
        tokens, sources = (own, other), ((), ())
    else:
        written = [greedy_answer(checkpoint, start, source) for source in (own, other)]
        same = next((at for at, (a, b) in enumerate(zip(*written, strict=False)) if a != b), 0)
        text = start + written[0][:same]
        tokens, sources = (text, text), (own, other)
    logits = [
        logits_after(checkpoint, [text], [source] if source else [], interventions)
        for text, source in zip(tokens, sources, strict=True)
    ]
    position = -1 if checkpoint.model.config.is_causal else checkpoint.predicted_position(own)
    return PromptPair(tokens, sources, torch.cat(logits).numpy(), position)


@cached
def patching_effects(
    checkpoint: Checkpoint,
    tokens: tuple[Tokens, Tokens],
    sources: tuple[Tokens, Tokens],
    answers: tuple[int, int],
    stack: str,
    position: int = -1,
    *,
    interventions: Interventions = (),
) -> Patching:
    """The share of the other answer that each patch brings.

    tokens, sources, position: as in `PromptPair`; answers: the own token, and the other text's; stack: as in
    `patching`.
    Raises: ValueError, saying why, where nothing can be traced.
    """
    return patching(
        checkpoint.model,
        tokens[1],
        tokens[0],
        answers[1],
        answers[0],
        sources[1],
        sources[0],
        stack=stack,
        position=position,
        interventions=interventions,
        on_progress=progress,
    )


def suggested_pairs(name: str) -> tuple[tuple[str, str], ...]:
    """Pairs of texts that show something of a model: those that are known, or its examples, changed in one token."""
    if name in PAIRS:
        return PAIRS[name]
    checkpoint = opened(name).checkpoint
    if is_large(checkpoint) and checkpoint.model.config.is_causal:
        return tuple(pair for pair in FACTS if _have_equal_length(checkpoint, *pair))
    pairs = [(example, suggested_prompt(name, example)) for example in checkpoint.card.examples[:3]]
    return tuple((example, other) for example, other in pairs if other is not None)


def suggested_prompt(name: str, prompt: str) -> str | None:
    """Another text to put beside a prompt: one that changes what is predicted, or None if no token seems to.

    Of a large model, one in which a word is another of its kind, or None if there is none such.
    """
    known = dict(PAIRS.get(name, ()))
    if prompt in known:
        return known[prompt]
    checkpoint = opened(name).checkpoint
    return _with_another_word(checkpoint, prompt) if is_large(checkpoint) else _changed(name, prompt)


def _with_another_word(checkpoint: Checkpoint, prompt: str) -> str | None:
    """A prompt with the first word that has one of its kind replaced by that, of as many tokens."""
    known = dict(FACTS) | {other: one for one, other in FACTS}
    if prompt in known and _have_equal_length(checkpoint, prompt, known[prompt]):
        return known[prompt]
    for match in re.finditer(r"\w+", prompt):
        kinds = [kind.split() for kind in INTERCHANGEABLE_WORDS]
        for word in (word for kind in kinds if match[0] in kind for word in kind if word != match[0]):
            other = prompt[: match.start()] + word + prompt[match.end() :]
            if _have_equal_length(checkpoint, prompt, other):
                return other
    return None


def _have_equal_length(checkpoint: Checkpoint, one: str, other: str) -> bool:
    """Whether a model can read two texts, as equally many tokens."""
    tokenizer, task = checkpoint.tokenizer, TASKS.get(checkpoint.card.task)
    if any(tokenizer.unknown_pieces(text) or (task and task.problem(text)) for text in (one, other)):
        return False
    return len(tokenizer.encode(one)) == len(tokenizer.encode(other))


@cached
def _changed(checkpoint: Checkpoint, prompt: str) -> str | None:
    """A prompt with one token changed: one that matters much, and stands some way from where it does."""
    tokenizer, shape, card = checkpoint.tokenizer, checkpoint.model.config, checkpoint.card
    tokens = tuple(tokenizer.encode(prompt))
    tried = list(_candidates(checkpoint, tokens))
    budget = min(MAX_TOKENS_READ, MAX_COMPUTE // max(card.parameters, 1))
    step = max(1, -(-len(tried) * min(len(tokens), shape.context_length) // budget))
    kept: list[tuple[int, str, Tokens]] = []
    for position, token in tried[::step]:
        text = tokenizer.decode([*tokens[:position], token, *tokens[position + 1 :]])
        read = tuple(tokenizer.encode(text))
        problem = TASKS[card.task].problem(text) if card.task in TASKS else None
        if problem is None and len(read) == len(tokens):
            kept.append((position, text, read))
    if not kept:
        return None
    rows = [tokens, *(read for _, _, read in kept)]
    begin = window_start(len(tokens), shape.context_length)
    logits = _after(checkpoint, [row[begin:] for row in rows])
    base, others = logits[0], logits[1:]
    predicted = checkpoint.predicted_position(tokens)
    own, new = int(base.argmax()), others.argmax(1)
    every = np.arange(len(others))
    moved = (others[every, new] - others[:, own]) - (base[new] - base[own])
    moved[new == own] = 0
    away = np.array([abs(predicted - position) + 1 for position, _, _ in kept])
    best = int((moved * np.maximum(np.log2(away), LAST_TOKEN_WEIGHT)).argmax())
    if moved[best] <= 0:  # what comes next stays the same; some probabilities do move
        best = int(np.abs(log_softmax(others) - log_softmax(base)).max(1).argmax())
    return kept[best][1]


def _candidates(checkpoint: Checkpoint, tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Places, and tokens to try there: for a letter others of its kind, for a word any, for a sign none."""
    tokenizer = checkpoint.tokenizer
    spread = range(0, tokenizer.vocab_size, max(1, tokenizer.vocab_size // MAX_TRIED_TOKENS))
    vocabulary = {token: tokenizer.decode([token]) for token in spread}
    special = {token for token in (*spread, *tokens) if len(tokenizer.parted(tokenizer.decode([token]))) > 1}
    for position in range(max(len(tokens) - MAX_TOKENS, 0), len(tokens)):
        label = tokenizer.decode([tokens[position]])
        kinds = [kind for kind in CLASSES if label in kind] if len(label) == 1 else []
        for token, other in vocabulary.items():
            if token == tokens[position] or not other.strip() or {token, tokens[position]} & special:
                continue
            if len(label) > 1 < len(other) or any(other in kind for kind in kinds):
                yield position, token


def _after(checkpoint: Checkpoint, texts: list[Tokens]) -> np.ndarray:
    """Logits of what comes after each of several texts of one length, or stands at its mask, (text, vocab)."""
    is_source = checkpoint.model.config.architecture == "encoder-decoder"
    logits = []
    for at in range(0, len(texts), 64):
        batch = texts[at : at + 64]
        begun = [checkpoint.card.start_tokens] * len(batch) if is_source else batch
        logits.append(logits_after(checkpoint, begun, batch if is_source else []))
    return torch.cat(logits).numpy()
