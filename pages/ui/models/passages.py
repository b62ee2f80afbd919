"""Parts of a text that is written, as the browser gets them: arrays of what was computed, and words for its branches.

Dimensions: place, vocab, head, key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pages.ui.models import recordings
from pages.ui.models.branches import Branch, Written, common
from pages.ui.models.drawing import LIKELIEST
from pages.ui.models.shown_text import Looked
from pages.ui.models.writer import Writer
from transformer import Recording, Sampling, Tokenizer
from transformer.data.tokenizers import HALF

SMALL_VOCABULARY = 256
"""Up to this size all logits of a token are sent, and all tokens' names with the first message of a text."""
NAMED = 10
"""Tokens of a larger one that are named at a place."""
ARROW = " → "
"""Stands for the start token, between the source and what is written from it."""
SNIPPET = 24
"""Tokens of a branch that are shown after it has parted."""
NOT_KNOWN = 2
"""In `picked`: it isn't known how this token came to be there, as in a text that came with a link."""


def passage(writer: Writer, first: int, *, whole: bool, looked: Looked | None, head: int,
            places: Iterable[tuple[int, int]] = ()) -> Recording:  # fmt: skip
    """A text from a place on, with rows of one head.

    whole: it replaces what the browser has. places: first and last of those whose rows are asked for; rows that are
    still known come along with every new token.
    Tensors: of each token `ids`, `probability`, `rank`, `entropy`, `picked` (0: drawn, 1: by the visitor, `NOT_KNOWN`),
    `dial` (an index into `dials`), and `logits` (place, vocab), or of a large vocabulary `top_ids` and `top_logits`
    (place, likeliest) and `normaliser`, the logarithm of the sum of all exp(logits). `rows` lie one after another;
    `row_place`, `row_start` and `row_length` say whose they are, where they begin, and how long they are.
    """
    branch, tokenizer = writer.branch, writer.opened.checkpoint.tokenizer
    shape, card = writer.opened.checkpoint.model.config, writer.opened.checkpoint.card
    begin = len(writer.prompt)
    tokens = branch.tokens[first - begin :]
    tensors = statistics(tokens)
    tensors |= _logits(writer, range(first, first + len(tokens)))
    dials, tensors["dial"] = _dials(tokens)
    if looked:
        tensors |= _rows(writer, looked, head, first, places)
    named = set(writer.prompt + writer.source) if whole else set()
    if shape.vocab_size > SMALL_VOCABULARY:
        named |= {token.id for token in tokens} | set(tensors["top_ids"][:, :NAMED].flatten().tolist())
    elif whole:
        named = set(range(shape.vocab_size))
    about: dict[str, Any] = {
        "id": identity(writer),
        "branch": branch.id,
        "length": branch.length,
        "goal": writer.goal,
        "ended": writer.ended,
        "first": first,
        "whole": whole,
        "kinds": names(tokenizer, named),
        "vocabulary": shape.vocab_size,
        "points": [token.point for token in tokens],
        "end": card.end_token_id,
        "context": shape.context_length,
        "rows_of": None if looked is None else [looked.kind, looked.layer, head],
        "branches": branches(writer, tokenizer),
        "can_undo": branch.parent is not None,
        "dials": dials,
    }
    if whole:
        about["prompt"] = {"source": list(writer.source), "text": list(writer.prompt)}
    if writer.source:
        about["start_label"] = ARROW
    return Recording(tensors, about)


def compared(writer: Writer, other: Branch) -> Recording:
    """Another branch, from where it parts from the one on screen."""
    tokenizer, parts = writer.opened.checkpoint.tokenizer, common(writer.written, other.written)
    tokens = other.written[parts:]
    found = statistics(tokens)
    kinds = names(tokenizer, {token.id for token in tokens}) if _is_large(writer) else {}
    tensors = {f"other.{name}": found[name] for name in ("ids", "probability", "rank", "entropy")}
    return Recording(tensors, {"compared": {"with": other.id, "first": writer.branch.begin + parts}, "kinds": kinds})


def identity(writer: Writer) -> str:
    """The same only for the same model, changed in the same way, prompt and source of one visitor."""
    return f"{recordings.identity(writer.opened, writer.prompt, writer.source, '', writer.interventions)}-{writer.mark}"


def statistics(tokens: Sequence[Written]) -> dict[str, np.ndarray]:
    """What is known of each token, as arrays."""
    known = [token.picked or NOT_KNOWN * (token.sampling is None) for token in tokens]
    return {
        "ids": np.array([token.id for token in tokens], np.int32),
        "probability": np.array([token.probability for token in tokens], np.float32),
        "rank": np.array([token.rank for token in tokens], np.int32),
        "entropy": np.array([token.entropy for token in tokens], np.float32),
        "picked": np.array(known, np.uint8),
    }


def names(tokenizer: Tokenizer, ids: Iterable[int]) -> dict[str, list[str]]:
    """What tokens are called and what they add to a text; third, if it differs, what they add as the first of one."""
    found = {}
    for token in sorted(ids):
        label = tokenizer.label(token)
        shown, first = (shown_as(tokenizer.piece(token, first=first), label) for first in (False, True))
        found[str(token)] = [label, shown] if first == shown else [label, shown, first]
    return found


def shown_as(text: str, label: str) -> str:
    """The raw text where it can be seen or is white space that the page lays out, else the printable label.

    A special token adds nothing to a text: it is shown by its name.
    """
    if HALF in text:  # a part of a character, whose bytes the label tells
        return label
    seen = text and all(character.isprintable() or character in " \n\t" for character in text)
    return text if seen else label if text else f" {label}"


def branches(writer: Writer, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The texts after this prompt: which was begun from which, where they part, and how they go on there."""
    return [
        {
            "id": branch.id,
            "parent": branch.parent.id if branch.parent else None,
            "at": branch.at,
            "name": _name(branch, tokenizer),
            "tokens": branch.seen,
            "current": branch is writer.branch,
            "text": _snippet(branch, tokenizer),
        }
        for branch in writer.tree.branches
    ]


def _name(branch: Branch, tokenizer: Tokenizer) -> str:
    if branch.parent is None:
        return "the first text"
    here, there = (text[branch.at - branch.begin :] for text in (branch.written, branch.parent.written))
    if not here:
        return f"at {branch.at}: nothing yet"
    if not there:
        return f"at {branch.at}: goes on with “{tokenizer.label(here[0].id)}”"
    return f"at {branch.at}: “{tokenizer.label(here[0].id)}” instead of “{tokenizer.label(there[0].id)}”"


def _snippet(branch: Branch, tokenizer: Tokenizer) -> str:
    parts = 0 if branch.at is None else branch.at - branch.begin
    shown = branch.tokens[parts : min(parts + SNIPPET, branch.seen)]
    return tokenizer.decode([token.id for token in shown])


def _dials(tokens: Sequence[Written]) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The samplings that tokens were drawn with, each once, and which of them is whose."""
    found: dict[Sampling, int] = {}
    which = [found.setdefault(token.sampling or Sampling(), len(found)) for token in tokens]
    told = [{**dataclasses.asdict(dial), "top_k": dial.top_k or 0, "top_p": dial.top_p or 1.0} for dial in found]
    return told, np.array(which, np.int32)


def _logits(writer: Writer, places: range) -> dict[str, np.ndarray]:
    vocabulary = writer.opened.checkpoint.model.config.vocab_size
    if vocabulary <= SMALL_VOCABULARY:
        rows = writer.logits(places)
        return {"logits": np.stack(rows).astype(np.float32) if rows else np.empty((0, vocabulary), np.float32)}
    found = writer.likeliest(places)
    tops = np.stack(found) if found else np.empty((0, min(LIKELIEST, vocabulary) + 1, 2))
    return {
        "top_ids": tops[:, :-1, 0].astype(np.int32),
        "top_logits": tops[:, :-1, 1].astype(np.float32),
        "normaliser": tops[:, -1, 1].astype(np.float32),
    }


def _rows(
    writer: Writer, looked: Looked, head: int, first: int, places: Iterable[tuple[int, int]]
) -> dict[str, np.ndarray]:
    found = writer.rows(looked, first, writer.branch.end, only_kept=True)
    for one, last in places:
        found |= writer.rows(looked, one, last)
    found = dict(sorted(found.items()))
    rows = [row[head] for row in found.values()]
    lengths = np.array([len(row) for row in rows], np.int32)
    ends = np.array([*found], np.int32)
    return {
        "rows": np.concatenate(rows).astype(np.float32) if rows else np.empty(0, np.float32),
        "row_place": ends,
        "row_start": np.zeros_like(ends) if looked.kind == "cross" else ends - lengths,
        "row_length": lengths,
    }


def _is_large(writer: Writer) -> bool:
    return writer.opened.checkpoint.model.config.vocab_size > SMALL_VOCABULARY
