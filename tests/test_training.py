"""Training learns, can stop and resume between any two steps without a trace, and never keeps broken weights."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import tiny_config, tiny_model
from transformer import (
    Batch,
    NotFiniteError,
    Probe,
    TextBatches,
    TrainingConfig,
    TrainingRun,
    build_model,
    evaluate_loss,
    train,
)
from transformer.data.batches import IGNORED
from transformer.training.evaluation import token_loss
from transformer.training.optimizers import Muon, make_optimizers, orthogonalise

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
        assert all(report.snapshot is None for report in reports)

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

    @pytest.mark.parametrize("average_decay", [0.0, 0.5])
    def test_a_probe_photographs_its_input_as_the_model_learns(self, average_decay):
        model = build_model(tiny_config(dropout=0.4, positions="learned"), seed=0)
        probe = Probe((torch.tensor([[1, 2, 3]]),), ["blocks.0.attn.hook_pattern", "hook_pos_embed"], every=2)
        reports, expected = [], {}

        def on_step(report):
            reports.append(report)
            if report.snapshot:
                kept = run.best_model
                was_training = kept.training
                expected[report.step] = kept.eval().run_with_cache(*probe.inputs)[1]["hook_pos_embed"].clone()
                kept.train(was_training)

        config = TrainingConfig(steps=5, learning_rate=0.1, warmup_steps=0, average_decay=average_decay)
        run = TrainingRun(model, config)
        train(model, batches(), config, on_step, probe=probe, run=run)
        snapshots = {report.step: report.snapshot for report in reports if report.snapshot}
        assert list(snapshots) == [1, 3, 5]
        for step, snapshot in snapshots.items():
            assert set(snapshot) == {"blocks.0.attn.hook_pattern", "hook_pos_embed"}
            assert torch.equal(snapshot["hook_pos_embed"], expected[step])  # not what it became later
        assert not torch.equal(snapshots[1]["pattern", 0], snapshots[5]["pattern", 0])

    def test_a_probe_does_not_change_what_is_learnt(self):
        def result(probe: Probe | None) -> dict[str, torch.Tensor]:
            model = build_model(tiny_config(dropout=0.4), seed=0)
            return state(train(model, batches(), TrainingConfig(steps=3), probe=probe).model)

        assert same(result(None), result(Probe((torch.tensor([[1, 2]]),), None, every=1)))


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


class TestEvaluating:
    @pytest.mark.parametrize("length", [2, 5, 8, 9, 10, 16, 17, 30])
    def test_it_is_the_mean_over_every_token_but_the_first(self, length):
        """Also those of the last window, which may be shorter."""
        model = tiny_model()
        text = torch.randint(11, (length,), generator=torch.Generator().manual_seed(0)).tolist()
        total = 0.0
        for place in range(1, length):
            begin = (place - 1) // 8 * 8
            logits = model(torch.tensor([text[begin:place]]))[0, -1]
            total -= logits.double().log_softmax(-1)[text[place]].item()
        expected = total / (length - 1)
        for batch in (1, 2, 32):
            assert evaluate_loss(model, text, batch) == pytest.approx(expected, rel=1e-5)
        assert evaluate_loss(model, torch.tensor(text)) == pytest.approx(expected, rel=1e-5)

    def test_it_leaves_the_model_as_it_was(self):
        model = build_model(tiny_config(dropout=0.5), seed=0).train()
        assert evaluate_loss(model, TEXT) == evaluate_loss(model, TEXT)
        assert model.training
        assert all(parameter.grad is None for parameter in model.parameters())

    @pytest.mark.parametrize("text", [[], [3]])
    def test_a_text_without_a_next_token_is_refused(self, text):
        with pytest.raises(ValueError, match="at least two tokens"):
            evaluate_loss(tiny_model(), text)

    def test_targets_that_are_ignored_count_for_nothing(self):
        logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
        targets = torch.tensor([[1, 2, IGNORED], [IGNORED, IGNORED, 4]])
        expected = F.cross_entropy(logits[[0, 0, 1], [0, 1, 2]], torch.tensor([1, 2, 4]))
        torch.testing.assert_close(token_loss(logits, targets), expected)


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


class TestOptimizers:
    @given(st.sampled_from([(8, 8), (16, 8), (8, 32), (3, 8, 8), (2, 12, 6)]), st.integers(0, 2**32 - 1))
    def test_orthogonalising_brings_all_singular_values_near_one(self, shape, seed):
        matrices = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        before, after = (
            torch.linalg.svdvals(matrices),
            torch.linalg.svdvals(orthogonalise(matrices, iterations=5)),
        )
        ample = before > 0.02 * before.amax(-1, keepdim=True)  # what is nearly nothing takes more iterations
        assert after.max() < 1.3
        assert after[ample].min() > 0.5

    def test_orthogonalising_keeps_the_directions(self):
        matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
        left, _, right = torch.linalg.svd(matrix)
        core = left.T @ orthogonalise(matrix) @ right.T
        torch.testing.assert_close(core, core.diagonal().diag(), atol=1e-4, rtol=0)

    def test_every_parameter_has_one_optimizer_and_only_matrices_decay(self):
        model = build_model(tiny_config(positions="learned"), seed=0)
        for muon in (False, True):
            optimizers = make_optimizers(
                model, muon=muon, learning_rate=1e-3, betas=(0.9, 0.99), weight_decay=0.1
            )
            groups = [group for optimizer in optimizers for group in optimizer.param_groups]
            ids = [id(parameter) for group in groups for parameter in group["params"]]
            assert sorted(ids) == sorted(id(parameter) for parameter in model.parameters())
            for group in groups:
                assert {parameter.dim() == 2 for parameter in group["params"]} == {group["weight_decay"] > 0}
            in_blocks = {id(p) for name, p in model.named_parameters() if "blocks." in name and p.dim() == 2}
            if muon:
                assert {id(parameter) for parameter in optimizers[0].param_groups[0]["params"]} == in_blocks

    def test_a_step_of_muon_has_the_size_that_is_asked_for(self):
        """Every direction of q, of k and of v moves by about 0.2 · √d_model · learning rate."""
        model = build_model(tiny_config(n_layers=1), seed=0)
        (muon, _) = make_optimizers(model, muon=True, learning_rate=0.01, betas=(0.9, 0.99), weight_decay=0.0)
        weight = model.blocks[0].attn.qkv.weight
        before = weight.detach().clone()
        weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
        weight.grad[:8] *= 1000  # however large the gradient of one of the three
        muon.step()
        for part in (weight.detach() - before).split(8):
            sizes = torch.linalg.svdvals(part) / (0.01 * 0.2 * 8**0.5)
            assert sizes.max() < 1.3
            assert sizes.median() > 0.5

    def test_muon_updates_matrices_of_one_shape_together_as_it_would_one_by_one(self):
        """Momentum, Nesterov's look ahead, and decay, over three steps, against the formula written out."""
        generator = torch.Generator().manual_seed(0)
        together = [torch.randn(shape, generator=generator) for shape in [(8, 8), (24, 8), (8, 8), (8, 32)]]
        alone = [weight.clone() for weight in together]
        momenta = [torch.zeros_like(weight) for weight in alone]
        muon = Muon(together, lr=0.1, momentum=0.9, weight_decay=0.5)
        for _ in range(3):
            gradients = [torch.randn(weight.shape, generator=generator) for weight in together]
            for weight, gradient in zip(together, gradients, strict=True):
                weight.grad = gradient.clone()
            muon.step()
            for weight, momentum, gradient in zip(alone, momenta, gradients, strict=True):
                momentum.copy_(0.9 * momentum + 0.1 * gradient)
                direction = 0.9 * momentum + 0.1 * gradient
                weight.mul_(1 - 0.1 * 0.5)
                for rows in (slice(at, at + 8) for at in range(0, len(weight), 8)):
                    size = 0.2 * max(8, weight.shape[1]) ** 0.5
                    weight[rows] -= 0.1 * size * orthogonalise(direction[rows])
        for one, other in zip(together, alone, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
