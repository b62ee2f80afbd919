"""Computes what a model predicts at each position of one pass: after each token, or of an encoder in its place.

Dimensions: pos, vocab, likeliest.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ..checkpoints.folder import Checkpoint
from ..data.token_names import kinds_of
from ..inference.analysis import check_logits
from ..inference.interventions import hooks_of
from ..inference.logits import logits_in_pieces, stream_of
from ..inference.recording import Recording
from ..model.models import EncoderOnly
from .cache import cached
from .generated_texts import NAMED, SMALL_VOCABULARY, top_of
from .open_models import OpenModel
from .tensors import Interventions, Tokens

AT_ONCE = 4_096
"""Tokens of a batch of copies of one text, each with another token masked."""
MAX_COMPUTE = 90_000_000_000
"""Parameters times tokens that masking each in turn may cost."""
FEWEST_MASKED = 8
"""Tokens that are masked at least, whatever that costs."""


def most_masked(checkpoint: Checkpoint, length: int) -> int:
    """How many tokens of a text of this length may be masked in turn."""
    return max(MAX_COMPUTE // max(checkpoint.card.parameters * length, 1), FEWEST_MASKED)


def predictions(
    model: OpenModel, texts: Sequence[tuple[Tokens, Tokens]], first: int, last: int, interventions: Interventions
) -> Recording:
    """Logits at the positions from first to last of one text after the other, as `logits_at` computes them.

    texts: tokens and source of each; all have the same tokens. Tensors: `logits` (pos, vocab), or of a large vocabulary
    `top_ids` and `top_logits` (pos, likeliest) and `normaliser` (pos,). Metadata: `kinds`, the names of the texts'
    tokens and of the likeliest, or of all of a small vocabulary.
    """
    by_text = [_predictions(model, *text, first, last, interventions) for text in texts]
    found = {name: np.concatenate([of_text[name] for of_text in by_text]) for name in by_text[0]}
    (tokens, source), tokenizer = texts[0], model.checkpoint.tokenizer
    named = set(range(tokenizer.vocab_size))
    if "top_ids" in found:
        named = {*tokens, *source, *map(int, found["top_ids"][:, :NAMED].flat)}
    return Recording(found, {"kinds": kinds_of(tokenizer, named)})


@cached
def _predictions(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, first: int, last: int, interventions: Interventions
) -> dict[str, np.ndarray]:
    rows = [
        row.float().numpy(force=True)
        for logits in logits_at(checkpoint, tokens, source, range(first, last + 1), interventions)
        for row in logits
    ]
    check_logits(np.array([row.max() for row in rows]))
    if checkpoint.model.config.vocab_size <= SMALL_VOCABULARY:
        return {"logits": np.stack(rows)}
    ids, values, normalisers = zip(*map(top_of, rows), strict=True)
    return {
        "top_ids": np.stack(ids).astype(np.int32),
        "top_logits": np.stack(values),
        "normaliser": np.array(normalisers, np.float32),
    }


def logits_at(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, positions: range, interventions: Interventions
) -> Iterator[torch.Tensor]:
    """The logits after the tokens at some positions, (pos, vocab), in pieces: all of one pass.

    An encoder gives those in each token's place, which is masked for it, and so needs a pass for each.
    """
    model, mask = checkpoint.model, checkpoint.card.mask_token_id
    hooks = hooks_of(interventions, model)
    if isinstance(model, EncoderOnly):
        assert mask is not None  # no checkpoint of an encoder lacks it
        at = torch.tensor(positions)
        texts = torch.tensor(tokens).repeat(len(at), 1)
        texts[torch.arange(len(at)), at] = mask
        size = max(AT_ONCE // len(tokens), 1)
        with torch.no_grad(), model.hooked(hooks):
            parts = zip(texts.split(size), at.split(size), strict=True)
            stream = torch.cat([model.stream(some)[torch.arange(len(some)), place] for some, place in parts])
    else:
        stream = stream_of(model, tokens, source, hooks)[positions.start : positions.stop]
    for _, logits in logits_in_pieces(model, stream):
        yield logits
