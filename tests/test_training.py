"""Training learns, can stop and resume between any two steps without a trace, and never keeps broken weights."""

import itertools
import math
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
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
from transformer.training import loop
from transformer.training.evaluation import token_loss

TEXT = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 20
"""Up and down: after 1 come 0 or 2, and which of them only the token before it tells."""


def batches(batch: int = 8, seed: int = 0) -> TextBatches:
    return TextBatches(TEXT, 8, batch, seed)


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


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
        assert loss == pytest.approx(exact, rel=1e-2 if in_bfloat16 else 1e-6)
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())

    def test_a_wide_model_learns_in_it(self, processor):
        losses = []
        config = TrainingConfig(steps=25, learning_rate=5e-3, warmup_steps=5, optimizer="muon")
        model = build_model(tiny_config(d_model=192, n_layers=1, d_ff=192), seed=0)
        train(model, batches(), config, lambda report: losses.append(report.loss))
        assert losses[-1] < 1 < 2 < losses[0]


@pytest.mark.usefixtures("processor")
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


@pytest.mark.usefixtures("processor")
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

    def test_a_run_has_random_numbers_of_its_own(self):
        """Nothing else that draws disturbs it, and it disturbs nothing else; without them it would go another way."""
        config, ends = TrainingConfig(steps=4), []
        for disturb in ("nothing", "global", "own"):
            model = build_model(tiny_config(dropout=0.3), seed=0)
            run = train(model, batches(), config, lambda report: report.step < 2)
            if disturb == "global":
                torch.rand(7)
            if disturb == "own":
                run.generator.manual_seed(7)
            before = torch.get_rng_state()
            ends.append(state(train(model, batches(), config, run=run).model))
            assert torch.equal(torch.get_rng_state(), before)
        assert same(ends[0], ends[1])
        assert not same(ends[0], ends[2])

    def test_what_a_caller_keeps_with_it_comes_back(self, tmp_path):
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=1))
        kept, notes = {"a.b": torch.arange(3), "embed": torch.ones(2, 2)}, {"losses": [0.1, 1 / 3], "best": None}
        run.save(tmp_path / "state", kept=kept, notes=notes)
        found, said = run.resume(tmp_path / "state")
        assert same(found, kept)
        assert said == notes

    @pytest.mark.parametrize(
        ("model", "config", "what"),
        [
            ({"d_model": 16}, {}, "model.blocks.0"),
            ({"n_layers": 1}, {}, "model.blocks.1"),
            ({}, {"average_decay": 0.5}, "average."),
            ({}, {"optimizer": "muon"}, "optimizer"),
        ],
    )
    def test_the_state_of_another_training_is_refused_before_anything_changes(self, tmp_path, model, config, what):
        train(build_model(tiny_config(), seed=0), batches(), TrainingConfig(steps=2)).save(tmp_path / "state")
        run = TrainingRun(build_model(tiny_config(**model), seed=1), TrainingConfig(steps=2, **config))
        before = state(run.model)
        with pytest.raises(ValueError, match=f"is the state of another training.*: its {what}.* doesn't fit"):
            run.resume(tmp_path / "state")
        assert same(state(run.model), before)
        assert run.step == 0

    def test_another_device_s_random_state_is_refused(self, tmp_path, monkeypatch):
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(tmp_path / "state")

        class OnAGraphicsCard:
            def get_state(self) -> torch.Tensor:
                return torch.zeros(16, dtype=torch.uint8)

        run.generator = OnAGraphicsCard()
        with pytest.raises(ValueError, match="of another device: its random_state doesn't fit"):
            run.resume(tmp_path / "state")

    @pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"{}", lambda whole: b""])
    def test_a_damaged_state_is_refused(self, tmp_path, damage):
        path = tmp_path / "state"
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(path)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ValueError, match="is no state of a training, or a damaged one"):
            run.resume(path)

    def test_safetensors_of_something_else_are_refused(self, tmp_path):
        save_file({"embed.weight": torch.zeros(2)}, tmp_path / "model.safetensors")
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        with pytest.raises(ValueError, match="is no state of a training"):
            run.resume(tmp_path / "model.safetensors")

    def test_a_full_disk_leaves_the_state_before_whole(self, tmp_path, monkeypatch):
        path = tmp_path / "state"
        run = TrainingRun(build_model(tiny_config(), seed=0), TrainingConfig(steps=2))
        run.save(path)
        before = path.read_bytes()

        def full(tensors, partial, metadata):
            Path(partial).write_bytes(b"half of it")
            raise SafetensorError("No space left on device")

        monkeypatch.setattr(loop, "save_file", full)
        with pytest.raises(OSError, match=r"can't be written to .*state: No space left on device"):
            run.save(path)
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        assert path.read_bytes() == before


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
        [
            ("steps", 0), ("learning_rate", 0.0), ("learning_rate", -1.0), ("learning_rate", math.nan),
            ("learning_rate", math.inf), ("weight_decay", math.inf), ("average_decay", 1.0), ("average_decay", -0.1),
            ("momentum", 1.0), ("momentum", -0.1), ("optimizer", "sgd"),
        ],
    )  # fmt: skip
    def test_a_wrong_field_is_named(self, field, value):
        with pytest.raises(ValueError, match=f"^{field} is {value!r}"):
            TrainingConfig(**{"steps": 1, field: value})
