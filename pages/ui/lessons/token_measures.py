"""What lessons can measure of tokens: how texts are cut, how alike embeddings are. See `measures`."""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pages.ui.lessons.measure_calls import measure
from pages.ui.lessons.measure_setup import MeasureError, Scene
from pages.ui.models import library

LONGEST_SAMPLE = 2_000
"""Characters that pairs are merged in."""
MOST_MERGES = 50
MOST_NEIGHBOURS = 20


@measure
def cut(scene: Scene) -> list:
    """The tokens of the text, as the model's tokenizer cuts it."""
    return [scene.label(token) for token in scene.tokens]


@measure
def unknown_count(scene: Scene) -> int:
    """How many pieces of the prompt the model's vocabulary lacks."""
    return len(scene.tokenizer.unknown_pieces(scene.prompt or ""))


@measure
def merges(scene: Scene, sample: str, times: int = 1) -> list:
    """The tokens that byte pair encoding makes of a sample, in order: each joins the pair that is then most frequent.

    Pairs are counted inside words. Source: Sennrich et al. 2016, §3.2.
    """
    if not 1 <= times <= MOST_MERGES or len(sample) > LONGEST_SAMPLE:
        raise MeasureError(f"times is from 1 to {MOST_MERGES}, of a sample of at most {LONGEST_SAMPLE} characters")
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
def embedding_similarity(scene: Scene, one: str, other: str) -> float:
    """The cosine of the angle between two tokens' embeddings."""
    table = _directions(scene)
    return float(table[scene.token(one)] @ table[scene.token(other)])


@measure
def nearest_tokens(scene: Scene, token: str, count: int = 5) -> list:
    """The tokens whose embeddings are most similar to a token's, by cosine, the most similar first."""
    if not 1 <= count <= MOST_NEIGHBOURS:
        raise MeasureError(f"count is from 1 to {MOST_NEIGHBOURS}")
    table, own = _directions(scene), scene.token(token)
    order = np.argsort(-(table @ table[own]), kind="stable")
    return [scene.label(int(each)) for each in order[order != own][:count]]


@measure
def nearest_to_sum(scene: Scene, plus: str, minus: str, other: str, count: int = 1) -> list:
    """The tokens whose embeddings are most similar to `plus` − `minus` + `other`, by cosine; those three may be among
    them.

    Source: Mikolov et al. 2013, "Linguistic regularities in continuous space word representations".
    """
    if not 1 <= count <= MOST_NEIGHBOURS:
        raise MeasureError(f"count is from 1 to {MOST_NEIGHBOURS}")
    table = _embeddings(scene)
    wanted = table[scene.token(plus)] - table[scene.token(minus)] + table[scene.token(other)]
    order = np.argsort(-(_directions(scene) @ wanted), kind="stable")
    return [scene.label(int(each)) for each in order[:count]]


def _embeddings(scene: Scene) -> np.ndarray:
    """(vocab, d_model)."""
    return library.model(scene.name).model.embed.weight.detach().numpy()


def _directions(scene: Scene) -> np.ndarray:
    """(vocab, d_model): the embeddings, each of length one."""
    table = _embeddings(scene)
    return table / np.linalg.norm(table, axis=1, keepdims=True)
