"""Describes a generated text for the API: token labels, sampling steps, and attention rows.

Positions count the tokens of the decoder's text from 0, prompt included. Dimensions: position, vocab, head, key.
"""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..checkpoints.folder import Checkpoint
from ..data.token_names import kinds_of
from ..data.tokenizers import Tokenizer
from ..inference.analysis import token_statistics
from ..inference.context_windows import by_window, in_window
from ..inference.generation import GenerationStep
from ..inference.interventions import hooks_of
from ..inference.logits import logits_in_pieces, stream_of
from ..inference.recording import Recording, plain_array
from ..inference.sampling import Sampling, random_points, token_at
from .cache import cached
from .open_models import OpenModel
from .tensors import Interventions, Tokens

SMALL_VOCABULARY = 256
"""The largest vocabulary whose logits are all sent, and whose tokens are all named with a text's scores."""
LIKELIEST = 64
"""The logits that stand for all of a larger vocabulary."""
NAMED = 10
"""The tokens named at a position, then."""
MOST_WINDOWS = 8
"""The most passes for one request of rows."""


def top_of(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The likeliest tokens' ids and logits, the largest first and equal ones by their id, and the logarithm of the sum
    of all exp(logits), so that what the others have together is known exactly. logits: (vocab,)."""
    count = min(LIKELIEST, len(logits))
    among = np.flatnonzero(logits >= np.partition(logits, -count)[-count])
    order = among[np.argsort(-logits[among], kind="stable")[:count]]
    exact = logits.astype(np.float64)
    return order, logits[order], float(exact.max() + np.log(np.exp(exact - exact.max()).sum()))


def step_json(step: GenerationStep, tokenizer: Tokenizer, module: str | None, head: int) -> dict[str, Any]:
    """A token that was generated, for a stream's event. module: the attention whose head's newest row comes with it.

    Arrays are float32, little-endian, in base64.
    """
    logits = step.logits.numpy()
    payload: dict[str, Any] = {
        "position": step.position,
        "id": step.token_id,
        "label": tokenizer.label(step.token_id),
        "probability": step.probability,
        "rank": step.rank,
        "entropy": step.entropy,
        "point": step.point,
        "window_start": step.window_start,
    }
    if len(logits) <= SMALL_VOCABULARY:
        payload["logits"] = _packed(logits)
    else:
        ids, values, normaliser = top_of(logits)
        payload["top"] = {"ids": ids.tolist(), "logits": _packed(values), "normaliser": normaliser}
        payload["kinds"] = kinds_of(tokenizer, [step.token_id, *ids[:NAMED]])
    if module is not None:
        payload["row"] = _packed(step.cache[f"{module}.hook_pattern"][0, head, -1].float().numpy(force=True))
        payload["row_start"] = 0 if module.endswith("cross_attn") else step.window_start
    return payload


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def scores(
    model: OpenModel, tokens: Tokens, source: Tokens, first: int, sampling: Sampling, interventions: Interventions
) -> Recording:
    """The model's prediction of each token of a text from a position on, and of the token after the text.

    sampling: how each position's token would be drawn. interventions: at positions of the whole text.
    Tensors, by position from `first` to the one after the text: `drawn`, the token that sampling draws there, and
    `points` (float64), the random number that decides it; `probability` (float64), `rank` and `entropy` of the
    token that is there, or after the text of the one that is drawn; `window_start`; `logits` (position, vocab), or of
    a large vocabulary `top_ids` and `top_logits` (position, likeliest) and `normaliser`.
    Metadata: `kinds`, the names of the text's tokens and of the likeliest, or of all of a small vocabulary.
    """
    scored = _scores(model, tokens, source, first, sampling, interventions)
    tokenizer = model.checkpoint.tokenizer
    named = set(range(tokenizer.vocab_size))
    if tokenizer.vocab_size > SMALL_VOCABULARY:
        named = {*tokens, *source, *map(int, scored["drawn"]), *map(int, scored["top_ids"][:, :NAMED].flat)}
    return Recording(scored, {"first": first, "kinds": kinds_of(tokenizer, named)})


@cached
def _scores(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, first: int, sampling: Sampling, interventions: Interventions
) -> dict[str, np.ndarray]:
    positions = range(first, len(tokens) + 1)
    is_small = checkpoint.model.config.vocab_size <= SMALL_VOCABULARY
    points = random_points(sampling, first, ahead=min(len(positions), 64))
    statistics_by_position: list[tuple] = []
    expected: list[Any] = []
    for start, position, logits in _expected(checkpoint, tokens, source, positions, interventions):
        point = next(points)
        drawn = token_at(point, logits, sampling)
        statistics = token_statistics(logits, tokens[position] if position < len(tokens) else drawn)
        statistics_by_position.append((drawn, point, *statistics, start))
        expected.append(logits.numpy().copy() if is_small else top_of(logits.numpy()))
    types = {
        "drawn": np.int32,
        "points": np.float64,
        "probability": np.float64,
        "rank": np.int32,
        "entropy": np.float32,
        "window_start": np.int32,
    }
    columns = {
        name: np.array(column, kind)
        for (name, kind), column in zip(types.items(), zip(*statistics_by_position, strict=True), strict=True)
    }
    if is_small:
        return columns | {"logits": np.stack(expected)}
    ids, values, normalisers = zip(*expected, strict=True)
    return columns | {
        "top_ids": np.stack(ids).astype(np.int32),
        "top_logits": np.stack(values),
        "normaliser": np.array(normalisers, np.float32),
    }


def _expected(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, positions: range, interventions: Interventions
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """For each position: where its window begins, the position, and the logits (vocab,) its token is drawn from."""
    model, start = checkpoint.model, 0
    hooks = hooks_of(interventions, model, lambda: start)  # for all passes: another text is recorded once
    for start, lengths in by_window(positions, checkpoint.model.config.context_length, interventions):
        stream = stream_of(model, tokens[start : lengths[-1]], source, hooks)[lengths[0] - 1 - start :]
        for rows, logits in logits_in_pieces(model, stream):
            for row, position in zip(logits, lengths[rows.start : rows.stop], strict=True):
                yield start, position, row.float()


def rows(
    model: OpenModel,
    tokens: Tokens,
    source: Tokens,
    module: str,
    head: int,
    positions: range,
    interventions: Interventions,
) -> Recording:
    """The attention rows from which the token at each of these positions was chosen, in the last few windows.

    module: an attention of the decoder. interventions: at positions of the whole text.
    Tensors: `rows`, one after another; `place`, `start`, `length`: whose each is, where it begins, how long it is.
    """
    checkpoint = model.checkpoint
    rows_by_position: dict[int, tuple[int, np.ndarray]] = {}
    for start, lengths in by_window(positions, checkpoint.model.config.context_length, interventions)[-MOST_WINDOWS:]:
        pattern = _pattern(model, tokens[start : lengths[-1]], source, module, in_window(interventions, start))
        for position in lengths:
            at = position - 1 - start
            row = pattern[head, at] if module.endswith("cross_attn") else pattern[head, at, : at + 1]
            rows_by_position[position] = 0 if module.endswith("cross_attn") else start, row
    lengths = [len(row) for _, row in rows_by_position.values()]
    return Recording(
        {
            "rows": np.concatenate([np.empty(0, np.float32), *(row for _, row in rows_by_position.values())]),
            "place": np.array([*rows_by_position], np.int32),
            "start": np.array([start for start, _ in rows_by_position.values()], np.int32),
            "length": np.array(lengths, np.int32),
        },
        {"module": module, "head": head},
    )


@cached
def _pattern(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, module: str, interventions: Interventions
) -> np.ndarray:
    """(head, query, key)."""
    point, model = f"{module}.hook_pattern", checkpoint.model
    inputs = [torch.tensor([list(ids)]) for ids in (source, tokens) if ids]
    with torch.no_grad():
        cache = model.run_until_recorded(*inputs, names_filter=point, fwd_hooks=hooks_of(interventions, model))
    return plain_array(cache[point][0])
