"""Tests training: it learns, stops and resumes exactly, and never keeps broken weights."""

import itertools
import math

import pytest
import torch
from torch import nn

from tests.helpers import tiny_config
from tests.training_plans import TEXT, batches, same, state
from transformer import Batch, NotFiniteError, TrainingConfig, TrainingRun, build_model, evaluate_loss, train
from transformer.training import loop
from transformer.training.evaluation import token_loss


@pytest.fixture(params=[True, False], ids=["with bfloat16 units", "without"])
def processor(request, monkeypatch) -> bool:
    """Either kind of CPU, whichever this one is."""
    monkeypatch.setattr(loop, "has_bfloat16_units", lambda: request.param)
    return request.param


class TestPrecision:
    """bfloat16 arithmetic is used where it is faster, and nowhere else."""

    @pytest.mark.parametrize(("d_model", "faster"), [(16, False), (128, False), (191, False), (192, True), (384, True)])
    def test_on_a_cpu_wide_models_are_trained_in_it_if_there_are_units_for_it(self, processor, d_model, faster):
        assert loop.trains_in_bfloat16(torch.device("cpu"), d_model) == (faster and processor)
        assert loop.trains_in_bfloat16(torch.device("cuda"), d_model)

    @pytest.mark.parametrize("d_model", [8, 192])
    def test_a_step_computes_in_what_was_decided(self, processor, d_model):
        model = build_model(tiny_config(d_model=d_model, n_layers=1), seed=0)
        run, seen = TrainingRun(model, TrainingConfig(steps=1)), []
        model.blocks[0].mlp.up.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        batch = batches()(0)
        exact = token_loss(model(*batch.inputs), batch.targets).item()
        loss = run.take_step(batch)
        in_bfloat16 = processor and d_model == 192
        assert seen == [torch.float32, torch.bfloat16 if in_bfloat16 else torch.float32]
        assert loss == pytest.approx(exact, rel=1e-2 if in_bfloat16 else 1e-6)  # of before the update
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


class TestLearning:
    @pytest.mark.parametrize("optimizer", ["adamw", "muon"])
    def test_a_pattern_that_needs_two_tokens_of_context_is_learnt(self, optimizer):
        model = build_model(tiny_config(d_model=16), seed=0)
        reports = []
        config = TrainingConfig(steps=100, learning_rate=1e-2, warmup_steps=10, optimizer=optimizer)
        run = train(model, batches(), config, reports.append)
        losses = [report.loss for report in reports]
        assert run.step == len(losses) == 100 and reports[0].tokens_per_second > 0
        assert [report.step for report in reports] == [*range(1, 101)]
        assert losses[0] == pytest.approx(math.log(11), abs=0.4)
        assert evaluate_loss(run.best_model, TEXT) < 0.2  # a table of pairs can't go below 0.55

    def test_the_average_is_exponential(self):
        model = build_model(tiny_config(n_layers=0, norm="none"), seed=0)
        history = []
        run = TrainingRun(model, TrainingConfig(steps=4, average_decay=0.75, learning_rate=0.1))
        train(model, batches(), run.config, lambda report: history.append(state(model)["unembed.weight"]), run=run)
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

    def test_a_gradient_is_no_longer_than_it_may_be(self, monkeypatch):
        """Its length, not its direction, is cut; AdamW hides that, so the gradient itself is looked at."""
        gradients = {}
        for clip in (0.0, 0.01, 1e6):
            run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=1, gradient_clip=clip))
            seen = gradients[clip] = []
            monkeypatch.setattr(
                run.optimizers[0],
                "step",
                lambda run=run, seen=seen: seen.extend(p.grad.flatten().clone() for p in run.parameters),
            )
            run.take_step(batches()(0))
        whole, short, long = (torch.cat(gradients[clip]) for clip in (0.0, 0.01, 1e6))
        assert whole.norm() > 0.5
        assert torch.equal(long, whole)
        assert short.norm().item() == pytest.approx(0.01, rel=1e-3)
        torch.testing.assert_close(short / 0.01, whole / whole.norm(), atol=1e-4, rtol=1e-3)

    def test_a_batch_goes_where_the_model_is(self, monkeypatch):
        run, moved = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=1)), []
        to = Batch.to
        monkeypatch.setattr(Batch, "to", lambda batch, device: moved.append(device) or to(batch, device))
        run.take_step(batches()(0))
        assert moved == [run.device] == [torch.device("cpu")]
        inputs, targets = to(batches()(0), torch.device("meta"))
        assert {part.device.type for part in (*inputs, targets)} == {"meta"}

    def test_dropout_falls_in_every_step_whatever_mode_the_model_comes_in(self):
        def result(prepare) -> dict[str, torch.Tensor]:
            model = build_model(tiny_config(dropout=0.5), seed=0)
            prepare(model)
            train(model, batches(), TrainingConfig(steps=3, learning_rate=0.1), lambda report: prepare(model))
            return state(model)

        expected = result(lambda model: None)
        assert same(result(lambda model: model.eval()), expected)

    def test_the_average_of_a_hooked_model_can_be_looked_into(self):
        model = build_model(tiny_config(), seed=0)
        run = train(model, batches(), TrainingConfig(steps=2, average_decay=0.5))
        tokens = batches()(0).inputs[0]
        assert list(run.best_model.run_with_cache(tokens, names_filter=model.hook_names())[1]) == model.hook_names()


class TestReports:
    def test_returning_false_stops_between_two_steps_and_nothing_else_does(self):
        model = build_model(tiny_config(), seed=0)
        assert train(model, batches(), TrainingConfig(steps=5), lambda report: None).step == 5
        steps = itertools.count(1)
        run = train(model, batches(), TrainingConfig(steps=50), lambda report: next(steps) < 3)
        assert run.step == 3
        assert train(model, batches(), run.config, run=run, on_step=lambda report: False).step == 4


class Fragile(nn.Module):
    """Logits are weight · input, so that a batch can make the loss, or only its gradient, anything."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), start))
        self.config = tiny_config()

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
        with pytest.raises(NotFiniteError, match=rf"{what} became (nan|inf|-inf) at step 3; a lower learning rate"):
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
        for later in (101, 150, 190, 1000):
            assert self.CONFIG.learning_rate_at(later) == pytest.approx(0.2)

    def test_steps_are_taken_at_that_rate(self):
        model = build_model(tiny_config(), seed=0)
        config = TrainingConfig(steps=4, learning_rate=0.5, warmup_steps=2, optimizer="muon")
        run, seen = TrainingRun(model, config), []
        train(model, batches(), config, lambda report: seen.append(run.optimizers[0].param_groups[0]["lr"]), run=run)
        assert seen == [config.learning_rate_at(step) for step in range(4)]

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            *(("steps", [0]), ("weight_decay", [math.inf]), ("optimizer", ["sgd"])),
            ("learning_rate", [0.0, -1.0, math.nan, math.inf]),
            *((field, [1.0, -0.1]) for field in ("average_decay", "momentum")),
        ],
    )
    def test_a_wrong_field_is_named(self, field, values):
        for value in values:
            with pytest.raises(ValueError, match=f"^{field} is {value!r}"):
                TrainingConfig(**{"steps": 1, field: value})
        assert TrainingConfig(steps=1, warmup_steps=0).learning_rate_at(0) == 1e-3  # no warm-up is no error
