"""Tests the presets and ladders, and what training one produces."""

import dataclasses
import itertools

import pytest

from transformer import TASKS, ModelConfig, build_model
from transformer.training.objectives import TaskObjective
from transformer.training.presets import PRESETS, RUNGS

LADDERS = {
    "first": {
        "ladder-1-bigram": set(),
        "ladder-2-positions": {"positions"},
        "ladder-3-average": {"n_layers", "attention", "residual", "d_ff"},
        "ladder-4-attention": {"attention"},
        "ladder-5-feed-forward": {"d_ff", "norm"},
        "ladder-6-heads": {"n_heads"},
        "ladder-7-residuals": {"residual"},
        "ladder-8-blocks": {"n_layers"},
    },
    "since-2017": {
        "since-1-paper": set(),
        "since-2-pre-norm": {"norm": "pre"},
        "since-3-learned": {"positions": "learned"},
        "since-4-rotary": {"positions": "rotary"},
        "since-5-rms": {"norm_kind": "rms"},
        "since-6-swiglu": {"activation": "silu", "mlp_gate": True, "d_ff": 170},
        "since-7-grouped": {"n_kv_heads": 2},
        "since-8-muon": {"optimizer": "muon", "learning_rate": 2e-2},
    },
}
"""Each rung, and the fields in which its model or its training differs from the one before; or what they are there."""


def config_of(preset) -> ModelConfig:
    return ModelConfig(**{"vocab_size": 65, **preset.shape})


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_can_be_built_and_its_objective_fits(preset):
    shape = TaskObjective(TASKS[preset.task], 1, 0).shape if preset.task else {"vocab_size": 65}
    config = ModelConfig(**{**preset.shape, **shape})
    assert build_model(config, seed=0).config == config
    if preset.task:
        for example in preset.examples:
            assert TASKS[preset.task].problem(example) is None
            assert len(TASKS[preset.task].tokenizer.encode(example)) <= config.context_length


@pytest.mark.parametrize("which", LADDERS)
def test_each_rung_of_a_ladder_changes_one_thing_and_keeps_those_below(which):
    ladder, told = RUNGS[which], LADDERS[which]
    assert [preset.name for preset in ladder] == [*told]
    fields = [config_of(each).to_dict() | dataclasses.asdict(each.training) for each in ladder]
    for (below, above), (name, changed) in zip(itertools.pairwise(fields), [*told.items()][1:], strict=True):
        found = {field: value for field, value in above.items() if value != below[field]}
        assert (found if isinstance(changed, dict) else {*found}) == changed, name


def test_the_ladder_since_2017_begins_with_the_paper_and_has_one_budget():
    ladder = RUNGS["since-2017"]
    paper, training = config_of(ladder[0]), ladder[0].training
    assert (paper.norm, paper.norm_kind, paper.positions, paper.activation) == ("post", "layer", "sinusoidal", "relu")
    assert (paper.d_ff, paper.kv_heads, paper.mlp_gate) == (4 * paper.d_model, paper.n_heads, False)
    assert paper.tie_embeddings and paper.scale_embeddings
    assert (training.optimizer, training.weight_decay) == ("adamw", 0.0)
    assert len({(each.corpus, each.batch, each.training.steps, each.training.seed) for each in ladder}) == 1
    sizes = [build_model(config_of(each), seed=0).parameter_count() for each in ladder]
    assert max(sizes) < 1.12 * min(sizes)
    assert 2 * max(sizes) < 600_000  # bytes on disk, two a parameter
