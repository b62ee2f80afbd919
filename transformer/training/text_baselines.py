"""What a model of a text has to beat: a table of pairs, and programs that compress texts."""

from __future__ import annotations

import lzma
import math
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.corpora import Corpus
from ..data.tokenizers import Tokenizer

SMOOTHING = 0.1
"""Added to every pair's count. On texts of 1 kB to 1 MB, read by characters, much less or much more gives a higher
loss."""
COMPRESSORS = {
    "xz": lambda content: lzma.compress(content, preset=9 | lzma.PRESET_EXTREME),
    "gzip": lambda content: zlib.compress(content, 9),
}
"""zlib is what gzip compresses with."""


def bits_per_byte(corpus: Corpus, tokenizer: Tokenizer, loss: float) -> dict[str, float]:
    """Bits for each byte of a corpus's validation part: by a `model` with this loss, in nats per token; by the best
    `bigram` table of the tokens; and by `COMPRESSORS`, each of which has read the training part before.

    However a model cuts a text into tokens, such figures can be compared.
    """
    train, validation = corpus.split()
    seen, unseen = (tokenizer.encode(part) for part in (train, validation))
    size = len(validation.encode())
    per_token = (len(unseen) - 1) / math.log(2) / size  # the first token isn't predicted
    _, bigram = bigram_loss(seen, unseen, tokenizer.vocab_size)
    read = {name: len(pack(train.encode())) for name, pack in COMPRESSORS.items()}
    packed = {name: len(pack(corpus.text.encode())) - read[name] for name, pack in COMPRESSORS.items()}
    return {
        "model": loss * per_token,
        "bigram": bigram * per_token,
        **{name: 8 * more / size for name, more in packed.items()},
    }


def bigram_loss(
    train: Sequence[int] | Tensor, validation: Sequence[int] | Tensor, vocab_size: int
) -> tuple[float, float]:
    """The loss of the best bigram table, which knows only the last token: the lowest that a table of pairs can reach.

    The training part is scored with the counted frequencies themselves, which no table can beat. In a table for the
    validation part no unseen pair is impossible: either `SMOOTHING` is added to each count (Lidstone 1920), which suits
    few tokens, or a token's frequency by itself counts as much as there are kinds of tokens after the last one (Witten
    and Bell 1991), which suits many; the better one is taken.
    Returns: mean cross-entropy on the training part and on the validation part, in nats per token.
    Raises: ValueError for a part without a pair, or ids outside the vocabulary.
    """
    counts, seen = _pair_counts(train, vocab_size), _pair_counts(validation, vocab_size)
    rows = counts.sum(1, keepdim=True)
    kinds = (counts > 0).sum(1, keepdim=True).clamp(min=1)
    alone = (counts.sum(0) + 1) / (rows.sum() + vocab_size)
    added = (counts + SMOOTHING) / (rows + SMOOTHING * vocab_size)
    mixed = (counts + kinds * alone) / (rows + kinds)
    frequencies = counts / rows.clamp(min=1)
    return _mean_surprise(counts, frequencies), min(_mean_surprise(seen, table) for table in (added, mixed))


def _pair_counts(tokens: Sequence[int] | Tensor, vocab_size: int) -> Tensor:
    """Counts of pairs, (vocab, vocab): row by the first token, column by the second."""
    tokens = torch.as_tensor(tokens)
    if len(tokens) < 2:
        raise ValueError("A table of pairs needs a text of at least two tokens.")
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(f"Token ids must lie between 0 and {vocab_size - 1} for a vocabulary of {vocab_size}.")
    pairs = tokens[:-1] * vocab_size + tokens[1:]
    return torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size).double()


def _mean_surprise(counts: Tensor, probabilities: Tensor) -> float:
    return -float(torch.special.xlogy(counts, probabilities).sum() / counts.sum())
