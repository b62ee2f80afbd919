"""Answers requests for the logit lens, direct logit attribution, equation checks and QK/OV circuits.

Asked for and cached as in `tensors`. Dimensions: depth, part, pos, vocab.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ..checkpoints.folder import Checkpoint
from ..inference.pass_outline import array_of, lens_at
from ..inference.pass_recording import circuit_parts
from ..inference.recording import Recording
from ..inference.residual_stream import direct_logit_attribution
from ..inference.tracing import Deviation, Trace, deviations_of_text, trace_pass
from ..model.effective_weights import weights_of
from . import tensors
from .cache import cached
from .open_models import OpenModel
from .outlines import LABELLED_VOCABULARY, labels_of
from .tensors import Interventions, Tokens, about_pass, infos_of

NAMED = 64
"""The likeliest tokens of a row over a large vocabulary, which get labels."""


def named_tensors(
    model: OpenModel, tokens: Tokens, source: Tokens, parts: Sequence[tensors.Part], interventions: Interventions
) -> Recording:
    """Parts of a pass by their text; metadata as in a file of them, and `vocabulary`, where one is a row over a large
    vocabulary, its labels."""
    taken = tensors.tensors(model, tokens, source, parts, interventions)
    rows = [
        taken[part.text]
        for part in parts
        if tensors.is_by_row(part.info) and taken[part.text].ndim == 1 and part.info.dims[-1] == "vocab"
    ]
    named = {token for row in rows for token in np.argsort(-row, kind="stable")[:NAMED]}
    vocabulary = {"vocabulary": labels_of(model.checkpoint.tokenizer, named)} if named else {}
    return Recording(taken, {**about_pass(model.checkpoint, tokens, source), **vocabulary})


@cached
def _lens(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, position: int, interventions: Interventions, of: Tokens
) -> Mapping[str, np.ndarray]:
    return lens_at(checkpoint.model, tokens, source, position, interventions, checkpoint.card.mask_token_id, of)


def lens(
    model: OpenModel, tokens: Tokens, source: Tokens, position: int, interventions: Interventions = (), of: Tokens = ()
) -> Recording:
    """The logit lens at one position, from `lens_at`; metadata `vocabulary`, the tokens'
    labels."""
    lens_tensors = _lens(model, tokens, source, position, interventions, of)
    return Recording(lens_tensors, {"vocabulary": labels_of(model.checkpoint.tokenizer, lens_tensors["lens"].flat)})


def attribution(
    model: OpenModel, tokens: Tokens, source: Tokens, position: int, token: int, interventions: Interventions = ()
) -> Recording:
    """Each part's share in the logit of a token at `position`: `shares` (part,); metadata `names`.

    A logit is a sum over its own position, so the pass is cut to that.
    """
    checkpoint = model.checkpoint
    tensors_here = _position(model, tokens, source, position, interventions)
    known = {**weights_of(checkpoint.model), **{name: torch.tensor(array) for name, array in tensors_here.items()}}
    here = Trace(checkpoint.model.config, torch.tensor(tokens[position : position + 1]), torch.tensor(source), known)
    shares = direct_logit_attribution(here, [token])
    return Recording({"shares": shares.values[:, 0].float().numpy()}, {"names": shares.names})


@cached
def _position(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, position: int, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """The points of one position, (1, …) each."""
    model, shapes = checkpoint.model, infos_of(checkpoint.model.config, len(tokens), len(source))
    names = [  # of those that a logit is added up from, what there is at each position of the text
        name
        for name, info in shapes.items()
        if info.kind == "point"
        and info.dims[0] == "pos"
        and not name.startswith("encoder.")
        and not name.endswith("hook_result")
    ]
    trace = trace_pass(model, tokens, source, names=names, interventions=interventions, outputs=False)
    return {name: array_of(trace, shapes[name])[position : position + 1] for name in names}


@cached
def checks(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> tuple[Deviation, ...]:
    """Every tensor of a pass against its equation, in the order of the pass."""
    with tensors.one_at_a_time:
        return tuple(deviations_of_text(checkpoint.model, tokens, source, interventions))


@cached
def circuit(checkpoint: Checkpoint, kind: str, attention: str, head: int, read: frozenset[int]) -> Recording:
    """A circuit of a head, as `circuit_parts` makes it. read: the text's tokens.

    It is the weights' alone, whatever is changed in the pass. Metadata `vocabulary` has the labels of its tokens where
    not all are named in an outline.
    """
    parts = circuit_parts(checkpoint.model, kind, attention, head, read)
    named: list[int] = []
    if checkpoint.tokenizer.vocab_size > LABELLED_VOCABULARY:
        named = [token for ids in parts.values() if ids.dtype == np.int32 for token in ids]
    return Recording(parts, {"vocabulary": labels_of(checkpoint.tokenizer, named)})
