"""Suggests prompts to put beside one another: known pairs, and a prompt with one token changed that matters.

Dimensions: text, vocab.
"""

import re
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..checkpoints.folder import Checkpoint
from ..data.tasks import TASKS
from ..inference.context_windows import window_start
from ..model.layers import widened
from .cache import cached
from .open_models import OpenModel, is_large
from .tensors import Tokens

MAX_TOKENS = 96
"""The last tokens of a prompt, of which one is changed: so many can be patched."""
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


def prompt_pairs(model: OpenModel, prompt: str) -> dict[str, Any]:
    """What `/prompt-pairs` answers."""
    facts = {text for pair in FACTS for text in pair}
    pairs = [{"prompts": pair, "continues": pair[0] in facts} for pair in suggested_pairs(model)]
    return {"suggested": suggested_prompt(model, prompt), "pairs": pairs}


def suggested_pairs(model: OpenModel) -> tuple[tuple[str, str], ...]:
    """Pairs of texts that show something of a model: those that are known, or its examples, changed in one token."""
    if model.name in PAIRS:
        return PAIRS[model.name]
    checkpoint = model.checkpoint
    if is_large(checkpoint) and checkpoint.model.config.is_causal:
        return tuple(pair for pair in FACTS if _have_equal_length(checkpoint, *pair))
    pairs = [(example, suggested_prompt(model, example)) for example in checkpoint.card.examples[:3]]
    return tuple((example, other) for example, other in pairs if other is not None)


def suggested_prompt(model: OpenModel, prompt: str) -> str | None:
    """Another prompt to put beside one: it changes what is predicted. None if no token seems to.

    Of a large model, one in which a word is another of its kind, or None if there is none such.
    """
    known = dict(PAIRS.get(model.name, ()))
    if prompt in known:
        return known[prompt]
    checkpoint = model.checkpoint
    return _with_another_word(checkpoint, prompt) if is_large(checkpoint) else _changed(model, prompt)


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
        best = int(np.abs(_log_softmax(others) - _log_softmax(base)).max(1).argmax())
    return kept[best][1]


def _candidates(checkpoint: Checkpoint, tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Places, and tokens to try there: for a letter or a word others of its kind, for a sign none."""
    tokenizer = checkpoint.tokenizer
    spread = range(0, tokenizer.vocab_size, max(1, tokenizer.vocab_size // MAX_TRIED_TOKENS))
    decoded = {token: tokenizer.decode([token]) for token in spread}
    vocabulary = {token: text for token, text in decoded.items() if not tokenizer.unknown_pieces(text)}
    special = {token for token in (*spread, *tokens) if len(tokenizer.parted(tokenizer.decode([token]))) > 1}
    for position in range(max(len(tokens) - MAX_TOKENS, 0), len(tokens)):
        label = tokenizer.decode([tokens[position]])
        kinds = [kind for kind in CLASSES if label in kind] if len(label) == 1 else []
        for token, other in vocabulary.items():
            if token == tokens[position] or not other.strip() or {token, tokens[position]} & special:
                continue
            is_word = len(label) > 1 < len(other) and _kind_of_word(label) == _kind_of_word(other)
            if is_word or any(other in kind for kind in kinds):
                yield position, token


def _kind_of_word(text: str) -> tuple[bool, bool, bool]:
    """Whether a token begins a word, with a space; with a capital; and is made of letters."""
    word = text.lstrip()
    return word != text, word[:1].isupper(), word.isalpha()


@torch.no_grad()
def _after(checkpoint: Checkpoint, texts: list[Tokens]) -> np.ndarray:
    """Logits of what comes after each of several texts of one length, or stands at its mask, (text, vocab)."""
    model, start = checkpoint.model, checkpoint.card.start_tokens
    logits = []
    for batch in torch.tensor(texts).split(64):
        is_source = model.config.architecture == "encoder-decoder"
        inputs = [batch, torch.tensor(start).repeat(len(batch), 1)] if is_source else [batch]
        positions = [checkpoint.predicted_position(start if is_source else text) for text in batch.tolist()]
        streams = model.stream(*inputs)[torch.arange(len(batch)), positions]
        logits.append(widened(model.unembed(streams)))
    return torch.cat(logits).numpy()


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).double().log_softmax(-1).numpy()
