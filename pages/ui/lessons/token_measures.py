"""Measures tokens: how texts are tokenized, how similar embeddings are. See `measures`."""

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import library
from transformer import EncoderDecoder

LONGEST_SAMPLE = 2_000
"""Characters that pairs are merged in."""
MAX_MERGES = 50
MAX_NEIGHBOURS = 20


@measure
def cut(setup: Setup) -> list:
    """The tokens of the text, as the model's tokenizer cuts it."""
    return [setup.label(token) for token in setup.tokens]


@measure
def unknown_count(setup: Setup) -> int:
    """How many pieces of the prompt the model's vocabulary lacks."""
    return len(setup.tokenizer.unknown_pieces(setup.prompt or ""))


@measure
def merges(setup: Setup, sample: str, times: int = 1) -> list:
    """The tokens that byte pair encoding makes of a sample, in order: each joins the pair that is then most frequent.

    Pairs are counted inside words. Source: Sennrich et al. 2016, §3.2.
    """
    if not 1 <= times <= MAX_MERGES or len(sample) > LONGEST_SAMPLE:
        raise MeasureError(f"times is from 1 to {MAX_MERGES}, of a sample of at most {LONGEST_SAMPLE} characters")
    alphabet = sorted(set(sample) - {" "})
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + times, initial_alphabet=alphabet, limit_alphabet=len(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator([sample], trainer)
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary.keys() - set(alphabet), key=vocabulary.__getitem__)


@measure
def embedding_similarity(setup: Setup, one: str, other: str) -> float:
    """The cosine of the angle between two tokens' embeddings."""
    table = _directions(setup)
    return float(table[setup.token(one)] @ table[setup.token(other)])


@measure
def nearest_tokens(setup: Setup, token: str, count: int = 5) -> list:
    """The tokens whose embeddings are most similar to a token's, by cosine, the most similar first."""
    if not 1 <= count <= MAX_NEIGHBOURS:
        raise MeasureError(f"count is from 1 to {MAX_NEIGHBOURS}")
    table, own = _directions(setup), setup.token(token)
    order = np.argsort(-(table @ table[own]), kind="stable")
    return [setup.label(int(token)) for token in order[order != own][:count]]


@measure
def nearest_to_sum(setup: Setup, plus: str, minus: str, other: str, count: int = 1) -> list:
    """The tokens whose embeddings are most similar to `plus` − `minus` + `other`, by cosine; those three may be among
    them.

    Source: Mikolov et al. 2013, "Linguistic regularities in continuous space word representations".
    """
    if not 1 <= count <= MAX_NEIGHBOURS:
        raise MeasureError(f"count is from 1 to {MAX_NEIGHBOURS}")
    table = _embeddings(setup)
    wanted = table[setup.token(plus)] - table[setup.token(minus)] + table[setup.token(other)]
    order = np.argsort(-(_directions(setup) @ wanted), kind="stable")
    return [setup.label(int(token)) for token in order[:count]]


def _embeddings(setup: Setup) -> np.ndarray:
    """(vocab, d_model)."""
    model = library.model(setup.name).model
    return (model.decoder if isinstance(model, EncoderDecoder) else model).embed.weight.detach().numpy()


def _directions(setup: Setup) -> np.ndarray:
    """(vocab, d_model): the embeddings, each of length one."""
    table = _embeddings(setup)
    return table / np.linalg.norm(table, axis=1, keepdims=True)
