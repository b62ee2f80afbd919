"""Training learns, can stop and resume between any two steps without a trace, and never keeps broken weights."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import tiny_config
from transformer import (
    Batch,
    NotFiniteError,
    TextBatches,
    TrainingConfig,
    TrainingRun,
    build_model,
    evaluate_loss,
    train,
)
from transformer.training.evaluation import token_loss

TEXT = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 20
"""Up and down: after 1 come 0 or 2, and which of them only the token before it tells."""


def batches(batch: int = 8, seed: int = 0) -> TextBatches:
    return TextBatches(TEXT, 8, batch, seed)


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


class TestLearning:
    @pytest.mark.parametrize("optimizer", ["adamw", "muon"])
    def test_a_pattern_that_needs_two_tokens_of_context_is_learnt(self, optimizer):
        model = build_model(tiny_config(d_model=16), seed=0)
        losses = []
        config = TrainingConfig(steps=150, learning_rate=1e-2, warmup_steps=10, optimizer=optimizer)
        run = train(model, batches(), config, lambda report: losses.append(report.loss))
        assert run.step == len(losses) == 150
        assert losses[0] == pytest.approx(math.log(11), abs=0.4)
        assert evaluate_loss(run.best_model, TEXT) < 0.2  # a table of pairs can't go below 0.55

    def test_averaged_weights_are_what_is_kept(self):
        model = build_model(tiny_config(), seed=0)
        run = train(model, batches(), TrainingConfig(steps=5, average_decay=0.5))
        assert run.best_model is not model
        assert not same(state(run.best_model), state(model))
        assert train(model, batches(), TrainingConfig(steps=1)).best_model is model

    def test_the_average_is_exponential(self):
        model = build_model(tiny_config(n_layers=0, norm="none"), seed=0)
        history = []
        run = TrainingRun(model, TrainingConfig(steps=4, average_decay=0.75, learning_rate=0.1))
        train(
            model,
            batches(),
            run.config,
            lambda report: history.append(state(model)["unembed.weight"]),
            run=run,
        )
        average = history[0]
        for weights in history[1:]:
            average = 0.75 * average + 0.25 * weights
        torch.testing.assert_close(run.best_model.unembed.weight.detach(), average)

    def test_a_seed_decides_the_result(self):
        def result(seed: int) -> dict[str, torch.Tensor]:
            model = build_model(tiny_config(dropout=0.3), seed=0)
            return state(train(model, batches(), TrainingConfig(steps=3, seed=seed)).best_model)

        assert same(result(1), result(1))
        assert not same(result(1), result(2))

    def test_the_average_of_a_hooked_model_can_be_looked_into(self):
        model = build_model(tiny_config(), seed=0)
        run = train(model, batches(), TrainingConfig(steps=2, average_decay=0.5))
        tokens = batches()(0).inputs[0]
        assert (
            list(run.best_model.run_with_cache(tokens, names_filter=model.hook_names())[1])
            == model.hook_names()
        )


class TestReports:
    def test_every_step_is_reported(self):
        model = build_model(tiny_config(), seed=0)
        reports = []
        train(model, batches(), TrainingConfig(steps=4), reports.append)
        assert [report.step for report in reports] == [1, 2, 3, 4]
        assert all(report.tokens_per_second > 0 and math.isfinite(report.loss) for report in reports)

    def test_the_loss_is_that_of_the_batch_before_the_update(self):
        model = build_model(tiny_config(), seed=0)
        batch = batches()(0)
        expected = token_loss(model(*batch.inputs), batch.targets).item()
        reports = []
        train(model, batches(), TrainingConfig(steps=1), reports.append)
        assert reports[0].loss == pytest.approx(expected, rel=1e-6)

    def test_returning_false_stops_between_two_steps_and_nothing_else_does(self):
        model = build_model(tiny_config(), seed=0)
        assert train(model, batches(), TrainingConfig(steps=5), lambda report: None).step == 5
        steps = itertools.count(1)
        run = train(model, batches(), TrainingConfig(steps=50), lambda report: next(steps) < 3)
        assert run.step == 3
        assert train(model, batches(), run.config, run=run, on_step=lambda report: False).step == 4


class TestResuming:
    @pytest.mark.parametrize("optimizer", ["adamw", "muon"])
    @pytest.mark.parametrize("average_decay", [0.0, 0.8])
    @pytest.mark.parametrize("tied", [False, True])
    def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(
        self, tmp_path, optimizer, average_decay, tied
    ):
        config = TrainingConfig(
            steps=6, warmup_steps=2, optimizer=optimizer, average_decay=average_decay, seed=3
        )

        def fresh(seed: int = 0) -> nn.Module:
            return build_model(tiny_config(dropout=0.3, positions="learned", tie_embeddings=tied), seed=seed)

        losses = []
        whole = train(fresh(), batches(), config, lambda report: losses.append(report.loss))

        first = []
        run = train(fresh(), batches(), config, lambda report: first.append(report.loss) or len(first) < 3)
        run.save(tmp_path / "state.safetensors")
        torch.rand(7)  # whatever else draws random numbers in between
        model = fresh(seed=99)
        resumed = TrainingRun(model, config)
        resumed.resume(tmp_path / "state.safetensors")
        assert resumed.step == 3
        second = []
        train(model, batches(), config, lambda report: second.append(report.loss), run=resumed)

        assert first + second == losses
        assert same(state(resumed.model), state(whole.model))
        assert same(state(resumed.best_model), state(whole.best_model))
        assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]

    def test_without_the_saved_random_state_it_would_not(self, tmp_path):
        """The test above can fail: dropout does draw from the generator whose state is saved."""
        config = TrainingConfig(steps=4)
        ends = []
        for disturbed in (False, True):
            model = build_model(tiny_config(dropout=0.3), seed=0)
            run = train(model, batches(), config, lambda report: report.step < 2)
            if disturbed:
                torch.rand(7)
            ends.append(state(train(model, batches(), config, run=run).model))
        assert not same(*ends)


class Fragile(nn.Module):
    """Logits are weight · input, so that a batch can make the loss, or only its gradient, anything."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), start))

    def forward(self, factor: torch.Tensor) -> torch.Tensor:
        return (self.weight * factor).sqrt().expand(1, 1, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0])


class TestNumbersThatAreNone:
    @pytest.mark.parametrize("gradient_clip", [0.0, 1.0])
    @pytest.mark.parametrize(("factor", "what"), [(math.nan, "loss"), (-1.0, "loss"), (0.0, "gradient")])
    def test_the_weights_stay_those_of_before_the_step(self, factor, what, gradient_clip):
        factors = [1.0, 1.0, factor]
        target = torch.zeros(1, 1, dtype=torch.long)
        model = Fragile(1.0)
        config = TrainingConfig(steps=9, warmup_steps=0, gradient_clip=gradient_clip, average_decay=0.5)
        run = TrainingRun(model, config)
        history = []
        with pytest.raises(
            NotFiniteError, match=rf"{what} became (nan|inf|-inf) at step 3; a lower learning rate"
        ):
            train(
                model,
                lambda step: Batch((torch.tensor(factors[step]),), target),
                config,
                lambda report: history.append((state(model), state(run.best_model))),
                run=run,
            )
        assert len(history) == run.step == 2
        assert same(state(model), history[-1][0])
        assert same(state(run.best_model), history[-1][1])
        assert model.weight.grad is None
        assert all(math.isfinite(value) for value in model.weight.tolist())


class TestLearningRate:
    CONFIG = TrainingConfig(steps=100, learning_rate=2.0, warmup_steps=10, final_learning_rate=0.1)

    def test_it_warms_up_linearly_then_falls_along_a_cosine(self):
        rates = [self.CONFIG.learning_rate_at(step) for step in range(101)]
        assert rates[:10] == pytest.approx([0.2 * (step + 1) for step in range(10)])
        assert rates[10] == pytest.approx(2.0)
        assert rates[55] == pytest.approx((2.0 + 0.2) / 2)  # half of the way
        assert rates[100] == pytest.approx(0.2)
        assert rates[10:] == sorted(rates[10:], reverse=True)
        assert self.CONFIG.learning_rate_at(1000) == pytest.approx(0.2)

    def test_steps_are_taken_at_that_rate(self):
        model = build_model(tiny_config(), seed=0)
        config = TrainingConfig(steps=4, learning_rate=0.5, warmup_steps=2, optimizer="muon")
        run, seen = TrainingRun(model, config), []
        train(
            model,
            batches(),
            config,
            lambda report: seen.append(run.optimizers[0].param_groups[0]["lr"]),
            run=run,
        )
        assert seen == [config.learning_rate_at(step) for step in range(4)]

    def test_no_warm_up_is_no_error(self):
        assert TrainingConfig(steps=1, warmup_steps=0).learning_rate_at(0) == 1e-3

    @pytest.mark.parametrize(
        ("field", "value"),
        [("steps", 0), ("learning_rate", 0.0), ("learning_rate", math.nan), ("average_decay", 1.0)],
    )
    def test_a_wrong_field_is_named(self, field, value):
        with pytest.raises(ValueError, match=f"^{field} is {value}"):
            TrainingConfig(**{"steps": 1, field: value})


class TestBatches:
    @given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
    def test_targets_are_the_inputs_one_token_later(self, step, context, batch, seed):
        text = np.arange(100, 112)
        inputs, targets = TextBatches(text.tolist(), context, batch, seed)(step)
        assert inputs[0].shape == targets.shape == (batch, context)
        assert torch.equal(inputs[0] + 1, targets)
        assert inputs[0].min() >= 100
        assert targets.max() <= 111

    def test_every_window_is_drawn_sooner_or_later_and_a_step_decides_which(self):
        draw = TextBatches(list(range(12)), 8, 4)
        starts = {int(start) for step in range(40) for start in draw(step).inputs[0][:, 0]}
        assert starts == {0, 1, 2, 3}
        assert torch.equal(draw(7).targets, TextBatches(list(range(12)), 8, 4)(7).targets)
        assert not all(torch.equal(draw(7).targets, draw(step).targets) for step in range(5))

    def test_a_text_that_is_too_short_is_refused_with_what_it_needs(self):
        with pytest.raises(ValueError, match="8 tokens, too few for a context of 8; it needs at least 9"):
            TextBatches(list(range(8)), 8, 4)
        TextBatches(list(range(9)), 8, 4)(0)
