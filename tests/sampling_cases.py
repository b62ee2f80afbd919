"""Samples tokens in Python, for the tests of the JavaScript that does the same."""

import numpy as np
import torch

from transformer import Sampling, sampling_distribution
from transformer.inference.sampling import token_at

TEMPERATURES = (0.0, 1e-300, 1e-6, 0.05, 0.8, 1.0, 2.0)


def draw_cases(count: int = 300) -> list[dict]:
    """Logits of many shapes, with ties and with some that are hopeless; of each what its settings make of it.

    Among the random numbers are 0, the largest below 1, and those on the edges of shares.
    """
    rng = np.random.default_rng(0)
    cases = []
    for case in range(count):
        vocab = int(rng.integers(1, 90))
        logits = rng.normal(0, rng.choice([0.1, 1, 5, 30]), vocab).astype(np.float32)
        if case % 3 == 0:
            logits = np.round(logits)  # many are equal
        if case % 5 == 0:
            logits[rng.random(vocab) < 0.3] = -1e30
        settings = Sampling(
            temperature=float(TEMPERATURES[case % len(TEMPERATURES)]),
            top_k=int(rng.integers(1, vocab + 2)) if rng.random() < 0.6 else None,
            top_p=float(np.round(rng.uniform(0.05, 1), 2)) if rng.random() < 0.6 else None,
        )
        scores = torch.from_numpy(logits)
        probabilities = sampling_distribution(scores, settings).numpy()
        # Next to an edge, not on it: what exp gives differs in its last digit from language to language.
        edges = [float(edge) + shift for edge in probabilities.cumsum()[:-1][:8] for shift in (-1e-9, 1e-9)]
        points = [
            0.0,
            float(np.nextafter(1.0, 0.0)),
            *rng.random(6).tolist(),
            *(edge for edge in edges if 0 <= edge < 1),
        ]
        as_page = {"temperature": settings.temperature, "top_k": settings.top_k or 0, "top_p": settings.top_p or 1}
        tokens = [token_at(point, scores, settings) for point in points]
        about = {"logits": logits.tolist(), "settings": as_page, "probabilities": probabilities.tolist()}
        cases.append({**about, "points": points, "tokens": tokens})
    return cases
