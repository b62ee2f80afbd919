"""Tests the presets and ladders, and what training one produces."""

import dataclasses
import itertools

import pytest

from transformer import TASKS, ModelConfig, build_model
from transformer.training.objectives import TaskObjective
from transformer.training.presets import PRESETS, RUNGS

VOWEL = TASKS["next-vowel"]


class TestPresets:
    LADDER = RUNGS["first"]
    ADDED = (
        ("bigram", set()),
        ("positions", {"positions"}),
        ("average", {"n_layers", "n_encoder_layers", "attention", "residual", "d_ff"}),
        ("attention", {"attention"}),
        ("feed-forward", {"d_ff", "norm"}),
        ("heads", {"n_heads"}),
        ("residuals", {"residual"}),
        ("blocks", {"n_layers", "n_encoder_layers"}),
    )
    """Each rung, and the fields in which it differs from the one before."""

    def configs(self) -> list[ModelConfig]:
        return [ModelConfig(vocab_size=65, **preset.shape) for preset in self.LADDER]

    @pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
    def test_every_preset_can_be_built_and_its_objective_fits(self, preset):
        shape = TaskObjective(TASKS[preset.task], 1, 0).shape if preset.task else {"vocab_size": 65}
        config = ModelConfig(**{**preset.shape, **shape})
        assert build_model(config, seed=0).config == config
        for example in preset.examples:
            if preset.task:
                assert TASKS[preset.task].problem(example) is None
                assert len(TASKS[preset.task].tokenizer.encode(example)) <= config.context_length

    def test_each_rung_of_the_ladder_has_one_part_more(self):
        names = [f"ladder-{number}-{name}" for number, (name, _) in enumerate(self.ADDED, start=1)]
        assert [preset.name for preset in self.LADDER] == names
        fields = [dataclasses.asdict(config) for config in self.configs()]
        for (below, above), (name, added) in zip(itertools.pairwise(fields), self.ADDED[1:], strict=True):
            assert {field for field in above if above[field] != below[field]} == added, name


class TestSince2017:
    LADDER = RUNGS["since-2017"]
    CHANGED = (
        ("paper", {}, {}),
        ("pre-norm", {"norm": "pre"}, {}),
        ("learned", {"positions": "learned"}, {}),
        ("rotary", {"positions": "rotary"}, {}),
        ("rms", {"norm_kind": "rms"}, {}),
        ("swiglu", {"activation": "silu", "mlp_gate": True, "d_ff": 170}, {}),
        ("grouped", {"n_kv_heads": 2}, {}),
        ("muon", {}, {"optimizer": "muon", "learning_rate": 2e-2}),
    )
    """Each rung, and what its shape and its training have that those of the one before haven't."""

    def configs(self) -> list[ModelConfig]:
        return [ModelConfig(vocab_size=65, **preset.shape) for preset in self.LADDER]

    def test_it_begins_with_the_decoder_of_the_paper(self):
        paper = self.configs()[0]
        assert (paper.norm, paper.norm_kind) == ("post", "layer")
        assert (paper.positions, paper.activation) == ("sinusoidal", "relu")
        assert (paper.d_ff, paper.kv_heads, paper.mlp_gate) == (4 * paper.d_model, paper.n_heads, False)
        assert paper.tie_embeddings and paper.scale_embeddings
        assert self.LADDER[0].training.optimizer == "adamw" and self.LADDER[0].training.weight_decay == 0.0

    def test_each_rung_changes_one_thing_and_keeps_those_below(self):
        assert [preset.name for preset in self.LADDER] == [
            f"since-{number}-{name}" for number, (name, *_) in enumerate(self.CHANGED, start=1)
        ]
        for kind, place in (("shape", 1), ("training", 2)):
            fields = [config.to_dict() for config in self.configs()]
            if kind == "training":
                fields = [dataclasses.asdict(preset.training) for preset in self.LADDER]
            for (below, above), rung in zip(itertools.pairwise(fields), self.CHANGED[1:], strict=True):
                assert {name: value for name, value in above.items() if value != below[name]} == rung[place], rung

    def test_all_have_one_budget_and_nearly_as_many_parameters(self):
        assert len({(each.corpus, each.batch, each.training.steps, each.training.seed) for each in self.LADDER}) == 1
        sizes = [build_model(config, seed=0).parameter_count() for config in self.configs()]
        assert max(sizes) < 1.12 * min(sizes)
        assert 2 * max(sizes) < 600_000  # bytes on disk, two a parameter
