"""Records a complete forward pass: every tensor and parameter, and the further data of its views.

Shapes: pos, head, d_model, vocab; there is no batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..config import ModelConfig
from ..model.equations import LOGITS
from ..model.models import Model
from ..model.registry import attention_modules
from .circuits import Weights, circuits_of, ov_circuit, qk_circuit
from .inputs import Ids, ids_of
from .interventions import Intervention
from .overwritten_values import overwritten_records
from .pass_outline import LIKELIEST, TensorInfo, array_of, outline, tensors_of
from .recording import Recording, plain_array
from .residual_stream import direct_logit_attribution
from .tracing import Trace, deviations, trace_pass

MOST_TOKENS = 256
"""The most tokens on either side of a circuit; a larger vocabulary is reduced to these."""
CIRCUIT_BYTES = 4_000_000
"""The most bytes of all circuits together in a saved page."""
ENTRY, CHECK = 70, 120
"""Approximate bytes of a tensor's entry in a file's header, and in the metadata, without its name."""
LARGE = (
    "weights",
    "hook_result",
    "hook_raw_scores",
    "hook_scaled_scores",
    "hook_capped_scores",
    "hook_position_bias",
    "hook_attn_scores",
)
"""The first things to leave out of a large pass: weight matrices, and points by the end of their name."""

Labels = Callable[[Sequence[int]], Sequence[str]]
"""Makes printable labels of tokens, as `Tokenizer.labels` does."""


@dataclass(frozen=True)
class Fit:
    """The tensors to leave out of a pass, and the size of the rest."""

    kinds: tuple[str, ...]
    """The kinds left out, of `LARGE`."""
    names: frozenset[str]
    size: int
    """Bytes of the other tensors."""


def record_pass(
    model: Model,
    tokens: Ids,
    source: Ids = (),
    *,
    labels: Labels | None = None,
    interventions: Sequence[Intervention] = (),
    mask_token_id: int | None = None,
) -> Recording:
    """Run a model over one text and record everything, parameters included. Put it into evaluation mode first.

    tokens: the decoder's text; source: the encoder's. labels: for example `tokenizer.labels`; without it labels are
    numbers. interventions: those of the pass. mask_token_id: the token that an encoder fills in.
    Returns: tensors as in `Trace`, metadata `config`, `ids` and `labels` of text and source, `vocabulary`, the labels
        of all tokens, `changed`, the records of what `overwritten_values` finds, and `mask_token_id`.
    Raises: ValueError for a text that the model can't read.
    """
    trace = trace_pass(model, tokens, source, interventions=interventions)
    name = labels or (lambda ids: [str(token) for token in ids])
    ids = {"text": ids_of(tokens), "source": ids_of(source)}
    return Recording(
        {name: plain_array(tensor) for name, tensor in trace.tensors.items()},
        {
            "config": trace.config.to_dict(),
            "ids": ids,
            "labels": {text: list(name(ids_of_text)) for text, ids_of_text in ids.items()},
            "vocabulary": list(name(range(trace.config.vocab_size))),
            "changed": overwritten_records(interventions, trace.config),
            "mask_token_id": mask_token_id,
        },
    )


def is_whole(recording: Recording) -> bool:
    """Whether a recording is of a whole pass: it has logits, and the ids of its tokens."""
    return LOGITS in recording.tensors and "ids" in recording.metadata


def pass_of(recording: Recording) -> Trace:
    """The pass that `record_pass` recorded. Raises: ValueError, naming a tensor that it lacks."""
    config, ids = ModelConfig.from_dict(recording.metadata["config"]), recording.metadata["ids"]
    for name, info in tensors_of(config, len(ids["text"]), len(ids["source"])).items():
        there = recording.tensors.get(name)
        if there is None or there.size != math.prod(info.sizes):
            raise ValueError(f"The recording lacks {name}; record_pass records the whole pass.")
    # PyTorch shares the memory of writable arrays; it has to copy read-only ones, such as those of a file.
    tensors = {
        name: torch.from_numpy(array) if array.flags.writeable else torch.tensor(array)
        for name, array in recording.tensors.items()
    }
    return Trace(config, torch.tensor(ids["text"]), torch.tensor(ids["source"]), tensors)


def whole_view(
    trace: Trace,
    vocabulary: Sequence[str],
    without: Collection[str] = (),
    changed: Sequence[Mapping[str, Any]] = (),
    mask_token_id: int | None = None,
) -> tuple[Recording, Recording]:
    """All the data of a view without a server: the outline of the pass, and everything else.

    vocabulary: the labels of all tokens. without: names of tensors to leave out. changed and mask_token_id: as in
    `record_pass`.
    Returns: what `outline` gives, labelled; and a recording of all tensors, in the dimensions of `tensors_of`, of the
        shares in each logit that is among the likeliest, of the circuits, and in its metadata of the `checks`.
    """
    sketched = outline(trace, mask_token_id)
    infos = tensors_of(trace.config, len(trace.tokens), len(trace.source))
    tensors = {name: array_of(trace, info) for name, info in infos.items() if name not in without}
    names, shares = _all_shares(trace, sketched.tensors["next"])
    checks = [
        {**check.to_dict(), "set_by": [change["words"] for change in changed if change["point"] == check.name]}
        for check in deviations(trace)
    ]
    about = {"attribution": {"names": names}, "checks": checks}
    whole = Recording({**tensors, **shares, **_circuits(trace)}, about)
    labels = {text: [vocabulary[token] for token in ids] for text, ids in sketched.metadata["ids"].items()}
    details = {"labels": labels, "vocabulary": list(vocabulary), "changed": list(changed)}
    return Recording(sketched.tensors, {**sketched.metadata, **details}), whole


def fitted(infos: Mapping[str, TensorInfo], most: int) -> Fit:
    """The kinds of `LARGE` to leave out, one after another, so that the tensors take at most `most` bytes."""
    sizes = {name: math.prod(info.sizes) * (1 if name.endswith("hook_mask") else 4) for name, info in infos.items()}
    kinds: list[str] = []
    for kind in LARGE:
        if sum(sizes.values()) <= most:
            break
        kinds.append(kind)
        sizes = {name: size for name, size in sizes.items() if not _is_of(kind, infos[name])}
    return Fit(tuple(kinds), frozenset(infos.keys() - sizes.keys()), sum(sizes.values()))


def circuit_bytes(config: ModelConfig) -> int:
    """The bytes of all heads' circuits in a `whole_view`; 0 if they are too large and left out."""
    size = len(_heads(config)) * 8 * min(config.vocab_size, MOST_TOKENS) * config.d_head
    return size if size <= CIRCUIT_BYTES else 0


def view_bytes(config: ModelConfig, tokens: int, source: int, fit: Fit) -> int:
    """Bytes of the second recording of a `whole_view` without what `fit` leaves out, to about a hundredth.

    fit: as `fitted` makes it, its size with `circuit_bytes`.
    """
    infos = tensors_of(config, tokens, source)
    computed = [name for name, info in infos.items() if info.kind != "parameter"]
    parts = 2 + len(_heads(config)) // 2 + config.n_layers * 2
    shares, circuits = tokens * min(LIKELIEST, config.vocab_size), len(_heads(config)) if circuit_bytes(config) else 0
    data = fit.size + 4 * shares * parts + 8 * circuits * (min(config.vocab_size, MOST_TOKENS) + 1)
    names = [*(name for name in infos if name not in fit.names), *["attribution[99, 999]"] * shares]
    names += ["circuit[qk, blocks.0.attn, 0].columns"] * 5 * circuits
    checks = sum(CHECK + len(name) for name in computed)
    return data + sum(ENTRY + len(name) for name in names) + checks + 25 * parts


def circuit_parts(model: Weights, kind: str, attention: str, head: int, tokens: Iterable[int]) -> dict[str, np.ndarray]:
    """A head's circuit for drawing: its two factors, for all tokens, or in a large vocabulary the text's and the
    strongest.

    kind: as in `circuits_of`. tokens: the text's.
    Returns: `circuit[kind, attention, head].left` and `.right` (token, d_head), float32; the tokens that they are of,
        `.rows` and `.columns`, int32; `.check` (2,), by how much their product differs from the full one, and the full
        one's largest absolute value. Queries and keys aren't rotated: both stand at position 0.
    Raises: ValueError for a circuit that there isn't.
    """
    circuit = (qk_circuit if kind == "qk" else ov_circuit)(model, attention, head)
    rows, columns = circuit.strongest(MOST_TOKENS, tokens)
    full = circuit.full(rows, columns)
    deviation = (circuit.left[rows] @ circuit.right[columns].T - full).abs().max()
    name = f"circuit[{kind}, {attention}, {head}]"
    return {
        f"{name}.left": circuit.left[rows].float().numpy(),
        f"{name}.right": circuit.right[columns].float().numpy(),
        f"{name}.rows": rows.int().numpy(),
        f"{name}.columns": columns.int().numpy(),
        f"{name}.check": torch.stack([deviation, full.abs().max()]).float().numpy(),
    }


def _all_shares(trace: Trace, likeliest: np.ndarray) -> tuple[list[str], dict[str, np.ndarray]]:
    """The parts' names, and their shares in the logits of the likeliest tokens, (pos, several)."""
    shares, names = {}, []
    for column in likeliest.T:
        given = direct_logit_attribution(trace, column)
        names = list(given.names)
        for pos, token in enumerate(column):
            shares[f"attribution[{pos}, {token}]"] = given.values[:, pos].float().numpy()
    return names, shares


def _heads(config: ModelConfig) -> list[tuple[str, str, int]]:
    """Kind, attention and head of every circuit that a model has."""
    modules = [module for of_kind in attention_modules(config).values() for module in of_kind]
    return [
        (kind, module, head)
        for module in modules
        for kind in circuits_of(config, module)
        for head in range(config.n_heads)
    ]


def _circuits(trace: Trace) -> dict[str, np.ndarray]:
    heads = _heads(trace.config) if circuit_bytes(trace.config) else []
    read = [*trace.tokens.tolist(), *trace.source.tolist()]
    parts = [circuit_parts(trace, kind, module, head, read) for kind, module, head in heads]
    return {name: array for part in parts for name, array in part.items()}


def _is_of(kind: str, info: TensorInfo) -> bool:
    if kind == "weights":
        return info.kind == "parameter" and len(info.sizes) > 1
    return info.name.endswith(kind)
