"""A model for a browser that computes with it: its weights, and all that there is to know of it beside them."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import save

from ..checkpoints.checkpoint import Checkpoint
from ..checkpoints.model_card import ModelCard
from ..config import ModelConfig
from ..data.grammars import NEW
from ..data.tasks import TASKS
from ..data.token_names import kinds_of
from ..data.tokenizers import NEW_WORD, Tokenizer
from ..inference.attention_outline import has_scores, names_around, position_bias
from ..inference.circuits import circuits_of
from ..inference.head_measures import MEASURES
from ..inference.pass_outline import array_of, stacks_of, tensors_of
from ..inference.recording import Recording, rounding_of
from ..inference.tracing import trace_pass
from ..model.effective_weights import merged
from ..model.equations import LOGITS, equations_json
from ..model.models import Model
from ..model.registry import attention_modules
from .html_scripts import as_json

SHOWN_OF_CARD = (
    *("title", "summary", "group", "examples", "opening", "language", "task", "corpus", "training"),
    *("parameters", "train_loss", "validation_loss", "accuracy"),
)
SAMPLED = 32
"""Tokens of the text on which a browser compares what it computes with the engine's numbers."""


def described(checkpoint: Checkpoint) -> dict[str, Any]:
    """All that a page without a server knows of a model beside its weights, JSON-ready."""
    tokenizer, card = checkpoint.tokenizer, checkpoint.card
    about = about_model(merged(checkpoint.model)[0], tokenizer, card)
    return {"about": about, "card": about_card(card), "tokenizer": json.loads(tokenizer.to_json())}


def in_one_element(checkpoint: Checkpoint) -> str:
    """A model as JSON for an element of a page: what `described` gives, and its weights in base64."""
    weights = base64.b64encode(weights_of(checkpoint.model)).decode()
    return as_json({"described": described(checkpoint), "weights": weights})


def about_model(config: ModelConfig, tokenizer: Tokenizer, card: ModelCard, *, names: bool = True) -> dict[str, Any]:
    """All that the engine in JavaScript knows of a model beside its weights, JSON-ready.

    `config`; `equations`; `tensors`, the fields of `TensorInfo` for a text and a source of one token each; `stacks`;
    `attentions`, by kind and in the order of `attention_modules`, what an overview says of it; `circuits` by module;
    `measures`; `rounding` of what the browser computes with; `kinds`, what tokens are called, where `names` are wanted;
    `card`; `grammar` of the texts, if the model's task has one; and `norms`, which a circuit takes into account.
    """
    kinds, tokenizer = attention_modules(config), tokenizer.with_new_words([])  # a page's prompt may be another one
    return {
        "config": config.to_dict(),
        "equations": equations_json(config),
        "tensors": [dict(vars(info)) for info in tensors_of(config, 1, 1).values()],
        "stacks": stacks_of(config),
        "attentions": {kind: _about_attention(config, kind, modules) for kind, modules in kinds.items()},
        "circuits": {module: circuits_of(config, module) for modules in kinds.values() for module in modules},
        "measures": [dataclasses.asdict(measure) for measure in MEASURES],
        "rounding": rounding_of(torch.float32),
        "kinds": kinds_of(tokenizer, range(tokenizer.vocab_size) if names else ()),
        "grammar": _grammar_of(tokenizer, card),
        "norms": {"before": config.norms_before, "added": config.norms_what_is_added, "last": config.has_final_norm},
        "card": {
            "title": card.title,
            "task": card.task,
            "start_tokens": card.start_tokens,
            "stop_tokens": card.stop_tokens,
            "mask_token_id": card.mask_token_id,
        },
    }


def _grammar_of(tokenizer: Tokenizer, card: ModelCard) -> dict[str, Any] | None:
    grammar = TASKS[card.task].grammar if card.task in TASKS else None
    if grammar is None:
        return None
    words = tokenizer.labels(range(tokenizer.vocab_size))
    return dataclasses.asdict(grammar.within([*words, *([NEW] if NEW_WORD.format(1) in words else [])]))


def about_card(card: ModelCard) -> dict[str, Any]:
    """What a visitor is told of a model, JSON-ready."""
    return {name: getattr(card, name) for name in SHOWN_OF_CARD} | {"chats": card.chat is not None}


def listed(name: str, config: ModelConfig, card: ModelCard) -> dict[str, Any]:
    """What a page knows of a model that can be picked, JSON-ready."""
    return {
        "name": name,
        "title": card.title,
        "group": card.group,
        "examples": list(card.examples),
        "causal": config.is_causal,
        "attends": config.n_layers > 0 and config.attention == "softmax",
        "corpus": card.corpus.get("name"),
        "language": card.language,
        "parameters": card.parameters,
    }


def _about_attention(config: ModelConfig, kind: str, modules: list[str]) -> Mapping[str, Any]:
    bias = position_bias(config, modules[0])
    return {
        "modules": modules,
        "names": [names_around(config, kind, layer) for layer in range(len(modules))],
        "causal": kind == "decoder" or (kind == "self" and config.is_causal),
        "uniform": not has_scores(config, kind),
        "cap": config.score_cap if kind != "cross" else None,
        "bias": bias and dict(bias),
    }


def sample_of(model: Model, tokens: Sequence[int], source: Sequence[int]) -> Recording:
    """What the engine computes of a text, or of the beginning of a long one: the stream after each block, attention
    weights, and logits. Metadata: the `tokens` and the `source` that were read."""
    some = list(tokens)[: min(SAMPLED, model.config.context_length)]
    wanted = {name for name in model.hook_names() if name.endswith(("hook_resid_post", "hook_pattern"))}
    trace = trace_pass(model, some, source, names=wanted)
    infos = tensors_of(model.config, len(some), len(source))
    arrays = {name: array_of(trace, infos[name]) for name in (*sorted(wanted), LOGITS)}
    return Recording(arrays, {"tokens": some, "source": list(source)})


def weights_of(model: Model) -> bytes:
    """A model's weights as a safetensors file, each in half precision where that has all of its numbers exactly."""
    config, weights = merged(model)
    if config.tie_embeddings:
        del weights["unembed.weight"]
    return save({name: _narrowed(tensor.cpu()).contiguous() for name, tensor in weights.items()})


def _narrowed(tensor: torch.Tensor) -> torch.Tensor:
    narrow = tensor.half()
    return narrow if torch.equal(narrow.type_as(tensor), tensor) else tensor.float()
