"""Records passes and texts of Python's engine, for the tests of the one in JavaScript."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from torch import Tensor

from tests.engine.test_interventions import BECOMES, IN_WORDS, REFUSED, changes, made
from tests.helpers import MODERN, any_configs, encoder_configs, modern_config, some_inputs, tiny_model
from transformer import (
    Checkpoint,
    Intervention,
    ModelConfig,
    Sampling,
    Scale,
    SetAttention,
    Without,
    generate,
    load_checkpoint,
)
from transformer.inference.intervention_codes import to_code
from transformer.inference.intervention_kinds import FIELDS, RULES
from transformer.inference.sampling import random_points
from transformer.inference.tracing import trace_pass
from transformer.model.equations import equations, equations_json
from transformer.model.models import Model

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
LONGEST = 20
"""Tokens of a pass."""
WRITTEN = 100
"""Tokens of a text."""
SEED = 2**40 + 3


def write_passes(folder: Path) -> None:
    """In `folder`, of each shipped model a pass and texts; of odd ones a pass and their weights; and random numbers."""
    folder.mkdir()
    for path in sorted(path.parent for path in CHECKPOINTS.glob("*/config.json")):
        checkpoint = load_checkpoint(path)
        config = checkpoint.model.config
        tokens = [(3 + 5 * at * at) % config.vocab_size for at in range(min(config.context_length, LONGEST))]
        inputs = [tokens[::-1], tokens] if config.architecture == "encoder-decoder" else [tokens]
        changes = _changes(config, inputs) if path.name in ("stories", "number-words-en-es") else [()]
        for at, interventions in enumerate(changes):
            about = {"folder": str(path), "texts": _texts(checkpoint) if config.is_causal and not at else []}
            _write(folder / f"{path.name}-{at}", checkpoint.model, inputs, interventions, about)
    for name, config in _odd_configs():
        model, inputs = tiny_model(config), [each[0].tolist() for each in some_inputs(config)]
        for at, interventions in enumerate([(), *(_changes(config, inputs) if name in MODERN else [])]):
            _write(folder / f"{name}-{at}", model, inputs, interventions, {})
    positions = [(0, 0), (1, 5), (2**31, 7), (SEED, 1000), (2**53 - 1, 99999), (7, 2**33)]
    points = [[*each, next(random_points(Sampling(seed=each[0]), each[1], ahead=1))] for each in positions]
    (folder / "points.json").write_text(json.dumps(points), encoding="utf-8")
    (folder / "interventions.json").write_text(json.dumps(_said()), encoding="utf-8")


def _said() -> list[dict[str, object]]:
    """Of several models: codes, their words, and why the model can't be changed so, if it can't."""
    found = []

    @settings(max_examples=40, phases=[Phase.generate], database=None)
    @given(st.data(), any_configs() | encoder_configs())
    def collect(data: st.DataObject, config: ModelConfig) -> None:
        rules = [Without(rule, where) for rule in RULES for where in ("", "blocks.0.", "encoder.")]
        drawn = [data.draw(changes(data.draw(any_configs()))) for _ in range(4)]
        cases = [data.draw(changes(config)), *drawn, *rules, *IN_WORDS, *(intervention for intervention, _ in REFUSED)]
        said = [{"code": to_code(each), "words": str(each), "problem": _problem(each, config)} for each in cases]
        said = [each for each in said if not each["code"].endswith(("nan", "inf"))]  # which JavaScript doesn't read
        found.append({"config": config.to_dict(), "equations": equations_json(config), "said": said})

    collect()
    return found


def _problem(intervention: Intervention, config: ModelConfig) -> str:
    try:
        intervention.check(config)
    except ValueError as error:
        return str(error)
    return ""


def _odd_configs() -> list[tuple[str, ModelConfig]]:
    """Those of `MODERN`, and random ones."""
    found: list[ModelConfig] = []

    @settings(max_examples=40, phases=[Phase.generate], database=None)
    @given(any_configs() | encoder_configs() | encoder_configs(n_segments=2, separator_token_id=3))
    def collect(config: ModelConfig) -> None:
        found.append(config)

    collect()
    return [
        *((kind, modern_config(kind)) for kind in MODERN),
        *((f"random {at}", config) for at, config in enumerate(found)),
    ]


def _changes(config: ModelConfig, inputs: Sequence[Sequence[int]]) -> list[tuple[Intervention, ...]]:
    """Interventions of each kind that a model of this configuration has the points for, one kind at a time."""
    *source, tokens = inputs
    other = {"tokens": tuple(tokens[::-1][:-1]), "source": tuple(source[0]) if source else ()}
    block = "decoder.blocks.0." if source else "blocks.0."
    attention = f"{block}attn."
    values = {
        **other,
        "against": tuple(tokens),
        **dict.fromkeys((name for name in FIELDS if "dial" in FIELDS[name]), 1.5),
    }
    found: list[tuple[Intervention, ...]] = [
        *(
            (
                made(of_class, point=f"{attention}hook_v", head=0, **values),
                made(of_class, point=f"{attention}hook_result", head=1, **values),
                made(of_class, point=f"{block}hook_attn_out", position=2, **values),
                made(of_class, point=f"{block}hook_mlp_out", **values),
            )
            for of_class in BECOMES
        ),
        (Scale(f"{attention}hook_z", head=0),),
        (
            SetAttention(f"{attention}hook_pattern", 1, query=3, key=1, weight=0.7),
            SetAttention(f"{attention}hook_pattern", 0, query=3, key=3, weight=0.2, renormalised=False),
        ),
        *((Without(rule),) for rule in RULES),
    ]
    if source:
        of_encoder = Scale("encoder.blocks.0.attn.hook_z", head=0, position=1, factor=-1.0)
        found.append((of_encoder, Scale("decoder.blocks.0.cross_attn.hook_k", head=1, factor=2.0)))
    return [each for each in found if _fits(each, config)]


def _fits(interventions: Sequence[Intervention], config: ModelConfig) -> bool:
    with contextlib.suppress(ValueError):
        for intervention in interventions:
            intervention.check(config)
        return True
    return False


def _texts(checkpoint: Checkpoint) -> list[dict[str, object]]:
    """What a model writes, most of it past its context: the likeliest tokens, by chance, and with something changed."""
    config, card = checkpoint.model.config, checkpoint.card
    source, prefix = ([1, 2, 3], "decoder.") if config.architecture == "encoder-decoder" else ([], "")
    prompt, beyond = [card.start_token_id] if source else [1, 2], config.context_length + 1
    greedy, by_chance = Sampling(temperature=0), Sampling(0.8, top_k=20, top_p=0.9, seed=SEED)
    pattern, without = f"{prefix}blocks.0.attn.hook_pattern", Without("mask", f"{prefix}blocks.0")
    of_position = [Scale(f"{prefix}hook_embed", position=beyond, factor=-1.0)]
    of_position.append(SetAttention(pattern, 0, query=beyond, key=beyond - 1, weight=0.9))
    wanted = [(greedy, WRITTEN, ()), (by_chance, WRITTEN // 4, ())]
    if config.context_length < WRITTEN:
        wanted.append((greedy, beyond + 5, tuple(each for each in of_position if _fits([each], config))))
    if _fits([without], config):
        wanted.append((greedy, WRITTEN // 10, (without,)))
    texts = []
    for sampling, count, interventions in wanted:
        about = {"sampling": sampling, "source": source, "interventions": interventions}
        written = [step.token_id for step in generate(checkpoint.model, prompt, max_new_tokens=count, **about)]
        codes = [to_code(each) for each in interventions]
        asked = {"tokens": prompt, "source": source, "settings": dataclasses.asdict(sampling), "changes": codes}
        texts.append({**asked, "written": written})
    return texts


def _write(
    path: Path, model: Model, inputs: Sequence[Sequence[int]], interventions: Sequence[Intervention], about: dict
) -> None:
    """A pass, and beside it the weights of a model that isn't in a folder of its own."""
    *source, tokens = inputs
    source = source[0] if source else []
    is_told = model.config.n_segments and model.config.separator_token_id is None
    segments = [at % 2 for at in range(len(tokens))] if is_told else []
    trace = trace_pass(model, tokens, source, segments=segments, interventions=interventions)
    tensors = {name: _as_array(trace.tensors[name]) for name in equations(model.config)}
    codes = [to_code(each) for each in interventions]
    about = {**about, "equations": equations_json(model.config), "changes": codes}
    about |= {"text": {"tokens": tokens, "source": source, "segments": segments or None}}
    if "folder" not in about:
        about["config"] = model.config.to_dict()
        weights = model.state_dict()
        if model.config.tie_embeddings:
            del weights["unembed.weight"]
        path.with_suffix(".weights").write_bytes(save({name: _as_array(each) for name, each in weights.items()}))
    path.with_suffix(".safetensors").write_bytes(
        save(tensors, {name: json.dumps(each) for name, each in about.items()})
    )


def _as_array(tensor: Tensor) -> np.ndarray:
    array = tensor.contiguous().numpy()
    return array.astype(np.uint8) if tensor.dtype == torch.bool else array.copy()
