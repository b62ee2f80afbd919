"""Builds the outlines that the API sends to the page Inside, for tests of its scripts."""

import numpy as np

from transformer import Checkpoint, Recording, Trace, generate, trace_pass
from transformer.inference.pass_outline import array_of, outline, tensors_of
from transformer.inference.sampling import Sampling

SLICED = 100_000
"""Cells above which a tensor with heads is sent head by head."""


def pass_of(checkpoint: Checkpoint, prompt: str, most: int | None = None) -> Trace:
    """What a model computes when a visitor types this prompt. most: tokens that are read."""
    model, card = checkpoint.model, checkpoint.card
    tokens = checkpoint.tokenizer.encode(prompt)[-min(most or 10**6, model.config.context_length) :]
    if model.config.architecture != "encoder-decoder":
        return trace_pass(model, tokens)
    asked = {"max_new_tokens": 8, "sampling": Sampling(temperature=0), "stop_tokens": (card.end_token_id,)}
    steps = generate(model, (card.start_token_id,), source=tuple(tokens), **asked)
    written = [card.start_token_id, *(step.token_id for step in steps)]
    return trace_pass(model, written[:-1], tokens)


def arrays_of(found: Trace) -> dict[str, np.ndarray]:
    """Every tensor of a pass, in the dimensions that the outline names."""
    infos = tensors_of(found.config, len(found.tokens), len(found.source))
    return {name: array_of(found, info) for name, info in infos.items()}


def labelled_outline(found: Trace, checkpoint: Checkpoint, name: str = "pass") -> Recording:
    """The first message of a text."""
    bare = outline(found, checkpoint.card.mask_token_id)
    labels = checkpoint.tokenizer.labels(range(found.config.vocab_size))
    words = {which: [labels[token] for token in tokens] for which, tokens in bare.metadata["ids"].items()}
    about = {"id": name, "name": name, "title": name, "labels": words, "vocabulary": labels}
    return Recording(bare.tensors, {**bare.metadata, **about})


def parts_of(found: Trace) -> Recording:
    """Every tensor as it is sent: large ones with heads a head at a time."""
    tensors, infos = {}, tensors_of(found.config, len(found.tokens), len(found.source))
    for name, array in arrays_of(found).items():
        if "head" in infos[name].dims and array.size > SLICED:
            axis = infos[name].dims.index("head")
            tensors |= {f"{name}[{head}]": array.take(head, axis) for head in range(array.shape[axis])}
        else:
            tensors[name] = array
    return Recording(tensors, {})
