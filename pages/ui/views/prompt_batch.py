"""Reads a batch of prompts, pads it, and computes its masks.

Shapes: batch, pos, query, key.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.markdown import code
from transformer import ModelConfig, Tokenizer, causal_mask, padding_mask
from transformer.data.token_text import printable

MAX_LINES = 8
LONGEST_LINE = 64
"""Tokens of a line, so that its masks can still be read."""
LONGEST_TYPED = 2_000
"""Characters of a line that is looked at at all."""
SUGGESTED_LINES = 4
SUGGESTED_TOKENS = 16
PADDING = "∅"
"""How a padding token is labelled."""


@dataclass(frozen=True)
class PromptBatch:
    """The lines that can be used, and a sentence for whatever is wrong with the others."""

    lines: tuple[int, ...]
    """Which line each prompt is, counted from 1."""
    texts: tuple[str, ...]
    """As they were typed, spaces made visible."""
    prompts: tuple[tuple[int, ...], ...]
    problems: tuple[str, ...]
    tokenizer: Tokenizer
    """The model's, with the new words of all lines."""


@dataclass(frozen=True)
class Cells:
    """What becomes of the cells of one prompt's attention, query × key, in a batch."""

    used: int
    future: int
    """Hidden by the causal mask; both tokens are real."""
    wasted: int
    """The query or the key is padding."""


def read_batch(text: str, tokenizer: Tokenizer, context: int) -> PromptBatch:
    """One prompt a line. A line that can't be used is left out, one that is too long is cut; a sentence says so.

    tokenizer: with the new words of what else is on the page. context: how many tokens the model holds.
    """
    written = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    tokenizer = tokenizer.with_new_words([*tokenizer.new_words, *written[:MAX_LINES]])
    lines, texts, prompts, problems = [], [], [], []
    for number, line in enumerate(written[:MAX_LINES], start=1):
        tokens, problem = _read_line(line, tokenizer, context)
        if tokens:
            lines.append(number)
            texts.append(printable(line))
            prompts.append(tokens)
        if problem:
            problems.append(f"Line {number} {problem}")
    if len(written) > MAX_LINES:
        over = len(written) - MAX_LINES
        problems.append(
            f"There are {len(written)} lines, and a batch here has at most {MAX_LINES}; "
            f"the last {'one is' if over == 1 else f'{over} are'} left out."
        )
    return PromptBatch(tuple(lines), tuple(texts), tuple(prompts), tuple(problems), tokenizer)


def suggest_batch(examples: Iterable[str], tokenizer: Tokenizer, context: int) -> str:
    """A few short prompts of different lengths, one a line, the shortest first, made from a model's examples."""
    limit = min(context, SUGGESTED_TOKENS)
    lines = dict.fromkeys(line for example in examples for line in example.split("\n") if line.strip())
    tokenizer = tokenizer.with_new_words(lines)
    known = [line for line in lines if not tokenizer.unknown_pieces(line)]
    prompts = [tokens for line in known if (tokens := tokenizer.encode(line)[:limit])][:SUGGESTED_LINES]
    if prompts and len(prompts) < 3:
        prompts += [prompts[0][: max(len(prompts[0]) * part // 3, 1)] for part in (2, 1)]
    texts: dict[int, str] = {}
    for tokens in prompts:
        cuts = {n: tokenizer.decode(tokens[:n]) for n in range(len(tokens), 0, -1)}
        fitting = (
            n
            for n, text in cuts.items()
            if n not in texts
            and text == text.rstrip()
            and not tokenizer.unknown_pieces(text)
            and tokenizer.encode(text) == tokens[:n]
        )
        if length := next(fitting, 0):
            texts[length] = cuts[length]
    return "\n".join(texts[length] for length in sorted(texts))


def padding_id(config: ModelConfig) -> int:
    """The model's padding token; for a model that has none, the first id outside its vocabulary."""
    return config.vocab_size if config.pad_token_id is None else config.pad_token_id


def rectangle(prompts: Sequence[Sequence[int]], pad: int, side: str) -> np.ndarray:
    """The prompts as rows of one array, (batch, pos), filled up with `pad` on the "left" or the "right"."""
    width = max(map(len, prompts))
    tokens = np.full((len(prompts), width), pad, dtype=np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[slice(width - len(prompt), None) if side == "left" else slice(len(prompt))] = prompt
    return tokens


def hides_future(pos: int) -> np.ndarray:
    """The engine's causal mask: bool (query, key), True where visible."""
    return causal_mask(pos, pos).numpy()


def hides_padding(tokens: np.ndarray, pad: int) -> np.ndarray:
    """The engine's padding mask of a rectangle (batch, pos), for every query: bool (batch, query, key)."""
    mask = padding_mask(torch.from_numpy(tokens), pad)
    return mask[:, 0].expand(-1, tokens.shape[1], -1).numpy()


def count_cells(padding: np.ndarray, *, causal: bool) -> Cells:
    """Count what becomes of the cells of one prompt, given its padding mask (query, key)."""
    real = padding & padding.T
    visible = hides_future(len(real)) if causal else np.ones_like(real)
    return Cells(used=int((real & visible).sum()), future=int((real & ~visible).sum()), wasted=int((~real).sum()))


def token_labels(tokens: Iterable[int], tokenizer: Tokenizer, pad: int) -> list[str]:
    """What each token of a row is called; padding has a sign of its own."""
    return [PADDING if token == pad else tokenizer.label(int(token)) for token in tokens]


def _read_line(line: str, tokenizer: Tokenizer, context: int) -> tuple[tuple[int, ...], str]:
    """A line's tokens, none if it can't be used, and how the sentence about it continues after `Line 1`."""
    if len(line) > LONGEST_TYPED:
        return (), f"has {len(line):,} characters. That is too long for this picture; it is left out."
    if unknown := tokenizer.unknown_pieces(line):
        listed = ", ".join(f"{code(piece.text, 40)} (character {piece.position + 1})" for piece in unknown[:3])
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        return (), f"has {listed}{more}, which this model has never seen; it is left out.{tokenizer.limit}"
    tokens = tuple(tokenizer.encode(line))
    if not tokens:
        return (), "is empty, and a prompt has at least one token; it is left out."
    if len(tokens) > context and context <= LONGEST_LINE:
        return tokens[:context], f"has {len(tokens)} tokens, and this model's context holds {context}; it is cut there."
    if len(tokens) > LONGEST_LINE:
        return tokens[:LONGEST_LINE], (
            f"has {len(tokens)} tokens; it is cut after {LONGEST_LINE}, so that its masks can still be read."
        )
    return tokens, ""
